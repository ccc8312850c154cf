"""Theorems about linear attention and the positions it can carry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.attention import attention, causal_mask
from companion.frequencies import inverse_frequencies
from companion.linear_attention import elu_features, linear_attention, performer_features
from companion.relative_bias import alibi_bias, alibi_slopes, relative_offsets, t5_buckets
from companion.rope import apply_rope, rotation_table

EPS = np.finfo(np.float64).eps
ATOL = 4096 * EPS  # averages of values of size 1 over a few tokens, by sums in another order
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(1, 20)


def vectors(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def inputs(seed, length, heads=3):
    return (
        vectors(seed, 2, heads, length, 4),
        vectors(seed + 1, 2, heads, length, 4),
        vectors(seed + 2, 2, heads, length, 5),
    )


def by_table(q, k, v, weights, turned=None):
    """The same averages through the table of all pairs; `turned` holds the features above the line."""
    q_above, k_above = turned or (elu_features(q), elu_features(k))
    below = weights * (elu_features(q) @ np.swapaxes(elu_features(k), -1, -2))
    above = weights * (q_above @ np.swapaxes(k_above, -1, -2))
    return above / below.sum(axis=-1, keepdims=True) @ v


def by_offset(table, length):
    """A matrix (query, key) from a table of the offsets −(L − 1) … L − 1."""
    offsets = relative_offsets(np.arange(length), np.arange(length))
    return table[..., offsets + length - 1]


@given(seeds, lengths, st.booleans())
def test_without_positions_it_is_the_average_by_the_products_of_features(seed, length, causal):
    q, k, v = inputs(seed, length)
    weights = np.tri(length) if causal else 1.0
    output = linear_attention(q, k, v, feature_map=elu_features, causal=causal)
    np.testing.assert_allclose(output, by_table(q, k, v, weights), rtol=0, atol=ATOL)


def test_queries_and_keys_of_different_number_are_fine_unless_there_is_an_order():
    q, k, v = vectors(0, 3, 4), vectors(1, 7, 4), vectors(2, 7, 5)
    output = linear_attention(q, k, v, feature_map=elu_features)
    np.testing.assert_allclose(output, by_table(q, k, v, 1.0), rtol=0, atol=ATOL)


@given(seeds, lengths)
def test_alibi_by_recurrence_equals_alibi_by_the_table(seed, length):
    q, k, v = inputs(seed, length)
    slopes = alibi_slopes(3)
    bias = alibi_bias(relative_offsets(np.arange(length), np.arange(length)), slopes)
    output = linear_attention(q, k, v, feature_map=elu_features, causal=True, slopes=slopes)
    np.testing.assert_allclose(output, by_table(q, k, v, np.exp(bias)), rtol=0, atol=ATOL)


@given(seeds, lengths, st.booleans())
def test_any_relative_bias_by_transforms_equals_the_table(seed, length, causal):
    q, k, v = inputs(seed, length)
    bias = vectors(seed + 3, 3, 2 * length - 1)
    weights = np.exp(by_offset(bias, length)) * (np.tri(length) if causal else 1.0)
    output = linear_attention(q, k, v, feature_map=elu_features, causal=causal, bias=bias)
    np.testing.assert_allclose(output, by_table(q, k, v, weights), rtol=0, atol=16 * ATOL)


def test_one_bias_serves_all_heads():
    q, k, v = inputs(0, 6)
    bias = vectors(1, 11)
    output = linear_attention(q, k, v, feature_map=elu_features, bias=bias)
    each = linear_attention(q, k, v, feature_map=elu_features, bias=np.tile(bias, (3, 1)))
    np.testing.assert_array_equal(output, each)


def test_t5_buckets_can_be_the_bias():
    q, k, v = inputs(0, 9, heads=2)
    table = vectors(3, 32, 2)
    offsets = np.arange(-8, 9)
    bias = table[t5_buckets(offsets)].T
    output = linear_attention(q, k, v, feature_map=elu_features, bias=bias)
    np.testing.assert_allclose(output, by_table(q, k, v, np.exp(by_offset(bias, 9))), rtol=0, atol=16 * ATOL)


def test_a_large_bias_does_not_overflow():
    q, k, v = inputs(0, 5)
    output = linear_attention(q, k, v, feature_map=elu_features, bias=vectors(1, 9) + 5000)
    near = linear_attention(q, k, v, feature_map=elu_features, bias=vectors(1, 9))
    np.testing.assert_allclose(output, near, rtol=0, atol=1e-11)  # 5000 costs four digits of the bias


@given(seeds, lengths, st.booleans())
def test_rope_turns_the_features_above_the_line_only(seed, length, causal):
    q, k, v = inputs(seed, length)
    table = rotation_table(np.arange(length), inverse_frequencies(4))
    turned = tuple(apply_rope(elu_features(x), *table) for x in (q, k))
    weights = np.tri(length) if causal else 1.0
    output = linear_attention(q, k, v, feature_map=elu_features, causal=causal, rotation=table)
    np.testing.assert_allclose(output, by_table(q, k, v, weights, turned), rtol=0, atol=ATOL)


def test_rope_can_make_weights_negative_and_rows_that_do_not_sum_to_1():
    """Values that are the unit vectors show the weights themselves."""
    length = 16
    q, k, v = vectors(0, length, 4), vectors(1, length, 4), np.eye(length)
    table = rotation_table(np.arange(length), inverse_frequencies(4))
    weights = linear_attention(q, k, v, feature_map=elu_features, causal=True, rotation=table)
    assert weights.min() < -0.01 and weights.sum(axis=1).min() < 0.5
    plain = linear_attention(q, k, v, feature_map=elu_features, causal=True)
    assert plain.min() >= 0
    np.testing.assert_allclose(plain.sum(axis=1), 1, rtol=length * EPS)


@given(seeds, st.integers(2, 12))
def test_what_follows_a_causal_query_has_no_influence(seed, length):
    q, k, v = inputs(seed, length)
    options = {"feature_map": elu_features, "causal": True, "slopes": alibi_slopes(3)}
    part = linear_attention(*(x[..., : length - 1, :] for x in (q, k, v)), **options)
    np.testing.assert_array_equal(linear_attention(q, k, v, **options)[..., : length - 1, :], part)


def test_unmasked_it_is_equivariant_and_with_a_bias_it_is_not():
    q, k, v = inputs(0, 6)
    order = [3, 0, 5, 1, 4, 2]
    shuffled = [x[..., order, :] for x in (q, k, v)]
    plain = {"feature_map": elu_features}
    before, after = linear_attention(q, k, v, **plain), linear_attention(*shuffled, **plain)
    np.testing.assert_allclose(after, before[..., order, :], rtol=0, atol=ATOL)
    biased = {**plain, "bias": vectors(1, 11)}
    gap = linear_attention(*shuffled, **biased) - linear_attention(q, k, v, **biased)[..., order, :]
    assert np.abs(gap).max() > 0.1


def test_a_query_without_weight_gets_zeros():
    relu = lambda x: np.maximum(x, 0)  # noqa: E731
    output = linear_attention([[-1.0], [1.0]], [[1.0]], [[7.0]], feature_map=relu)
    np.testing.assert_array_equal(output, [[0.0], [7.0]])


def test_a_single_head_needs_no_axis_of_heads():
    q, k, v = (x[0, 0] for x in inputs(0, 5, heads=1))
    with_axis = linear_attention(
        q[None], k[None], v[None], feature_map=elu_features, causal=True, slopes=alibi_slopes(1)
    )
    alone = linear_attention(q, k, v, feature_map=elu_features, causal=True, slopes=alibi_slopes(1))
    np.testing.assert_array_equal(alone, with_axis[0])
    bias = vectors(1, 1, 9)
    np.testing.assert_array_equal(
        linear_attention(q, k, v, feature_map=elu_features, bias=bias),
        linear_attention(q[None], k[None], v[None], feature_map=elu_features, bias=bias)[0],
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_output_has_the_dtype_of_the_values_and_is_rounded_once(dtype):
    q, k, v = (x.astype(dtype) for x in inputs(0, 5))
    output = linear_attention(q, k, v, feature_map=elu_features)
    exact = linear_attention(*(x.astype(float) for x in (q, k, v)), feature_map=elu_features)
    assert output.dtype == dtype
    np.testing.assert_array_equal(output, exact.astype(dtype))


# Feature maps


@given(seeds)
def test_elu_features_are_positive_continuous_and_growing(seed):
    x = np.sort(100 * vectors(seed, 50))
    features = elu_features(x)
    assert (features > 0).all() and (np.diff(features) >= 0).all()
    np.testing.assert_array_equal(features[x > 0], x[x > 0] + 1)


def test_products_of_performer_features_are_on_average_the_exponential_of_the_product():
    q, k = vectors(0, 2, 6, 4) / 2
    projection = vectors(1, 200_000, 4)
    products = performer_features(q, projection) @ performer_features(k, projection).T
    np.testing.assert_allclose(products, np.exp(q @ k.T), rtol=0.05)


def test_with_many_performer_features_it_approaches_softmax_attention():
    q, k, v = vectors(0, 3, 8, 4)
    projection = vectors(1, 100_000, 4)
    mask = causal_mask(np.arange(8), np.arange(8))
    features = lambda x: performer_features(x / 4**0.25, projection)  # noqa: E731
    output = linear_attention(q, k, v, feature_map=features, causal=True)
    np.testing.assert_allclose(output, attention(q, k, v, mask=mask), rtol=0, atol=0.05)
