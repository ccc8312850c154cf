"""A true identity is shown as it was written; a false one stops the notebook."""

import pytest
import sympy
from sympy import cos, exp, sin

from companion.symbolic import prove, rotation

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
