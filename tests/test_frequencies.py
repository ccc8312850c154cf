"""Theorems about the speed of each pair."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.frequencies import inverse_frequencies, rotation_angles, wavelengths

EPS = np.finfo(np.float64).eps
TWELVE_DIGITS = 0.5e-11  # half a unit in the last printed digit of a golden value, relative
head_dims = st.integers(1, 128).map(lambda half_dim: 2 * half_dim)
bases = st.floats(1.5, 1e7)


def float32_error(base):
    """Relative error of a power whose exponent, at most 1, and result are rounded to float32."""
    return np.finfo(np.float32).eps / 2 * (1 + np.log(base))


@given(head_dims, bases)
def test_there_are_half_as_many_speeds_as_dimensions_and_the_first_is_one_radian(head_dim, base):
    inv_freq = inverse_frequencies(head_dim, base)
    assert inv_freq.shape == (head_dim // 2,) and inv_freq.dtype == np.float64
    assert inv_freq[0] == 1.0


@given(head_dims, bases)
def test_every_pair_is_slower_than_the_one_before_by_the_same_ratio(head_dim, base):
    inv_freq = inverse_frequencies(head_dim, base)
    exponent_error = 2 * EPS * np.log(base)  # the exponent, at most 1, is rounded before the power is taken
    np.testing.assert_allclose(
        inv_freq[1:] / inv_freq[:-1], base ** (-2 / head_dim), rtol=4 * EPS + exponent_error
    )


@given(head_dims, st.integers(2, 10**7))
def test_speeds_equal_exact_decimal_arithmetic(head_dim, base):
    with localcontext() as context:
        context.prec = 40
        exact = [float(Decimal(base) ** (Decimal(-2 * i) / head_dim)) for i in range(head_dim // 2)]
    np.testing.assert_allclose(inverse_frequencies(head_dim, base), exact, rtol=2 * EPS * (1 + np.log(base)))


def test_speeds_equal_the_goldens(goldens):
    for case in goldens["rope_init"]:
        inv_freq = inverse_frequencies(case["head_dim"], case["base"])
        np.testing.assert_allclose(inv_freq, case["ref_inv_freq"], rtol=TWELVE_DIGITS, err_msg=case["id"])
        np.testing.assert_allclose(inv_freq, case["peer_inv_freq"], rtol=float32_error(case["base"]))


def test_partial_rotary_speeds_span_the_turned_dimensions_not_the_head(goldens):
    for case in goldens["partial_rotary_default"]:
        inv_freq = inverse_frequencies(case["rotary_dim"], case["base"])
        np.testing.assert_allclose(inv_freq, case["ref_inv_freq"], rtol=TWELVE_DIGITS)
        np.testing.assert_allclose(inv_freq, case["peer_inv_freq"], rtol=float32_error(case["base"]))


def test_the_default_base_is_ten_thousand():
    np.testing.assert_array_equal(inverse_frequencies(64), inverse_frequencies(64, 10000))


@given(head_dims, bases)
def test_after_one_wavelength_a_pair_has_made_one_turn(head_dim, base):
    inv_freq = inverse_frequencies(head_dim, base)
    angles = rotation_angles(wavelengths(inv_freq), inv_freq)
    np.testing.assert_allclose(np.diag(angles), 2 * np.pi, rtol=2 * EPS)


def test_the_slowest_wavelength_at_width_512_is_60611_tokens_not_62832():
    assert round(wavelengths(inverse_frequencies(512))[-1]) == 60611


def test_a_pair_that_does_not_turn_has_an_infinite_wavelength():
    np.testing.assert_array_equal(wavelengths([1.0, 0.0]), [2 * np.pi, np.inf])


@given(st.lists(st.integers(-(10**6), 10**6), max_size=5), head_dims)
def test_the_angle_is_position_times_speed(positions, head_dim):
    inv_freq = inverse_frequencies(head_dim)
    angles = rotation_angles(positions, inv_freq)
    assert angles.shape == (len(positions), head_dim // 2)
    for row, position in zip(angles, positions, strict=True):
        np.testing.assert_array_equal(row, [position * speed for speed in inv_freq.tolist()])


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 3)])
def test_positions_may_have_any_shape(shape):
    positions = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    assert rotation_angles(positions, inverse_frequencies(6)).shape == (*shape, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_angles_are_float64_whatever_the_positions_are(dtype):
    angles = rotation_angles(np.array([0, 100], dtype=dtype), [1.0, 0.1])
    assert angles.dtype == np.float64
    np.testing.assert_array_equal(angles, [[0, 0], [100, 100 * 0.1]])


def test_half_the_speed_at_a_position_is_the_speed_at_half_the_position():
    """Position interpolation may scale either."""
    inv_freq = inverse_frequencies(16)
    np.testing.assert_array_equal(rotation_angles([1.5, 7], inv_freq), rotation_angles([3, 14], inv_freq / 2))
