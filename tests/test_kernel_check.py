"""The checker of kernels: it sees what a kernel touches, leaves Triton as it was, and knows a stub."""

import re
from contextlib import nullcontext

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
pytest.importorskip("triton", reason="triton is an extra: pip install -e '.[kernels]'")
from triton.runtime.interpreter import interpreter_builder  # noqa: E402

from book import CHAPTERS  # noqa: E402
from book.compose import compose  # noqa: E402
from companion.exercises import checker, kernel_check, kernel_memory, kernel_puzzles, lesson_10  # noqa: E402
from companion.exercises.kernel_check import Puzzle, check_kernel, record  # noqa: E402
from companion.figures.kernels import _EXAMPLES  # noqa: E402
from companion.kernel_report import kernel_report  # noqa: E402
from tests.lesson_kernels import kernel, right, wrong  # noqa: E402

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="these tests are of the interpreter")
KERNELS = [f"10.{number}" for number in range(2, 13)]


def unwatched(memories, seed):
    """What the checker has on a GPU: guard zones and marks, but no record of accesses."""
    return nullcontext([])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([("i < size", "i < size + 3")], r"wrote 3 elements past the end of y"),
        ([("y + i,", "y + i - 2,")], r"wrote 2 elements before the start of y"),
        ([("mask = i < size", "mask = (i < size) & (i != 5)")], r"y\[5\] was never written"),
        ([("x + i,", "x + i - 1,")], r"is nan: .* a load outside a tensor"),
    ],
)
def test_guard_zones_find_stray_accesses_also_where_none_can_be_watched(monkeypatch, changes, says):
    monkeypatch.setattr(kernel_check, "watched", unwatched)
    assert check_kernel(right("10.3"), kernel_puzzles.PUZZLES["10.3"]) is None
    assert re.search(says, check_kernel(wrong("10.3", *changes), kernel_puzzles.PUZZLES["10.3"])[1])


def test_rows_with_gaps_are_guarded_between_too(monkeypatch):
    monkeypatch.setattr(kernel_check, "watched", unwatched)
    loose = wrong("10.4", ("(n < columns)", "(n < columns + 2 * (m < rows - 1))"))
    puzzle = kernel_puzzles.PUZZLES["10.4"]._replace(cases=({"rows": 33, "columns": 7, "layout": "gaps"},))
    assert "wrote 64 elements between the rows of y" in check_kernel(loose, puzzle)[1]


CARRY = kernel(
    """
@triton.jit
def carry(x, y, size, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    before = tl.load(y + start - 1, mask=start > 0, other=0.0)
    tl.store(y + i, before + tl.load(x + i, mask=i < size, other=0.0), mask=i < size)
"""
)


def carried(x: kernel_check.Axes("size")) -> kernel_check.Axes("size"):
    y = x.clone()
    for start in range(32, len(x), 32):
        y[start : start + 32] += y[start - 1]
    return y


def test_a_kernel_that_relies_on_the_order_of_its_programs_is_found_by_shuffling_them(monkeypatch):
    puzzle = Puzzle(carried, kernel_puzzles.launch_blocks, ({"size": 100},), rounding=8)
    assert re.search(
        r"of the programs \d and \d one writes y\[\d+\] and the other reads it",
        check_kernel(CARRY, puzzle)[1],
    )
    monkeypatch.setattr(kernel_check, "clash", lambda memories, accesses: None)
    assert check_kernel(CARRY, puzzle)[1].startswith("in another order of the programs the result is wrong")


ROLL = kernel(
    """
@triton.jit
def roll(x, y, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.where(i == 0, size, i) - 1
    tl.store(y + i, tl.load(x + j, mask=i < size, other=0.0), mask=i < size)
"""
)


def rolled(x: kernel_check.Axes("size")) -> kernel_check.Axes("size"):
    return x.roll(1)


def test_a_kernel_that_is_not_its_own_transpose_is_wrong_only_where_the_gradient_is_compared():
    puzzle = Puzzle(rolled, kernel_puzzles.launch_blocks, ({"size": 100},))
    # Programs read the last cell of the block before: in another tensor than they write, so that is no race.
    assert check_kernel(ROLL, puzzle) is None
    said = check_kernel(ROLL, puzzle._replace(transpose=True))
    assert said[1].startswith("forward is right; backward, with size=100, y[:] is wrong")


@pytest.mark.parametrize("number", KERNELS[:8])
def test_up_to_the_softmax_each_exercise_compares_gradients(number):
    puzzle = kernel_puzzles.PUZZLES[number]
    assert puzzle.backward != puzzle.transpose


def test_the_rows_of_x_and_y_have_other_gaps():
    x, y = (kernel_memory.guarded(name, torch.zeros(4, 3), "gaps", 0.0) for name in "xy")
    assert x.tensor.stride(0) != y.tensor.stride(0)


@pytest.mark.parametrize("number", KERNELS)
def test_after_a_check_triton_is_as_it_was(number):
    for answer in (right(number), wrong(number, ("tl.store(", "tl.store(2**50 + "))):
        check_kernel(answer, kernel_puzzles.PUZZLES[number])
        assert (
            not {"set_grid_idx", "create_masked_load", "create_masked_store"}
            & vars(interpreter_builder).keys()
        )


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_kernels_of_the_reader_are_stubs(lang, capsys):
    notebook, _ = compose(CHAPTERS / "10_kernels.md", lang)
    cells = [cell.source for cell in notebook.cells if "exercise" in cell.metadata.get("tags", ())]
    stubs = [source for source in cells if "@triton.jit" in source]
    assert len(stubs) == len(KERNELS)
    for source in stubs:
        code, _, call = source.partition("\ncheck(")
        checker(lang)(call.split('"')[1], kernel(code))
        assert capsys.readouterr().out.startswith("○ ")


def test_a_function_without_the_decorator_is_told_so(capsys):
    for answer in (lambda x, y, block: 1, lambda: 1):
        checker("en")("10.2", answer)
        assert "put @triton.jit above the function" in capsys.readouterr().out


@pytest.mark.parametrize("layout", ["rows", "gaps", "transposed"])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4)])
def test_a_guarded_tensor_is_the_tensor_with_a_zone_before_and_after(layout, shape):
    values = torch.arange(float(np.prod(shape))).view(shape)
    memory = kernel_memory.guarded("x", values, layout, np.nan)
    assert torch.equal(memory.tensor, values)
    at = memory.tensor.storage_offset()
    assert at == kernel_memory.ZONE and memory.zone[:at].isnan().all() and memory.zone[-at:].isnan().all()
    inside = np.flatnonzero(memory.index >= 0)
    assert torch.equal(memory.zone[inside], values.flatten()[memory.index[inside]])
    if len(shape) > 1:
        assert memory.tensor.is_contiguous() == (layout == "rows")


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (np.arange(8) > 5, "y[6:8]"),
        (np.arange(8) == 5, "y[5]"),
        (np.ones((2, 3), bool), "y[:, :]"),
        (np.outer(np.arange(8) > 5, np.arange(6) % 2 == 0), "y[6:8, 0:5:2]"),
        (np.eye(3, dtype=bool), "y[0, 0], …"),
    ],
)
def test_places_are_written_as_python_would(bad, text):
    assert kernel_memory.places_of("y", bad) == text


def test_an_unknown_puzzle_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"number must be one of 10\.2, .*, got '10\.1'; "):
        lesson_10.show("10.1")


@pytest.mark.parametrize("number", KERNELS)
def test_a_puzzle_is_shown_as_definition_and_launch(number, capsys):
    lesson_10.show(number)
    shown = capsys.readouterr().out
    assert shown.count("def ") == 2 and "kernel[" in shown and "fmt" not in shown
    assert max(map(len, shown.splitlines())) <= 72


class Launch:
    """Stands for a kernel, and keeps what it is launched with."""

    def __getitem__(self, grid):
        return self.keep

    def keep(self, *arguments, **constants):
        self.arguments, self.constants = arguments, constants


@pytest.mark.slow
@pytest.mark.parametrize("number", KERNELS)
def test_every_kernel_of_the_lesson_compiles_for_real_chips_and_does_not_spill(number):
    puzzle, launch = kernel_puzzles.PUZZLES[number], Launch()
    tensors = list(kernel_check.draw(puzzle, puzzle.cases[-1], 0, "cpu").values())
    outputs = (
        [] if puzzle.in_place else [torch.empty_like(puzzle.definition(*tensors), dtype=tensors[0].dtype)]
    )
    puzzle.launch(launch, *tensors, *outputs)
    report = kernel_report(right(number), *launch.arguments, **launch.constants, targets=(75, 80, 90))
    assert all(row.fits and row.spills == 0 for row in report), report


# The pictures of the lesson, drawn by its kernels: the same launches with the sizes of the figure.
def small_blocks(run, x, y):
    run[(-(-len(x) // 4),)](x, y, len(x), BLOCK=4)


def small_tiles(run, x, y):
    run[(3, 2)](x, y, *x.shape, *x.stride(), *y.stride(), ROWS=2, COLUMNS=4)


def small_rope(run, x, cos, sin, y):
    run[(2,)](x, cos, sin, y, 6, x.stride(0), y.stride(0), HALF=4, BLOCK=4)


def small_rope_in_place(run, x, cos, sin, backward=False):
    run[(2,)](x, cos, sin, 6, x.stride(0), BACKWARD=backward, HALF=4, BLOCK=4)


def small_rows(run, scores, values, y):
    run[(3,)](scores, values, y, 5, 10, scores.stride(0), ROWS=2, KEYS=4)


def small_alibi(run, q, k, v, slopes, y):
    run[(3, 1)](q, k, v, slopes, y, 5, *q.stride()[:2], SCALE=0.5, DIM=4, ROWS=2, KEYS=2)


def small_rope_attention(run, q, k, v, cos, sin, y):
    run[(3, 1)](q, k, v, cos, sin, y, 5, *q.stride()[:2], SCALE=0.5, HALF=2, ROWS=2, KEYS=2)


ROPE = {"seq_len": 6, "head_dim": 8, "half_dim": 4}
ONE_HEAD = {"heads": 1, "seq_len": 5, "head_dim": 4, "half_dim": 2}
HEADS = {"seq_len": 3, "q_heads": 3, "k_heads": 1, "head_dim": 4, "half_dim": 2}
PICTURES = {
    "copy": ("10.3", small_blocks, {"size": 16}),
    "ragged": ("10.3", small_blocks, {"size": 10}),
    "tiles": ("10.4", small_tiles, {"rows": 5, "columns": 7}),
    "half": ("10.5", small_rope, ROPE),
    "adjacent": ("10.6", small_rope, ROPE),
    "in_place": ("10.8", small_rope_in_place, ROPE),
    "fused": ("10.9", kernel_puzzles.launch_fused, HEADS),
    "softmax": ("10.10", small_rows, {"rows": 5, "keys": 10}),
    "alibi": ("10.11", small_alibi, ONE_HEAD),
    "rope": ("10.12", small_rope_attention, ONE_HEAD),
}


@pytest.mark.parametrize("example", PICTURES)
def test_the_picture_of_a_kernel_is_what_it_touches(example):
    number, launch, case = PICTURES[example]
    memories, accesses = record(right(number), kernel_puzzles.PUZZLES[number]._replace(launch=launch), case)
    tensors, programs = _EXAMPLES[example]()
    size = {tensor["name"]: (tensor["rows"], tensor["columns"]) for tensor in tensors}
    drawn, seen = set(), set()
    for program in programs:
        for kind, name, cells in program["accesses"]:
            rows, columns = size[name]
            drawn |= {
                (program["name"], kind, name, r * columns + c) for r, c in cells if r < rows and c < columns
            }
    index = {memory.name: memory.index for memory in memories}
    for access in accesses:
        name = access.program[:2] if example == "tiles" else access.program[0]
        name = f"({name[0]}, {name[1]})" if example == "tiles" else name
        seen |= {(name, access.kind, access.name, int(i)) for i in index[access.name][access.places]}
    assert drawn == seen


def test_every_picture_is_compared_with_a_kernel():
    assert PICTURES.keys() == _EXAMPLES.keys()
