"""Theorems about the sinusoidal position code."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.frequencies import inverse_frequencies
from companion.rope import pairing_permutation
from companion.sinusoidal import shift_matrix, sinusoidal_table

EPS = np.finfo(np.float64).eps
both_layouts = pytest.mark.parametrize("layout", ["adjacent", "half"])
widths = st.integers(1, 64).map(lambda half_dim: 2 * half_dim)
positions = st.integers(-(10**5), 10**5)


def phase_error(*numbers):
    """Bound on the error of a sine whose argument was rounded at positions or offsets of this size."""
    return 4 * EPS * (1 + sum(map(abs, numbers)))


@pytest.mark.parametrize(
    ("layout", "key"), [("adjacent", "paper_interleaved"), ("half", "concatenated_paper_frequencies")]
)
def test_the_table_equals_the_goldens(goldens, layout, key):
    ten_digits = 0.5e-9
    for case in goldens["sinusoidal"]:
        table = sinusoidal_table(np.arange(case["n"]), case["d"], layout=layout)
        np.testing.assert_allclose(table, case[key], rtol=ten_digits)


@given(positions, widths)
def test_the_table_equals_the_formula_of_the_paper(position, width):
    table = sinusoidal_table([position], width)[0]
    for i in range(width // 2):
        angle = position / 10000 ** (2 * i / width)
        error = phase_error(10 * position)  # the power carries the rounding of its exponent, times ln 10000
        assert math.isclose(table[2 * i], math.sin(angle), rel_tol=0, abs_tol=error)
        assert math.isclose(table[2 * i + 1], math.cos(angle), rel_tol=0, abs_tol=error)


@given(positions, widths)
def test_the_layouts_agree_up_to_permutation(position, width):
    adjacent, half = (sinusoidal_table([position], width, layout=name) for name in ("adjacent", "half"))
    np.testing.assert_array_equal(adjacent[..., pairing_permutation(width)], half)


@both_layouts
@given(position=positions, offset=positions, width=widths)
def test_one_matrix_moves_every_position_by_the_same_offset(layout, position, offset, width):
    before, after = sinusoidal_table([position, position + offset], width, layout=layout)
    moved = shift_matrix(offset, width, layout=layout) @ before
    np.testing.assert_allclose(moved, after, rtol=0, atol=phase_error(position, offset))


@both_layouts
@given(first=positions, second=positions, width=widths)
def test_two_shifts_are_one_shift_and_keep_lengths(layout, first, second, width):
    a, b, both = (shift_matrix(k, width, layout=layout) for k in (first, second, first + second))
    np.testing.assert_allclose(a @ b, both, rtol=0, atol=phase_error(first, second))
    np.testing.assert_allclose(a.T @ a, np.eye(width), rtol=0, atol=4 * EPS)


@both_layouts
def test_a_shift_by_nothing_is_the_identity(layout):
    np.testing.assert_array_equal(shift_matrix(0, 6, layout=layout), np.eye(6))


@both_layouts
@given(p=positions, q=positions, width=widths)
def test_the_product_of_two_codes_depends_on_their_distance_only(layout, p, q, width):
    code_p, code_q, code_0, code_gap = sinusoidal_table([p, q, 0, abs(p - q)], width, layout=layout)
    cosines = np.cos(abs(p - q) * inverse_frequencies(width)).sum()
    tolerance = width * phase_error(p, q)
    assert abs(code_p @ code_q - cosines) <= tolerance
    assert abs(code_0 @ code_gap - cosines) <= tolerance


@given(positions, widths)
def test_every_code_has_the_same_length(position, width):
    code = sinusoidal_table(position, width)
    assert math.isclose(code @ code, width / 2, rel_tol=width * EPS)


def test_the_fastest_pair_alone_never_comes_back():
    """It comes near: 312689 / 99532 is almost π, so 312689 tokens are almost 49766 whole turns."""
    distances = np.hypot(*(sinusoidal_table(np.arange(1, 10**6), 2) - sinusoidal_table(0, 2)).T)
    assert np.argmin(distances) + 1 == 312689
    assert distances.min() > 2.9e-6


def test_the_base_reaches_both_functions():
    moved = shift_matrix(3, 8, base=100.0) @ sinusoidal_table(2, 8, base=100.0)
    np.testing.assert_allclose(moved, sinusoidal_table(5, 8, base=100.0), rtol=0, atol=phase_error(5))
    assert not np.allclose(sinusoidal_table(5, 8), sinusoidal_table(5, 8, base=100.0))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
@both_layouts
def test_positions_may_have_any_shape(shape, layout):
    table = sinusoidal_table(np.full(shape, 5), 6, layout=layout)
    assert table.shape == (*shape, 6) and table.dtype == np.float64
