"""Rotary position embedding in torch: the rotation of `companion.rope`, fast, differentiable, in any dtype.

Su et al. 2021 (RoFormer), Eq. 34. The table is made by NumPy in float64 and applied in float32 (in float64 if
x is); only the result is rounded to the dtype of x. Neighbours (2i, 2i + 1) are the two parts of one complex
number, so that one complex multiplication turns them; halves (i, i + d/2) need four real products.
"""

from itertools import chain, repeat
from math import gcd

import numpy as np
import torch

from companion.frequencies import _half_or_adjacent, _refuse_half
from companion.frequency_scaling import _length
from companion.rope import _rotary_dim, _table, rotation_table
from companion.tables_torch import PositionTable, _fits, _kind


def apply_rope(x, cos, sin=None, *, pairing="half", rotary_dim=None, out=None):
    """Return x, `(*batch, seq_len, head_dim)`, with every pair turned; shape and dtype stay those of x.

    `companion.rope.apply_rope` for tensors: (a, b) → (a cos − b sin, b cos + a sin), with a table that is
    `(seq_len, half_dim)` or has as many axes as x. One complex table cos + i sin may stand for the two: made
    once by the caller, it saves adjacent pairs some work in every call (torch.compile prefers the two).
    Differentiable in x: the gradient is turned by −angle. With `out`, which may be x, the result goes there.

    >>> x = torch.tensor([[3.0, 4.0], [3.0, 4.0]])
    >>> apply_rope(x, torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]]))
    tensor([[ 3.,  4.],
            [-4.,  3.]])

    Raises TypeError or ValueError as the NumPy function does, for a table that requires grad, and for an
    `out` of another shape, dtype or device, one that overlaps x, or if it or x requires grad.
    Source: RoFormer, Eq. 34.
    """
    rotary_dim, table = _checked(x, cos, sin, pairing, rotary_dim)
    if out is not None:
        _check_out(x, out)
    elif torch.compiler.is_compiling():
        return _definition(x, *table, pairing, rotary_dim)
    elif x.requires_grad and torch.is_grad_enabled():
        return _Rotation.apply(x, pairing, rotary_dim, *table)
    return _turn(x, table, pairing, rotary_dim, torch.empty_like(x) if out is None else out)


def apply_rope_(x, cos, sin=None, *, pairing="half", rotary_dim=None):
    """Turn x in place and return it; the fastest way, since no second tensor of the shape of x is touched.

    >>> x = torch.tensor([[3.0, 4.0]])
    >>> apply_rope_(x, torch.tensor([[0.0]]), torch.tensor([[1.0]]))
    tensor([[-4.,  3.]])

    Raises TypeError or ValueError as `apply_rope` does, and if x requires grad. Source: RoFormer, Eq. 34.
    """
    rotary_dim, table = _checked(x, cos, sin, pairing, rotary_dim)
    if x.requires_grad:
        _check_no_grad("x")
    return _turn(x, table, pairing, rotary_dim, x)


class RotaryEmbedding(PositionTable):
    """The rotation table of a model, safe in half precision: a module without weights, called on positions.

    `inv_freq`, `(half_dim,)` in radians per token, comes from `inverse_frequencies` or a frequency scaling,
    and `attention_factor` with it. The table is float32 whatever the module is cast to, and is not saved.

    >>> rope = RotaryEmbedding([1.0, 0.01], max_positions=16).bfloat16()
    >>> cos, sin = rope(torch.tensor([0, 1]))
    >>> cos
    tensor([[1.0000, 1.0000],
            [0.5403, 0.9999]])

    Raises TypeError or ValueError as `rotation_table` does, and unless `max_positions` is an integer ≥ 1.
    Source: RoFormer, Eq. 34; Peng et al. 2023 (YaRN), Eq. 21-22, for the attention factor.
    """

    def __init__(self, inv_freq, max_positions, *, attention_factor=1.0):
        positions = np.arange(_length("max_positions", max_positions))
        table = rotation_table(positions, inv_freq, attention_factor=attention_factor)
        super().__init__(np.stack(table, axis=1).astype(np.float32))

    def forward(self, positions):
        """Return `(cos, sin)` for `apply_rope`, each float32 of shape `(*positions.shape, half_dim)`.

        Positions are an integer tensor `(seq_len,)`, or `(batch, 1, seq_len)` for left padding. Raises
        TypeError if they are not integers, ValueError outside 0 … max_positions − 1.
        """
        return super().forward(positions).unbind(-2)


class _Rotation(torch.autograd.Function):
    """The rotation with its gradient, the rotation back: autograd would keep and walk every step of it."""

    @staticmethod
    def forward(ctx, x, pairing, rotary_dim, *table):
        ctx.save_for_backward(*table)
        ctx.options = {"pairing": pairing, "rotary_dim": rotary_dim}
        return _turn(x, table, pairing, rotary_dim, torch.empty_like(x))

    @staticmethod
    def backward(ctx, gradient):
        back = _opposite(*ctx.saved_tensors)
        return apply_rope(gradient, *back, **ctx.options), None, None, *(None for _ in back)


def _opposite(cos, sin=None):
    """The table of the negated angles."""
    return (cos.conj_physical(),) if sin is None else (cos, -sin)


def _turn(x, table, pairing, rotary_dim, out):
    """Write the turned x into `out`, which may be x, and return it."""
    if torch.compiler.is_compiling():
        return out.copy_(_definition(x, *table, pairing, rotary_dim))
    turned, target = x, out
    if rotary_dim < x.shape[-1]:
        turned = x[..., :rotary_dim]
        target = turned if out is x else out[..., :rotary_dim]
        if out is not x:
            out[..., rotary_dim:] = x[..., rotary_dim:]
    turn = _turn_halves if pairing == "half" else _turn_neighbours
    if x.itemsize < 4:
        for x_piece, out_piece, table_piece in _pieces(turned, target, table):
            work = x_piece.float()  # so that only the result is rounded
            turn(work, work, *table_piece)
            out_piece.copy_(work)
    elif pairing == "half":
        for x_piece, out_piece, table_piece in _pieces(turned, target, table):
            turn(x_piece, out_piece, *table_piece)
    else:
        turn(turned, target, *table)
    return out


def _turn_neighbours(x, out, turns):
    if out is x and _pairs_are_complex(x):
        x.view(turns.dtype).mul_(turns)
    elif _pairs_are_complex(x) and _pairs_are_complex(out):
        torch.mul(x.view(turns.dtype), turns, out=out.view(turns.dtype))
    else:
        out.copy_(torch.view_as_real(torch.complex(x[..., 0::2], x[..., 1::2]).mul_(turns)).flatten(-2))


def _turn_halves(x, out, cos, sin):
    a, b = x.chunk(2, -1)
    if out is x:
        a_sin = a * sin
        a.mul_(cos).addcmul_(b, sin, value=-1)
        torch.addcmul(a_sin, b, cos, out=b)
    else:
        out_a, out_b = torch.mul(x, torch.cat((cos, cos), -1), out=out).chunk(2, -1)
        out_a.addcmul_(b, sin, value=-1)
        out_b.addcmul_(a, sin)


def _definition(x, cos, sin, pairing, rotary_dim):
    """What the functions above compute, for torch.compile, which fuses it but not complex numbers."""
    turned, rest = x[..., :rotary_dim].to(cos.dtype), x[..., rotary_dim:]
    a, b = turned.chunk(2, -1) if pairing == "half" else turned.unflatten(-1, (-1, 2)).unbind(-1)
    pairs = a * cos - b * sin, b * cos + a * sin
    turned = torch.cat(pairs, -1) if pairing == "half" else torch.stack(pairs, -1).flatten(-2)
    turned = turned.to(x.dtype)
    return turned if rotary_dim == x.shape[-1] else torch.cat((turned, rest), -1)


def _pieces(x, out, table, size=2**20):
    """Cut along the outermost axes into pieces of about `size` numbers, which stay in the cache of the CPU."""
    if x.numel() <= size or x.numel() == x.shape[-1] or not x.is_cpu:
        return [(x, out, table)]
    axis = next(axis for axis in range(-x.ndim, -1) if x.shape[axis] > 1)
    step = max(1, x.shape[axis] * size // x.numel())

    def cut(t):
        return t.split(step, axis) if t.ndim >= -axis and t.shape[axis] > 1 else repeat(t)

    x_pieces = cut(x)
    out_pieces = x_pieces if out is x else cut(out)
    pieces = zip(x_pieces, out_pieces, zip(*map(cut, table), strict=False), strict=False)
    return chain.from_iterable(_pieces(*piece, size) for piece in pieces)


def _pairs_are_complex(x):
    """Can x be viewed as complex numbers: neighbours side by side, all pairs an even number of places apart?"""
    return x.stride(-1) == 1 and gcd(x.storage_offset(), *x.stride()[:-1]) % 2 == 0


def _checked(x, cos, sin, pairing, rotary_dim):
    """Return rotary_dim and the table as it is used: (cos, sin), or (cos + i sin,) for neighbours."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        raise TypeError(f"x must be a floating-point tensor, got {_kind(x)}; convert it first")
    shape = x.shape
    if len(shape) < 2:
        raise ValueError(
            f"x must have the axes (*batch, seq_len, head_dim), got shape {tuple(shape)}; use x[None]"
        )
    if rotary_dim is not None or shape[-1] % 2 or not shape[-1]:
        rotary_dim = _rotary_dim(rotary_dim, shape[-1])
    else:
        rotary_dim = shape[-1]
    rows = shape[-2], rotary_dim // 2
    double = x.dtype == torch.float64
    given_complex = sin is None and isinstance(cos, torch.Tensor) and cos.is_complex()
    want_complex = _half_or_adjacent("pairing", pairing) == "adjacent" and not torch.compiler.is_compiling()
    if given_complex:
        dtype = torch.complex128 if double else torch.complex64
        table = (_checked_table("cos", cos, rows, shape, dtype),)
    else:
        dtype = torch.float64 if double else torch.float32
        table = (
            _checked_table("cos", cos, rows, shape, dtype),
            _checked_table("sin", sin, rows, shape, dtype),
        )
    if want_complex == given_complex:
        return rotary_dim, table
    return rotary_dim, (torch.complex(*table),) if want_complex else (table[0].real, table[0].imag)


def _checked_table(name, table, rows, shape, dtype):
    if not isinstance(table, torch.Tensor) or not (table.is_floating_point() or dtype.is_complex):
        raise TypeError(f"{name} must be a floating-point tensor, got {_kind(table)}; use torch.from_numpy")
    if table.requires_grad:
        raise ValueError(f"{name} must not require grad, got one that does; pass {name}.detach()")
    if table.shape != rows and not _fits(table.shape, (*shape[:-1], rows[-1])):
        _table(name, np.broadcast_to(0.0, table.shape), tuple(shape), 2 * rows[-1])  # says what is wrong
    if table.dtype == dtype:
        return table
    _refuse_half(name, table.dtype)
    return table.to(dtype)


def _check_no_grad(name):
    if torch.is_grad_enabled():
        raise ValueError(
            f"{name} must not require grad where memory is overwritten, got one that does; "
            "call apply_rope without out, or work under torch.no_grad()"
        )


def _check_out(x, out):
    if not isinstance(out, torch.Tensor) or _layout(out) != _layout(x):
        raise ValueError(
            f"out must have the shape, dtype and device of x, got {_kind(out)}; use torch.empty_like(x)"
        )
    for name, tensor in (("x", x), ("out", out)):
        if tensor.requires_grad:
            _check_no_grad(name)
    if out is x or torch.compiler.is_compiling() or not x.numel():
        return
    if out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        raise ValueError(
            "out must be x or share no memory with it, got another view of that memory; use apply_rope_"
        )


def _layout(x):
    return x.shape, x.dtype, x.device
