"""Checks of lesson 3, "Distance only": each returns None, or a pair (zh, en) that says what is wrong."""

import numpy as np

from companion.exercises import difference, not_yet
from companion.relative_bias import t5_buckets


def exercise_1(answer):
    """The encodings under which a score stays when the whole text moves: C, D, E, F."""
    if isinstance(answer, (list, tuple, set)) and all(isinstance(letter, str) for letter in answer):
        answer = "".join(answer)
    if not isinstance(answer, str):
        return '请把字母写成一个字符串，如 "AC"', 'write the letters as one string, such as "AC"'
    chosen = set(answer.upper()) - set(" ,，、")
    if unknown := sorted(chosen - set("ABCDEF")):
        return f"没有 {unknown[0]} 这个选项", f"there is no option {unknown[0]}"
    reasons = {
        "A": (
            "A 会变：挪动以后，两个词元加上的是另外两行",
            "A changes: after the move two other rows are added to the tokens",
        ),
        "B": (
            "B 会变：四项里只有座位看座位那一项有可能只看 n − m，其余两项不是",
            "B changes: of the four terms, at most the one of seat and seat sees n − m only; two others do not",
        ),
        "C": ("C 漏了：Shaw 的向量只由 n − m 决定", "C is missing: n − m alone decides on Shaw's vectors"),
        "D": (
            "D 漏了：R 的下标是 m − n，u 和 v 与位置无关",
            "D is missing: R has the index m − n, and u and v know no position",
        ),
        "E": ("E 漏了：桶只由 n − m 决定", "E is missing: n − m alone decides on the bucket"),
        "F": (
            "F 漏了：q 和 k 各转各的，内积里只剩 m − n",
            "F is missing: query and key turn by their own positions, and their product keeps m − n only",
        ),
    }
    return next((reasons[letter] for letter in "ABCDEF" if (letter in chosen) != (letter in "CDEF")), None)


def exercise_2(answer):
    """Parameters of the position vectors in Shaw's big encoder: 2 · 17 · 64 · 6."""
    mistakes = [
        (2 * 16 * 64 * 6, "一张表有 2K + 1 行：距离 0 也占一行", "a table has 2K + 1 rows: the offset 0 has one too"),
        (2 * 8 * 64 * 6, "一张表有 2K + 1 行，不是 K 行：左右分开", "a table has 2K + 1 rows, not K: left and right differ"),
        (2 * 9 * 64 * 6, "一张表有 2K + 1 行，不是 K + 1 行：左右分开", "a table has 2K + 1 rows, not K + 1: left and right differ"),
        (17 * 64 * 6, "键和值各有一张表", "keys and values have a table each"),
        (2 * 17 * 64, "每一层都有自己的表，一共 6 层", "each of the 6 layers has tables of its own"),
        (2 * 17 * 6, "每一行是一个 64 维的向量，不是一个数", "each row is a vector of 64 numbers, not one number"),
        (2 * 17 * 64 * 6 * 16, "这个模型的各头共用一张表，不要乘以头数", "the heads share a table in this model; do not multiply by them"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or not_yet(answer, 2 * 17 * 64 * 6)


def exercise_3(answer):
    """T5's buckets, both sides, for the offsets −5, 5, −100 and 9."""
    offsets = np.array([-5, 5, -100, 9])
    mistakes = [
        (t5_buckets(-offsets), "左右反了：距离是键减查询，键在后面（正）的进 16 号以后的桶", "left and right are swapped: an offset is key − query, and keys after the query (positive) go to bucket 16 and on"),
        (t5_buckets(offsets, bidirectional=False), "这是解码器的桶；题目问编码器，左右各 16 个", "those are a decoder's buckets; an encoder has 16 for each side"),
        (t5_buckets(-np.abs(offsets)), "忘了方向：键在查询之后要加 16", "the direction is missing: add 16 for keys after the query"),
        ([5, 21, 100, 25], "远处的距离要按对数合并，一侧最多到 15", "far offsets are merged by logarithm, and one side ends at 15"),
        ([5, 21, 15, 25], "9 不小于 8，已经是对数的部分：8 到 11 同桶", "9 is not below 8, so it is in the logarithmic part: 8 to 11 share a bucket"),
        ([5, 21, 14, 24], "−100 已经在最后一级：最后一级从 91 开始，不是 128", "−100 is on the last step already: that step begins at 91, not at 128"),
        ([5, 20, 15, 23], "距离 0 占着 0 号桶，右边第一个用到的是 17 号", "offset 0 has bucket 0, and the first bucket used on the right is 17"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or not_yet(answer, t5_buckets(offsets))


def exercise_4(answer):
    """An angle with 1 + cos θ + cos 2θ = 0, in radians."""
    try:
        angle = float(answer)
    except (TypeError, ValueError):
        return difference(answer, 0.0)
    if not np.isfinite(angle):
        return "请用有限的数", "use a finite number"

    def below(theta):
        return 1 + np.cos(theta) + np.cos(2 * theta)

    if abs(below(angle)) < 1e-4:
        return None
    if abs(below(np.deg2rad(angle))) < 1e-4:
        return (
            "这是度，np.cos 和 RoPE 都用弧度",
            "that is in degrees; np.cos and RoPE want radians",
        )
    if abs(1 + np.cos(angle)) < 1e-4:
        return (
            "这个角让两个词元的分母为零；三个词元时是 1 − 1 + 1 = 1",
            "that angle makes the denominator of two tokens zero; with three it is 1 − 1 + 1 = 1",
        )
    return (
        f"这个角的分母是 {2 * below(angle):.2g}，还不是 0",
        f"with this angle the denominator is {2 * below(angle):.2g}, not 0",
    )


def exercise_5(function):
    """The bias of new tokens behind a cache: `function(table, past, new)`, shape (num_heads, new, past + new)."""
    table = np.random.default_rng(5).standard_normal((32, 3))
    for past, new in [(30, 4), (6, 1), (0, 5)]:
        want = _decoder_bias(table, np.arange(past, past + new), np.arange(past + new))
        both = t5_buckets(np.arange(past + new) - np.arange(past, past + new)[:, None])
        mistakes = [
            (_decoder_bias(table, np.arange(new), np.arange(past + new)), "查询的位置应从 past 数起，不是从 0", "the queries stand at past and on, not at 0"),
            (_decoder_bias(table, np.arange(past + 1, past + new + 1), np.arange(past + new)), "查询的位置多数了 1：缓存里是 0 到 past − 1", "the queries are one too far: the cache holds 0 to past − 1"),
            (_decoder_bias(table, -np.arange(past, past + new), -np.arange(past + new)), "符号反了：距离是键减查询", "the sign is wrong: an offset is key − query"),
            (np.moveaxis(table[both], -1, 0), "这是编码器的桶：解码器要 bidirectional=False", "those are an encoder's buckets: a decoder needs bidirectional=False"),
            (np.moveaxis(want, 0, -1), "头应该是第一个轴", "the heads come first"),
            (np.where(np.arange(past + new) > np.arange(past, past + new)[:, None], -np.inf, want), "只要偏置，掩码另加", "only the bias is wanted; the mask is added separately"),
        ]  # fmt: skip
        got = function(table.copy(), past, new)
        if difference(got, want) is None:
            continue
        hint = _known_mistake(got, mistakes) or difference(got, want)
        return f"past = {past}、new = {new}：{hint[0]}", f"past = {past}, new = {new}: {hint[1]}"
    return None


def exercise_6(function):
    """The least distance in the last bucket of a decoder: `function(num_buckets, max_distance)`."""
    for buckets, farthest in [(32, 128), (16, 100), (64, 1000), (8, 50)]:
        near, far = buckets // 2, buckets - buckets // 2

        def start(step, near=near, far=far, farthest=farthest):
            return near * (farthest / near) ** (step / far)

        want = int(np.ceil(start(far - 1)))
        mistakes = [
            (farthest, "max_distance 是“再多一级”开始的地方，最后一级更早", "max_distance is where one more step would begin; the last one begins earlier"),
            (np.floor(start(far - 1)), "距离是整数：不小于这个值的最小整数，要向上取整", "distances are whole: the least one that is not below this value, so round up"),
            (start(far - 1), "距离是整数，要向上取整", "distances are whole; round up"),
            (np.ceil(start(far - 2)), "这是倒数第二级：最后一级的 k 是 N − E − 1", "that is the last step but one: the last one has k = N − E − 1"),
            (np.ceil(near / 2 * (farthest / (near / 2)) ** ((far // 2 - 1) / (far // 2))), "这是编码器的一侧；解码器的桶数不减半", "that is one side of an encoder; a decoder's buckets are not halved"),
            (near, "这是对数部分开始的地方，不是最后一级", "that is where the logarithmic part begins, not its last step"),
        ]  # fmt: skip
        got = function(buckets, farthest)
        if difference(got, want) is None:
            continue
        hint = _known_mistake(got, mistakes) or difference(got, want)
        return (
            f"num_buckets = {buckets}、max_distance = {farthest}：{hint[0]}",
            f"num_buckets = {buckets}, max_distance = {farthest}: {hint[1]}",
        )
    return None


def exercise_7(function):
    """Rearrange by_offset (L, 2L − 1), column j for the offset j − (L − 1), into (L, L): `function(by_offset)`."""
    for length in (4, 7, 1):
        by_offset = np.arange(float(length * (2 * length - 1))).reshape(length, -1) + 1
        offsets = np.arange(length) - np.arange(length)[:, None]

        def pick(columns, table=by_offset):
            return np.take_along_axis(table, np.clip(columns, 0, table.shape[1] - 1), axis=1)

        want = pick(offsets + length - 1)
        mistakes = [
            (pick(-offsets + length - 1), "左右反了：第 m 行第 n 列要的是距离 n − m", "left and right are swapped: row m, column n wants the offset n − m"),
            (by_offset[:, :length], "只是截取了前 L 列：每一行的起点不同", "you took the first L columns: each row begins elsewhere"),
            (by_offset[:, length - 1 :], "只是截取了后 L 列：这只对第 0 行是对的", "you took the last L columns: that is right for row 0 only"),
            (pick(offsets + length), "多移了一列：距离 0 在第 L − 1 列", "one column too far: the offset 0 is in column L − 1"),
            (pick(offsets + length - 2), "少移了一列：距离 0 在第 L − 1 列", "one column short: the offset 0 is in column L − 1"),
            (pick(offsets % by_offset.shape[1]), "忘了加 L − 1：负的下标从末尾数起，没有报错", "L − 1 is not added: a negative index counts from the end and raises no error"),
            (want.T, "行和列对调了", "rows and columns are exchanged"),
        ]  # fmt: skip
        got = function(by_offset.copy())
        if difference(got, want) is not None:
            return _known_mistake(got, mistakes) or difference(got, want)
    return None


def exercise_8(function):
    """Σ_{n ≤ m} w(m − n) u_n for a staircase w: `function(u, starts, weights)`."""
    rng = np.random.default_rng(8)
    for length, starts in [(12, [0, 1, 2, 4, 8]), (9, [0, 3]), (6, [0, 2, 20])]:
        u, weights = rng.standard_normal((length, 3)), rng.uniform(0.5, 2, len(starts))
        distances = np.arange(length)[:, None] - np.arange(length)

        def total(step, seen=distances >= 0, u=u, starts=starts, weights=weights):
            heights = weights[np.clip(step, 0, len(starts) - 1)]
            return np.where(seen, heights, 0.0) @ u

        step = np.searchsorted(starts, distances, side="right") - 1
        last = np.where((distances >= 0) & (step < len(starts) - 1), weights[np.clip(step, 0, None)], 0.0) @ u
        mistakes = [
            (total(np.searchsorted(starts, distances, side="left") - 1), "每一级差了一格：starts[i] 本身属于第 i 级", "each step is off by one: starts[i] itself belongs to step i"),
            (total(np.searchsorted(starts, distances + 1, side="right") - 1), "每一级差了一格：距离是 m − n，自己的距离是 0", "each step is off by one: the distance is m − n, and 0 for the token itself"),
            (total(np.searchsorted(starts, distances - 1, side="right") - 1, distances > 0), "词元自己漏掉了：距离 0 也在和里，前缀和取到 m − a + 1", "the token itself is missing: the distance 0 is in the sum, so the prefix goes to m − a + 1"),
            (last, "最后一级没有终点：更远的词元都在里面", "the last step has no end: all that is farther belongs to it"),
            (weights[np.clip(np.searchsorted(starts, np.abs(distances), side="right") - 1, 0, None)] @ u, "只加过去：n ≤ m", "sum over the past only: n ≤ m"),
            (np.cumsum(u, axis=0), "还没有用到 weights", "the weights are not used yet"),
        ]  # fmt: skip
        got, want = function(u.copy(), list(starts), weights.copy()), total(step)
        if difference(got, want) is not None:
            return _known_mistake(got, mistakes) or difference(got, want)
    return None


def _decoder_bias(table, query_positions, key_positions):
    """T5's buckets of a decoder written once more with logarithms, so that the check does not rest on the package."""
    distance = np.maximum(np.asarray(query_positions)[:, None] - np.asarray(key_positions), 0)
    with np.errstate(divide="ignore"):
        far = 16 + np.floor(np.log(distance / 16) / np.log(8) * 16)
    buckets = np.where(distance < 16, distance, np.minimum(far, 31)).astype(int)
    return np.moveaxis(table[buckets], -1, 0)


def _known_mistake(got, mistakes):
    for wrong, zh, en in mistakes:
        if difference(got, wrong) is None:
            return zh, en
    return None
