"""Theorems about attention, with and without positions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.attention import attention, attention_scores, attention_weights, causal_mask
from companion.frequencies import inverse_frequencies
from companion.rope import apply_rope, rotation_table

EPS = np.finfo(np.float64).eps
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(1, 9)


def vectors(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def rounding(*arrays, terms):
    """Bound on the error of sums of `terms` products of entries of these arrays."""
    return 4 * EPS * terms * math.prod(max(1, np.abs(array).max()) for array in arrays)


def layer(x, weights, mask=None):
    """One attention layer with a residual connection, as in a Transformer without positions."""
    w_q, w_k, w_v = weights
    return x + attention(x @ w_q, x @ w_k, x @ w_v, mask=mask)


# The softmax


@given(seeds, lengths, lengths)
def test_every_row_of_weights_is_a_distribution_over_the_keys(seed, rows, keys):
    weights = attention_weights(10 * vectors(seed, 2, rows, keys))
    assert weights.shape == (2, rows, keys) and (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=keys * EPS)


@given(seeds, lengths)
def test_weights_equal_the_definition(seed, keys):
    scores = vectors(seed, keys)
    raised = [math.exp(score) for score in scores]
    expected = [value / math.fsum(raised) for value in raised]
    np.testing.assert_allclose(attention_weights(scores), expected, rtol=16 * EPS)


@given(seeds, st.floats(-1e3, 1e3))
def test_a_constant_added_to_a_row_of_scores_changes_no_weight(seed, constant):
    scores = vectors(seed, 3, 5)
    difference = attention_weights(scores + constant) - attention_weights(scores)
    np.testing.assert_allclose(difference, 0, atol=4 * EPS * (1 + abs(constant)))


def test_large_scores_neither_overflow_nor_warn():
    np.testing.assert_array_equal(
        attention_weights([[1e300, -1e300], [-1e300, -1e300]]), [[1, 0], [0.5, 0.5]]
    )


def test_a_row_that_may_see_nothing_gets_zeros():
    mask = np.array([[False, False], [True, False]])
    weights = attention_weights(attention_scores(vectors(0, 2, 4), vectors(1, 2, 4), mask=mask))
    np.testing.assert_array_equal(weights, [[0, 0], [1, 0]])
    output = attention(vectors(0, 2, 4), vectors(1, 2, 4), vectors(2, 2, 3), mask=mask)
    np.testing.assert_array_equal(output, [np.zeros(3), vectors(2, 2, 3)[0]])


def test_without_any_key_the_output_is_zero():
    output = attention(np.ones((2, 4)), np.empty((0, 4)), np.empty((0, 3)))
    np.testing.assert_array_equal(output, np.zeros((2, 3)))


# Scores


@given(seeds, lengths, lengths, lengths)
def test_scores_equal_the_sum_of_products_over_the_root_of_the_width(seed, queries, keys, head_dim):
    q, k = vectors(seed, 2, queries, head_dim), vectors(seed + 1, 2, keys, head_dim)
    expected = [
        [
            [math.fsum(a * b for a, b in zip(row, key, strict=True)) / math.sqrt(head_dim) for key in k[n]]
            for row in q[n]
        ]
        for n in range(2)
    ]
    np.testing.assert_allclose(attention_scores(q, k), expected, rtol=0, atol=rounding(q, k, terms=head_dim))


def test_scores_of_unit_variance_vectors_have_unit_variance():
    q, k = vectors(0, 300, 128), vectors(1, 300, 128)
    three_sigma = 3 / math.sqrt(300)  # as if only the 300 rows were independent
    assert abs(attention_scores(q, k).std() - 1) < three_sigma
    assert abs(attention_scores(q, k, scale=1.0).std() - math.sqrt(128)) < three_sigma * math.sqrt(128)


def test_a_bias_is_added_after_scaling():
    q, k, bias = vectors(0, 3, 16), vectors(1, 4, 16), vectors(2, 3, 4)
    np.testing.assert_array_equal(attention_scores(q, k, bias=bias), attention_scores(q, k) + bias)
    halved = attention_scores(q, k, scale=0.5, bias=bias)
    np.testing.assert_allclose(halved, (q @ k.T) * 0.5 + bias, rtol=0, atol=rounding(q, k, terms=16))


def test_a_mask_is_true_where_a_query_may_look():
    q, k, mask = vectors(0, 2, 3, 4), vectors(1, 2, 5, 4), vectors(2, 3, 5) > 0
    scores = attention_scores(q, k, mask=mask)
    np.testing.assert_array_equal(scores == -np.inf, np.broadcast_to(~mask, scores.shape))
    np.testing.assert_array_equal(scores[:, mask], attention_scores(q, k)[:, mask])
    np.testing.assert_array_equal(scores, attention_scores(q, k, bias=np.where(mask, 0.0, -np.inf)))


@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (1, 1, 1, 5), (2, 1, 3, 1), (2, 4, 1, 1), (1, 1, 1, 1)])
def test_a_mask_and_a_bias_may_share_every_axis_with_a_1(shape):
    """A padding mask of keys, (batch, 1, 1, key_len), is what users write."""
    q, k, bias = vectors(0, 2, 4, 3, 6), vectors(1, 2, 4, 5, 6), vectors(2, *shape)
    full = np.broadcast_to(bias, (2, 4, 3, 5))
    np.testing.assert_array_equal(
        attention_scores(q, k, mask=bias > 0), attention_scores(q, k, mask=full > 0)
    )
    np.testing.assert_array_equal(attention_scores(q, k, bias=bias), attention_scores(q, k, bias=full))


def test_one_row_of_a_mask_serves_all_queries_where_scores_have_two_axes():
    q, k, mask = vectors(0, 3, 6), vectors(1, 5, 6), np.array([[True, True, False, True, False]])
    full = np.broadcast_to(mask, (3, 5))
    np.testing.assert_array_equal(attention_scores(q, k, mask=mask), attention_scores(q, k, mask=full))


@given(seeds)
def test_a_masked_key_has_no_influence(seed):
    q, k, v = vectors(seed, 3, 4, 6)
    mask = np.ones((4, 4), dtype=bool)
    mask[:, 2] = False
    without = attention(q, np.delete(k, 2, axis=0), np.delete(v, 2, axis=0))
    k[2], v[2] = 1e6, 1e6
    np.testing.assert_allclose(
        attention(q, k, v, mask=mask), without, rtol=0, atol=rounding(q, terms=24) * 16
    )


def test_scores_are_symmetric_only_if_queries_and_keys_are_projected_alike():
    x, w_q, w_k = vectors(0, 5, 8), vectors(1, 8, 8), vectors(2, 8, 8)
    scores = attention_scores(x @ w_q, x @ w_k)
    assert np.abs(scores - scores.T).max() > 1
    alike = attention_scores(x @ w_q, x @ w_q)
    np.testing.assert_allclose(alike, alike.T, rtol=0, atol=rounding(x @ w_q, x @ w_q, terms=8))


# Order


@given(seeds, st.integers(2, 9))
def test_unmasked_attention_is_equivariant(seed, length):
    x, weights = vectors(seed, length, 6), vectors(seed + 1, 3, 6, 6) / 6
    order = np.random.default_rng(seed).permutation(length)
    shuffled_after, shuffled_before = layer(x, weights)[order], layer(x[order], weights)
    np.testing.assert_allclose(
        shuffled_before, shuffled_after, rtol=0, atol=rounding(x, x, x, terms=6 * length)
    )


def test_it_is_not_invariant_but_its_mean_is():
    x, weights = vectors(0, 5, 6), vectors(1, 3, 6, 6) / 6
    before, after = layer(x, weights), layer(x[::-1], weights)
    assert np.abs(before - after).max() > 1
    np.testing.assert_allclose(
        before.mean(axis=0), after.mean(axis=0), rtol=0, atol=rounding(x, x, x, terms=30)
    )


def test_causal_attention_is_not_equivariant():
    x, weights = vectors(0, 5, 6), vectors(1, 3, 6, 6) / 6
    mask = causal_mask(np.arange(5), np.arange(5))
    assert np.abs(layer(x[::-1], weights, mask) - layer(x, weights, mask)[::-1]).max() > 0.1


@given(seeds)
def test_after_one_causal_layer_the_last_token_is_blind_to_the_order_before_it(seed):
    x, weights = vectors(seed, 6, 4), vectors(seed + 1, 3, 4, 4) / 4
    mask = causal_mask(np.arange(6), np.arange(6))
    order = [*np.random.default_rng(seed).permutation(5), 5]
    before, after = layer(x, weights, mask)[-1], layer(x[order], weights, mask)[-1]
    np.testing.assert_allclose(before, after, rtol=0, atol=rounding(x, x, x, terms=24))


def test_after_two_causal_layers_the_last_token_sees_the_order():
    x, weights = vectors(0, 6, 4), vectors(1, 2, 3, 4, 4)
    mask = causal_mask(np.arange(6), np.arange(6))
    two_layers = lambda y: layer(layer(y, weights[0], mask), weights[1], mask)[-1]  # noqa: E731
    assert np.abs(two_layers(x) - two_layers(x[[4, 3, 2, 1, 0, 5]])).max() > 0.1


# Masks and caches


@given(st.lists(st.integers(-20, 20), max_size=6), st.lists(st.integers(-20, 20), max_size=6))
def test_a_causal_mask_compares_positions_not_indices(queries, keys):
    mask = causal_mask(queries, keys)
    assert mask.dtype == bool and mask.shape == (len(queries), len(keys))
    assert mask.tolist() == [[key <= query for key in keys] for query in queries]


def test_without_a_cache_the_causal_mask_is_the_lower_triangle():
    np.testing.assert_array_equal(causal_mask(np.arange(5), np.arange(5)), np.tri(5, dtype=bool))


def test_with_a_cache_the_causal_mask_is_the_last_rows_not_the_first():
    mask = causal_mask(np.arange(3, 5), np.arange(5))
    np.testing.assert_array_equal(mask, np.tri(5, dtype=bool)[3:])
    assert (mask != np.tri(2, 5, dtype=bool)).any()


def test_causal_masks_of_a_batch_carry_its_axes():
    places = np.array([[0, 0, 1], [0, 1, 2]])[:, np.newaxis]
    mask = causal_mask(places, places)
    assert mask.shape == (2, 1, 3, 3)
    np.testing.assert_array_equal(mask[0, 0], [[1, 1, 0], [1, 1, 0], [1, 1, 1]])


def causal_rope(q, k, v, query_positions, key_positions):
    inv_freq = inverse_frequencies(q.shape[-1])
    q = apply_rope(q, *rotation_table(query_positions, inv_freq))
    k = apply_rope(k, *rotation_table(key_positions, inv_freq))
    return attention(q, k, v, mask=causal_mask(query_positions, key_positions))


@given(seeds, st.integers(1, 3), st.integers(0, 10**4))
def test_token_by_token_with_a_cache_equals_all_at_once(seed, step, start):
    q, k, v = vectors(seed, 4, 7, 8), vectors(seed + 1, 2, 7, 8), vectors(seed + 2, 2, 7, 5)
    places = start + np.arange(7)
    full = causal_rope(q, k, v, places, places)
    for begin in range(0, 7, step):
        end = min(begin + step, 7)
        part = causal_rope(q[:, begin:end], k[:, :end], v[:, :end], places[begin:end], places[:end])
        np.testing.assert_allclose(part, full[:, begin:end], rtol=0, atol=rounding(q, k, v, terms=8 * 7))


def test_left_padding_changes_nothing_for_the_real_tokens():
    q, k, v = vectors(0, 3, 1, 2, 5, 8)
    places = np.array([[0, 0, 0, 1, 2]])[:, np.newaxis]
    real = np.array([False, False, True, True, True])
    table = rotation_table(places, inverse_frequencies(8))
    mask = causal_mask(places, places) & real
    padded = attention(apply_rope(q, *table), apply_rope(k, *table), v, mask=mask)
    alone = causal_rope(q[..., 2:, :], k[..., 2:, :], v[..., 2:, :], np.arange(3), np.arange(3))
    np.testing.assert_allclose(padded[..., 2:, :], alone, rtol=0, atol=rounding(q, k, v, terms=8 * 5))


# Heads, batches, dtypes


@given(seeds, st.integers(1, 3), st.integers(1, 4))
def test_grouped_query_attention_equals_attention_with_repeated_heads(seed, key_heads, group):
    q = vectors(seed, 2, key_heads * group, 3, 4)
    k, v = vectors(seed + 1, 2, key_heads, 5, 4), vectors(seed + 2, 2, key_heads, 5, 6)
    output = attention(q, k, v)
    assert output.shape == (2, key_heads * group, 3, 6)
    for head in range(key_heads * group):
        alone = attention(q[:, head], k[:, head // group], v[:, head // group])
        np.testing.assert_allclose(output[:, head], alone, rtol=0, atol=rounding(q, k, v, terms=4 * 5))


def test_every_element_of_a_batch_is_on_its_own():
    q, k, v, bias = (
        vectors(0, 2, 3, 4, 6),
        vectors(1, 2, 3, 5, 6),
        vectors(2, 2, 3, 5, 2),
        vectors(3, 1, 3, 4, 5),
    )
    output = attention(q, k, v, bias=bias)
    for batch, head in np.ndindex(2, 3):
        alone = attention(q[batch, head], k[batch, head], v[batch, head], bias=bias[0, head])
        np.testing.assert_allclose(output[batch, head], alone, rtol=0, atol=rounding(q, k, v, terms=6 * 5))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_output_has_the_dtype_of_the_values_and_is_rounded_once(dtype):
    q, k, v = vectors(0, 3, 4, 6).astype(dtype)
    output = attention(q, k, v)
    assert output.dtype == dtype
    np.testing.assert_array_equal(output, attention(*(x.astype(float) for x in (q, k, v))).astype(dtype))
    assert attention_scores(q, k).dtype == attention_weights(q).dtype == np.float64
