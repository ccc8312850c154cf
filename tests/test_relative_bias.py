"""Theorems about biases and tables that depend on the offset."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.attention import attention, attention_scores, attention_weights, causal_mask
from companion.relative_bias import (
    alibi_bias,
    alibi_slopes,
    relative_offsets,
    shaw_indices,
    t5_buckets,
)

EPS = np.finfo(np.float64).eps
TWELVE_DIGITS = 0.5e-11
BUCKETS_OF_T5 = [(bidirectional, 32, 128) for bidirectional in (True, False)]
places = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=6)


def vectors(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def offsets_of(length):
    return relative_offsets(np.arange(length), np.arange(length))


# Offsets


@given(places, places)
def test_an_offset_is_the_key_minus_the_query(queries, keys):
    offsets = relative_offsets(queries, keys)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [[key - query for key in keys] for query in queries]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int64"])
def test_offsets_of_unsigned_positions_do_not_wrap_around(dtype):
    positions = np.array([0, 100], dtype=dtype)
    np.testing.assert_array_equal(relative_offsets(positions, positions), [[0, 100], [-100, 0]])


def test_offsets_of_a_left_padded_batch_carry_its_axes():
    positions = np.array([[0, 0, 1], [0, 1, 2]])[:, np.newaxis]
    offsets = relative_offsets(positions, positions)
    assert offsets.shape == (2, 1, 3, 3)
    np.testing.assert_array_equal(offsets[1, 0], offsets_of(3))


# ALiBi


def test_slopes_equal_the_goldens(goldens):
    for case in goldens["alibi_slopes"]:
        slopes = alibi_slopes(case["num_heads"])
        np.testing.assert_allclose(slopes, case["ref_slopes"], rtol=TWELVE_DIGITS)
        ten_roundings = 10 * np.finfo(np.float32).eps  # the peer takes powers of a float32 base
        np.testing.assert_allclose(slopes, case["peer_bloom_slopes_f32"], rtol=ten_roundings)
        sentence = np.allclose(slopes, case["paper_sentence_formula"])
        assert sentence == case["equal_to_paper_sentence"]


def official_slopes(num_heads):
    """`get_slopes` of the authors' repository."""
    power = 2 ** int(np.floor(np.log2(num_heads)))
    start = 2 ** (-8 / power)
    slopes = [start * start**i for i in range(power)]
    if power == num_heads:
        return slopes
    return slopes + official_slopes(2 * power)[0::2][: num_heads - power]


@pytest.mark.parametrize("num_heads", [*range(1, 65), 71, 112, 127, 128])
def test_slopes_of_every_head_count_equal_the_official_code(num_heads):
    np.testing.assert_allclose(alibi_slopes(num_heads), official_slopes(num_heads), rtol=256 * EPS)


@given(st.integers(1, 300))
def test_slopes_are_distinct_and_lie_between_two_to_the_minus_8_and_1(num_heads):
    slopes = alibi_slopes(num_heads)
    assert slopes.shape == (num_heads,) == (len(set(slopes.tolist())),)
    assert slopes.min() == 2**-8
    assert slopes.max() < 1


def test_the_causal_bias_equals_the_golden(goldens):
    case = goldens["alibi_bias"]
    bias = alibi_bias(offsets_of(case["n"]), [case["slope"]])[0]
    np.testing.assert_array_equal(np.tril(bias), case["causal_matrix_without_mask"])
    np.testing.assert_array_equal(np.isneginf(bias), ~np.tri(case["n"], dtype=bool))


def test_the_symmetric_bias_equals_the_golden(goldens):
    case = goldens["alibi_bias"]
    bias = alibi_bias(offsets_of(case["n"]), [case["slope"]], causal=False)[0]
    np.testing.assert_array_equal(bias, case["symmetric_encoder_variant"])
    assert not np.signbit(np.diag(bias)).any()


@given(places, places, st.integers(-(10**6), 10**6), st.booleans())
def test_the_bias_depends_only_on_the_offset(queries, keys, shift, causal):
    slopes = alibi_slopes(3)
    here = alibi_bias(relative_offsets(queries, keys), slopes, causal=causal)
    there = alibi_bias(
        relative_offsets(np.array(queries) + shift, np.array(keys) + shift), slopes, causal=causal
    )
    np.testing.assert_array_equal(here, there)


@given(places, places)
def test_the_symmetric_bias_cannot_tell_left_from_right(queries, keys):
    offsets = relative_offsets(queries, keys)
    slopes = alibi_slopes(2)
    np.testing.assert_array_equal(
        alibi_bias(offsets, slopes, causal=False), alibi_bias(-offsets, slopes, causal=False)
    )


def test_every_head_has_its_own_bias():
    bias = alibi_bias(offsets_of(4), alibi_slopes(8))
    assert bias.shape == (8, 4, 4)
    np.testing.assert_array_equal(bias[:, 3, 0], -3 * alibi_slopes(8))


def test_left_padding_equals_the_bias_of_bloom_up_to_a_constant_in_each_row(goldens):
    """BLOOM adds slope · key position, so rows differ by a constant, which the softmax takes away."""
    case = goldens["alibi_left_padding"]
    mask = np.array(case["attention_mask"], dtype=bool)[:, np.newaxis, np.newaxis]
    positions = np.maximum(np.cumsum(case["attention_mask"], axis=1) - 1, 0)[:, np.newaxis]
    bias = alibi_bias(relative_offsets(positions, positions), alibi_slopes(case["num_heads"]))
    bloom = np.array(case["peer_bloom_alibi"])[:, :, np.newaxis]
    visible = mask & causal_mask(positions, positions)
    ours = attention_weights(np.where(visible, bias, -np.inf))
    theirs = attention_weights(np.where(visible, bloom, -np.inf))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=8 * EPS)


# T5


def test_buckets_equal_the_goldens(goldens):
    for case in goldens["t5_buckets"]:
        first, last = case["range"]
        starts = dict(case["run_starts"])
        expected, bucket = [], None
        for offset in range(first, last + 1):
            bucket = starts.get(offset, bucket)
            expected.append(bucket)
        buckets = t5_buckets(
            np.arange(first, last + 1),
            num_buckets=case["num_buckets"],
            max_distance=case["max_distance"],
            bidirectional=case["bidirectional"],
        )
        np.testing.assert_array_equal(buckets, expected)
        unused = set(range(case["num_buckets"])) - set(buckets.tolist())
        assert sorted(unused) == case["unused_buckets"]


@pytest.mark.parametrize(("key", "bidirectional"), [("bidirectional", True), ("causal", False)])
def test_the_matrix_of_buckets_equals_the_golden(goldens, key, bidirectional):
    case = goldens["t5_bias_matrix"]
    queries = case["past"] + np.arange(case["query_len"])
    offsets = relative_offsets(queries, np.arange(case["key_len"]))
    np.testing.assert_array_equal(t5_buckets(offsets, bidirectional=bidirectional), case[key])


def exact_bucket(offset, num_buckets, max_distance, bidirectional):
    """The rule of mesh-tensorflow with the logarithms raised away: no rounding at all."""
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if offset > 0 else 0
    distance = abs(offset) if bidirectional else max(-offset, 0)
    near = num_buckets // 2
    if distance < near:
        return first + distance
    far = num_buckets - near
    step = 0
    while Fraction(distance, near) ** far >= Fraction(max_distance, near) ** (step + 1) and step < far:
        step += 1
    return first + min(near + step, num_buckets - 1)


@given(st.integers(2, 40).map(lambda n: 2 * n), st.data(), st.booleans(), st.integers(-5000, 5000))
def test_buckets_are_exact_for_every_table(num_buckets, data, bidirectional, offset):
    near = num_buckets // (4 if bidirectional else 2)
    max_distance = data.draw(st.integers(near + 1, 2000))
    bucket = t5_buckets(
        offset, num_buckets=num_buckets, max_distance=max_distance, bidirectional=bidirectional
    )
    assert bucket == exact_bucket(offset, num_buckets, max_distance, bidirectional)


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(9, 128), (10, 160), (19, 288)])
def test_buckets_are_exact_where_a_float64_logarithm_is_rounded_to_the_wrong_side(num_buckets, max_distance):
    """Their quotients of logarithms are whole numbers, so the last bit decides."""
    offsets = -np.arange(max_distance + 1)
    buckets = t5_buckets(offsets, num_buckets=num_buckets, max_distance=max_distance, bidirectional=False)
    assert buckets.tolist() == [exact_bucket(n, num_buckets, max_distance, False) for n in offsets.tolist()]


@pytest.mark.parametrize(("bidirectional", "first"), [(True, 91), (False, 113)])
def test_the_last_bucket_starts_before_the_maximal_distance(bidirectional, first):
    last = t5_buckets(-(10**6), bidirectional=bidirectional)
    assert t5_buckets(-first, bidirectional=bidirectional) == last
    assert t5_buckets(-(first - 1), bidirectional=bidirectional) == last - 1


def test_in_both_directions_bucket_16_is_never_used():
    assert 16 not in t5_buckets(np.arange(-1000, 1001))


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_farther_keys_never_have_a_nearer_bucket(near, gap):
    for bidirectional, num_buckets, max_distance in BUCKETS_OF_T5:
        options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
        assert t5_buckets(-near - gap, **options) >= t5_buckets(-near, **options)


@given(st.integers(1, 10**6))
def test_left_and_right_have_different_buckets_in_both_directions_and_the_future_has_bucket_0_in_one(n):
    assert t5_buckets(n) == t5_buckets(-n) + 16
    assert t5_buckets(n, bidirectional=False) == 0


@pytest.mark.parametrize("shape", [(), (0,), (2, 3, 4)])
def test_buckets_and_indices_keep_the_shape_of_the_offsets(shape):
    offsets = np.zeros(shape, dtype=int)
    assert np.shape(t5_buckets(offsets)) == np.shape(shaw_indices(offsets, 4)) == shape


# Shaw


@given(places, places, st.integers(1, 100))
def test_shaws_index_is_the_offset_clipped_and_moved_to_0(queries, keys, k):
    indices = shaw_indices(relative_offsets(queries, keys), k)
    expected = [[min(max(key - query, -k), k) + k for key in keys] for query in queries]
    assert indices.tolist() == expected


# With attention


def alibi(queries, keys, heads):
    return alibi_bias(relative_offsets(queries, keys), alibi_slopes(heads))


def t5(queries, keys, heads):
    table = vectors(9, 32, heads)
    buckets = t5_buckets(relative_offsets(queries, keys), bidirectional=False)
    bias = np.moveaxis(table[buckets], -1, -3)
    return np.where(causal_mask(queries, keys), bias, -np.inf)


both_biases = pytest.mark.parametrize("bias_of", [alibi, t5])


@both_biases
@given(seed=st.integers(0, 2**32 - 1), step=st.integers(1, 3), start=st.integers(0, 1000))
def test_token_by_token_with_a_cache_equals_all_at_once(bias_of, seed, step, start):
    q, k, v = vectors(seed, 3, 4, 7, 8)
    positions = start + np.arange(7)
    full = attention(q, k, v, bias=bias_of(positions, positions, 4))
    for begin in range(0, 7, step):
        end = min(begin + step, 7)
        bias = bias_of(positions[begin:end], positions[:end], 4)
        part = attention(q[:, begin:end], k[:, :end], v[:, :end], bias=bias)
        np.testing.assert_allclose(part, full[:, begin:end], rtol=0, atol=64 * EPS * np.abs(v).max())


def test_left_padding_changes_nothing_for_the_real_tokens():
    q, k, v = vectors(0, 3, 1, 4, 6, 8)
    positions = np.array([[0, 0, 0, 1, 2, 3]])[:, np.newaxis]
    real = np.array([False, False, True, True, True, True])
    padded = attention(q, k, v, bias=alibi(positions, positions, 4), mask=np.broadcast_to(real, (1, 1, 6, 6)))
    alone = attention(*(x[0, :, 2:] for x in (q, k, v)), bias=alibi(np.arange(4), np.arange(4), 4))
    np.testing.assert_allclose(padded[0, :, 2:], alone, rtol=0, atol=64 * EPS * np.abs(v).max())


def test_the_bias_is_not_divided_by_the_root_of_the_width():
    q, k = vectors(0, 2, 1, 5, 64)
    bias = alibi_bias(offsets_of(5), alibi_slopes(1))
    scores = attention_scores(q, k, bias=bias)
    np.testing.assert_array_equal(scores, attention_scores(q, k) + bias)
