"""The checks of lesson 8 accept right answers and name typical mistakes, in both languages."""

import math

import numpy as np
import pytest

from companion.attention import attention_weights
from companion.frequencies import inverse_frequencies
from companion.frequency_scaling import ntk_by_parts, yarn_attention_factor


def window(ids, end, length, last):
    return ids[end - length : end], ids[end + 1 - last : end + 1]


def tokens_past(lengths, losses, tolerance):
    worse = lengths[losses > losses[0] + tolerance]
    return worse[0] - lengths[0] if len(worse) else math.inf


def past(pick):
    """The answer of exercise 3 with another choice among the lengths that are worse."""

    def answer(lengths, losses, tolerance):
        worse = losses > losses[0] + tolerance
        return pick(lengths, losses, worse, tolerance) if worse.any() else math.inf

    return answer


def needed_factor(edge, factor):
    return 1 + math.log(factor) / edge


CHARGE = 1020 / 256
RIVALS = math.log(sum(math.exp(-r / 256) for r in range(1020)))
TURNS = 64 / (2 * math.pi)

RIGHT = [
    ("8.1", math.log(43.54 / 20.05)),
    ("8.1", 0.7755),
    ("8.2", window),
    ("8.2", lambda *given: [part.tolist() for part in window(*given)]),
    ("8.3", tokens_past),
    ("8.3", lambda *given: float(tokens_past(*given))),
    ("8.4", (TURNS - 1) / 31),
    ("8.4", 0.296),
    ("8.5", needed_factor),
    ("8.6", CHARGE + RIVALS),
    ("8.6", 9.51),
    ("8.7", "ADF"),
    ("8.7", "f, d, a"),
]
WRONG = [
    ("8.1", 43.54 / 20.05, "两个困惑度之比", "ratio of the perplexities"),
    ("8.1", 43.54 - 20.05, "不能直接相减", "before you subtract"),
    ("8.1", math.log2(43.54 / 20.05), "以 2 为底", "base 2"),
    ("8.1", math.log10(43.54 / 20.05), "以 10 为底", "base 10"),
    ("8.1", -0.7755, "符号反了", "wrong sign"),
    ("8.1", math.log(43.54 - 20.05), "不是反过来", "not the other way round"),
    ("8.2", lambda ids, end, n, last: ids[end - n : end], "两样东西", "two things"),
    ("8.2", lambda ids, end, n, last: (ids[end - n : end], ids[end - last : end]), "正好读到了答案", "has just read them"),
    ("8.2", lambda ids, end, n, last: (ids[end - n : end], ids[end + 1 - n : end + 1]), "同一批字符", "other characters to guess"),
    ("8.2", lambda ids, end, n, last: (ids[end - n : end], ids[end : end + 1]), "要猜的应当有 last 个", "`last` characters to guess"),
    ("8.2", lambda ids, end, n, last: (ids[end - n : end], window(ids, end, n, last)[1] + 1), "多挪了一位", "once too often"),
    ("8.2", lambda ids, end, n, last: (ids[end + 1 - n : end + 1], ids[end + 1 - last : end + 1]), "包含了 end", "contains the character at `end`"),
    ("8.2", lambda ids, end, n, last: (ids[end - n - last : end - last], ids[end + 1 - last : end + 1]), "一直到 end 之前", "up to just before"),
    ("8.2", lambda ids, end, n, last: (ids[:end], ids[end + 1 - last : end + 1]), "只有 length 个", "only `length`"),
    ("8.2", lambda ids, end, n, last: (ids[:n], ids[end + 1 - last : end + 1]), "不在全文开头", "not at the start"),
    ("8.3", past(lambda n, loss, worse, t: n[worse][0]), "这是长度本身", "the length itself"),
    ("8.3", past(lambda n, loss, worse, t: n[worse.argmax() - 1] - n[0]), "最后一个还好的", "last length still good"),
    ("8.3", past(lambda n, loss, worse, t: (~worse).sum()), "这是个数", "that is a count"),
    ("8.3", past(lambda n, loss, worse, t: n[worse][-1] - n[0]), "题目要第一个", "give the first"),
    ("8.3", lambda n, loss, t: (n[loss > loss.min() + t][0] if (loss > loss.min() + t).any() else math.inf) - n[0], "不与最低的比", "not with the lowest"),
    ("8.3", lambda *given: math.inf, "从未变差", "never do"),
    ("8.3", lambda *given: min(tokens_past(*given), 1e9), "math.inf", "math.inf"),
    ("8.4", TURNS, "这是圈数", "number of turns"),
    ("8.4", TURNS / 32, "不从 0", "not from 0"),
    ("8.4", 1 - (TURNS - 1) / 31, "被内插的份额", "share interpolated"),
    ("8.4", 1.0, "还没有到", "does not reach"),
    ("8.4", 63 / 31, "除以 2π", "divide by 2π"),
    ("8.4", (TURNS - 1) / 3, "这是 β = 4", "that is β = 4"),
    ("8.5", lambda e, s: e + math.log(s), "新的分数差", "the new edge"),
    ("8.5", lambda e, s: math.log(s) / e, "漏了 1", "the 1 is missing"),
    ("8.5", lambda e, s: 1 + math.log(s), "忘了除以 edge", "division by edge"),
    ("8.5", lambda e, s: 1 + math.log2(s) / e, "自然对数", "natural logarithm"),
    ("8.5", lambda e, s: yarn_attention_factor(s) ** 2, "这是 YaRN 的温度", "temperature of YaRN"),
    ("8.5", lambda e, s: s, "只需要多 ln s", "ln s more"),
    ("8.5", lambda e, s: 1 - math.log(s) / e, "符号反了", "wrong sign"),
    ("8.6", CHARGE, "这只是路费", "the charge only"),
    ("8.6", math.log(1020), "没有 ALiBi", "without ALiBi"),
    ("8.6", RIVALS, "漏了针自己的路费", "of the needle itself"),
    ("8.6", CHARGE + math.log(1020), "也打了折", "discounted too"),
    ("8.6", RIVALS - CHARGE, "不是减去", "not taken off"),
    ("8.6", math.exp(CHARGE + RIVALS), "这是倍数", "that is a factor"),
    ("8.7", "DF", "A 漏了", "A is missing"),
    ("8.7", "ABDF", "忽略远处", "ignoring what is far"),
    ("8.7", "ACDF", "随底数", "changes with the base"),
    ("8.7", "AF", "D 漏了", "D is missing"),
    ("8.7", "ADEF", "就比 RoPE 升得多", "more than RoPE by 1.5 L"),
    ("8.7", "AD", "F 漏了", "F is missing"),
    ("8.7", "ADFG", "微调 200 步", "200 steps"),
    ("8.7", "ADX", "没有 X", "no option X"),
    ("8.7", 1, "写成一个字符串", "as one string"),
]  # fmt: skip


def test_the_share_of_exercise_4_is_that_of_the_ramp_of_yarn():
    inv_freq = inverse_frequencies(16, 100.0)
    slowed = ntk_by_parts(inv_freq, 4, 64, alpha=1, beta=32)[0] / inv_freq[0]
    assert slowed == pytest.approx(dict(RIGHT[::-1])["8.4"] * 3 / 4 + 1 / 4)


@pytest.mark.parametrize(("edge", "keys", "factor"), [(8.0, 64, 16), (5.0, 100, 4)])
def test_the_factor_of_exercise_5_keeps_the_weight(edge, keys, factor):
    def weight(count, by):
        return attention_weights(np.concatenate([np.zeros(count), [by * edge]]))[-1]

    assert weight(keys * factor, needed_factor(edge, factor)) == pytest.approx(weight(keys, 1))


def test_the_edge_of_exercise_6_gives_half_of_the_weight():
    scores = -np.arange(1021) / 256
    scores[-1] += CHARGE + RIVALS
    assert attention_weights(scores)[-1] == pytest.approx(0.5)
