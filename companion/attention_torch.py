"""Attention in torch: `companion.attention` over the fused kernels, with every way to bring in positions.

Vaswani et al. 2017, Eq. 1; Press et al. 2022 for ALiBi. Tensors are `*batch seq_len head_dim`; with three axes
or more, the third from the end counts the heads. Causal means key position ≤ query position: with a cache the
`is_causal` of torch is wrong, for it aligns the first query with the first key.
"""

import numpy as np
import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from companion.attention import _fitting, _repeat_heads
from companion.frequencies import _positive
from companion.tables_torch import _fits, _is_integer, _kind


def attention(q, k, v, *, scale=None, bias=None, mask=None):
    """Return the averages of the values, shape `(*batch, query_len, value_dim)`, in the dtype of v.

    softmax(scale · q kᵀ + bias) v, with `scale` 1/√head_dim unless given. Bias and mask are
    `(query_len, key_len)`, or have as many axes as the scores, with a 1 where they are shared; the mask is
    True where a query may look. The bias is added in float32 even to scores of half precision. Each key head
    serves a group of query heads (grouped-query attention). A query that may see nothing gets zeros.

    >>> attention(torch.zeros(1, 1), torch.zeros(2, 1), torch.tensor([[10.0], [30.0]]))
    tensor([[20.]])

    Raises TypeError or ValueError for q, k or v that are not floating point or of different dtypes, widths,
    batch axes, head counts or lengths that do not fit, a mask that is not boolean, and a scale that is not
    > 0. Source: Vaswani et al. 2017, Eq. 1; Ainslie et al. 2023 for grouped queries.
    """
    q, k, v, scale = _checked(q, k, v, scale)
    shape = (*q.shape[:-1], k.shape[-2])
    if mask is not None:
        mask = _checked_mask(mask, shape)
    if bias is not None:
        bias = _checked_bias(bias, q.dtype, shape)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return _fused(q, k, v, mask, scale)


def causal_mask(query_positions, key_positions):
    """Return True where key position ≤ query position, shape `(*batch, query_len, key_len)`.

    Positions are `(seq_len,)`, or `(batch, 1, seq_len)` if they differ within the batch (the 1 stands for the
    heads). With a cache of n keys the queries stand at n, n + 1, …

    >>> causal_mask(torch.tensor([2, 3]), torch.arange(4)).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)

    Raises TypeError or ValueError for positions that are no integers, are single numbers, or differ in their
    batch axes. Source: Vaswani et al. 2017, section 3.2.3.
    """
    return _offsets(query_positions, key_positions) <= 0


def alibi_attention(q, k, v, slopes, *, scale=None, mask=None):
    """Return causal attention with ALiBi, shape `(*batch, query_len, value_dim)`, without a bias in memory.

    softmax(scale · q kᵀ + slope · (key − query)) v over the keys up to the query; the last query stands at the
    last key, so a cache needs nothing more. A row of the softmax does not change with slope · query, and
    slope · key is a product like the others: one more dimension of q and k holds the slope and the position.
    `slopes` are those of `alibi_slopes`, one a query head; a mask, say of left padding, further restricts.

    >>> q = k = torch.zeros(1, 2, 4)
    >>> alibi_attention(q, k, torch.tensor([[[0.0], [1.0]]]), torch.tensor([3.0]).log())
    tensor([[[0.0000],
             [0.7500]]])

    Raises TypeError or ValueError as `attention` does, unless there is one slope for each head, and for more
    queries than keys. Source: Press et al. 2022 (ALiBi), section 3, and its code for the key-only form.
    """
    q, k, v, scale = _checked(q, k, v, scale)
    slopes = _checked_slopes(slopes, q)
    query_len, key_len = q.shape[-2], k.shape[-2]
    if query_len > key_len:
        raise ValueError(
            f"k must have a key for each query, got {key_len} keys, {query_len} queries; keep the cache in k"
        )
    if mask is not None:
        mask = _checked_mask(mask, (*q.shape[:-1], key_len))
    # Blocks of queries keep the positions, counted from the end of a block, small and exact, and skip the future.
    size = query_len if torch.compiler.is_compiling() else 256
    starts = [0] if query_len <= size else range(0, query_len, size)
    rows = []
    for start in starts:
        queries = q[..., start : start + size, :]
        first, end = (key_len - query_len + start + n for n in (0, queries.shape[-2]))
        visible = causal_mask(torch.arange(first, end, device=q.device), torch.arange(end, device=q.device))
        if mask is not None:
            visible = visible & mask[..., start : start + size, :end]
        rows.append(_alibi_block(queries, k[..., :end, :], v[..., :end, :], slopes, scale, visible))
    return torch.cat(rows, -2)


def _alibi_block(q, k, v, slopes, scale, visible):
    """Attention of queries that stand at the last keys, with slope / scale and position as further dimensions."""
    # The factor 256, a power of two, keeps far positions in the range of float16.
    before_last = torch.arange(1 - k.shape[-2], 1, device=k.device).to(slopes.dtype) / 256
    pairs = [
        (slope, position)
        for slope in _exact_parts(slopes * (256 / scale), q.dtype)
        for position in _exact_parts(before_last, k.dtype)
    ]
    slope_columns, position_columns = (torch.stack(column, -1) for column in zip(*pairs, strict=True))
    q = torch.cat((q, slope_columns[:, None].expand(*q.shape[:-1], -1)), -1)
    k = torch.cat((k, position_columns.expand(*k.shape[:-1], -1)), -1)
    width = v.shape[-1]
    v = pad(v, (0, max(0, q.shape[-1] - width)))  # the fused kernels want one width
    return _fused(q, k, v, visible, scale)[..., :width]


def _fused(q, k, v, mask, scale):
    with torch.autocast(q.device.type, enabled=False):  # it would round a bias to half precision
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def _exact_parts(x, dtype):
    """Numbers of this dtype that sum to x: one, or three for half precision, whose 8 bits are too few."""
    parts = []
    for _ in range(3 if dtype.itemsize < 4 else 1):
        parts.append(x.to(dtype))
        x = x - parts[-1].to(x.dtype)
    return parts


def _offsets(query_positions, key_positions):
    """key − query, as `companion.relative_bias.relative_offsets`, for code that torch compiles."""
    for name, positions in (("query_positions", query_positions), ("key_positions", key_positions)):
        if not isinstance(positions, torch.Tensor) or not _is_integer(positions):
            raise TypeError(f"{name} must be a tensor of integers, got {_kind(positions)}; use torch.arange")
    query, key = query_positions.shape, key_positions.shape
    if not query or not key or query[:-1] != key[:-1]:
        raise ValueError(
            "query_positions and key_positions must be (*batch, seq_len) with the same batch axes, "
            f"got shapes {tuple(query)} and {tuple(key)}; use [position] for a single one"
        )
    return key_positions[..., None, :] - query_positions[..., :, None]


def _checked(q, k, v, scale):
    """Return q, k and v in the dtype of the kernel, keys and values repeated for every query head, and scale."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise TypeError(f"{name} must be a floating-point tensor, got {_kind(x)}; convert it first")
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have the axes (*batch, seq_len, head_dim), got {tuple(x.shape)}; use {name}[None]"
            )
    if q.shape[-1] != k.shape[-1] or not q.shape[-1]:
        raise ValueError(
            f"q and k must have the same head_dim ≥ 1, got shapes {tuple(q.shape)} and {tuple(k.shape)}; "
            "project both alike"
        )
    if k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"k and v must agree in all axes but the last, got {tuple(k.shape)} and {tuple(v.shape)}; one value a key"
        )
    if torch.is_autocast_enabled(q.device.type) and q.dtype != torch.float64:
        q, k, v = (x.to(torch.get_autocast_dtype(q.device.type)) for x in (q, k, v))
    elif not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k and v must have one dtype, got {q.dtype}, {k.dtype} and {v.dtype}; cast them")
    scale = q.shape[-1] ** -0.5 if scale is None else _positive("scale", scale)
    return q, _repeated("k", k, q), _repeated("v", v, q), scale


def _repeated(name, x, q):
    """Query head h reads key head h // group."""
    if x.shape[:-2] == q.shape[:-2]:
        return x
    if x.ndim != q.ndim or x.shape[:-3] != q.shape[:-3] or not x.shape[-3] or q.shape[-3] % x.shape[-3]:
        _repeat_heads(name, *(np.broadcast_to(0.0, t.shape) for t in (x, q)))  # says what is wrong
    return x.repeat_interleave(q.shape[-3] // x.shape[-3], -3)


def _checked_bias(bias, dtype, shape):
    if not isinstance(bias, torch.Tensor) or not bias.is_floating_point():
        raise TypeError(f"bias must be a floating-point tensor, got {_kind(bias)}; use torch.from_numpy")
    bias = _fitted("bias", bias, shape)
    return bias.to(torch.float64 if dtype == torch.float64 else torch.float32)


def _checked_mask(mask, shape):
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be boolean, True where a query may look, got {_kind(mask)}; numbers go into bias"
        )
    return _fitted("mask", mask, shape)


def _fitted(name, x, shape):
    if not _fits(x.shape, shape):
        _fitting(name, np.broadcast_to(False, x.shape), tuple(shape))  # says what is wrong
    return x if x.shape[-2:] == shape[-2:] else x.expand(*x.shape[:-2], *shape[-2:])


def _checked_slopes(slopes, q):
    dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
    slopes = torch.as_tensor(slopes, dtype=dtype, device=q.device)
    if q.ndim < 3 or slopes.shape != q.shape[-3:-2]:
        raise ValueError(
            f"slopes must be one number for each head of q {tuple(q.shape)}, got shape {tuple(slopes.shape)}; "
            "see alibi_slopes(num_heads)"
        )
    return slopes
