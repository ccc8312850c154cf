"""Theorems about the ways to slow pairs down for longer texts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.frequencies import inverse_frequencies, rotation_angles
from companion.frequency_scaling import (
    dynamic_ntk,
    llama3,
    longrope,
    longrope_attention_factor,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    proportional,
    yarn,
    yarn_attention_factor,
)

EPS = np.finfo(np.float64).eps
TWELVE_DIGITS = 0.5e-11  # half a unit in the last printed digit of a golden value, relative
PEER_ROUNDING = 3e-6  # a few roundings to float32 in the peer's chain of powers, quotients and blends
head_dims = st.integers(2, 64).map(lambda half_dim: 2 * half_dim)
bases = st.floats(1e3, 1e7)
factors = st.floats(1, 64)
lengths = st.integers(64, 2**17)


def cases(goldens, *rope_types):
    found = [case for case in goldens["rope_scaling"] if case["inputs"]["rope_type"] in rope_types]
    assert found
    return found


def plain(case):
    """The speeds before scaling of a golden case, with its parameters."""
    parameters = case["inputs"]["rope_parameters"]
    rotary_dim = int(case["inputs"]["head_dim"] * parameters.get("partial_rotary_factor", 1.0))
    return inverse_frequencies(rotary_dim, parameters["rope_theta"]), parameters


def equal_to_goldens(inv_freq, case):
    np.testing.assert_allclose(inv_freq, case["ref_inv_freq"], rtol=TWELVE_DIGITS, err_msg=case["id"])
    np.testing.assert_allclose(inv_freq, case["peer_inv_freq"], rtol=PEER_ROUNDING, err_msg=case["id"])


# Golden values


def test_position_interpolation_equals_the_goldens(goldens):
    for case in cases(goldens, "linear"):
        inv_freq, parameters = plain(case)
        equal_to_goldens(position_interpolation(inv_freq, parameters["factor"]), case)


def test_dynamic_ntk_equals_the_goldens_whatever_was_asked_before(goldens):
    for case in cases(goldens, "dynamic")[::-1]:  # long texts first: a memory would show
        inv_freq, parameters = plain(case)
        train_len = case["inputs"]["max_position_embeddings"]
        seq_len = case["inputs"]["seq_len"] or train_len
        equal_to_goldens(dynamic_ntk(inv_freq, seq_len, train_len, parameters["factor"]), case)


def test_yarn_equals_the_goldens(goldens):
    for case in cases(goldens, "yarn"):
        inv_freq, parameters = plain(case)
        options = {k: parameters[k] for k in ("beta_fast", "beta_slow", "truncate") if k in parameters}
        train_len = parameters["original_max_position_embeddings"]
        scaled = yarn(inv_freq, parameters["factor"], train_len, base=parameters["rope_theta"], **options)
        equal_to_goldens(scaled, case)


def test_ntk_by_parts_equals_the_ramp_of_the_paper_and_not_that_of_the_code(goldens):
    for case in cases(goldens, "yarn"):
        inv_freq, parameters = plain(case)
        paper = ntk_by_parts(inv_freq, parameters["factor"], parameters["original_max_position_embeddings"])
        golden = case["paper_eq18_ramp_in_r"]
        np.testing.assert_allclose(paper, golden["inv_freq"], rtol=TWELVE_DIGITS, err_msg=case["id"])
        apart = np.abs(np.array(case["ref_inv_freq"]) / paper - 1)
        np.testing.assert_allclose(apart.max(), golden["max_rel_diff_code_vs_paper"], rtol=1e-2, atol=1e-11)


def test_for_llama_2_at_8_the_code_turns_a_pair_more_than_twice_as_fast_as_the_paper():
    inv_freq = inverse_frequencies(128)
    ratio = yarn(inv_freq, 8, 4096) / ntk_by_parts(inv_freq, 8, 4096)
    assert ratio.argmax() == 36 and 2.2 < ratio.max() < 2.4


def test_llama3_equals_the_goldens(goldens):
    for case in cases(goldens, "llama3"):
        inv_freq, parameters = plain(case)
        options = {k: parameters[k] for k in ("low_freq_factor", "high_freq_factor")}
        train_len = parameters["original_max_position_embeddings"]
        equal_to_goldens(llama3(inv_freq, parameters["factor"], train_len, **options), case)


def test_longrope_equals_the_goldens(goldens):
    for case in cases(goldens, "longrope"):
        inv_freq, parameters = plain(case)
        lists = parameters["short_factor"], parameters["long_factor"]
        train_len = parameters["original_max_position_embeddings"]
        equal_to_goldens(longrope(inv_freq, *lists, case["inputs"]["seq_len"], train_len), case)
        factor = case["inputs"]["max_position_embeddings"] / train_len
        attention_factor = longrope_attention_factor(factor, train_len)
        np.testing.assert_allclose(attention_factor, case["ref_attention_factor"], rtol=4 * EPS)


def test_proportional_equals_the_goldens(goldens):
    for case in cases(goldens, "proportional"):
        parameters = case["inputs"]["rope_parameters"]
        fraction, base = parameters["partial_rotary_factor"], parameters["rope_theta"]
        equal_to_goldens(proportional(case["inputs"]["head_dim"], fraction, base), case)


def test_the_attention_factor_of_yarn_equals_the_goldens(goldens):
    for case in cases(goldens, "yarn"):
        parameters = case["inputs"]["rope_parameters"]
        if "attention_factor" in parameters:
            continue
        weights = {k: parameters.get(k) for k in ("mscale", "mscale_all_dim")}
        attention_factor = yarn_attention_factor(parameters["factor"], **weights)
        np.testing.assert_allclose(attention_factor, case["ref_attention_factor"], rtol=4 * EPS)


# What all methods have in common

METHODS = {
    "position_interpolation": lambda inv_freq, base, s, length: position_interpolation(inv_freq, s),
    "ntk_aware": lambda inv_freq, base, s, length: ntk_aware(inv_freq, s),
    "ntk_by_parts": lambda inv_freq, base, s, length: ntk_by_parts(inv_freq, s, length),
    "yarn": lambda inv_freq, base, s, length: yarn(inv_freq, s, length, base=base),
    "llama3": lambda inv_freq, base, s, length: llama3(inv_freq, s, length),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


@every_method
@given(head_dim=head_dims, base=bases, length=lengths)
def test_a_factor_of_1_is_the_identity(method, head_dim, base, length):
    inv_freq = inverse_frequencies(head_dim, base)
    np.testing.assert_allclose(method(inv_freq, base, 1, length), inv_freq, rtol=2 * EPS)


@every_method
@given(head_dim=head_dims, base=bases, s=factors, length=lengths)
def test_every_speed_lies_between_the_old_one_and_the_old_one_over_the_factor(
    method, head_dim, base, s, length
):
    inv_freq = inverse_frequencies(head_dim, base)
    before = inv_freq.copy()
    scaled = method(inv_freq, base, s, length)
    assert scaled.shape == inv_freq.shape and scaled.dtype == np.float64
    assert (scaled <= inv_freq * (1 + 4 * EPS)).all()
    assert (scaled >= inv_freq / s * (1 - 4 * EPS)).all()
    np.testing.assert_array_equal(inv_freq, before)


@every_method
@given(head_dim=head_dims, base=bases, s=factors, length=lengths)
def test_the_order_of_the_speeds_is_kept(method, head_dim, base, s, length):
    scaled = method(inverse_frequencies(head_dim, base), base, s, length)
    assert (np.diff(scaled) < 0).all()


# Position interpolation and NTK


@given(head_dims, st.integers(1, 64), st.integers(-1000, 1000))
def test_interpolated_speeds_reach_at_s_times_the_position_the_angle_of_the_position(head_dim, s, position):
    inv_freq = inverse_frequencies(head_dim)
    far = rotation_angles(s * position, position_interpolation(inv_freq, s))
    np.testing.assert_allclose(far, rotation_angles(position, inv_freq), rtol=4 * EPS)


@given(head_dims, bases, factors)
def test_ntk_aware_is_a_larger_base(head_dim, base, s):
    larger = base * s ** (head_dim / (head_dim - 2))
    scaled = ntk_aware(inverse_frequencies(head_dim, base), s)
    np.testing.assert_allclose(
        scaled, inverse_frequencies(head_dim, larger), rtol=16 * EPS * (1 + np.log(larger))
    )


@given(head_dims, bases, factors)
def test_ntk_aware_keeps_the_first_pair_and_divides_the_last_by_exactly_the_factor(head_dim, base, s):
    inv_freq = inverse_frequencies(head_dim, base)
    scaled = ntk_aware(inv_freq, s)
    assert scaled[0] == 1.0
    np.testing.assert_allclose(scaled[-1], inv_freq[-1] / s, rtol=2 * EPS)


@given(head_dims, lengths, st.integers(1, 2**17), factors)
def test_dynamic_ntk_changes_nothing_up_to_the_trained_length(head_dim, train_len, seq_len, factor):
    inv_freq = inverse_frequencies(head_dim)
    short = dynamic_ntk(inv_freq, min(seq_len, train_len), train_len, factor)
    np.testing.assert_array_equal(short, inv_freq)


@given(head_dims, bases, lengths, st.floats(1, 16), factors)
def test_dynamic_ntk_is_the_base_that_transformers_computes(head_dim, base, train_len, stretch, factor):
    seq_len = math.ceil(train_len * stretch)
    larger = base * (factor * seq_len / train_len - (factor - 1)) ** (head_dim / (head_dim - 2))
    scaled = dynamic_ntk(inverse_frequencies(head_dim, base), seq_len, train_len, factor)
    cancelled = 4 * EPS * factor * seq_len / train_len  # factor · n/L − (factor − 1) loses digits
    np.testing.assert_allclose(
        scaled, inverse_frequencies(head_dim, larger), rtol=16 * EPS * (1 + np.log(larger)) + 2 * cancelled
    )


def test_with_a_factor_of_1_dynamic_ntk_stretches_by_the_length_over_the_trained_length():
    inv_freq = inverse_frequencies(64)
    np.testing.assert_array_equal(dynamic_ntk(inv_freq, 12288, 4096), ntk_aware(inv_freq, 3))


# Ramps


@given(head_dims, bases, factors, lengths, st.floats(0, 8), st.floats(0, 64))
def test_by_parts_fast_pairs_are_kept_and_slow_ones_divided(head_dim, base, s, length, alpha, width):
    inv_freq = inverse_frequencies(head_dim, base)
    scaled = ntk_by_parts(inv_freq, s, length, alpha=alpha, beta=alpha + width)
    turns = length * inv_freq / (2 * np.pi)
    fast, slow = turns > alpha + width, turns < alpha
    np.testing.assert_array_equal(scaled[fast], inv_freq[fast])
    np.testing.assert_allclose(scaled[slow], inv_freq[slow] / s, rtol=EPS)


def test_by_parts_the_weight_of_the_old_speed_rises_linearly_in_the_turns():
    inv_freq, s, length = inverse_frequencies(256, 500.0), 8, 1000
    turns = length * inv_freq / (2 * np.pi)
    middle = (turns > 1) & (turns < 32)
    weight = (ntk_by_parts(inv_freq, s, length) / inv_freq - 1 / s) / (1 - 1 / s)
    np.testing.assert_allclose(weight[middle], (turns[middle] - 1) / 31, rtol=0, atol=16 * EPS)
    assert middle.sum() > 50


def test_in_the_code_of_yarn_the_weight_falls_linearly_in_the_number_of_the_pair():
    inv_freq, s = inverse_frequencies(128), 8
    weight = (yarn(inv_freq, s, 4096) / inv_freq - 1 / s) / (1 - 1 / s)
    np.testing.assert_allclose(weight[20:47], 1 - np.arange(27) / 26, rtol=0, atol=16 * EPS)
    np.testing.assert_array_equal(weight[:20], 1)


def published_yarn(head_dim, base, s, length, beta_fast, beta_slow, truncate):
    """The code of the authors, pair by pair, after jquesnelle/yarn."""
    low, high = (
        head_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (beta_fast, beta_slow)
    )
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001
    speeds = []
    for pair in range(head_dim // 2):
        ramp = min(max((pair - low) / (high - low), 0), 1)
        speed = base ** (-2 * pair / head_dim)
        speeds.append(speed / s * ramp + speed * (1 - ramp))
    return speeds


@given(head_dims, bases, factors, lengths, st.floats(1, 64), st.floats(0.1, 1), st.booleans())
def test_yarn_equals_its_published_code(head_dim, base, s, length, beta_fast, beta_slow, truncate):
    scaled = yarn(
        inverse_frequencies(head_dim, base),
        s,
        length,
        base=base,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        truncate=truncate,
    )
    expected = published_yarn(head_dim, base, s, length, beta_fast, beta_slow, truncate)
    np.testing.assert_allclose(scaled, expected, rtol=8 * EPS * (1 + np.log(base)))


def test_the_ramp_ends_are_clamped_to_the_first_pair_and_to_one_less_than_the_width():
    short = yarn(inverse_frequencies(16), 4, 64)  # a text in which no pair makes 32 turns
    np.testing.assert_allclose(short[0], 1.0)
    np.testing.assert_allclose(short[1:3] * 4 / inverse_frequencies(16)[1:3], [3, 2], rtol=8 * EPS)
    long = yarn(inverse_frequencies(8, 10.0), 4, 1000, base=10.0)  # the slow end lies past the table
    np.testing.assert_allclose(long, published_yarn(8, 10.0, 4, 1000, 32, 1, True), rtol=8 * EPS)


def test_equal_ramp_ends_make_a_step_and_not_a_division_by_zero():
    scaled = yarn(inverse_frequencies(8), 4, 2, beta_fast=1, beta_slow=1)  # both ends clamped to 0
    assert np.isfinite(scaled).all() and scaled[0] == 1.0


def meta_llama3(speed, s, length, low_freq_factor, high_freq_factor):
    """`apply_scaling` of meta-llama/llama-models for one pair, in wavelengths."""
    wavelength = 2 * math.pi / speed
    if wavelength < length / high_freq_factor:
        return speed
    if wavelength > length / low_freq_factor:
        return speed / s
    smooth = (length / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)
    return (1 - smooth) * speed / s + smooth * speed


@given(head_dims, bases, factors, lengths, st.floats(0.5, 4), st.floats(0.1, 8))
def test_llama3_equals_the_code_of_meta(head_dim, base, s, length, low, width):
    inv_freq = inverse_frequencies(head_dim, base)
    scaled = llama3(inv_freq, s, length, low_freq_factor=low, high_freq_factor=low + width)
    expected = [meta_llama3(speed, s, length, low, low + width) for speed in inv_freq.tolist()]
    np.testing.assert_allclose(scaled, expected, rtol=64 * EPS * s * (1 + 8 / width))


@given(head_dims, bases, factors, lengths)
def test_llama3_is_ntk_by_parts_between_1_and_4_turns(head_dim, base, s, length):
    inv_freq = inverse_frequencies(head_dim, base)
    np.testing.assert_array_equal(
        llama3(inv_freq, s, length), ntk_by_parts(inv_freq, s, length, alpha=1, beta=4)
    )


def test_the_bands_of_llama_3_are_29_6_29_and_15_3_14_pairs():
    for head_dim, s, bands in [(128, 8, (29, 6, 29)), (64, 32, (15, 3, 14))]:
        inv_freq = inverse_frequencies(head_dim, 500000.0)
        ratio = inv_freq / llama3(inv_freq, s, 8192)
        assert bands == ((ratio == 1).sum(), ((ratio > 1) & (ratio < s)).sum(), (ratio == s).sum())


def test_a_middle_band_of_no_width_is_a_step():
    inv_freq = inverse_frequencies(128, 500000.0)
    scaled = llama3(inv_freq, 16, 8192, low_freq_factor=1, high_freq_factor=1)
    complete = 8192 * inv_freq / (2 * np.pi) >= 1
    np.testing.assert_array_equal(scaled, np.where(complete, inv_freq, inv_freq / 16))


# LongRoPE and p-RoPE


@given(st.integers(1, 2**17), st.integers(1, 2**17))
def test_longrope_uses_the_short_list_up_to_the_trained_length_inclusive(seq_len, train_len):
    scaled = longrope([1.0, 0.5], [1.0, 2.0], [4.0, 8.0], seq_len, train_len)
    np.testing.assert_array_equal(scaled, [1.0, 0.25] if seq_len <= train_len else [0.25, 0.0625])


@given(head_dims, st.floats(0, 1), bases)
def test_proportional_keeps_the_fastest_pairs_of_the_whole_head_and_stops_the_others(
    head_dim, fraction, base
):
    inv_freq, whole = proportional(head_dim, fraction, base), inverse_frequencies(head_dim, base)
    turning = int(fraction * head_dim // 2)
    np.testing.assert_array_equal(inv_freq[:turning], whole[:turning])
    np.testing.assert_array_equal(inv_freq[turning:], 0)


def test_proportional_with_1_is_rope_and_with_0_has_no_positions():
    np.testing.assert_array_equal(proportional(64, 1), inverse_frequencies(64))
    np.testing.assert_array_equal(proportional(64, 0), np.zeros(32))


# Attention factors


@given(factors)
def test_the_attention_factor_grows_with_the_logarithm_of_the_factor(s):
    np.testing.assert_allclose(yarn_attention_factor(s), 0.1 * math.log(s) + 1, rtol=EPS)


@given(factors, st.floats(0.1, 2), st.floats(0.1, 2))
def test_two_weights_give_a_quotient(s, over, under):
    quotient = (0.1 * over * math.log(s) + 1) / (0.1 * under * math.log(s) + 1)
    weighted = yarn_attention_factor(s, mscale=over, mscale_all_dim=under)
    np.testing.assert_allclose(weighted, quotient, rtol=4 * EPS)


@pytest.mark.parametrize(
    "weights", [{"mscale": 0.7}, {"mscale_all_dim": 0.7}, {"mscale": 0.7, "mscale_all_dim": 0}]
)
def test_one_weight_alone_or_0_leaves_the_usual_factor(weights):
    assert yarn_attention_factor(8, **weights) == yarn_attention_factor(8)


def test_without_stretching_attention_factors_are_1():
    assert yarn_attention_factor(1) == longrope_attention_factor(1, 4096) == 1.0
