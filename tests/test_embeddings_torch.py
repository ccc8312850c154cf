"""Theorems about learned vectors, sinusoids and the bias of T5 as parts of a model."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
torch.set_num_threads(1)  # other tests have the other cores

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

from companion.attention_torch import attention, causal_mask  # noqa: E402
from companion.embeddings_torch import LearnedPositions, SinusoidalPositions, T5Bias  # noqa: E402
from companion.relative_bias import relative_offsets, t5_buckets  # noqa: E402
from companion.sinusoidal import sinusoidal_table  # noqa: E402

EPS32 = torch.finfo(torch.float32).eps
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
all_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
both_added = pytest.mark.parametrize("added", [LearnedPositions, SinusoidalPositions])


def vectors(seed, *shape, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


# Added to the embeddings


@all_dtypes
@pytest.mark.parametrize("layout", ["adjacent", "half"])
@pytest.mark.parametrize("cast", [torch.nn.Module.half, torch.nn.Module.bfloat16, torch.nn.Module.float])
def test_the_sinusoid_is_added_to_the_scaled_embedding_and_rounded_once(dtype, layout, cast):
    module = cast(SinusoidalPositions(2**12, 6, 500.0, layout=layout))
    x, places = vectors(0, 2, 4, 6, dtype=dtype), [0, 1, 257, 4095]
    got = module(x, torch.tensor(places))
    want = math.sqrt(6) * x.double() + torch.from_numpy(sinusoidal_table(places, 6, 500.0, layout=layout))
    allowed = torch.finfo(dtype).eps / 2 * want.abs() + 4 * EPS32 * (1 + want.abs().max())
    assert got.dtype == dtype and ((got.double() - want).abs() <= allowed).all()


@all_dtypes
def test_the_learned_vector_of_each_position_is_added(dtype):
    module, x = LearnedPositions(16, 6).to(dtype), vectors(0, 2, 3, 6, dtype=dtype)
    got = module(x, torch.tensor([5, 9, 2]))
    assert got.dtype == dtype
    for row, position in enumerate([5, 9, 2]):
        assert torch.equal(got[:, row], x[:, row] + module.weight[position])


@both_added
def test_left_padded_rows_get_positions_of_their_own(added):
    module, x = added(16, 6), vectors(0, 2, 5, 6, dtype=torch.float32)
    got = module(x, torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]]))
    assert torch.equal(got[0, 2:], module(x[0, 2:], torch.arange(3)))
    assert torch.equal(got[1], module(x[1], torch.arange(5)))


@both_added
def test_it_ends_where_it_was_said_to_end_and_says_so(added):
    module, x = added(16, 6), vectors(0, 17, 6, dtype=torch.float32)
    assert module(x[:16], torch.arange(16)).shape == (16, 6)
    with pytest.raises(
        ValueError, match=r"must be 0 or more and less than 16, the rows .*, got 16; make a table"
    ):
        module(x, torch.arange(17))
    with pytest.raises(ValueError, match=r", got -1; make a table with more rows"):
        module(x[:1], torch.tensor([-1]))


def test_only_the_learned_vectors_seen_get_a_gradient():
    module = LearnedPositions(4, 3)
    module(torch.zeros(2, 2, 3), torch.tensor([1, 3])).sum().backward()
    assert torch.equal(module.weight.grad, torch.tensor([0.0, 2, 0, 2])[:, None].expand(4, 3))


def test_learned_vectors_start_small_and_are_saved():
    torch.manual_seed(0)
    module = LearnedPositions(512, 64)
    three_sigma = 3 * 0.02 / math.sqrt(2 * 512 * 64)
    assert abs(module.weight.std().item() - 0.02) < three_sigma
    assert module.state_dict().keys() == {"weight"}
    assert SinusoidalPositions(4, 6).state_dict() == {}


def test_meta_initialisation_spoils_no_table():
    with torch.device("meta"):
        modules = torch.nn.ModuleList([SinusoidalPositions(16, 6), T5Bias(2)])
    modules.to_empty(device="cpu")
    for module, made in zip(modules, (SinusoidalPositions(16, 6), T5Bias(2)), strict=True):
        assert module.table.dtype == made.table.dtype and torch.equal(module.table, made.table)


# The bias of T5


@given(
    query=st.integers(-300, 300),
    lengths=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    num_buckets=st.integers(2, 20).map(lambda n: 2 * n),
    max_distance=st.integers(20, 300),
    bidirectional=st.booleans(),
)
def test_the_bias_is_the_number_of_the_bucket(query, lengths, num_buckets, max_distance, bidirectional):
    options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    module = T5Bias(3, **options)
    queries, keys = query + np.arange(lengths[0]), np.arange(lengths[1])
    got = module(torch.from_numpy(queries), torch.from_numpy(keys))
    buckets = t5_buckets(relative_offsets(queries, keys), **options)
    assert got.shape == (3, *lengths)
    for head in range(3):
        assert torch.equal(got[head], module.weight[torch.from_numpy(buckets), head])


def test_b09_far_keys_share_the_last_bucket_and_a_decode_step_has_the_row_of_its_query():
    decoder, encoder = T5Bias(1, bidirectional=False), T5Bias(1)
    for module in (decoder, encoder):
        module.weight.data = torch.arange(32.0)[:, None]  # each bucket shows its number
    assert decoder(torch.tensor([200]), torch.tensor([0])).item() == 31
    assert encoder(torch.tensor([0]), torch.tensor([1000])).item() == 31
    whole = decoder(torch.arange(7), torch.arange(7))
    step = decoder(torch.tensor([6]), torch.arange(7))
    assert torch.equal(step[0, 0], whole[0, 6]) and not torch.equal(step[0, 0], whole[0, 0])


def test_left_padded_rows_have_a_bias_of_their_own():
    module = T5Bias(3)
    places = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])[:, None]
    got = module(places, places)
    assert got.shape == (2, 3, 5, 5)
    assert torch.equal(got[0, :, 2:, 2:], module(torch.arange(3), torch.arange(3)))
    assert torch.equal(got[1], module(torch.arange(5), torch.arange(5)))


class Layer(torch.nn.Module):
    """Half a layer of T5: it owns its projection and shares the bias."""

    def __init__(self, bias):
        super().__init__()
        self.project, self.bias = torch.nn.Linear(6, 6), bias

    def forward(self, x):
        places = torch.arange(x.shape[-2])
        q = self.project(x).unflatten(-1, (2, 3)).transpose(-2, -3)
        bias, mask = self.bias(places, places)[None], causal_mask(places, places)
        return attention(q, q, q, scale=1.0, bias=bias, mask=mask).transpose(-2, -3).flatten(-2)


def test_layers_share_one_bias_and_add_up_its_gradients():
    shared = T5Bias(2)
    layers = torch.nn.Sequential(Layer(shared), Layer(shared))
    assert sum(p is shared.weight for p in layers.parameters()) == 1
    x = vectors(0, 2, 7, 6, dtype=torch.float32)
    gradient = torch.autograd.grad(layers(x).sum(), shared.weight)[0]
    alone = [T5Bias(2) for _ in range(2)]
    for layer, bias in zip(layers, alone, strict=True):
        bias.weight.data.copy_(shared.weight)
        layer.bias = bias
    parts = torch.autograd.grad(layers(x).sum(), [bias.weight for bias in alone])
    assert all(part.any() for part in parts)
    torch.testing.assert_close(gradient, sum(parts), rtol=0, atol=64 * EPS32 * gradient.abs().max().item())


def test_one_graph_serves_all_lengths():
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    model = torch.nn.ModuleList([LearnedPositions(64, 6), SinusoidalPositions(64, 6), Layer(T5Bias(2))])

    def run(x):
        places = torch.arange(x.shape[-2])
        return model[2](model[1](model[0](x, places), places))

    compiled = torch.compile(run, backend=counter, fullgraph=True, dynamic=True)
    for length in range(8, 65):
        x = vectors(length, 3, length, 6, dtype=torch.float32)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), run(x), rtol=0, atol=64 * EPS32)
    assert counter.frame_count == 1


# Bad input


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: LearnedPositions(0, 6), ValueError, "max_positions must be at least 1, got 0; give"),
        (lambda: LearnedPositions(4, 6.0), TypeError, "d_model must be an integer, got 6.0; give"),
        (lambda: SinusoidalPositions(4.0, 6), TypeError, "max_positions must be an integer, got 4.0; give"),
        (lambda: SinusoidalPositions(4, 7), ValueError, "d_model must be even and at least 2, got 7; "),
        (
            lambda: SinusoidalPositions(4, 6, layout="both"),
            ValueError,
            "layout must be 'half' or 'adjacent', got",
        ),
        (lambda: T5Bias(0), ValueError, "num_heads must be at least 1, got 0; give"),
        (lambda: T5Bias(2, num_buckets=2), ValueError, "num_buckets must be at least 4, got 2; give"),
        (lambda: T5Bias(2, max_distance=8), ValueError, "max_distance must be at least 9, got 8; give"),
        (lambda: T5Bias(2, max_distance="8"), TypeError, "max_distance must be an integer, got '8'; give"),
    ],
)
def test_bad_sizes_are_refused(make, error, says):
    with pytest.raises(error, match=re.escape(says)):
        make()


@both_added
@pytest.mark.parametrize(
    ("embeddings", "positions", "error", "says"),
    [
        (
            torch.ones(3, 6).long(),
            torch.arange(3),
            TypeError,
            "embeddings must be a floating-point tensor, got int64",
        ),
        (
            np.ones((3, 6)),
            torch.arange(3),
            TypeError,
            "embeddings must be a floating-point tensor, got array(",
        ),
        (
            torch.ones(3, 5),
            torch.arange(3),
            ValueError,
            "embeddings must have the axes (*batch, seq_len, 6), got (3, 5);",
        ),
        (
            torch.ones(6),
            torch.arange(1),
            ValueError,
            "embeddings must have the axes (*batch, seq_len, 6), got (6,);",
        ),
        (
            torch.ones(2, 3, 6),
            torch.arange(1),
            ValueError,
            "positions must be one a token, (3,) or (2, 3), got (1,);",
        ),
        (
            torch.ones(2, 3, 6),
            torch.zeros(2, 1).long(),
            ValueError,
            "positions must be one a token, (3,) or (2, 3),",
        ),
        (
            torch.ones(3, 6),
            torch.arange(3).half(),
            TypeError,
            "positions must be a tensor of integers, got float16",
        ),
        (torch.ones(3, 6), [0, 1, 2], TypeError, "positions must be a tensor of integers, got [0, 1, 2]"),
    ],
)
def test_bad_embeddings_and_positions_are_refused(added, embeddings, positions, error, says):
    with pytest.raises(error, match=re.escape(says)):
        added(16, 6)(embeddings, positions)


@pytest.mark.parametrize(
    ("query", "key", "error", "says"),
    [
        (
            torch.arange(3).half(),
            torch.arange(3),
            TypeError,
            "query_positions must be a tensor of integers, got float16",
        ),
        (
            torch.arange(3),
            torch.tensor(3),
            ValueError,
            "with the same batch axes, got shapes (3,) and (); use",
        ),
        (
            torch.zeros(2, 3).long(),
            torch.zeros(2, 3).long(),
            ValueError,
            "or (batch, 1, seq_len), got (2, 3); the 1",
        ),
    ],
)
def test_bad_positions_of_a_bias_are_refused(query, key, error, says):
    with pytest.raises(error, match=re.escape(says)):
        T5Bias(2)(query, key)
