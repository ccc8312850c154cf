"""Checks of lesson 6, beyond the trained length. Each returns None, or what is wrong as a pair (Chinese, English)."""

import math
import numbers

import numpy as np
import sympy

from companion.exercises import difference


def exercise_1(answer):
    """Pairs of Llama 3 (d = 128, b = 500000, L = 8192) that do not complete a turn: 29."""
    mistakes = [
        (18, "18 是 Llama 2 的；这里底数和训练长度都变了", "18 belongs to Llama 2; here both base and trained length are different"),
        (35, "35 是转满一圈的，题目问转不满的", "35 pairs do complete a turn; the question asks for those that do not"),
        (28, "第一个转不满的是 i = 35，最后一个是 i = 63：数少了一个", "the first that falls short is i = 35, the last is i = 63: that is one more"),
        (30, "第一个转不满的是 i = 35，最后一个是 i = 63：数多了一个", "the first that falls short is i = 35, the last is i = 63: that is one fewer"),
        (58, "58 是维度数；一对有两维", "58 counts dimensions; a pair has two"),
        (32, "32 对：训练长度仍是 4096 吧？Llama 3 是 8192", "32 pairs: is the trained length still 4096? For Llama 3 it is 8192"),
        (14, "14 对：底数仍是 10000 吧？Llama 3 是 500000", "14 pairs: is the base still 10000? For Llama 3 it is 500000"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or difference(answer, 29)


def exercise_2(answer):
    """Turns of pair 50 at the target length once its period is L_test / r: r itself."""
    turns = _turns(128, 10000.0, 4096)[50]
    mistakes = [
        (1.0, "走满一圈正是那个流行的说法；圈数是 L_test 除以新的周期", "a full turn is just what is commonly said; the number of turns is L_test over the new period"),
        (8 * turns, "这是周期不变时的圈数；周期已经变成 8 倍", "those are the turns with the old period, which is now 8 times as long"),
        (turns / 8, "文本也长了 8 倍，两个 8 约掉", "the text is 8 times as long as well, and the two 8s cancel"),
        (2 * np.pi * turns, "这是弧度，题目问圈数", "those are radians; the question asks for turns"),
        (1 / turns, "上下颠倒了", "upside down"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=5e-3) or difference(answer, turns, rtol=5e-3)


def exercise_3(answer):
    """The factor with which NTK-aware keeps pair 46 in range for a text 8 times as long: 8^(63/46)."""
    want = 8 ** (63 / 46)
    mistakes = [
        (8.0, "用 8，第 46 对只慢到原来的 1/4.56，还不够", "with 8, pair 46 slows down by 4.56 only, which is not enough"),
        (8 ** (46 / 63), "这是 s = 8 时第 46 对慢下来的倍数；题目倒过来问", "that is how much pair 46 slows down at s = 8; the question runs the other way"),
        (8 * 63 / 46, "倍数在指数上：s^(46/63) = 8", "the numbers belong in the exponent: s^(46/63) = 8"),
        (8 ** (64 / 46), "最后一对的编号是 63，不是 64", "the last pair is number 63, not 64"),
        (round(want, 2), "这是正文里四舍五入的数；题目要推导它：写成算式", "that is the rounded number of the text; derive it and write an expression"),
        (round(want, 3), "这是四舍五入的数；写成算式", "that is a rounded number; write an expression"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=2e-6) or difference(answer, want, rtol=2e-6)


def exercise_4(answer):
    """Lengths in order, after which the remembering class uses wrong speeds for the last one."""
    lengths = list(answer) if isinstance(answer, list | tuple | np.ndarray) else [answer]
    if not lengths or not all(isinstance(n, numbers.Integral) and n > 0 for n in lengths):
        return (
            "要一个正整数的列表，例如 [1000, 4096]",
            "a list of positive integers is wanted, such as [1000, 4096]",
        )
    if len(lengths) == 1:
        return "只有一次调用，还没有历史", "one call alone has no history"
    if max(lengths) <= 4096:
        return (
            "都没有超过训练长度 4096，没有什么可记",
            "none is longer than the trained 4096, so there is nothing to remember",
        )
    if lengths[-1] == max(lengths):
        return (
            "最后一段就是最长的，记住的正好是它：要先长后短",
            "the last text is the longest, so what is remembered is right: long first, short after",
        )
    return None


def exercise_5(function):
    """NTK-by-parts with the paper's ramp: `function(inv_freq, factor, train_len, alpha, beta)`."""
    inv_freq = 10000.0 ** (-np.arange(0, 64, 2) / 64)
    arguments = (8.0, 4096, 1.0, 32.0)
    got = function(inv_freq.copy(), *arguments)
    want = _by_parts(inv_freq, *arguments)
    turns = 4096 * inv_freq / (2 * np.pi)
    kept = (turns - 1) / 31
    clipped, logarithmic = np.clip(kept, 0, 1), np.clip(np.log(turns) / np.log(32), 0, 1)
    mistakes = [
        (clipped * inv_freq / 8 + (1 - clipped) * inv_freq, "快慢颠倒了：圈数多的保持，圈数少的除以 s", "fast and slow are exchanged: many turns are kept, few are divided by s"),
        ((1 - kept) * inv_freq / 8 + kept * inv_freq, "γ 没有限制在 0 和 1 之间", "γ is not held between 0 and 1"),
        (_by_parts(inv_freq, 8.0, 4096 * 2 * np.pi, 1.0, 32.0), "圈数少除了 2π：r = Lθ / 2π", "2π is missing in the turns: r = Lθ / 2π"),
        (1 / ((1 - clipped) * 8 / inv_freq + clipped / inv_freq), "混合的是周期；论文混合的是转速", "periods were blended; the paper blends speeds"),
        ((1 - logarithmic) * inv_freq / 8 + logarithmic * inv_freq, "斜坡走在 log r 上，那是代码的画法；这里要对 r 线性", "the ramp is linear in log r, as in the code; here it should be linear in r"),
        ((1 - clipped) * inv_freq * 8 + clipped * inv_freq, "慢钟应该更慢：除以 s，不是乘", "slow pairs should become slower: divide by s, do not multiply"),
        (inv_freq / 8, "所有的钟都除以了 s，这是内插", "all pairs are divided by s, which is plain interpolation"),
        (clipped, "这是 γ，还要用它混合转速", "that is γ; use it to blend the speeds"),
    ]  # fmt: skip
    wrong = _known_mistake(got, mistakes) or difference(got, want)
    other = (4.0, 8192, 2.0, 4.0)
    return wrong or difference(function(inv_freq.copy(), *other), _by_parts(inv_freq, *other))


def exercise_6(function):
    """The base with which a pair makes so many turns: `function(pair, turns, head_dim, train_len)`."""
    for case in ((63, 1.0, 128, 4096), (8, 2.0, 64, 8192)):
        pair, turns, head_dim, train_len = case
        got, want = function(*case), _base_with(*case)
        slowness = train_len / (2 * math.pi * turns)
        mistakes = [
            (slowness ** (head_dim / pair), "指数里的 2 漏了：r = L b^(−2i/d) / 2π", "the 2 in the exponent is missing: r = L b^(−2i/d) / 2π"),
            (slowness ** (2 * pair / head_dim), "指数上下颠倒了：要开 2i/d 次方", "the exponent is upside down: take the root, do not raise to 2i/d"),
            (1 / want, "正负号反了：b 的指数是负的，底数应大于 1", "the sign is wrong: the exponent of b is negative, and the base is above 1"),
            (_base_with(pair, turns, head_dim, train_len * 2 * math.pi), "少了 2π：r = Lθ / 2π", "2π is missing: r = Lθ / 2π"),
            (_base_with(pair, 1 / turns, head_dim, train_len), "圈数应当除，不应当乘", "divide by the turns, do not multiply"),
            (_base_with(pair + 1, turns, head_dim, train_len), "编号多数了 1：编号从 0 数起，pair 就是 i", "the pair number is one too large: pairs count from 0, and `pair` is i"),
            (math.log(want), "这是 ln b，还要取指数", "that is ln b; take the exponential"),
        ]  # fmt: skip
        if wrong := difference(got, want, rtol=1e-4):
            return _known_mistake(got, mistakes) or wrong
    return None


def exercise_7(answer):
    """The largest ratio between blending speeds and blending periods, a sympy expression in s: (s + 1)² / 4s."""
    ratio = sympy.sympify(answer)
    names = sorted(symbol.name for symbol in ratio.free_symbols)
    if names != ["s"]:
        return (
            f"应该是 s 的表达式，里面的符号却是 {', '.join(names) or '一个也没有'}",
            f"an expression in s is wanted, but its symbols are {', '.join(names) or 'none'}",
        )
    s = sympy.Symbol("s", positive=True)
    ratio = ratio.subs(dict.fromkeys(ratio.free_symbols, s))
    mistakes = [
        ((s + 1) ** 2 / (4 * s), None),
        ((s - 1) ** 2 / (4 * s), ("漏了前面的 1", "the 1 in front is missing")),
        (1 + (s - 1) ** 2 / s, ("γ(1 − γ) 最大不是 1", "γ(1 − γ) does not reach 1")),
        (1 + (s - 1) ** 2 / (2 * s), ("γ = 1/2 时 γ(1 − γ) 不是 1/2", "at γ = 1/2, γ(1 − γ) is not 1/2")),
        (4 * s / (s + 1) ** 2, ("上下颠倒了：混合转速得到的比较大", "upside down: blending speeds gives the larger one")),
        (s, ("s 是两头之间的倍数；最大值在中间，γ = 1/2", "s is the ratio of the two ends; the largest value lies between, at γ = 1/2")),
    ]  # fmt: skip
    for known, hint in mistakes:
        if sympy.simplify(ratio - known) == 0:
            return hint
    # Right at one s may be chance, so look for one where it is wrong.
    at, want, got = next(
        (at, want, sympy.N(value, 6))
        for at in (8, 2, 3, 5, 7)
        if (value := ratio.subs(s, at)) != (want := sympy.Rational((at + 1) ** 2, 4 * at))
    )
    return f"s = {at} 时应该是 {want}，现在是 {got}", f"for s = {at} it should be {want}, it is {got}"


def exercise_8(answer):
    """64 complex numbers of modulus at most 1 with the largest deviation from the straight line, above the bound."""
    weights = np.asarray(answer, dtype=complex)
    if weights.shape != (64,):
        return (
            f"要 64 个复数，得到的形状是 {weights.shape}",
            f"64 complex numbers are wanted, got shape {weights.shape}",
        )
    if not np.isfinite(weights).all():
        return "里面有不是有限数的", "some of them are not finite"
    if (largest := abs(weights).max()) > 1 + 1e-6:  # float32 rounds to 1 + 1e-7
        return (
            f"绝对值不能超过 1，最大的是 {largest:.3g}",
            f"absolute values may not exceed 1, the largest is {largest:.3g}",
        )
    inv_freq = 10000.0 ** (-np.arange(0, 128, 2) / 128)
    at = [float((weights * np.exp(1j * x * inv_freq)).sum().real) for x in (0, 0.5, 1)]
    gap = abs(at[1] - (at[0] + at[2]) / 2)
    bound = 128 * 0.25 / (8 * math.log(10000))
    if gap <= bound:
        return (
            f"偏离 {gap:.4f}，没有超过 {bound:.4f}：让中点 x = 1/2 处的 64 项全部同号",
            f"the deviation {gap:.4f} is not above {bound:.4f}: make all 64 terms at the midpoint, x = 1/2, have the same sign",
        )
    if gap < 0.4938:
        return (
            f"偏离 {gap:.4f}，已经超过 {bound:.4f}，但还不是最大：最大是 0.4939",
            f"the deviation {gap:.4f} is above {bound:.4f} already, but not the largest, which is 0.4939",
        )
    return None


def exercise_9(function):
    """YaRN's factor for cos and sin from the rope dict of a configuration: `function(rope)`."""
    for rope in _ROPES:
        got, want = function(dict(rope)), _attention_factor(rope)
        if (hint := difference(got, want, rtol=1e-6)) is not None:
            hint = _known_mistake(got, _factor_mistakes(rope, want)) or hint
            return f"{rope}：{hint[0]}", f"{rope}: {hint[1]}"
    return None


# What the configurations of Llama-2 with YaRN, of models that state the factor, and of DeepSeek say.
_ROPES = (
    {"factor": 8.0},
    {"factor": 1.0},
    {"factor": 128.0, "attention_factor": 1.4852030},
    {"factor": 64.0, "attention_factor": 1.0},
    {"factor": 40.0, "mscale": 0.707, "mscale_all_dim": 1.0},
    {"factor": 16.0, "mscale": 1.0, "mscale_all_dim": 1.0},
    {"factor": 16.0, "mscale": 0.5},
)


def _factor_mistakes(rope, want):
    plain = _magnitude(rope["factor"], 1.0)
    mistakes = []
    if "attention_factor" in rope:
        mistakes += [
            (plain, "attention_factor 写明了就用它，不要再算", "an explicit attention_factor is to be used, not computed anew"),
            (plain * want, "attention_factor 代替公式的值，不是再乘一遍", "attention_factor replaces the value of the formula; it is no multiplier"),
        ]  # fmt: skip
    elif "mscale" in rope and "mscale_all_dim" not in rope:
        mistakes += [
            (_magnitude(rope["factor"], rope["mscale"]), "只有 mscale、没有 mscale_all_dim：照最后一条，用 0.1 ln s + 1", "with mscale but no mscale_all_dim the last rule holds: 0.1 ln s + 1"),
        ]  # fmt: skip
    elif "mscale" in rope:
        mistakes += [
            (plain, "没有用到 mscale 和 mscale_all_dim", "mscale and mscale_all_dim were not used"),
            (_magnitude(rope["factor"], rope["mscale"]), "还要除以用 mscale_all_dim 算出的那个数", "divide by the same number computed with mscale_all_dim"),
        ]  # fmt: skip
    return [
        *mistakes,
        (want**2, "平方是注意力分数得到的；cos 和 sin 只乘它本身", "the square is what the scores get; cos and sin get the factor itself"),
        (1 + 0.1 * math.log10(rope["factor"]), "用自然对数", "use the natural logarithm"),
        (1 / want, "上下颠倒了：cos 和 sin 要变大", "upside down: cos and sin become larger"),
    ]  # fmt: skip


def _attention_factor(rope):
    if "attention_factor" in rope:
        return rope["attention_factor"]
    if "mscale" in rope and "mscale_all_dim" in rope:
        return _magnitude(rope["factor"], rope["mscale"]) / _magnitude(rope["factor"], rope["mscale_all_dim"])
    return _magnitude(rope["factor"], 1.0)


def _magnitude(factor, weight):
    return 0.1 * weight * math.log(factor) + 1


def _turns(head_dim, base, train_len):
    """The turns of each pair, written once more, so that the checks do not rest on `companion.frequencies`."""
    return train_len * base ** (-np.arange(0, head_dim, 2) / head_dim) / (2 * np.pi)


def _by_parts(inv_freq, factor, train_len, alpha, beta):
    kept = np.clip((train_len * inv_freq / (2 * np.pi) - alpha) / (beta - alpha), 0, 1)
    return (1 - kept) * inv_freq / factor + kept * inv_freq


def _base_with(pair, turns, head_dim, train_len):
    return (train_len / (2 * math.pi * turns)) ** (head_dim / (2 * pair))


def _known_mistake(got, mistakes, rtol=1e-4):
    for wrong, zh, en in mistakes:
        if difference(got, wrong, rtol=rtol, atol=1e-12) is None:
            return zh, en
    return None
