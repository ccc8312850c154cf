"""Sympy objects of the derivations, and `prove`, which shows an identity only if it holds."""

import operator

import sympy


def prove(lhs, rhs):
    """Return the equation `lhs = rhs` for display if sympy can show that both sides are equal.

    Both sides are sympy expressions, numbers or matrices of one shape. An identity that does not hold
    raises ValueError with the difference, so a notebook with a false identity does not run; so does a side that
    is undefined or infinite, for it proves nothing. Anything else than an expression raises TypeError.

    >>> x = sympy.Symbol("x", real=True)
    >>> prove(sympy.cos(x) ** 2 + sympy.sin(x) ** 2, 1)
    Eq(sin(x)**2 + cos(x)**2, 1)
    >>> prove(sympy.sin(2 * x), sympy.sin(x))
    Traceback (most recent call last):
        ...
    ValueError: the two sides are not equal: left - right = -sin(x) + sin(2*x)
    """
    lhs, rhs = _expression("lhs", lhs, matrices=True), _expression("rhs", rhs, matrices=True)
    left, right = (getattr(side, "shape", ()) for side in (lhs, rhs))
    if left != right:
        raise ValueError(f"the two sides have different shapes: left {left}, right {right}")
    gap = sympy.simplify(sympy.expand_complex(sympy.expand(lhs - rhs)))
    if any(part.has(sympy.nan, sympy.zoo) for part in (lhs, rhs, gap)):
        raise ValueError(
            f"both sides must be finite, got an undefined or infinite one: left {lhs}, right {rhs}; "
            "look for a division by 0"
        )
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
    angle = _expression("angle", angle)
    cos, sin = sympy.cos(angle), sympy.sin(angle)
    return sympy.Matrix([[cos, -sin], [sin, cos]])


def symbol_matrix(name, rows, columns):
    """Return a matrix of real symbols name_00, name_01, …, for example the vectors of `rows` tokens.

    >>> symbol_matrix("x", 2, 2)
    Matrix([
    [x_00, x_01],
    [x_10, x_11]])

    With more than 10 rows or columns the numbers are parted, x_1_10, for x_110 could be (1, 10) or (11, 0).
    Raises TypeError or ValueError unless `name` is a string and both sizes are integers ≥ 1.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name must be a string such as 'x', got {name!r}; the numbers are added to it")
    rows, columns = _integer("rows", rows), _integer("columns", columns)
    if min(rows, columns) < 1:
        raise ValueError(
            f"rows and columns must be at least 1, got {rows} and {columns}; count tokens and dimensions"
        )
    between = "" if max(rows, columns) <= 10 else "_"
    return sympy.Matrix(rows, columns, lambda i, j: sympy.Symbol(f"{name}_{i}{between}{j}", real=True))


def permutation_matrix(order):
    """Return P with one 1 in each row and column, such that row i of P X is row order[i] of X.

    >>> permutation_matrix([2, 0, 1]) * sympy.Matrix([[10], [20], [30]])
    Matrix([
    [30],
    [10],
    [20]])

    Raises TypeError for an order that does not hold integers, ValueError if one is missing or there twice.
    """
    order = [_integer("each entry of order", index) for index in _listed("order", order)]
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"order must hold each of 0 … {len(order) - 1} once, got {order}; leave none out")
    return sympy.Matrix(len(order), len(order), lambda i, j: int(order[i] == j))


def softmax_rows(scores):
    """Return the softmax of each row: exp(s_ij) / Σ_l exp(s_il).

    >>> softmax_rows(sympy.Matrix([[0, sympy.log(3)]]))
    Matrix([[1/4, 3/4]])

    Raises TypeError unless `scores` is a sympy matrix, ValueError for +∞, NaN, or a row that is −∞ throughout.
    """
    if not isinstance(scores, sympy.MatrixBase):
        raise TypeError(
            f"scores must be a sympy matrix, got {type(scores).__name__}; use sympy.Matrix(scores) "
            "or, for numbers, companion.attention.attention_weights"
        )
    raised = scores.applyfunc(sympy.exp)
    totals = [sum(raised[i, :]) for i in range(scores.rows)]
    for i, total in enumerate(totals):
        if total == 0 or sympy.sympify(total).has(sympy.nan, sympy.zoo, sympy.oo):
            raise ValueError(
                f"scores must hold a finite number in every row, and no +∞ or NaN, got row {i} = "
                f"{list(scores[i, :])}; a token that sees nothing has no softmax"
            )
    return sympy.Matrix(*scores.shape, lambda i, j: raised[i, j] / totals[i])


def block_rotation(angles, *, pairing="adjacent"):
    """Return the d × d matrix that turns pair i by `angles[i]` radians: d/2 rotations of the plane side by side.

    `"adjacent"` pairs (2i, 2i + 1), so the rotations stand on the diagonal (RoFormer, Eq. 15); `"half"` pairs
    (i, i + d/2), which gives four diagonal blocks.

    >>> block_rotation([sympy.Symbol("a")])
    Matrix([
    [cos(a), -sin(a)],
    [sin(a),  cos(a)]])

    Raises ValueError for another pairing or no angle, TypeError for angles that are no expressions.
    """
    angles = [_expression("each angle", angle) for angle in _listed("angles", angles)]
    if not angles:
        raise ValueError("angles must hold one angle for each pair, got none; use [angle]")
    if pairing == "adjacent":
        return sympy.diag(*map(rotation, angles))
    if pairing == "half":
        cos, sin = (sympy.diag(*map(function, angles)) for function in (sympy.cos, sympy.sin))
        return sympy.Matrix(sympy.BlockMatrix([[cos, -sin], [sin, cos]]))
    raise ValueError(f"pairing must be 'half' or 'adjacent', got {pairing!r}; adjacent is the usual one")


def _expression(name, value, *, matrices=False):
    """The sympy form of a number, an expression or, if wanted, a matrix; all else is refused."""
    kinds = (sympy.Expr, sympy.MatrixBase) if matrices else (sympy.Expr,)
    if not isinstance(value, (str, bool)):
        try:
            found = value if isinstance(value, kinds) else sympy.sympify(value, strict=True)
        except (sympy.SympifyError, TypeError, AttributeError):
            found = None
        if isinstance(found, kinds) and (matrices or not found.is_Matrix):
            if not matrices and found.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
                raise ValueError(f"{name} must be finite, got {found}; give a symbol or a number")
            return found
    what = "a sympy expression, a number or a sympy matrix" if matrices else "a sympy expression or a number"
    shown = f"{type(value).__name__} {value!r:.60}"
    raise TypeError(f"{name} must be {what}, got {shown}; use sympy.Matrix or sympy.Symbol to make one")


def _integer(name, value):
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}; use int(…) or range(…)") from None


def _listed(name, values):
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name} must be a list, got {values!r}; put brackets around it") from None
