"""How fast each pair of dimensions turns: the table that every rotary and sinusoidal encoding starts from.

Vaswani et al. 2017, section 3.5, and Su et al. 2021 (RoFormer), Eq. 15. Pairs are counted from 0, as in the
code of both papers; everything is float64, for half precision cannot even hold the position 257 (bfloat16).
"""

import math
import numbers

import numpy as np


def inverse_frequencies(head_dim, base=10000.0):
    """Return the speed of each of the `head_dim / 2` pairs, in radians per token, shape `(half_dim,)`.

    θ_i = base^(-2i / head_dim) for i = 0 … head_dim/2 − 1; pair 0 always turns by 1 radian per token.
    `base` is what model configurations call `rope_theta`.

    >>> inverse_frequencies(8)
    array([1.   , 0.1  , 0.01 , 0.001])

    Raises TypeError or ValueError unless `head_dim` is an even integer ≥ 2 and `base` a finite number > 1.
    Source: RoFormer, Eq. 15; Vaswani et al. 2017, section 3.5.
    """
    head_dim = _even_size("head_dim", head_dim)
    base = _base(base)
    return base ** (-np.arange(0, head_dim, 2) / head_dim)


def wavelengths(inv_freq):
    """Return how many tokens each pair needs for one full turn, shape `(half_dim,)`.

    λ_i = 2π / θ_i. A pair that does not turn (θ_i = 0) has an infinite wavelength.

    >>> wavelengths(inverse_frequencies(4)).round(3)
    array([  6.283, 628.319])

    Raises TypeError or ValueError unless `inv_freq` is a non-empty 1-D table of finite speeds ≥ 0.
    Source: Peng et al. 2023 (YaRN), Eq. 13.
    """
    inv_freq = _speeds(inv_freq)
    return np.divide(2 * np.pi, inv_freq, out=np.full_like(inv_freq, np.inf), where=inv_freq > 0)


def rotation_angles(positions, inv_freq):
    """Return the angle of every pair at every position, in radians, shape `(*positions.shape, half_dim)`.

    angle = m θ_i for the position m. Positions are integers of any sign, a number or an array of any shape;
    fractions are allowed, since position interpolation needs them.

    >>> rotation_angles([0, 1, 2], inverse_frequencies(4))
    array([[0.  , 0.  ],
           [1.  , 0.01],
           [2.  , 0.02]])

    Raises TypeError or ValueError for positions that are boolean, half precision, NaN or infinite, and for
    an `inv_freq` that is not a 1-D table of finite speeds ≥ 0. Source: RoFormer, Eq. 15.
    """
    return _exact("positions", positions)[..., np.newaxis] * _speeds(inv_freq)


# Checks of arguments, shared with the modules above this one. A message says the name, the rule, what was
# given and the way out.


def _even_size(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be an integer, got {value!r}; convert it with int() if it is a whole number"
        )
    if value < 2 or value % 2:
        raise ValueError(
            f"{name} must be even and at least 2, got {value}; dimensions are used in pairs: "
            f"take {max(2, value + value % 2)}"
        )
    return int(value)


def _number(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}; pass one float")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}; pass an ordinary float")
    return number


def _positive(name, value):
    number = _number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0, got {value!r}; leave it out for the usual value")
    return number


def _base(value):
    number = _number("base", value)
    if number <= 1:
        raise ValueError(f"base must be greater than 1, got {value!r}; 10000.0 is the usual value")
    return number


def _half_or_adjacent(name, value):
    if not isinstance(value, str) or value not in ("half", "adjacent"):
        raise ValueError(
            f"{name} must be 'half' or 'adjacent', got {value!r}; "
            "half puts a pair at dimensions (i, i + d/2), adjacent at (2i, 2i + 1)"
        )
    return value


def _array(name, value, *, kinds="iuf", rule="an array of real numbers"):
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name} must be {rule}, got {type(value).__name__} ({error}); convert it first"
        ) from error
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} must be {rule}, got dtype {array.dtype}; convert it first")
    return array


def _exact(name, value):
    _refuse_half(name, getattr(value, "dtype", None))
    array = _array(name, value)
    _refuse_half(name, array.dtype)
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite, got {array[~np.isfinite(array)][0]}; replace NaN and infinity"
        )
    return array


def _refuse_half(name, dtype):
    # By name, for NumPy does not know the bfloat16 of other libraries.
    if "float16" in str(dtype):
        raise TypeError(
            f"{name} must not be half precision, got {dtype}; compute it in float64, cast the result"
        )


def _lies_on(shape, target):
    """Two axes, or exactly as many as the target with a 1 where it is shared: no broadcasting by luck."""
    if len(shape) == 2:
        return True
    return len(shape) == len(target) and all(
        n in (1, m) for n, m in zip(shape[:-2], target[:-2], strict=True)
    )


def _speeds(value):
    inv_freq = _exact("inv_freq", value)
    if inv_freq.ndim != 1 or inv_freq.size == 0:
        raise ValueError(
            f"inv_freq must be a 1-D table with one speed a pair, got shape {inv_freq.shape}; "
            "see inverse_frequencies(head_dim)"
        )
    if inv_freq.min() < 0:
        raise ValueError(
            f"inv_freq must not be negative, got {inv_freq.min()}; to turn back, negate the positions"
        )
    return inv_freq
