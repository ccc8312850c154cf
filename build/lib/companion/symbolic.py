"""Sympy objects of the derivations, and `prove`, which shows an identity only if it holds."""

import sympy


def prove(lhs, rhs):
    """Return the equation `lhs = rhs` for display if sympy can show that both sides are equal.

    Both sides are sympy expressions, numbers or matrices of one shape. An identity that does not hold
    raises ValueError with the difference, so a notebook with a false identity does not run.

    >>> x = sympy.Symbol("x", real=True)
    >>> prove(sympy.cos(x) ** 2 + sympy.sin(x) ** 2, 1)
    Eq(sin(x)**2 + cos(x)**2, 1)
    >>> prove(sympy.sin(2 * x), sympy.sin(x))
    Traceback (most recent call last):
        ...
    ValueError: the two sides are not equal: left - right = -sin(x) + sin(2*x)
    """
    lhs, rhs = sympy.sympify(lhs), sympy.sympify(rhs)
    left, right = (getattr(side, "shape", ()) for side in (lhs, rhs))
    if left != right:
        raise ValueError(f"the two sides have different shapes: left {left}, right {right}")
    gap = sympy.simplify(sympy.expand_complex(sympy.expand(lhs - rhs)))
    if gap != gap * 0:
        raise ValueError(f"the two sides are not equal: left - right = {gap}")
    return sympy.Eq(lhs, rhs, evaluate=False)


def rotation(angle):
    """Return the 2 × 2 matrix that turns the plane by `angle` radians, counter-clockwise.

    >>> rotation(sympy.pi / 2)
    Matrix([
    [0, -1],
    [1,  0]])
    """
    cos, sin = sympy.cos(angle), sympy.sin(angle)
    return sympy.Matrix([[cos, -sin], [sin, cos]])


def symbol_matrix(name, rows, columns):
    """Return a matrix of real symbols name_00, name_01, …, for example the vectors of `rows` tokens.

    >>> symbol_matrix("x", 2, 2)
    Matrix([
    [x_00, x_01],
    [x_10, x_11]])
    """
    return sympy.Matrix(rows, columns, lambda i, j: sympy.Symbol(f"{name}_{i}{j}", real=True))


def permutation_matrix(order):
    """Return P with one 1 in each row and column, such that row i of P X is row order[i] of X.

    >>> permutation_matrix([2, 0, 1]) * sympy.Matrix([[10], [20], [30]])
    Matrix([
    [30],
    [10],
    [20]])
    """
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"order must hold each of 0 … {len(order) - 1} once, got {list(order)}")
    return sympy.Matrix(len(order), len(order), lambda i, j: int(order[i] == j))


def softmax_rows(scores):
    """Return the softmax of each row: exp(s_ij) / Σ_l exp(s_il).

    >>> softmax_rows(sympy.Matrix([[0, sympy.log(3)]]))
    Matrix([[1/4, 3/4]])
    """
    raised = scores.applyfunc(sympy.exp)
    return sympy.Matrix(*scores.shape, lambda i, j: raised[i, j] / sum(raised[i, :]))


def block_rotation(angles, *, pairing="adjacent"):
    """Return the d × d matrix that turns pair i by `angles[i]` radians: d/2 rotations of the plane side by side.

    `"adjacent"` pairs (2i, 2i + 1), so the rotations stand on the diagonal (RoFormer, Eq. 15); `"half"` pairs
    (i, i + d/2), which gives four diagonal blocks.

    >>> block_rotation([sympy.Symbol("a")])
    Matrix([
    [cos(a), -sin(a)],
    [sin(a),  cos(a)]])

    Raises ValueError for another pairing.
    """
    if pairing == "adjacent":
        return sympy.diag(*map(rotation, angles))
    if pairing == "half":
        cos, sin = (sympy.diag(*map(function, angles)) for function in (sympy.cos, sympy.sin))
        return sympy.Matrix(sympy.BlockMatrix([[cos, -sin], [sin, cos]]))
    raise ValueError(f"pairing must be 'half' or 'adjacent', got {pairing!r}")
