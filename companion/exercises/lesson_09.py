"""Checks of lesson 9, more than one axis. Each returns None, or what is wrong as a pair (Chinese, English)."""

import numpy as np
import sympy

from companion.exercises import difference, not_yet
from companion.multimodal import mrope_axes, mrope_position_ids


def exercise_1(answer):
    """The position of the text after 5 tokens of text and an image of 3 rows and 7 columns: 12."""
    mistakes = [
        (26, "这是词元数；图像占 max(h, w) 个位置，不是 h × w 个", "that is the number of tokens; an image takes up max(h, w) positions, not h × w"),
        (8, "加的是行数；列走得更远", "that adds the rows; the columns go farther"),
        (11, "11 是图像用过的最大的数；文字从它加 1 开始", "11 is the largest number of the image; text starts one past it"),
        (13, "多加了 1：图像从 5 开始，不是 6", "one too many: the image starts at 5, not at 6"),
        (6, "只看了时间轴；要看三个轴里最大的数", "that looks at time only; take the largest number on any axis"),
        (15, "行数和列数不相加，取大的一个", "rows and columns are not added; take the larger one"),
        (7, "忘了前面的 5 个文字词元", "the 5 tokens of text before it are missing"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or not_yet(answer, 12)


def exercise_2(answer):
    """delta after 10 tokens of text and a video of 40 frames of 12 × 20: 50 − 9610."""
    mistakes = [
        (9560, "符号反了：下一个位置减去词元数", "the wrong sign: the next position minus the number of tokens"),
        (50, "这是下一个位置；还要减去词元数", "that is the next position; subtract the number of tokens"),
        (-9561, "少了 1：下一个位置是最大的数加 1", "one too few: the next position is the largest number plus 1"),
        (30 - 9610, "取了列；这里走得最远的是时间", "that takes the columns; here time goes farthest"),
        (22 - 9610, "取了行；这里走得最远的是时间", "that takes the rows; here time goes farthest"),
        (82 - 9610, "三个轴不相加，取最大的一个", "the three axes are not added; take the largest"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or not_yet(answer, -9560)


def exercise_3(interleaved):
    """Which axis each pair listens to: T everywhere, then H at 1, 4, … and W at 2, 5, …."""
    for sections in ((24, 20, 20), (4, 2, 1), (11, 11, 10), (5, 1, 2)):
        got, want = interleaved(sections), mrope_axes(sum(sections), sections, layout="interleaved")
        contiguous = np.repeat(np.arange(3), sections)
        short, overrun = np.zeros(sum(sections), int), np.zeros(sum(sections), int)
        for axis in (1, 2):
            short[axis : sections[axis] : 3] = axis
            overrun[axis::3] = axis
        mistakes = [
            (contiguous, "这是分段布局", "that is the contiguous layout"),
            (overrun, "H 和 W 没有停：各用完自己的对数之后，剩下的归 T", "H and W do not stop: when they have used up their pairs, the rest is T's"),
            (short, "切片的终点少乘了 3：每隔两个才有一个", "the end of the slice lacks a factor 3: only one in three is taken"),
            (np.where(want == 0, 0, 3 - want), "H 和 W 对调了：1 是 H，2 是 W", "H and W are exchanged: 1 is H, 2 is W"),
            (np.sort(want), "对数对了，但排成了段", "the right numbers, but sorted into sections"),
        ]  # fmt: skip
        if difference(got, want) is None:
            continue
        return _known_mistake(got, mistakes) or difference(got, want)
    return None


def exercise_4(position_ids):
    """The positions of text and images, (3, tokens)."""
    cases = [
        [("text", 2), ("image", (2, 4)), ("text", 2)],
        [("text", 2), ("image", (4, 2)), ("text", 2)],
        [("image", (2, 3)), ("image", (3, 1)), ("text", 1)],
        [("text", 4)],
    ]
    for segments in cases:
        got, want = position_ids(list(segments)), mrope_position_ids(segments)
        if difference(got, want) is None:
            continue
        hint = _known_mistake(got, _misplaced(segments, want)) or difference(got, want)
        return f"{segments}：{hint[0]}", f"{segments}: {hint[1]}"
    return None


def exercise_5(next_positions):
    """The positions of new text: one past the largest number so far, equal on the three axes."""
    cases = [
        ([("text", 3)], 2),
        ([("text", 3), ("image", (2, 5))], 2),
        ([("text", 1), ("image", (5, 2)), ("text", 2)], 3),
        ([("video", (4, 2, 2))], 1),
        ([("image", (2, 6)), ("image", (1, 1))], 1),
    ]
    for segments, count in cases:
        ids = mrope_position_ids(segments)
        got, steps = next_positions(ids.copy(), count), np.arange(count)
        want = np.tile(ids.max() + 1 + steps, (3, 1))
        mistakes = [
            (np.tile(ids.shape[1] + steps, (3, 1)), "接着词元数往下数了：那是缓存的长度，不是位置", "that counts on from the number of tokens: the length of the cache, not a position"),
            (ids[:, -1:] + 1 + steps, "接着最后一个词元数了：图像之后三个轴会得到不同的数", "that counts on from the last token: after an image the three axes get different numbers"),
            (np.tile(ids[0, -1] + 1 + steps, (3, 1)), "只看了时间轴", "that looks at time only"),
            (want - 1, "少了 1：从最大的数加 1 开始", "one too few: start one past the largest number"),
            (want[0], "要三行，T、H、W 各一行", "three rows are wanted, for T, H and W"),
        ]  # fmt: skip
        if difference(got, want) is None:
            continue
        return _known_mistake(got, mistakes) or difference(got, want)
    return None


def exercise_6(answer):
    """The inputs that reveal the wrong layout: D and E."""
    reasons = {
        "A": ("A 不能：文字的三个数相等，听哪个轴都一样", "A cannot: the numbers of text are equal, so any axis will do"),
        "B": ("B 不能：一格的图，三个数也相等", "B cannot: an image of one patch has three equal numbers too"),
        "C": ("C 不能：图后的文字之间，三个轴上的差相等", "C cannot: among the text after it, differences are equal on all axes"),
        "D": ("D 漏了：文字看图，行差与列差随格子而变", "D is missing: from text to image, differences in row and column change with the patch"),
        "E": ("E 漏了：帧与帧之间，时间差不是 0，行差和列差是 0", "E is missing: between frames time differs, and row and column do not"),
    }  # fmt: skip
    if not isinstance(answer, str):
        return '请把字母写成一个字符串，如 "AD"', 'write the letters as one string, such as "AD"'
    chosen = set(answer.upper()) - set(" ,，、")
    if unknown := sorted(chosen - reasons.keys()):
        return f"没有 {unknown[0]} 这个选项", f"there is no option {unknown[0]}"
    return next((reasons[x] for x in reasons if (x in chosen) != (x in "DE")), None)


def exercise_7(answer):
    """γ from α + 2γ = θ."""
    alpha, theta = sympy.symbols("alpha theta", real=True)
    expression = sympy.sympify(answer)
    strangers = expression.free_symbols - {alpha, theta}
    if strangers:
        name = sorted(map(str, strangers))[0]
        return (
            f"答案里只该有 alpha 和 theta，出现了 {name}",
            f"only alpha and theta may occur in the answer, found {name}",
        )
    mistakes = [
        (theta - alpha, "β 和 γ 各分一半：α + β + γ = θ，而 β = γ", "β and γ share it: α + β + γ = θ with β = γ"),
        ((alpha - theta) / 2, "符号反了", "the wrong sign"),
        (theta / 3, "这是 α 也相等的情形；这里 α 是给定的", "that is the case with α equal as well; here α is given"),
        ((theta + alpha) / 2, "α 的符号反了：它占去的要减掉", "the sign of α is wrong: what it takes up is subtracted"),
    ]  # fmt: skip
    for wrong, zh, en in mistakes:
        if sympy.simplify(expression - wrong) == 0:
            return zh, en
    if sympy.simplify(expression - (theta - alpha) / 2) != 0:
        return (
            "还不对：把 t = h = w = m 代进去，三个系数之和应当是 θ",
            "not yet: put t = h = w = m, and the three coefficients must add up to θ",
        )
    return None


def _misplaced(segments, want):
    """Typical mistakes in the positions of a sequence, with what to say to each."""
    yield (
        want[[0, 2, 1]],
        "行和列对调了：H 是行，W 是列",
        "rows and columns are exchanged: H is the row, W the column",
    )
    by_tokens = _placed(segments, lambda block: block.shape[1])
    yield (
        by_tokens,
        "图像之后接着词元数往下数了；应当从最大的数加 1 开始",
        "text after the image counts on by tokens; it starts one past the largest number",
    )
    yield _placed(segments, lambda block: block[0].max() + 1), "图像之后只看了时间轴；要看三个轴里最大的数", "after the image only time is looked at; take the largest number on any axis"  # fmt: skip
    yield _placed(segments, lambda block: block.max()), "少加了 1：下一段与图像的最大的数重叠", "one too few: the next segment overlaps with the largest number of the image"  # fmt: skip
    yield _placed(segments, lambda block: 0), "每一段都从 0 开始了：要接着前面", "each segment starts at 0: it has to go on from the one before"  # fmt: skip
    counted = np.tile(np.arange(want.shape[1]), (3, 1))
    yield (
        counted,
        "这是普通的一维位置：图像里 T 不动，H 是行，W 是列",
        "those are ordinary positions: in an image T stands still, H is the row, W the column",
    )
    with_time = want.copy()
    begin = 0
    for kind, size in segments:
        end = begin + int(np.prod(size))
        if kind == "image":
            with_time[0, begin:end] = want[0, begin] + np.arange(end - begin)
        begin = end
    yield (
        with_time,
        "图像里 T 不动，同一张图只有一个时间",
        "in an image T stands still: one image has one time",
    )


def _placed(segments, advance):
    blocks, start = [], 0
    for segment in segments:
        block = mrope_position_ids([segment])
        blocks.append(start + block)
        start += advance(block)
    return np.hstack(blocks)


def _known_mistake(got, mistakes):
    for value, zh, en in mistakes:
        if difference(got, value, rtol=1e-9) is None:
            return zh, en
    return None
