"""Sinusoidal position codes: the hands of many clocks, as sines and cosines, added to the word embedding.

Vaswani et al. 2017, section 3.5. Positions count from 0. Two layouts are in use: `"adjacent"` is the paper's
(the sine and the cosine of one pair are neighbours), `"half"` has all sines, then all cosines (Marian).
tensor2tensor has the second layout with other speeds, and is not here.
"""

import numpy as np

from companion.frequencies import (
    _base,
    _even_size,
    _half_or_adjacent,
    _number,
    inverse_frequencies,
    rotation_angles,
)
from companion.rope import rotation_matrix


def sinusoidal_table(positions, d_model, base=10000.0, *, layout="adjacent"):
    """Return the code of every position, float64 of shape `(*positions.shape, d_model)`.

    PE(p, 2i) = sin(p ω_i) and PE(p, 2i+1) = cos(p ω_i), with ω_i = base^(-2i / d_model) in radians per token.

    >>> sinusoidal_table([0, 1], 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])

    Raises TypeError or ValueError for positions that are boolean, half precision, NaN or infinite, and unless
    `d_model` is an even integer ≥ 2, `base` a finite number > 1 and `layout` one of the two words.
    Source: Vaswani et al. 2017, section 3.5.
    """
    angles = rotation_angles(positions, _speeds_of_model(d_model, base))
    sin_cos = np.sin(angles), np.cos(angles)
    if _half_or_adjacent("layout", layout) == "half":
        return np.concatenate(sin_cos, axis=-1)
    return np.stack(sin_cos, axis=-1).reshape(*angles.shape[:-1], d_model)


def shift_matrix(offset, d_model, base=10000.0, *, layout="adjacent"):
    """Return M, shape `(d_model, d_model)`, with PE(p + offset) = M PE(p) for every position p.

    M does not depend on p. Each pair (sin, cos) is multiplied by [[cos kω, sin kω], [−sin kω, cos kω]] with
    k = `offset` in tokens, of any sign: since the sine comes first, this is a rotation by −kω.

    >>> code = sinusoidal_table([2, 5], 4)
    >>> np.allclose(shift_matrix(3, 4) @ code[0], code[1])
    True

    Raises TypeError or ValueError unless `offset` is one finite number; else as `sinusoidal_table`.
    Source: Vaswani et al. 2017, section 3.5, which claims it without proof.
    """
    angles = rotation_angles(-_number("offset", offset), _speeds_of_model(d_model, base))
    return rotation_matrix(angles, pairing=_half_or_adjacent("layout", layout))


def _speeds_of_model(d_model, base):
    return inverse_frequencies(_even_size("d_model", d_model), _base(base))
