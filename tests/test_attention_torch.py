"""Theorems about attention in torch: equal to NumPy, and one step at a time equal to all at once."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
torch.set_num_threads(1)  # other tests have the other cores

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from companion import attention as numpy_attention  # noqa: E402
from companion.attention_torch import alibi_attention, attention, causal_mask  # noqa: E402
from companion.embeddings_torch import T5Bias  # noqa: E402
from companion.frequencies import inverse_frequencies  # noqa: E402
from companion.relative_bias import alibi_bias, alibi_slopes, relative_offsets  # noqa: E402
from companion.rope_torch import RotaryEmbedding, apply_rope  # noqa: E402

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
all_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def vectors(seed, *shape, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def inputs(dtype=torch.float64, batch=2, heads=4, key_heads=None, queries=7, keys=7, width=6, value_width=6):
    """q, k and v."""
    key_heads = key_heads or heads
    return (
        vectors(1, batch, heads, queries, width, dtype=dtype),
        vectors(2, batch, key_heads, keys, width, dtype=dtype),
        vectors(3, batch, key_heads, keys, value_width, dtype=dtype),
    )


def exact(q, k, v, **options):
    """Attention by NumPy in float64."""
    options = {
        name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in options.items()
    }
    return torch.from_numpy(numpy_attention.attention(*(x.double().numpy() for x in (q, k, v)), **options))


def tolerance(q, k, v, dtype, extra=0.0):
    """Scores are sums of `width` rounded products; the kernels keep weights in the dtype of v."""
    eps = torch.finfo(dtype).eps
    arithmetic = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    scores = q.shape[-1] ** 0.5 * float(q.double().abs().max() * k.double().abs().max())
    return float(v.double().abs().max()) * (2 * eps + 8 * arithmetic * (1 + scores) + extra)


def assert_close(got, want, atol):
    assert got.shape == want.shape
    error = (got.double() - want).abs().max().item() if want.numel() else 0.0
    assert error <= atol, f"{error:.3g} > {atol:.3g}"


def alibi(query_positions, key_positions, heads):
    """The bias of ALiBi, from NumPy, ready for scores with four axes."""
    bias = alibi_bias(relative_offsets(query_positions, key_positions), alibi_slopes(heads))
    return torch.from_numpy(bias if bias.ndim == 4 else bias[None])


# It is the attention of the NumPy module


@all_dtypes
@pytest.mark.parametrize("length", [1, 7, 63])
@pytest.mark.parametrize("what", ["nothing", "mask", "bias", "both", "scale"])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_it_equals_numpy(dtype, length, what, key_heads):
    q, k, v = inputs(dtype, key_heads=key_heads, queries=length, keys=length + 2, value_width=5)
    options = {
        "nothing": {},
        "mask": {"mask": vectors(4, length, length + 2) > 0},
        "bias": {"bias": vectors(5, 2, 4, length, length + 2)},
        "both": {
            "bias": vectors(5, 1, 4, length, length + 2),
            "mask": vectors(4, 2, 1, length, length + 2) > 0,
        },
        "scale": {"scale": 0.75},
    }[what]
    got = attention(q, k, v, **options)
    assert got.dtype == dtype
    assert_close(got, exact(q, k, v, **options), tolerance(q, k, v, dtype))


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(0, 9),
    keys=st.integers(0, 9),
    group=st.integers(1, 3),
    width=st.integers(1, 9),
    dtype=st.sampled_from(DTYPES),
)
def test_it_equals_numpy_for_all_sizes(seed, queries, keys, group, width, dtype):
    q = vectors(seed, 2, 2 * group, queries, width, dtype=dtype)
    k, v = vectors(seed + 1, 2, 2, 2, keys, width, dtype=dtype)
    mask = vectors(seed + 2, queries, keys) > 0
    want = exact(q, k, v, mask=mask)
    if want.numel() and keys:
        assert_close(attention(q, k, v, mask=mask), want, tolerance(q, k, v, dtype))
    else:
        assert torch.equal(attention(q, k, v, mask=mask).double(), want)


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
def test_any_number_of_axes_will_do(axes):
    q, k, v = (vectors(i, *(2,) * (axes - 2), 5, 4) for i in range(3))
    assert_close(attention(q, k, v), exact(q, k, v), tolerance(q, k, v, torch.float64))


def test_gradients_pass_gradcheck():
    q, k, v = (x.requires_grad_() for x in inputs(batch=1, heads=2, key_heads=1, queries=3, keys=4, width=2))
    bias = vectors(5, 1, 2, 3, 4).requires_grad_()
    mask = causal_mask(torch.arange(1, 4), torch.arange(4))
    assert torch.autograd.gradcheck(lambda q, k, v, b: attention(q, k, v, bias=b, mask=mask), (q, k, v, bias))


@all_dtypes
def test_a_query_that_may_see_nothing_gets_zeros_and_no_gradient(dtype):
    q, k, v = (x.requires_grad_() for x in inputs(dtype))
    mask = torch.ones(7, 7, dtype=torch.bool).tril()
    mask[2] = False
    for options in ({"mask": mask}, {"bias": torch.zeros(7, 7).masked_fill(~mask, -torch.inf)}):
        out = attention(q, k, v, **options)
        assert not out[:, :, 2].any() and out[:, :, 1].any()
        gradients = torch.autograd.grad(out.float().sum(), (q, k, v))
        assert all(g.isfinite().all() for g in gradients) and not gradients[0][:, :, 2].any()


def test_a_bias_keeps_float32_beside_half_precision():
    """In bfloat16 −1001 is −1000, and the bias no longer tells the two keys apart."""
    q, k, v = torch.zeros(1, 4), torch.zeros(2, 4), torch.tensor([[0.0], [1.0]])
    bias = torch.tensor([[-1000.0, -1001.0]])
    for dtype in (torch.bfloat16, torch.float16):
        out = attention(q.to(dtype), k.to(dtype), v.to(dtype), bias=bias)
        torch.testing.assert_close(out.item(), 1 / (1 + np.e), rtol=torch.finfo(dtype).eps, atol=0)


def test_autocast_lowers_q_k_and_v_alike_and_no_bias():
    q, k, v = inputs(torch.float32, keys=1200, queries=1)
    bias = alibi([1199], np.arange(1200), 4).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attention(q, k.bfloat16(), v, bias=bias)
        exact = attention(q.double(), k.double(), v.double(), bias=bias)
    assert out.dtype == torch.bfloat16 and exact.dtype == torch.float64
    assert torch.equal(out, attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), bias=bias))


# Causality and caches


@given(past=st.integers(0, 9), length=st.integers(1, 9), batch=st.booleans())
def test_the_causal_mask_is_that_of_numpy(past, length, batch):
    query, key = np.arange(past, past + length), np.arange(past + length)
    if batch:
        query, key = (np.stack([x, x - 3])[:, None] for x in (query, key))
    want = numpy_attention.causal_mask(query, key)
    got = causal_mask(torch.from_numpy(query), torch.from_numpy(key))
    np.testing.assert_array_equal(got.numpy(), want)


def test_is_causal_of_torch_is_wrong_with_a_cache_and_the_mask_is_right():
    q, k, v = inputs()
    whole = attention(q, k, v, mask=causal_mask(torch.arange(7), torch.arange(7)))
    last = q[:, :, 5:]
    mask = causal_mask(torch.arange(5, 7), torch.arange(7))
    assert_close(attention(last, k, v, mask=mask), whole[:, :, 5:], tolerance(q, k, v, torch.float64))
    wrong = scaled_dot_product_attention(last, k, v, is_causal=True)
    assert (wrong - whole[:, :, 5:]).abs().max() > 0.1


ROPE = RotaryEmbedding(inverse_frequencies(6), 64)
T5 = T5Bias(4, num_buckets=8, max_distance=16, bidirectional=False)
torch.nn.init.normal_(T5.weight, generator=torch.Generator().manual_seed(0))


def causal(q, k, v, query_positions, key_positions, visible=None):
    mask = causal_mask(query_positions, key_positions)
    return {"mask": mask if visible is None else mask & visible}


def with_rope(q, k, v, query_positions, key_positions, visible=None):
    q, k = apply_rope(q, *ROPE(query_positions)), apply_rope(k, *ROPE(key_positions))
    return attention(q, k, v, **causal(q, k, v, query_positions, key_positions, visible))


def with_t5(q, k, v, query_positions, key_positions, visible=None):
    bias = T5(query_positions, key_positions)
    bias = bias if bias.ndim == 4 else bias[None]
    return attention(q, k, v, bias=bias, **causal(q, k, v, query_positions, key_positions, visible))


def with_alibi_bias(q, k, v, query_positions, key_positions, visible=None):
    bias = alibi(query_positions.numpy(), key_positions.numpy(), q.shape[-3])
    return attention(q, k, v, bias=bias, mask=visible)


def with_alibi(q, k, v, query_positions, key_positions, visible=None):
    return alibi_attention(q, k, v, alibi_slopes(q.shape[-3]), mask=visible)


every_encoding = pytest.mark.parametrize("encoded", [with_rope, with_t5, with_alibi_bias, with_alibi])


@every_encoding
@pytest.mark.parametrize("prompt", [1, 5])
def test_b08_b09_one_step_at_a_time_equals_all_at_once(encoded, prompt):
    """The query of a decode step stands behind the cache: its row of the bias is the last, not the first."""
    q, k, v = inputs(queries=12, keys=12)
    whole = encoded(q, k, v, torch.arange(12), torch.arange(12))
    steps = [slice(0, prompt), *(slice(i, i + 1) for i in range(prompt, 12))]
    for step in steps:
        seen = slice(0, step.stop)
        places = torch.arange(12)
        out = encoded(q[:, :, step], k[:, :, seen], v[:, :, seen], places[step], places[seen])
        assert_close(
            out, whole[:, :, step], tolerance(q, k, v, torch.float32 if encoded is with_t5 else torch.float64)
        )


@every_encoding
def test_b08_left_padded_equals_unpadded(encoded):
    q, k, v = inputs(batch=1, queries=5, keys=5)
    alone = encoded(q, k, v, torch.arange(5), torch.arange(5))
    padded = [torch.cat((1e3 * torch.ones_like(x[:, :, :3]), x), 2) for x in (q, k, v)]
    other = [vectors(7 + i, *x.shape) for i, x in enumerate(padded)]
    both = [torch.cat(pair) for pair in zip(padded, other, strict=True)]
    places = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6, 7]])[:, None]
    visible = torch.tensor([[False] * 3 + [True] * 5, [True] * 8])[:, None, None, :].expand(2, 1, 8, 8)
    out = encoded(*both, places, places, visible)
    atol = tolerance(q, k, v, torch.float32 if encoded is with_t5 else torch.float64)
    assert_close(out[:1, :, 3:], alone, atol)
    assert_close(out[1:], encoded(*other, torch.arange(8), torch.arange(8)), atol)


# ALiBi without a bias


@all_dtypes
@pytest.mark.parametrize("heads", [1, 3, 4, 12])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 7), (63, 63), (1, 300), (5, 300), (600, 600)])
def test_alibi_as_a_dimension_equals_alibi_as_a_bias(dtype, heads, queries, keys):
    q, k, v = inputs(dtype, batch=1, heads=heads, queries=queries, keys=keys, width=8, value_width=5)
    bias = alibi(np.arange(keys - queries, keys), np.arange(keys), heads)
    got = alibi_attention(q, k, v, alibi_slopes(heads))
    assert got.dtype == dtype
    # Near keys stand at most a block, 256 tokens, from the point where positions are counted.
    positions = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps * 256
    assert_close(got, exact(q, k, v, bias=bias), tolerance(q, k, v, dtype, extra=4 * positions))


def test_b07_alibi_prefers_near_keys_and_never_the_future():
    k, v = torch.zeros(1, 6, 4), torch.eye(6)[None]
    weights = alibi_attention(k, k, v, [0.5])[0]
    want = torch.tensor([0.0340, 0.0560, 0.0924, 0.1523, 0.2512, 0.4141])
    torch.testing.assert_close(weights[-1], want, rtol=0, atol=5e-5)
    assert not weights.triu(1).any()


@pytest.mark.parametrize("key_heads", [1, 2])
def test_alibi_serves_groups_of_query_heads_with_a_slope_each(key_heads):
    q, k, v = inputs(key_heads=key_heads, queries=5, keys=9)
    want = exact(q, k, v, bias=alibi(np.arange(4, 9), np.arange(9), 4))
    assert_close(alibi_attention(q, k, v, alibi_slopes(4)), want, tolerance(q, k, v, torch.float64))


def test_alibi_gradients_pass_gradcheck():
    q, k, v = (x.requires_grad_() for x in inputs(batch=1, heads=2, queries=3, keys=4, width=2))
    assert torch.autograd.gradcheck(lambda q, k, v: alibi_attention(q, k, v, alibi_slopes(2)), (q, k, v))


def test_alibi_is_exact_at_far_positions_in_half_precision():
    """A last query that sees 70 000 keys: neither bfloat16 (8 bits) nor float16 (65 504) holds such numbers."""
    keys = 70_000
    for dtype in (torch.bfloat16, torch.float16):
        q, k, v = inputs(dtype, batch=1, heads=3, queries=1, keys=keys, width=8)
        want = exact(q, k, v, bias=alibi([keys - 1], np.arange(keys), 3))
        assert_close(alibi_attention(q, k, v, alibi_slopes(3)), want, tolerance(q, k, v, dtype))


def test_alibi_under_autocast_keeps_its_positions():
    q, k, v = inputs(torch.float32, batch=1, queries=600, keys=600)
    low = [x.bfloat16() for x in (q, k, v)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = alibi_attention(q, k, v, alibi_slopes(4))
    assert_close(
        out, exact(*low, bias=alibi(np.arange(600), np.arange(600), 4)), tolerance(*low, torch.bfloat16)
    )


# Compilation


@pytest.mark.parametrize("encoded", [with_rope, with_t5, with_alibi])
def test_one_graph_serves_all_lengths(encoded):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    slopes = torch.from_numpy(alibi_slopes(4))

    def model(q, k, v):
        if encoded is with_alibi:
            return alibi_attention(q, k, v, slopes)
        places = torch.arange(q.shape[-2])
        return encoded(q, k, v, places, places)

    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=True)
    for length in range(8, 65):
        q, k, v = inputs(torch.float32, queries=length, keys=length)
        atol = tolerance(q, k, v, torch.float32, extra=4 * 64 * torch.finfo(torch.float32).eps)
        assert_close(compiled(q, k, v), model(q, k, v).double(), atol)
    assert counter.frame_count == 1


# Bad input

HEADS, ROWS = torch.ones(2, 4, 3, 6), torch.ones(3, 6)


def wrong(says, q=HEADS, k=HEADS, v=None, error=ValueError, **options):
    v = k if v is None else v
    return pytest.param(q, k, v, options, error, says, id=says)


BAD = [
    wrong("q must be a floating-point tensor, got int64", q=HEADS.long(), error=TypeError),
    wrong("k must be a floating-point tensor, got bool", k=HEADS > 0, error=TypeError),
    wrong("v must be a floating-point tensor, got array(", v=HEADS.numpy(), error=TypeError),
    wrong("q must have the axes (*batch, seq_len, head_dim), got (6,)", q=torch.ones(6)),
    wrong(
        "q and k must have the same head_dim ≥ 1, got shapes (2, 4, 3, 6) and (2, 4, 3, 1)", k=HEADS[..., :1]
    ),
    wrong("q and k must have the same head_dim ≥ 1", q=HEADS[..., :0], k=HEADS[..., :0]),
    wrong(
        "k and v must agree in all axes but the last, got (2, 4, 3, 6) and (2, 4, 1, 6)", v=HEADS[:, :, :1]
    ),
    wrong(
        "q, k and v must have one dtype, got torch.float32, torch.float64", k=HEADS.double(), error=TypeError
    ),
    wrong(
        "q and k must have the same number of axes and the same batch, got (2, 4, 3, 6) and (3, 6)", k=ROWS
    ),
    wrong("q and k must have the same number of axes and the same batch", k=HEADS[:1]),
    wrong("the heads of q must be a multiple of the heads of k, got 4 and 3", k=HEADS[:, :3]),
    wrong("the heads of q must be a multiple of the heads of k, got 2 and 4", q=HEADS[:, :2]),
    wrong("the heads of q must be a multiple of the heads of k, got 4 and 0", k=HEADS[:, :0]),
    wrong("scale must be greater than 0, got 0", scale=0),
    wrong("scale must be a real number, got '1'", scale="1", error=TypeError),
    wrong(
        "mask must be boolean, True where a query may look, got float32",
        mask=torch.ones(3, 3),
        error=TypeError,
    ),
    wrong(
        "mask must have the shape (3, 3), or as many axes as the scores (2, 4, 3, 3)", mask=torch.tensor(True)
    ),
    wrong("mask must have the shape (3, 3), or as many axes", mask=torch.ones(1, 3) > 0),
    wrong("mask must have the shape (3, 3), or as many axes", mask=torch.ones(4, 3, 3) > 0),
    wrong("mask must have the shape (3, 3), or as many axes", mask=torch.ones(4, 1, 3, 3) > 0),
]
BAD_BIAS = [
    wrong(
        "bias must have the shape (3, 3), or as many axes as the scores (2, 4, 3, 3)",
        bias=torch.ones(4, 3, 3),
    ),
    wrong("bias must be a floating-point tensor, got int64", bias=torch.ones(3, 3).long(), error=TypeError),
    wrong("bias must be a floating-point tensor, got array(", bias=np.ones((3, 3)), error=TypeError),
]


@pytest.mark.parametrize(("q", "k", "v", "options", "error", "says"), [*BAD, *BAD_BIAS])
def test_bad_input_is_refused_with_name_rule_value_and_way_out(q, k, v, options, error, says):
    with pytest.raises(error) as caught:
        attention(q, k, v, **options)
    assert says in str(caught.value)
    assert re.search(r"must (not )?\w.+, got .+; .+", str(caught.value), re.S), "rule, value given, way out"


@pytest.mark.parametrize("shape", [(2, 1, 1, 300), (1, 1, 300, 1), (2, 4, 1, 1)])
def test_a_mask_may_share_every_axis_with_a_1(shape):
    q, k, v = torch.randn(3, 2, 4, 300, 6, dtype=torch.float64)
    mask = torch.rand(shape) > 0.1
    full, slopes = mask.expand(2, 4, 300, 300), [0.1, 0.2, 0.3, 0.4]
    torch.testing.assert_close(attention(q, k, v, mask=mask), attention(q, k, v, mask=full), equal_nan=True)
    got, want = (alibi_attention(q, k, v, slopes, mask=m) for m in (mask, full))
    torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize(("q", "k", "v", "options", "error", "says"), BAD)
def test_alibi_refuses_what_attention_refuses(q, k, v, options, error, says):
    slopes = np.ones(q.shape[1] if q.ndim > 2 else 1)
    with pytest.raises(error, match=re.escape(says)):
        alibi_attention(q, k, v, slopes, **options)


@pytest.mark.parametrize(
    ("q", "slopes", "says"),
    [
        (
            HEADS,
            [0.5],
            "slopes must be one number for each head of q (2, 4, 3, 6), got shape (1,); see alibi",
        ),
        (HEADS, 0.5, "slopes must be one number for each head of q (2, 4, 3, 6), got shape (); see alibi"),
        (ROWS, [0.5], "slopes must be one number for each head of q (3, 6), got shape (1,); see alibi"),
        (
            torch.ones(2, 4, 5, 6),
            [1.0] * 4,
            "k must have a key for each query, got 3 keys, 5 queries; keep the",
        ),
    ],
)
def test_alibi_refuses_bad_slopes_and_more_queries_than_keys(q, slopes, says):
    k = HEADS if q.ndim > 2 else ROWS
    with pytest.raises(ValueError, match=re.escape(says)):
        alibi_attention(q, k, k, slopes)


@pytest.mark.parametrize(
    ("query", "key", "error", "says"),
    [
        (
            torch.tensor([0.5]),
            torch.arange(2),
            TypeError,
            "query_positions must be a tensor of integers, got float32",
        ),
        (
            torch.arange(2),
            torch.arange(2).bfloat16(),
            TypeError,
            "key_positions must be a tensor of integers, got bf",
        ),
        ([0], torch.arange(2), TypeError, "query_positions must be a tensor of integers, got [0]"),
        (
            torch.tensor(3),
            torch.arange(2),
            ValueError,
            "with the same batch axes, got shapes () and (2,); use",
        ),
        (torch.zeros(2, 1, 3).long(), torch.arange(3), ValueError, "got shapes (2, 1, 3) and (3,); use"),
    ],
)
def test_causal_masks_of_bad_positions_are_refused(query, key, error, says):
    with pytest.raises(error, match=re.escape(says.replace("bf", "bfloat16"))):
        causal_mask(query, key)
