"""Theorems about the rotary embedding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.frequencies import inverse_frequencies, rotation_angles
from companion.rope import apply_rope, pairing_permutation, rotation_matrix, rotation_table

EPS = np.finfo(np.float64).eps
both_pairings = pytest.mark.parametrize("pairing", ["half", "adjacent"])
seeds = st.integers(0, 2**32 - 1)
head_dims = st.integers(1, 64).map(lambda half_dim: 2 * half_dim)
positions = st.integers(-(10**5), 10**5)


def vectors(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def turn(x, positions, pairing="half", base=10000.0):
    """Turn x, whose rows stand at `positions`."""
    cos, sin = rotation_table(positions, inverse_frequencies(x.shape[-1], base))
    return apply_rope(x, cos, sin, pairing=pairing)


def rounding(x, *positions):
    """Bound on the error of x turned by angles that were rounded at positions of this size."""
    return 4 * EPS * (1 + sum(map(abs, positions))) * np.abs(x).max()


@both_pairings
@given(seed=seeds, head_dim=head_dims)
def test_position_0_is_the_identity(pairing, seed, head_dim):
    x = vectors(seed, 1, head_dim)
    np.testing.assert_array_equal(turn(x, [0], pairing), x)


@both_pairings
@given(seed=seeds, head_dim=head_dims, position=positions)
def test_rotation_preserves_norm(pairing, seed, head_dim, position):
    x = vectors(seed, 1, head_dim)
    np.testing.assert_allclose(
        np.linalg.norm(turn(x, [position], pairing)), np.linalg.norm(x), rtol=head_dim * EPS
    )


@both_pairings
@given(seed=seeds, head_dim=head_dims, m=positions, n=positions, shift=positions)
def test_scores_depend_only_on_the_offset(pairing, seed, head_dim, m, n, shift):
    q, k = vectors(seed, 2, 1, head_dim)
    here = turn(q, [m], pairing) @ turn(k, [n], pairing).T
    there = turn(q, [m + shift], pairing) @ turn(k, [n + shift], pairing).T
    tolerance = head_dim * rounding(q, m, n, shift) * np.abs(k).max()
    np.testing.assert_allclose(here, there, rtol=0, atol=tolerance)


def test_scores_depend_on_the_content_and_on_the_sign_of_the_offset_too():
    q, k, other = vectors(1, 3, 1, 8)
    score = turn(q, [7]) @ turn(k, [4]).T
    assert abs(score - turn(q, [4]) @ turn(k, [7]).T) > 0.1
    assert abs(score - turn(q, [7]) @ turn(other, [4]).T) > 0.1


@given(seed=seeds, head_dim=head_dims, m=positions, n=positions)
def test_scores_equal_the_complex_form(seed, head_dim, m, n):
    """An independent formula: Re Σ q_j conj(k_j) e^{i(m−n)θ_j} on neighbouring pairs (RoFormer, Eq. 12)."""
    q, k = vectors(seed, 2, 1, head_dim)
    complex_q, complex_k = (x[0, 0::2] + 1j * x[0, 1::2] for x in (q, k))
    speeds = np.exp(-np.log(10000.0) * np.arange(head_dim // 2) / (head_dim // 2))
    expected = (complex_q * complex_k.conj() * np.exp(1j * (m - n) * speeds)).sum().real
    score = turn(q, [m], "adjacent") @ turn(k, [n], "adjacent").T
    speed_error = np.log(10000.0)  # both sides round the exponent of the power
    tolerance = head_dim * speed_error * rounding(q, m, n) * np.abs(k).max()
    np.testing.assert_allclose(score, [[expected]], rtol=0, atol=tolerance)


@both_pairings
@given(seed=seeds, head_dim=head_dims, first=positions, second=positions)
def test_turning_twice_is_turning_by_the_sum(pairing, seed, head_dim, first, second):
    x = vectors(seed, 1, head_dim)
    twice = turn(turn(x, [first], pairing), [second], pairing)
    once = turn(x, [first + second], pairing)
    np.testing.assert_allclose(twice, once, rtol=0, atol=2 * rounding(x, first, second))


@both_pairings
@given(seed=seeds, head_dim=head_dims, position=positions)
def test_turning_equals_the_matrix(pairing, seed, head_dim, position):
    x = vectors(seed, 1, head_dim)
    matrix = rotation_matrix(rotation_angles(position, inverse_frequencies(head_dim)), pairing=pairing)
    np.testing.assert_allclose(turn(x, [position], pairing)[0], matrix @ x[0], rtol=0, atol=rounding(x))


@both_pairings
@given(seed=seeds, half_dim=st.integers(1, 16))
def test_the_matrix_is_orthogonal_with_determinant_1(pairing, seed, half_dim):
    matrix = rotation_matrix(vectors(seed, half_dim), pairing=pairing)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(2 * half_dim), rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(np.linalg.det(matrix), 1, rtol=8 * half_dim * EPS)


@both_pairings
@given(m=positions, n=positions, head_dim=head_dims)
def test_the_transpose_of_one_rotation_times_another_is_their_difference(pairing, m, n, head_dim):
    inv_freq = inverse_frequencies(head_dim)
    r_m, r_n, r_gap = rotation_matrix(rotation_angles([m, n, n - m], inv_freq), pairing=pairing)
    np.testing.assert_allclose(r_m.T @ r_n, r_gap, rtol=0, atol=rounding(np.ones(1), m, n))


def test_one_pair_turns_counter_clockwise():
    quarter = rotation_matrix([np.pi / 2])
    np.testing.assert_allclose(quarter @ [1, 0], [0, 1], atol=EPS)
    cos, sin = rotation_table([1], [np.pi / 2])
    np.testing.assert_allclose(apply_rope(np.array([[1.0, 0.0]]), cos, sin), [[0, 1]], atol=EPS)


@given(seed=seeds, head_dim=head_dims, position=positions)
def test_pairings_agree_up_to_permutation(seed, head_dim, position):
    x = vectors(seed, 1, head_dim)
    perm = pairing_permutation(head_dim)
    assert sorted(perm) == list(range(head_dim))
    np.testing.assert_array_equal(
        turn(x[..., perm], [position], "half"), turn(x, [position], "adjacent")[..., perm]
    )


def test_permuted_projections_give_the_same_scores_in_the_other_pairing():
    """What a checkpoint converter does; with q and k as they are, the scores differ."""
    x, w_q, w_k = vectors(1, 5, 8), vectors(2, 8, 8), vectors(3, 8, 8)
    perm, places = pairing_permutation(8), np.arange(5)
    meta = turn(x @ w_q.T, places, "adjacent") @ turn(x @ w_k.T, places, "adjacent").T
    converted = turn(x @ w_q[perm].T, places, "half") @ turn(x @ w_k[perm].T, places, "half").T
    forgotten = turn(x @ w_q.T, places, "half") @ turn(x @ w_k.T, places, "half").T
    np.testing.assert_allclose(converted, meta, rtol=0, atol=64 * EPS * np.abs(meta).max())
    assert np.abs(forgotten - meta).max() > 0.1


@pytest.mark.parametrize(
    ("pairing", "key"),
    [("half", "half_split_llama_hf_neox"), ("adjacent", "interleaved_gptj_meta_roformer")],
)
def test_turned_vectors_equal_the_goldens(goldens, pairing, key):
    twelve_digits = 0.5e-11
    for case in goldens["apply_rotary"]:
        turned = turn(np.array(case["x"]), case["positions"], pairing, case["base"])
        np.testing.assert_allclose(turned, case[key], rtol=twelve_digits)


@both_pairings
@given(seed=seeds, rotary_dim=st.integers(1, 8).map(lambda n: 2 * n), rest=st.integers(0, 9))
def test_a_partly_turned_head_is_a_small_turned_head_and_a_copy(pairing, seed, rotary_dim, rest):
    x = vectors(seed, 3, rotary_dim + rest)
    cos, sin = rotation_table([0, 1, 9], inverse_frequencies(rotary_dim))
    turned = apply_rope(x, cos, sin, pairing=pairing, rotary_dim=rotary_dim)
    small = apply_rope(x[:, :rotary_dim], cos, sin, pairing=pairing)
    np.testing.assert_array_equal(turned, np.hstack([small, x[:, rotary_dim:]]))


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (2, 1, 3)])
def test_one_table_serves_every_batch_and_head(batch):
    x = vectors(0, *batch, 7, 6)
    cos, sin = rotation_table(np.arange(7), inverse_frequencies(6))
    turned = apply_rope(x, cos, sin)
    for index in np.ndindex(*batch):
        np.testing.assert_array_equal(turned[index], apply_rope(x[index], cos, sin))


def test_left_padded_rows_turn_as_if_they_were_not_padded():
    x = vectors(0, 2, 3, 5, 6)  # batch heads seq_len head_dim; the first row has 2 padding tokens in front
    places = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])[:, np.newaxis]
    turned = turn(x, places)
    np.testing.assert_allclose(turned[0, :, 2:], turn(x[0, :, 2:], [0, 1, 2]), rtol=0, atol=rounding(x))
    np.testing.assert_allclose(turned[1], turn(x[1], np.arange(5)), rtol=0, atol=rounding(x))


def test_a_table_of_the_batch_is_never_laid_on_the_heads():
    """With as many heads as rows NumPy would lay (batch, seq_len, half_dim) on the heads without a word."""
    x = vectors(0, 3, 3, 5, 6)
    cos, sin = rotation_table(np.arange(15).reshape(3, 5), inverse_frequencies(6))
    with pytest.raises(ValueError, match=r"as many axes as x \(3, 3, 5, 6\)"):
        apply_rope(x, cos, sin)
    apply_rope(x, cos[:, np.newaxis], sin[:, np.newaxis])


def test_positions_may_repeat_and_come_in_any_order():
    x = vectors(0, 4, 6)
    turned = turn(x, [5, 0, 5, -3])
    for row, position in enumerate([5, 0, 5, -3]):
        alone = turn(x[row : row + 1], [position])
        np.testing.assert_allclose(turned[row : row + 1], alone, rtol=0, atol=rounding(x))


def test_the_attention_factor_multiplies_both_tables_so_scores_get_its_square():
    q, k = vectors(0, 2, 4, 6)
    inv_freq = inverse_frequencies(6)
    plain, scaled = (rotation_table(np.arange(4), inv_freq, attention_factor=f) for f in (1.0, 1.5))
    scores = apply_rope(q, *plain) @ apply_rope(k, *plain).T
    warmer = apply_rope(q, *scaled) @ apply_rope(k, *scaled).T
    np.testing.assert_allclose(warmer, 2.25 * scores, rtol=0, atol=32 * EPS * np.abs(scores).max())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_of_x_is_kept_and_only_the_result_is_rounded(dtype):
    x = vectors(0, 2, 63, 8).astype(dtype)
    before = x.copy()
    turned = turn(x, 1000 * np.arange(63))
    exact = turn(x.astype(np.float64), 1000 * np.arange(63))
    assert turned.dtype == dtype
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(turned, exact.astype(dtype))


def test_strided_input_and_empty_sequences_are_fine():
    x = vectors(0, 6, 2, 4).swapaxes(0, 1)
    np.testing.assert_array_equal(turn(x, np.arange(6)), turn(x.copy(), np.arange(6)))
    assert turn(np.empty((2, 0, 4)), []).shape == (2, 0, 4)


@both_pairings
def test_matrices_come_one_for_each_position(pairing):
    angles = rotation_angles(np.arange(6).reshape(2, 3), inverse_frequencies(4))
    matrices = rotation_matrix(angles, pairing=pairing)
    assert matrices.shape == (2, 3, 4, 4)
    alone = rotation_matrix(angles[1, 2], pairing=pairing)
    np.testing.assert_allclose(matrices[1, 2], alone, rtol=0, atol=rounding(alone))


@pytest.mark.parametrize("shape", [(1, 2), (7, 6), (2, 3, 7, 10)])
def test_single_precision_neighbours_turn_as_in_double_precision(shape):
    """They take a way of their own, as complex numbers; a view that is not contiguous takes the usual one."""
    x = vectors(5, *shape).astype(np.float32)
    cos, sin = (
        t.astype(np.float32) for t in rotation_table(np.arange(shape[-2]), inverse_frequencies(shape[-1]))
    )
    exact = apply_rope(
        x.astype(np.float64), cos.astype(np.float64), sin.astype(np.float64), pairing="adjacent"
    )
    bound = 4 * np.finfo(np.float32).eps * np.abs(x).max()
    for rows in (x, np.repeat(x, 2, axis=-1)[..., ::2]):
        got = apply_rope(rows, cos, sin, pairing="adjacent")
        assert got.dtype == np.float32 and np.abs(got - exact).max() <= bound
