"""Checks of lesson 2, "Numbering the seats": each returns None, or a pair (zh, en) that says what is wrong."""

import numpy as np
import sympy

from companion.exercises import difference, not_yet


def exercise_1(answer):
    """Bits that flip from seat 511 to seat 512: 10."""
    mistakes = [
        (
            9,
            "九个 1 变成 0，还有一位从 0 变成 1",
            "nine ones become zeros, and one more bit goes from 0 to 1",
        ),
        (1, "最高位变成 1，低九位也全变了", "the top bit becomes 1, and the nine below it change as well"),
        (512, "问的是翻了几位，不是座位号", "the question asks for the number of bits, not for the seat"),
    ]
    return _known_mistake(answer, mistakes) or not_yet(answer, 10)


def exercise_2(answer):
    """The pair with a wavelength of 200π for d = 512, b = 10000: 128."""
    mistakes = [
        (256, "那是维度的编号，一对占两维；问的是第几对", "that is a dimension, and a pair takes up two of them; the question asks for the pair"),
        (257, "那是维度的编号，一对占两维；问的是第几对", "that is a dimension, and a pair takes up two of them; the question asks for the pair"),
        (129, "对从 0 数起", "pairs count from 0"),
        (64, "指数是 2i/d，不是 i/64：解 10000^(2i/512) = 100", "the exponent is 2i/d: solve 10000^(2i/512) = 100"),
        (512 * np.log(200 * np.pi) / (2 * np.log(10000)), "波长是 2π 除以转速，先约去 2π", "a wavelength is 2π divided by the speed; cancel the 2π first"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or not_yet(answer, 128)


def exercise_3(answer):
    """Speeds that together tell seats 0 … 11 apart and repeat at 12, though no dial alone can."""
    try:
        speeds = np.atleast_1d(np.asarray(answer, dtype=np.float64)).ravel()
    except (TypeError, ValueError):
        return difference(answer, np.zeros(2))
    if not np.isfinite(speeds).all() or len(speeds) == 0:
        return "要一列有限的转速", "a list of finite speeds is wanted"
    if len(speeds) == 1:
        return "只有一只钟：要几只合起来", "that is one dial; several together are wanted"
    hands = np.exp(1j * np.outer(np.arange(13), speeds))
    if not np.allclose(hands[12], hands[0], atol=1e-6):
        # A list of periods, such as 3 and 4, holds no number below 2.
        periods = 2 * np.pi / speeds if speeds.min() >= 2 else np.full(1, np.nan)
        for turned, zh, en in (
            (
                periods,
                "这些像是周期；转速是 2π 除以周期",
                "these look like periods; a speed is 2π over the period",
            ),
            (np.deg2rad(speeds), "转速的单位是弧度，不是度", "speeds are in radians, not degrees"),
        ):
            if np.isfinite(turned).all() and np.allclose(np.exp(12j * turned), 1, atol=1e-6):
                return zh, en
        return (
            "座位 12 和座位 0 的编码不同：每只钟走 12 步都应当回到原处",
            "seat 12 differs from seat 0: every dial should be back after 12 steps",
        )
    for i, dial in enumerate(hands[:12].T):
        if _first_repeat(dial[:, None]) is None:
            return (
                f"第 {i} 只钟单独就分得清 12 个座位：要每只都做不到",
                f"dial {i} alone tells the 12 seats apart; none of them should",
            )
    if (repeat := _first_repeat(hands[:12])) is not None:
        return (
            f"合起来还是认错：座位 {repeat[0]} 和 {repeat[1]} 编码相同",
            f"together they still confuse two seats: {repeat[0]} and {repeat[1]} have the same code",
        )
    return None


def exercise_4(answer):
    """The matrix that moves (cos, sin) on by k: [[cos kθ, −sin kθ], [sin kθ, cos kθ]]."""
    try:
        matrix = sympy.Matrix(answer).applyfunc(sympy.simplify)
    except (TypeError, ValueError, AttributeError):
        return "要一个 2 × 2 的 sympy 矩阵", "a 2 × 2 sympy matrix is wanted"
    if matrix.shape != (2, 2):
        return (
            f"要一个 2 × 2 矩阵，得到的形状是 {matrix.shape}",
            f"a 2 × 2 matrix is wanted, got shape {matrix.shape}",
        )
    names = {symbol.name for symbol in matrix.free_symbols}
    if "m" in names:
        return (
            "矩阵里不该有 m：同一个矩阵要对所有座位成立",
            "m should not be in it: one matrix must do for all seats",
        )
    if extra := sorted(names - {"k", "theta"}):
        return (
            f"只用 k 和 theta，里面却有 {', '.join(extra)}",
            f"use k and theta only; {', '.join(extra)} should not be in it",
        )
    # At one seat offset a matrix written for that offset only would pass.
    for k, theta in ((3, 0.7), (7, 1.3), (-2, 0.4)):
        if hint := _turn_problem(matrix, k, theta):
            return hint
    return None


def _turn_problem(matrix, k, theta):
    values = {symbol: {"k": k, "theta": theta}[symbol.name] for symbol in matrix.free_symbols}
    got = np.array(matrix.subs(values).evalf(), dtype=np.float64)
    c, s = np.cos(k * theta), np.sin(k * theta)
    mistakes = [
        ([[c, s], [-s, c]], "这是先正弦后余弦的矩阵；先余弦时方向相反", "this is the matrix for (sin, cos); with the cosine first it turns the other way"),
        (np.eye(2), "单位矩阵哪里也不去", "the identity stays where it is"),
        ([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]], "这是挪 1 个座位，要挪 k 个", "this moves by 1 seat; k are wanted"),
    ]  # fmt: skip
    return _known_mistake(got, mistakes) or difference(got, np.array([[c, -s], [s, c]]), rtol=1e-6)


def exercise_5(function):
    """The table of tensor2tensor: `function(positions, d_model)`."""
    positions, d_model = np.array([0, 3, 1, 200]), 8
    want = _table(positions, d_model)
    other = np.array([5, 2]), 12
    mistakes = [
        (_table(positions, d_model, last=4), "这是论文的转速；tensor2tensor 的指数是 i/(d/2 − 1)", "these are the speeds of the paper; tensor2tensor has the exponent i/(d/2 − 1)"),
        (_table(positions, d_model)[:, [0, 4, 1, 5, 2, 6, 3, 7]], "这是相邻排法：先放所有 sin，再放所有 cos", "that is the adjacent order: all sines first, then all cosines"),
        (_table(positions, d_model, last=4)[:, [0, 4, 1, 5, 2, 6, 3, 7]], "这是论文的版本：排法和转速都要改", "that is the version of the paper: both the order and the speeds are different"),
        (np.roll(want, 4, axis=1), "cos 放到了前面，sin 应当在前", "the cosines came first; the sines should"),
        (_table(np.arange(4), d_model), "忽略了 positions：不要用 arange 代替它", "positions were ignored: do not put arange in their place"),
        (_table(positions + 1, d_model), "位置多数了 1：位置 0 的正弦应当全是 0", "positions are one too large: at position 0 all sines should be 0"),
        (_table(positions, d_model, last=7), "指数的分母是对的个数减 1，d/2 − 1，不是维数减 1", "the exponent is divided by the number of pairs less 1, d/2 − 1, not of dimensions"),
        (_table(positions, d_model, sign=1), "转速应当越来越慢：指数前面少了负号", "speeds should fall: a minus sign is missing in the exponent"),
    ]  # fmt: skip
    got = function(positions.copy(), d_model)
    if hint := _known_mistake(got, mistakes) or difference(got, want):
        return hint
    if difference(function(other[0].copy(), other[1]), _table(*other)):
        return (
            "d_model = 8 时对，等于 12 时不对：不要把维数写死",
            "right for d_model = 8, wrong for 12: do not write the width into the code",
        )
    return None


def exercise_6(function):
    """Positions of RoBERTa for a padded batch: `function(ids, padding_idx)`."""
    ids = np.array([[1, 1, 5, 9, 7], [8, 6, 5, 1, 1], [3, 4, 5, 6, 7]])
    real = ids != 1
    want = np.cumsum(real, axis=1) * real + 1
    mistakes = [
        (np.tile(np.arange(5), (3, 1)), "这样把填充也数进去了，而且从 0 数起", "this counts the padding as well, and from 0"),
        (np.tile(np.arange(5) + 2, (3, 1)), "把填充也数进去了：左填充的句子应从第一个真词元数起", "the padding was counted: with padding on the left, count from the first real token"),
        (np.where(real, np.arange(5) + 2, 1), "左边的填充还是占了号：真词元要连续地从 2 数起", "padding on the left still takes numbers: real tokens count on from 2"),
        (np.cumsum(real, axis=1) + 1, "填充的位置应当是 padding_idx 本身", "padding should get padding_idx itself"),
        (np.cumsum(real, axis=1) * real, "第一个真词元的位置应是 padding_idx + 1", "the first real token should have the position padding_idx + 1"),
        (np.cumsum(real, axis=1) * real - 1, "第一个真词元的位置应是 padding_idx + 1，不是 0", "the first real token should have the position padding_idx + 1, not 0"),
        ((np.cumsum(real, axis=1) + 1) * real, "填充的位置应当是 padding_idx 本身，不是 0", "padding should get padding_idx itself, not 0"),
        (np.cumsum(real).reshape(3, 5) * real + 1, "每个句子各数各的：沿最后一个轴累加", "each sentence counts for itself: add up along the last axis"),
        (np.cumsum(real, axis=0) * real + 1, "累加错了轴：沿序列数，不沿批次", "wrong axis: count along the sequence, not along the batch"),
    ]  # fmt: skip
    hint = _known_mistake(function(ids.copy(), 1), mistakes) or difference(function(ids.copy(), 1), want)
    if hint:
        return hint
    other = np.array([[0, 0, 4], [2, 3, 0]])
    want = np.cumsum(other != 0, axis=1) * (other != 0)
    if difference(function(other.copy(), 0), want):
        return (
            "padding_idx = 1 时对，等于 0 时不对：不要把 1 写死",
            "right for padding_idx = 1, wrong for 0: do not write the 1 into the code",
        )
    start = np.array([[0, 7, 4, 1], [1, 0, 6, 5]])
    want = np.cumsum(start != 1, axis=1) * (start != 1) + 1
    if difference(function(start.copy(), 1), want):
        return (
            "编号小于 padding_idx 的也是真词元（RoBERTa 的句首就是 0）：用 != 比较",
            "numbers below padding_idx are real tokens too (RoBERTa begins a sentence with 0): compare with !=",
        )
    return None


def exercise_7(function):
    """A matrix W with which every seat likes the seat k back best: `function(k, d_model)`."""
    seats = np.arange(80)
    for k, d_model in ((1, 32), (5, 32), (0, 32), (20, 32), (3, 48)):
        half = d_model // 2
        codes = _table(seats, d_model, last=half)[:, np.arange(d_model).reshape(2, half).T.ravel()]
        matrix = function(k, d_model)
        if np.shape(matrix) != (d_model, d_model):
            return difference(matrix, np.zeros((d_model, d_model)))
        at = seats[25:55]
        back = at - (codes @ matrix @ codes.T).argmax(axis=1)[at]
        if (back == k).all():
            continue
        if (back == -k).all():
            return (
                f"k = {k} 时最喜欢的是往后第 {k} 个座位：方向反了，取转置",
                f"for k = {k} the favourite is {k} seats ahead: the wrong way, take the transpose",
            )
        if (back == 0).all():
            return (
                f"k = {k} 时最喜欢的还是自己的座位：W 没有转动",
                f"for k = {k} the favourite is still one's own seat: W does not turn",
            )
        wrong = int(np.flatnonzero(back != k)[0])
        return (
            f"k = {k}：座位 {at[wrong]} 最喜欢的是座位 {at[wrong] - back[wrong]}，应当是 {at[wrong] - k}；"
            "编码是相邻排法，先正弦后余弦",
            f"k = {k}: the favourite of seat {at[wrong]} is seat {at[wrong] - back[wrong]}, it should be {at[wrong] - k}; "
            "codes are adjacent, sine before cosine",
        )
    return None


def exercise_8(function):
    """Read the seat from a noisy code: `function(code, base)`."""
    rng = np.random.default_rng(8)
    order = np.arange(64).reshape(2, 32).T.ravel()
    for seat, base in ((0, 1e4), (7, 1e4), (128, 1e4), (4321, 1e4), (9999, 1e4), (6789, 5e5)):
        code = _table(np.array([seat]), 64, last=32, base=base)[0, order]
        noisy = code + rng.uniform(-0.01, 0.01, 64)
        got = function(noisy.copy(), base)
        if np.ndim(got) != 0:
            return (
                f"应该返回一个座位号，得到的形状是 {np.shape(got)}",
                f"one seat is wanted, got shape {np.shape(got)}",
            )
        if difference(got, seat) is None:
            continue
        try:
            off = float(got) - seat
        except (TypeError, ValueError):
            return difference(got, seat)
        if base != 1e4:
            return (
                f"base = 10000 时都对，等于 {base:.0f} 时座位 {seat} 读成了 {off + seat:.4g}：不要把底数写死",
                f"right for base = 10000, but for {base:.0f} seat {seat} was read as {off + seat:.4g}: "
                "do not write the base into the code",
            )
        fast = np.arctan2(noisy[0], noisy[1])
        if abs(off) < 0.5:
            return (
                f"座位 {seat} 读成了 {float(got):.4g}：最后要取整",
                f"seat {seat} was read as {float(got):.4g}: round it at the end",
            )
        if seat and abs((float(got) - fast + np.pi) % (2 * np.pi) - np.pi) < 0.51 and abs(got) < 7:
            return (
                f"座位 {seat} 读成了 {float(got):.4g}：最快的钟每 6.28 个座位转一圈，要靠慢钟数圈",
                f"seat {seat} was read as {float(got):.4g}: the fastest dial is round every 6.28 seats; slow ones must count the turns",
            )
        if abs(off) < 120:
            return (
                f"座位 {seat} 读成了 {float(got):.4g}：慢钟只能读个大概，要用快钟一步步改准",
                f"seat {seat} was read as {float(got):.4g}: slow dials read only roughly; let the faster ones refine it",
            )
        return f"座位 {seat} 读成了 {float(got):.4g}", f"seat {seat} was read as {float(got):.4g}"
    return None


def _first_repeat(codes):
    """The first two rows that are equal, or None."""
    for a in range(len(codes)):
        for b in range(a + 1, len(codes)):
            if np.allclose(codes[a], codes[b], atol=1e-6):
                return a, b
    return None


def _table(positions, d_model, *, last=None, sign=-1, base=10000.0):
    """All sines, then all cosines, with the speeds base^(−i / last): written once more, so that nothing rests on `companion`."""
    half = d_model // 2
    speeds = base ** (sign * np.arange(half) / (half - 1 if last is None else last))
    angles = np.outer(positions, speeds)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _known_mistake(got, mistakes):
    for wrong, zh, en in mistakes:
        if difference(got, wrong, rtol=1e-4, atol=1e-9) is None:
            return zh, en
    return None
