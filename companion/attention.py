"""Scaled dot-product attention, open to every way to bring in positions: a bias, a mask, turned q and k.

Vaswani et al. 2017, Eq. 1. Arrays are `*batch seq_len head_dim`; with three axes or more, the third from the
end counts the heads. All is computed in float64: this is what the faster versions are compared with.
"""

import numpy as np

from companion.frequencies import _array, _exact, _positive
from companion.rope import _plain


def attention_scores(q, k, *, scale=None, bias=None, mask=None):
    """Return the scores before the softmax, float64 of shape `(*batch, query_len, key_len)`.

    scores = scale · q kᵀ + bias, and −∞ where `mask` is False. `scale` is 1/√head_dim unless given; the bias
    is not scaled. Bias and mask are `(query_len, key_len)`, or have exactly as many axes as the scores, with
    a 1 where they are shared: a padding mask of keys is `(batch, 1, 1, key_len)`. With fewer key heads than query heads, each key head serves a group of
    neighbours (grouped-query attention).

    >>> attention_scores([[3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]], scale=1.0)
    array([[3., 4.]])

    Raises TypeError or ValueError for inputs that are not floating point, widths, batch axes or head counts
    that do not fit, a mask that is not boolean, a bias with NaN or +∞, and a scale that is not > 0.
    Source: Vaswani et al. 2017, Eq. 1; Press et al. 2022 (ALiBi), footnotes 9 and 10, for the unscaled bias.
    """
    q, k = _heads("q", q), _heads("k", k)
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ValueError(
            f"q and k must have the same head_dim ≥ 1, got shapes {q.shape} and {k.shape}; project both alike"
        )
    scale = q.shape[-1] ** -0.5 if scale is None else _positive("scale", scale)
    scores = scale * (q @ np.swapaxes(_repeat_heads("k", k, q), -1, -2))
    if bias is not None:
        scores = scores + _bias(bias, scores.shape)
    if mask is not None:
        mask = _array(
            "mask",
            _plain("mask", mask),
            kinds="b",
            rule="boolean, True where a query may look (numbers go into bias)",
        )
        scores = np.where(_fitting("mask", mask, scores.shape), scores, -np.inf)
    return scores


def attention_weights(scores):
    """Return the softmax over the last axis (the keys), float64, same shape; each row sums to 1.

    weights_j = exp(s_j) / Σ_l exp(s_l), computed after subtracting the largest score, so that large scores do
    not overflow. A row that is −∞ throughout (nothing may be seen) becomes zeros, not NaN.

    >>> attention_weights([[0.0, 0.0], [1000.0, -np.inf], [-np.inf, -np.inf]])
    array([[0.5, 0.5],
           [1. , 0. ],
           [0. , 0. ]])

    Raises TypeError or ValueError for scores that are not floating point, have no axis, or hold NaN or +∞.
    Source: Vaswani et al. 2017, Eq. 1.
    """
    scores = _array("scores", _plain("scores", scores), kinds="f", rule="a floating-point array")
    scores = scores.astype(np.float64)
    if scores.ndim == 0:
        raise ValueError(f"scores must have an axis of keys, got the single number {scores}; use [score]")
    _no_nan_or_plus_infinity("scores", scores)
    largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    raised = np.exp(scores - np.where(np.isneginf(largest), 0.0, largest))
    total = raised.sum(axis=-1, keepdims=True)
    return raised / np.where(total == 0, 1.0, total)


def attention(q, k, v, *, scale=None, bias=None, mask=None):
    """Return the averages of the values, shape `(*batch, query_len, value_dim)`, in the dtype of v.

    softmax(scale · q kᵀ + bias) v; see `attention_scores` for the arguments. Without bias and mask it is
    permutation-equivariant: shuffled tokens give the same rows, shuffled. A query that may see nothing
    gets zeros.

    >>> attention([[0.0]], [[1.0], [2.0]], [[10.0], [30.0]])
    array([[20.]])

    Raises TypeError or ValueError as `attention_scores` does, and for values whose batch, heads or length are
    not those of the keys. Source: Vaswani et al. 2017, Eq. 1; Ainslie et al. 2023 for grouped queries.
    """
    q, k, values = _heads("q", q), _heads("k", k), _heads("v", v)
    if k.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"k and v must agree in all axes but the last, got {k.shape} and {values.shape}; one value a key"
        )
    weights = attention_weights(attention_scores(q, k, scale=scale, bias=bias, mask=mask))
    return (weights @ _repeat_heads("v", values, q)).astype(np.asarray(v).dtype)


def causal_mask(query_positions, key_positions):
    """Return True where a query may look, that is, where key position ≤ query position.

    The shape is `(*batch, query_len, key_len)`. Positions are `(seq_len,)`, or `(batch, 1, seq_len)` if they
    differ within the batch. With a cache of n keys the queries stand at n, n + 1, …: give these positions,
    and the mask is right where a square lower triangle would not be.

    >>> causal_mask([2, 3], [0, 1, 2, 3]).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 1]])

    Raises TypeError or ValueError for positions that are single numbers, boolean, half precision, NaN or
    infinite, or that differ in their batch axes. Source: Vaswani et al. 2017, section 3.2.3.
    """
    query = _exact("query_positions", _plain("query_positions", query_positions))
    key = _exact("key_positions", _plain("key_positions", key_positions))
    if query.ndim == 0 or key.ndim == 0 or query.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            "query_positions and key_positions must be (*batch, seq_len) with the same batch axes, "
            f"got shapes {query.shape} and {key.shape}; use [position] for a single one"
        )
    return key[..., np.newaxis, :] <= query[..., :, np.newaxis]


def _heads(name, value):
    array = _array(name, _plain(name, value), kinds="f", rule="a floating-point array")
    if array.ndim < 2:
        raise ValueError(
            f"{name} must have the axes (*batch, seq_len, head_dim), got {array.shape}; use {name}[None]"
        )
    return array.astype(np.float64)


def _repeat_heads(name, array, q):
    """Query head h reads key head h // group, so heads are repeated one by one, not tiled."""
    if array.ndim != q.ndim or array.shape[:-3] != q.shape[:-3]:
        raise ValueError(
            f"q and {name} must have the same number of axes and the same batch, "
            f"got {q.shape} and {array.shape}; repeat the smaller one yourself"
        )
    if q.ndim == 2 or q.shape[-3] == array.shape[-3]:
        return array
    query_heads, key_heads = q.shape[-3], array.shape[-3]
    if key_heads == 0 or query_heads % key_heads:
        raise ValueError(
            f"the heads of q must be a multiple of the heads of {name}, got {query_heads} and {key_heads}; "
            "check the number of key-value heads"
        )
    return np.repeat(array, query_heads // key_heads, axis=-3)


def _fitting(name, array, shape):
    shared = len(array.shape) == len(shape) and all(
        n in (1, m) for n, m in zip(array.shape, shape, strict=True)
    )
    if array.shape != shape[-2:] and not shared:
        raise ValueError(
            f"{name} must have the shape {shape[-2:]}, or as many axes as the scores {shape} with 1 where "
            f"it is shared, got {array.shape}; {_other_axes(name, array.shape, shape)}"
        )
    return array


def _other_axes(name, got, shape):
    if got == ():
        return f"a single number changes nothing here: leave {name} out"
    if len(got) < len(shape):
        return f"put each missing axis where it belongs, a padding mask of keys as {name}[:, None, None, :]"
    return f"give every axis of {name} the length of that axis of the scores, or 1"


def _bias(bias, shape):
    bias = _array("bias", _plain("bias", bias))
    _no_nan_or_plus_infinity("bias", bias)
    return _fitting("bias", bias, shape)


def _no_nan_or_plus_infinity(name, array):
    if np.isnan(array).any() or np.isposinf(array).any():
        raise ValueError(f"{name} must be finite or −∞, got NaN or +∞; look for an overflow before it")
