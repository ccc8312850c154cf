"""The checks of lesson 2 accept right answers and name typical mistakes, in both languages."""

import numpy as np
import sympy

k, m, theta = (*sympy.symbols("k m", integer=True), sympy.Symbol("theta", positive=True))
TURN = np.pi * 2


def matrix(sign=1, steps=k, at=0):
    c, s = sympy.cos((steps + at) * theta), sympy.sin((steps + at) * theta)
    return sympy.Matrix([[c, -sign * s], [sign * s, c]])


def table(positions, d_model, last=None, sign=-1):
    pairs = d_model // 2
    speeds = 10000.0 ** (sign * np.arange(pairs) / (pairs - 1 if last is None else last))
    angles = np.outer(positions, speeds)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def adjacent(codes):
    return np.stack(np.split(codes, 2, axis=1), axis=-1).reshape(codes.shape)


def roberta(ids, padding_idx, axis=-1):
    real = ids != padding_idx
    return np.cumsum(real, axis=axis) * real + padding_idx


def look_back(k, d_model, sign=1):
    W = np.zeros((d_model, d_model))  # noqa: N806
    for i, angle in enumerate(k * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)):
        c, s = np.cos(angle), sign * np.sin(angle)
        W[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return W


def look_back_with_cosines_first(k, d_model):
    order = np.arange(d_model).reshape(-1, 2)[:, ::-1].ravel()
    half = np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])
    return look_back(k, d_model)[order][:, half]


def read_seat(code, base=10_000.0, dials=slice(None), rounded=True):
    speeds = base ** (-np.arange(0, len(code), 2) / len(code))
    angles = np.arctan2(code[0::2], code[1::2])
    seat = 0.0
    for angle, speed in list(zip(angles[::-1], speeds[::-1], strict=True))[dials]:
        seat = (angle + TURN * np.round((seat * speed - angle) / TURN)) / speed
    return int(np.round(seat)) if rounded else seat


def nearest_code(code, base):
    speeds = base ** (-np.arange(0, 64, 2) / 64)
    angles = np.outer(np.arange(10_000), speeds)
    return (np.sin(angles) @ code[0::2] + np.cos(angles) @ code[1::2]).argmax()


RIGHT = [
    ("2.1", 10),
    ("2.2", 128),
    ("2.3", [TURN / 3, TURN / 4]),
    ("2.3", np.array([TURN / 4, TURN / 6])),
    ("2.3", [TURN * 5 / 3, -TURN * 3 / 4, TURN / 2]),
    ("2.4", matrix()),
    ("2.4", matrix().tolist()),
    ("2.4", matrix(steps=k + m, at=-m)),
    ("2.5", table),
    ("2.5", lambda p, d: table(p, d).astype(np.float32).tolist()),
    ("2.6", roberta),
    ("2.6", lambda ids, pad: roberta(ids, pad).tolist()),
    ("2.7", look_back),
    ("2.7", lambda k, d_model: 3 * look_back(k, d_model)),
    ("2.8", read_seat),
    ("2.8", nearest_code),
]
WRONG = [
    ("2.1", 9, "从 0 变成 1", "from 0 to 1"),
    ("2.1", 1, "低九位", "the nine below"),
    ("2.1", 512, "不是座位号", "not for the seat"),
    ("2.1", 3, "还不对", "not yet"),
    ("2.2", 256, "那是维度的编号", "that is a dimension"),
    ("2.2", 257, "那是维度", "that is a dimension"),
    ("2.2", 129, "从 0 数起", "count from 0"),
    ("2.2", 64, "2i/d", "2i/d"),
    ("2.2", 512 * np.log(200 * np.pi) / (2 * np.log(10000)), "约去 2π", "cancel the 2π"),
    ("2.2", 100, "还不对", "not yet"),
    ("2.3", [TURN / 12], "只有一只钟", "one dial"),
    ("2.3", [3, 4], "像是周期", "look like periods"),
    ("2.3", [120, 90], "不是度", "not degrees"),
    ("2.3", [1.0, 0.1], "座位 12", "seat 12"),
    ("2.3", [TURN / 12, TURN / 3], "第 0 只钟单独", "dial 0 alone"),
    ("2.3", [TURN / 2, TURN / 6], "座位 0 和 6", "0 and 6"),
    ("2.3", [0.0, TURN / 5], "座位 12", "seat 12"),
    ("2.3", "3, 4", "得到的却是 str", "got str"),
    ("2.3", [], "有限的转速", "finite speeds"),
    ("2.4", matrix(-1), "先正弦后余弦", "for (sin, cos)"),
    ("2.4", sympy.eye(2), "单位矩阵", "identity"),
    ("2.4", matrix(steps=1), "挪 1 个座位", "by 1 seat"),
    ("2.4", matrix(steps=3), "结果[0, 0]", "result[0, 0]"),
    ("2.4", matrix(at=m), "不该有 m", "m should not"),
    ("2.4", matrix(steps=sympy.Symbol("q")), "里面却有 q", "q should not"),
    ("2.4", sympy.eye(3), "2 × 2", "2 × 2"),
    ("2.4", 7, "2 × 2", "2 × 2"),
    ("2.4", 2 * matrix(), "结果[0, 0]", "result[0, 0]"),
    ("2.5", lambda p, d: table(p, d, last=d // 2), "论文的转速", "speeds of the paper"),
    ("2.5", lambda p, d: adjacent(table(p, d)), "相邻排法", "adjacent order"),
    ("2.5", lambda p, d: adjacent(table(p, d, last=d // 2)), "论文的版本", "version of the paper"),
    ("2.5", lambda p, d: np.roll(table(p, d), d // 2, axis=1), "cos 放到了前面", "cosines came first"),
    ("2.5", lambda p, d: table(np.arange(len(p)), d), "忽略了 positions", "positions were ignored"),
    ("2.5", lambda p, d: table(p + 1, d), "多数了 1", "one too large"),
    ("2.5", lambda p, d: table(p, d, last=d - 1), "不是维数减 1", "not of dimensions"),
    ("2.5", lambda p, d: table(p, d, sign=1), "少了负号", "minus sign"),
    ("2.5", lambda p, d: table(p, d)[0], "形状", "shape"),
    ("2.5", lambda p, d: table(p, 8), "把维数写死", "width into the code"),
    ("2.6", lambda ids, pad: np.tile(np.arange(5), (3, 1)), "从 0 数起", "and from 0"),
    ("2.6", lambda ids, pad: np.tile(np.arange(5) + 2, (3, 1)), "第一个真词元数起", "the first real token"),
    (
        "2.6",
        lambda ids, pad: np.where(ids != pad, np.arange(5) + 2, pad),
        "还是占了号",
        "still takes numbers",
    ),
    ("2.6", lambda ids, pad: np.cumsum(ids != pad, axis=1) + pad, "padding_idx 本身", "padding_idx itself"),
    ("2.6", lambda ids, pad: roberta(ids, pad) - pad, "padding_idx + 1", "padding_idx + 1"),
    ("2.6", lambda ids, pad: roberta(ids, pad) - pad - 1, "不是 0", "not 0"),
    (
        "2.6",
        lambda ids, pad: (np.cumsum(ids != pad, axis=1) + pad) * (ids != pad),
        "本身，不是 0",
        "itself, not 0",
    ),
    ("2.6", lambda ids, pad: roberta(ids, pad, axis=0), "错了轴", "wrong axis"),
    (
        "2.6",
        lambda ids, pad: np.cumsum(ids != pad).reshape(3, 5) * (ids != pad) + pad,
        "各数各的",
        "for itself",
    ),
    ("2.6", lambda ids, pad: roberta(ids, 1), "写死", "into the code"),
    (
        "2.6",
        lambda ids, pad: np.cumsum(ids > pad, axis=1) * (ids > pad) + pad,
        "也是真词元",
        "real tokens too",
    ),
    ("2.7", lambda k, d: look_back(k, d, sign=-1), "方向反了", "the wrong way"),
    ("2.7", lambda k, d: np.eye(d), "自己的座位", "one's own seat"),
    ("2.7", lambda k, d: np.eye(d // 2), "形状", "shape"),
    ("2.7", look_back_with_cosines_first, "先正弦后余弦", "sine before cosine"),
    ("2.8", lambda code, base: read_seat(code, base, rounded=False), "最后要取整", "round it"),
    ("2.8", lambda code, base: read_seat(code, base, dials=slice(-1, None)), "靠慢钟数圈", "count the turns"),
    ("2.8", lambda code, base: read_seat(code, base, dials=slice(0, 1)), "快钟一步步改准", "refine it"),
    ("2.8", lambda code, base: read_seat(code), "把底数写死", "base into the code"),
    ("2.8", lambda code, base: code, "形状", "shape"),
    ("2.8", lambda code, base: -1000, "读成了 -1000", "read as -1000"),
]
