"""Checks of lesson 1, "Where order comes from": each returns None, or a pair (zh, en) that says what is wrong."""

from itertools import permutations

import numpy as np

from companion.attention import attention
from companion.exercises import difference

_NOT_YET = ("不对，再想想", "not yet right")
_TWO_DECIMALS = {"rtol": 0, "atol": 5e-3}


def exercise_1(answer):
    """Different rows among the outputs for big, fish, eat, small, fish: 4."""
    if answer == 5:
        return (
            "两个“鱼”进去时是同一个向量，看到的又是同一个集合，它们的输出能不同吗？",
            "both fish enter as the same vector and see the same set: can their outputs differ?",
        )
    if answer == 3:
        return (
            "只有“鱼”重复了；“大”和“小”是两个不同的词元",
            'only "fish" occurs twice; "big" and "small" are two different tokens',
        )
    return difference(answer, 4) and _NOT_YET


def exercise_2(answer):
    """The weight of the first of the scaled scores 1, 0, 0."""
    for scores, zh, en in [
        (
            2.0,
            "忘了除以 √d：先缩放，再做 softmax",
            "the division by √d is missing: scale first, then the softmax",
        ),
        (0.5, "除以了 d，应该除以 √d", "you divided by d; divide by √d"),
    ]:
        if difference(answer, np.exp(scores) / (np.exp(scores) + 2), **_TWO_DECIMALS) is None:
            return zh, en
    if difference(answer, 1.0) is None:
        return (
            "1 是缩放后的分数；还要过一遍 softmax 才是权重",
            "1 is the scaled score; it takes a softmax to become a weight",
        )
    return difference(answer, np.e / (np.e + 2), **_TWO_DECIMALS) and _NOT_YET


def exercise_3(answer):
    """The letters of the equivariant operations: a, b, f."""
    if isinstance(answer, list | tuple | set):
        answer = "".join(map(str, answer))
    if not isinstance(answer, str):
        return (
            f'应该是字母连成的字符串，例如 "ae"，得到的却是 {type(answer).__name__}',
            f'expected a string of letters such as "ae", got {type(answer).__name__}',
        )
    chosen = set(answer.lower()) - set(" ,，、")
    if unknown := sorted(chosen - set("abcdefg")):
        return f"没有 {unknown[0]} 这个选项", f"there is no option {unknown[0]}"
    reasons = {
        "a": (
            "a 漏了：它对每一行单独做同一件事",
            "a is missing: it does the same to each row separately",
        ),
        "b": ("b 漏了：各行的平均与次序无关", "b is missing: the mean over the rows has no order"),
        "c": (
            "c 不是：累加到第 i 行，取决于前面有谁",
            "c is not: what has been added up at row i depends on who came before",
        ),
        "d": (
            "d 不是：怎么打乱，排序结果都一样，那是置换不变",
            "d is not: the sorted columns are the same for every order, which is invariance",
        ),
        "e": (
            "e 不是：第一个座位总是拿到最后一个座位的行，它认的是座位",
            "e is not: the first seat always gets the row of the last one, so it goes by seats",
        ),
        "f": (
            "f 漏了：右乘矩阵是逐行的投影",
            "f is missing: a matrix on the right is a projection, row by row",
        ),
        "g": (
            "g 不是：左乘矩阵按座位把各行混在一起",
            "g is not: a matrix on the left mixes the rows by their seats",
        ),
    }
    return next((reasons[letter] for letter in "abcdefg" if (letter in chosen) != (letter in "abf")), None)


def exercise_4(answer):
    """A bias with one number that is not zero, which tells the orders 0 1 2 and 2 1 0 apart after the mean."""
    try:
        bias = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        return difference(answer, np.zeros((3, 3)))
    if bias.shape != (3, 3):
        return f"形状应该是 (3, 3)，得到的却是 {bias.shape}", f"the shape should be (3, 3), got {bias.shape}"
    if not np.isfinite(bias).all():
        return "请用有限的数", "use finite numbers"
    if (count := np.count_nonzero(bias)) != 1:
        return (
            f"应该恰有一个非零的数，得到的有 {count} 个",
            f"exactly one number should not be zero, got {count}",
        )
    if bias[1, 1] != 0:
        return (
            "对调 0 和 2 时座位 1 上的词元没有变，这个偏置的 PᵀBP 就是 B：换一个位置",
            "when 0 and 2 change places, seat 1 keeps its token and PᵀBP is B again: choose another place",
        )
    rows = np.random.default_rng(1).normal(size=(3, 8))
    first, second = (attention(x, x, x, bias=bias).mean(axis=0) for x in (rows, rows[::-1]))
    if np.abs(first - second).max() < 1e-6:
        return (
            "位置选对了，但这个数太小，看不出差别",
            "the place is right, but the number is too small to show",
        )
    return None


def exercise_5(recover_order):
    """The order with after = before[order], found from outputs that carry rounding errors."""
    rng = np.random.default_rng(2)
    for length in (2, 5, 9):
        before = rng.normal(size=(length, 4))
        order = np.roll(np.arange(length), 2) if length > 2 else np.array([1, 0])
        after = before[order] + 1e-12 * rng.normal(size=before.shape)
        got = recover_order(before.copy(), after.copy())
        if np.shape(got) == order.shape and np.array_equal(got, np.argsort(order)) and length > 2:
            return (
                "方向反了：你返回的 order 满足 before = after[order]",
                "the other way round: your order gives before = after[order]",
            )
        if hint := difference(got, order):
            return hint
    return None


def exercise_6(unseen_orders):
    """The number of orders that leave a bias as it is, rows and columns reordered together."""
    offset = np.arange(4) - np.arange(4)[:, None]
    first_key = np.zeros((4, 4))
    first_key[:, 0] = 1.0
    biases = [
        (0.0 * offset, "全零的偏置", "an all-zero bias"),
        (-1.0 * abs(offset), "按距离扣分", "the distance penalty"),
        (np.where(offset > 0, -np.inf, 0.0), "因果掩码", "the causal mask"),
        (first_key, "只偏爱第 0 个键", "a preference for key 0"),
        (2.0 * np.eye(3), "3 个词元的 2I", "2I for 3 tokens"),
    ]
    counts = [unseen_orders(bias.copy()) for bias, *_ in biases]
    for half, zh, en in [
        ({"columns": False}, "你只重排了行，列也要一起重排", "you reordered the rows only; reorder the columns too"),
        ({"rows": False}, "你只重排了列，行也要一起重排", "you reordered the columns only; reorder the rows too"),
    ]:  # fmt: skip
        if difference(counts, [_count(bias, **half) for bias, *_ in biases]) is None:
            return zh, en
    for (bias, zh, en), count in zip(biases, counts, strict=True):
        if np.isneginf(bias).any() and difference(count, 0) is None:
            return (
                f"{zh}：一种也没有？0·(−∞) 是 NaN：直接重排下标，不要用矩阵乘法",
                f"{en}: none at all? 0·(−∞) is NaN: index rather than multiply matrices",
            )
        if hint := difference(count, _count(bias)):
            return f"{zh}：{hint[0]}", f"{en}: {hint[1]}"
    return None


def exercise_7(witness):
    """An order that changes the weighted sum for all rows, which are different: exactly two weights change."""
    for u in (
        [0.0, 1.0],
        [1.0, 2.0, 1.0],
        [1.0, 2.0, 4.0],
        [1.0, 1.0, 1.0, 3.0],
        [5.0, 2.0, 2.0, 5.0],
        [2.0, 2.0, 1.0, 2.0, 2.0],
    ):
        u = np.array(u)
        order = witness(u.copy())
        if np.shape(order) != u.shape or sorted(np.asarray(order).tolist()) != list(range(len(u))):
            return (
                f"u = {u.tolist()}：返回的 {_plain(order)} 不是 0 到 {len(u) - 1} 的一个次序",
                f"u = {u.tolist()}: {_plain(order)} is not an order of 0 to {len(u) - 1}",
            )
        order = np.asarray(order, dtype=int)
        # The sum changes by what each weight changes, times the row; three changes or more can cancel.
        changed = np.count_nonzero(u[np.argsort(order)] - u)
        if changed > 2:
            return (
                f"u = {u.tolist()}：对有些 Y 管用，对有些 Y 和不变：只对调两个座位",
                f"u = {u.tolist()}: works for some Y, not for all: exchange two seats only",
            )
        if changed == 0:
            reverse = np.array_equal(order, np.arange(len(u))[::-1])
            return (
                f"u = {u.tolist()}：加权和没有变" + ("，倒序不总是管用" if reverse else ""),
                f"u = {u.tolist()}: the weighted sum stays"
                + (", reversing does not always work" if reverse else ""),
            )
    return None


def exercise_8(score_scale):
    """1 / (σ_q σ_k √d)."""
    head_dim, q, k = 64, 0.5, 3.0
    got, want = score_scale(head_dim, q, k), 1 / (q * k * np.sqrt(head_dim))
    mistakes = [
        (head_dim**-0.5, "没有用到标准差", "the standard deviations are missing"),
        (
            1 / want,
            "上下颠倒了：这是点积的标准差，要除以它",
            "upside down: this is the deviation, divide by it",
        ),
        (want**2, "这是 1 除以方差，标准差还要开方", "this is 1 over the variance; take the root"),
        (
            1 / (q * k * head_dim),
            "d 要开方：方差与 d 成正比",
            "take the root of d: the variance grows with d",
        ),
        (1 / (q**2 * k**2 * np.sqrt(head_dim)), "标准差不要平方", "do not square the standard deviations"),
    ]
    for value, zh, en in mistakes:
        if difference(got, value) is None:
            return zh, en
    return difference(got, want) or difference(score_scale(8, 2.0, 0.1), 1 / (0.2 * np.sqrt(8)))


def _count(bias, *, rows=True, columns=True):
    stay, orders = list(range(len(bias))), map(list, permutations(range(len(bias))))
    return sum(
        np.array_equal(bias[np.ix_(p if rows else stay, p if columns else stay)], bias) for p in orders
    )


def _plain(order):
    return np.asarray(order).tolist()
