"""Theorems about the rotary embedding in torch: it is the NumPy one, to the last digit its dtype can hold."""

import copy
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
torch.set_num_threads(1)  # other tests have the other cores

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

from companion import rope  # noqa: E402
from companion.frequencies import inverse_frequencies  # noqa: E402
from companion.frequency_scaling import llama3  # noqa: E402
from companion.rope_torch import RotaryEmbedding, apply_rope, apply_rope_  # noqa: E402
from companion.tables_torch import PositionTable, table_rows  # noqa: E402

EPS32 = torch.finfo(torch.float32).eps
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
both_pairings = pytest.mark.parametrize("pairing", ["half", "adjacent"])
all_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def vectors(seed, *shape, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def tables(positions, dim, base=10000.0):
    """(cos, sin) as float64 tensors, exactly what the NumPy function is given."""
    return tuple(map(torch.from_numpy, rope.rotation_table(positions, inverse_frequencies(dim, base))))


def exact(x, table, **options):
    """The rotation by NumPy in float64."""
    return torch.from_numpy(rope.apply_rope(x.double().numpy(), *(t.numpy() for t in table), **options))


def assert_rounded_once(got, want, x):
    """Half a unit in the last place for the result, and what float32 loses on the way."""
    arithmetic = torch.finfo(torch.float64).eps if x.dtype == torch.float64 else EPS32
    allowed = torch.finfo(x.dtype).eps / 2 * want.abs() + 4 * arithmetic * x.double().abs().max()
    assert got.dtype == x.dtype and got.shape == x.shape
    error = (got.double() - want).abs()
    assert (error <= allowed).all(), f"{(error / allowed).max():.3g} times the tolerance"


def every_way(x, table, **options):
    """The results of all calls that turn x, each into memory that held NaN before."""
    poisoned = torch.full_like(x, torch.nan)
    yield "out of place", apply_rope(x, *table, **options)
    yield "out", apply_rope(x, *table, out=poisoned, **options)
    yield "in place", apply_rope_(x.clone(), *table, **options)
    with_itself = x.clone()
    yield "out is x", apply_rope(with_itself, *table, out=with_itself, **options)


# It is the rotation of the NumPy module


@both_pairings
@all_dtypes
@pytest.mark.parametrize("seq_len", [1, 7, 63])
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(2, None), (64, None), (10, 6), (7, 4)])
@pytest.mark.parametrize("form", ["pair", "complex", "one for each row of the batch"])
def test_it_equals_numpy_and_so_does_its_gradient(pairing, dtype, seq_len, head_dim, rotary_dim, form):
    x, gradient = vectors(seq_len, 2, 2, 3, seq_len, head_dim, dtype=dtype)
    places = np.arange(seq_len) + 1000
    if form == "one for each row of the batch":
        places = np.stack([places, places - 2000])[:, None]
    numbers = tables(places, rotary_dim or head_dim)
    table = [torch.complex(*numbers)] if form == "complex" else numbers
    options = {"pairing": pairing, "rotary_dim": rotary_dim}
    want = exact(x, numbers, **options)
    for _, got in every_way(x, table, **options):
        assert_rounded_once(got, want, x)
    x.requires_grad_()
    turned = apply_rope(x, *table, **options)
    assert_rounded_once(turned.detach(), want, x.detach())
    turned.backward(gradient)
    back = exact(gradient, (numbers[0], -numbers[1]), **options)
    assert_rounded_once(x.grad, back, gradient)


@given(
    seed=st.integers(0, 2**32 - 1),
    head_dim=st.integers(1, 40).map(lambda half_dim: 2 * half_dim),
    seq_len=st.integers(0, 9),
    first=st.integers(-(10**5), 10**5),
    base=st.floats(2.0, 1e7),
    dtype=st.sampled_from(DTYPES),
    pairing=st.sampled_from(["half", "adjacent"]),
)
def test_it_equals_numpy_for_all_sizes_bases_and_dtypes(seed, head_dim, seq_len, first, base, dtype, pairing):
    x = vectors(seed, 2, seq_len, head_dim, dtype=dtype)
    table = tables(first + np.arange(seq_len), head_dim, base)
    for _, got in every_way(x, table, pairing=pairing):
        if x.numel():
            assert_rounded_once(got, exact(x, table, pairing=pairing), x)


@both_pairings
@all_dtypes
@pytest.mark.parametrize("batch_table", [False, True])
def test_tensors_too_large_for_the_cache_are_turned_piece_by_piece(pairing, dtype, batch_table):
    x = vectors(0, 2, 3, 4099, 64, dtype=dtype)
    assert x.numel() > 2**20, "or there is one piece only"
    places = np.arange(4099)
    table = tables(np.stack([places, places[::-1]])[:, None] if batch_table else places, 64)
    want = exact(x, table, pairing=pairing)
    for _, got in every_way(x, table, pairing=pairing):
        assert_rounded_once(got, want, x)


STRIDES = {
    "heads behind tokens": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "odd address": lambda x: torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape),
    "odd rows": lambda x: torch.cat((x, x[..., :1]), -1)[..., :-1],
    "every other number": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "one head for all": lambda x: x[:, :1].expand(x.shape),
}


@both_pairings
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("strides", STRIDES)
def test_strides_do_not_matter(pairing, dtype, strides):
    plain = vectors(0, 2, 3, 7, 8, dtype=dtype)
    x = STRIDES[strides](plain)
    table = tables(np.arange(7), 8)
    want = exact(x, table, pairing=pairing)
    assert_rounded_once(apply_rope(x, *table, pairing=pairing), want, plain)
    if strides != "one head for all":
        out = STRIDES[strides](torch.full_like(plain, torch.nan))
        assert_rounded_once(apply_rope(x, *table, out=out, pairing=pairing), want, plain)
        assert_rounded_once(apply_rope_(x, *table, pairing=pairing), want, plain)


def test_a_single_row_may_lie_at_any_stride():
    """Torch calls it contiguous, and yet it is no row of complex numbers."""
    x = torch.zeros(9)[:8].as_strided((1, 8), (9, 1)).copy_(vectors(0, 1, 8))
    assert x.is_contiguous() and x.stride() == (9, 1)
    table = tables([5], 8)
    assert_rounded_once(apply_rope(x, *table, pairing="adjacent"), exact(x, table, pairing="adjacent"), x)


@both_pairings
def test_x_is_left_alone_but_for_the_call_with_an_underscore(pairing):
    x, table = vectors(0, 5, 8, dtype=torch.float32), tables(np.arange(5), 8)
    before = x.clone()
    turned = apply_rope(x, *table, pairing=pairing)
    assert torch.equal(x, before)
    out = torch.empty_like(x)
    assert apply_rope(x, *table, pairing=pairing, out=out) is out
    assert apply_rope_(x, *table, pairing=pairing) is x
    assert not torch.equal(x, before)
    torch.testing.assert_close(x, turned, rtol=EPS32, atol=4 * EPS32)


def test_goldens_of_both_pairings(goldens):
    """B05: the two pairings mixed up give another vector, which short prompts hardly show."""
    for case in goldens["apply_rotary"]:
        x = torch.tensor(case["x"], dtype=torch.float64)
        table = tables(case["positions"], x.shape[-1], case["base"])
        for pairing, key in (
            ("half", "half_split_llama_hf_neox"),
            ("adjacent", "interleaved_gptj_meta_roformer"),
        ):
            want = torch.tensor(case[key], dtype=torch.float64)
            torch.testing.assert_close(apply_rope(x, *table, pairing=pairing), want, rtol=0.5e-11, atol=0)


def test_pairings_agree_up_to_permutation():
    x, table = vectors(0, 3, 7, 10), tables(np.arange(7), 10)
    perm = torch.from_numpy(rope.pairing_permutation(10))
    turned = apply_rope(x, *table, pairing="adjacent")[..., perm]
    torch.testing.assert_close(apply_rope(x[..., perm], *table), turned, rtol=0, atol=1e-15)


def test_b19_positions_count_by_their_value_and_heads_are_no_positions():
    x, embed = vectors(0, 2, 3, 3, 8), RotaryEmbedding(inverse_frequencies(8), 16)
    turned = apply_rope(x, *embed(torch.tensor([5, 9, 2])))
    for row, position in enumerate([5, 9, 2]):
        one = apply_rope(x[:, :, row : row + 1], *embed(torch.tensor([position])))
        assert torch.equal(turned[:, :, row : row + 1], one)
    assert torch.equal(apply_rope(x.flip(1), *embed(torch.tensor([5, 9, 2]))), turned.flip(1))


def test_b14_nothing_is_remembered_between_calls():
    x, embed = vectors(0, 4, 8), RotaryEmbedding(inverse_frequencies(8), 16)
    other_base = RotaryEmbedding(inverse_frequencies(8, 5e5), 16)
    first = apply_rope(x, *embed(torch.arange(4)))
    later = apply_rope(x, *embed(torch.arange(3, 7)))
    assert not torch.equal(first, later)
    assert not torch.equal(first, apply_rope(x, *other_base(torch.arange(4))))
    assert torch.equal(first, apply_rope(x, *embed(torch.arange(4))))


# Gradients


@both_pairings
@pytest.mark.parametrize("complex_table", [False, True])
def test_first_and_second_derivatives_pass_gradcheck(pairing, complex_table):
    x = vectors(0, 2, 3, 6).requires_grad_()
    table = tables([1, 5, -2], 4)
    table = [torch.complex(*table)] if complex_table else table

    def turn(x):
        return apply_rope(x, *table, pairing=pairing, rotary_dim=4)

    assert torch.autograd.gradcheck(turn, x)
    assert torch.autograd.gradgradcheck(turn, x)


@both_pairings
def test_the_gradient_of_a_sum_which_has_no_memory_of_its_own_is_turned_back(pairing):
    x, table = vectors(0, 2, 5, 8).requires_grad_(), tables(np.arange(5), 8)
    apply_rope(x, *table, pairing=pairing).sum().backward()
    ones = torch.ones_like(x.detach())
    assert_rounded_once(x.grad, exact(ones, (table[0], -table[1]), pairing=pairing), ones)


def test_without_gradients_nothing_is_kept():
    x, table = vectors(0, 5, 8).requires_grad_(), tables(np.arange(5), 8)
    with torch.no_grad():
        assert apply_rope(x, *table).grad_fn is None
        assert apply_rope(x, *table, out=torch.empty_like(x)).grad_fn is None
    turned = apply_rope(x, *table)
    assert all(t.shape == (5, 4) for t in turned.grad_fn.saved_tensors), "the table only, not x"


# Precision


@both_pairings
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_changes_nothing(pairing, dtype):
    x, table = vectors(0, 2, 7, 8, dtype=dtype), [t.float() for t in tables(np.arange(7), 8)]
    plain = apply_rope(x, *table, pairing=pairing)
    learned = x.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _, got in every_way(x, table, pairing=pairing):
            torch.testing.assert_close(got, plain, rtol=torch.finfo(dtype).eps, atol=4 * EPS32)
        turned = apply_rope(learned, *table, pairing=pairing)
        assert turned.dtype == dtype and torch.equal(turned, plain)
    turned.backward(x)
    assert learned.grad.dtype == dtype


def extended(positions, head_dim, base=10000):
    """cos and sin by another route: NumPy's extended precision, from the formula."""
    pairs = np.arange(head_dim // 2, dtype=np.longdouble)
    angles = np.array(positions)[:, None] * np.longdouble(base) ** (-2 * pairs / head_dim)
    return np.cos(angles).astype(np.float64), np.sin(angles).astype(np.float64)


FAR = [1, 257, 4095, 8191, 32767, 65537, 131071]  # odd: half precision holds the even neighbours only


def test_the_table_is_right_to_1e_7_up_to_position_131071():
    embed = RotaryEmbedding(inverse_frequencies(128), 2**17)
    for got, want in zip(embed(torch.tensor(FAR)), extended(FAR, 128), strict=True):
        assert got.dtype == torch.float32
        assert np.abs(got.double().numpy() - want).max() <= 1e-7


@both_pairings
@pytest.mark.parametrize("cast", [torch.nn.Module.bfloat16, torch.nn.Module.half])
def test_b03_b04_half_precision_q_and_k_are_right_at_far_odd_positions(pairing, cast):
    """Speeds or positions in half precision turn by other angles: at 4095 the cosine of pair 1 changes sign."""
    embed = cast(RotaryEmbedding(inverse_frequencies(128), 2**17))
    want = tuple(map(torch.from_numpy, extended(FAR, 128)))
    assert abs(want[0][2, 1] + 0.742366) < 1e-6
    for dtype in (torch.bfloat16, torch.float16):
        for x in vectors(0, 2, 1, 4, len(FAR), 128, dtype=dtype):
            for _, got in every_way(x, embed(torch.tensor(FAR)), pairing=pairing):
                assert_rounded_once(got, exact(x, want, pairing=pairing), x)


# The module


def unspoilt():
    return RotaryEmbedding(llama3(inverse_frequencies(8), 8.0, 8192), 16, attention_factor=1.25)


def built_under_default_half():
    torch.set_default_dtype(torch.bfloat16)
    try:
        return unspoilt()
    finally:
        torch.set_default_dtype(torch.float32)


def built_on_meta():
    with torch.device("meta"):
        module = torch.nn.Sequential(unspoilt())
    assert module[0].table.is_meta
    return module.to_empty(device="cpu")[0]


def overwritten(module):
    """As `to_empty` may leave it: other numbers in the memory of the buffer."""
    with torch.no_grad():
        module.table.fill_(torch.nan)
    return module.to_empty(device="cpu")


WAYS = {
    "half": lambda: unspoilt().half(),
    "bfloat16": lambda: unspoilt().bfloat16(),
    "double": lambda: unspoilt().double(),
    "to dtype": lambda: unspoilt().to(torch.float16),
    "to device and dtype": lambda: unspoilt().to("cpu", torch.bfloat16),
    "inside a model": lambda: torch.nn.ModuleDict({"rope": unspoilt()}).half()["rope"],
    "default dtype": built_under_default_half,
    "meta": built_on_meta,
    "to_empty": lambda: overwritten(unspoilt()),
    "deepcopy": lambda: copy.deepcopy(unspoilt().half()),
}


@pytest.mark.parametrize("way", WAYS)
def test_b18_no_cast_and_no_move_spoils_the_table(way):
    table = WAYS[way]().table
    assert table.dtype == torch.float32 and table.device.type == "cpu"
    assert torch.equal(table, unspoilt().table)


def test_b18_the_scaled_speeds_are_in_the_table():
    slow = inverse_frequencies(128, 500000.0)
    cos, sin = RotaryEmbedding(llama3(slow, 8.0, 8192), 16)(torch.tensor([10]))
    np.testing.assert_allclose(sin[0, 63], np.sin(10 * 3.068926e-07), rtol=1e-6)
    assert sin[0, 0] == np.float32(np.sin(10.0)) and cos[0, 63] == 1


def test_the_table_is_not_saved_and_a_state_dict_cannot_spoil_it():
    module = unspoilt()
    assert module.state_dict() == {} and list(module.parameters()) == []
    model = torch.nn.ModuleDict({"rope": module, "linear": torch.nn.Linear(2, 2)})
    other = torch.nn.ModuleDict({"rope": unspoilt().half(), "linear": torch.nn.Linear(2, 2)})
    other.load_state_dict(model.half().state_dict(), strict=True, assign=True)
    assert torch.equal(other["rope"].table, unspoilt().table)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        module.load_state_dict({"table": torch.zeros(16, 2, 4)})


def test_a_table_left_on_the_meta_device_says_so():
    with torch.device("meta"):
        module = unspoilt()
    with pytest.raises(ValueError, match=r"must be on a real device, got meta; call to_empty"):
        module(torch.arange(3))
    assert module(torch.arange(3, device="meta"))[0].is_meta


def test_left_padded_rows_turn_as_if_they_were_not_padded():
    x, embed = vectors(0, 2, 3, 5, 8), unspoilt()
    places = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])[:, None]
    turned = apply_rope(x, *embed(places))
    assert torch.equal(turned[0, :, 2:], apply_rope(x[0, :, 2:], *embed(torch.arange(3))))
    assert torch.equal(turned[1], apply_rope(x[1], *embed(torch.arange(5))))


def test_b15_the_table_ends_where_it_was_said_to_end():
    """Past 14, 3 new tokens, 16 rows: an error, never the last row again; 16 positions fit exactly."""
    embed = unspoilt()
    assert embed(torch.arange(16))[0].shape == (16, 4)
    assert embed(torch.empty(0, dtype=torch.int64))[0].shape == (0, 4)
    with pytest.raises(ValueError, match=r"less than 16, the rows of the table, got 16; make a table with"):
        embed(torch.arange(14, 17))
    with pytest.raises(ValueError, match=r"must be 0 or more and less than 16.*, got -1; make"):
        embed(torch.tensor([-1]))


@pytest.mark.parametrize(
    ("positions", "given"),
    [
        (torch.arange(3).half(), r"float16 of shape \(3,\) on cpu"),
        (torch.arange(3).bfloat16(), r"bfloat16 of shape \(3,\) on cpu"),
        (torch.arange(3.0), r"float32 of shape \(3,\) on cpu"),
        (torch.tensor([True]), r"bool of shape \(1,\) on cpu"),
        ([0, 1], r"\[0, 1\]"),
        (np.arange(2), r"array\(\[0, 1\]\)"),
    ],
)
def test_positions_must_be_integers(positions, given):
    with pytest.raises(TypeError, match=rf"positions must be a tensor of integers, got {given}; use torch"):
        unspoilt()(positions)


def test_any_integer_dtype_will_do():
    embed = unspoilt()
    for dtype in (torch.int32, torch.int16, torch.uint8):
        assert torch.equal(embed(torch.arange(3, dtype=dtype))[0], embed(torch.arange(3))[0])


# Compilation


class Layer(torch.nn.Module):
    """What a model does with positions: look up, turn, in one graph."""

    def __init__(self, pairing):
        super().__init__()
        self.embed, self.pairing = RotaryEmbedding(inverse_frequencies(8), 64), pairing

    def forward(self, x, positions):
        cos, sin = self.embed(positions)
        options = {"pairing": self.pairing, "rotary_dim": 8}
        out = torch.empty_like(x.detach())
        return (
            apply_rope(x, cos, sin, **options),
            apply_rope_(x.detach().clone(), cos, sin, **options),
            apply_rope(x.detach(), cos, sin, out=out, **options),
        )


def assert_equals_eager(compiled, layer, seq_len, gradient):
    x = vectors(seq_len, 2, 3, seq_len, 10, dtype=torch.float32).requires_grad_(gradient)
    results = [f(x, torch.arange(seq_len)) for f in (compiled, layer)]
    if gradient:
        results = [torch.autograd.grad(turned, x, x) for turned, *_ in results]
    torch.testing.assert_close(*results, rtol=EPS32, atol=4 * EPS32 * x.abs().max().item())


@both_pairings
@pytest.mark.parametrize("gradient", [False, True])
def test_one_graph_serves_all_lengths(pairing, gradient):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    layer = Layer(pairing)
    compiled = torch.compile(layer, backend=counter, fullgraph=True, dynamic=True)
    for seq_len in range(8, 65):
        assert_equals_eager(compiled, layer, seq_len, gradient)
    assert counter.frame_count == 1


@both_pairings
def test_a_second_length_is_the_only_reason_to_compile_again(pairing):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    layer = Layer(pairing)
    compiled = torch.compile(layer, backend=counter, fullgraph=True)
    for seq_len in range(8, 65):
        assert_equals_eager(compiled, layer, seq_len, False)
    assert counter.frame_count == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")  # torch's own
@both_pairings
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_machine_code_turns_as_numpy_does(pairing, dtype):
    torch._dynamo.reset()
    embed = RotaryEmbedding(inverse_frequencies(8), 16)

    @torch.compile(fullgraph=True)
    def turn(x, positions):
        return apply_rope(x, *embed(positions), pairing=pairing)

    x, places = vectors(0, 2, 3, 7, 8, dtype=dtype), torch.arange(7)
    assert_rounded_once(turn(x, places), exact(x, tables(np.arange(7), 8), pairing=pairing), x)
    with pytest.raises(RuntimeError, match="positions must be 0 or more and less than 16"):
        turn(x, places - 1)


# Bad input

X = torch.ones(2, 3, 5, 8)  # batch heads seq_len head_dim
COS, SIN = (t.float() for t in tables(np.arange(5), 8))


def wrong(says, *, x=X, cos=COS, sin=SIN, error=ValueError, **options):
    return pytest.param(x, cos, sin, options, error, says, id=says)


BAD = [
    wrong("x must be a floating-point tensor, got int64", x=X.long(), error=TypeError),
    wrong("x must be a floating-point tensor, got bool", x=X > 0, error=TypeError),
    wrong("x must be a floating-point tensor, got complex64", x=X + 0j, error=TypeError),
    wrong("x must be a floating-point tensor, got array(", x=X.numpy(), error=TypeError),
    wrong("x must be a floating-point tensor, got None", x=None, error=TypeError),
    wrong("x must have the axes (*batch, seq_len, head_dim), got shape (8,)", x=X[0, 0, 0]),
    wrong("head_dim (last axis of x) must be even and at least 2, got 7", x=X[..., :7]),
    wrong("head_dim (last axis of x) must be even and at least 2, got 0", x=X[..., :0]),
    wrong("cos must have one row for each of the 4 positions of x, got 5 rows", x=X[:, :, :4]),
    wrong("cos must have one row for each of the 5 positions of x, got 1 rows", cos=COS[:1]),
    wrong("sin must have one row for each of the 5 positions of x, got 1 rows", sin=SIN[:1]),
    wrong("cos must have one column for each of the 4 pairs, got 3 columns", cos=COS[:, :3]),
    wrong("sin must have one column for each of the 4 pairs, got 1 columns", sin=SIN[:, :1]),
    wrong("cos must have one column for each of the 4 pairs, got 8 columns", cos=torch.cat((COS, COS), -1)),
    wrong("got (3, 5, 4); for left padding give positions as (batch, 1, seq_len)", cos=COS.expand(3, 5, 4)),
    wrong("sin must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", sin=SIN.expand(3, 1, 5, 4)),
    wrong("cos must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", cos=COS[0]),
    wrong("cos must have the shape (5, 4), or as many axes", cos=torch.complex(COS, SIN)[None], sin=None),
    wrong("cos must be a floating-point tensor, got int64", cos=COS.long(), error=TypeError),
    wrong("cos must be a floating-point tensor, got array(", cos=COS.numpy(), error=TypeError),
    wrong("cos must be a floating-point tensor, got complex64", cos=COS + 0j, error=TypeError),
    wrong("sin must be a floating-point tensor, got None", sin=None, error=TypeError),
    wrong("cos must not be half precision, got torch.bfloat16", cos=COS.bfloat16(), error=TypeError),
    wrong("sin must not be half precision, got torch.float16", sin=SIN.half(), error=TypeError),
    wrong("cos must not require grad, got one that does", cos=COS.clone().requires_grad_()),
    wrong("rotary_dim must be even and at least 2, got 3", rotary_dim=3),
    wrong("rotary_dim must be an integer, got 0.5", rotary_dim=0.5, error=TypeError),
    wrong("rotary_dim must be at most head_dim = 8, got 10", rotary_dim=10),
    wrong("cos must have one column for each of the 2 pairs, got 4 columns", rotary_dim=4),
    wrong("pairing must be 'half' or 'adjacent', got 'interleaved'", pairing="interleaved"),
    wrong("pairing must be 'half' or 'adjacent', got None", pairing=None),
]


@pytest.mark.parametrize("function", [apply_rope, apply_rope_])
@pytest.mark.parametrize(("x", "cos", "sin", "options", "error", "says"), BAD)
def test_bad_input_is_refused_with_name_rule_value_and_way_out(function, x, cos, sin, options, error, says):
    with pytest.raises(error) as caught:
        function(x, cos, sin, **options)
    assert says in str(caught.value)
    assert re.search(r"must (not )?\w.+, got .+; .+", str(caught.value), re.S), "rule, value given, way out"


LEARNED = X.clone().requires_grad_()
BAD_OUT = [
    (X, X[..., :6], "out must have the shape, dtype and device of x, got float32 of shape (2, 3, 5, 6)"),
    (X, X.double(), "out must have the shape, dtype and device of x, got float64"),
    (
        X,
        X.to("meta"),
        "out must have the shape, dtype and device of x, got float32 of shape (2, 3, 5, 8) on meta",
    ),
    (X, X.view(X.shape), "out must be x or share no memory with it, got another view of that memory"),
    (LEARNED, X.clone(), "x must not require grad where memory is overwritten, got one that does"),
    (X, LEARNED, "out must not require grad where memory is overwritten, got one that does"),
    (LEARNED, LEARNED, "x must not require grad where memory is overwritten, got one that does"),
]


@pytest.mark.parametrize(("x", "out", "says"), BAD_OUT)
def test_a_bad_out_is_refused(x, out, says):
    with pytest.raises(ValueError, match=re.escape(says) + ".*; .+"):
        apply_rope(x, COS, SIN, out=out)


def test_rows_of_one_buffer_that_overlap_are_refused_though_far_apart():
    buffer = torch.ones(6, 8)
    with pytest.raises(ValueError, match="out must be x or share no memory with it"):
        apply_rope(buffer[:5], COS, SIN, out=buffer[1:])


def test_in_place_on_a_tensor_that_requires_grad_is_refused_unless_gradients_are_off():
    with pytest.raises(ValueError, match=r"x must not require grad where .*; call apply_rope without out"):
        apply_rope_(LEARNED, COS, SIN)
    x = X.clone().requires_grad_()
    with torch.no_grad():
        assert apply_rope_(x, COS, SIN) is x


def test_a_tensor_whose_rows_share_memory_cannot_be_overwritten():
    x = torch.ones(1, 5, 8).expand(3, 5, 8)
    for pairing in ("half", "adjacent"):
        with pytest.raises(RuntimeError, match="single memory location"):
            apply_rope_(x, COS, SIN, pairing=pairing)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([1.0], 0), ValueError, "max_positions must be at least 1, got 0"),
        (([1.0], 1.5), TypeError, "max_positions must be an integer, got 1.5"),
        (([1.0], True), TypeError, "max_positions must be an integer, got True"),
        (([-1.0], 4), ValueError, "inv_freq must not be negative, got -1.0"),
        ((np.ones(2, np.float16), 4), TypeError, "inv_freq must not be half precision, got float16"),
        ((torch.ones(2).bfloat16(), 4), TypeError, "inv_freq must not be half precision, got torch.bfloat16"),
    ],
)
def test_a_bad_table_cannot_be_made(arguments, error, says):
    with pytest.raises(error, match=re.escape(says) + ".*; .+"):
        RotaryEmbedding(*arguments)


def test_tables_of_any_kind_give_rows_and_keep_their_dtype():
    squares = PositionTable(np.arange(5) ** 2).half()
    assert squares(torch.tensor([[4, 0]])).tolist() == [[16, 0]] and squares.table.dtype == torch.int64
    with pytest.raises(ValueError, match="got 5; make a table with more rows"):
        table_rows(squares.table, torch.tensor([5]))
