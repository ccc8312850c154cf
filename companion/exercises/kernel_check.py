"""Check a reader's Triton kernel against a definition in plain torch, and name what is wrong with it.

A puzzle is a typed definition and the way its kernel is launched: the annotations of the definition name the axes
of its tensors and so draw them. The kernel runs on ragged shapes, lying between guard zones (`kernel_memory`).
"""

import ast
import inspect
import textwrap
import traceback
from typing import NamedTuple

import numpy as np
import torch

from companion.exercises.kernel_memory import (
    MARK,
    clash,
    guarded,
    places_of,
    stray_access,
    unwritten,
    watched,
)
from companion.exercises.kernel_words import said


class Axes(str):
    """The axes of a tensor, named and separated by spaces: the annotation of a definition."""


class Puzzle(NamedTuple):
    """`launch(kernel, *tensors, *outputs)` must give what `definition(*tensors)` gives, in every case.

    A case names the size of each axis, and may set a `dtype` and a `layout` ("gaps" between the rows, or
    "transposed"). With `in_place` the first so many tensors are changed and there is no output y. With `backward`,
    `launch(…, backward=True)` must turn a gradient back; with `transpose`, the same launch must, with −sin for sin.
    `rounding` is how many roundings in float32, of numbers as large as the largest result, may precede the last one
    to the dtype. `mistakes` are (definition, words).
    """

    definition: object
    launch: object
    cases: tuple
    in_place: int = 0
    backward: bool = False
    transpose: bool = False
    rounding: int = 0
    mistakes: tuple = ()


def check_kernel(kernel, puzzle):
    """Return None if the kernel solves the puzzle, else what is wrong as a pair (Chinese, English).

    Raises NotImplementedError for a kernel in which a `...` still stands.
    """
    if problem := _no_kernel(kernel):
        return problem
    for seed, case in enumerate(puzzle.cases):
        for backward in (False, True)[: 1 + (puzzle.backward or puzzle.transpose)]:
            if problem := _check_case(kernel, puzzle, case, seed, backward):
                return problem
    return None


def show_puzzle(puzzle):
    """Print the definition of a puzzle and its launch: with the kernel's own header, all there is to know."""
    source = "\n".join(inspect.getsource(part) for part in (puzzle.definition, puzzle.launch))
    print(source.replace("  # fmt: skip", ""), end="")


def record(kernel, puzzle, case):
    """Run a right kernel in the interpreter; return (memories, accesses): what each program reads and writes."""
    from triton.runtime.interpreter import InterpretedFunction  # also where kernels else run on a GPU

    memories = _memories(puzzle, case, draw(puzzle, case, 0, "cpu"))
    accesses, error = _run(InterpretedFunction(kernel.fn), puzzle, memories, None, False)
    if error is not None:
        raise error
    return memories, accesses


def draw(puzzle, case, seed, device):
    """Return the tensors of one case, by name."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, axes in inspect.get_annotations(puzzle.definition).items():
        if name == "return":
            continue
        shape, dtype = [case[axis] for axis in axes.split()], case.get("dtype", torch.float32)
        values = rng.standard_normal(shape)
        if name in ("cos", "sin"):  # the same angles for both
            values = getattr(np, name)(np.random.default_rng(seed + 99).uniform(-3, 3, shape))
            dtype = torch.float32
        elif name == "slopes":
            values, dtype = 2.0 ** -np.arange(1, shape[0] + 1), torch.float32
        elif name == "scores":
            # Who forgets to subtract the largest overflows; who begins with 0 instead of −∞ underflows.
            values = 30 * values + (-200 if seed % 2 else 200)
        tensors[name] = torch.tensor(values, dtype=dtype, device=device)
    return tensors


def _no_kernel(kernel):
    """Raise NotImplementedError for a stub; return what is wrong with an answer that is no kernel."""
    if not hasattr(kernel, "fn"):
        try:
            kernel()  # a stub without @triton.jit tells `check` by itself
        except TypeError:
            pass
        return said("no_kernel")
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kernel.fn)))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...:
            raise NotImplementedError("empty")
    return None


def _check_case(kernel, puzzle, case, seed, backward):
    tensors = draw(puzzle, case, seed, "cuda" if torch.cuda.is_available() else "cpu")
    given = tensors
    if backward and puzzle.transpose:
        given = {name: -values if name == "sin" else values for name, values in tensors.items()}
    memories = _memories(puzzle, case, given)
    want = _wanted(puzzle.definition, puzzle, tensors, backward)
    accesses, error = _run(kernel, puzzle, memories, seed, backward)
    if problem := stray_access(memories, accesses):
        return problem
    if error is not None:
        cause = error.__cause__ or error
        told = f"{type(cause).__name__}: {cause}".strip().splitlines()[0]
        return said("raised", error=told + _line_of(kernel, cause))
    if problem := (None if puzzle.in_place else unwritten(memories[-1])) or clash(memories, accesses):
        return problem
    if not (wrong := _wrong(puzzle, _changed(puzzle, memories), want)):
        return None
    again = _memories(puzzle, case, given)
    _run(kernel, puzzle, again, None, backward)
    if not _wrong(puzzle, _changed(puzzle, again), want):
        return said("order")
    if known := _known(puzzle, tensors, _changed(puzzle, memories), backward):
        return known
    told = {name: value for name, value in case.items() if name != "half_dim" and value != "rows"}
    kind = wrong.pop("kind") or ("backward_wrong" if backward else "wrong")
    return said(kind, case=", ".join(f"{name}={value}" for name, value in told.items()), **wrong)


def _line_of(kernel, error):
    """The line of the kernel that raised the error, where the interpreter knows it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [
        frame.line for frame in frames if frame.filename == kernel.fn.__code__.co_filename and frame.line
    ]
    return f" ← {lines[-1]}" if lines else ""


def _memories(puzzle, case, tensors):
    """Lay every tensor between guard zones, and the output, full of the mark, behind them."""
    layout = case.get("layout", "rows")
    memories = [
        guarded(name, values, layout, MARK if i < puzzle.in_place else float("nan"))
        for i, (name, values) in enumerate(tensors.items())
    ]
    if puzzle.in_place:
        return memories
    x, *_ = tensors.values()
    y = torch.full_like(puzzle.definition(*tensors.values()), MARK, dtype=x.dtype)
    return [*memories, guarded("y", y, layout, MARK)]


def _run(kernel, puzzle, memories, seed, backward):
    """Launch the kernel; return the accesses that could be watched, and the error it raised or None."""
    options = {"backward": backward} if puzzle.backward else {}
    # The interpreter's NumPy warns of what a GPU computes without a word.
    with watched(memories, seed) as accesses, np.errstate(all="ignore"):
        try:
            puzzle.launch(kernel, *(memory.tensor for memory in memories), **options)
            if memories[0].tensor.is_cuda:
                torch.cuda.synchronize()  # or an error would surface elsewhere
        except Exception as error:
            return accesses, error
    return accesses, None


def _wanted(definition, puzzle, tensors, backward):
    """What the definition gives in float64; or its gradient, where the first tensors hold the gradient of y."""
    wide = [tensor.double() for tensor in tensors.values()]
    if backward:
        turned = max(1, puzzle.in_place)
        leaves = [torch.zeros_like(tensor, requires_grad=True) for tensor in wide[:turned]]
        result = definition(*leaves, *wide[turned:])
        return torch.autograd.grad(result, leaves, wide[:turned])
    result = definition(*wide)
    return result if isinstance(result, tuple) else (result,)


def _changed(puzzle, memories):
    return [memory.tensor for memory in (memories[: puzzle.in_place] or memories[-1:])]


def _wrong(puzzle, got, want):
    """Return None if all is right up to rounding, else where not, what should stand there and what does."""
    names = list(inspect.get_annotations(puzzle.definition))[: puzzle.in_place] or ["y"]
    for name, x, right in zip(names, got, want, strict=True):
        last = torch.finfo(x.dtype).eps * right.abs() if puzzle.rounding else torch.zeros_like(right)
        room = last + puzzle.rounding * torch.finfo(torch.float32).eps * right.abs().max()
        error = (x.double() - right).abs()
        bad = ~(error <= room).cpu().numpy()
        if bad.any():
            at, near = tuple(int(i) for i in np.argwhere(bad)[0]), error.max() < 16 * room.max()
            return {
                "places": places_of(name, bad),
                "first": f"{name}[{', '.join(map(str, at))}]",
                "want": f"{right[at].item():.6g}",
                "got": f"{x[at].item():.6g}",
                "kind": "nan" if x.isnan().any() else "half" if near and x.dtype == torch.float16 else None,
            }
    return None


def _known(puzzle, tensors, got, backward):
    """The words for a mistake that gives what the kernel gave; the last row may differ, for its table ends."""
    for definition, words in puzzle.mistakes:
        want = _wanted(definition, puzzle, tensors, backward)
        rows = slice(None, -1) if len(want[0]) > 1 else slice(None)
        if not _wrong(puzzle, [x[rows] for x in got], [right[rows] for right in want]):
            return ("反向：" + words[0], "backward: " + words[1]) if backward else words
    return None
