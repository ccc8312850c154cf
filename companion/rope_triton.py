# ruff: noqa: N803 - the constants of a kernel are in capitals, as everywhere in the field
"""Rotary position embedding in Triton: the rotation of `companion.rope` in one pass over the memory.

Su et al. 2021 (RoFormer), Eq. 34. A kernel reads each number once and writes it once; half precision is
turned in float32 and rounded at the end. The gradient is the same kernel with −sin. Without a GPU the kernels
run in Triton's interpreter, if TRITON_INTERPRET is 1 in the environment before anything imports triton.
"""

import numpy as np
import torch
import triton
import triton.language as tl

from companion.frequencies import _half_or_adjacent, _refuse_half
from companion.rope import _rotary_dim, _table


def apply_rope(x, cos, sin=None, *, pairing="half", rotary_dim=None, out=None):
    """Return x, `(*batch, seq_len, head_dim)`, with every pair turned; shape and dtype stay those of x.

    `companion.rope_torch.apply_rope` in one kernel: (a, b) → (a cos − b sin, b cos + a sin), with a table
    that is `(seq_len, half_dim)` or has as many axes as x, or one complex table cos + i sin. x need not be
    contiguous. Differentiable in x: the gradient is turned by −angle. With `out`, which may be x,
    the result goes there.

    >>> x = torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    >>> apply_rope(x, torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]]))
    tensor([[ 3.,  4.],
            [-4.,  3.]])

    Raises TypeError or ValueError as `rope_torch.apply_rope` does, for a table on another device, an `out`
    that is an expanded tensor, and for tensors on the CPU unless Triton interprets. Source: RoFormer, Eq. 34.
    """
    rotary_dim, *table = _checked("x", x, cos, sin, pairing, rotary_dim)
    if out is not None:
        _check_out(x, out)
    elif x.requires_grad and torch.is_grad_enabled():
        return _Rotation.apply(x, *table, pairing, rotary_dim)
    return _turn(x, *table, pairing, rotary_dim, torch.empty_like(x) if out is None else out)


def apply_rope_(x, cos, sin=None, *, pairing="half", rotary_dim=None):
    """Turn x in place and return it.

    >>> x = torch.tensor([[3.0, 4.0]])
    >>> apply_rope_(x, torch.tensor([[0.0]]), torch.tensor([[1.0]]))
    tensor([[-4.,  3.]])

    Raises TypeError or ValueError as `apply_rope` does, and if x requires grad or is an expanded tensor.
    Source: RoFormer, Eq. 34.
    """
    rotary_dim, *table = _checked("x", x, cos, sin, pairing, rotary_dim)
    _check_writable(x=x)
    return _turn(x, *table, pairing, rotary_dim, x)


def apply_rope_qk_(q, k, cos, sin=None, *, pairing="half", rotary_dim=None):
    """Turn queries and keys in place by one kernel that reads the table once for all heads; return `(q, k)`.

    q is `(*batch, num_heads, seq_len, head_dim)`; k may have another number of heads (grouped queries).
    The table is `(seq_len, half_dim)`, or `(*batch, 1, seq_len, half_dim)`: the heads share it.

    >>> q, k = torch.tensor([[[3.0, 4.0]], [[5.0, 6.0]]]), torch.tensor([[[1.0, 2.0]]])
    >>> q, k = apply_rope_qk_(q, k, torch.tensor([[0.0]]), torch.tensor([[1.0]]))
    >>> q.tolist(), k.tolist()
    ([[[-4.0, 3.0]], [[-6.0, 5.0]]], [[[-2.0, 1.0]]])

    Raises TypeError or ValueError as `apply_rope_` does, for a q and k that differ in more than the number of
    heads or are the same memory, and for a table that differs between heads. Source: RoFormer, Eq. 34.
    """
    rotary_dim, *table = _checked("q", q, cos, sin, pairing, rotary_dim)
    _check_keys(q, k, *table)
    _check_writable(q=q)
    _check_writable(k=k)
    if q.numel() or k.numel():
        table = (t.expand(*q.shape[:-3], 1, *t.shape[-2:]) for t in table)
        for piece in _four_axes(q[..., :rotary_dim], k[..., :rotary_dim], *table):
            _launch(_turn_qk_kernel, (q.shape[-3], k.shape[-3]), pairing, *piece)
        torch.autograd.graph.increment_version((q, k))
    return q, k


# The kernels. A program turns one block of positions, head after head, so that it reads their table once.
# Blocks are powers of two; what lies outside the tensor is masked. What a stride is multiplied by is int64,
# for batch · heads · length · width soon passes 2³¹.


@triton.jit
def _block(groups, seq_len, BLOCK_POSITIONS: tl.constexpr):
    """The first head, the batch row and the positions, `(positions, 1)`, of this program."""
    program = tl.program_id(0).to(tl.int64)
    blocks = tl.cdiv(seq_len, BLOCK_POSITIONS)
    # Heads first: programs that run at the same time share the table, which may be larger than the cache.
    block = program // groups % blocks
    position = block * BLOCK_POSITIONS + tl.arange(0, BLOCK_POSITIONS)
    return program % groups, program // groups // blocks, position[:, None]


@triton.jit
def _load_table(
    cos_ptr, sin_ptr, batch, position, seq_len, batch_stride, position_stride, pair_stride,
    HALF_DIM: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
):  # fmt: skip
    """The cosines and sines, `(positions, pairs)`."""
    pair = tl.arange(0, BLOCK_PAIRS)[None, :].to(tl.int64)
    exists = (position < seq_len) & (pair < HALF_DIM)
    place = batch * batch_stride + position * position_stride + pair * pair_stride
    cos = tl.load(cos_ptr + place, mask=exists, other=1.0)
    return cos, tl.load(sin_ptr + place, mask=exists, other=0.0)


@triton.jit
def _turn_rows(
    x_ptr, out_ptr, x_row, out_row, x_dim_stride, out_dim_stride, exists, cos, sin,
    HALF_DIM: tl.constexpr, ADJACENT: tl.constexpr, BLOCK_POSITIONS: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
):  # fmt: skip
    """(a, b) → (a cos − b sin, b cos + a sin) for the rows of one head."""
    if ADJACENT:
        # Every other number would be half a load: neighbours are loaded together and parted in registers.
        dim = tl.arange(0, 2 * BLOCK_PAIRS)[None, :].to(tl.int64)
        exists &= dim < 2 * HALF_DIM
        x = tl.load(x_ptr + x_row + dim * x_dim_stride, mask=exists, other=0.0).to(cos.dtype)
        a, b = tl.split(tl.reshape(x, (BLOCK_POSITIONS, BLOCK_PAIRS, 2)))
        y = tl.reshape(tl.join(a * cos - b * sin, b * cos + a * sin), (BLOCK_POSITIONS, 2 * BLOCK_PAIRS))
        tl.store(out_ptr + out_row + dim * out_dim_stride, y.to(out_ptr.dtype.element_ty), mask=exists)
    else:
        dim = tl.arange(0, BLOCK_PAIRS)[None, :].to(tl.int64)
        exists &= dim < HALF_DIM
        first, second = x_row + dim * x_dim_stride, x_row + (dim + HALF_DIM) * x_dim_stride
        a = tl.load(x_ptr + first, mask=exists, other=0.0).to(cos.dtype)
        b = tl.load(x_ptr + second, mask=exists, other=0.0).to(cos.dtype)
        first, second = out_row + dim * out_dim_stride, out_row + (dim + HALF_DIM) * out_dim_stride
        tl.store(out_ptr + first, (a * cos - b * sin).to(out_ptr.dtype.element_ty), mask=exists)
        tl.store(out_ptr + second, (b * cos + a * sin).to(out_ptr.dtype.element_ty), mask=exists)


@triton.jit
def _turn_kernel(
    x_ptr, out_ptr, cos_ptr, sin_ptr, seq_len, heads, groups,
    x_batch, x_head, x_position, x_dim, out_batch, out_head, out_position, out_dim,
    table_batch, table_position, table_pair,
    HALF_DIM: tl.constexpr, ADJACENT: tl.constexpr, BLOCK_POSITIONS: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
):  # fmt: skip
    """x and out are `(batch, heads, seq_len, 2 · HALF_DIM)`, the table `(batch, seq_len, HALF_DIM)`."""
    head, batch, position = _block(groups, seq_len, BLOCK_POSITIONS)
    cos, sin = _load_table(
        cos_ptr, sin_ptr, batch, position, seq_len, table_batch, table_position, table_pair,
        HALF_DIM, BLOCK_PAIRS,
    )  # fmt: skip
    exists = position < seq_len
    x_row, out_row = batch * x_batch + position * x_position, batch * out_batch + position * out_position
    while head < heads:
        _turn_rows(
            x_ptr, out_ptr, x_row + head * x_head, out_row + head * out_head, x_dim, out_dim, exists,
            cos, sin, HALF_DIM, ADJACENT, BLOCK_POSITIONS, BLOCK_PAIRS,
        )  # fmt: skip
        head += groups


@triton.jit
def _turn_qk_kernel(
    q_ptr, k_ptr, cos_ptr, sin_ptr, seq_len, q_heads, k_heads, groups,
    q_batch, q_head, q_position, q_dim, k_batch, k_head, k_position, k_dim,
    table_batch, table_position, table_pair,
    HALF_DIM: tl.constexpr, ADJACENT: tl.constexpr, BLOCK_POSITIONS: tl.constexpr, BLOCK_PAIRS: tl.constexpr,
):  # fmt: skip
    """q and k in place, each `(batch, its heads, seq_len, 2 · HALF_DIM)`."""
    head, batch, position = _block(groups, seq_len, BLOCK_POSITIONS)
    cos, sin = _load_table(
        cos_ptr, sin_ptr, batch, position, seq_len, table_batch, table_position, table_pair,
        HALF_DIM, BLOCK_PAIRS,
    )  # fmt: skip
    exists = position < seq_len
    q_row, k_row = batch * q_batch + position * q_position, batch * k_batch + position * k_position
    while head < q_heads:
        row = q_row + head * q_head
        _turn_rows(
            q_ptr, q_ptr, row, row, q_dim, q_dim, exists,
            cos, sin, HALF_DIM, ADJACENT, BLOCK_POSITIONS, BLOCK_PAIRS,
        )  # fmt: skip
        head += groups
    # The heads of k follow those of q in one round of dealing, so that all programs get the same number.
    head -= q_heads
    while head < k_heads:
        row = k_row + head * k_head
        _turn_rows(
            k_ptr, k_ptr, row, row, k_dim, k_dim, exists,
            cos, sin, HALF_DIM, ADJACENT, BLOCK_POSITIONS, BLOCK_PAIRS,
        )  # fmt: skip
        head += groups


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, pairing, rotary_dim):
        ctx.save_for_backward(cos, sin)
        ctx.options = {"pairing": pairing, "rotary_dim": rotary_dim}
        return _turn(x, cos, sin, pairing, rotary_dim, torch.empty_like(x))

    @staticmethod
    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors
        return apply_rope(gradient, cos, -sin, **ctx.options), None, None, None, None


def _turn(x, cos, sin, pairing, rotary_dim, out):
    """Write the turned x into `out`, which may be x, and return it."""
    if not x.numel():
        return out
    if out is not x and rotary_dim < x.shape[-1]:
        out[..., rotary_dim:] = x[..., rotary_dim:]
    wide = (t.expand(*x.shape[:-1], t.shape[-1]) for t in (cos, sin))
    for piece in _four_axes(x[..., :rotary_dim], out[..., :rotary_dim], *wide):
        heads = piece[0].shape[1]
        if heads > 1 and any(table.stride(1) for table in piece[2:]):
            for row in zip(*piece, strict=True):  # each head has a table of its own: the heads are a batch
                _launch(_turn_kernel, (1,), pairing, *(t[:, None] for t in row))
        else:
            _launch(_turn_kernel, (heads,), pairing, *piece)
    torch.autograd.graph.increment_version(out)
    return out


def _four_axes(*tensors):
    """The tensors with four axes each: missing ones are added, others walked along."""
    if tensors[0].ndim > 4:
        for row in zip(*tensors, strict=True):
            yield from _four_axes(*row)
    elif tensors[0].ndim < 4:
        yield from _four_axes(*(t[None] for t in tensors))
    else:
        yield tensors


def _launch(kernel, heads, pairing, *tensors):
    arguments, constants, programs = _arguments(heads, pairing, *tensors)
    with torch.cuda.device_of(tensors[0]):
        kernel[(programs,)](*arguments, **constants)


def _arguments(heads, pairing, first, second, cos, sin, table_bytes=4096, heads_a_program=4):
    """What a kernel takes, and the number of programs: for each batch row, positions and group of heads.

    `table_bytes` of cosines, and as many of sines, stay in registers, few enough for every chip.
    """
    batch, _, seq_len, rotary_dim = first.shape
    if cos.stride() != sin.stride():
        cos, sin = cos.contiguous(), sin.contiguous()
    pairs = triton.next_power_of_2(rotary_dim // 2)
    positions = max(1, table_bytes // (cos.itemsize * pairs))
    groups = triton.cdiv(sum(heads), heads_a_program)
    strides = *first.stride(), *second.stride(), cos.stride(0), cos.stride(2), cos.stride(3)
    constants = {
        "HALF_DIM": rotary_dim // 2,
        "ADJACENT": pairing == "adjacent",
        "BLOCK_POSITIONS": positions,
        "BLOCK_PAIRS": pairs,
    }
    programs = groups * triton.cdiv(seq_len, positions) * batch
    return (first, second, cos, sin, seq_len, *heads, groups, *strides), constants, programs


def _checked(name, x, cos, sin, pairing, rotary_dim):
    """Return rotary_dim and the table as it is used."""
    dtypes = torch.float32, torch.float16, torch.bfloat16, torch.float64
    if not isinstance(x, torch.Tensor) or x.dtype not in dtypes:
        raise TypeError(
            f"{name} must be a floating-point tensor, got {_kind(x)}; "
            "convert it to float32, float16, bfloat16 or float64"
        )
    if x.ndim < 2:
        raise ValueError(
            f"{name} must have the axes (*batch, seq_len, head_dim), got shape {tuple(x.shape)}; use x[None]"
        )
    _check_device(name, x)
    _half_or_adjacent("pairing", pairing)
    rotary_dim = _rotary_dim(rotary_dim, x.shape[-1])
    if sin is None and isinstance(cos, torch.Tensor) and cos.is_complex():
        cos, sin = cos.real, cos.imag
    return rotary_dim, _checked_table("cos", cos, x, rotary_dim), _checked_table("sin", sin, x, rotary_dim)


def _checked_table(name, table, x, rotary_dim):
    if not isinstance(table, torch.Tensor) or not table.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {_kind(table)}; use torch.from_numpy")
    if table.requires_grad:
        raise ValueError(f"{name} must not require grad, got one that does; pass {name}.detach()")
    if table.device != x.device:
        raise ValueError(f"{name} must be on {x.device}, as x, got {table.device}; use {name}.to(x.device)")
    _table(
        name, np.broadcast_to(0.0, table.shape), tuple(x.shape), rotary_dim
    )  # says what is wrong with the shape
    _refuse_half(name, table.dtype)
    return table.to(torch.float64 if x.dtype == torch.float64 else torch.float32)


def _check_device(name, x):
    """Triton itself would say "0 active drivers", or read the memory of the CPU as if it were a GPU's."""
    # If the variable is set after the import of triton, Triton's own functions do not know of it.
    interpreted = not isinstance(_turn_kernel, triton.JITFunction) and not isinstance(
        tl.cdiv, triton.JITFunction
    )
    if x.is_cuda or x.is_xpu or (interpreted and x.is_cpu):
        return
    raise ValueError(
        f"{name} must be on a GPU, got {x.device}; without one, let Triton interpret: restart Python and set "
        'os.environ["TRITON_INTERPRET"] = "1" before anything imports triton, or use the module for torch'
    )


def _check_keys(q, k, cos, sin):
    if not isinstance(k, torch.Tensor) or (k.dtype, k.device) != (q.dtype, q.device):
        raise TypeError(
            f"k must have the dtype and device of q, {_kind(q)}, got {_kind(k)}; convert it first"
        )
    if q.ndim < 3 or (*q.shape[:-3], *q.shape[-2:]) != (*k.shape[:-3], *k.shape[-2:]):
        raise ValueError(
            "q and k must be (*batch, num_heads, seq_len, head_dim), equal but for the heads, got shapes "
            f"{tuple(q.shape)} and {tuple(k.shape)}; call apply_rope_ on each"
        )
    if q.numel() and k.numel() and q.data_ptr() == k.data_ptr():
        raise ValueError(
            "k must not be q, got the same memory, which would turn twice; use apply_rope_ for one"
        )
    for name, table in (("cos", cos), ("sin", sin)):
        if table.ndim > 2 and table.shape[-3] > 1:
            raise ValueError(
                f"{name} must be shared by the heads of q and k, (*batch, 1, seq_len, half_dim), got shape "
                f"{tuple(table.shape)}; call apply_rope_ on each"
            )


def _check_out(x, out):
    if not isinstance(out, torch.Tensor) or (out.shape, out.dtype, out.device) != (
        x.shape,
        x.dtype,
        x.device,
    ):
        raise ValueError(
            f"out must have the shape, dtype and device of x, got {_kind(out)}; use torch.empty_like(x)"
        )
    _check_writable(x=x, out=out)
    if out is not x and x.numel() and out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        raise ValueError(
            "out must be x or share no memory with it, got another view of that memory; use apply_rope_"
        )


def _check_writable(**tensors):
    """The last of them is written to."""
    for name, x in tensors.items():
        if x.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} must not require grad where memory is overwritten, got one that does; "
                "call apply_rope without out, or work under torch.no_grad()"
            )
    if x.numel() and any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
        raise ValueError(
            f"{name} must have a place of its own for each number to be overwritten, got an expanded tensor "
            f"of shape {tuple(x.shape)}; use {name}.contiguous()"
        )


def _kind(value):
    """What was given, for a message."""
    if not isinstance(value, torch.Tensor):
        return f"{value!r:.60}"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)} on {value.device}"
