"""Every public function refuses bad input with TypeError or ValueError: name, rule, value given, way out."""

import inspect
import re

import numpy as np
import pytest

from companion import attention as attention_module
from companion import frequencies, rope, sinusoidal
from companion.attention import attention, attention_scores, attention_weights, causal_mask
from companion.frequencies import inverse_frequencies, rotation_angles, wavelengths
from companion.rope import apply_rope, pairing_permutation, rotation_matrix, rotation_table
from companion.sinusoidal import shift_matrix, sinusoidal_table

MODULES = (frequencies, sinusoidal, rope, attention_module)


class BrainFloats:
    """Positions as another library would hand them over: NumPy has no bfloat16 of its own."""

    dtype = "torch.bfloat16"

    def __array__(self, dtype=None, copy=None):
        return np.arange(4.0)


def case(function, *args, error=ValueError, says, **kwargs):
    return pytest.param(function, args, kwargs, error, says, id=f"{function.__name__}: {says}")


def positions_cases(function, name, *rest, first=()):
    """What no function that takes positions may accept."""
    wrong = [
        (np.array([0, 1], dtype=np.float16), TypeError, f"{name} must not be half precision, got float16"),
        ([np.float16(0), np.float16(1)], TypeError, f"{name} must not be half precision, got float16"),
        (BrainFloats(), TypeError, f"{name} must not be half precision, got torch.bfloat16"),
        (np.array([True, False]), TypeError, f"{name} must be an array of real numbers, got dtype bool"),
        (np.array([1j]), TypeError, f"{name} must be an array of real numbers, got dtype complex128"),
        (["first"], TypeError, f"{name} must be an array of real numbers, got dtype <U5"),
        (None, TypeError, f"{name} must be an array of real numbers, got dtype object"),
        ([[0, 1], [2]], TypeError, f"{name} must be an array of real numbers, got list"),
        ([0.0, np.nan], ValueError, f"{name} must be finite, got nan"),
        ([0.0, -np.inf], ValueError, f"{name} must be finite, got -inf"),
    ]
    return [case(function, *first, value, *rest, error=error, says=says) for value, error, says in wrong]


def size_cases(function, name, *first):
    wrong = [
        (7, ValueError, f"{name} must be even and at least 2, got 7; dimensions are used in pairs: take 8"),
        (0, ValueError, f"{name} must be even and at least 2, got 0"),
        (-4, ValueError, f"{name} must be even and at least 2, got -4"),
        (8.0, TypeError, f"{name} must be an integer, got 8.0"),
        (True, TypeError, f"{name} must be an integer, got True"),
        ("8", TypeError, f"{name} must be an integer, got '8'"),
        (None, TypeError, f"{name} must be an integer, got None"),
    ]
    return [case(function, *first, value, error=error, says=says) for value, error, says in wrong]


def base_cases(function, *first):
    wrong = [
        (1, ValueError, "base must be greater than 1, got 1"),
        (0.5, ValueError, "base must be greater than 1, got 0.5"),
        (-10000.0, ValueError, "base must be greater than 1, got -10000.0"),
        (np.nan, ValueError, "base must be finite, got nan"),
        (np.inf, ValueError, "base must be finite, got inf"),
        (10**400, ValueError, "base must be finite, got 1000"),
        (True, TypeError, "base must be a real number, got True"),
        ("10000", TypeError, "base must be a real number, got '10000'"),
        ([10000.0], TypeError, "base must be a real number, got [10000.0]"),
        (1j, TypeError, "base must be a real number, got 1j"),
    ]
    return [case(function, *first, value, error=error, says=says) for value, error, says in wrong]


def speed_cases(function, *first):
    wrong = [
        ([], ValueError, "inv_freq must be a 1-D table with one speed a pair, got shape (0,)"),
        (1.0, ValueError, "inv_freq must be a 1-D table with one speed a pair, got shape ()"),
        ([[1.0]], ValueError, "inv_freq must be a 1-D table with one speed a pair, got shape (1, 1)"),
        ([1.0, -0.1], ValueError, "inv_freq must not be negative, got -0.1"),
        ([1.0, np.nan], ValueError, "inv_freq must be finite, got nan"),
        ([np.inf], ValueError, "inv_freq must be finite, got inf"),
        (np.ones(2, np.float16), TypeError, "inv_freq must not be half precision, got float16"),
        (["fast"], TypeError, "inv_freq must be an array of real numbers, got dtype <U4"),
    ]
    return [case(function, *first, value, error=error, says=says) for value, error, says in wrong]


def choice_cases(function, name, *args):
    wrong = ["interleaved", "Half", None, 2, ["half"]]
    return [
        case(function, *args, **{name: value}, says=f"{name} must be 'half' or 'adjacent', got {value!r}")
        for value in wrong
    ]


X = np.ones((2, 3, 5, 8))  # batch heads seq_len head_dim
COS, SIN = rotation_table(np.arange(5), inverse_frequencies(8))
HEADS, ROWS = np.ones((2, 4, 3, 6)), np.ones((3, 6))


def rope_case(says, *, x=X, cos=COS, sin=SIN, error=ValueError, **kwargs):
    return case(apply_rope, x, cos, sin, error=error, says=says, **kwargs)


ROPE_CASES = [
    rope_case("x must be a floating-point array, got dtype int64", x=X.astype(np.int64), error=TypeError),
    rope_case("x must be a floating-point array, got dtype bool", x=X > 0, error=TypeError),
    rope_case("x must be a floating-point array, got dtype complex128", x=X + 0j, error=TypeError),
    rope_case("x must be a floating-point array, got dtype object", x=None, error=TypeError),
    rope_case("x must have the axes (*batch, seq_len, head_dim), got shape (8,)", x=np.ones(8)),
    rope_case("x must have the axes (*batch, seq_len, head_dim), got shape ()", x=1.0),
    rope_case("head_dim (last axis of x) must be even and at least 2, got 7", x=np.ones((5, 7))),
    rope_case("head_dim (last axis of x) must be even and at least 2, got 0", x=np.ones((5, 0))),
    rope_case("cos must have one row for each of the 6 positions of x, got 5 rows", x=np.ones((6, 8))),
    rope_case("cos must have one row for each of the 4 positions of x, got 5 rows", x=np.ones((4, 8))),
    rope_case("cos must have one row for each of the 5 positions of x, got 1 rows", cos=COS[:1]),
    rope_case("sin must have one row for each of the 5 positions of x, got 1 rows", sin=SIN[:1]),
    rope_case(
        "cos must have one column for each of the 4 pairs, got 3 columns; pass rotary_dim=6", cos=COS[:, :3]
    ),
    rope_case("sin must have one column for each of the 4 pairs, got 1 columns", sin=SIN[:, :1]),
    rope_case("cos must have one column for each of the 4 pairs, got 8 columns", cos=np.hstack([COS, COS])),
    rope_case("cos must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", cos=COS[None]),
    rope_case("cos must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", cos=np.ones((2, 5, 4))),
    rope_case(
        "got (3, 5, 4); for left padding give positions as (batch, 1, seq_len)", cos=np.ones((3, 5, 4))
    ),
    rope_case("sin must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", sin=np.ones((3, 1, 5, 4))),
    rope_case("cos must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", cos=COS[None, None, None]),
    rope_case("cos must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", cos=COS[0]),
    rope_case("cos must have the shape (5, 4), or as many axes as x (2, 3, 5, 8)", cos=1.0),
    rope_case("cos must have the shape (5, 4), or as many axes as x (5, 8)", x=X[0, 0], cos=COS[None]),
    rope_case(
        "cos must be a floating-point table, got dtype int64", cos=COS.astype(np.int64), error=TypeError
    ),
    rope_case("sin must be a floating-point table, got dtype object", sin=None, error=TypeError),
    rope_case("cos must not be half precision, got float16", cos=COS.astype(np.float16), error=TypeError),
    rope_case("rotary_dim must be even and at least 2, got 3", rotary_dim=3),
    rope_case("rotary_dim must be even and at least 2, got 0", rotary_dim=0),
    rope_case("rotary_dim must be an integer, got 0.5", rotary_dim=0.5, error=TypeError),
    rope_case("rotary_dim must be at most head_dim = 8, got 10", rotary_dim=10),
    rope_case("cos must have one column for each of the 2 pairs, got 4 columns", rotary_dim=4),
    *choice_cases(apply_rope, "pairing", X, COS, SIN),
]

FACTOR_CASES = [
    case(rotation_table, [0], [1.0], attention_factor=value, error=error, says=says)
    for value, error, says in [
        (0, ValueError, "attention_factor must be greater than 0, got 0"),
        (-1.0, ValueError, "attention_factor must be greater than 0, got -1.0"),
        (np.nan, ValueError, "attention_factor must be finite, got nan"),
        (None, TypeError, "attention_factor must be a real number, got None"),
    ]
]

MATRIX_CASES = [
    case(rotation_matrix, 0.5, says="angles must have one angle a pair on the last axis, got shape ()"),
    case(rotation_matrix, [], says="angles must have one angle a pair on the last axis, got shape (0,)"),
    case(rotation_matrix, [np.nan], says="angles must be finite, got nan"),
    case(
        rotation_matrix, ["a"], error=TypeError, says="angles must be an array of real numbers, got dtype <U1"
    ),
    case(rotation_matrix, np.ones(1, np.float16), error=TypeError, says="angles must not be half precision"),
    *choice_cases(rotation_matrix, "pairing", [0.5]),
]

OFFSET_CASES = [
    case(shift_matrix, np.nan, 8, says="offset must be finite, got nan"),
    case(shift_matrix, [1, 2], 8, error=TypeError, says="offset must be a real number, got [1, 2]"),
    case(shift_matrix, True, 8, error=TypeError, says="offset must be a real number, got True"),
]


def score_cases(function, *, with_values):
    """What attention and attention_scores refuse alike."""

    def wrong(says, q=HEADS, k=HEADS, error=ValueError, **kwargs):
        v = [np.ones((*k.shape[:-1], 2))] if with_values else []
        return case(function, q, k, *v, error=error, says=says, **kwargs)

    return [
        wrong("q must be a floating-point array, got dtype int64", q=HEADS.astype(np.int64), error=TypeError),
        wrong("k must be a floating-point array, got dtype bool", k=HEADS > 0, error=TypeError),
        wrong("q must be a floating-point array, got dtype <U1", q="q", error=TypeError),
        wrong("q must have the axes (*batch, seq_len, head_dim), got (6,)", q=np.ones(6)),
        wrong("k must have the axes (*batch, seq_len, head_dim), got (6,)", k=np.ones(6)),
        wrong("must have the same head_dim ≥ 1", q=np.ones((3, 0)), k=np.ones((3, 0))),
        wrong(
            "q and k must have the same head_dim ≥ 1, got shapes (2, 4, 3, 6) and (2, 4, 3, 1)",
            k=HEADS[..., :1],
        ),
        wrong("q and k must have the same number of axes and the same batch", k=ROWS),
        wrong("q and k must have the same number of axes and the same batch", k=HEADS[:1]),
        wrong("the heads of q must be a multiple of the heads of k, got 4 and 3", k=HEADS[:, :3]),
        wrong("the heads of q must be a multiple of the heads of k, got 2 and 4", q=HEADS[:, :2]),
        wrong("the heads of q must be a multiple of the heads of k, got 4 and 0", k=HEADS[:, :0]),
        wrong("scale must be greater than 0, got 0", scale=0),
        wrong("scale must be finite, got inf", scale=np.inf),
        wrong("scale must be a real number, got '1'", scale="1", error=TypeError),
        wrong("mask must be boolean, True where a query may look", mask=np.ones((3, 3)), error=TypeError),
        wrong(
            "mask must be boolean, True where a query may look", mask=np.ones((3, 3), int), error=TypeError
        ),
        wrong(
            "mask must have the shape (3, 3), or as many axes as the scores (2, 4, 3, 3)", mask=np.array(True)
        ),
        wrong("mask must have the shape (3, 3), or as many axes", mask=np.ones((1, 3), bool)),
        wrong("mask must have the shape (3, 3), or as many axes", mask=np.ones((4, 3, 3), bool)),
        wrong("mask must have the shape (3, 3), or as many axes", mask=np.ones((2, 4, 1, 3), bool)),
        wrong("mask must have the shape (3, 3), or as many axes", mask=np.ones((4, 1, 3, 3), bool)),
        wrong("bias must have the shape (3, 3), or as many axes", bias=np.ones((4, 3, 3))),
        wrong("bias must have the shape (3, 3), or as many axes", bias=0.5),
        wrong("bias must be finite or −∞, got NaN or +∞", bias=np.full((3, 3), np.nan)),
        wrong("bias must be finite or −∞, got NaN or +∞", bias=np.full((3, 3), np.inf)),
        wrong("bias must be an array of real numbers, got dtype bool", bias=np.tri(3) > 0, error=TypeError),
    ]


VALUE_CASES = [
    case(attention, HEADS, HEADS, HEADS[:, :2], says="k and v must agree in all axes but the last"),
    case(attention, HEADS, HEADS, HEADS[:, :, :1], says="k and v must agree in all axes but the last"),
    case(
        attention, ROWS, ROWS, np.ones(3), says="v must have the axes (*batch, seq_len, head_dim), got (3,)"
    ),
    case(
        attention,
        ROWS,
        ROWS,
        ROWS > 0,
        error=TypeError,
        says="v must be a floating-point array, got dtype bool",
    ),
    case(attention, ROWS * np.nan, ROWS, ROWS, says="scores must be finite or −∞, got NaN or +∞"),
]

WEIGHT_CASES = [
    case(attention_weights, [0.0, np.nan], says="scores must be finite or −∞, got NaN or +∞"),
    case(attention_weights, [0.0, np.inf], says="scores must be finite or −∞, got NaN or +∞"),
    case(attention_weights, 1.0, says="scores must have an axis of keys, got the single number 1.0"),
    case(
        attention_weights,
        [1, 2],
        error=TypeError,
        says="scores must be a floating-point array, got dtype int64",
    ),
    case(
        attention_weights,
        [True],
        error=TypeError,
        says="scores must be a floating-point array, got dtype bool",
    ),
]

CAUSAL_CASES = [
    case(
        causal_mask,
        3,
        [0, 1],
        says="must be (*batch, seq_len) with the same batch axes, got shapes () and (2,)",
    ),
    case(
        causal_mask,
        [0, 1],
        3,
        says="must be (*batch, seq_len) with the same batch axes, got shapes (2,) and ()",
    ),
    case(causal_mask, [[0, 1]], [0, 1], says="with the same batch axes, got shapes (1, 2) and (2,)"),
    case(causal_mask, [[0], [1]], [[0]], says="with the same batch axes, got shapes (2, 1) and (1, 1)"),
]

CASES = [
    *size_cases(inverse_frequencies, "head_dim"),
    *base_cases(inverse_frequencies, 8),
    *speed_cases(wavelengths),
    *positions_cases(rotation_angles, "positions", [1.0]),
    *speed_cases(rotation_angles, [0]),
    *positions_cases(sinusoidal_table, "positions", 8),
    *size_cases(sinusoidal_table, "d_model", [0]),
    *base_cases(sinusoidal_table, [0], 8),
    *choice_cases(sinusoidal_table, "layout", [0], 8),
    *OFFSET_CASES,
    *size_cases(shift_matrix, "d_model", 1),
    *base_cases(shift_matrix, 1, 8),
    *choice_cases(shift_matrix, "layout", 1, 8),
    *positions_cases(rotation_table, "positions", [1.0]),
    *speed_cases(rotation_table, [0]),
    *FACTOR_CASES,
    *ROPE_CASES,
    *MATRIX_CASES,
    *size_cases(pairing_permutation, "head_dim"),
    *score_cases(attention_scores, with_values=False),
    *score_cases(attention, with_values=True),
    *VALUE_CASES,
    *WEIGHT_CASES,
    *positions_cases(causal_mask, "query_positions", [0]),
    *positions_cases(causal_mask, "key_positions", first=([0],)),
    *CAUSAL_CASES,
]


@pytest.mark.parametrize(("function", "args", "kwargs", "error", "says"), CASES)
def test_bad_input_is_refused_with_name_rule_value_and_way_out(function, args, kwargs, error, says):
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    message = str(caught.value)
    assert says in message
    assert re.search(r"must (not )?(be|have|agree).+, got .+; .+", message), "rule, value given, way out"


def public_functions(module):
    functions = inspect.getmembers(module, inspect.isfunction)
    return {f for name, f in functions if f.__module__ == module.__name__ and not name.startswith("_")}


def test_every_public_function_is_walked():
    walked = {param.values[0] for param in CASES}
    assert walked == set().union(*map(public_functions, MODULES))


def test_every_public_function_says_what_it_raises_and_where_it_comes_from():
    for function in set().union(*map(public_functions, MODULES)):
        for part in ("shape", ">>> ", "Raises ", "Source: "):
            assert part in function.__doc__, f"the docstring of {function.__name__} lacks {part!r}"
