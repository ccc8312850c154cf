"""Checks of lesson 5, RoPE in practice. Each returns None, or what is wrong as a pair (Chinese, English)."""

import numpy as np

from companion.exercises import difference, not_yet


def exercise_1(answer):
    """Faults that the shift test does not see: an offset of all positions, and one of the queries only."""
    letters = set(answer) if isinstance(answer, str) and answer.strip() else None
    if letters is None or not letters <= set("ABCD"):
        return "要的是由 A、B、C、D 组成的字符串", "a string of the letters A, B, C, D is wanted"
    reasons = [
        ("A" not in letters, "A 通得过：大家一起多数 5，距离没变", "A passes: everybody counts 5 too many, and distances stay"),
        ("B" not in letters, "B 通得过：每个距离都少 3，挪到哪里都少 3", "B passes: every distance is 3 too small, wherever the pair is moved"),
        ("C" in letters, "C 通不过：挪到 2049，有的整数就存不下了", "C fails: moved to 2049, some integers are lost"),
        ("D" in letters, "D 通不过：挪到 4096 之后，所有词元挤在一处", "D fails: moved beyond 4096, all tokens stand in one place"),
    ]  # fmt: skip
    return next(((zh, en) for wrong, zh, en in reasons if wrong), None)


def exercise_2(function):
    """How many of 0 … 2^k − 1 are told apart by p significant bits: `function(p, k)`."""
    for p, k in ((8, 12), (8, 17), (11, 12), (3, 9)):
        got, want = function(p, k), 2**p + 1 + (k - p) * 2 ** (p - 1)
        mistakes = [
            (want - 1, "少了 1：0 也是一个位置，或者漏了舍入到 2^k 的那几个", "one too few: 0 is a position as well, and the last few are rounded to 2^k"),
            (2**p + 1 + (k - p) * 2**p, "每翻一倍只多出 2^(p−1) 个，不是 2^p 个", "each doubling adds 2^(p−1), not 2^p"),
            (2**p + (k - p) * 2**p, "每翻一倍只多出 2^(p−1) 个，不是 2^p 个", "each doubling adds 2^(p−1), not 2^p"),
            (2**p, "2^p 以后还有一些整数存得下", "some integers beyond 2^p can be stored, too"),
            (2**p + 1, "2^p 以后还有一些整数存得下", "some integers beyond 2^p can be stored, too"),
            (2**k, "这是没有舍入时的个数", "this is the number without rounding"),
        ]  # fmt: skip
        if (wrong := difference(got, want)) is not None:
            return _known_mistake(got, mistakes) or _at(f"p = {p}, k = {k}", wrong)
    return None


def exercise_3(function):
    """The mask of a packed row: `function(document)`, −1 for padding."""
    for document in ([0, 0, 0, 1, 1, 1, 1], [-1, -1, 7, 7, 2], [3]):
        document = np.array(document)
        got = np.asarray(function(document.copy()))
        place = np.arange(document.size)
        earlier, same = place <= place[:, None], document == document[:, None]
        real = (document >= 0) & (document >= 0)[:, None]
        restarted = np.array([np.sum(document[:i] == document[i]) for i in place])
        if got.shape != same.shape:
            return (
                f"形状应该是 {same.shape}，得到的却是 {got.shape}",
                f"the shape should be {same.shape}, got {got.shape}",
            )
        if got.dtype != bool:
            return f"应该是布尔数组，得到的却是 {got.dtype}", f"a boolean array is wanted, got {got.dtype}"
        mistakes = [
            (earlier.T & same & real, "先后反了：每行是查询，每列是键，键不能在查询之后", "the order is reversed: rows are queries, columns keys, and a key may not come after the query"),
            (earlier & same, "填充还看得见填充", "padding still sees padding"),
            (earlier & real, "各篇之间没有遮住", "documents are not hidden from each other"),
            (earlier, "各篇之间没有遮住", "documents are not hidden from each other"),
            (same & real, "漏了先后：看得见将来", "the order is missing: the future can be seen"),
            (same, "漏了先后：看得见将来", "the order is missing: the future can be seen"),
            (restarted <= restarted[:, None], "先后要用行内的编号，不是重新数过的位置", "the order is that within the row, not that of restarted positions"),
            ((restarted <= restarted[:, None]) & real, "先后要用行内的编号，不是重新数过的位置", "the order is that within the row, not that of restarted positions"),
            ((place < place[:, None]) & same & real, "查询也看得见自己", "a query sees itself as well"),
        ]  # fmt: skip
        if not np.array_equal(got, earlier & same & real):
            for wrong, zh, en in mistakes:
                if np.array_equal(got, wrong):
                    return zh, en
            i, j = np.argwhere(got != (earlier & same & real))[0]
            return (
                f"document = {document.tolist()} 时，第 {i} 行第 {j} 列错了",
                f"for document = {document.tolist()}, row {i}, column {j} is wrong",
            )
    return None


def exercise_4(answer):
    """GPT-NeoX-20B: 12 pairs turn, and the slowest takes 2π · 10000^(22/24) tokens."""
    try:
        pairs, wave = answer
    except TypeError:
        return "要两个数：(对数, 波长)", "two numbers are wanted: (pairs, wavelength)"
    pair_mistakes = [
        (24, "24 是维数，一对有两维", "24 counts dimensions; a pair has two"),
        (48, "48 对是整个头；只转四分之一", "48 pairs are the whole head; a quarter of it turns"),
        (96, "96 是头维度", "96 is the head dimension"),
        (32, "头维度不是 128，是 6144 ÷ 64 = 96", "the head dimension is not 128, it is 6144 ÷ 64 = 96"),
    ]
    slow = 2 * np.pi * 10000 ** (22 / 24)
    wave_mistakes = [
        (2 * np.pi * 10000 ** (22 / 96), "指数的分母是转动的 24 维，不是 96 维", "the denominator of the exponent is the 24 dimensions that turn, not 96"),
        (2 * np.pi * 10000, "最后一对是 i = 11，不是 12", "the last pair is i = 11, not 12"),
        (10000 ** (22 / 24), "少了 2π：要的是转一圈的词元数", "2π is missing: a full turn is asked for"),
        (2 * np.pi * 10000 ** (11 / 24), "指数是 2i/24，少了 2", "the exponent is 2i/24; the 2 is missing"),
        (2 * np.pi * 10000 ** (23 / 24), "最后一对的编号是 11，2i = 22", "the last pair is number 11, so 2i = 22"),
    ]  # fmt: skip
    wrong = _known_mistake(pairs, pair_mistakes) or not_yet(pairs, 12)
    if wrong or difference(wave, slow, rtol=1e-3) is None:
        return wrong
    return _known_mistake(wave, wave_mistakes, rtol=1e-3) or not_yet(wave, slow)


def exercise_5(function):
    """From half pairing back to adjacent pairing, within each head: `function(weight, num_heads)`."""
    for heads, head_dim in ((2, 8), (3, 6), (1, 64)):
        weight = np.arange(heads * head_dim * 2.0).reshape(-1, 2)
        rows = np.arange(heads * head_dim).reshape(heads, head_dim)
        back = np.stack([rows[:, : head_dim // 2], rows[:, head_dim // 2 :]], axis=2)
        there = np.concatenate([rows[:, 0::2], rows[:, 1::2]], axis=1)
        flat = np.arange(heads * head_dim)
        across = np.stack([flat[: flat.size // 2], flat[flat.size // 2 :]], axis=1)
        got = function(weight.copy(), heads)
        mistakes = [
            (weight[there.ravel()], "这是去时的置换；往回要用它的逆", "this is the way there; back takes its inverse"),
            (weight, "什么也没有变", "nothing has changed"),
            (weight[across.ravel()], "要在每个头内部重排，不能跨头", "reorder within each head, not across heads"),
        ]  # fmt: skip
        if (wrong := difference(got, weight[back.ravel()])) is not None:
            return _known_mistake(got, mistakes) or wrong
    return None


def exercise_6(function):
    """The table of cosines and sines, rounded once to the dtype of x: `function(x, speeds)`."""
    speeds = np.array([1.0, 0.1, 0.01])
    for dtype in (np.float16, np.float32):
        x = np.zeros((3000, 6), dtype)
        result = function(x, speeds.copy())
        if not isinstance(result, tuple) or len(result) != 2:
            return "要返回两张表：(cos, sin)", "two tables are wanted: (cos, sin)"
        cos, sin = (np.asarray(table) for table in result)
        at, angles = np.arange(3000), np.outer(np.arange(3000), speeds)
        if cos.shape != angles.shape or sin.shape != angles.shape:
            return (
                f"每张表的形状应该是 {angles.shape}，得到的是 {cos.shape} 和 {sin.shape}",
                f"each table should have the shape {angles.shape}, got {cos.shape} and {sin.shape}",
            )
        if {cos.dtype, sin.dtype} != {np.dtype(dtype)}:
            return (
                f"表的类型应该是 {np.dtype(dtype)}，得到的是 {cos.dtype} 和 {sin.dtype}",
                f"the tables should be {np.dtype(dtype)}, got {cos.dtype} and {sin.dtype}",
            )
        # One rounding is half a step of the format; a cosine in float64 may fall on either side of a tie.
        allowed = 0.51 * np.finfo(dtype).eps
        if max(abs(cos - np.cos(angles)).max(), abs(sin - np.sin(angles)).max()) > allowed:
            return _which_was_cast(cos, at, speeds, dtype)
    return None


def exercise_7(function):
    """Positions of left-padded prompts and of what follows; only distances count: `function(mask, new)`."""
    for mask in ([[0, 0, 1, 1], [1, 1, 1, 1]], [[0, 1, 1, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1]]):
        mask = np.array(mask)
        result = function(mask.copy(), 3)
        if not isinstance(result, tuple) or len(result) != 2:
            return (
                "要返回两个数组：(提示词的位置, 新词元的位置)",
                "two arrays are wanted: (positions of the prompts, of the new tokens)",
            )
        prompt, later = (np.asarray(part) for part in result)
        want = mask.shape, (len(mask), 3)
        if (prompt.shape, later.shape) != want:
            return (
                f"形状应该是 {want[0]} 和 {want[1]}，得到的是 {prompt.shape} 和 {later.shape}",
                f"the shapes should be {want[0]} and {want[1]}, got {prompt.shape} and {later.shape}",
            )
        for row, length in enumerate(mask.sum(axis=1)):
            if (hint := _row_of_positions(row, prompt[row, mask[row] == 1], later[row], length)) is not None:
                return hint
    return None


def exercise_8(function):
    """Partial rotary with half pairing: `function(x, position, rotary_dim)`."""
    rng = np.random.default_rng(5)
    for head_dim, rotary_dim, position in ((8, 4, 3), (96, 24, 40), (16, 16, 7)):
        x = rng.standard_normal(head_dim)
        got = function(x.copy(), position, rotary_dim)
        want = _partial(x, position, rotary_dim, rotary_dim, rotary_dim // 2)
        mistakes = [
            (_partial(x, position, rotary_dim, head_dim, head_dim // 2), "两处都还是原来的", "both are still as they were"),
            (_partial(x, position, rotary_dim, head_dim, rotary_dim // 2), "指数的分母还是整个头", "the exponents are still over the whole head"),
            (_partial(x, position, rotary_dim, rotary_dim, head_dim // 2), "配对还是横跨整个头", "pairs still span the whole head"),
            (_partial(x, -position, rotary_dim, rotary_dim, rotary_dim // 2), "方向反了", "turned the other way"),
        ]  # fmt: skip
        if (wrong := difference(got, want)) is not None:
            if (hint := _known_mistake(got, mistakes)) is not None:
                return hint
            if np.shape(got) == x.shape and not np.array_equal(np.asarray(got)[rotary_dim:], x[rotary_dim:]):
                return "其余的维度应当原样留着", "the remaining dimensions should stay as they are"
            return wrong
    return None


def exercise_9(function):
    """The rows past … past + new − 1 of a table, or ValueError: `function(table, past, new)`."""
    table = np.arange(32.0).reshape(16, 2)
    for past, new in ((0, 16), (13, 3), (0, 1)):
        try:
            got = function(table.copy(), past, new)
        except ValueError:
            return (
                f"past = {past}、new = {new} 时 16 行正好够用，却抛出了 ValueError",
                f"16 rows are enough for past = {past}, new = {new}, but it raised ValueError",
            )
        if (wrong := difference(got, table[past : past + new])) is not None:
            return _at(f"past = {past}, new = {new}", wrong)
    for past, new in ((16, 1), (14, 3), (0, 17), (40, 2)):
        try:
            got = function(table.copy(), past, new)
        except ValueError:
            continue
        return (
            f"past = {past}、new = {new} 需要 {past + new} 行，表只有 16 行，却没有抛出 ValueError",
            f"past = {past}, new = {new} need {past + new} rows, the table has 16, and no ValueError was raised",
        )
    return None


def exercise_10(function):
    """An acceptance test: `function(rope)` is True for right implementations and False for wrong ones."""
    for name, rope, accepted in _implementations():
        verdict = function(rope)
        if not isinstance(verdict, bool | np.bool_):
            return (
                f"应该返回 True 或 False，得到的却是 {type(verdict).__name__}",
                f"True or False should be returned, got {type(verdict).__name__}",
            )
        if accepted and not verdict:
            return f"拒绝了一个正确的实现：{name[0]}", f"it rejects a right implementation: {name[1]}"
        if verdict and not accepted:
            return f"放过了一个错的实现：{name[0]}", f"it accepts a wrong implementation: {name[1]}"
    return None


def _implementations():
    """(name in both languages, implementation, whether it is right); fresh ones for each call, for one remembers."""
    speeds = 10000.0 ** (-np.arange(32) / 32)
    memory = {}

    def remembering(x, positions):
        positions = memory.setdefault(len(positions), np.array(positions))
        return _turned(x, positions, speeds)

    def single(x, positions):
        return _turned(x, positions, speeds, table=np.float32)

    def adjacent(x, positions):
        order = np.concatenate([np.arange(0, 64, 2), np.arange(1, 64, 2)])
        result = np.empty_like(np.asarray(x, dtype=float))
        result[:, order] = _turned(np.asarray(x)[:, order], positions, speeds)
        return result

    return [
        (("float64", "float64"), lambda x, m: _turned(x, m, speeds), True),
        (("表是 float32", "a table in float32"), single, True),
        (("配对弄反", "pairings confused"), adjacent, False),
        (("底数是 500000", "base 500000"), lambda x, m: _turned(x, m, 500000.0 ** (-np.arange(32) / 32)), False),
        (("方向反了", "turned the other way"), lambda x, m: _turned(x, -np.asarray(m), speeds), False),
        (("位置从 1 数起", "positions from 1"), lambda x, m: _turned(x, np.asarray(m) + 1, speeds), False),
        (("转了两遍", "turned twice"), lambda x, m: _turned(x, 2 * np.asarray(m), speeds), False),
        (("不看 positions，自己从 0 数起", "positions ignored, counting from 0"), lambda x, m: _turned(x, np.arange(len(m)), speeds), False),
        (("位置存成 bfloat16", "positions in bfloat16"), lambda x, m: _turned(x, _rounded(m, 8), speeds), False),
        (("位置存成 float16", "positions in float16"), lambda x, m: _turned(x, _rounded(m, 11), speeds), False),
        (("转速存成 bfloat16", "speeds in bfloat16"), lambda x, m: _turned(x, m, _rounded(speeds, 8)), False),
        (("缓存只认长度，不认位置", "a cache that knows the length but not the positions"), remembering, False),
    ]  # fmt: skip


def _turned(x, positions, speeds, table=np.float64):
    """Half pairing, written once more, so that the checks do not rest on `companion.rope`."""
    angles = np.outer(positions, speeds)
    cos, sin = np.cos(angles).astype(table), np.sin(angles).astype(table)
    a, b = np.split(np.asarray(x, dtype=float), 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def _rounded(x, bits):
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)


def _partial(x, position, rotary_dim, denominator, apart):
    i = np.arange(rotary_dim // 2)
    angle = position * 10000.0 ** (-2 * i / denominator)
    turned = x.copy()
    turned[i] = x[i] * np.cos(angle) - x[i + apart] * np.sin(angle)
    turned[i + apart] = x[i + apart] * np.cos(angle) + x[i] * np.sin(angle)
    return turned


def _which_was_cast(cos, at, speeds, dtype):
    coarse_at, coarse_speeds = at.astype(dtype).astype(float), speeds.astype(dtype).astype(float)
    near = 2 * np.finfo(dtype).eps
    for used_at, used_speeds, zh, en in (
        (coarse_at, speeds, "位置还在乘之前就转了类型", "positions are still cast before the product"),
        (at, coarse_speeds, "转速还在乘之前就转了类型", "speeds are still cast before the product"),
    ):
        if abs(cos - np.cos(np.outer(used_at, used_speeds))).max() < near:
            return zh, en
    return "不止舍入了一次：角也要用 float64 算", "more than one rounding: angles need float64, too"


def _row_of_positions(row, prompt, later, length):
    """What is wrong with one row; a shift of the whole row is no fault, for RoPE sees distances only."""
    steps = np.diff(np.concatenate([prompt, later]))
    if (steps == 1).all():
        return None
    if (np.diff(prompt) != 1).any() or (np.diff(later) != 1).any():
        return (
            f"第 {row} 行：相邻的真词元应当相差 1",
            f"row {row}: neighbouring real tokens should be 1 apart",
        )
    gap = steps[length - 1]
    return (
        f"第 {row} 行：第一个新词元应当紧跟最后一个真词元，现在隔了 {gap}",
        f"row {row}: the first new token should follow the last real one, it is {gap} away",
    )


def _at(where, hint):
    return f"{where}：{hint[0]}", f"{where}: {hint[1]}"


def _known_mistake(got, mistakes, rtol=1e-4):
    for wrong, zh, en in mistakes:
        if difference(got, wrong, rtol=rtol, atol=1e-12) is None:
            return zh, en
    return None
