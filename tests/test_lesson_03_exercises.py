"""The checks of lesson 3 accept right answers and name typical mistakes, in both languages."""

import json
import re

import numpy as np
import pytest

from companion.figures.relative import bucket_staircase
from companion.relative_bias import relative_offsets, t5_buckets


def cached_bias(table, past, new, *, first=None, bidirectional=False, sign=1):
    queries = np.arange(new) + (past if first is None else first)
    offsets = sign * relative_offsets(queries, np.arange(past + new))
    return table[t5_buckets(offsets, bidirectional=bidirectional)].transpose(2, 0, 1)


def masked_bias(table, past, new):
    offsets = relative_offsets(np.arange(past, past + new), np.arange(past + new))
    return np.where(offsets > 0, -np.inf, cached_bias(table, past, new))


def last_bucket_start(num_buckets, max_distance, back=1, rounded=np.ceil):
    near = num_buckets // 2
    far = num_buckets - near
    return rounded(near * (max_distance / near) ** ((far - back) / far))


def align(by_offset, shift=-1, sign=1):
    rows = np.arange(len(by_offset))
    columns = sign * (rows - rows[:, None]) + len(by_offset) + shift
    return np.take_along_axis(by_offset, np.clip(columns, 0, by_offset.shape[1] - 1), axis=1)


def align_by_folding(by_offset):
    length = len(by_offset)
    if length == 1:
        return by_offset
    return by_offset.ravel()[length - 1 : -1].reshape(length, 2 * length - 2)[:, :length]


def align_without_shift(by_offset):
    rows = np.arange(len(by_offset))
    return by_offset[rows[:, None], rows - rows[:, None]]


def staircase_sums(u, starts, weights, *, lag=0, closed=False):
    prefix = np.concatenate([np.zeros((1, u.shape[1])), np.cumsum(u, axis=0)])
    m, total = np.arange(len(u)) + lag, np.zeros(u.shape)
    ends = [*starts[1:], starts[-1] if closed else max(len(u), starts[-1]) + abs(lag) + 1]
    for a, b, weight in zip(starts, ends, weights, strict=True):
        low, high = (np.clip(m - end + 1, 0, np.arange(len(u)) + 1) for end in (b, a))
        total += weight * (prefix[high] - prefix[low])
    return total


def both_ways(u, starts, weights):
    distances = np.abs(np.arange(len(u))[:, None] - np.arange(len(u)))
    return weights[np.searchsorted(starts, distances, side="right") - 1] @ u


RIGHT = [
    ("3.1", "CDEF"),
    ("3.1", "f, e, d, c"),
    ("3.1", ["C", "D", "E", "F"]),
    ("3.2", 13056),
    ("3.2", 13056.0),
    ("3.3", [5, 21, 15, 24]),
    ("3.3", np.array([5, 21, 15, 24])),
    ("3.4", 2 * np.pi / 3),
    ("3.4", -np.pi / 2),
    ("3.4", 2.0943951),
    ("3.4", 1.5708),
    ("3.4", np.float32(2 * np.pi / 3)),
    ("3.5", cached_bias),
    ("3.6", last_bucket_start),
    ("3.7", align),
    ("3.7", align_by_folding),
    ("3.8", staircase_sums),
    ("3.8", lambda u, *steps: staircase_sums(u.astype(np.float32), *steps).astype(np.float32)),
]
WRONG = [
    ("3.1", "BCDEF", "B 会变", "B changes"),
    ("3.1", "ACDEF", "A 会变", "A changes"),
    ("3.1", "DEF", "C 漏了", "C is missing"),
    ("3.1", "CEF", "D 漏了", "D is missing"),
    ("3.1", "CDF", "E 漏了", "E is missing"),
    ("3.1", "CDE", "F 漏了", "F is missing"),
    ("3.1", "CDEFG", "没有 G", "no option G"),
    ("3.1", 4, "字符串", "as one string"),
    ("3.2", 2 * 16 * 64 * 6, "2K + 1 行：距离 0", "offset 0 has one too"),
    ("3.2", 2 * 8 * 64 * 6, "不是 K 行", "not K:"),
    ("3.2", 2 * 9 * 64 * 6, "不是 K + 1 行", "not K + 1"),
    ("3.2", 17 * 64 * 6, "键和值各有一张表", "a table each"),
    ("3.2", 2 * 17 * 64, "一共 6 层", "6 layers"),
    ("3.2", 2 * 17 * 6, "64 维的向量", "64 numbers"),
    ("3.2", 2 * 17 * 64 * 6 * 16, "不要乘以头数", "do not multiply"),
    ("3.2", 1, "还不对", "not yet"),
    ("3.3", [21, 5, 31, 8], "左右反了", "swapped"),
    ("3.3", [5, 0, 30, 0], "解码器的桶", "a decoder's buckets"),
    ("3.3", [5, 5, 15, 8], "忘了方向", "direction is missing"),
    ("3.3", [5, 21, 100, 25], "按对数合并", "merged by logarithm"),
    ("3.3", [5, 21, 15, 25], "8 到 11 同桶", "8 to 11 share"),
    ("3.3", [5, 21, 14, 24], "从 91 开始", "begins at 91"),
    ("3.3", [5, 20, 15, 23], "0 号桶", "bucket 0"),
    ("3.3", [5, 21, 15, 7], "还不对", "not yet"),
    ("3.3", [5, 21, 15], "形状应该是 (4,)", "shape should be (4,)"),
    ("3.4", 120, "这是度", "in degrees"),
    ("3.4", np.pi, "1 − 1 + 1 = 1", "1 − 1 + 1 = 1"),
    ("3.4", 1.0, "还不是 0", "not 0"),
    ("3.4", 2.09, "分母是 -0.0076", "denominator is -0.0076"),
    ("3.4", "π", "应该得到一个数", "expected a number"),
    ("3.4", np.nan, "有限的数", "finite number"),
    ("3.5", lambda *given: cached_bias(*given, first=0), "不是从 0", "not at 0"),
    ("3.5", lambda table, past, new: cached_bias(table, past, new, first=past + 1), "多数了 1", "one too far"),
    ("3.5", lambda *given: cached_bias(*given, sign=-1), "符号反了", "sign is wrong"),
    ("3.5", lambda *given: cached_bias(*given, bidirectional=True), "编码器的桶", "an encoder's buckets"),
    ("3.5", lambda *given: np.moveaxis(cached_bias(*given), 0, -1), "第一个轴", "heads come first"),
    ("3.5", masked_bias, "掩码另加", "mask is added separately"),
    ("3.5", lambda *given: cached_bias(*given)[0], "形状应该是", "shape should be"),
    ("3.6", lambda buckets, farthest: farthest, "再多一级", "one more step"),
    ("3.6", lambda *given: last_bucket_start(*given, rounded=np.floor), "向上取整", "round up"),
    ("3.6", lambda *given: last_bucket_start(*given, rounded=float), "向上取整", "round up"),
    ("3.6", lambda *given: last_bucket_start(*given, back=2), "倒数第二级", "last step but one"),
    ("3.6", lambda buckets, farthest: last_bucket_start(buckets // 2, farthest), "编码器的一侧", "one side of an encoder"),
    ("3.6", lambda buckets, farthest: buckets // 2, "对数部分开始", "logarithmic part begins"),
    ("3.6", lambda *given: 7, "结果应该是", "the result should be"),
    ("3.7", lambda table: align(table, sign=-1), "左右反了", "left and right are swapped"),
    ("3.7", lambda table: table[:, : len(table)], "前 L 列", "first L columns"),
    ("3.7", lambda table: table[:, len(table) - 1 :], "后 L 列", "last L columns"),
    ("3.7", lambda table: align(table, shift=0), "多移了一列", "one column too far"),
    ("3.7", lambda table: align(table, shift=-2), "少移了一列", "one column short"),
    ("3.7", align_without_shift, "忘了加 L − 1", "L − 1 is not added"),
    ("3.7", lambda table: align(table).T, "对调", "exchanged"),
    ("3.7", lambda table: table, "形状应该是 (4, 4)", "shape should be (4, 4)"),
    ("3.8", lambda *given: staircase_sums(*given, lag=-1), "自己漏掉了", "token itself is missing"),
    ("3.8", lambda *given: staircase_sums(*given, lag=1), "差了一格", "off by one"),
    ("3.8", lambda *given: staircase_sums(*given, closed=True), "没有终点", "no end"),
    ("3.8", both_ways, "只加过去", "past only"),
    ("3.8", lambda u, starts, weights: np.cumsum(u, axis=0), "没有用到 weights", "not used yet"),
    ("3.8", lambda u, starts, weights: u, "应该是", "should be"),
]  # fmt: skip


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_staircase_draws_the_buckets_of_the_package(lang):
    data = json.loads(re.search(r"data = (\{.*\}), words = ", bucket_staircase(lang).data)[1])
    offsets = np.arange(-140, 141)
    for buckets, both in zip(data["buckets"], (True, False), strict=True):
        assert buckets == t5_buckets(offsets, bidirectional=both).tolist()
    assert set(range(32)) - set(data["buckets"][0]) == {16}


def test_the_staircase_refuses_a_place_outside_its_sliders():
    with pytest.raises(ValueError, match="raise reach"):
        bucket_staircase("en", query=500)
