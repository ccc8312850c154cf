"""Every public function refuses bad input with TypeError or ValueError: name, rule, value given, way out."""

import inspect
import re
import sys

import numpy as np
import pytest

from companion import attention as attention_module
from companion import (
    frequencies,
    frequency_scaling,
    hf_config,
    hf_config_keys,
    multimodal,
    relative_bias,
    rope,
    sinusoidal,
)
from companion import linear_attention as linear_attention_module
from companion.attention import attention, attention_scores, attention_weights, causal_mask
from companion.frequencies import inverse_frequencies, rotation_angles, wavelengths
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
from companion.hf_config import mrope_layout, read_rope_config
from companion.hf_config_keys import layer_types, rope_settings
from companion.linear_attention import elu_features, linear_attention, performer_features
from companion.multimodal import mrope_angles, mrope_axes, mrope_position_ids
from companion.relative_bias import (
    alibi_bias,
    alibi_slopes,
    relative_offsets,
    shaw_indices,
    t5_buckets,
)
from companion.rope import apply_rope, pairing_permutation, rotation_matrix, rotation_table
from companion.sinusoidal import shift_matrix, sinusoidal_table

MODULES = (
    frequencies,
    sinusoidal,
    rope,
    frequency_scaling,
    relative_bias,
    multimodal,
    attention_module,
    linear_attention_module,
)
CONFIG_MODULES = (hf_config, hf_config_keys)  # they return no arrays; more cases in test_hf_config


class BrainFloats:
    """Positions as another library would hand them over: NumPy has no bfloat16 of its own."""

    dtype = "torch.bfloat16"

    def __array__(self, dtype=None, copy=None):
        return np.arange(4.0)


def case(function, *args, error=ValueError, says, **kwargs):
    return pytest.param(function, args, kwargs, error, says, id=f"{function.__name__}: {says}")


def positions_cases(function, name, *rest, first=(), **options):
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
    return [
        case(function, *first, value, *rest, error=error, says=says, **options)
        for value, error, says in wrong
    ]


def size_cases(function, name, *first, after=()):
    wrong = [
        (7, ValueError, f"{name} must be even and at least 2, got 7; dimensions are used in pairs: take 8"),
        (0, ValueError, f"{name} must be even and at least 2, got 0"),
        (-4, ValueError, f"{name} must be even and at least 2, got -4"),
        (8.0, TypeError, f"{name} must be an integer, got 8.0"),
        (True, TypeError, f"{name} must be an integer, got True"),
        ("8", TypeError, f"{name} must be an integer, got '8'"),
        (None, TypeError, f"{name} must be an integer, got None"),
    ]
    return [case(function, *first, value, *after, error=error, says=says) for value, error, says in wrong]


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


def speed_cases(function, *first, after=(), **options):
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
    return [
        case(function, *first, value, *after, error=error, says=says, **options)
        for value, error, says in wrong
    ]


def choice_cases(function, name, *args):
    wrong = ["interleaved", "Half", None, 2, ["half"]]
    return [
        case(function, *args, **{name: value}, says=f"{name} must be 'half' or 'adjacent', got {value!r}")
        for value in wrong
    ]


# A tensor as seen from outside: torch itself need not be installed.
TENSOR = np.ones((3, 6)).view(type("Tensor", (np.ndarray,), {"__module__": "torch"}))
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
    rope_case("use its first half, cos[..., :4]", cos=np.hstack([COS, COS])),
    rope_case("build the table from inverse_frequencies(8)", cos=np.hstack([COS, COS, COS])),
    rope_case("x must be a NumPy array, got a tensor of torch", x=TENSOR, error=TypeError),
    rope_case("cos must be a NumPy array, got a tensor of torch", cos=TENSOR, error=TypeError),
    rope_case("x must be a plain array, got a masked array", x=np.ma.masked_less(X, 0), error=TypeError),
    rope_case(
        "sin must be a plain array, got a masked array", sin=np.ma.masked_less(SIN, 0), error=TypeError
    ),
    rope_case("cos must be finite, got nan", cos=COS * np.nan),
    rope_case("sin must be finite, got inf", sin=SIN + np.inf),
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
        wrong("put each missing axis where it belongs, a padding mask", mask=np.ones((2, 3), bool)),
        wrong("give every axis of mask the length of that axis", mask=np.ones((2, 4, 2, 3), bool)),
        wrong("mask must have the shape (3, 3), or as many axes", mask=np.ones((4, 1, 3, 3), bool)),
        wrong("bias must have the shape (3, 3), or as many axes", bias=np.ones((4, 3, 3))),
        wrong("got (); a single number changes nothing here: leave bias out", bias=0.5),
        wrong("q must be a NumPy array, got a tensor of torch", q=TENSOR, error=TypeError),
        wrong("k must be a NumPy array, got a tensor of torch", k=TENSOR, error=TypeError),
        wrong("mask must be a NumPy array, got a tensor of torch", mask=TENSOR, error=TypeError),
        wrong("bias must be a NumPy array, got a tensor of torch", bias=TENSOR, error=TypeError),
        wrong("q must be a plain array, got a masked array", q=np.ma.masked_less(HEADS, 0), error=TypeError),
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
    case(
        attention, ROWS, ROWS, TENSOR, error=TypeError, says="v must be a NumPy array, got a tensor of torch"
    ),
    case(attention, ROWS * np.nan, ROWS, ROWS, says="scores must be finite or −∞, got NaN or +∞"),
]

WEIGHT_CASES = [
    case(attention_weights, [0.0, np.nan], says="scores must be finite or −∞, got NaN or +∞"),
    case(
        attention_weights, TENSOR, error=TypeError, says="scores must be a NumPy array, got a tensor of torch"
    ),
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
    case(
        causal_mask, TENSOR, [0], error=TypeError, says="query_positions must be a NumPy array, got a tensor"
    ),
    case(causal_mask, [[0, 1]], [0, 1], says="with the same batch axes, got shapes (1, 2) and (2,)"),
    case(causal_mask, [[0], [1]], [[0]], says="with the same batch axes, got shapes (2, 1) and (1, 1)"),
]

SPEEDS = [1.0, 0.1, 0.01]


def factor_cases(function, *before, after=()):
    wrong = [
        (0.5, ValueError, "factor must be at least 1, got 0.5; it is target length / trained length"),
        (-2, ValueError, "factor must be at least 1, got -2"),
        (np.nan, ValueError, "factor must be finite, got nan"),
        (np.inf, ValueError, "factor must be finite, got inf"),
        (None, TypeError, "factor must be a real number, got None"),
        (True, TypeError, "factor must be a real number, got True"),
        ([2.0, 4.0], TypeError, "factor must be a real number, got [2.0, 4.0]"),
    ]
    return [case(function, *before, value, *after, error=error, says=says) for value, error, says in wrong]


def count_cases(function, name, *before, least=1, of="tokens", after=(), **options):
    """What no function that takes a length or a number of things may accept."""
    wrong = [
        (least - 1, ValueError, f"{name} must be at least {least}, got {least - 1}; give the number of {of}"),
        (-4, ValueError, f"{name} must be at least {least}, got -4"),
        (4096.0, TypeError, f"{name} must be an integer, got 4096.0"),
        (True, TypeError, f"{name} must be an integer, got True"),
        ("4096", TypeError, f"{name} must be an integer, got '4096'"),
        (None, TypeError, f"{name} must be an integer, got None"),
    ]
    return [
        case(function, *before, value, *after, error=error, says=says, **options)
        for value, error, says in wrong
    ]


def order_cases(function, low, high, *args, strict=False):
    wrong = [({low: 4, high: 1}, "got 4.0 and 1.0"), ({low: -1}, "got -1.0 and")]
    cases = [
        case(function, *args, says=f"{low} and {high} must be 0 ≤ {low} ≤ {high}, {got}", **options)
        for options, got in wrong
    ]
    cases += [case(function, *args, says=f"{low} must be greater than 0, got 0.0", **{low: 0})] * strict
    return [
        *cases,
        case(function, *args, says=f"{high} must be finite, got nan", **{high: np.nan}),
        case(function, *args, error=TypeError, says=f"{low} must be a real number, got '1'", **{low: "1"}),
    ]


SCALING_CASES = [
    *speed_cases(position_interpolation, after=(2,)),
    *factor_cases(position_interpolation, SPEEDS),
    *speed_cases(ntk_aware, after=(2,)),
    *factor_cases(ntk_aware, SPEEDS),
    case(ntk_aware, [1.0], 2, says="inv_freq must have at least 2 pairs, got 1"),
    *speed_cases(dynamic_ntk, after=(2, 1)),
    *count_cases(dynamic_ntk, "seq_len", SPEEDS, after=(2048,)),
    *count_cases(dynamic_ntk, "train_len", SPEEDS, 4096),
    *factor_cases(dynamic_ntk, SPEEDS, 4096, 2048),
    case(dynamic_ntk, [1.0], 1, 2, says="inv_freq must have at least 2 pairs, got 1"),
    *speed_cases(ntk_by_parts, after=(2, 4096)),
    *factor_cases(ntk_by_parts, SPEEDS, after=(4096,)),
    *count_cases(ntk_by_parts, "train_len", SPEEDS, 2),
    *order_cases(ntk_by_parts, "alpha", "beta", SPEEDS, 2, 4096),
    *speed_cases(yarn, after=(2, 4096)),
    *factor_cases(yarn, inverse_frequencies(8), after=(4096,)),
    *count_cases(yarn, "train_len", inverse_frequencies(8), 2),
    *order_cases(yarn, "beta_slow", "beta_fast", inverse_frequencies(8), 2, 4096, strict=True),
    case(yarn, inverse_frequencies(8), 2, 4096, base=1, says="base must be greater than 1, got 1"),
    case(yarn, inverse_frequencies(8, 5e5), 2, 4096, says="base must be the one that inv_freq was made with"),
    case(yarn, inverse_frequencies(8) / 2, 2, 4096, says="base must be the one that inv_freq was made with"),
    case(
        yarn,
        inverse_frequencies(8),
        2,
        4096,
        truncate="false",
        error=TypeError,
        says="truncate must be True or False, got 'false'",
    ),
    *speed_cases(llama3, after=(2, 4096)),
    *factor_cases(llama3, SPEEDS, after=(4096,)),
    *count_cases(llama3, "train_len", SPEEDS, 2),
    *order_cases(llama3, "low_freq_factor", "high_freq_factor", SPEEDS, 2, 4096),
    *speed_cases(longrope, after=([1.0], [1.0], 1, 1)),
    case(
        longrope,
        SPEEDS,
        [1.0],
        SPEEDS,
        1,
        1,
        says="short_factor must have one number for each of the 3 pairs",
    ),
    case(
        longrope,
        SPEEDS,
        SPEEDS,
        [SPEEDS],
        1,
        1,
        says="long_factor must have one number for each of the 3 pairs",
    ),
    case(longrope, SPEEDS, [1, 0, 1], SPEEDS, 1, 1, says="short_factor must be greater than 0, got 0.0"),
    case(longrope, SPEEDS, SPEEDS, [1, np.nan, 1], 1, 1, says="long_factor must be finite, got nan"),
    *count_cases(longrope, "seq_len", SPEEDS, SPEEDS, SPEEDS, after=(1,)),
    *count_cases(longrope, "train_len", SPEEDS, SPEEDS, SPEEDS, 1),
    *size_cases(proportional, "head_dim", after=(0.5,)),
    *base_cases(proportional, 8, 0.5),
    case(proportional, 8, 1.5, says="fraction must be between 0 and 1, got 1.5"),
    case(proportional, 8, -0.1, says="fraction must be between 0 and 1, got -0.1"),
    case(proportional, 8, "1", error=TypeError, says="fraction must be a real number, got '1'"),
    *factor_cases(yarn_attention_factor),
    case(yarn_attention_factor, 2, mscale=-1, says="mscale must be at least 0, got -1"),
    case(
        yarn_attention_factor,
        2,
        mscale_all_dim="1",
        error=TypeError,
        says="mscale_all_dim must be a real number, got '1'",
    ),
    *factor_cases(longrope_attention_factor, after=(4096,)),
    *count_cases(longrope_attention_factor, "train_len", 2, least=2),
]


def integer_cases(function, name, *after, first=()):
    wrong = [
        ([0.0, 1.0], "got dtype float64"),
        (np.array([True]), "got dtype bool"),
        (np.array([0], dtype=np.float16), "got dtype float16"),
        (BrainFloats(), "got dtype float64"),
        (["first"], "got dtype <U5"),
        ([[0, 1], [2]], "got list"),
        (None, "got dtype object"),
    ]
    return [
        case(
            function,
            *first,
            value,
            *after,
            error=TypeError,
            says=f"{name} must be an array of integers, {got}",
        )
        for value, got in wrong
    ]


BIAS_CASES = [
    *integer_cases(relative_offsets, "query_positions", [0]),
    *integer_cases(relative_offsets, "key_positions", first=([0],)),
    case(relative_offsets, 3, [0], says="with the same batch axes, got shapes () and (1,)"),
    case(relative_offsets, [[0]], [0], says="with the same batch axes, got shapes (1, 1) and (1,)"),
    *count_cases(alibi_slopes, "num_heads", of="heads"),
    *positions_cases(alibi_bias, "offsets", [0.5]),
    case(alibi_bias, [0], [0.5], says="offsets must have the shape (query_len, key_len), or (batch, 1,"),
    case(alibi_bias, np.zeros((2, 3, 3)), [0.5], says="got (2, 3, 3); for left padding give positions as"),
    case(alibi_bias, [[0]], 0.5, says="slopes must be a list of numbers ≥ 0, one for each head, got 0.5"),
    case(alibi_bias, [[0]], [], says="slopes must be a list of numbers ≥ 0, one for each head, got []"),
    case(
        alibi_bias, [[0]], [-0.5], says="slopes must be a list of numbers ≥ 0, one for each head, got [-0.5]"
    ),
    case(alibi_bias, [[0]], [np.inf], says="slopes must be finite, got inf"),
    *integer_cases(t5_buckets, "offsets"),
    case(t5_buckets, [0], num_buckets=3, says="num_buckets must be at least 4, got 3"),
    case(t5_buckets, [0], num_buckets=1, bidirectional=False, says="num_buckets must be at least 2, got 1"),
    case(t5_buckets, [0], num_buckets=32.0, error=TypeError, says="num_buckets must be an integer, got 32.0"),
    case(t5_buckets, [0], max_distance=8, says="max_distance must be at least 9, got 8"),
    case(
        t5_buckets, [0], max_distance=16, bidirectional=False, says="max_distance must be at least 17, got 16"
    ),
    *integer_cases(shaw_indices, "offsets", 4),
    *count_cases(shaw_indices, "max_distance", [0]),
]

IDS = np.zeros((3, 4), dtype=int)


def layout_cases(function, *args):
    return [
        case(
            function,
            *args,
            layout=value,
            says=f"layout must be 'contiguous' or 'interleaved', got {value!r}",
        )
        for value in ("half", None, ["contiguous"])
    ]


def section_cases(function, *before):
    """For three pairs."""
    wrong = [
        (
            (1, 1, 2),
            ValueError,
            "sections must be three integers ≥ 0 with the sum 3 (the pairs), got [1, 1, 2]",
        ),
        ((1, 2), ValueError, "sections must be three integers ≥ 0 with the sum 3 (the pairs), got [1, 2]"),
        (
            (-1, 2, 2),
            ValueError,
            "sections must be three integers ≥ 0 with the sum 3 (the pairs), got [-1, 2, 2]",
        ),
        ((1.0, 1.0, 1.0), TypeError, "sections must be three integers, got dtype float64"),
    ]
    return [
        case(function, *before, value, layout="contiguous", error=error, says=says)
        for value, error, says in wrong
    ]


VISION_CASES = [
    *count_cases(mrope_axes, "half_dim", of="pairs", after=((1, 1, 1),), layout="contiguous"),
    *section_cases(mrope_axes, 3),
    *layout_cases(mrope_axes, 3, (1, 1, 1)),
    case(
        mrope_axes, 5, (1, 2, 2), layout="interleaved", says="sections must have room for H at 1, 4, … and W"
    ),
    *positions_cases(mrope_angles, "position_ids", SPEEDS, (1, 1, 1), layout="contiguous"),
    case(
        mrope_angles, [0, 1, 2], SPEEDS, (1, 1, 1), layout="contiguous", says="got (3,); for text alone use"
    ),
    case(
        mrope_angles,
        IDS[:2],
        SPEEDS,
        (1, 1, 1),
        layout="contiguous",
        says="must have the shape (3, *batch, seq_len)",
    ),
    *speed_cases(mrope_angles, IDS, after=((1, 1, 1),), layout="contiguous"),
    *section_cases(mrope_angles, IDS, SPEEDS),
    *layout_cases(mrope_angles, IDS, SPEEDS, (1, 1, 1)),
    *[
        case(
            mrope_position_ids, [segment], says="segments must be ('text', n), ('image', (h, w)) or ('video'"
        )
        for segment in ("text", ("audio", 3), ("text",), 3, {"text": 3}, (["text"], 3))
    ],
    case(
        mrope_position_ids, [("image", (2,))], says="the size of 'image' must have 2 numbers (h, w), got (2,)"
    ),
    case(mrope_position_ids, [("video", (2, 3))], says="the size of 'video' must have 3 numbers (t, h, w)"),
    case(mrope_position_ids, [("image", (0, 2))], says="the size of 'image' must be at least 1, got 0"),
    case(mrope_position_ids, [("text", -1)], says="the size of 'text' must be at least 0, got -1"),
    case(
        mrope_position_ids,
        [("text", 1.5)],
        error=TypeError,
        says="the size of 'text' must be an integer, got 1.5",
    ),
    case(mrope_position_ids, [], frame_interval=0, says="frame_interval must be greater than 0, got 0"),
    case(
        mrope_position_ids,
        [],
        frame_interval="1",
        error=TypeError,
        says="frame_interval must be a real number",
    ),
]


def linear(says, q=HEADS, k=HEADS, v=HEADS, error=ValueError, feature_map=elu_features, **options):
    return case(linear_attention, q, k, v, error=error, says=says, feature_map=feature_map, **options)


LINEAR_CASES = [
    linear("q must be a floating-point array, got dtype int64", q=HEADS.astype(int), error=TypeError),
    linear("k must have the axes (*batch, seq_len, head_dim), got (6,)", k=np.ones(6)),
    linear("q, k and v must agree in their batch and head axes", k=HEADS[:, :2], v=HEADS[:, :2]),
    linear("q, k and v must agree in their batch and head axes", k=HEADS[..., :2]),
    linear("q, k and v must agree in their batch and head axes", v=HEADS[..., :2, :]),
    linear("q and k must have the same length with causal, slopes or bias", q=HEADS[:, :, :2], causal=True),
    linear(
        "q and k must have the same length with causal, slopes or bias", q=HEADS[:, :, :2], bias=np.ones(5)
    ),
    linear("slopes must be given with causal=True and without bias, got causal=False", slopes=[1, 1, 1, 1]),
    linear(
        "slopes must be given with causal=True and without bias", causal=True, slopes=[1] * 4, bias=np.ones(5)
    ),
    linear("slopes must have the shape (), or (4,) with the heads in front", causal=True, slopes=[1, 1]),
    linear("slopes must be at least 0, got -1.0", causal=True, slopes=[1, 1, 1, -1]),
    linear("slopes must be finite or −∞, got NaN or +∞", causal=True, slopes=np.nan),
    linear("bias must have the shape (5,), or (4, 5) with the heads in front, got (3,)", bias=np.ones(3)),
    linear("bias must be finite or −∞, got NaN or +∞", bias=np.full(5, np.nan)),
    linear("bias must be an array of real numbers, got dtype bool", bias=np.ones(5) > 0, error=TypeError),
    linear("rotation must be a pair (cos, sin), got ndarray", rotation=COS, error=TypeError),
    linear("cos must have one row for each of the 3 positions of x, got 5 rows", rotation=(COS, SIN)),
    linear("feature_map(x) must have the shape", feature_map=lambda x: x[..., 0]),
    linear("feature_map(x) must have the shape", feature_map=lambda x: x * np.nan),
    linear(
        "feature_map(x) must be a floating-point array, got dtype bool",
        feature_map=lambda x: x > 0,
        error=TypeError,
    ),
    case(elu_features, [1, 2], error=TypeError, says="x must be a floating-point array, got dtype int64"),
    case(performer_features, ROWS > 0, ROWS, error=TypeError, says="x must be a floating-point array"),
    case(
        performer_features,
        ROWS,
        ROWS[:, :2],
        says="projection must have the shape (num_features, 6), got (3, 2)",
    ),
    case(
        performer_features,
        ROWS,
        ROWS[:0],
        says="projection must have the shape (num_features, 6), got (0, 6)",
    ),
    case(performer_features, ROWS, ROWS * np.nan, says="projection must be finite, got nan"),
]

CONFIG_CASES = [
    case(function, config, error=error, says=says)
    for function in (read_rope_config, mrope_layout, rope_settings)
    for config, error, says in [
        (None, TypeError, "config must be a dict or the path of a JSON file with one, got NoneType"),
        ({"a": 1}, ValueError, "config must have head_dim, or hidden_size and num_attention_heads, got a"),
        ({"head_dim": 9}, ValueError, "rotary_dim must be even and at least 2, got 9"),
        ({"head_dim": 8, "rope_theta": 1}, ValueError, "rope_theta must be greater than 1, got 1"),
        ({"head_dim": 8, "rope_scaling": 2}, TypeError, "rope_scaling must be a dict or null, got 2"),
        (
            {"head_dim": 8, "rope_scaling": {"type": "linear", "factr": 2}},
            ValueError,
            "must have known keys only, got factr",
        ),
    ]
] + [
    case(
        layer_types,
        [],
        error=TypeError,
        says="config must be a dict or the path of a JSON file with one, got list",
    ),
    case(
        layer_types, {"rope_scaling": 2}, error=TypeError, says="rope_scaling must be a dict or null, got 2"
    ),
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
    *SCALING_CASES,
    *BIAS_CASES,
    *VISION_CASES,
    *LINEAR_CASES,
    *CONFIG_CASES,
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
    assert walked == set().union(*map(public_functions, MODULES + CONFIG_MODULES))


def test_every_public_function_says_what_it_raises_and_where_it_comes_from():
    for function in set().union(*map(public_functions, MODULES + CONFIG_MODULES)):
        shape = [] if sys.modules[function.__module__] in CONFIG_MODULES else ["shape"]
        for part in (*shape, ">>> ", "Raises ", "Source: "):
            assert part in function.__doc__, f"the docstring of {function.__name__} lacks {part!r}"
