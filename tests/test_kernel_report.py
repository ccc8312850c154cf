# ruff: noqa: N803 - the constants of a kernel are in capitals, as everywhere in the field
"""The report tells what kernels compile to on chips that are not here; the kernels of the package pass on all."""

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
triton = pytest.importorskip("triton", reason="triton is an extra: pip install -e '.[kernels]'")
import triton.language as tl  # noqa: E402
from triton.language import sum as add_all  # noqa: E402

from companion import rope_triton  # noqa: E402
from companion.kernel_report import CHIPS, Compiled, KernelReport, kernel_report  # noqa: E402

SHIFT = tl.constexpr(1.5)
WIDTH = 3


def meta(*shape, dtype=torch.float32):
    """A tensor without memory."""
    return torch.empty(shape, dtype=dtype, device="meta")


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def shifted_sum(x):
    return add_all(x, 0) + SHIFT


other_name = shifted_sum


@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=[])
@triton.jit
def sum_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr, other_name(x) + tl.max(x, 0))


@triton.jit
def dot_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + i * SIZE + j)
    tl.store(y_ptr + i * SIZE + j, tl.dot(x, x))


@triton.jit
def list_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), sum([k for k in [1, 2, 3]]))


@triton.jit
def global_kernel(x_ptr):
    tl.store(x_ptr, WIDTH)


X = meta(1024)
HALF = meta(1024, dtype=torch.float16)


# What the report says


def test_every_chip_has_a_row_with_the_figures_of_its_own():
    report = kernel_report(copy_kernel, X, X, 1024, BLOCK=1024)
    assert [row.target for row in report] == [75, 80, 89, 90, 100]
    for row in report:
        assert row.compiles and row.fits and 8 <= row.registers <= 32 and row.error == ""
        assert (row.spills, row.shared, row.tensor_cores) == (0, 0, "")
        assert row.shared_limit == CHIPS[row.target][1]


def test_kernels_that_call_others_and_have_constants_and_were_decorated_twice_compile():
    """A sum over all threads goes through shared memory; in an interpreting process it could not compile."""
    (row,) = kernel_report(sum_kernel, X, X, BLOCK=256, targets=90)
    assert row.compiles and row.shared > 0, row.error


def test_a_kernel_defined_inside_a_function_compiles():
    scale = tl.constexpr(2.0)

    @triton.jit
    def inner_kernel(x_ptr):
        tl.store(x_ptr, shifted_sum(tl.load(x_ptr + tl.arange(0, 16))) * scale)

    (row,) = kernel_report(inner_kernel, X, targets=90)
    assert row.compiles, row.error


def test_tensor_cores_are_named_where_they_are_used():
    report = kernel_report(dot_kernel, HALF, HALF, SIZE=64, targets=(75, 80, 90, 100))
    assert [row.tensor_cores for row in report] == ["", "mma.sync", "wgmma", "tcgen05.mma"]


def test_spills_are_counted():
    (few,) = kernel_report(copy_kernel, X, X, 1 << 20, BLOCK=4096, num_warps=1, maxnreg=32, targets=80)
    (many,) = kernel_report(copy_kernel, X, X, 1 << 20, BLOCK=4096, num_warps=8, targets=80)
    assert few.spills > 0 and few.registers <= 32 and many.spills == 0


def test_the_alignment_of_the_arguments_counts():
    aligned, shifted = torch.zeros(2048), torch.zeros(2049)[1:]
    rows = [kernel_report(copy_kernel, x, x, 2048, BLOCK=2048, targets=80)[0] for x in (aligned, shifted)]
    assert rows[0].registers != rows[1].registers, "one load of 16 bytes or four of 4"


def test_what_does_not_compile_says_why_in_its_row():
    for kernel, arguments, why in ((list_kernel, {"BLOCK": 64}, "sum"), (global_kernel, {}, "WIDTH")):
        report = kernel_report(kernel, X, targets=90, **arguments)
        assert not report[0].compiles and not report[0].fits and why in report[0].error
        assert repr(report).endswith(report[0].error.strip().splitlines()[-1])


def test_a_compiler_that_crashes_costs_one_row(monkeypatch):
    """Its process ends without a word, as LLVM's does on some kernels; the other targets are tried in a new one."""
    honest = subprocess.run

    def crash_at_80(command, **options):
        if "-P" not in command:
            return honest(command, **options)
        program = (
            "import os, sys; from companion import kernel_report as k; compiled = k._compile;"
            "k._compile = lambda *a: os._exit(134) if a[2] == 80 else compiled(*a); k._compile_all(sys.argv[1])"
        )
        return honest([sys.executable, "-c", program, command[-1]], **options)

    monkeypatch.setattr(subprocess, "run", crash_at_80)
    report = kernel_report(copy_kernel, X, X, 1024, BLOCK=1024, targets=(75, 80, 90))
    assert [(row.target, row.compiles) for row in report] == [(75, True), (80, False), (90, True)]
    assert "the compiler ended with code 134" in repr(report)


def test_the_table_has_a_line_for_each_chip_with_its_columns_in_line():
    report = KernelReport(
        [
            Compiled(75, True, 64, 3480, 65537, 65536),
            Compiled(80, False, error="at 3:4\nno such thing"),
            Compiled(90, True, 168, 0, 57344, 232448, "wgmma"),
        ]
    )
    assert [row.fits for row in report] == [False, False, True]
    assert repr(report).splitlines() == [
        "chip         compiles  registers  spills  shared memory             tensor cores",
        "sm_75  T4    yes       64         3480 B  65537 of 65536, too much  no",
        "sm_80  A100  no        no such thing",
        "sm_90  H100  yes       168        0 B     57344 of 232448           wgmma",
    ]


def test_a_process_that_compiles_and_one_that_interprets_get_the_same_report():
    program = (
        "from tests.test_kernel_report import *\n"
        "print(not isinstance(copy_kernel, triton.JITFunction), kernel_report(sum_kernel, X, X, BLOCK=64))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TRITON_INTERPRET": mode},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split(maxsplit=1)
        for mode in "01"
    ]
    assert [mode for mode, _ in printed] == ["False", "True"]
    assert printed[0][1] == printed[1][1]


# Bad input


@pytest.mark.parametrize(
    ("error", "says", "kernel", "arguments", "options"),
    [
        (TypeError, "kernel must be a function under @triton.jit, got <function", meta, [], {}),
        (TypeError, "kernel must be a function under @triton.jit, got 3", 3, [], {}),
        (ValueError, "targets must be among 75, 80, 86, 89, 90, 100, 120, got 70", copy_kernel, [], {"targets": [70]}),
        (ValueError, "targets must be among 75, 80, 86, 89, 90, 100, 120, got 'T4'", copy_kernel, [], {"targets": ["T4"]}),
        (TypeError, "copy_kernel, x_ptr, y_ptr, n, BLOCK, and num_warps, num_stages, num_ctas, maxnreg if wanted, got 1 by place and none by name: missing a required argument: 'y_ptr'", copy_kernel, [X], {}),
        (TypeError, "got 3 by place and BLOCK, COLOUR by name: got an unexpected keyword argument 'COLOUR'", copy_kernel, [X, X, 1], {"BLOCK": 1, "COLOUR": 2}),
        (TypeError, "x_ptr must be a tensor or a Python number, got array([1.]) of type ndarray; use torch.from_numpy", global_kernel, [np.ones(1)], {}),
    ],
)  # fmt: skip
def test_bad_input_is_refused(error, says, kernel, arguments, options):
    with pytest.raises(error) as caught:
        kernel_report(kernel, *arguments, **options)
    assert says in str(caught.value)


def test_a_kernel_without_a_source_is_refused():
    scope = {"tl": tl}
    exec("def typed_kernel(x_ptr):\n    tl.store(x_ptr, 0)", scope)

    class Kernel:
        fn = scope["typed_kernel"]

    kernel = Kernel()
    kernel.fn = scope["typed_kernel"]
    with pytest.raises(ValueError, match=r"typed_kernel must be readable, got .*; write it into a file"):
        kernel_report(kernel, X)


# The kernels of the package

ORDINARY, OTHERS = (75, 80, 90), (89, 100)
all_targets = pytest.mark.parametrize(
    "targets", [ORDINARY, pytest.param(OTHERS, marks=pytest.mark.exhaustive)], ids=str
)
KERNELS = {"one": (rope_triton._turn_kernel, (32,)), "both": (rope_triton._turn_qk_kernel, (32, 8))}


def rope_report(kernel, pairing, x, targets):
    """As `apply_rope`, with the same x in and out, and `apply_rope_qk_` launch it."""
    table = meta(*x.shape[:2], x.shape[2], x.shape[3] // 2).to(torch.promote_types(x.dtype, torch.float32))
    kernel, heads = KERNELS[kernel]
    arguments, constants, _ = rope_triton._arguments(heads, pairing, x, x, table, table)
    return kernel_report(kernel, *arguments, **constants, targets=targets)


def assert_runs_well(report):
    for row in report:
        assert row.compiles, row.error
        assert row.fits and row.spills == 0, report


@all_targets
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pairing", ["half", "adjacent"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_rotary_kernels_compile_for_every_chip_and_spill_on_none(kernel, pairing, dtype, targets):
    assert_runs_well(rope_report(kernel, pairing, meta(2, 32, 2048, 128, dtype=dtype), targets))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pairing", ["half", "adjacent"])
@pytest.mark.parametrize(
    "x",
    [
        meta(2, 32, 2048, 128).double(),
        meta(2, 32, 2048, 80),
        meta(2, 32, 1, 64).half(),
        meta(2, 32, 2047, 256).bfloat16().transpose(1, 2),
        meta(2, 32, 100, 64).mT,
        meta(1, 1, 2**20, 2),
    ],
    ids=lambda x: f"{tuple(x.shape)} {x.dtype}",
)
def test_rotary_kernels_of_other_shapes_spill_on_no_chip_either(kernel, pairing, x):
    assert_runs_well(rope_report(kernel, pairing, x, ORDINARY + OTHERS))


def test_neighbours_loaded_together_and_parted_in_registers_need_no_shared_memory():
    report = rope_report("one", "adjacent", meta(1, 8, 64, 128, dtype=torch.float16), (75, 90))
    assert [row.shared for row in report] == [0, 0], report
