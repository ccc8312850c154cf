"""Theorems about the rotary kernels: they are the NumPy rotation, and touch nothing but what they turn."""

import os
import re
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
triton = pytest.importorskip("triton", reason="triton is an extra: pip install -e '.[kernels]'")
torch.set_num_threads(1)  # other tests have the other cores

from companion import rope, rope_triton  # noqa: E402
from companion.rope_triton import apply_rope, apply_rope_, apply_rope_qk_  # noqa: E402
from tests.test_rope_torch import (  # noqa: E402
    BAD,
    BAD_OUT,
    COS,
    EPS32,
    LEARNED,
    SIN,
    STRIDES,
    X,
    exact,
    tables,
    vectors,
)

INTERPRETED = not isinstance(rope_triton._turn_kernel, triton.JITFunction)
DEVICE = "cpu" if INTERPRETED else "cuda"
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
both_pairings = pytest.mark.parametrize("pairing", ["half", "adjacent"])
all_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def here(*tensors):
    """Where the kernels run."""
    return [t.to(DEVICE) for t in tensors]


def assert_rounded_once(got, want, x):
    """Half a unit in the last place of the result, and 4 · 2⁻²³ = 4.8e-7 of the largest number for float32.

    The interpreter cuts float32 off where a GPU rounds it to bfloat16: there a whole unit is allowed.
    """
    arithmetic = torch.finfo(torch.float64).eps if x.dtype == torch.float64 else EPS32
    units = 1 if x.dtype == torch.bfloat16 and INTERPRETED else 0.5
    want, x = want.cpu().double(), x.detach().cpu()
    allowed = units * torch.finfo(x.dtype).eps * want.abs() + 4 * arithmetic * x.double().abs().max()
    assert got.dtype == x.dtype and got.shape == x.shape
    error = (got.detach().cpu().double() - want).abs()
    assert (error <= allowed).all(), f"{(error / allowed).max():.3g} times the tolerance"


def every_way(x, table, **options):
    """The results of all calls that turn x, each into memory that held NaN before."""
    poisoned = torch.full_like(x, torch.nan)
    yield apply_rope(x, *table, **options)
    yield apply_rope(x, *table, out=poisoned, **options)
    yield apply_rope_(x.clone(), *table, **options)
    with_itself = x.clone()
    yield apply_rope(with_itself, *table, out=with_itself, **options)


@pytest.fixture(autouse=True)
def new_memory_holds_nan(monkeypatch):
    """A number that no kernel writes cannot hide behind a zero of the allocator."""
    empty_like = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda x, **options: empty_like(x, **options).fill_(torch.nan))


# They are the rotation of the NumPy module


@both_pairings
@all_dtypes
@pytest.mark.parametrize("seq_len", [1, 7, 63, 100])
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(2, None), (64, None), (7, 4)])
def test_it_equals_numpy_and_so_does_its_gradient(pairing, dtype, seq_len, head_dim, rotary_dim):
    x, gradient = vectors(seq_len, 2, 2, 3, seq_len, head_dim, dtype=dtype)
    numbers = tables(np.arange(seq_len) + 1000, rotary_dim or head_dim)
    options = {"pairing": pairing, "rotary_dim": rotary_dim}
    want, back = exact(x, numbers, **options), exact(gradient, (numbers[0], -numbers[1]), **options)
    x, gradient, *table = here(x, gradient, *numbers)
    for got in every_way(x, table, **options):
        assert_rounded_once(got, want, x)
    x.requires_grad_()
    turned = apply_rope(x, *table, **options)
    assert_rounded_once(turned, want, x)
    turned.backward(gradient)
    assert_rounded_once(x.grad, back, gradient)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    head_dim=st.integers(1, 100).map(lambda half_dim: 2 * half_dim),
    heads=st.integers(1, 10),
    seq_len=st.integers(0, 40),
    first=st.integers(-(10**5), 10**5),
    dtype=st.sampled_from(DTYPES),
    pairing=st.sampled_from(["half", "adjacent"]),
)
def test_it_equals_numpy_for_all_sizes_and_dtypes(seed, head_dim, heads, seq_len, first, dtype, pairing):
    x = vectors(seed, heads, seq_len, head_dim, dtype=dtype)
    table = tables(first + np.arange(seq_len), head_dim)
    got = apply_rope(*here(x, *table), pairing=pairing)
    if x.numel():
        assert_rounded_once(got, exact(x, table, pairing=pairing), x)


@both_pairings
@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7), (2, 1, 3, 7), (1, 2, 2, 1, 7)], ids=str)
def test_x_and_the_table_may_have_any_number_of_axes(pairing, shape):
    """A table with the axes of x has 1 or the size of x on each of them, in all combinations."""
    x = vectors(0, *shape, 8, dtype=torch.float32)
    for batch in {(), *product(*({1, size} for size in shape[:-1]))}:
        places = np.random.default_rng(len(batch)).integers(0, 1000, (*batch, shape[-1]))
        table = tables(places, 8)
        got = apply_rope(*here(x, *table), pairing=pairing)
        assert_rounded_once(got, exact(x, table, pairing=pairing), x)


@both_pairings
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("strides", STRIDES)
def test_strides_do_not_matter(pairing, dtype, strides):
    plain = vectors(0, 2, 3, 7, 8, dtype=dtype)
    table = tables(np.arange(7), 8)
    want = exact(STRIDES[strides](plain), table, pairing=pairing)
    x, table = STRIDES[strides](*here(plain)), here(*table)
    assert_rounded_once(apply_rope(x, *table, pairing=pairing), want, plain)
    if strides != "one head for all":
        out = STRIDES[strides](torch.full_like(plain, torch.nan, device=DEVICE))
        assert_rounded_once(apply_rope(x, *table, out=out, pairing=pairing), want, plain)
        assert_rounded_once(apply_rope_(x, *table, pairing=pairing), want, plain)


@both_pairings
def test_the_table_may_lie_in_memory_in_any_order(pairing):
    """Complex numbers, rows of a larger table, columns side by side, cos and sin each in their own way."""
    x, (cos, sin) = vectors(0, 2, 3, 7, 8, dtype=torch.float32), tables(np.arange(7), 8)
    want = exact(x, (cos, sin), pairing=pairing)
    x, cos, sin = here(x, cos.float(), sin.float())
    upright = [t.T.contiguous().T for t in (cos, sin)]
    wide = [t.repeat(1, 2)[:, :4] for t in (cos, sin)]
    batch = cos.expand(2, 3, 7, 4).contiguous()
    for table in ([torch.complex(cos, sin)], upright, wide, (cos, upright[1]), (batch, wide[1])):
        assert_rounded_once(apply_rope(x, *table, pairing=pairing), want, x)


@both_pairings
def test_goldens_of_both_pairings(goldens, pairing):
    """B05: the two pairings mixed up give another vector, which short prompts hardly show."""
    key = {"half": "half_split_llama_hf_neox", "adjacent": "interleaved_gptj_meta_roformer"}[pairing]
    for case in goldens["apply_rotary"]:
        x = torch.tensor(case["x"], dtype=torch.float64)
        table = tables(case["positions"], x.shape[-1], case["base"])
        want = torch.tensor(case[key], dtype=torch.float64)
        got = apply_rope(*here(x, *table), pairing=pairing).cpu()
        torch.testing.assert_close(got, want, rtol=0.5e-11, atol=0)


def test_pairings_agree_up_to_permutation():
    x, table = *here(vectors(0, 3, 7, 10)), here(*tables(np.arange(7), 10))
    perm = torch.from_numpy(rope.pairing_permutation(10)).to(DEVICE)
    turned = apply_rope(x, *table, pairing="adjacent")[..., perm]
    torch.testing.assert_close(apply_rope(x[..., perm], *table), turned, rtol=0, atol=1e-15)


# Queries and keys together


@both_pairings
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("q_heads", "k_heads"), [(1, 1), (6, 2), (3, 5), (9, 1), (0, 3)])
def test_queries_and_keys_turn_in_place_in_one_kernel(pairing, dtype, q_heads, k_heads):
    q, k = vectors(0, 2, q_heads, 40, 10, dtype=dtype), vectors(1, 2, k_heads, 40, 10, dtype=dtype)
    for places in (np.arange(40), np.stack([np.arange(40), np.arange(40) - 9])[:, None]):
        table, options = tables(places, 6), {"pairing": pairing, "rotary_dim": 6}
        want = [exact(x, table, **options) for x in (q, k)]
        given = here(q.clone(), k.clone())
        got = apply_rope_qk_(*given, *here(*table), **options)
        assert got[0] is given[0] and got[1] is given[1]
        for turned, right, x in zip(got, want, (q, k), strict=True):
            if x.numel():
                assert_rounded_once(turned, right, x)


@both_pairings
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_queries_and_keys_may_be_slices_of_what_one_projection_gives(pairing, axes):
    """Token by token: 4 heads of queries, 2 of keys, 2 of values, which stay as they are."""
    batch = (2, 1)[: axes - 1]
    packed = vectors(0, *batch, 7, 8, 16, dtype=torch.float32)
    q, k, v = packed.transpose(-3, -2).split([4, 2, 2], -3)
    table = tables(np.arange(7), 16)
    want = [*(exact(x, table, pairing=pairing) for x in (q, k)), v.clone()]
    (here_packed,) = here(packed.clone())
    slices = here_packed.transpose(-3, -2).split([4, 2, 2], -3)
    apply_rope_qk_(*slices[:2], *here(*table), pairing=pairing)
    for turned, right in zip(slices, want, strict=True):
        assert_rounded_once(turned, right, right.float())


# What they leave alone


def guarded(x, fill):
    """x as a part of memory that is `fill` before it, behind it, and between its rows."""
    memory = x.new_full((*x.shape[:-1], x.shape[-1] + 3), fill)
    room = torch.cat((memory.new_full((500,), fill), memory.flatten(), memory.new_full((500,), fill)))
    inside = room[500:-500].view(memory.shape)[..., : x.shape[-1]]
    return room, inside.copy_(x)


@both_pairings
@pytest.mark.parametrize("seq_len", [1, 7, 63, 100])
@pytest.mark.parametrize("head_dim", [2, 10, 64])
def test_nothing_is_read_or_written_beyond_the_ends(pairing, seq_len, head_dim):
    """NaN around what is read would show in the result; around what is written all stays as it was."""
    x, table = vectors(0, 2, seq_len, head_dim, dtype=torch.float32), tables(np.arange(seq_len), head_dim)
    want = exact(x, table, pairing=pairing)
    x, *table = here(x, *(t.float() for t in table))
    table = [guarded(t, torch.nan)[1] for t in table]
    room, out = guarded(torch.full_like(x, torch.nan), -12288.0)
    apply_rope(guarded(x, torch.nan)[1], *table, pairing=pairing, out=out)
    assert_rounded_once(out, want, x)
    assert (room == -12288).sum() == room.numel() - out.numel()
    rooms, inside = zip(guarded(x, torch.nan), guarded(x[:1], torch.nan), strict=True)
    for turned in apply_rope_qk_(*inside, *table, pairing=pairing):
        assert_rounded_once(turned, want[: len(turned)], x[: len(turned)])
    for room, turned in zip(rooms, inside, strict=True):
        assert room.isnan().sum() == room.numel() - turned.numel()


@both_pairings
def test_x_is_left_alone_but_for_the_calls_with_an_underscore(pairing):
    x, *table = here(vectors(0, 5, 8, dtype=torch.float32), *tables(np.arange(5), 8))
    before = x.clone()
    turned = apply_rope(x, *table, pairing=pairing)
    assert torch.equal(x, before)
    out = torch.empty_like(x)
    assert apply_rope(x, *table, pairing=pairing, out=out) is out
    assert apply_rope_(x, *table, pairing=pairing) is x
    assert torch.equal(x, turned)


@both_pairings
@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("fused", [False, True])
def test_addresses_beyond_two_to_the_31_are_reached(pairing, axis, fused):
    """Of 4 GiB of virtual memory a few pages are used. In int32, 3 strides would be a negative number."""
    stride = [80, 20, 4, 1]
    stride[axis] = 2**31 // 3 + 4
    memory = torch.empty(3 * stride[axis] + 400, dtype=torch.float16, device=DEVICE)
    x = vectors(0, 4, 4, 4, 4, dtype=torch.float16)
    far = memory.as_strided(x.shape, stride).copy_(x)
    table = tables(np.arange(4), 4)
    want = exact(x, table, pairing=pairing)
    if fused:
        far = apply_rope_qk_(far, *here(x[:, :1].clone()), *here(*table), pairing=pairing)[0]
    else:
        apply_rope_(far, *here(*table), pairing=pairing)
    assert_rounded_once(far, want, x)


# Gradients


@both_pairings
def test_first_and_second_derivatives_pass_gradcheck(pairing):
    x, *table = here(vectors(0, 2, 2, 6), *tables([1, -2], 4))
    x.requires_grad_()

    def turn(x):
        return apply_rope(x, *table, pairing=pairing, rotary_dim=4)

    assert torch.autograd.gradcheck(turn, x)
    assert torch.autograd.gradgradcheck(turn, x)


@both_pairings
def test_the_gradient_of_a_sum_which_has_no_memory_of_its_own_is_turned_back(pairing):
    x, table = vectors(0, 2, 5, 8), tables(np.arange(5), 8)
    ones = torch.ones_like(x)
    (x,) = here(x)
    apply_rope(x.requires_grad_(), *here(*table), pairing=pairing).sum().backward()
    assert_rounded_once(x.grad, exact(ones, (table[0], -table[1]), pairing=pairing), ones)


def test_without_gradients_nothing_is_kept():
    x, *table = here(vectors(0, 5, 8), *tables(np.arange(5), 8))
    x.requires_grad_()
    with torch.no_grad():
        assert apply_rope(x, *table).grad_fn is None
        assert apply_rope(x, *table, out=torch.empty_like(x)).grad_fn is None
    turned = apply_rope(x, *table)
    assert all(t.shape == (5, 4) for t in turned.grad_fn.saved_tensors), "the table only, not x"


@pytest.mark.parametrize("turn", ["in place", "out", "q", "k"])
def test_autograd_notices_that_a_number_it_needs_was_overwritten(turn):
    x, other, *table = here(vectors(0, 1, 5, 8), vectors(1, 1, 5, 8), *tables(np.arange(5), 8))
    weight = torch.ones_like(x).requires_grad_()
    product_with_x = weight * x
    if turn == "in place":
        apply_rope_(x, *table)
    elif turn == "out":
        apply_rope(other, *table, out=x)
    else:
        apply_rope_qk_(*((x, other) if turn == "q" else (other, x)), *table)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product_with_x.sum().backward()


# Bad input; on a GPU the checks are the same

on_the_cpu = pytest.mark.skipif(
    not INTERPRETED, reason="these tensors are on the CPU; set TRITON_INTERPRET=1"
)


@on_the_cpu
@pytest.mark.parametrize("function", [apply_rope, apply_rope_])
@pytest.mark.parametrize(("x", "cos", "sin", "options", "error", "says"), BAD)
def test_bad_input_is_refused_as_in_torch(function, x, cos, sin, options, error, says):
    with pytest.raises(error) as caught:
        function(x, cos, sin, **options)
    assert says in str(caught.value)
    assert re.search(r"must (not )?\w.+, got .+; .+", str(caught.value), re.S), "rule, value given, way out"


@on_the_cpu
@pytest.mark.parametrize(("x", "out", "says"), BAD_OUT)
def test_a_bad_out_is_refused_as_in_torch(x, out, says):
    with pytest.raises(ValueError, match=re.escape(says) + ".*; .+"):
        apply_rope(x, COS, SIN, out=out)


EXPANDED = torch.ones(1, 3, 5, 8).expand(2, 3, 5, 8)
HEADWISE = COS.expand(2, 3, 5, 4)
BAD_CALLS = [
    (
        TypeError,
        "x must be a floating-point tensor, got float8_e4m3fn",
        apply_rope,
        [X.to(torch.float8_e4m3fn)],
    ),
    (ValueError, "x must be on a GPU, got meta", apply_rope, [X.to("meta")]),
    (ValueError, "x must have a place of its own for each number", apply_rope_, [EXPANDED]),
    (ValueError, "q must have a place of its own for each number", apply_rope_qk_, [EXPANDED, X]),
    (ValueError, "k must have a place of its own for each number", apply_rope_qk_, [X, EXPANDED]),
    (ValueError, "x must not require grad where memory is overwritten", apply_rope_, [LEARNED]),
    (ValueError, "q must not require grad where memory is overwritten", apply_rope_qk_, [LEARNED, X]),
    (ValueError, "k must not require grad where memory is overwritten", apply_rope_qk_, [X, LEARNED]),
    (TypeError, "q must be a floating-point tensor, got None", apply_rope_qk_, [None, X]),
    (TypeError, "k must have the dtype and device of q, float32 of shape", apply_rope_qk_, [X, None]),
    (TypeError, "k must have the dtype and device of q, float32 of shape", apply_rope_qk_, [X, X.half()]),
    (TypeError, "k must have the dtype and device of q, float32 of shape", apply_rope_qk_, [X, X.to("meta")]),
    (
        ValueError,
        "equal but for the heads, got shapes (2, 3, 5, 8) and (1, 3",
        apply_rope_qk_,
        [X, X[:1] + 1],
    ),
    (ValueError, "equal but for the heads, got shapes (2, 3, 5, 8) and (3, 5", apply_rope_qk_, [X, X[0] + 1]),
    (
        ValueError,
        "and k must be (*batch, num_heads, seq_len, head_dim)",
        apply_rope_qk_,
        [X[0, 0], X[0, 0] + 1],
    ),
    (ValueError, "k must not be q, got the same memory", apply_rope_qk_, [X, X[:, :1]]),
]


@on_the_cpu
@pytest.mark.parametrize(("error", "says", "function", "tensors"), BAD_CALLS)
def test_bad_calls_are_refused_with_name_rule_value_and_way_out(error, says, function, tensors):
    with pytest.raises(error, match=re.escape(says) + ".*; .+"):
        function(*tensors, COS, SIN)


@on_the_cpu
@pytest.mark.parametrize(
    ("says", "cos", "sin"),
    [
        ("cos must be on cpu, as x, got meta; use cos.to(x.device)", COS.to("meta"), SIN),
        ("sin must be on cpu, as x, got meta; use sin.to(x.device)", COS, SIN.to("meta")),
        ("cos must be shared by the heads of q and k, (*batch, 1, seq_len", HEADWISE, SIN),
        ("sin must be shared by the heads of q and k, (*batch, 1, seq_len", COS, HEADWISE),
    ],
)
def test_a_table_that_is_elsewhere_or_differs_between_heads_is_refused(says, cos, sin):
    with pytest.raises(ValueError, match=re.escape(says)):
        apply_rope_qk_(X, X + 1, cos, sin)


@pytest.mark.parametrize("when", ["never", "after triton is imported"])
def test_without_a_gpu_and_without_the_interpreter_one_message_says_what_to_do(when):
    late = "" if when == "never" else "import os, triton; os.environ['TRITON_INTERPRET'] = '1'"
    program = f"""{late}
import torch
from companion.rope_triton import apply_rope
try:
    apply_rope(torch.ones(1, 2), torch.ones(1, 1), torch.ones(1, 1))
except ValueError as error:
    print(error)
"""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert re.match(
        r"x must be on a GPU, got cpu; without one, let Triton interpret: restart Python and set "
        r'os.environ\["TRITON_INTERPRET"\] = "1" before anything imports triton, or use the module for torch$',
        done.stdout,
    ), done.stdout + done.stderr
