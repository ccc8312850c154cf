"""Memory in which the mistakes of a kernel show: guard zones around every tensor, and a record of each access.

Outputs start with a mark, what lies around the tensors must not change, programs run in shuffled order, and in
the interpreter each load and store is watched, so that a stray one is named before it does harm. Every function
that finds something returns it as a pair (Chinese, English), or None.
"""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from companion.exercises.kernel_words import said

ZONE = 4096  # elements before and after every tensor
MARK = -12288.0  # exact in float32 and float16, and nothing that a puzzle computes


class Memory(NamedTuple):
    """A tensor in the middle of a larger piece of memory; `index` is −1 where that is not the tensor."""

    name: str
    tensor: torch.Tensor
    zone: torch.Tensor
    index: np.ndarray


class Access(NamedTuple):
    program: tuple
    kind: str  # "reads" or "writes"
    name: str
    places: np.ndarray  # in the zone of the tensor


def guarded(name, values, layout, fill):
    """`values` in the middle of memory filled with `fill`: row by row, with gaps between rows, or transposed."""
    # Other gaps in y than in x, so that who takes the strides of x for both is found.
    shape, gap = list(values.shape), (5 if name == "y" else 3) * (layout == "gaps")
    if name in ("cos", "sin", "slopes"):
        layout, gap = "rows", 0
    stored = shape[::-1] if layout == "transposed" else shape
    stored = [*stored[:-1], stored[-1] + gap] if len(stored) > 1 else stored
    size = int(np.prod(stored))
    zone = torch.full((size + 2 * ZONE,), fill, dtype=values.dtype, device=values.device)

    def view(flat):
        middle = flat[ZONE : ZONE + size].view(stored)
        return (
            middle.permute(*reversed(range(len(shape))))
            if layout == "transposed"
            else middle[..., : shape[-1]]
        )

    index = torch.full((zone.numel(),), -1)
    view(index).copy_(torch.arange(values.numel()).view(shape))
    view(zone).copy_(values)
    return Memory(name, view(zone), zone, index.numpy())


@contextmanager
def watched(memories, seed):
    """Watch the interpreter's loads and stores and, with a seed, shuffle its programs; a GPU is left alone."""
    accesses = []
    if memories[0].tensor.is_cuda:
        yield accesses
        return
    from triton.runtime.interpreter import interpreter_builder as builder

    order = []

    def program(x, y, z):
        size = builder.grid_dim
        if seed is not None and not order:
            order.extend(np.random.default_rng(seed).permutation(int(np.prod(size))))
            order[:] = order[::-1] if order == sorted(order) else order
        if order:
            x, y, z = (int(i) for i in np.unravel_index(order[np.ravel_multi_index((x, y, z), size)], size))
        place(x, y, z)

    def note(kind, pointers, mask):
        shape = np.broadcast_shapes(pointers.data.shape, mask.data.shape)
        where = np.broadcast_to(pointers.data, shape)[np.broadcast_to(mask.data, shape)].astype(np.int64)
        accesses.extend(_accesses(memories, builder.grid_idx, kind, where))

    def watched_load(pointers, mask, *rest):
        note("reads", pointers, mask)
        return load(pointers, mask, *rest)

    def watched_store(pointers, value, mask, *rest):
        note("writes", pointers, mask)
        return store(pointers, value, mask, *rest)

    place, load, store = builder.set_grid_idx, builder.create_masked_load, builder.create_masked_store
    builder.set_grid_idx = program
    builder.create_masked_load, builder.create_masked_store = watched_load, watched_store
    try:
        yield accesses
    finally:
        for name in ("set_grid_idx", "create_masked_load", "create_masked_store"):
            delattr(builder, name)


def stray_access(memories, accesses):
    """Name the first write outside the tensors, or else the first read."""
    by_name = {m.name: m for m in memories}
    for kind in ("writes", "reads"):
        for access in accesses:
            if access.kind == kind and not access.name:
                return said(f"{kind}_far", program=_short(access.program))
            if access.kind == kind and (found := _outside(by_name[access.name], access.places)):
                place, count = found
                program = _short(access.program)
                return said(f"{kind}_{place}", count=count, name=access.name, program=program)
    for m in memories:  # on a GPU nothing is watched, but what lies around the tensors must not change
        fill = m.zone[0]
        touched = ~((m.zone == fill) | (m.zone.isnan() & fill.isnan())).cpu().numpy() & (m.index < 0)
        if touched.any():
            place, count = _outside(m, np.flatnonzero(touched))
            return said(f"writes_{place}", count=count, name=m.name, program="?")
    return None


def unwritten(memory):
    """Where a tensor that was full of the mark still is."""
    missing = (memory.tensor == MARK).cpu().numpy()
    if missing.all():
        return said("nothing_written")
    return said("unwritten", places=places_of(memory.name, missing)) if missing.any() else None


def clash(memories, accesses):
    """Name an element that one program writes and another one reads or writes."""
    for m in memories:
        writer = np.full(m.index.size, -1)
        programs = sorted({access.program for access in accesses})
        number = {program: i for i, program in enumerate(programs)}
        mine = [access for access in accesses if access.name == m.name]
        for access in sorted(mine, key=lambda access: access.kind, reverse=True):  # writes first
            others = writer[access.places]
            if (clash := (others >= 0) & (others != number[access.program])).any():
                at = np.unravel_index(m.index[access.places[clash][0]], m.tensor.shape)
                pair = [_short(p) for p in sorted((programs[others[clash][0]], access.program))]
                where = f"{m.name}[{', '.join(str(int(i)) for i in at)}]"
                return said(f"clash_{access.kind}", place=where, first=pair[0], second=pair[1])
            if access.kind == "writes":
                writer[access.places] = number[access.program]
    return None


def places_of(name, bad):
    """Where a boolean array is True, written as Python would: y[64:100, 0:8:2], or the first row and "…"."""
    axes = _extent(bad)
    more = bad.sum() < np.prod([len(axis) for axis in axes])
    if more:  # no rectangle
        axes = [axes[0][:1], *_extent(bad[axes[0][0]])]
    where = ", ".join(_slice(axis, size) for axis, size in zip(axes, bad.shape, strict=True))
    return f"{name}[{where}]" + (", …" if more else "")


def _accesses(memories, program, kind, where):
    """Yield the accesses at these addresses by tensor; a far one stops the kernel before it stops Python."""
    left = where.size
    for m in memories:
        size = m.zone.element_size()
        places = (where - m.zone.data_ptr()) // size
        places = places[(places >= 0) & (places < m.zone.numel())]
        left -= places.size
        if places.size:
            yield Access(program, kind, m.name, places)
    if left:
        yield Access(program, kind, "", np.zeros(0, int))
        raise MemoryError("far outside every tensor")


def _outside(memory, places):
    """Return ("before" | "past" | "between", how many elements) for the places outside a tensor, or None."""
    inside = np.flatnonzero(memory.index >= 0)
    stray = np.unique(places[memory.index[places] < 0])
    if not stray.size:
        return None
    sides = {"past": stray > inside[-1], "before": stray < inside[0]}
    sides["between"] = ~(sides["past"] | sides["before"])
    return next((side, int(which.sum())) for side, which in sides.items() if which.any())


def _extent(bad):
    """For each axis, where along it something is True."""
    others = ([j for j in range(bad.ndim) if j != i] for i in range(bad.ndim))
    return [np.flatnonzero(bad.any(tuple(other))) for other in others]


def _slice(places, size):
    steps = set(np.diff(places).tolist())
    if len(places) == size and size > 1:
        return ":"
    if len(places) == 1:
        return str(places[0])
    if len(steps) == 1:
        step = steps.pop()
        return f"{places[0]}:{places[-1] + 1}" + (f":{step}" if step > 1 else "")
    return f"[{', '.join(map(str, places[:3]))}, …]"


def _short(program):
    """A program by as many numbers as tell it apart."""
    while len(program) > 1 and program[-1] == 0:
        program = program[:-1]
    return program[0] if len(program) == 1 else program
