"""Rotary position embedding: turn each pair of a query or key by an angle that grows with its position.

Su et al. 2021 (RoFormer), Eq. 14-16 and 34. Arrays are `*batch seq_len head_dim`. Two ways to pair the
dimensions are in use, and both are here: `"half"` pairs (i, i + d/2), as GPT-NeoX and Hugging Face do, and
`"adjacent"` pairs (2i, 2i + 1), as the paper, GPT-J and Meta's Llama do. A permutation leads from one to the
other.
"""

import numpy as np

from companion.frequencies import (
    _array,
    _even_size,
    _exact,
    _half_or_adjacent,
    _lies_on,
    _positive,
    _refuse_half,
    rotation_angles,
)


def rotation_table(positions, inv_freq, *, attention_factor=1.0):
    """Return `(cos, sin)` of all angles m θ_i, each float64 of shape `(*positions.shape, half_dim)`.

    Positions of shape `(seq_len,)` serve the whole batch; for left padding give `(batch, 1, seq_len)`, where
    the 1 stands for the heads. `attention_factor` multiplies both, so the scores get its square (YaRN).

    >>> cos, sin = rotation_table([0, 1], [1.0, 0.01])
    >>> cos.round(4)
    array([[1.    , 1.    ],
           [0.5403, 1.    ]])

    Raises TypeError or ValueError as `rotation_angles` does, and unless `attention_factor` is finite and > 0.
    Source: RoFormer, Eq. 34; Peng et al. 2023 (YaRN), Eq. 21-22.
    """
    angles = rotation_angles(positions, inv_freq)
    attention_factor = _positive("attention_factor", attention_factor)
    return attention_factor * np.cos(angles), attention_factor * np.sin(angles)


def apply_rope(x, cos, sin, *, pairing="half", rotary_dim=None):
    """Return x, `(*batch, seq_len, head_dim)`, with every pair turned; shape and dtype stay those of x.

    (a, b) → (a cos − b sin, b cos + a sin) for each pair. The table is `(seq_len, half_dim)`, or has exactly
    as many axes as x, with a 1 where it is shared. It spans the whole head unless `rotary_dim` names the
    number of leading dimensions to turn; the others are copied.

    >>> cos, sin = rotation_table([0, 1], [np.pi / 2])
    >>> apply_rope(np.array([[3.0, 4.0], [3.0, 4.0]]), cos, sin).round(12)
    array([[ 3.,  4.],
           [-4.,  3.]])

    Raises TypeError for an x or table that is not floating point, a tensor or a masked array, ValueError for a
    table of another length or width, with NaN or infinity, or one that would fit by broadcasting only, another
    pairing, or an odd or too large `rotary_dim`.
    Source: RoFormer, Eq. 34.
    """
    x = _array("x", _plain("x", x), kinds="f", rule="a floating-point array")
    if x.ndim < 2:
        raise ValueError(
            f"x must have the axes (*batch, seq_len, head_dim), got shape {x.shape}; use x[None]"
        )
    rotary_dim = _rotary_dim(rotary_dim, x.shape[-1])
    cos, sin = _table("cos", cos, x.shape, rotary_dim), _table("sin", sin, x.shape, rotary_dim)
    first, second = _pairs(rotary_dim, pairing)
    if pairing == "adjacent" and _is_complex_plane(x, cos, sin, rotary_dim):
        turns = cos + 1j * sin
        return (x.view(turns.dtype) * turns).view(x.dtype)
    a, b = x[..., first], x[..., second]
    rotated = x.copy()
    rotated[..., first] = a * cos - b * sin
    rotated[..., second] = b * cos + a * sin
    return rotated


def rotation_matrix(angles, *, pairing="half"):
    """Return R with `R @ x` = the rotated x: shape `(*batch, d, d)` for angles (radians) `(*batch, d/2)`.

    A 2 × 2 rotation for each pair, zeros elsewhere. R is orthogonal, and R(α)ᵀ R(β) = R(β − α). Use it to
    think and to test; `apply_rope` does the same with d instead of d² multiplications.

    >>> rotation_matrix([np.pi / 2]).round(12)
    array([[ 0., -1.],
           [ 1.,  0.]])

    Raises TypeError or ValueError for angles that are not finite numbers with a last axis of at least one
    pair, and for another pairing. Source: RoFormer, Eq. 15.
    """
    angles = _exact("angles", angles)
    if angles.ndim == 0 or angles.shape[-1] == 0:
        raise ValueError(
            f"angles must have one angle a pair on the last axis, got shape {angles.shape}; use [angle]"
        )
    head_dim = 2 * angles.shape[-1]
    i, j = (np.arange(head_dim)[half] for half in _pairs(head_dim, pairing))
    matrix = np.zeros((*angles.shape[:-1], head_dim, head_dim))
    matrix[..., i, i] = matrix[..., j, j] = np.cos(angles)
    matrix[..., j, i] = np.sin(angles)
    matrix[..., i, j] = -np.sin(angles)
    return matrix


def pairing_permutation(head_dim):
    """Return the integers `perm`, shape `(head_dim,)`, that lead from adjacent pairs to half pairs.

    half(x[..., perm]) = adjacent(x)[..., perm]. Permuting the output rows of the query and key projections of
    each head with it converts a checkpoint; values and the output projection stay as they are.

    >>> pairing_permutation(6)
    array([0, 2, 4, 1, 3, 5])

    Raises TypeError or ValueError unless `head_dim` is an even integer ≥ 2. Source: `permute` in the script
    of Hugging Face that converts Meta's Llama weights, `convert_llama_weights_to_hf.py`.
    """
    dims = np.arange(_even_size("head_dim", head_dim))
    return np.concatenate([dims[0::2], dims[1::2]])


def _pairs(dim, pairing):
    if _half_or_adjacent("pairing", pairing) == "half":
        return slice(0, dim // 2), slice(dim // 2, dim)
    return slice(0, dim, 2), slice(1, dim, 2)


def _is_complex_plane(x, cos, sin, rotary_dim):
    """In single precision, neighbours are taken as one complex number, which one multiplication turns.

    In double precision, where this function is the reference for others, the formula stays as it is written.
    """
    single = x.dtype == cos.dtype == sin.dtype == np.float32
    return single and rotary_dim == x.shape[-1] and x.flags.c_contiguous


def _rotary_dim(rotary_dim, head_dim):
    if rotary_dim is None:
        return _even_size("head_dim (last axis of x)", head_dim)
    if _even_size("rotary_dim", rotary_dim) > head_dim:
        raise ValueError(
            f"rotary_dim must be at most head_dim = {head_dim}, got {rotary_dim}; leave it out to turn all"
        )
    return int(rotary_dim)


def _table(name, table, x_shape, rotary_dim):
    # Broadcasting alone would accept a table of length 1, or lay one of the batch on the heads.
    table = _array(name, _plain(name, table), kinds="f", rule="a floating-point table")
    _refuse_half(name, table.dtype)
    want = (x_shape[-2], rotary_dim // 2)
    if not _lies_on(table.shape, x_shape):
        raise ValueError(
            f"{name} must have the shape {want}, or as many axes as x {x_shape} with 1 where it is shared, "
            f"got {table.shape}; for left padding give positions as (batch, 1, seq_len)"
        )
    if table.shape[-2] != want[0]:
        raise ValueError(
            f"{name} must have one row for each of the {want[0]} positions of x, got {table.shape[-2]} rows; "
            "build the table for exactly these positions"
        )
    if table.shape[-1] != want[1]:
        raise ValueError(
            f"{name} must have one column for each of the {want[1]} pairs, got {table.shape[-1]} columns; "
            f"{_other_width(name, table.shape[-1], rotary_dim, x_shape[-1])}"
        )
    if not np.isfinite(table).all():
        raise ValueError(
            f"{name} must be finite, got {table[~np.isfinite(table)][0]}; rotation_table(positions, inv_freq) "
            "makes such a table"
        )
    return table


def _other_width(name, columns, rotary_dim, head_dim):
    if columns == rotary_dim:
        return (
            "a table of twice the width repeats itself for both halves, as in Hugging Face: "
            f"use its first half, {name}[..., :{rotary_dim // 2}]"
        )
    if 0 < 2 * columns <= head_dim:
        return f"pass rotary_dim={2 * columns} if only so many dimensions turn"
    return f"build the table from inverse_frequencies({rotary_dim})"


def _plain(name, value):
    """NumPy would take tensors for arrays and lose their gradient, and forget which entries are masked."""
    if type(value).__module__.partition(".")[0] == "torch":
        raise TypeError(
            f"{name} must be a NumPy array, got a tensor of torch ({type(value).__name__}); use "
            f"companion.rope_torch or companion.attention_torch, or give {name}.detach().numpy()"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a plain array, got a masked array; fill it first with {name}.filled(value)"
        )
    return value
