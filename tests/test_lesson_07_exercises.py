"""The checks of lesson 7 accept right answers and name typical mistakes, in both languages."""

import math

import numpy as np
import pytest

from companion.attention import attention, attention_weights
from companion.relative_bias import alibi_bias, alibi_slopes, relative_offsets


def bias(query, key, slope, *, sign=1, future=-np.inf):
    offset = np.asarray(key) - np.asarray(query)[:, None]
    return np.where(offset > 0, future, sign * slope * offset)


def slopes(heads):
    power = 2 ** int(math.log2(heads))
    first = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    finer = 2.0 ** (-4 * np.arange(1, 2 * power, 2) / power)
    return np.concatenate([first, finer[: heads - power]])


def from_doubled(heads, start, step):
    power = 2 ** int(math.log2(heads))
    doubled = slopes(2 * power)
    return np.concatenate([slopes(power), doubled[start::step][: heads - power]])


def cut(heads):
    return slopes(2 ** math.ceil(math.log2(heads)))[:heads]


def extra_first(heads):
    power = 2 ** int(math.log2(heads))
    return np.concatenate([slopes(heads)[power:], slopes(power)])


def horizon(slope, spread, share, *, extra=0):
    c = share / (share + (1 - share) * math.exp(spread))
    return max(0, math.ceil(-math.log(c) / slope) - 1) + extra


def recurrence(q, k, v, slope, *, discount_below=True, divide=True):
    above, below = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1])
    rows = []
    for q_i, k_i, v_i in zip(q, k, v, strict=True):
        above = np.exp(-slope) * above + np.outer(k_i, v_i)
        below = (np.exp(-slope) if discount_below else 1.0) * below + k_i
        rows.append(q_i @ above / (q_i @ below if divide else 1.0))
    return np.array(rows)


def torn_apart(q, k, v, slope):
    with np.errstate(all="ignore"):
        k = k * np.exp(slope * np.arange(len(k)))[:, None]
        above = np.cumsum(k[:, :, None] * v[:, None, :], axis=0)
        below = np.cumsum(k, axis=0)
        return np.einsum("lf,lfw->lw", q, above) / np.einsum("lf,lf->l", q, below)[:, None]


RIGHT = [
    ("7.1", 3),
    ("7.1", 24 / 8),
    ("7.2", math.log2(131072 / 10)),
    ("7.2", 13.678),
    ("7.3", bias),
    ("7.4", slopes),
    ("7.4", lambda heads: alibi_slopes(heads).tolist()),
    ("7.5", "ABCE"),
    ("7.5", "e, c, b, a"),
    ("7.3", lambda q, k, m: bias(q, k, m).astype(np.float32)),
    ("7.3", lambda q, k, m: bias(q, k, m).tolist()),
    ("7.6", 40 * 4096**2 * 4 / 2**30),
    ("7.6", np.float32(2.5)),
    ("7.7", "CDE"),
    ("7.8", horizon),
    ("7.8", lambda *case: float(horizon(*case))),
    ("7.8", lambda *case: np.int64(horizon(*case))),
    ("7.9", recurrence),
    ("7.9", lambda *given: recurrence(*given).astype(np.float32)),
    ("7.9", lambda *given: recurrence(*given).tolist()),
]
WRONG = [
    ("7.1", -3, "符号反了", "wrong sign"),
    ("7.1", 192, "24 乘以了 8", "24 times 8"),
    ("7.1", math.exp(3), "权重要翻的倍数", "factor for the weight"),
    ("7.1", math.exp(-3), "e⁻³ 是折扣", "e⁻³ is the discount"),
    ("7.1", 3 / 8, "不除以 √d", "not divided by √d"),
    ("7.1", 24, "还要乘以斜率", "multiply it by the slope"),
    ("7.1", 5, "应该是 3", "should be 3"),
    ("7.2", 17, "只扣 1 分", "charges 1"),
    ("7.2", math.log2(1310720), "应当除", "do not multiply"),
    ("7.2", math.log(13107.2), "自然对数", "natural logarithm"),
    ("7.2", math.log10(13107.2), "以 10 为底", "base 10"),
    ("7.2", -math.log2(13107.2), "符号反了", "wrong sign"),
    ("7.2", 14, "不取整", "not rounded"),
    ("7.2", 10 / 131072, "这是斜率", "that is the slope"),
    ("7.3", lambda q, k, m: bias(q, k, m, sign=-1), "越远加得越多", "the farther the more"),
    ("7.3", lambda q, k, m: m * (k - q[:, None]), "未来的键得到了正的偏置", "get a positive bias"),
    ("7.3", lambda q, k, m: -m * abs(k - q[:, None]), "没有挡住", "not masked"),
    ("7.3", lambda q, k, m: bias(q, k, m, future=0.0), "未来的键得到 0", "keys of the future get 0"),
    ("7.3", lambda q, k, m: bias(k, q, m).T, "掩码却反了", "mask is reversed"),
    ("7.3", lambda q, k, m: bias(q, k, 0.5), "结果", "the result"),
    ("7.3", lambda q, k, m: bias(q, k, 1.0), "忘了乘以 slope", "slope is missing"),
    ("7.3", lambda q, k, m: bias(np.arange(len(q)), k, m), "结果", "the result"),
    ("7.3", lambda q, k, m: bias(q, k, m)[0], "形状应该是 (4, 4)", "shape should be (4, 4)"),
    ("7.4", lambda h: 2.0 ** (-8 * np.arange(h) / h), "从 0 数起", "starts at 0"),
    ("7.4", lambda h: 2.0 ** (8 * np.arange(1, h + 1) / h), "少了负号", "lacks its minus sign"),
    ("7.4", lambda h: 2.0 ** (-8 * np.arange(1, h + 1) / h), "H = 6：这是论文那句话", "H = 6: that is the sentence"),
    ("7.4", lambda h: np.sort(slopes(h))[::-1], "排了序", "but sorted"),
    ("7.4", lambda h: from_doubled(h, 1, 2), "第 2、4、6", "numbers 2, 4, 6"),
    ("7.4", lambda h: from_doubled(h, 0, 1), "隔一个取一个", "every other slope"),
    ("7.4", cut, "更大的 2 的幂再截断", "next higher power of two"),
    ("7.4", extra_first, "次序反了", "wrong order"),
    ("7.4", lambda h: np.ones(h), "H = 8：结果", "H = 8: the result"),
    ("7.5", "ABCDE", "斜率变小", "slope gets smaller"),
    ("7.5", "BCE", "A 漏了", "A is missing"),
    ("7.5", "ACE", "B 漏了", "B is missing"),
    ("7.5", "ABE", "C 漏了", "C is missing"),
    ("7.5", "ABC", "E 漏了", "E is missing"),
    ("7.5", "ABCEF", "最近的两个键颠倒了", "change places"),
    ("7.5", "ABCEG", "符号反了", "sign is flipped"),
    ("7.5", "ABX", "没有 X 这个选项", "no option X"),
    ("7.5", 4, "写成一个字符串", "as one string"),
    ("7.6", 1.25, "4 个字节，不是 2 个", "4 bytes, not 2"),
    ("7.6", 40 * 4096**2 * 4 / 1e9, "不是 10⁹", "not 10⁹"),
    ("7.6", 40 * 4096**2 / 2**30, "忘了每个数 4 个字节", "takes 4 bytes"),
    ("7.6", 4096**2 * 4 / 2**30, "忘了乘以头数", "heads are missing"),
    ("7.6", 2560, "这是 MiB", "in MiB"),
    ("7.6", 40 * 4096**2 * 4, "这是字节数", "in bytes"),
    ("7.6", 40 * 4096 * 4 / 2**30, "只算了一行", "one row only"),
    ("7.7", "ACDE", "每对词元的距离都不变", "every pair keeps its distance"),
    ("7.7", "BCDE", "叠起来还是对称", "so is the stack"),
    ("7.7", "DE", "C 漏了", "C is missing"),
    ("7.7", "CE", "D 漏了", "D is missing"),
    ("7.7", "CD", "E 漏了", "E is missing"),
    ("7.8", lambda *case: horizon(*case, extra=1), "多了 1", "one too many"),
    ("7.8", lambda m, d, e: horizon(m, 2 * d, e), "不要再乘 2", "do not double it"),
    ("7.8", lambda m, d, e: horizon(m, -d, e), "方向反了", "the wrong way"),
    ("7.8", lambda m, d, e: horizon(m, d, 1 - e), "近处占 share", "to the near keys"),
    ("7.8", lambda m, d, e: horizon(m, d, e) - 0.5, "要一个整数", "a whole number"),
    ("7.8", lambda m, d, e: 7, "结果", "the result"),
    ("7.9", lambda q, k, v, m: recurrence(q, k, v, 0.0), "没有打折", "no discount"),
    ("7.9", lambda q, k, v, m: recurrence(q, k, v, -m), "符号反了", "wrong sign"),
    ("7.9", lambda q, k, v, m: recurrence(q, k, v, m, divide=False), "忘了除以", "division by the sum"),
    ("7.9", lambda q, k, v, m: recurrence(q, k, v, m, discount_below=False), "分母没有打折", "denominator is not discounted"),
    ("7.9", lambda q, k, v, m: recurrence(q, k, v, 0.5), "slope=0.125：结果", "slope=0.125: the result"),
    ("7.9", torn_apart, "溢出", "overflow"),
    ("7.9", lambda q, k, v, m: v, "结果", "the result"),
]  # fmt: skip


def test_the_letters_of_exercise_5_are_those_that_leave_the_weights_alone():
    i, j = np.arange(6)[:, None], np.arange(6)
    scores = np.random.default_rng(0).standard_normal((6, 6))
    changes = {"A": j + 0 * i, "B": j - i - 1, "C": -abs(i - j), "D": (j - i) / 8, "E": -abs(i + 1 - j)}
    changes |= {"F": -abs(i - 1 - j), "G": i - j}

    def weights(offsets):
        return attention_weights(scores + np.where(j > i, -np.inf, 0.5 * offsets))

    same = [x for x, offsets in changes.items() if np.allclose(weights(offsets), weights(j - i))]
    assert "".join(same) == "ABCE"


def test_the_letters_of_exercise_7_are_those_that_tell_a_sentence_from_its_reversal():
    rng = np.random.default_rng(0)
    words, cls = rng.standard_normal((5, 8)), rng.standard_normal((1, 8))
    weights = rng.standard_normal((4, 3, 2, 8, 8)) / 3  # layers; q, k, v; heads

    def encoder(rows, biases, layers=1):
        for w_q, w_k, w_v in weights[:layers]:
            heads = zip(w_q, w_k, w_v, biases, strict=True)
            rows = rows + sum(attention(rows @ q, rows @ k, rows @ v, bias=b) for q, k, v, b in heads)
        return rows.mean(axis=0)

    def biases(length, kind):
        offsets = relative_offsets(np.arange(length), np.arange(length))
        if kind == "half":
            return [alibi_bias(offsets, [0.5])[0], alibi_bias(-offsets, [0.25])[0]]
        if kind == "two slopes":
            return [np.where(offsets < 0, 1.0, 3.0) * -slope * abs(offsets) for slope in (0.5, 0.25)]
        return list(alibi_bias(offsets, [0.5, 0.25], causal=False))

    def gap(kind, layers=1, first=0):
        forward, backward = words, words[::-1]
        if first:
            forward, backward = np.vstack([cls, forward]), np.vstack([cls, backward])
        pair = (encoder(rows, biases(len(rows), kind), layers) for rows in (forward, backward))
        return np.abs(np.subtract(*pair)).max()

    gaps = {
        "A": gap("even"),
        "B": gap("even", 4),
        "C": gap("half"),
        "D": gap("two slopes"),
        "E": gap("even", 1, 1),
    }
    assert [x for x, size in gaps.items() if size > 1e-9] == ["C", "D", "E"]


@pytest.mark.parametrize(("slope", "spread", "share"), [(0.1, 2.0, 0.05), (0.03, 0.0, 0.01), (0.5, 6.0, 0.2)])
def test_the_horizon_of_exercise_8_is_the_least_one_in_the_worst_case(slope, spread, share):
    distance = np.arange(5000)

    def beyond(r):
        weights = attention_weights(np.where(distance > r, spread, 0.0) - slope * distance)
        return weights[distance > r].sum()

    r = horizon(slope, spread, share)
    assert beyond(r) <= share < beyond(r - 1)
