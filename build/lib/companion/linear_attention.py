"""Attention without the table of scores: sums of features of keys and values, and the ways to bring in positions.

Katharopoulos et al. 2020, Eq. 4-12. The weight of a key is φ(q)·φ(k) instead of exp(q·k), so that the keys can be
summed up before a query is known. Arrays are `*batch seq_len head_dim`; all is computed in float64.
"""

import numpy as np

from companion.frequencies import _array, _exact
from companion.rope import apply_rope


def linear_attention(
    q, k, v, *, feature_map, causal=False, rotation=None, pairing="half", slopes=None, bias=None
):
    """Return the averages of the values, shape `(*batch, query_len, value_dim)`, in the dtype of v.

    Σ_n w_mn φ(q_m)·φ(k_n) v_n / Σ_n w_mn φ(q_m)·φ(k_n), where `feature_map` is φ, from `(…, head_dim)` to
    `(…, num_features)`, such as `elu_features`, and w_mn carries the positions:

    - all w = 1 without any, and 0 for n > m if `causal`;
    - `rotation=(cos, sin)`, a table as for `apply_rope`, turns φ(q) and φ(k) above the line only, for turned
      features may be negative: the weights then no longer sum to 1 (RoFormer);
    - `slopes`, one for each head (the third axis from the end), gives ALiBi, w = exp(−slope (m − n)), by a
      recurrence; with `causal`;
    - `bias`, `(2L − 1,)` or `(num_heads, 2L − 1)` with the bias of the offset n − m at place n − m + L − 1, gives
      any relative bias, w = exp(bias), by fast Fourier transforms.

    A query whose weights are all 0 gets zeros.

    >>> linear_attention([[0.0]], [[0.0], [1.0]], [[10.0], [40.0]], feature_map=elu_features)
    array([[30.]])

    Raises TypeError or ValueError for inputs that are not floating point, shapes that do not fit, slopes without
    `causal` or beside a bias, and features that are not finite. Source: Katharopoulos et al. 2020; RoFormer,
    Eq. 19; Sun et al. 2023 (RetNet) for the decay; Luo et al. 2021 for the transforms.
    """
    q, k, values = _vectors("q", q), _vectors("k", k), _vectors("v", v)
    _same_places(q, k, values, square=causal or slopes is not None or bias is not None)
    q_features, k_features = _features(feature_map, q), _features(feature_map, k)
    sums = _weighting(causal, slopes, bias, q)
    below = sums(q_features, k_features, np.ones((*values.shape[:-1], 1)))
    if rotation is not None:
        q_features, k_features = _turned(q_features, k_features, rotation, pairing)
    above = sums(q_features, k_features, values)
    return (above / np.where(below == 0, 1.0, below)).astype(np.asarray(v).dtype)


def elu_features(x):
    """Return elu(x) + 1, shape of x: x + 1 where x > 0, else exp(x); always > 0.

    >>> elu_features(np.array([-1.0, 0.0, 1.0])).round(4)
    array([0.3679, 1.    , 2.    ])

    Raises TypeError for an x that is not floating point. Source: Katharopoulos et al. 2020, Eq. 7.
    """
    x = _array("x", x, kinds="f", rule="a floating-point array").astype(np.float64)
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def performer_features(x, projection):
    """Return positive random features of x, shape `(*batch, seq_len, num_features)`.

    φ(x) = exp(W x − |x|²/2) / √m for the m rows of `projection` W, drawn from the normal distribution. The mean
    of φ(q)·φ(k) over W is exp(q·k): divide q and k by the fourth root of their width to imitate softmax
    attention.

    >>> performer_features(np.array([[1.0, 0.0]]), [[0.5, 3.0], [0.5, -3.0]]).round(4)
    array([[0.7071, 0.7071]])

    Raises TypeError or ValueError for an x that is not floating point, and unless `projection` is
    `(num_features, head_dim)` and finite. Source: Choromanski et al. 2021 (Performer), Lemma 1.
    """
    x, projection = _vectors("x", x), _exact("projection", projection)
    if projection.ndim != 2 or projection.shape[0] == 0 or projection.shape[1] != x.shape[-1]:
        raise ValueError(
            f"projection must have the shape (num_features, {x.shape[-1]}), got {projection.shape}; "
            "draw it with rng.standard_normal((num_features, head_dim))"
        )
    squares = (x**2).sum(axis=-1, keepdims=True)
    return np.exp(x @ projection.T - squares / 2) / np.sqrt(len(projection))


def _turned(q_features, k_features, rotation, pairing):
    if not isinstance(rotation, tuple) or len(rotation) != 2:
        raise TypeError(
            f"rotation must be a pair (cos, sin), got {type(rotation).__name__}; see rotation_table(positions, inv_freq)"
        )
    return (apply_rope(features, *rotation, pairing=pairing) for features in (q_features, k_features))


def _weighting(causal, slopes, bias, q):
    """The function (φ(q), φ(k), values) → Σ_n w_mn φ(q_m)·φ(k_n) values_n for the positions that are asked for."""
    if slopes is not None and (bias is not None or not causal):
        raise ValueError(
            f"slopes must be given with causal=True and without bias, got causal={causal}; "
            "write other forms of ALiBi into bias"
        )
    if bias is not None:
        weights = _weights_by_offset(bias, causal, q)
        return lambda *features: _sums_by_transform(*features, weights)
    if causal:
        decay = np.exp(-_slopes(slopes, q))
        return lambda *features: _sums_by_recurrence(*features, decay)
    return lambda q_features, k_features, values: q_features @ (np.swapaxes(k_features, -1, -2) @ values)


def _sums_by_recurrence(q_features, k_features, values, decay):
    """S_m = decay · S_(m−1) + φ(k_m) v_mᵀ, and the sums are φ(q_m) S_m: one state of fixed size, O(L)."""
    state = np.zeros((*values.shape[:-2], k_features.shape[-1], values.shape[-1]))
    sums = np.empty_like(values)
    for m in range(values.shape[-2]):
        state = (
            decay[..., np.newaxis, np.newaxis] * state
            + k_features[..., m, :, np.newaxis] * values[..., m, np.newaxis, :]
        )
        sums[..., m, :] = (q_features[..., m, np.newaxis, :] @ state)[..., 0, :]
    return sums


def _sums_by_transform(q_features, k_features, values, weights):
    """The weights depend on n − m only, so the sum over n is a convolution: O(L log L)."""
    products = k_features[..., :, np.newaxis] * values[..., np.newaxis, :]
    length, period = values.shape[-2], weights.shape[-1]
    kernel = np.fft.rfft(weights[..., ::-1])[..., np.newaxis, np.newaxis]
    spectrum = np.fft.rfft(products, n=period, axis=-3)
    states = np.fft.irfft(kernel * spectrum, n=period, axis=-3)[..., length - 1 :, :, :]
    return (q_features[..., np.newaxis, :] @ states)[..., 0, :]


def _weights_by_offset(bias, causal, q):
    length = q.shape[-2]
    bias = _of_heads("bias", bias, (2 * length - 1,), q)
    if causal:
        bias = np.where(np.arange(2 * length - 1) < length, bias, -np.inf)
    largest = bias.max(axis=-1, keepdims=True)
    return np.exp(bias - np.where(np.isneginf(largest), 0.0, largest))


def _slopes(slopes, q):
    slopes = _of_heads("slopes", 0.0 if slopes is None else slopes, (), q)
    if slopes.min() < 0:
        raise ValueError(f"slopes must be at least 0, got {slopes.min()}; distance costs, see alibi_slopes")
    return slopes


def _of_heads(name, value, shape, q):
    """The value for all heads, or one for each head of q in front."""
    array = _array(name, value).astype(np.float64)
    heads = q.shape[-3] if q.ndim > 2 else 1
    if np.isnan(array).any() or np.isposinf(array).any():
        raise ValueError(f"{name} must be finite or −∞, got NaN or +∞; look for an overflow before it")
    if array.shape not in (shape, (heads, *shape)):
        raise ValueError(
            f"{name} must have the shape {shape}, or {(heads, *shape)} with the heads in front, "
            f"got {array.shape}; the offsets of a bias run from −(L − 1) to L − 1"
        )
    return array[0] if q.ndim == 2 and array.ndim > len(shape) else array


def _features(feature_map, x):
    features = _array("feature_map(x)", feature_map(x), kinds="f", rule="a floating-point array")
    if features.shape[:-1] != x.shape[:-1] or not np.isfinite(features).all():
        raise ValueError(
            f"feature_map(x) must have the shape {(*x.shape[:-1], 'num_features')} and be finite, "
            f"got {features.shape}; it may change the last axis only"
        )
    return features.astype(np.float64)


def _vectors(name, value):
    array = _array(name, value, kinds="f", rule="a floating-point array")
    if array.ndim < 2:
        raise ValueError(
            f"{name} must have the axes (*batch, seq_len, head_dim), got {array.shape}; use {name}[None]"
        )
    return array.astype(np.float64)


def _same_places(q, k, v, *, square):
    if q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            "q, k and v must agree in their batch and head axes, q and k in width, k and v in length, "
            f"got {q.shape}, {k.shape} and {v.shape}; repeat shared key heads first"
        )
    if square and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"q and k must have the same length with causal, slopes or bias, got {q.shape[-2]} and "
            f"{k.shape[-2]}; queries and keys stand at the same positions"
        )
