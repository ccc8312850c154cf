"""Checks of lesson 7, paying for distance (ALiBi). Each returns None, or what is wrong as a pair (Chinese, English)."""

import math

import numpy as np

from companion.exercises import difference
from companion.relative_bias import alibi_slopes


def exercise_1(answer):
    """The advantage, in nats, that makes up for 24 tokens at a slope of 1/8."""
    mistakes = [
        (-3, "符号反了：扣掉了 3 分，要补的就是 +3", "the wrong sign: 3 are taken off, so 3 have to be made up, +3"),
        (192, "24 乘以了 8；斜率是 1/8", "24 times 8; the slope is 1/8"),
        (math.exp(3), "e³ 是权重要翻的倍数；题目问的是分数", "e³ is the factor for the weight; the question asks for the score"),
        (math.exp(-3), "e⁻³ 是折扣；题目问的是分数", "e⁻³ is the discount; the question asks for the score"),
        (3 / 8, "偏置不除以 √d", "the bias is not divided by √d"),
        (24, "这是距离，还要乘以斜率", "this is the distance; multiply it by the slope"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or difference(answer, 3.0, rtol=1e-6)


def exercise_2(answer):
    """The x for which a slope of 2^−x charges 10 nats at 131072 tokens."""
    want = math.log2(131072 / 10)
    mistakes = [
        (17, "这样在 131072 处只扣 1 分；允许扣到 10 分", "that charges 1 at 131072 tokens; 10 are allowed"),
        (math.log2(1310720), "10 应当除，不应当乘：m = 10/131072", "divide by 10, do not multiply: m = 10/131072"),
        (math.log(13107.2), "用了自然对数；斜率是 2 的幂，取以 2 为底的对数", "that is the natural logarithm; slopes are powers of 2, so take base 2"),
        (math.log10(13107.2), "用了以 10 为底的对数；斜率是 2 的幂", "that is base 10; slopes are powers of 2"),
        (-want, "符号反了：斜率写成 2 的 −x 次方，x 是正数", "the wrong sign: the slope is 2 to the power −x with a positive x"),
        (14, "14 够了，但不是最小的；题目要最小的 x，不取整", "14 is enough but not the least; give the least x, not rounded"),
        (10 / 131072, "这是斜率 m；题目要 x = −log₂ m", "that is the slope m; the question asks for x = −log₂ m"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=1e-4) or difference(answer, want, rtol=1e-3)


def exercise_3(fixed_bias):
    """The causal bias slope · (j − i), −∞ on future keys, of shape (query_len, key_len)."""
    cases = [
        (np.arange(4), np.arange(4), 0.5),
        (np.array([5, 6]), np.arange(7), 0.5),
        (np.arange(3), np.arange(3), 0.125),
    ]
    for query, key, slope in cases:
        got, want = fixed_bias(query.copy(), key.copy(), slope), _bias(query, key, slope)
        offset = key - query[:, None]
        rewards, future = np.where(offset > 0, -np.inf, -slope * offset), offset > 0
        with np.errstate(invalid="ignore"):
            mistakes = [
                (rewards, "越远加得越多：偏置应当是 slope × (j − i)，过去的键得到负数", "the farther the more is added: the bias is slope × (j − i), negative for keys of the past"),
                (slope * offset, "未来的键得到了正的偏置；j > i 处要填 −∞", "keys of the future get a positive bias; put −∞ where j > i"),
                (-slope * abs(offset), "未来的键没有挡住；j > i 处要填 −∞", "keys of the future are not masked; put −∞ where j > i"),
                (np.where(future, 0, slope * offset), "未来的键得到 0，反而比过去的键都好；要填 −∞", "keys of the future get 0, better than any key of the past; put −∞ there"),
                (np.where(offset < 0, -np.inf, -slope * offset), "符号改对了，掩码却反了：挡住的是过去", "the sign is right now but the mask is reversed: it hides the past"),
                (want.T if want.shape[0] == want.shape[1] else None, "行和列反了：行是查询，列是键", "rows and columns are exchanged: rows are queries, columns are keys"),
                (offset + np.where(future, -np.inf, 0.0), "忘了乘以 slope", "the slope is missing"),
            ]  # fmt: skip
        if hint := _known_mistake(got, mistakes) or difference(got, want):
            return hint
    return None


def exercise_4(slopes):
    """The slopes of the official code for any number of heads."""
    for heads in (8, 6, 12, 1, 3, 20, 112):
        got, want = slopes(heads), alibi_slopes(heads)
        lower = 2 ** int(math.log2(heads))
        upper = lower if lower == heads else 2 * lower
        fine = 2.0 ** (-8 * np.arange(1, 2 * lower + 1) / (2 * lower))
        coarse = want[:lower]
        mistakes = [
            (2.0 ** (-8 * np.arange(heads) / heads), "指数从 0 数起了：第一个头 h = 1，不是 0", "the exponent starts at 0: the first head has h = 1"),
            (2.0 ** (8 * np.arange(1, heads + 1) / heads), "指数少了负号，斜率应当小于 1", "the exponent lacks its minus sign; slopes are below 1"),
            (2.0 ** (-8 * np.arange(1, heads + 1) / heads), "这是论文那句话的公式；头数不是 2 的幂时，代码另有规则", "that is the sentence of the paper; the code has another rule when the number is no power of two"),
            (np.sort(want)[::-1], "集合对了，但排了序：多出来的头放在最后，不排序", "the right set, but sorted: the extra heads come last, unsorted"),
            (np.concatenate([coarse, fine[1::2][: heads - lower]]), "取成了第 2、4、6 … 个：那些斜率已经有了，应取第 1、3、5 … 个", "those are numbers 2, 4, 6 …, which are there already; take numbers 1, 3, 5 …"),
            (np.concatenate([coarse, fine[: heads - lower]]), "多出来的头应当隔一个取一个", "of the doubled set, every other slope is taken"),
            (2.0 ** (-8 * np.arange(1, upper + 1) / upper)[:heads], "这是取了更大的 2 的幂再截断；应从较小的 2 的幂出发", "that cuts the set of the next higher power of two; start from the lower one"),
            (np.concatenate([fine[::2][: heads - lower], coarse]), "次序反了：先是较小的 2 的幂那一组，再接多出来的头", "the wrong order: the set of the lower power of two first, then the extra heads"),
        ]  # fmt: skip
        if difference(got, want) is None:
            continue
        hint = _known_mistake(got, mistakes) or difference(got, want)
        return f"H = {heads}：{hint[0]}", f"H = {heads}: {hint[1]}"
    return None


def exercise_5(answer):
    """The changes that leave the weights as they are: A, B, C, E."""
    reasons = {
        "A": ("A 漏了：m·j 与 m·(j − i) 在每一行里只差常数 m·i", "A is missing: in each row m·j and m·(j − i) differ by the constant m·i"),
        "B": ("B 漏了：每个键都多扣 m，同一行里是常数", "B is missing: every key pays m more, a constant within the row"),
        "C": ("C 漏了：j ≤ i 时 −|i − j| 就是 j − i", "C is missing: for j ≤ i, −|i − j| is j − i"),
        "D": ("D 不是：斜率变小了，不是整行加一个常数", "D is not: the slope gets smaller, which is no constant"),
        "E": ("E 漏了：j ≤ i 时 |i + 1 − j| = i − j + 1，只差常数", "E is missing: for j ≤ i, |i + 1 − j| is i − j + 1, off by a constant"),
        "F": ("F 不是：j = i 时 |i − 1 − j| 是 1 而不是 −1，最近的两个键颠倒了", "F is not: at j = i, |i − 1 − j| is 1, not −1, and the two nearest keys change places"),
        "G": ("G 不是：符号反了，越远加得越多", "G is not: the sign is flipped, far keys are rewarded"),
    }  # fmt: skip
    return _letters(answer, reasons, "ABCE")


def exercise_6(answer):
    """The bias of 40 heads at 4096 tokens in single precision: 2.5 GiB."""
    mistakes = [
        (1.25, "每个数是 4 个字节，不是 2 个", "a number takes 4 bytes, not 2"),
        (2.5 * 1.073741824, "1 GiB 是 2³⁰ 字节，不是 10⁹", "1 GiB is 2³⁰ bytes, not 10⁹"),
        (0.625, "忘了每个数 4 个字节", "each number takes 4 bytes"),
        (2.5 / 40, "忘了乘以头数：每个头的斜率不同，偏置也不同", "the heads are missing: each has a slope and a bias of its own"),
        (2.5 * 1024, "这是 MiB；1 GiB = 1024 MiB", "that is in MiB; 1 GiB = 1024 MiB"),
        (2.5 * 2**30, "这是字节数；再除以 2³⁰", "that is in bytes; divide by 2³⁰"),
        (2.5 / 4096, "只算了一行：偏置有 L × L 个数", "that is one row only: the bias has L × L numbers"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes, rtol=1e-6) or difference(answer, 2.5, rtol=1e-6)


def exercise_7(answer):
    """The encoders that tell a sentence from its reversal: C, D, E."""
    reasons = {
        "A": ("A 不能：倒过来念，每对词元的距离都不变", "A cannot: read backwards, every pair keeps its distance"),
        "B": ("B 不能：每一层、每个头都对称，叠起来还是对称", "B cannot: every head of every layer is symmetric, and so is the stack"),
        "C": ("C 漏了：倒过来念要得到同样的结果，只看左边的头就得改看右边，可它没有改", "C is missing: for the reversed sentence to give the same, a head that looks left would have to look right, and it does not"),
        "D": ("D 漏了：两边斜率不同，倒过来念，扣的分就不同", "D is missing: with different slopes on the two sides, reading backwards changes the charges"),
        "E": ("E 漏了：[CLS] 总在最前面，倒过来念，离 [CLS] 近的词就变远了", "E is missing: [CLS] stays in front, so words near to it become far when the text is reversed"),
    }  # fmt: skip
    return _letters(answer, reasons, "CDE")


def exercise_8(horizon):
    """The least r such that keys farther than r get at most `share` of the weight, whatever their scores."""
    cases = [
        (1 / 256, 10.0, 0.01),
        (0.5, 0.0, 0.01),
        (1 / 8, 3.0, 0.1),
        (2.0, 0.0, 0.5),
        (1 / 256, 0.0, 1e-4),
    ]
    for slope, spread, share in cases:
        want = _horizon(slope, spread, share)
        got = horizon(slope, spread, share)
        mistakes = [
            (want + 1, "多了 1：比 r 更远的键从 r + 1 开始，折扣是 e⁻ᵐ⁽ʳ⁺¹⁾", "one too many: keys farther than r begin at r + 1, with the discount e^(−m(r+1))"),
            (_horizon(slope, 2 * spread, share), "spread 已经是最高分与最低分之差，不要再乘 2", "spread is the difference of the highest and the lowest score; do not double it"),
            (_horizon(slope, -spread, share), "方向反了：最坏的情形是远处的键分数最高", "the wrong way: the worst case is that the far keys have the highest scores"),
            (_horizon(slope, spread, 1 - share), "这是近处占 share 的距离；要求远处至多占 share", "that leaves `share` to the near keys; the far ones may have at most `share`"),
        ]  # fmt: skip
        if difference(got, want) is None:
            continue
        if isinstance(got, float) and math.ceil(got) == want and got != want:
            return (
                "要一个整数：满足条件的最小的整数距离",
                "a whole number is wanted: the least distance in tokens that will do",
            )
        hint = _known_mistake(got, mistakes) or difference(got, want)
        case = f"slope={slope:g}, spread={spread:g}, share={share:g}"
        return f"{case}：{hint[0]}", f"{case}: {hint[1]}"
    return None


def exercise_9(linear_alibi):
    """Linear attention with ALiBi by one recurrence over the tokens, from positive q, k and any v."""
    rng = np.random.default_rng(9)
    q, k = rng.uniform(0.1, 1.0, (2, 6, 3))
    v = rng.standard_normal((6, 2))
    got = linear_alibi(q.copy(), k.copy(), v.copy(), 0.5)
    shown = _linear(q, k, v, 0.5)
    mistakes = [
        (_linear(q, k, v, 0.0), "没有打折：旧的状态每一步要乘 e⁻ᵐ", "no discount: the old state is multiplied by e^(−m) at every step"),
        (_linear(q, k, v, -0.5), "折扣的符号反了：过去的越来越重", "the discount has the wrong sign: the past grows heavier"),
        (_linear(q, k, v, 0.5, normalized=False), "忘了除以权重之和", "the division by the sum of the weights is missing"),
        (_linear(q, k, v, 0.5, plain_sum=True), "分母没有打折：分子和分母用同样的权重", "the denominator is not discounted: both sums use the same weights"),
    ]  # fmt: skip
    if hint := _known_mistake(got, mistakes) or difference(got, shown):
        return hint
    if hint := difference(linear_alibi(q.copy(), k.copy(), v.copy(), 0.125), _linear(q, k, v, 0.125)):
        return f"slope=0.125：{hint[0]}", f"slope=0.125: {hint[1]}"
    q, k = rng.uniform(0.1, 1.0, (2, 3000, 3))
    got = np.asarray(linear_alibi(q, k, np.ones((3000, 1)), 0.5), dtype=float)
    if not np.isfinite(got).all():
        return (
            "3000 个词元时溢出了：不要先算 e^(mj)，让折扣随状态一步一步地乘",
            "overflow at 3000 tokens: do not form e^(mj); let the discount travel with the state, step by step",
        )
    return difference(got, np.ones((3000, 1)))


def _bias(query, key, slope):
    offset = key - query[:, None]
    return np.where(offset > 0, -np.inf, slope * offset)


def _horizon(slope, spread, share):
    return max(0, math.ceil(math.log((share + (1 - share) * math.exp(spread)) / share) / slope - 1e-9) - 1)


def _linear(q, k, v, slope, *, normalized=True, plain_sum=False):
    distances = np.subtract.outer(np.arange(len(q)), np.arange(len(q)))
    similar = np.tril(q @ k.T)
    weights = similar * np.exp(-slope * distances)
    below = similar if plain_sum else weights
    return weights @ v / (below.sum(axis=1, keepdims=True) if normalized else 1.0)


def _letters(answer, reasons, right):
    if not isinstance(answer, str):
        return '请把字母写成一个字符串，如 "AD"', 'write the letters as one string, such as "AD"'
    chosen = set(answer.upper()) - set(" ,，、")
    if unknown := sorted(chosen - reasons.keys()):
        return f"没有 {unknown[0]} 这个选项", f"there is no option {unknown[0]}"
    return next((reasons[x] for x in reasons if (x in chosen) != (x in right)), None)


def _known_mistake(got, mistakes, rtol=1e-9):
    for value, zh, en in mistakes:
        if value is not None and difference(got, value, rtol=rtol) is None:
            return zh, en
    return None
