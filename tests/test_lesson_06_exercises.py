"""The checks of lesson 6: a right answer passes, and each typical mistake is named in both languages."""

import math

import numpy as np
import sympy

from companion.exercises import lesson_06 as lesson

s = sympy.Symbol("s", positive=True)
SPEEDS = 10000.0 ** (-np.arange(0, 128, 2) / 128)
R_50 = 4096 * 10000 ** (-100 / 128) / (2 * np.pi)


def ramp(inv_freq, train_len, alpha, beta):
    return (train_len * inv_freq / (2 * np.pi) - alpha) / (beta - alpha)


def by_parts(inv_freq, factor, train_len, alpha, beta):
    kept = np.clip(ramp(inv_freq, train_len, alpha, beta), 0, 1)
    return (1 - kept) * inv_freq / factor + kept * inv_freq


def swapped(inv_freq, factor, train_len, alpha, beta):
    kept = np.clip(ramp(inv_freq, train_len, alpha, beta), 0, 1)
    return kept * inv_freq / factor + (1 - kept) * inv_freq


def not_clipped(inv_freq, factor, train_len, alpha, beta):
    kept = ramp(inv_freq, train_len, alpha, beta)
    return (1 - kept) * inv_freq / factor + kept * inv_freq


def no_2_pi(inv_freq, factor, train_len, alpha, beta):
    kept = np.clip((train_len * inv_freq - alpha) / (beta - alpha), 0, 1)
    return (1 - kept) * inv_freq / factor + kept * inv_freq


def periods(inv_freq, factor, train_len, alpha, beta):
    kept = np.clip(ramp(inv_freq, train_len, alpha, beta), 0, 1)
    return 1 / ((1 - kept) * factor / inv_freq + kept / inv_freq)


def logarithmic(inv_freq, factor, train_len, alpha, beta):
    turns = train_len * inv_freq / (2 * np.pi)
    kept = np.clip(np.log(turns / alpha) / np.log(beta / alpha), 0, 1)
    return (1 - kept) * inv_freq / factor + kept * inv_freq


def multiplied(inv_freq, factor, train_len, alpha, beta):
    kept = np.clip(ramp(inv_freq, train_len, alpha, beta), 0, 1)
    return (1 - kept) * inv_freq * factor + kept * inv_freq


def base_with(pair, turns, head_dim, train_len):
    return (train_len / (2 * math.pi * turns)) ** (head_dim / (2 * pair))


def magnitude(factor, weight=1.0):
    return 0.1 * weight * math.log(factor) + 1


def attention_factor(rope):
    if rope.get("attention_factor") is not None:
        return rope["attention_factor"]
    over, under = rope.get("mscale"), rope.get("mscale_all_dim")
    if over and under:
        return magnitude(rope["factor"], over) / magnitude(rope["factor"], under)
    return magnitude(rope["factor"])


RIGHT = [
    ("6.1", 29),
    ("6.1", np.int64(29)),
    ("6.2", R_50),
    ("6.2", 0.489),
    ("6.3", 8 ** (63 / 46)),
    ("6.3", np.float32(8 ** (63 / 46))),
    ("6.4", [8192, 1000]),
    ("6.4", (1000, 5000, 4096)),
    ("6.5", by_parts),
    ("6.5", lambda inv_freq, *rest: by_parts(inv_freq.astype(np.float32), *rest).tolist()),
    ("6.6", base_with),
    ("6.6", lambda *case: np.float32(base_with(*case))),
    ("6.6", lambda i, r, d, n: math.exp(d * math.log(n / (2 * math.pi * r)) / (2 * i))),
    ("6.7", "(s + 1)**2 / (4*s)"),
    ("6.7", s / 4 + sympy.Rational(1, 2) + 1 / (4 * s)),
    ("6.7", (s + 1) ** 2 / (4 * s)),
    ("6.7", 1 + (sympy.Symbol("s") - 1) ** 2 / (4 * sympy.Symbol("s"))),
    ("6.8", np.exp(-0.5j * SPEEDS)),
    ("6.8", -np.exp(-0.5j * SPEEDS)),
    ("6.8", np.exp(-0.5j * SPEEDS).astype(np.complex64)),
    ("6.8", np.exp(-0.5j * SPEEDS).tolist()),
    ("6.9", attention_factor),
]

WRONG = [
    ("6.1", 18, "Llama 2", "Llama 2"),
    ("6.1", 35, "转满一圈的", "do complete a turn"),
    ("6.1", 28, "数少了一个", "one more"),
    ("6.1", 30, "数多了一个", "one fewer"),
    ("6.1", 58, "维度数", "counts dimensions"),
    ("6.1", 32, "Llama 3 是 8192", "For Llama 3 it is 8192"),
    ("6.1", 14, "Llama 3 是 500000", "For Llama 3 it is 500000"),
    ("6.1", 20, "应该是 29", "should be 29"),
    ("6.2", 1, "流行的说法", "commonly said"),
    ("6.2", 8 * R_50, "周期不变", "old period"),
    ("6.2", R_50 / 8, "约掉", "cancel"),
    ("6.2", 2 * np.pi * R_50, "弧度", "radians"),
    ("6.2", 1 / R_50, "上下颠倒", "upside down"),
    ("6.2", 7, "应该是 0.488", "should be 0.488"),
    ("6.3", 8, "还不够", "not enough"),
    ("6.3", 8 ** (46 / 63), "倒过来问", "other way"),
    ("6.3", 8 * 63 / 46, "指数上", "in the exponent"),
    ("6.3", 8 ** (64 / 46), "不是 64", "not 64"),
    ("6.3", 17.25, "四舍五入", "rounded number"),
    ("6.3", 17.252, "四舍五入", "rounded number"),
    ("6.3", 20, "应该是 17.25", "should be 17.25"),
    ("6.4", [4096], "还没有历史", "no history"),
    ("6.4", [100, 4096], "没有什么可记", "nothing to remember"),
    ("6.4", [100, 5000, 8192], "先长后短", "long first"),
    ("6.4", ["a"], "正整数的列表", "list of positive integers"),
    ("6.4", 8192, "还没有历史", "no history"),
    ("6.5", swapped, "快慢颠倒", "are exchanged"),
    ("6.5", not_clipped, "没有限制", "not held between"),
    ("6.5", no_2_pi, "少除了 2π", "2π is missing"),
    ("6.5", periods, "周期", "periods were blended"),
    ("6.5", logarithmic, "log r", "log r"),
    ("6.5", multiplied, "不是乘", "do not multiply"),
    ("6.5", lambda inv_freq, factor, *rest: inv_freq / factor, "这是内插", "plain interpolation"),
    ("6.5", lambda *arguments: np.clip(ramp(arguments[0], *arguments[2:]), 0, 1), "这是 γ", "that is γ"),
    ("6.5", lambda inv_freq, *rest: by_parts(inv_freq, 8.0, 4096, 1.0, 32.0), "应该是", "should be"),
    ("6.6", lambda *case: base_with(*case) ** 2, "2 漏了", "the 2 in the exponent"),
    ("6.6", lambda i, r, d, n: (n / (2 * np.pi * r)) ** (2 * i / d), "上下颠倒", "upside down"),
    ("6.6", lambda *case: 1 / base_with(*case), "正负号", "sign is wrong"),
    ("6.6", lambda i, r, d, n: base_with(i, r, d, n * 2 * np.pi), "少了 2π", "2π is missing"),
    ("6.6", lambda i, r, d, n: base_with(i, 1 / r, d, n), "不应当乘", "do not multiply"),
    ("6.6", lambda i, *rest: base_with(i + 1, *rest), "多数了 1", "one too large"),
    ("6.6", lambda *case: math.log(base_with(*case)), "ln b", "ln b"),
    ("6.6", lambda *case: 722.5, "应该是", "should be"),
    ("6.6", lambda *case: base_with(63, 1.0, 128, 4096), "应该是", "should be"),
    ("6.6", lambda i, r, d, n: base_with(i, r, 128, 4096), "应该是", "should be"),
    ("6.7", (s - 1) ** 2 / (4 * s), "前面的 1", "1 in front"),
    ("6.7", 4 * s / (s + 1) ** 2, "上下颠倒", "upside down"),
    ("6.7", s, "γ = 1/2", "γ = 1/2"),
    ("6.7", 1 + (s - 1) ** 2 / s, "最大不是 1", "does not reach 1"),
    ("6.7", 1 + (s - 1) ** 2 / (2 * s), "不是 1/2", "is not 1/2"),
    ("6.7", sympy.Rational(81, 256) * s, "s = 2 时应该是 9/8", "for s = 2 it should be 9/8"),
    ("6.7", 81 / 32, "一个也没有", "none"),
    ("6.7", s**2, "应该是 81/32", "should be 81/32"),
    ("6.8", np.ones(64), "还不是最大", "not the largest"),
    ("6.8", np.exp(0.5j * SPEEDS), "没有超过", "not above"),
    ("6.8", 2 * np.ones(64), "不能超过 1", "may not exceed 1"),
    ("6.8", np.full(64, np.nan), "不是有限数", "not finite"),
    ("6.8", np.ones(128), "64 个复数", "64 complex numbers"),
    ("6.9", lambda rope: magnitude(rope["factor"]), "不要再算", "not computed anew"),
    (
        "6.9",
        lambda rope: magnitude(rope["factor"]) * rope.get("attention_factor", 1.0),
        "不是再乘一遍",
        "no multiplier",
    ),
    (
        "6.9",
        lambda rope: (
            magnitude(rope["factor"], rope["mscale"])
            if len(rope) == 2 and "mscale" in rope
            else attention_factor(rope)
        ),
        "照最后一条",
        "the last rule holds",
    ),
    ("6.9", lambda rope: attention_factor(rope) ** 2, "平方", "the square"),
    (
        "6.9",
        lambda rope: rope.get("attention_factor", magnitude(rope["factor"])),
        "没有用到",
        "were not used",
    ),
    (
        "6.9",
        lambda rope: rope.get("attention_factor", magnitude(rope["factor"], rope.get("mscale", 1.0))),
        "还要除以",
        "divide by the same",
    ),
    ("6.9", lambda rope: 1 + 0.1 * math.log10(rope["factor"]), "自然对数", "natural logarithm"),
    ("6.9", lambda rope: 1 / attention_factor(rope), "上下颠倒", "upside down"),
    ("6.9", lambda rope: 3.0, "应该是", "should be"),
]


def test_the_checks_agree_with_companion_and_not_only_with_themselves():
    from companion.frequency_scaling import ntk_by_parts, yarn_attention_factor

    def companion_by_parts(inv_freq, factor, train_len, alpha, beta):
        return ntk_by_parts(inv_freq, factor, train_len, alpha=alpha, beta=beta)

    def companion_factor(rope):
        weights = {key: rope.get(key) for key in ("mscale", "mscale_all_dim")}
        return rope.get("attention_factor") or yarn_attention_factor(rope["factor"], **weights)

    assert lesson.exercise_5(companion_by_parts) is None
    assert lesson.exercise_9(companion_factor) is None
