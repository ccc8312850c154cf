"""Positions in the scores: what to add there, or to look up, for a key that stands n − m tokens from the query.

Press et al. 2022 (ALiBi), Raffel et al. 2020 (T5), Shaw et al. 2018. An offset is key − query, so the past is
negative. A bias is added to the scores after their division by √d, and is itself not divided.
"""

import numpy as np

from companion.frequencies import _array, _exact
from companion.frequency_scaling import _length


def relative_offsets(query_positions, key_positions):
    """Return key − query for every pair, in tokens, int64 of shape `(*batch, query_len, key_len)`.

    Positions are `(seq_len,)`, or `(batch, 1, seq_len)` if they differ within the batch (left padding; the 1
    stands for the heads). With a cache of n keys the queries stand at n, n + 1, …

    >>> relative_offsets([2, 3], [0, 1, 2, 3])
    array([[-2, -1,  0,  1],
           [-3, -2, -1,  0]])

    Raises TypeError or ValueError for positions that are no integers, are single numbers, or differ in their
    batch axes. Source: Shaw et al. 2018, Eq. 3, where the index is j − i.
    """
    query, key = _integers("query_positions", query_positions), _integers("key_positions", key_positions)
    if query.ndim == 0 or key.ndim == 0 or query.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            "query_positions and key_positions must be (*batch, seq_len) with the same batch axes, "
            f"got shapes {query.shape} and {key.shape}; use [position] for a single one"
        )
    return key[..., np.newaxis, :] - query[..., :, np.newaxis]


def alibi_slopes(num_heads):
    """Return what a token of distance costs in each head, shape `(num_heads,)`, per token.

    2^(−8h/H), h = 1 … H, if H is a power of two. For other H: the slopes of the next lower power of two, then
    every other slope of the next higher one, in this order, which is not monotone.

    >>> alibi_slopes(6)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625, 0.5       ,
           0.125     ])

    Raises TypeError or ValueError unless `num_heads` is an integer ≥ 1. Source: `get_slopes` in the authors'
    code, ofirpress/attention_with_linear_biases; section 3 of the paper has the powers of two only.
    """
    num_heads = _length("num_heads", num_heads, of="heads")
    lower = 1 << num_heads.bit_length() - 1
    slopes = 2.0 ** (-8 * np.arange(1, lower + 1) / lower)
    between = 2.0 ** (-4 * np.arange(1, 2 * lower + 1, 2) / lower)
    return np.concatenate([slopes, between[: num_heads - lower]])


def alibi_bias(offsets, slopes, *, causal=True):
    """Return the bias of every head, shape `(num_heads, query_len, key_len)`, with −∞ on future keys if `causal`.

    slope · offset for keys up to the query. With `causal=False` it is −slope · |offset| on both sides, and
    cannot tell left from right. Offsets of shape `(batch, 1, query_len, key_len)` give one bias a row of the
    batch, `(batch, num_heads, query_len, key_len)`.

    >>> alibi_bias(relative_offsets([0, 1, 2], [0, 1, 2]), [0.5])
    array([[[ 0. , -inf, -inf],
            [-0.5,  0. , -inf],
            [-1. , -0.5,  0. ]]])

    Raises TypeError or ValueError unless the offsets are finite numbers of such a shape and the slopes a list
    of finite numbers ≥ 0. Source: Press et al. 2022 (ALiBi), section 3 and Figure 3.
    """
    offsets, slopes = _exact("offsets", offsets), _exact("slopes", slopes)
    if slopes.ndim != 1 or slopes.size == 0 or slopes.min() < 0:
        raise ValueError(
            f"slopes must be a list of numbers ≥ 0, one for each head, got {slopes}; see alibi_slopes(num_heads)"
        )
    if offsets.ndim < 2 or (offsets.ndim > 2 and offsets.shape[-3] != 1):
        raise ValueError(
            "offsets must have the shape (query_len, key_len), or (batch, 1, query_len, key_len), "
            f"got {offsets.shape}; for left padding give positions as (batch, 1, seq_len)"
        )
    bias = 0.0 - slopes[:, np.newaxis, np.newaxis] * np.abs(offsets)  # 0 − 0 is 0 where −0 would print as -0.
    return np.where(offsets > 0, -np.inf, bias) if causal else bias


def t5_buckets(offsets, *, num_buckets=32, max_distance=128, bidirectional=True):
    """Return the row of T5's table of biases for every offset, int64 of the shape of `offsets`.

    Near distances n have a bucket each, n < E = N/2; from there on bucket E + ⌊(N − E) ln(n/E) / ln(D/E)⌋, at
    most N − 1, with N = `num_buckets` and D = `max_distance`. If `bidirectional`, each side has half of the
    buckets (N is halved first) and future keys come in the second half; if not, they all share bucket 0.
    Computed in whole numbers, so no logarithm is rounded to the wrong side.

    >>> t5_buckets([-200, -8, -1, 0, 1, 8, 200])
    array([15,  8,  1,  0, 17, 24, 31])

    Raises TypeError or ValueError unless the offsets are integers, there are 2 buckets or more (each side), and
    `max_distance` is larger than the number of near distances. Source: `_relative_position_bucket` in
    tensorflow/mesh, which Raffel et al. 2020 (T5) used.
    """
    offsets = _integers("offsets", offsets)
    one_side = _length("num_buckets", num_buckets, least=4 if bidirectional else 2, of="buckets")
    one_side //= 2 if bidirectional else 1
    starts = _bucket_starts(one_side, max_distance)
    distances = np.abs(offsets) if bidirectional else np.maximum(-offsets, 0)
    buckets = np.searchsorted(starts, distances, side="right") - 1
    return buckets + one_side * (offsets > 0) if bidirectional else buckets


def shaw_indices(offsets, max_distance):
    """Return the row of Shaw's table of vectors for every offset, int64 of the shape of `offsets`.

    clip(offset, −k, k) + k with k = `max_distance` in tokens: the table has 2k + 1 rows, row k is the token
    itself, and all that is farther shares the last row of its side.

    >>> shaw_indices([-5, -1, 0, 1, 5], 2)
    array([0, 1, 2, 3, 4])

    Raises TypeError or ValueError unless the offsets are integers and `max_distance` is an integer ≥ 1.
    Source: Shaw et al. 2018, section 3.2.
    """
    max_distance = _length("max_distance", max_distance)
    return np.clip(_integers("offsets", offsets), -max_distance, max_distance) + max_distance


def _bucket_starts(num_buckets, max_distance):
    """The least distance of every bucket: n starts bucket E + k where (n/E)^(N−E) ≥ (D/E)^k."""
    near = num_buckets // 2
    max_distance = _length("max_distance", max_distance, least=near + 1)
    far = num_buckets - near
    starts = list(range(near))
    for k in range(far):
        target = max_distance**k * near ** (far - k)
        start = int(near * (max_distance / near) ** (k / far)) - 1
        while start**far < target:
            start += 1
        starts.append(start)
    return np.array(starts)


def _integers(name, value):
    return _array(name, value, kinds="iu", rule="an array of integers").astype(np.int64)
