"""The checks of lesson 9 accept right answers and name typical mistakes, in both languages."""

import numpy as np
import sympy

from companion.frequencies import inverse_frequencies
from companion.multimodal import mrope_angles, mrope_position_ids


def axes_of(sections, *, stop=3):
    axes = np.zeros(sum(sections), dtype=int)
    for axis in (1, 2):
        axes[axis : stop and stop * sections[axis] : 3] = axis
    return axes


def block_of(kind, size, time=0):
    if kind == "text":
        return np.tile(np.arange(size), (3, 1))
    ids = np.indices((1, *size)).reshape(3, -1)
    ids[0] += time * np.arange(ids.shape[1])
    return ids


def sequence(segments, advance=lambda block: block.max() + 1, **options):
    blocks, start = [], 0
    for kind, size in segments:
        blocks.append(start + block_of(kind, size, **options))
        start += advance(block_of(kind, size))
    return np.hstack(blocks)


def new_text(ids, count, start=None):
    return np.tile((ids.max() + 1 if start is None else start) + np.arange(count), (3, 1))


alpha, theta = sympy.symbols("alpha theta", real=True)

RIGHT = [
    ("9.1", 12),
    ("9.1", np.int64(12)),
    ("9.2", -9560),
    ("9.2", 50.0 - 9610.0),
    ("9.3", axes_of),
    ("9.3", lambda sections: axes_of(sections).tolist()),
    ("9.4", sequence),
    ("9.4", lambda segments: sequence(segments).tolist()),
    ("9.5", new_text),
    ("9.5", lambda ids, count: np.stack([new_text(ids, count)[0]] * 3).astype(float)),
    ("9.6", "DE"),
    ("9.6", "e, d"),
    ("9.7", (theta - alpha) / 2),
    ("9.7", theta / 2 - alpha / 2),
]
WRONG = [
    ("9.1", 26, "这是词元数", "number of tokens"),
    ("9.1", 8, "列走得更远", "columns go farther"),
    ("9.1", 11, "最大的数", "largest number"),
    ("9.1", 13, "多加了 1", "one too many"),
    ("9.1", 6, "只看了时间轴", "time only"),
    ("9.1", 15, "不相加", "not added"),
    ("9.1", 7, "忘了前面", "are missing"),
    ("9.1", 40, "再看看提示", "look at the hint"),
    ("9.2", 9560, "符号反了", "wrong sign"),
    ("9.2", 50, "还要减去词元数", "subtract the number"),
    ("9.2", -9561, "少了 1", "one too few"),
    ("9.2", 30 - 9610, "取了列", "takes the columns"),
    ("9.2", 22 - 9610, "取了行", "takes the rows"),
    ("9.2", 82 - 9610, "不相加", "not added"),
    ("9.2", 1, "再看看提示", "look at the hint"),
    ("9.3", lambda sections: np.repeat(np.arange(3), sections), "分段布局", "contiguous layout"),
    ("9.3", lambda sections: axes_of(sections, stop=None), "没有停", "do not stop"),
    ("9.3", lambda sections: axes_of(sections, stop=1), "少乘了 3", "lacks a factor 3"),
    ("9.3", lambda sections: -axes_of(sections) % 3, "对调了", "are exchanged"),
    ("9.3", lambda sections: np.zeros(sum(sections)), "结果", "the result"),
    ("9.4", lambda segments: sequence(segments)[[0, 2, 1]], "行和列对调", "rows and columns are exchanged"),
    ("9.4", lambda segments: sequence(segments, lambda b: b.shape[1]), "接着词元数", "counts on by tokens"),
    ("9.4", lambda segments: sequence(segments, lambda b: b[0].max() + 1), "只看了时间轴", "only time"),
    ("9.4", lambda segments: sequence(segments, lambda b: b.max()), "少加了 1", "one too few"),
    ("9.4", lambda segments: sequence(segments, lambda b: 0), "都从 0 开始", "starts at 0"),
    ("9.4", lambda segments: sequence(segments, time=1), "图像里 T 不动，同", "one image has one time"),
    ("9.4", lambda s: new_text(np.array([-1]), sequence(s).shape[1]), "一维位置", "ordinary positions"),
    ("9.4", lambda segments: sequence(segments)[0], "形状", "the shape"),
    ("9.5", lambda ids, count: new_text(ids, count, ids.shape[1]), "缓存的长度", "length of the cache"),
    ("9.5", lambda ids, count: ids[:, -1:] + 1 + np.arange(count), "最后一个词元", "the last token"),
    ("9.5", lambda ids, count: new_text(ids, count, ids[0, -1] + 1), "只看了时间轴", "time only"),
    ("9.5", lambda ids, n: ids.max(1, keepdims=True) + 1 + np.arange(n), "三个轴会得到不同", "different numbers"),
    ("9.5", lambda ids, count: new_text(ids, count, ids.max()), "少了 1", "one too few"),
    ("9.5", lambda ids, count: new_text(ids, count)[0], "要三行", "three rows"),
    ("9.5", lambda ids, count: new_text(ids, count, 0), "结果", "the result"),
    ("9.6", "ADE", "A 不能", "A cannot"),
    ("9.6", "BDE", "B 不能", "B cannot"),
    ("9.6", "CDE", "C 不能", "C cannot"),
    ("9.6", "E", "D 漏了", "D is missing"),
    ("9.6", "D", "E 漏了", "E is missing"),
    ("9.6", "DX", "没有 X 这个选项", "no option X"),
    ("9.6", 3, "写成一个字符串", "as one string"),
    ("9.7", theta - alpha, "各分一半", "share it"),
    ("9.7", (alpha - theta) / 2, "符号反了", "wrong sign"),
    ("9.7", theta / 3, "这里 α 是给定的", "α is given"),
    ("9.7", (theta + alpha) / 2, "要减掉", "is subtracted"),
    ("9.7", theta, "还不对", "not yet"),
    ("9.7", sympy.Symbol("m"), "出现了 m", "found m"),
]  # fmt: skip


def test_the_letters_of_exercise_6_are_the_inputs_that_reveal_the_wrong_layout():
    speeds = inverse_frequencies(128, 5e6)
    q, k = np.random.default_rng(0).standard_normal((2, 1000, 64, 2)) @ [1, 1j]

    def scores(ids, layout):
        turns = np.exp(1j * mrope_angles(ids, speeds, (24, 20, 20), layout=layout))
        return ((q[: len(turns)] * turns) @ (k[: len(turns)] * turns).conj().T).real

    tall = [("image", (4, 4)), ("text", 5)]
    inputs = {
        "A": ([("text", 1000)], slice(None), slice(None)),
        "B": ([("text", 3), ("image", (1, 1)), ("text", 3)], slice(None), slice(None)),
        "C": (tall, slice(16, None), slice(16, None)),
        "D": (tall, slice(16, None), slice(0, 16)),
        "E": ([("video", (3, 1, 1))], slice(None), slice(None)),
    }
    seen = []
    for letter, (segments, rows, columns) in inputs.items():
        ids = mrope_position_ids(segments)
        good, bad = (scores(ids, layout)[rows, columns] for layout in ("interleaved", "contiguous"))
        if not np.allclose(good, bad, rtol=0, atol=1e-9 * np.abs(good).max()):
            seen.append(letter)
    assert seen == ["D", "E"]
