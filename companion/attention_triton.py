# ruff: noqa: N803, N806 - the constants of a kernel are in capitals, as everywhere in the field
"""Attention in Triton: `companion.attention` in one kernel, which never writes the scores to memory.

Dao 2023 (FlashAttention-2), Algorithm 1, after Dao et al. 2022 and Milakov and Gimelshein 2018; Press et al. 2022
for ALiBi and Su et al. 2021 for RoPE inside the kernel. Tensors are `*batch seq_len head_dim`; with three axes or
more, the third from the end counts the heads. Causal means key position ≤ query position, and the last query stands
at the last key.
float32 is multiplied as exactly as `torch.get_float32_matmul_precision()` says.
"""

import numpy as np
import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from companion.attention import _fitting, _repeat_heads
from companion.frequencies import _half_or_adjacent, _positive
from companion.rope import _rotary_dim
from companion.rope_triton import _check_device, _checked_table, _kind

LOG2_E = tl.constexpr(1.4426950408889634)  # 2^(x log₂ e) = e^x, and a GPU has an instruction for 2^x only


def attention(q, k, v, *, scale=None, bias=None, mask=None):
    """Return the averages of the values, shape `(*batch, query_len, value_dim)`, in the dtype of v.

    softmax(scale · q kᵀ + bias) v, as `companion.attention_torch.attention`, for float32, float16 and bfloat16.
    Bias and mask are `(query_len, key_len)`, or have as many axes as the scores, with a 1 where they are shared;
    only then are as many numbers read as there are scores. Each key head serves a group of query heads. A query
    that may see nothing gets zeros. Differentiable in q, k, v and bias.

    >>> attention(torch.zeros(1, 1), torch.zeros(2, 1), torch.tensor([[10.0], [30.0]]))
    tensor([[20.]])

    Raises TypeError or ValueError for q, k or v of other or different dtypes, for widths, batch axes, head
    counts or lengths that do not fit, a mask that is not boolean, and a scale that is not > 0.
    Source: Dao 2023 (FlashAttention-2), Algorithm 1, and Algorithm 2 for the gradient.
    """
    return _attend(q, k, v, scale, bias, mask, causal=False)


def causal_attention(q, k, v, *, scale=None, mask=None):
    """Return causal attention; the last query stands at the last key, so a cache needs nothing more.

    Equal to `attention` with the mask of `causal_mask`, but no mask is read, and no key of the future.

    >>> causal_attention(torch.zeros(2, 1), torch.zeros(2, 1), torch.tensor([[10.0], [30.0]]))
    tensor([[10.],
            [20.]])

    Raises TypeError or ValueError as `attention` does, and for more queries than keys.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return _attend(q, k, v, scale, None, mask)


def alibi_attention(q, k, v, slopes, *, scale=None, mask=None):
    """Return causal attention with ALiBi, shape `(*batch, query_len, value_dim)`, without a bias in memory.

    softmax(scale · q kᵀ + slope · (key − query)) v over the keys up to the query: the kernel knows the positions
    and reads one slope a head, those of `alibi_slopes`. A mask, say of left padding, further restricts.

    >>> q = k = torch.zeros(1, 2, 4)
    >>> alibi_attention(q, k, torch.tensor([[[0.0], [1.0]]]), torch.tensor([3.0]).log())
    tensor([[[0.0000],
             [0.7500]]])

    Raises TypeError or ValueError as `causal_attention` does, unless there is one slope for each head, and for
    slopes that require grad. Source: Press et al. 2022 (ALiBi), section 3.
    """
    return _attend(q, k, v, scale, None, mask, slopes=slopes)


def rope_attention(q, k, v, cos, sin, *, pairing="half", rotary_dim=None, scale=None, mask=None):
    """Return causal attention of q and k turned by their positions; turned copies of them are never in memory.

    Equal to `apply_rope` before `causal_attention`. The table has a row for each key, `(key_len, half_dim)`, or
    `(batch, 1, key_len, half_dim)` for left padding; the queries use its last rows. The kernel holds a head as
    two halves, the first and the second of each pair: q · k is the sum of their two products.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> cos, sin = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]])
    >>> rope_attention(x, x, torch.tensor([[0.0], [1.0]]), cos, sin, scale=torch.tensor(3.0).log().item())
    tensor([[0.0000],
            [0.7500]])

    Raises TypeError or ValueError as `causal_attention` does, and as `apply_rope` for the table, pairing and
    rotary_dim. Source: RoFormer, Eq. 34.
    """
    return _attend(q, k, v, scale, None, mask, table=(cos, sin), pairing=pairing, rotary_dim=rotary_dim)


# The kernels. What they share: scores are kept times log₂ e; a tile of q or k is two tiles, its halves; what is
# outside a tensor is read as 0, and masked in the scores. Addresses are int64: batch · heads · length · width soon
# passes 2³¹.


@triton.jit
def _half_columns(HEAD_DIM: tl.constexpr, ROTARY_HALF: tl.constexpr, HALF_BLOCK: tl.constexpr):
    """The columns of both halves of a head, and which of them exist. Behind turned pairs the rest is halved again."""
    HALF: tl.constexpr = (HEAD_DIM + 1) // 2
    i = tl.arange(0, HALF_BLOCK)[None, :]
    first, second = i, i + HALF
    if ROTARY_HALF > 0 and 2 * ROTARY_HALF < HEAD_DIM:
        first = tl.where(i < ROTARY_HALF, i, i + ROTARY_HALF)
        second = tl.where(i < ROTARY_HALF, i + ROTARY_HALF, i + HALF)
    return first, second, i < HALF, i < HEAD_DIM - HALF


@triton.jit
def _turn(
    first, second, cos_ptr, sin_ptr, position, exists, SIGN: tl.constexpr,
    ROTARY_HALF: tl.constexpr, HALF_BLOCK: tl.constexpr,
):  # fmt: skip
    """(a, b) → (a cos − b sin, b cos + a sin); pairs that have no table stay."""
    pair = tl.arange(0, HALF_BLOCK)[None, :]
    exists = exists[:, None] & (pair < ROTARY_HALF)
    place = position.to(tl.int64)[:, None] * ROTARY_HALF + pair
    cos = tl.load(cos_ptr + place, mask=exists, other=1.0)
    sin = SIGN * tl.load(sin_ptr + place, mask=exists, other=0.0)
    return first * cos - second * sin, second * cos + first * sin


@triton.jit
def _load_halves(
    ptr, row_stride, row, position, exists, cos_ptr, sin_ptr, HEAD_DIM: tl.constexpr, ROTARY_HALF: tl.constexpr,
    ADJACENT: tl.constexpr, HALF_BLOCK: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """The two halves of rows of q or k, turned if there is a table, in the dtype of the products."""
    rows, rows_exist = ptr + row.to(tl.int64)[:, None] * row_stride, exists[:, None]
    if ADJACENT:
        # Loads of every other number would be half as wide: neighbours are loaded together and parted in registers.
        column = tl.arange(0, 2 * HALF_BLOCK)[None, :]
        pairs = tl.load(rows + column, mask=rows_exist & (column < HEAD_DIM), other=0.0)
        first, second = tl.split(tl.reshape(pairs, (row.shape[0], HALF_BLOCK, 2)))
    else:
        first_column, second_column, first_mask, second_mask = _half_columns(
            HEAD_DIM, ROTARY_HALF, HALF_BLOCK
        )
        first = tl.load(rows + first_column, mask=rows_exist & first_mask, other=0.0)
        second = tl.load(rows + second_column, mask=rows_exist & second_mask, other=0.0)
    if ROTARY_HALF > 0:
        first, second = first.to(tl.float32), second.to(tl.float32)
        first, second = _turn(first, second, cos_ptr, sin_ptr, position, exists, 1.0, ROTARY_HALF, HALF_BLOCK)
    return first.to(DOT), second.to(DOT)


@triton.jit
def _store_halves(
    ptr, row, position, exists, first, second, cos_ptr, sin_ptr, HEAD_DIM: tl.constexpr, ROTARY_HALF: tl.constexpr,
    ADJACENT: tl.constexpr, HALF_BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradient of rows of q or k: that of turned rows, turned back."""
    if ROTARY_HALF > 0:
        first, second = _turn(
            first, second, cos_ptr, sin_ptr, position, exists, -1.0, ROTARY_HALF, HALF_BLOCK
        )
    first, second = first.to(ptr.dtype.element_ty), second.to(ptr.dtype.element_ty)
    rows, rows_exist = ptr + row.to(tl.int64)[:, None] * HEAD_DIM, exists[:, None]
    if ADJACENT:
        column = tl.arange(0, 2 * HALF_BLOCK)[None, :]
        pairs = tl.reshape(tl.join(first, second), (row.shape[0], 2 * HALF_BLOCK))
        tl.store(rows + column, pairs, mask=rows_exist & (column < HEAD_DIM))
    else:
        first_column, second_column, first_mask, second_mask = _half_columns(
            HEAD_DIM, ROTARY_HALF, HALF_BLOCK
        )
        tl.store(rows + first_column, first, mask=rows_exist & first_mask)
        tl.store(rows + second_column, second, mask=rows_exist & second_mask)


@triton.jit
def _load_rows(
    ptr, row_stride, row, exists, WIDTH: tl.constexpr, WIDTH_BLOCK: tl.constexpr, DOT: tl.constexpr,
    VOLATILE: tl.constexpr = False,
):  # fmt: skip
    """Rows of v, of the output or of its gradient."""
    column = tl.arange(0, WIDTH_BLOCK)[None, :]
    rows = ptr + row.to(tl.int64)[:, None] * row_stride
    return tl.load(rows + column, mask=exists[:, None] & (column < WIDTH), other=0.0, volatile=VOLATILE).to(
        DOT
    )


@triton.jit
def _store_rows(ptr, row, exists, rows, WIDTH: tl.constexpr, WIDTH_BLOCK: tl.constexpr):
    """Write rows of the output, or of the gradient of v; `row` is int64."""
    column = tl.arange(0, WIDTH_BLOCK)[None, :]
    mask = exists[:, None] & (column < WIDTH)
    tl.store(ptr + row[:, None] * WIDTH + column, rows.to(ptr.dtype.element_ty), mask=mask)


@triton.jit
def _slope(slopes_ptr, head):
    slope = 0.0
    if slopes_ptr is not None:
        slope = tl.load(slopes_ptr + head)
    return slope


@triton.jit
def _keys_end(blocks, queries, keys, CAUSAL: tl.constexpr, QUERY_BLOCK: tl.constexpr):
    """One past the last key that this program's block of queries may see."""
    end = keys
    if CAUSAL:
        end = tl.minimum(keys, (tl.program_id(0) % blocks + 1) * QUERY_BLOCK + keys - queries)
    return end


@triton.jit
def _scores(
    left_first, left_second, right_first, right_second, query, key, queries, keys, scale, slope,
    bias_ptr, bias_row, bias_column, CAUSAL: tl.constexpr, ALIBI: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A tile of scores times log₂ e, −∞ where a query may not look or there is no such query or key.

    Queries are on the left, `(queries, 1)`, and keys on the right, `(1, keys)`, or the other way round.
    """
    scores = tl.dot(left_first, tl.trans(right_first), input_precision=PRECISION)
    scores = tl.dot(left_second, tl.trans(right_second), acc=scores, input_precision=PRECISION)
    scores = scores * (scale * LOG2_E)
    visible = (query < queries) & (key < keys)
    if bias_ptr is not None:
        place = query.to(tl.int64) * bias_row + key.to(tl.int64) * bias_column
        scores += tl.load(bias_ptr + place, mask=visible, other=0.0) * LOG2_E
    offset = key - (query + keys - queries)  # of the positions: the last query stands at the last key
    if ALIBI:
        scores += (slope * LOG2_E) * offset.to(tl.float32)
    if CAUSAL:
        visible = visible & (offset <= 0)
    return tl.where(visible, scores, -float("inf"))


@triton.jit
def _forward_kernel(
    out_ptr, log_total_ptr, q_ptr, k_ptr, v_ptr, bias_ptr, slopes_ptr, cos_ptr, sin_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    bias_batch, bias_head, bias_row, bias_column, table_batch, heads, group, queries, keys, scale,
    HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    ROTARY_HALF: tl.constexpr, ADJACENT: tl.constexpr, CAUSAL: tl.constexpr, DOT: tl.constexpr,
    PRECISION: tl.constexpr, QUERY_BLOCK: tl.constexpr, KEY_BLOCK: tl.constexpr,
):  # fmt: skip
    """One program averages the values for a block of queries of one head, and keeps log₂ Σ 2^score for the gradient."""
    blocks = tl.cdiv(queries, QUERY_BLOCK)
    query_head = (tl.program_id(0) // blocks).to(tl.int64)  # of all batches
    batch, head = query_head // heads, query_head % heads
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + (head // group) * k_head
    v_ptr += batch * v_batch + (head // group) * v_head
    slope = _slope(slopes_ptr, head)
    if bias_ptr is not None:
        bias_ptr += batch * bias_batch + head * bias_head
    if cos_ptr is not None:
        cos_ptr += batch * table_batch
        sin_ptr += batch * table_batch

    query = (tl.program_id(0) % blocks) * QUERY_BLOCK + tl.arange(0, QUERY_BLOCK)
    position, exists = query + keys - queries, query < queries
    q_first, q_second = _load_halves(
        q_ptr, q_row, query, position, exists, cos_ptr, sin_ptr, HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK, DOT
    )  # fmt: skip
    # Online softmax: totals are those relative to the largest score so far, and shrink when a larger one comes.
    largest = tl.full((QUERY_BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((QUERY_BLOCK,), tl.float32)
    averages = tl.zeros((QUERY_BLOCK, VALUE_BLOCK), tl.float32)
    for start in range(0, _keys_end(blocks, queries, keys, CAUSAL, QUERY_BLOCK), KEY_BLOCK):
        key = start + tl.arange(0, KEY_BLOCK)
        k_first, k_second = _load_halves(
            k_ptr, k_row, key, key, key < keys, cos_ptr, sin_ptr, HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK, DOT
        )  # fmt: skip
        scores = _scores(
            q_first, q_second, k_first, k_second, query[:, None], key[None, :], queries, keys, scale, slope,
            bias_ptr, bias_row, bias_column, CAUSAL, slopes_ptr is not None, PRECISION,
        )  # fmt: skip
        new_largest = tl.maximum(largest, tl.max(scores, 1))
        reference = tl.where(new_largest == -float("inf"), 0.0, new_largest)  # −∞ − −∞ would be NaN
        weights = tl.exp2(scores - reference[:, None])
        shrink = tl.exp2(largest - reference)
        total = total * shrink + tl.sum(weights, 1)
        values = _load_rows(v_ptr, v_row, key, key < keys, VALUE_DIM, VALUE_BLOCK, DOT)
        averages = tl.dot(weights.to(DOT), values, acc=averages * shrink[:, None], input_precision=PRECISION)
        largest = new_largest
    seen = total > 0.0
    total = tl.where(seen, total, 1.0)
    row = query_head * queries + query
    tl.store(log_total_ptr + row, tl.where(seen, largest, 0.0) + tl.log2(total), mask=exists)
    _store_rows(out_ptr, row, exists, averages / total[:, None], VALUE_DIM, VALUE_BLOCK)


@triton.jit
def _query_gradient_kernel(
    dq_ptr, dbias_ptr, rest_ptr, out_ptr, dout_ptr, log_total_ptr,
    q_ptr, k_ptr, v_ptr, bias_ptr, slopes_ptr, cos_ptr, sin_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    bias_batch, bias_head, bias_row, bias_column, table_batch, heads, group, queries, keys, scale,
    HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    ROTARY_HALF: tl.constexpr, ADJACENT: tl.constexpr, CAUSAL: tl.constexpr, DOT: tl.constexpr,
    PRECISION: tl.constexpr, QUERY_BLOCK: tl.constexpr, KEY_BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of queries: weights are computed again, dscore = weight · (dout · v − dout · out).

    dout · out is the same for all keys; it is kept in `rest` for the next kernel.
    """
    blocks = tl.cdiv(queries, QUERY_BLOCK)
    query_head = (tl.program_id(0) // blocks).to(tl.int64)
    batch, head = query_head // heads, query_head % heads
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + (head // group) * k_head
    v_ptr += batch * v_batch + (head // group) * v_head
    slope = _slope(slopes_ptr, head)
    if bias_ptr is not None:
        bias_ptr += batch * bias_batch + head * bias_head
    if cos_ptr is not None:
        cos_ptr += batch * table_batch
        sin_ptr += batch * table_batch

    query = (tl.program_id(0) % blocks) * QUERY_BLOCK + tl.arange(0, QUERY_BLOCK)
    position, exists = query + keys - queries, query < queries
    row = query_head * queries + query
    q_first, q_second = _load_halves(
        q_ptr, q_row, query, position, exists, cos_ptr, sin_ptr, HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK, DOT
    )  # fmt: skip
    out = _load_rows(out_ptr, VALUE_DIM, row, exists, VALUE_DIM, VALUE_BLOCK, tl.float32)
    dout = _load_rows(dout_ptr, VALUE_DIM, row, exists, VALUE_DIM, VALUE_BLOCK, tl.float32)
    rest = tl.sum(out * dout, 1)
    tl.store(rest_ptr + row, rest, mask=exists)
    dout = dout.to(DOT)
    log_total = tl.load(log_total_ptr + row, mask=exists, other=0.0)
    dq_first = tl.zeros((QUERY_BLOCK, HALF_BLOCK), tl.float32)
    dq_second = tl.zeros((QUERY_BLOCK, HALF_BLOCK), tl.float32)
    for start in range(0, _keys_end(blocks, queries, keys, CAUSAL, QUERY_BLOCK), KEY_BLOCK):
        key = start + tl.arange(0, KEY_BLOCK)
        k_first, k_second = _load_halves(
            k_ptr, k_row, key, key, key < keys, cos_ptr, sin_ptr, HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK, DOT
        )  # fmt: skip
        scores = _scores(
            q_first, q_second, k_first, k_second, query[:, None], key[None, :], queries, keys, scale, slope,
            bias_ptr, bias_row, bias_column, CAUSAL, slopes_ptr is not None, PRECISION,
        )  # fmt: skip
        weights = tl.exp2(scores - log_total[:, None])
        values = _load_rows(v_ptr, v_row, key, key < keys, VALUE_DIM, VALUE_BLOCK, DOT)
        if (
            DOT == tl.float32
        ):  # without tensor cores, rows that stay in registers leave none: read these again
            dout = _load_rows(dout_ptr, VALUE_DIM, row, exists, VALUE_DIM, VALUE_BLOCK, DOT, VOLATILE=True)
        dscores = weights * (tl.dot(dout, tl.trans(values), input_precision=PRECISION) - rest[:, None])
        if dbias_ptr is not None:
            here = exists[:, None] & (key < keys)[None, :]
            tl.store(dbias_ptr + row[:, None] * keys + key[None, :], dscores, mask=here)
        dscores = dscores.to(DOT)
        dq_first = tl.dot(dscores, k_first, acc=dq_first, input_precision=PRECISION)
        dq_second = tl.dot(dscores, k_second, acc=dq_second, input_precision=PRECISION)
    _store_halves(
        dq_ptr, row, position, exists, dq_first * scale, dq_second * scale, cos_ptr, sin_ptr,
        HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK,
    )  # fmt: skip


@triton.jit
def _key_gradient_kernel(
    dk_ptr, dv_ptr, rest_ptr, dout_ptr, log_total_ptr,
    q_ptr, k_ptr, v_ptr, bias_ptr, slopes_ptr, cos_ptr, sin_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    bias_batch, bias_head, bias_row, bias_column, table_batch, heads, group, queries, keys, scale,
    HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    ROTARY_HALF: tl.constexpr, ADJACENT: tl.constexpr, CAUSAL: tl.constexpr, DOT: tl.constexpr,
    PRECISION: tl.constexpr, QUERY_BLOCK: tl.constexpr, KEY_BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values, summed over all query heads they serve: no program waits for another."""
    blocks = tl.cdiv(keys, KEY_BLOCK)
    key_head = (tl.program_id(0) // blocks).to(tl.int64)
    batch = key_head // (heads // group)
    first_head = key_head % (heads // group) * group
    k_ptr += batch * k_batch + (first_head // group) * k_head
    v_ptr += batch * v_batch + (first_head // group) * v_head
    if cos_ptr is not None:
        cos_ptr += batch * table_batch
        sin_ptr += batch * table_batch

    first_key = (tl.program_id(0) % blocks) * KEY_BLOCK
    key = first_key + tl.arange(0, KEY_BLOCK)
    exists = key < keys
    k_first, k_second = _load_halves(
        k_ptr, k_row, key, key, exists, cos_ptr, sin_ptr, HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK, DOT
    )
    values = _load_rows(v_ptr, v_row, key, exists, VALUE_DIM, VALUE_BLOCK, DOT)
    dk_first = tl.zeros((KEY_BLOCK, HALF_BLOCK), tl.float32)
    dk_second = tl.zeros((KEY_BLOCK, HALF_BLOCK), tl.float32)
    dv = tl.zeros((KEY_BLOCK, VALUE_BLOCK), tl.float32)
    begin = 0
    if CAUSAL:  # the first query at these keys, at the start of a block
        begin = tl.maximum(0, first_key - (keys - queries)) // QUERY_BLOCK * QUERY_BLOCK
    for member in range(0, group):
        head = first_head + member
        head_row = (batch * heads + head) * queries
        slope = _slope(slopes_ptr, head)
        head_bias_ptr = bias_ptr
        if bias_ptr is not None:
            head_bias_ptr = bias_ptr + batch * bias_batch + head * bias_head
        for start in range(begin, queries, QUERY_BLOCK):
            query = start + tl.arange(0, QUERY_BLOCK)
            position, asked = query + keys - queries, query < queries
            q_first, q_second = _load_halves(
                q_ptr + batch * q_batch + head * q_head, q_row, query, position, asked, cos_ptr, sin_ptr,
                HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK, DOT,
            )  # fmt: skip
            # Keys on the left: what is summed over queries is then a product without a transposition in registers.
            scores = _scores(
                k_first, k_second, q_first, q_second, query[None, :], key[:, None], queries, keys, scale, slope,
                head_bias_ptr, bias_row, bias_column, CAUSAL, slopes_ptr is not None, PRECISION,
            )  # fmt: skip
            row = head_row + query
            log_total = tl.load(log_total_ptr + row, mask=asked, other=0.0)
            rest = tl.load(rest_ptr + row, mask=asked, other=0.0)
            dout = _load_rows(dout_ptr, VALUE_DIM, row, asked, VALUE_DIM, VALUE_BLOCK, DOT)
            weights = tl.exp2(scores - log_total[None, :])
            dv = tl.dot(weights.to(DOT), dout, acc=dv, input_precision=PRECISION)
            dscores = weights * (tl.dot(values, tl.trans(dout), input_precision=PRECISION) - rest[None, :])
            dscores = dscores.to(DOT)
            dk_first = tl.dot(dscores, q_first, acc=dk_first, input_precision=PRECISION)
            dk_second = tl.dot(dscores, q_second, acc=dk_second, input_precision=PRECISION)
    row = key_head * keys + key
    _store_halves(
        dk_ptr, row, key, exists, dk_first * scale, dk_second * scale, cos_ptr, sin_ptr,
        HEAD_DIM, ROTARY_HALF, ADJACENT, HALF_BLOCK,
    )  # fmt: skip
    _store_rows(dv_ptr, row, exists, dv, VALUE_DIM, VALUE_BLOCK)


class _Attention(torch.autograd.Function):
    """The kernels with their gradient, for four axes: scores are computed twice and never kept."""

    @staticmethod
    def forward(ctx, q, k, v, bias, slopes, cos, sin, options):
        q, k, v = (_rows_in_one_piece(x) for x in (q, k, v))
        out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=v.dtype, device=v.device)
        log_total = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
        ctx.save_for_backward(q, k, v, bias, slopes, cos, sin, out, log_total)
        ctx.options = options
        arguments, constants = _arguments(q, k, v, bias, slopes, cos, sin, options, "forward")
        _launch(_forward_kernel, q, constants["QUERY_BLOCK"], out, log_total, *arguments, **constants)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        *inputs, out, log_total = ctx.saved_tensors
        q, k, v, bias = inputs[:4]
        dout = dout.contiguous()
        dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
        rest = torch.empty(log_total.shape, dtype=torch.float32, device=q.device)
        dbias = None
        if ctx.needs_input_grad[3]:
            dbias = torch.zeros(
                bias.shape, dtype=torch.float32, device=q.device
            )  # of the future nothing is written
        arguments, constants = _arguments(*inputs, ctx.options, "queries")
        outputs = dq, dbias, rest, out, dout, log_total
        _launch(_query_gradient_kernel, q, constants["QUERY_BLOCK"], *outputs, *arguments, **constants)
        arguments, constants = _arguments(*inputs, ctx.options, "keys")
        outputs = dk, dv, rest, dout, log_total
        _launch(_key_gradient_kernel, k, constants["KEY_BLOCK"], *outputs, *arguments, **constants)
        return dq, dk, dv, dbias, None, None, None, None


def _launch(kernel, x, block, *arguments, **constants):
    """One program for each block of rows of x."""
    programs = x.shape[0] * x.shape[1] * triton.cdiv(x.shape[2], block)
    if programs:
        with torch.cuda.device_of(x):
            kernel[(programs,)](*arguments, **constants)


def _arguments(q, k, v, bias, slopes, cos, sin, options, what):
    """What all three kernels take, and the constants they are compiled for."""
    strides = [stride for x in (q, k, v) for stride in x.stride()[:3]]
    strides += (0, 0, 0, 0) if bias is None else bias.stride()
    strides += [0 if cos is None or cos.shape[0] == 1 else cos.stride(0)]
    (_, heads, queries, head_dim), keys, value_dim = q.shape, k.shape[2], v.shape[3]
    constants = {
        "HEAD_DIM": head_dim,
        "VALUE_DIM": value_dim,
        "HALF_BLOCK": max(16, triton.next_power_of_2((head_dim + 1) // 2)),  # a product needs 16 at least
        "VALUE_BLOCK": max(16, triton.next_power_of_2(value_dim)),
        "ROTARY_HALF": 0 if cos is None else cos.shape[-1],
        "ADJACENT": options["pairing"] == "adjacent",
        "CAUSAL": options["causal"],
        **_precision(q),
    }
    tensor_cores = _chip(q) >= 80 and (constants["DOT"] != tl.float32 or constants["PRECISION"] == "tf32")
    width = max(2 * constants["HALF_BLOCK"], constants["VALUE_BLOCK"])
    row_bytes = width * (4 if tensor_cores and q.dtype == torch.float32 else 2)
    constants |= _tiles(_chip(q), tensor_cores, row_bytes, what)
    sizes = heads, max(1, heads // max(1, k.shape[1])), queries, keys, options["scale"]
    return (q, k, v, bias, slopes, cos, sin, *strides, *sizes), constants


def _precision(q):
    """In which dtype tiles are multiplied, and how exactly if it is float32."""
    # The interpreter would multiply the bits of bfloat16 as if they were integers, and on Turing, which has none
    # of it, Triton uses no tensor cores.
    wide = q.dtype == torch.float32 or 0 < _chip(q) < 80 or (q.dtype == torch.bfloat16 and _chip(q) == 0)
    dot = tl.float32 if wide else {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[q.dtype]
    exact = torch.get_float32_matmul_precision() == "highest" or _chip(q) < 80
    return {"DOT": dot, "PRECISION": "ieee" if exact or not wide else "tf32"}


def _chip(x):
    """The compute capability times ten, or 0 in the interpreter."""
    if not isinstance(_forward_kernel, triton.JITFunction):
        return 0
    major, minor = torch.cuda.get_device_capability(x.device)
    return 10 * major + minor


def _tiles(chip, tensor_cores, row_bytes, what):
    """How many queries and keys a program holds at a time, its warps, how many tiles are loaded ahead, and where it
    is not left to the compiler, how many registers a thread may have.

    The largest of those tried that spill nothing, or a few bytes, within the shared memory of the chip; `kernel_report`
    tells both.
    """
    if chip == 0:
        tiles = 64, 64, 4, 1  # the interpreter pays for each step, whatever its size
    else:
        if tensor_cores:
            generation = "Hopper" if 90 <= chip < 120 else "Ampere"
        else:
            generation = "Turing" if chip < 80 else "none"
        narrow, wide, widest = TILES[generation, what]
        tiles = narrow if row_bytes <= 128 else wide if row_bytes <= 256 else widest
    return dict(zip(("QUERY_BLOCK", "KEY_BLOCK", "num_warps", "num_stages", "maxnreg"), tiles, strict=False))


# By the tensor cores there are, for rows of at most 128 bytes, 256 bytes, or more, in the dtype of the products
# (without tensor cores twice as many, for that is float32; Turing multiplies everything so). Consumer chips have cores and memory as Ampere has.
TILES = {
    ("Turing", "forward"): ((32, 32, 8, 1), (16, 32, 4, 1), (16, 16, 4, 1)),
    ("Turing", "queries"): ((16, 32, 4, 1), (32, 32, 8, 1), (16, 16, 4, 1)),
    # Its shared memory holds one tile at a time, so that fewer registers would buy nothing.
    ("Turing", "keys"): ((32, 32, 8, 1), (16, 16, 4, 1, 255), (16, 16, 4, 1, 255)),
    ("none", "forward"): ((32, 32, 4, 1), (16, 32, 4, 1), (16, 16, 4, 1)),
    ("none", "queries"): ((16, 32, 4, 1), (16, 16, 8, 1), (16, 16, 4, 1)),
    ("none", "keys"): ((32, 32, 4, 1), (16, 16, 4, 1), (16, 16, 4, 1)),
    ("Ampere", "forward"): ((64, 64, 4, 2), (64, 64, 8, 1), (32, 32, 8, 1)),
    ("Ampere", "queries"): ((32, 32, 4, 2), (32, 64, 8, 1), (32, 16, 8, 1)),
    ("Ampere", "keys"): ((16, 64, 8, 1), (32, 32, 8, 1), (16, 32, 8, 1)),
    ("Hopper", "forward"): ((128, 64, 8, 2), (128, 64, 8, 2), (64, 32, 8, 1)),
    ("Hopper", "queries"): ((128, 64, 8, 2), (128, 64, 8, 2), (64, 32, 8, 1)),
    ("Hopper", "keys"): ((64, 64, 8, 1), (16, 64, 8, 1), (16, 32, 8, 1)),
}


def _rows_in_one_piece(x):
    """The kernels take any strides but one: the numbers of a row lie side by side."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _attend(
    q, k, v, scale, bias, mask, causal=True, slopes=None, table=None, pairing="half", rotary_dim=None
):
    q, k, v, scale = _checked(q, k, v, scale)
    if causal and q.shape[-2] > k.shape[-2]:
        raise ValueError(
            f"k must have a key for each query, got {k.shape[-2]} keys, {q.shape[-2]} queries; keep the cache in k"
        )
    scores_shape = (*q.shape[:-1], k.shape[-2])
    bias = _checked_bias(bias, mask, scores_shape, q.device)
    slopes = None if slopes is None else _checked_slopes(slopes, q)
    cos, sin = (None, None) if table is None else _checked_tables(*table, pairing, rotary_dim, k)
    options = {"scale": scale, "causal": causal, "pairing": pairing if table else "half"}
    q4, k4, v4 = (_four_axes(x) for x in (q, k, v))
    if bias is not None:
        bias = _four_axes(bias, q.shape[:-2]).expand(*q4.shape[:3], k4.shape[2])
    out = _Attention.apply(q4, k4, v4, bias, slopes, cos, sin, options)
    return out.reshape(*q.shape[:-1], v.shape[-1])


def _four_axes(x, leading=None):
    """(batch, heads, length, width), all batch axes as one; `leading` are the lengths to which shared axes grow."""
    if x.ndim <= 4:
        return x[(None,) * (4 - x.ndim)]
    return (x if leading is None else x.expand(*leading, *x.shape[-2:])).flatten(0, -4)


def _checked(q, k, v, scale):
    """Return q, k and v in the dtype of the kernel, and scale."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise TypeError(f"{name} must be a floating-point tensor, got {_kind(x)}; convert it first")
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have the axes (*batch, seq_len, head_dim), got {tuple(x.shape)}; use {name}[None]"
            )
    _check_device("q", q)
    for name, x in (("k", k), ("v", v)):
        if x.device != q.device:
            raise ValueError(f"{name} must be on {q.device}, as q, got {x.device}; use {name}.to(q.device)")
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
    if q.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(
            f"q must be float32, float16 or bfloat16, got {_kind(q)}; companion.attention_torch takes others"
        )
    if q.shape[:-2] != k.shape[:-2]:
        _repeat_heads("k", np.broadcast_to(0.0, k.shape), np.broadcast_to(0.0, q.shape))  # says what is wrong
    return q, k, v, q.shape[-1] ** -0.5 if scale is None else _positive("scale", scale)


def _checked_bias(bias, mask, shape, device):
    """One bias in float32, −∞ where the mask is False, or None."""
    if bias is not None:
        if not isinstance(bias, torch.Tensor) or not bias.is_floating_point():
            raise TypeError(f"bias must be a floating-point tensor, got {_kind(bias)}; use torch.from_numpy")
        bias = _fitted("bias", bias, shape, device).float()
    if mask is None:
        return bias
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be boolean, True where a query may look, got {_kind(mask)}; numbers go into bias"
        )
    visible = _fitted("mask", mask, shape, device)
    return (torch.zeros((), device=device) if bias is None else bias).where(visible, -torch.inf)


def _fitted(name, x, shape, device):
    _fitting(name, np.broadcast_to(False, x.shape), tuple(shape))
    if x.device != device:
        raise ValueError(f"{name} must be on {device}, as q, got {x.device}; use {name}.to(q.device)")
    return x


def _checked_slopes(slopes, q):
    slopes = torch.as_tensor(slopes, dtype=torch.float32, device=q.device)
    if q.ndim < 3 or slopes.shape != q.shape[-3:-2]:
        raise ValueError(
            f"slopes must be one number for each head of q {tuple(q.shape)}, got shape {tuple(slopes.shape)}; "
            "see alibi_slopes(num_heads)"
        )
    if slopes.requires_grad:
        raise ValueError(
            "slopes must not require grad, got some that do; companion.attention_torch differentiates in them"
        )
    return slopes.contiguous()


def _checked_tables(cos, sin, pairing, rotary_dim, k):
    """cos and sin as the kernels read them: float32 of shape (1 or batch, 1, key_len, half_dim)."""
    _half_or_adjacent("pairing", pairing)
    rotary_dim = _rotary_dim(rotary_dim, k.shape[-1])
    tables = [_checked_table(name, x, k, rotary_dim) for name, x in (("cos", cos), ("sin", sin))]
    for name, x in zip(("cos", "sin"), tables, strict=True):
        if x.ndim > 2 and x.shape[-3] > 1:
            raise ValueError(
                f"{name} must be shared by the heads, (*batch, 1, key_len, half_dim), got shape {tuple(x.shape)}; "
                "call apply_rope before causal_attention"
            )
    tables = [_four_axes(x, (*k.shape[:-3], 1)) for x in tables]
    return [x.contiguous() for x in torch.broadcast_tensors(*tables)]
