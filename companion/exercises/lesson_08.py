"""Checks of lesson 8, the laboratory. Each returns None, or what is wrong as a pair (Chinese, English)."""

import math

import numpy as np

from companion.exercises import difference


def exercise_1(answer):
    """The rise from a perplexity of 20.05 to one of 43.54, in nats."""
    ratio = 43.54 / 20.05
    mistakes = [
        (ratio, "这是两个困惑度之比；损失是它的对数", "that is the ratio of the perplexities; the loss is its logarithm"),
        (43.54 - 20.05, "困惑度是损失的指数，不能直接相减", "a perplexity is an exponential; take logarithms before you subtract"),
        (math.log2(ratio), "这是以 2 为底的对数，单位是比特；nat 用自然对数", "that is base 2, in bits; nats take the natural logarithm"),
        (math.log10(ratio), "用了以 10 为底的对数；nat 用自然对数", "that is base 10; nats take the natural logarithm"),
        (-math.log(ratio), "符号反了：损失是上升", "the wrong sign: the loss rises"),
        (math.log(43.54 - 20.05), "先取对数再相减，不是反过来", "first the logarithms, then the difference, not the other way round"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=2e-3) or difference(answer, math.log(ratio), rtol=2e-3)


def exercise_2(window):
    """(tokens, targets): ids[end − length : end], and the last targets up to and including ids[end]."""
    for end, length, last in [(50, 20, 4), (50, 8, 4), (99, 64, 16)]:
        ids = np.arange(1000, 1100)
        got = window(ids, end, length, last)
        if not isinstance(got, tuple | list) or len(got) != 2:
            return (
                "要返回两样东西：读入的和要猜的",
                "return two things: what is read and what is to be guessed",
            )
        tokens, targets = ids[end - length : end], ids[end + 1 - last : end + 1]
        wrong_targets = [
            (ids[end - last : end], "要猜的没有往后挪一位：模型正好读到了答案", "the targets are not moved on by one: the model has just read them"),
            (ids[end + 1 - length : end + 1], "要猜的应当只有最后 last 个，否则每种长度猜的不是同一批字符", "only the last `last` are to be guessed, or each length has other characters to guess"),
            (ids[end : end + 1], "要猜的应当有 last 个", "there are `last` characters to guess"),
            (targets + 1, "多挪了一位：end 是最后一个要猜的字符", "moved on once too often: `end` is the last character to guess"),
        ]  # fmt: skip
        wrong_tokens = [
            (ids[end + 1 - length : end + 1], "读入的包含了 end，那正是要猜的字符", "what is read contains the character at `end`, which is to be guessed"),
            (ids[end - length - last : end - last], "读入的要一直到 end 之前，模型才能一位一位地猜", "read up to just before `end`: each guess is made after one more character"),
            (ids[:end], "读入的只有 length 个字符", "only `length` characters are read"),
            (ids[:length], "读入的应当在要猜的字符前面，不在全文开头", "what is read stands before the characters to guess, not at the start of the text"),
        ]  # fmt: skip
        for got_part, want, mistakes in zip(
            got, (tokens, targets), (wrong_tokens, wrong_targets), strict=True
        ):
            if difference(got_part, want) is not None:
                return _known_mistake(got_part, mistakes) or difference(got_part, want)
    return None


def exercise_3(tokens_past):
    """The first length whose loss exceeds the first loss by more than the tolerance, minus the first length; inf if none."""
    cases = [
        ([64, 80, 96, 128], [2.0, 2.03, 2.07, 2.4], 0.05, 32),
        ([64, 80, 96, 128], [2.0, 1.9, 1.97, 2.08], 0.05, 64),
        ([512, 532, 562, 612], [3.0, 3.2, 3.01, 3.5], 0.1, 20),
        ([64, 128, 256], [2.0, 2.01, 2.02], 0.05, math.inf),
    ]
    for lengths, losses, tolerance, want in cases:
        got = tokens_past(np.array(lengths), np.array(losses), tolerance)
        over = [n for n, loss in zip(lengths, losses, strict=True) if loss > losses[0] + tolerance]
        over_best = [n for n, loss in zip(lengths, losses, strict=True) if loss > min(losses) + tolerance]
        first = lengths.index(over[0]) if over else len(lengths)
        mistakes = [
            (want + lengths[0], "这是长度本身；题目问的是超出训练长度多少", "that is the length itself; the question is how far past the trained one"),
            (lengths[first - 1] - lengths[0], "这是最后一个还好的长度；题目要第一个变差的", "that is the last length still good; give the first that is worse"),
            (len([n for n in lengths if n not in over]), "这是个数，不是长度之差", "that is a count, not a difference of lengths"),
            (over[-1] - lengths[0] if over else None, "这是最后一个变差的长度；题目要第一个", "that is the last length that is worse; give the first"),
            (over_best[0] - lengths[0] if over_best else None, "应当与训练长度处的损失比，不与最低的比", "compare with the loss at the trained length, not with the lowest"),
            (math.inf, "把“从未变差”用在了变差的曲线上", "this curve does get worse; inf is for those that never do"),
        ]  # fmt: skip
        if difference(got, want) is not None:
            if want == math.inf:
                return "从未变差时要返回 math.inf", "return math.inf where the loss never gets worse"
            return _known_mistake(got, mistakes) or difference(got, want)
    return None


def exercise_4(answer):
    """γ of the fastest pair of RoPE at L = 64, α = 1, β = 32."""
    turns = 64 / (2 * math.pi)
    kept = (turns - 1) / 31
    mistakes = [
        (turns, "这是圈数 r₀；题目问 γ", "that is the number of turns, r₀; the question asks for γ"),
        (turns / 32, "γ 从 r = α = 1 开始上升，不从 0", "γ rises from r = α = 1, not from 0"),
        (1 - kept, "这是被内插的份额 1 − γ；γ 是保留的份额", "that is 1 − γ, the share interpolated; γ is the share kept"),
        (1, "β = 32 时最快的一对还没有到 γ = 1：它在 64 个词元里转不到 32 圈", "with β = 32 the fastest pair does not reach γ = 1: it makes fewer than 32 turns in 64 tokens"),
        ((64 - 1) / 31, "圈数要除以 2π：64 弧度不是 64 圈", "divide by 2π: 64 radians are not 64 turns"),
        ((turns - 1) / 3, "这是 β = 4；题目问 β = 32", "that is β = 4; the question is about β = 32"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=2e-3) or difference(answer, kept, rtol=2e-3)


def exercise_5(needed_factor):
    """1 + ln(s) / edge: what the scores must be multiplied by when there are s times as many keys."""
    for edge, factor in [(8.0, 16.0), (5.0, 4.0), (3.0, 1.0), (12.0, 100.0)]:
        got, want = needed_factor(edge, factor), 1 + math.log(factor) / edge
        mistakes = [
            (edge + math.log(factor), "这是新的分数差；题目问分数要乘以几，再除以 edge", "that is the new edge; the question asks for the factor, so divide by edge"),
            (math.log(factor) / edge, "漏了 1：键没有变多时应当乘以 1", "the 1 is missing: with as many keys as before the factor is 1"),
            (1 + math.log(factor), "忘了除以 edge", "the division by edge is missing"),
            (1 + math.log2(factor) / edge, "要用自然对数：softmax 用的是 e", "take the natural logarithm: the softmax is about e"),
            (1 + math.log10(factor) / edge, "要用自然对数：softmax 用的是 e", "take the natural logarithm: the softmax is about e"),
            ((0.1 * math.log(factor) + 1) ** 2, "这是 YaRN 的温度；题目问恰好需要多少", "that is the temperature of YaRN; the question is what exactly is needed"),
            (factor, "键多了 s 倍，分数差只需要多 ln s", "s times as many keys call for ln s more, not for s times the score"),
            (1 - math.log(factor) / edge, "符号反了：键越多，分数差要越大", "the wrong sign: more keys call for a larger edge"),
        ]  # fmt: skip
        if difference(got, want) is not None:
            hint = _known_mistake(got, mistakes) or difference(got, want)
            return (
                f"edge={edge:g}, factor={factor:g}：{hint[0]}",
                f"edge={edge:g}, factor={factor:g}: {hint[1]}",
            )
    return None


def exercise_6(answer):
    """The edge that gives half of the weight at distance 1020 to a head of slope 1/256."""
    slope, distance = 1 / 256, 1020
    rivals = math.log(np.exp(-slope * np.arange(distance)).sum())
    want = slope * distance + rivals
    mistakes = [
        (slope * distance, "这只是路费；还要压过其余的键", "that is the charge only; the other keys have to be outweighed too"),
        (math.log(distance), "这是没有 ALiBi 时的答案", "that is the answer without ALiBi"),
        (rivals, "漏了针自己的路费", "the charge of the needle itself is missing"),
        (slope * distance + math.log(distance), "其余的键也打了折：先求 Σ e^(−r/256) 再取对数", "the other keys are discounted too: sum e^(−r/256), then take the logarithm"),
        (rivals - slope * distance, "路费要补上，不是减去", "the charge has to be made up, not taken off"),
        (math.exp(want), "这是倍数；题目问分数差", "that is a factor; the question asks for a difference of scores"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=2e-3) or difference(answer, want, rtol=2e-3)


def exercise_7(answer):
    """What the laboratory supports: A, D, F."""
    reasons = {
        "A": ("A 漏了：这正是图 8.1 里量到的", "A is missing: that is just what figure 8.1 measures"),
        "B": ("B 不是：损失平稳，忽略远处也能做到", "B is not: ignoring what is far away gives a flat loss as well"),
        "C": ("C 不是：次序随底数、α、β 和任务改变", "C is not: the order changes with the base, α, β and the task"),
        "D": ("D 漏了：图 8.1 里量到了，而且五个种子、两种文本都如此", "D is missing: measured in figure 8.1, for five seeds and two texts"),
        "E": ("E 不是：最后一个桶从 128 开始时，T5 在 1.5 倍处就比 RoPE 升得多", "E is not: with the last bucket at 128, T5 has risen more than RoPE by 1.5 L"),
        "F": ("F 漏了：只差温度的两行就是对照", "F is missing: the two rows that differ in temperature only are the control"),
        "G": ("G 不是：论文里微调 200 步就够了；这里的步数、模型和长度都太小", "G is not: in the paper 200 steps of tuning were enough; steps, model and lengths are too small here"),
    }  # fmt: skip
    if not isinstance(answer, str):
        return '请把字母写成一个字符串，如 "AD"', 'write the letters as one string, such as "AD"'
    chosen = set(answer.upper()) - set(" ,，、")
    if unknown := sorted(chosen - reasons.keys()):
        return f"没有 {unknown[0]} 这个选项", f"there is no option {unknown[0]}"
    return next((reasons[x] for x in reasons if (x in chosen) != (x in "ADF")), None)


def _known_mistake(got, mistakes, rtol=1e-9):
    for value, zh, en in mistakes:
        if value is not None and difference(got, value, rtol=rtol) is None:
            return zh, en
    return None
