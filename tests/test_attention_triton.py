"""Theorems about the attention kernels: they are the NumPy attention, with its gradients, and touch nothing else."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
triton = pytest.importorskip("triton", reason="triton is an extra: pip install -e '.[kernels]'")
torch.set_num_threads(1)  # other tests have the other cores

from companion import attention_torch, attention_triton, rope, rope_torch  # noqa: E402
from companion.attention_triton import (  # noqa: E402
    alibi_attention,
    attention,
    causal_attention,
    rope_attention,
)
from companion.frequencies import inverse_frequencies  # noqa: E402
from companion.kernel_report import kernel_report  # noqa: E402
from companion.relative_bias import alibi_slopes  # noqa: E402
from tests.test_attention_torch import BAD, BAD_BIAS, HEADS, ROWS, alibi, exact, vectors  # noqa: E402

INTERPRETED = not isinstance(attention_triton._forward_kernel, triton.JITFunction)
DEVICE = "cpu" if INTERPRETED else "cuda"
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
EPS32 = torch.finfo(torch.float32).eps
all_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(autouse=True)
def new_memory_holds_nan(monkeypatch):
    """A number that no kernel writes cannot hide behind a zero of the allocator."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, **options: empty(*shape, **options).fill_(torch.nan))


def inputs(
    dtype=torch.float32, batch=1, heads=4, key_heads=2, queries=7, keys=None, width=16, value_width=16
):
    """q, k and v where the kernels run, all different and with gradients."""
    keys = queries if keys is None else keys
    shapes = (heads, queries, width), (key_heads, keys, width), (key_heads, keys, value_width)
    made = (vectors(seed, batch, *shape, dtype=dtype) for seed, shape in enumerate(shapes, 1))
    return [x.to(DEVICE).requires_grad_() for x in made]


def table(keys, rotary_dim, first=0, dtype=torch.float64):
    """cos and sin of the positions from `first` on."""
    made = rope.rotation_table(first + np.arange(keys), inverse_frequencies(rotary_dim))
    return [torch.from_numpy(t).to(DEVICE, dtype) for t in made]


def causal(q, k):
    """Which keys a query may see, in torch."""
    keys = torch.arange(k.shape[-2], device=q.device)
    return attention_torch.causal_mask(keys[keys.numel() - q.shape[-2] :], keys)


# Ways to bring in positions: the call of the kernel, and the same in attention_torch, which is exact in float64.


def plain(q, k, v, mask=None):
    return attention(q, k, v, mask=mask), attention_torch.attention(*double(q, k, v), mask=mask)


def with_bias(q, k, v, mask=None):
    bias = vectors(9, q.shape[-3], q.shape[-2], k.shape[-2]).to(DEVICE)[None]
    return (
        attention(q, k, v, bias=bias.float(), mask=mask, scale=0.3),
        attention_torch.attention(*double(q, k, v), bias=bias.float(), mask=mask, scale=0.3),
    )


def with_causality(q, k, v, mask=None):
    visible = causal(q, k) if mask is None else causal(q, k) & mask
    return causal_attention(q, k, v, mask=mask), attention_torch.attention(*double(q, k, v), mask=visible)


def with_alibi(q, k, v, mask=None):
    slopes = alibi_slopes(q.shape[-3])
    return (
        alibi_attention(q, k, v, slopes, mask=mask),
        attention_torch.alibi_attention(*double(q, k, v), slopes, mask=mask),
    )


def with_rope(q, k, v, mask=None, first=0, **options):
    tables = table(k.shape[-2], options.get("rotary_dim", q.shape[-1]), first)
    visible = causal(q, k) if mask is None else causal(q, k) & mask
    exact_q, exact_k, exact_v = double(q, k, v)
    of_queries = [t[t.shape[0] - q.shape[-2] :] for t in tables]
    turned = (
        rope_torch.apply_rope(x, *t, **options)
        for x, t in ((exact_q, of_queries), (exact_k, [t.double() for t in tables]))
    )
    return (
        rope_attention(q, k, v, *tables, mask=mask, **options),
        attention_torch.attention(*turned, exact_v, mask=visible),
    )


def with_adjacent_rope(q, k, v, mask=None):
    return with_rope(q, k, v, mask, pairing="adjacent")


def with_partial_rope(q, k, v, mask=None):
    return with_rope(q, k, v, mask, rotary_dim=6)


def with_partial_adjacent_rope(q, k, v, mask=None):
    return with_rope(q, k, v, mask, rotary_dim=6, pairing="adjacent")


def double(*tensors):
    return [x.double() for x in tensors]


WAYS = [
    plain,
    with_bias,
    with_causality,
    with_alibi,
    with_rope,
    with_adjacent_rope,
    with_partial_rope,
    with_partial_adjacent_rope,
]
every_way = pytest.mark.parametrize("way", WAYS)


def gradients(out, x):
    """Those of a loss that tells all entries of the output apart."""
    return torch.autograd.grad(out, x, vectors(8, *out.shape).to(out.device, out.dtype))


def assert_equal_with_gradients(way, q, k, v, mask=None):
    """float32: 1e-6 of the largest entry, some 8 roundings. Half precision: see `rounding`."""
    got, want = way(q, k, v, mask)
    assert got.dtype == v.dtype and got.shape == want.shape
    assert_close(got, want, want, q.dtype)
    want = gradients(want, (q, k, v))
    for mine, exactly in zip(gradients(got, (q, k, v)), want, strict=True):
        # Of all three, for the gradient of q is a difference: it is 0 where there is one key only.
        assert_close(mine, exactly, torch.cat([x.flatten() for x in want]), q.dtype)


def assert_close(got, want, entries, dtype):
    if want.numel():
        allowed = rounding(dtype) * entries.abs().max().item()
        error = (got.double() - want.double()).abs().max().item()
        assert error <= allowed, f"{error:.3g} > {allowed:.3g}"


def rounding(dtype):
    """Relative to the largest entry. In half precision turned q and k, weights and their gradients are rounded on
    the way, each by half a unit, and a score, the sum of 16 products, by some more; the float64 gradient is itself
    rounded once to the dtype of x."""
    return 1e-6 if dtype == torch.float32 else 8 * torch.finfo(dtype).eps


# They are the attention of the NumPy module


@every_way
@pytest.mark.parametrize(
    ("dtype", "length"),
    [*((torch.float32, length) for length in (1, 7, 63, 100)), (torch.float16, 100), (torch.bfloat16, 63)],
    ids=str,
)
def test_it_equals_numpy_and_so_do_its_gradients(way, dtype, length):
    assert_equal_with_gradients(way, *inputs(dtype, queries=length))


@every_way
def test_it_equals_numpy_itself(way):
    q, k, v = (x.detach() for x in inputs(queries=7))
    got, want = way(q, k, v)
    options = {
        with_bias: {"bias": vectors(9, 4, 7, 7)[None], "scale": 0.3},
        with_alibi: {"bias": alibi(np.arange(7), np.arange(7), 4)},
    }.get(way, {} if way is plain else {"mask": causal(q, k).cpu()})
    q, k = q.cpu().double(), k.cpu().double()
    if "rope" in way.__name__:
        turning = {
            "pairing": "adjacent" if "adjacent" in way.__name__ else "half",
            "rotary_dim": 6 if "partial" in way.__name__ else 16,
        }
        tables = [t.cpu().numpy() for t in table(7, turning["rotary_dim"])]
        q, k = (torch.from_numpy(rope.apply_rope(x.numpy(), *tables, **turning)) for x in (q, k))
    by_numpy = exact(q, k, v.cpu(), **options)
    for x in (got, want):
        torch.testing.assert_close(
            x.cpu().double(), by_numpy, rtol=0, atol=1e-6 * by_numpy.abs().max().item()
        )


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    queries=st.integers(0, 30),
    past=st.integers(0, 70),
    heads=st.sampled_from([(1, 1), (2, 1), (6, 2), (3, 3)]),
    width=st.integers(1, 12).map(lambda pairs: 2 * pairs),
    value_width=st.integers(1, 20),
    way=st.sampled_from([plain, with_alibi, with_rope, with_adjacent_rope]),
)
def test_it_equals_numpy_for_all_sizes(seed, queries, past, heads, width, value_width, way):
    torch.manual_seed(seed)
    shapes = (
        (heads[0], queries, width),
        (heads[1], past + queries, width),
        (heads[1], past + queries, value_width),
    )
    q, k, v = (torch.randn(2, *shape).to(DEVICE).requires_grad_() for shape in shapes)
    assert_equal_with_gradients(way, q, k, v)


def test_odd_widths_will_do():
    for width in (1, 5, 33):
        assert_equal_with_gradients(with_alibi, *inputs(width=width, value_width=width, queries=9))


@every_way
@pytest.mark.parametrize("axes", [2, 3, 5])
def test_any_number_of_axes_will_do(way, axes):
    if way in (with_alibi, with_bias) and axes == 2:
        pytest.skip("slopes belong to heads")
    q, k, v = inputs(batch=6, heads=2, key_heads=2)
    if axes == 5:
        q, k, v = (x.unflatten(0, (2, 3)) for x in (q, k, v))
        way = with_bias_of_five_axes if way is with_bias else way
    else:
        q, k, v = (x[(0,) * (4 - axes)] for x in (q, k, v))
        way = with_bias_of_three_axes if way is with_bias else way
    assert_equal_with_gradients(way, q, k, v)


def with_bias_of_five_axes(q, k, v, mask=None):
    bias = vectors(9, 2, 1, 1, q.shape[-2], k.shape[-2]).to(DEVICE)
    return (
        attention(q, k, v, bias=bias.float()),
        attention_torch.attention(*double(q, k, v), bias=bias.float()),
    )


def with_bias_of_three_axes(q, k, v, mask=None):
    bias = vectors(9, 1, q.shape[-2], k.shape[-2]).to(DEVICE)
    return (
        attention(q, k, v, bias=bias.float()),
        attention_torch.attention(*double(q, k, v), bias=bias.float()),
    )


LAYOUTS = {
    "tokens first": lambda x: x.transpose(-3, -2).contiguous().transpose(-3, -2),
    "width first": lambda x: x.mT.contiguous().mT,
    "every second number": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "every second row": lambda x: x.repeat_interleave(2, -2)[..., ::2, :],
    "a slice of more": lambda x: torch.cat((x, x, x), -1)[..., x.shape[-1] : 2 * x.shape[-1]],
    "one head for all": lambda x: x[:, :1].expand(x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("way", [with_bias, with_adjacent_rope])
def test_strides_do_not_matter(way, layout):
    q, k, v = (layout(x.detach()) for x in inputs(queries=40, batch=2))
    assert not q.is_contiguous()
    assert_equal_with_gradients(way, *(x.requires_grad_() for x in (q, k, v)))


def test_a_gradient_without_memory_of_its_own_will_do():
    q, k, v = inputs(queries=9)
    got = torch.autograd.grad(causal_attention(q, k, v).sum(), (q, k, v))
    exactly = attention_torch.attention(*double(q, k, v), mask=causal(q, k))
    for mine, want in zip(got, torch.autograd.grad(exactly.sum(), (q, k, v)), strict=True):
        torch.testing.assert_close(mine, want, rtol=0, atol=1e-6 * want.abs().max().item() + 1e-6)


# Biases and masks


@pytest.mark.parametrize("shape", [(7, 9), (1, 1, 7, 9), (2, 4, 7, 9), (2, 1, 1, 9), (1, 4, 1, 9)])
def test_a_bias_has_a_gradient_also_where_it_is_shared(shape):
    q, k, v = inputs(batch=2, queries=7, keys=9)
    bias = vectors(5, *shape).float().to(DEVICE).requires_grad_()
    mask = vectors(6, 7, 9).to(DEVICE) > -1
    got = gradients(attention(q, k, v, bias=bias, mask=mask), bias)[0]
    want = gradients(attention_torch.attention(*double(q, k, v), bias=bias, mask=mask), bias)[0]
    torch.testing.assert_close(got, want, rtol=0, atol=1e-6 * want.abs().max().item())


@every_way
@all_dtypes
def test_a_query_that_may_see_nothing_gets_zeros_and_no_gradient(way, dtype):
    q, k, v = inputs(dtype)
    mask = torch.ones(7, 7, dtype=torch.bool, device=DEVICE)
    mask[2] = False
    out, _ = way(q, k, v, mask)
    assert not out[:, :, 2].any() and out[:, :, 1].any()
    dq, dk, dv = gradients(out, (q, k, v))
    assert not dq[:, :, 2].any() and dq[:, :, 3].any()
    assert dk.isfinite().all() and dv.isfinite().all()
    assert_equal_with_gradients(way, q, k, v, mask)


def test_without_keys_there_are_zeros_and_without_queries_nothing():
    q, k, v = inputs(queries=3, keys=0)
    out = attention(q, k, v)
    assert out.shape == (1, 4, 3, 16) and not out.any()
    assert not torch.autograd.grad(out.sum(), q)[0].any()
    q, k, v = inputs(queries=0, keys=3)
    out = causal_attention(q, k, v)
    assert out.shape == (1, 4, 0, 16)
    assert not torch.autograd.grad(out.sum(), v)[0].any()


@every_way
def test_large_scores_do_not_overflow(way):
    q, k, v = inputs(queries=40)
    out, want = way(1000 * q, k, v)
    assert out.isfinite().all()
    # A score of some 4000 is known to 4000 · 2⁻²³, and so is its weight.
    torch.testing.assert_close(out.double(), want, rtol=0, atol=4000 * 8 * EPS32 * v.abs().max().item())


# Caches and padding


@pytest.mark.parametrize("way", [with_causality, with_alibi, with_rope, with_adjacent_rope])
def test_one_step_at_a_time_equals_all_at_once(way):
    q, k, v = (x.detach() for x in inputs(queries=70))
    whole, _ = way(q, k, v)
    for start, stop in ((0, 5), (5, 6), (6, 69), (69, 70)):
        out, _ = way(q[:, :, start:stop], k[:, :, :stop], v[:, :, :stop])
        torch.testing.assert_close(out, whole[:, :, start:stop], rtol=0, atol=1e-6 * v.abs().max().item())


@pytest.mark.parametrize("way", [with_causality, with_alibi, with_rope, with_adjacent_rope])
def test_left_padded_equals_unpadded(way):
    q, k, v = (x.detach() for x in inputs(queries=40))
    alone, _ = way(q, k, v)
    padded = [torch.cat((1e3 * torch.ones_like(x[:, :, :30]), x), 2) for x in (q, k, v)]
    other = [vectors(7 + i, *x.shape, dtype=x.dtype).to(DEVICE) for i, x in enumerate(padded)]
    visible = torch.ones(2, 1, 1, 70, dtype=torch.bool, device=DEVICE)
    visible[0, ..., :30] = False
    both = [torch.cat(pair) for pair in zip(padded, other, strict=True)]
    if "rope" in way.__name__:
        tables = [torch.stack(t)[:, None] for t in zip(table(70, 16, first=-30), table(70, 16), strict=True)]
        pairing = "adjacent" if way is with_adjacent_rope else "half"
        out = rope_attention(*both, *tables, pairing=pairing, mask=visible)
    else:
        out, _ = way(*both, visible)
    atol = 1e-6 * v.abs().max().item()
    torch.testing.assert_close(out[:1, :, 30:], alone, rtol=0, atol=atol)
    torch.testing.assert_close(out[1:], way(*other)[0], rtol=0, atol=atol)


@pytest.mark.parametrize("way", [with_causality, with_rope])
def test_gradients_of_queries_behind_a_long_cache(way):
    assert_equal_with_gradients(way, *inputs(queries=70, keys=150, heads=2, key_heads=1))


@pytest.mark.parametrize("pairing", ["half", "adjacent"])
def test_each_row_of_a_batch_may_have_positions_of_its_own(pairing):
    x = inputs(batch=2, queries=9)
    near, far = table(9, 16), [t[::3] for t in table(27, 16)]
    both = [torch.stack(pair)[:, None] for pair in zip(near, far, strict=True)]
    out = rope_attention(*x, *both, pairing=pairing)
    got = gradients(out, x)
    for row, alone in enumerate((near, far)):
        mine = [t[row : row + 1].detach().requires_grad_() for t in x]
        want = rope_attention(*mine, *alone, pairing=pairing)
        assert torch.equal(out[row], want[0])
        for one, two in zip(
            got, torch.autograd.grad(want, mine, vectors(8, *out.shape)[row : row + 1].to(want)), strict=True
        ):
            assert torch.equal(one[row], two[0])


@all_dtypes
def test_alibi_is_exact_at_far_positions(dtype):
    """A last query that sees 1 500 keys: bfloat16, with 8 bits, holds no such position."""
    q, k, v = (x.detach() for x in inputs(dtype, heads=2, key_heads=1, queries=1, keys=1500))
    want = exact(*(x.cpu() for x in (q, k, v)), bias=alibi([1499], np.arange(1500), 2))
    got = alibi_attention(q, k, v, alibi_slopes(2)).cpu().double()
    torch.testing.assert_close(got, want, rtol=0, atol=rounding(dtype) * want.abs().max().item())


# What they leave alone


def guarded(x, fill):
    """x as a part of memory that is `fill` before it, behind it, and between its rows."""
    memory = x.new_full((*x.shape[:-1], x.shape[-1] + 3), fill)
    room = torch.cat((memory.new_full((500,), fill), memory.flatten(), memory.new_full((500,), fill)))
    return room[500:-500].view(memory.shape)[..., : x.shape[-1]].copy_(x)


@every_way
@pytest.mark.parametrize("length", [1, 7, 63, 100])
def test_nothing_is_read_or_written_beyond_the_ends(way, length, monkeypatch):
    """NaN around what is read would show in the result; around what is written all stays as it was."""
    q, k, v = inputs(queries=length, width=10, value_width=11)
    q, k, v = (guarded(x.detach(), torch.nan).requires_grad_() for x in (q, k, v))
    rooms, empty = [], torch.empty

    def guarded_memory(shape, **options):
        rooms.append(empty(int(np.prod(shape)) + 1000, **options).fill_(-12288))
        return rooms[-1][500:-500].view(shape)

    monkeypatch.setattr(torch, "empty", guarded_memory)
    assert_equal_with_gradients(way, q, k, v)
    assert len(rooms) == 6  # out, log_total, rest, dq, dk, dv
    for room in rooms:
        assert (room[:500] == -12288).all() and (room[-500:] == -12288).all()
        assert not (room[500:-500] == -12288).any()


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("which", range(3))
def test_addresses_beyond_two_to_the_31_are_reached(axis, which):
    """Of 4 GiB of virtual memory a few pages are used. In int32, 3 strides of 2²⁹·³ would be a negative number."""
    x = [t.detach() for t in inputs(torch.float16, batch=4, heads=4, key_heads=4, queries=4)]
    stride = [1024, 256, 32, 1]
    stride[axis] = 2**31 // 3 + 4
    memory = torch.Tensor.new(x[which], 3 * stride[axis] + 9000)
    want = causal_attention(*x)
    x[which] = memory.as_strided(x[which].shape, stride).copy_(x[which])
    assert torch.equal(causal_attention(*x), want)


@every_way
def test_programs_may_run_in_any_order(way, monkeypatch):
    """Each writes rows of its own: what one leaves behind no other needs or overwrites."""
    q, k, v = inputs(queries=100)
    forward, _ = way(q, k, v)
    want = [forward, *gradients(forward, (q, k, v))]
    launch = attention_triton._launch

    def twice(*arguments, **constants):
        launch(*arguments, **constants)
        launch(*arguments, **constants)

    monkeypatch.setattr(attention_triton, "_launch", twice)
    again, _ = way(q, k, v)
    for one, two in zip(want, [again, *gradients(again, (q, k, v))], strict=True):
        assert torch.equal(one, two)


# What the kernels compile to


def launches(way, chip, dtype, width, monkeypatch):
    """The kernels with their arguments for this chip, as `_launch` would run them: forward, and both gradients."""
    found = []
    monkeypatch.setattr(attention_triton, "_chip", lambda x: chip)
    monkeypatch.setattr(
        attention_triton,
        "_launch",
        lambda kernel, x, block, *arguments, **constants: found.append((kernel, arguments, constants)),
    )
    q, k, v = inputs(dtype, heads=8, queries=64, width=width, value_width=width)
    out = way(q, k, v)
    out.backward(torch.zeros_like(out))
    return found


def compiled_alibi(q, k, v):
    return alibi_attention(q, k, v, alibi_slopes(q.shape[-3]))


def compiled_rope_and_mask(q, k, v):
    return rope_attention(q, k, v, *table(64, q.shape[-1]), mask=causal(q, k))


def compiled_adjacent_rope(q, k, v):
    return rope_attention(q, k, v, *table(64, q.shape[-1]), pairing="adjacent")


def compiled_bias(q, k, v):
    return attention(q, k, v, bias=torch.zeros(64, 64, device=DEVICE, requires_grad=True))


COMPILED = [
    *((compiled_rope_and_mask, chip, dtype, 64) for chip, dtype in product([75, 80, 90], DTYPES)),
    *(
        pytest.param(*case, marks=pytest.mark.slow if case[1] == 75 else pytest.mark.exhaustive)
        for case in product(
            [compiled_rope_and_mask, compiled_alibi, compiled_adjacent_rope, compiled_bias],
            [75, 80, 89, 90, 100, 120],
            DTYPES,
            [64, 128],
        )
        if case[0] is not compiled_rope_and_mask or case[1] in (89, 100, 120) or case[3] == 128
    ),
]


@pytest.mark.parametrize(("way", "chip", "dtype", "width"), COMPILED)
def test_every_kernel_compiles_fits_and_does_not_spill(way, chip, dtype, width, monkeypatch):
    """The tiles are those that the chip gets: Turing has few registers, Ada little shared memory.

    Rows of 128 numbers cost two registers on Hopper, with a mask: the next smaller tile has no tensor core for it.
    """
    spills = 8 if (chip, width) == (90, 128) else 0
    for kernel, arguments, constants in launches(way, chip, dtype, width, monkeypatch):
        (report,) = kernel_report(kernel, *arguments, **constants, targets=(chip,))
        assert report.fits and report.spills <= spills, f"{kernel.fn.__name__} {constants}: {report}"
        assert bool(report.tensor_cores) == (chip >= 80 and dtype != torch.float32), report


# Bad input


@pytest.mark.parametrize(("q", "k", "v", "options", "error", "says"), BAD)
@pytest.mark.parametrize("name", ["plain", "causal", "alibi", "rope"])
def test_they_refuse_what_attention_in_torch_refuses(name, q, k, v, options, error, says):
    q, k, v = (x.to(DEVICE) if isinstance(x, torch.Tensor) else x for x in (q, k, v))
    options = {n: x.to(DEVICE) if isinstance(x, torch.Tensor) else x for n, x in options.items()}
    call = {
        "plain": attention,
        "causal": causal_attention,
        "alibi": lambda *x, **options: alibi_attention(
            *x, np.ones(q.shape[1] if q.ndim > 2 else 1), **options
        ),
        "rope": lambda *x, **options: rope_attention(*x, *table(3, 6), **options),
    }[name]
    with pytest.raises(error) as caught:
        call(q, k, v, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize(("q", "k", "v", "options", "error", "says"), BAD_BIAS)
def test_they_refuse_a_bias_that_attention_in_torch_refuses(q, k, v, options, error, says):
    with pytest.raises(error, match=re.escape(says)):
        attention(q.to(DEVICE), k.to(DEVICE), v.to(DEVICE), **options)


def bad(says, function, *arguments, error=ValueError, **options):
    return pytest.param(error, says, function, arguments, options, id=says)


FLOATS = HEADS.float(), HEADS.float(), HEADS.float()
COS = torch.ones(3, 3)
META = torch.ones(2, 4, 3, 6, device="meta")


@pytest.mark.parametrize(
    ("error", "says", "function", "arguments", "options"),
    [
        bad("q must be float32, float16 or bfloat16, got float64 of", attention, *[HEADS.double()] * 3, error=TypeError),
        bad("q must be on a GPU, got meta", attention, META, META, META),
        bad("k must be on cpu, as q, got meta", attention, FLOATS[0], META, META),
        bad("mask must be on cpu, as q, got meta", attention, *FLOATS, mask=META[0, 0, :, :3] > 0),
        bad("bias must be on cpu, as q, got meta", attention, *FLOATS, bias=META[0, 0, :, :3]),
        bad("slopes must be one number for each head of q (2, 4, 3, 6), got shape (1,)", alibi_attention, *FLOATS, [0.5]),
        bad("slopes must be one number for each head of q (3, 6), got", alibi_attention, *[ROWS] * 3, [0.5]),
        bad("slopes must not require grad", alibi_attention, *FLOATS, torch.ones(4, requires_grad=True)),
        bad("k must have a key for each query, got 3 keys, 5 queries", causal_attention, torch.ones(2, 4, 5, 6), *FLOATS[1:]),
        bad("cos must have one row for each of the 3 positions", rope_attention, *FLOATS, COS[:2], COS[:2]),
        bad("cos must have one column for each of the 3 pairs", rope_attention, *FLOATS, COS[:, :2], COS[:, :2]),
        bad("sin must be a floating-point tensor, got", rope_attention, *FLOATS, COS, COS.long(), error=TypeError),
        bad("sin must not be half precision", rope_attention, *FLOATS, COS, COS.half(), error=TypeError),
        bad("cos must not require grad", rope_attention, *FLOATS, COS.clone().requires_grad_(), COS),
        bad("cos must be shared by the heads", rope_attention, *FLOATS, COS.expand(1, 4, 3, 3), COS),
        bad("pairing must be 'half' or 'adjacent', got 'both'", rope_attention, *FLOATS, COS, COS, pairing="both"),
        bad("rotary_dim must be", rope_attention, *FLOATS, COS, COS, rotary_dim=8),
    ],
)  # fmt: skip
@pytest.mark.skipif(not INTERPRETED, reason="these tensors are on the CPU")
def test_bad_calls_are_refused_with_name_rule_value_and_way_out(error, says, function, arguments, options):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert str(caught.value).startswith(says)
    assert re.search(r"must (not )?\w.+, got .+; .+", str(caught.value), re.S), "rule, value given, way out"
