"""What hidden tests are written with. They run outside the sandbox and see values only."""

import hashlib
from typing import NamedTuple

import numpy as np

from classroom.wire import Expression

KIND = "«得到的不是要求的那种值||the result is not the kind of value that was asked for»"
SHAPE = "«形状不对||the shape is wrong»"
NOT_FINITE = "«结果里有不该出现的 NaN 或无穷大||NaN or infinity where there should be a number»"
SYMBOLS = "«只许有这些符号：{0}||only these symbols may occur: {0}»"
VALUE = "«数值不对||a value is wrong»"


class Test(NamedTuple):
    name: str
    points: float
    hint: str
    function: object


def worth(points, hint):
    """Make a function a hidden test that gives so many points; `hint` is what a student reads if it is wrong."""

    def mark(function):
        function.worth = (points, hint)
        return function

    return mark


def same_expression(got, want, symbols, rng):
    """Return None if a sympy expression equals the function `want` of the symbols at random points, else what is wrong.

    `got` is an Expression of `student.call`, or a number; `symbols` is a string of names.

    >>> from classroom.wire import Expression
    >>> product = Expression(["Mul", ["Symbol", "m"], ["Symbol", "n"]])
    >>> same_expression(product, lambda m, n: m * n, "m n", np.random.default_rng(0))
    >>> same_expression(product, lambda m, n: m + n, "m n", np.random.default_rng(0))
    '«数值不对||a value is wrong»'
    """
    if not isinstance(got, Expression | int | float | complex):
        return KIND
    names = symbols.split()
    if isinstance(got, Expression) and not got.symbols <= set(names):
        return SYMBOLS.format(", ".join(names))
    for _ in range(8):
        point = dict(zip(names, rng.uniform(0.4, 1.7, len(names)), strict=True))
        value = got.at(**point) if isinstance(got, Expression) else complex(got)
        if problem := same(value, complex(want(**point)), rtol=1e-8):
            return problem
    return None


def load_tests(source, question):
    """Return the tests that a cell of hidden tests defines, in order.

    >>> cell = '@worth(2, "«提示||hint»")\\ndef it_is_four(student, rng):\\n    return same(student.value("x"), 4)'
    >>> [(test.name, test.points) for test in load_tests(cell, "1")]
    [('it_is_four', 2)]
    """
    names = {
        "np": np,
        "worth": worth,
        "same": same,
        "same_expression": same_expression,
        "__name__": f"question_{question}",
    }
    exec(compile(source, f"<hidden tests of question {question}>", "exec"), names)
    functions = [value for value in names.values() if hasattr(value, "worth")]
    return [Test(function.__name__, *function.worth, function) for function in functions]


def generator(seed, *names):
    """Return the random generator of one test: the seed of the class and the names of assignment, question and test."""
    digest = hashlib.sha256("\0".join([seed, *names]).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def same(got, want, rtol=1e-6, atol=None):
    """Return None if `got` equals `want` up to rounding, else what is wrong: kind, shape, NaN or a value, and never which.

    `got` may be a number, an array or nested lists; a truth value is a number, a string is not. NaN equals nothing
    but a NaN of `want`. `atol` is by default 1e-9 of the largest finite number of `want`.

    >>> same([1, 2.0], np.array([1.0, 2.0]))
    >>> same([1, float("nan")], [1.0, 2.0])
    '«结果里有不该出现的 NaN 或无穷大||NaN or infinity where there should be a number»'
    """
    want = np.asarray(want)
    try:
        got = np.asarray(got)
    except (ValueError, OverflowError):  # nested lists of unequal lengths
        return SHAPE
    if got.dtype.kind not in "biufc" or (got.dtype.kind == "c" and want.dtype.kind != "c"):
        return KIND
    if got.shape != want.shape:
        return SHAPE
    if (~np.isfinite(got) & np.isfinite(want)).any():
        return NOT_FINITE
    if atol is None:
        atol = 1e-12 + 1e-9 * np.abs(want[np.isfinite(want)]).max(initial=0)
    with np.errstate(all="ignore"):
        right = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    return None if right.all() else VALUE
