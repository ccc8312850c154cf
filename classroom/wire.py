"""How values cross the wall of the sandbox: as JSON that can hold data and nothing else. Both sides use this module.

`encode` runs where it may be lied to by every object; `decode` trusts nothing: it builds numbers, strings, lists, arrays of
numbers and trees of arithmetic, and raises ValueError for the rest.
"""

import base64
import cmath
import math
from typing import NamedTuple

import numpy as np

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
_DEEPEST = 100
_CONSTANTS = {"Pi": math.pi, "Exp1": math.e, "ImaginaryUnit": 1j}
_FUNCTIONS = {
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "exp": cmath.exp,
    "log": cmath.log,
    "Abs": abs,
}


class Expression(NamedTuple):
    """A sympy expression as a tree; it can be evaluated, and nothing else."""

    tree: object

    @property
    def symbols(self):
        return {node[1] for node in _nodes(self.tree) if isinstance(node, list) and node[0] == "Symbol"}

    def at(self, **values):
        """Return the complex value with these values of the symbols; NaN where it has none.

        >>> Expression(["Pow", ["Symbol", "x"], 2]).at(x=3)
        (9+0j)
        """
        try:
            return complex(_evaluate(self.tree, values))
        except (ArithmeticError, ValueError):
            return complex("nan")


def encode(value):
    """Return a value as plain JSON; an object that is no value becomes {"other": its type}.

    >>> encode((True, np.float32(0.5), {"n": None}))
    [True, 0.5, {'map': {'n': None}}]
    >>> encode(np.arange(2, dtype="int8"))
    {'array': ['int8', [2], 'AAE=']}
    """
    origin = type(value).__module__.partition(".")[0]
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic) or origin == "torch":
        return _encode_array(value)
    if isinstance(value, list | tuple | range):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {"map": {str(key): encode(item) for key, item in value.items()}}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, bool | int | float | str):  # of an instance of a class of one's own, its plain value
        plain = next(kind for kind in (int, float, str) if isinstance(value, kind))
        return plain.__add__(value, plain())
    if origin == "sympy":
        return _encode_sympy(value)
    return {"other": type(value).__name__[:40]}


def decode(tree, depth=0):
    """Return the value that `encode` was given, or raise ValueError.

    >>> decode(encode([np.eye(2), 1 + 2j]))
    [array([[1., 0.],
           [0., 1.]]), (1+2j)]
    """
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(tree, list):
        return [decode(item, depth + 1) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1:
        raise ValueError("not of this protocol")
    ((kind, content),) = tree.items()
    if kind == "array":
        return _decode_array(*_list_of(content, 3))
    if kind == "complex":
        return complex(*(float(part) for part in _list_of(content, 2)))
    if kind == "map" and isinstance(content, dict):
        return {key: decode(item, depth + 1) for key, item in content.items()}
    if kind == "expression":
        for _ in _nodes(content):  # raises for what is no expression
            pass
        return Expression(content)
    raise ValueError(f"{kind} is no value")


def _encode_array(value):
    if type(value).__module__.partition(".")[0] == "torch":
        if not hasattr(value, "detach"):
            return {"other": type(value).__name__[:40]}
        value = value.detach().cpu()
        value = (
            value.float() if value.dtype.is_floating_point and value.element_size() == 2 else value
        ).numpy()
    array = np.array(value, order="C", copy=True, subok=False)
    if array.dtype.name not in DTYPES:
        return (
            array.item()
            if array.ndim == 0 and array.dtype.kind == "U"
            else {"other": f"array of {array.dtype}"}
        )
    if isinstance(value, np.generic):
        return encode(array.item())
    return {"array": [array.dtype.name, list(array.shape), base64.b64encode(array.tobytes()).decode()]}


def _decode_array(dtype, shape, data):
    if dtype not in DTYPES or not isinstance(shape, list) or not isinstance(data, str) or len(shape) > 16:
        raise ValueError("not an array")
    if not all(type(length) is int and 0 <= length <= 1 << 40 for length in shape):
        raise ValueError("not a shape")
    content = base64.b64decode(data, validate=True)
    if math.prod(shape) * np.dtype(dtype).itemsize != len(content):
        raise ValueError("shape and data do not fit")
    return np.frombuffer(content, dtype=dtype).reshape(shape).copy()


def _list_of(content, length):
    if not isinstance(content, list) or len(content) != length:
        raise ValueError("not of this protocol")
    return content


def _encode_sympy(value):
    if hasattr(value, "tolist"):  # a matrix or an array
        return encode(value.tolist())
    return (
        {"expression": _tree(value)} if hasattr(value, "is_Symbol") else {"other": type(value).__name__[:40]}
    )


def _tree(value):
    name = type(value).__name__
    if value.is_Symbol:
        return ["Symbol", str(value.name)]
    if value.is_Integer:
        return int(value)
    if value.is_Rational:
        return ["Mul", int(value.p), ["Pow", int(value.q), -1]]
    if value.is_Float:
        return float(value)
    return [name, *map(_tree, value.args)]


def _nodes(tree, depth=0):
    """Yield every node of an expression; ValueError for anything else."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    yield tree
    if type(tree) in (int, float):
        return
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        raise ValueError("not an expression")
    name, *parts = tree
    if name == "Symbol":
        if len(parts) != 1 or not isinstance(parts[0], str):
            raise ValueError("not a symbol")
        return
    takes = {"Add": 0, "Mul": 0, "Pow": 2} | dict.fromkeys(_FUNCTIONS, 1) | dict.fromkeys(_CONSTANTS, 0)
    if name not in takes or (takes[name] and len(parts) != takes[name]):
        raise ValueError(f"{name[:40]} is no operation of an expression")
    for part in parts:
        yield from _nodes(part, depth + 1)


def _evaluate(tree, values):
    if not isinstance(tree, list):
        return complex(tree)
    name, *parts = tree
    if name == "Symbol":
        return complex(values[parts[0]]) if parts[0] in values else complex("nan")
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    numbers = [_evaluate(part, values) for part in parts]
    if name in ("Add", "Mul"):
        return sum(numbers) if name == "Add" else math.prod(numbers, start=1 + 0j)
    return numbers[0] ** numbers[1] if name == "Pow" else _FUNCTIONS[name](numbers[0])
