"""A true identity is shown as it was written; a false one stops the notebook."""

import re

import numpy as np
import pytest
import sympy
from sympy import cos, exp, sin

from companion.symbolic import (
    block_rotation,
    permutation_matrix,
    prove,
    rotation,
    softmax_rows,
    symbol_matrix,
)

a, b = sympy.symbols("a b", real=True)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (cos(a - b), cos(a) * cos(b) + sin(a) * sin(b)),
        (exp(sympy.I * a), cos(a) + sympy.I * sin(a)),
        ((a + b) ** 2, a**2 + 2 * a * b + b**2),
        (rotation(a).T * rotation(b), rotation(b - a)),
        (rotation(a) * rotation(b), rotation(a + b)),
        (rotation(a).T * rotation(a), sympy.eye(2)),
        (rotation(a).det(), 1),
        (2, 2),
    ],
)
def test_a_true_identity_is_returned_with_both_sides_as_they_were_given(left, right):
    shown = prove(left, right)
    assert isinstance(shown, sympy.Eq)
    assert shown.lhs == sympy.sympify(left) and shown.rhs == sympy.sympify(right)


@pytest.mark.parametrize(
    ("left", "right", "gap"),
    [
        (cos(a - b), cos(a) * cos(b) - sin(a) * sin(b), "left - right"),
        (rotation(a).T * rotation(b), rotation(a - b), "left - right"),
        (rotation(a) * rotation(b), rotation(a - b), "left - right"),
        (sympy.diag(2, sympy.Rational(1, 2)), sympy.eye(2), "left - right"),
        (a, b, "a - b"),
        (1, 2, "-1"),
    ],
)
def test_a_false_identity_raises_with_the_difference(left, right, gap):
    with pytest.raises(ValueError, match="the two sides are not equal") as caught:
        prove(left, right)
    assert gap in str(caught.value)


def test_sides_of_different_shape_are_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"left \(2, 2\), right \(3, 3\)"):
        prove(sympy.eye(2), sympy.eye(3))
    with pytest.raises(ValueError, match="different shapes"):
        prove(sympy.eye(2), 1)


def test_a_rotation_turns_counter_clockwise():
    assert rotation(sympy.pi / 2) * sympy.Matrix([1, 0]) == sympy.Matrix([0, 1])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (sympy.nan, 1),
        (sin(a) / sympy.Integer(0), 5),
        (sympy.zoo - sympy.zoo, 7),
        (sympy.oo, sympy.oo),
        (float("nan"), float("nan")),
        (1, sympy.nan),
        (sympy.Matrix([1, sympy.nan]), sympy.Matrix([1, 1])),
        (sympy.Matrix([1, sympy.oo]), sympy.Matrix([1, sympy.oo])),
    ],
)
def test_an_undefined_or_infinite_side_proves_nothing(left, right):
    with pytest.raises(ValueError, match=r"both sides must be finite, got .*; look for a division by 0"):
        prove(left, right)


@pytest.mark.parametrize("side", [np.eye(2), {1}, None, [1], "x", True, sympy.Array([1]), print])
def test_only_expressions_numbers_and_matrices_can_be_proved_equal(side):
    for sides in ((side, side), (1, side)):
        with pytest.raises(
            TypeError, match=r"must be a sympy expression, a number or a sympy matrix, got (?s:.)*; "
        ):
            prove(*sides)


@pytest.mark.parametrize("order", [[1.0, 0.0], np.array([1.0, 0.0]), [True, False], ["1", "0"], 3, None])
def test_a_permutation_is_given_by_integers(order):
    with pytest.raises(TypeError, match=r"order must be an? (integer|list), got .*; "):
        permutation_matrix(order)


@pytest.mark.parametrize("order", [[0, 0], [1, 2], [-1, 0], np.array([0, 2])])
def test_a_permutation_holds_every_index_once(order):
    with pytest.raises(ValueError, match="order must hold each of 0 … 1 once, got "):
        permutation_matrix(order)
    assert permutation_matrix(np.array([1, 0])) == sympy.Matrix([[0, 1], [1, 0]])


@pytest.mark.parametrize("size", [(1, 1), (10, 10), (12, 12), (2, 111), (111, 2)])
def test_no_symbol_stands_in_two_places(size):
    matrix = symbol_matrix("x", *size)
    assert len(set(matrix)) == size[0] * size[1]
    assert ("_0_0" in str(matrix[0])) == (max(size) > 10)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("x", -1, 2), ValueError, "rows and columns must be at least 1, got -1 and 2; "),
        (("x", 2, 0), ValueError, "rows and columns must be at least 1, got 2 and 0; "),
        (("x", 2.0, 2), TypeError, "rows must be an integer, got 2.0; "),
        ((3, 2, 2), TypeError, "name must be a string such as 'x', got 3; "),
    ],
)
def test_a_matrix_of_symbols_has_a_name_and_a_size(arguments, error, says):
    with pytest.raises(error, match=re.escape(says)):
        symbol_matrix(*arguments)


@pytest.mark.parametrize("scores", [[[0, 1]], np.eye(2), 3, None])
def test_the_softmax_of_something_else_than_a_matrix_is_refused(scores):
    with pytest.raises(TypeError, match=r"scores must be a sympy matrix, got \w+; use sympy.Matrix"):
        softmax_rows(scores)


@pytest.mark.parametrize("row", [[-sympy.oo, -sympy.oo], [sympy.oo, 0], [sympy.nan, 0]])
def test_a_row_without_a_softmax_is_refused_by_number(row):
    with pytest.raises(ValueError, match=r"scores must hold a finite number in every row, .*got row 1 = "):
        softmax_rows(sympy.Matrix([[0, 0], row]))
    assert softmax_rows(sympy.Matrix([[-sympy.oo, 0]])) == sympy.Matrix([[0, 1]])


@pytest.mark.parametrize("angle", [None, [1], "a", True, sympy.eye(2)])
def test_an_angle_is_an_expression_or_a_number(angle):
    for turn in (
        rotation,
        lambda angle: block_rotation([angle]),
        lambda angle: block_rotation([angle], pairing="half"),
    ):
        with pytest.raises(TypeError, match="angle must be a sympy expression or a number, got "):
            turn(angle)


def test_a_rotation_of_no_angle_or_by_infinity_is_refused():
    for angles, error in (([], ValueError), (None, TypeError), (0.5, TypeError), ([sympy.oo], ValueError)):
        with pytest.raises(error, match=r"must (hold|be) .*, got .*; "):
            block_rotation(angles)
