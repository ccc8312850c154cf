"""The checks of lesson 4: a right answer passes, and each typical mistake is named in both languages."""

import numpy as np
import sympy

from companion.exercises import lesson_04 as lesson

c, m, n, theta = (
    sympy.Symbol("c", positive=True),
    *sympy.symbols("m n", integer=True),
    sympy.Symbol("theta", real=True),
)


def turn_half(x, positions, inv_freq, sign=1):
    angles = np.outer(positions, inv_freq)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate(
        [a * np.cos(angles) - sign * b * np.sin(angles), b * np.cos(angles) + sign * a * np.sin(angles)],
        axis=-1,
    )


def turn_adjacent(x, positions, inv_freq):
    angles = np.outer(positions, inv_freq)
    a, b = x[:, 0::2], x[:, 1::2]
    pairs = [a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)]
    return np.stack(pairs, axis=-1).reshape(x.shape)


def turn_in_place(x, positions, inv_freq):
    angles, half = np.outer(positions, inv_freq), x.shape[-1] // 2
    x[:, :half] = x[:, :half] * np.cos(angles) - x[:, half:] * np.sin(angles)
    x[:, half:] = x[:, half:] * np.cos(angles) + x[:, :half] * np.sin(angles)
    return x


def to_half(weight, num_heads):
    by_head = weight.reshape(num_heads, -1, weight.shape[-1])
    return np.concatenate([by_head[:, 0::2], by_head[:, 1::2]], axis=1).reshape(weight.shape)


def to_adjacent(weight, num_heads):
    by_head = weight.reshape(num_heads, -1, weight.shape[-1])
    half = by_head.shape[1] // 2
    return np.stack([by_head[:, :half], by_head[:, half:]], axis=2).reshape(weight.shape)


def peak_query(k, distance, inv_freq):
    return turn_half(k[None], [-distance], inv_freq)[0]


RIGHT = [
    ("4.1", "AC"),
    ("4.1", "c, a"),
    ("4.2", 2 * np.pi * 10000 ** (62 / 64)),
    ("4.2", 47117),
    ("4.3", np.array([[1.0, 1.0], [0.0, 1.0]])),
    ("4.3", [[2, 1], [1, 1]]),
    ("4.4", sympy.Matrix([[0, 1], [1, 0]])),
    ("4.4", np.array([[1, 0], [0, -1]])),
    ("4.5", turn_half),
    ("4.6", to_half),
    ("4.7", peak_query),
    ("4.7", lambda k, distance, inv_freq: 3 * peak_query(k, distance, inv_freq)),
    ("4.8", c ** (m - n)),
    ("4.8", c**m * c**-n),
    ("4.8", 1.0 * c ** (m - n)),
]

WRONG = [
    ("4.1", "ABC", "方向反了", "the other way"),
    ("4.1", "ACD", "D 的 m − n", "D has m − n = 2"),
    ("4.1", "AB", "B 的 m − n", "B has m − n = −3"),
    ("4.1", "A", "还漏了一个", "is missing"),
    ("4.1", "AE", "只能用字母", "only the letters"),
    ("4.1", 3, "字符串", "as one string"),
    ("4.2", 2 * np.pi * 10000, "不是 32", "not 32"),
    ("4.2", 10000 ** (62 / 64), "少了 2π", "2π is missing"),
    ("4.2", 2 * np.pi * 10000 ** (31 / 64), "指数是 2i/d", "the exponent is 2i/d"),
    ("4.2", 2 * np.pi * 10000 ** (63 / 64), "数的是对", "counts pairs"),
    ("4.2", 10000 ** (-62 / 64), "这是转速", "that is the speed"),
    ("4.2", 360 * 10000 ** (62 / 64), "不是 360", "not 360"),
    ("4.2", 5.0, "太小了", "too small"),
    ("4.2", 1e6, "太大了", "too large"),
    ("4.2", 47000, "很接近", "but close"),
    ("4.2", -5.0, "波长是正数", "is positive"),
    ("4.2", 5 + 1j, "波长是正数", "is positive"),
    ("4.2", np.nan, "波长是正数", "is positive"),
    ("4.2", [5.0], "形状应该是 ()", "shape should be ()"),
    ("4.2", "47117", "得到的却是 str", "got str"),
    ("4.3", np.diag([2, 0.5]), "对角矩阵", "diagonal"),
    ("4.3", [[0, -1], [1, 0]], "正交", "orthogonal"),
    ("4.3", [[1, 1], [1, 1]], "行列式应为 1", "determinant should be 1"),
    ("4.3", np.eye(3), "2 × 2", "2 × 2"),
    ("4.4", sympy.eye(2), "需要一个镜像", "mirror image is needed"),
    ("4.4", sympy.diag(2, -1), "不是正交", "not orthogonal"),
    ("4.4", sympy.eye(3), "2 × 2", "2 × 2"),
    ("4.5", lambda x, at, speed: x, "没有变", "unchanged"),
    ("4.5", lambda x, at, speed: turn_half(x, at, speed, sign=-1), "方向反了", "the other way"),
    ("4.5", turn_adjacent, "相邻配对", "adjacent pairing"),
    ("4.5", lambda x, at, speed: turn_half(x, np.arange(len(x)), speed), "忽略了 positions", "were ignored"),
    ("4.5", lambda x, at, speed: turn_half(x, np.add(at, 1), speed), "多数了 1", "one too large"),
    (
        "4.5",
        lambda x, at, speed: turn_half(x, np.rad2deg(at), speed),
        "不要换成度",
        "do not convert to degrees",
    ),
    ("4.5", lambda x, at, speed: turn_half(x, np.deg2rad(at), speed), "已经是弧度", "in radians already"),
    ("4.5", turn_in_place, "旧的 a", "the old a"),
    ("4.5", lambda x, at, speed: x[:, :3], "形状应该是 (4, 6)", "shape should be (4, 6)"),
    ("4.6", lambda weight, num_heads: weight, "没有变", "in their old order"),
    ("4.6", lambda weight, num_heads: to_half(weight, 1), "跨过了头", "crosses the heads"),
    ("4.6", to_adjacent, "方向反了", "the other way round"),
    ("4.6", lambda weight, num_heads: weight[:, [0, 2, 4, 1, 3, 5]], "重排的是列", "columns (inputs)"),
    ("4.6", lambda weight, num_heads: np.roll(to_half(weight, 4), 4, 0)[::1], "应该是", "should be"),
    ("4.7", lambda k, distance, inv_freq: k, "还没有转过", "not been turned yet"),
    ("4.7", lambda k, distance, inv_freq: peak_query(k, -distance, inv_freq), "方向反了", "the wrong way"),
    ("4.7", lambda k, distance, inv_freq: k[None], "形状应是", "should have the shape"),
    (
        "4.7",
        lambda k, distance, inv_freq: peak_query(k, distance + 1, inv_freq),
        "最大值在 6",
        "the peak is at 6",
    ),
    ("4.8", c ** (m + n), "−n 次方", "power −n"),
    ("4.8", c ** (n - m), "正负号反了", "sign of the exponent"),
    ("4.8", c**m, "键那边的", "side of the key"),
    ("4.8", c ** (m - n) * sympy.cos((m - n) * theta), "只要因子", "only the factor"),
    ("4.8", c ** abs(m - n), "不要取绝对值", "no absolute value"),
    ("4.8", c + m - n, "c = 2、m = 7、n = 4 时因子应是 8", "for c = 2, m = 7, n = 4 the factor should be 8"),
    ("4.8", c**3, "n = 7 时因子应是 1/9，现在是 27", "n = 7 the factor should be 1/9, it is 27"),
    ("4.8", m + 1, "应是 1/9，现在是 6", "should be 1/9, it is 6"),
    ("4.8", 2 * n, "应是 1/9，现在是 14", "should be 1/9, it is 14"),
    ("4.8", 8, "应是 1/9，现在是 8", "should be 1/9, it is 8"),
]


def test_the_checks_agree_with_companion_and_not_only_with_themselves():
    from companion.rope import apply_rope, rotation_table

    assert lesson.exercise_5(lambda x, at, speed: apply_rope(x, *rotation_table(at, speed))) is None
