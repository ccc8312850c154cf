"""Checks of lesson 4, turning (RoPE). Each returns None, or what is wrong as a pair (Chinese, English)."""

import numpy as np
import sympy

from companion.exercises import _numbers, difference
from companion.symbolic import rotation


def exercise_1(answer):
    """Positions with the same score as (5, 2): letters of a string."""
    if not isinstance(answer, str):
        return '请把字母写成一个字符串，如 "AD"', 'write the letters as one string, such as "AD"'
    letters = set(answer.upper()) - set(" ,，、")
    if letters == {"A", "C"}:
        return None
    if not letters <= set("ABCD"):
        return "只能用字母 A、B、C、D", "only the letters A, B, C, D can stand here"
    if letters == {"A", "B", "C"}:
        return (
            "B 的距离也是 3，但方向反了：m − n = −3，夹角变成 α − 3θ",
            "B is 3 apart as well, but the other way: m − n = −3, and the angle between becomes α − 3θ",
        )
    if "D" in letters:
        return "D 的 m − n 是 2，不是 3", "D has m − n = 2, not 3"
    if "B" in letters:
        return "B 的 m − n 是 −3，不是 3", "B has m − n = −3, not 3"
    return "还漏了一个 m − n = 3 的", "one with m − n = 3 is missing"


def exercise_2(answer):
    """Wavelength of the slowest pair for d = 64 and b = 10000, in tokens."""
    want = 2 * np.pi * 10000 ** (62 / 64)
    mistakes = [
        (2 * np.pi * 10000, "最慢的一对是 i = 31，不是 32：指数到不了 1", "the slowest pair is i = 31, not 32: the exponent stays below 1"),
        (want / (2 * np.pi), "少了 2π：这是转 1 弧度要的词元数", "2π is missing: this is the number of tokens per radian"),
        (2 * np.pi * 10000 ** (31 / 64), "指数是 2i/d，少了那个 2", "the exponent is 2i/d; the 2 is missing"),
        (2 * np.pi * 10000 ** (63 / 64), "指数是 63/64：要么把 i 当成了维度（i 数的是对，0 到 31），要么用了 d = 128；应是 62/64", "the exponent is 63/64: either i counts dimensions here (it counts pairs, 0 to 31), or d is 128; it should be 62/64"),
        (1 / (want / (2 * np.pi)), "这是转速（弧度每词元），题目问转一圈的词元数", "that is the speed in radians per token; the question asks for tokens per turn"),
        (360 * want / (2 * np.pi), "角频率的单位是弧度，一圈是 2π，不是 360", "speeds are in radians: a turn is 2π, not 360"),
    ]  # fmt: skip
    return _known_mistake(answer, mistakes) or _not_yet(answer, want)


def exercise_3(answer):
    """A 2 × 2 matrix with determinant 1, not diagonal, that changes lengths."""
    matrix = np.asarray(answer, dtype=float)
    if matrix.shape != (2, 2):
        return (
            f"要一个 2 × 2 矩阵，得到的形状是 {matrix.shape}",
            f"a 2 × 2 matrix is wanted, got shape {matrix.shape}",
        )
    if not np.isclose(determinant := np.linalg.det(matrix), 1):
        return (
            f"行列式应为 1，现在是 {determinant:.6g}",
            f"the determinant should be 1, it is {determinant:.6g}",
        )
    if np.allclose(matrix.T @ matrix, np.eye(2)):
        return "这是旋转：正交，一切长度都不变", "this is a rotation: orthogonal, so all lengths stay"
    if matrix[0, 1] == matrix[1, 0] == 0:
        return "这是对角矩阵，题目要求不是", "this is diagonal; the question asks for one that is not"
    return None


def exercise_4(answer):
    """An orthogonal S with S R(α) Sᵀ = R(−α)."""
    mirror = sympy.Matrix(answer)
    if mirror.shape != (2, 2):
        return (
            f"要一个 2 × 2 矩阵，得到的形状是 {mirror.shape}",
            f"a 2 × 2 matrix is wanted, got shape {mirror.shape}",
        )
    if sympy.simplify(mirror.T * mirror - sympy.eye(2)) != sympy.zeros(2):
        return "S 不是正交的：SᵀS 不等于 I", "S is not orthogonal: SᵀS is not I"
    angle = sympy.Symbol("angle", real=True)
    turned = mirror * rotation(angle) * mirror.T
    if sympy.simplify(turned - rotation(-angle)) == sympy.zeros(2):
        return None
    return (
        "这是旋转，平面里的旋转彼此可交换，S R(α) Sᵀ 还是 R(α)；需要一个镜像",
        "this is a rotation; rotations of the plane commute, so S R(α) Sᵀ is R(α) still; a mirror image is needed",
    )


def exercise_5(function):
    """RoPE with half pairing: `function(x, positions, inv_freq)`."""
    rng = np.random.default_rng(4)
    x, positions = rng.standard_normal((4, 6)), np.array([1, 5, -2, 30])
    inv_freq = np.array([1.0, 0.3, 0.02])
    want = _turn(x, positions, inv_freq)
    half = slice(0, 3), slice(3, 6)
    in_place = want.copy()
    in_place[:, half[1]] = x[:, half[1]] * np.cos(np.outer(positions, inv_freq))
    in_place[:, half[1]] += want[:, half[0]] * np.sin(np.outer(positions, inv_freq))
    mistakes = [
        (x, "x 没有变：返回旋转之后的数组", "x came back unchanged: return the turned array"),
        (_turn(x, -positions, inv_freq), "方向反了：检查两个 sin 的正负号", "turned the other way: check the signs of the two sines"),
        (_turn(x, positions, inv_freq, adjacent=True), "这是相邻配对 (2i, 2i+1)，题目要对半配对 (i, i + d/2)", "that is adjacent pairing (2i, 2i+1); half pairing (i, i + d/2) is wanted"),
        (_turn(x, np.arange(4), inv_freq), "忽略了 positions：不要用 arange 代替它", "positions were ignored: do not put arange in their place"),
        (_turn(x, positions + 1, inv_freq), "位置多数了 1：位置 0 应当不动", "positions are one too large: position 0 must change nothing"),
        (_turn(x, np.deg2rad(positions), inv_freq), "角度已经是弧度，不要再换算", "the angles are in radians already; do not convert them"),
        (_turn(x, np.rad2deg(positions), inv_freq), "np.cos 要弧度，不要换成度", "np.cos wants radians; do not convert to degrees"),
        (in_place, "算新的 b 时用了新的 a，应当用旧的 a", "the new b was computed from the new a; it needs the old a"),
    ]  # fmt: skip
    got = function(x.copy(), positions, inv_freq)
    return _known_mistake(got, mistakes) or difference(got, want)


def exercise_6(function):
    """Convert the weight of a projection from adjacent to half pairing: `function(weight, num_heads)`."""
    weight = np.arange(96.0).reshape(16, 6)
    by_head = np.arange(16).reshape(2, 8)
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
    want = weight[by_head[:, order].ravel()]
    mistakes = [
        (weight, "行的次序没有变", "the rows are in their old order"),
        (weight[np.r_[0:16:2, 1:16:2]], "置换跨过了头：要在每个头内分别重排", "the permutation crosses the heads: reorder within each head"),
        (weight[by_head[:, np.argsort(order)].ravel()], "方向反了：这是从对半配对变到相邻配对", "the other way round: that converts half to adjacent"),
        (weight[:, [0, 2, 4, 1, 3, 5]], "重排的是列（输入维），应当重排行（输出维）", "columns (inputs) were reordered; rows (outputs) are wanted"),
        (weight[by_head[:, np.r_[1:8:2, 0:8:2]].ravel()], "奇数行放到了前面，偶数行应当在前", "the odd rows came first; the even rows should"),
    ]  # fmt: skip
    got = function(weight.copy(), 2)
    return _known_mistake(got, mistakes) or difference(got, want)


def exercise_7(function):
    """A query that scores best at one distance: `function(k, distance, inv_freq)`."""
    inv_freq = 10000.0 ** (-np.arange(0, 16, 2) / 16)
    key = np.random.default_rng(7).standard_normal(16)
    offsets = np.arange(-64, 65)
    for distance in (5, 0, 40):
        query = np.asarray(function(key.copy(), distance, inv_freq), dtype=float)
        if query.shape != key.shape:
            return (
                f"查询的形状应是 {key.shape}，得到的是 {query.shape}",
                f"the query should have the shape {key.shape}, got {query.shape}",
            )
        scores = _turn(np.tile(query, (129, 1)), offsets, inv_freq) @ key
        best = int(offsets[scores.argmax()])
        if best == distance:
            continue
        if best == -distance:
            return (
                f"最大值在 {best}，应在 {distance}：方向反了，用 R_r 的转置",
                f"the peak is at {best} and should be at {distance}: the wrong way, use the transpose of R_r",
            )
        if best == 0:
            return (
                "最大值在距离 0：查询还没有转过",
                "the peak is at distance 0: the query has not been turned yet",
            )
        return f"最大值在 {best}，应在 {distance}", f"the peak is at {best} and should be at {distance}"
    return None


def exercise_8(answer):
    """The factor c^(m − n), a sympy expression."""
    factor = sympy.sympify(answer)
    extra = sorted({symbol.name for symbol in factor.free_symbols} - {"c", "m", "n"})
    if extra:
        return (
            f"只要因子，里面不该有 {', '.join(extra)}",
            f"only the factor is wanted; {', '.join(extra)} should not be in it",
        )
    points = ({"c": 2, "m": 7, "n": 4}, {"c": 3, "m": 5, "n": 7})
    got = [factor.subs({s: point[s.name] for s in factor.free_symbols}) for point in points]
    mistakes = [
        ((2**11, 3**12), "键那边是 c 的 −n 次方，不是 n 次方", "the key has c to the power −n, not n"),
        ((sympy.Rational(1, 8), 9), "指数的正负号反了", "the sign of the exponent is wrong"),
        ((2**7, 3**5), "还有键那边的 c 的 −n 次方", "the power of c on the side of the key is missing"),
        ((8, 9), "m − n 的正负号有意义，不要取绝对值", "the sign of m − n matters; take no absolute value"),
    ]  # fmt: skip
    for wrong, zh, en in mistakes:
        if all(map(_equal, got, wrong)):
            return zh, en
    for point, value, want in zip(points, got, (8, sympy.Rational(1, 9)), strict=True):
        if not _equal(value, want):
            at = "、".join(f"{name} = {number}" for name, number in point.items())
            return (
                f"{at} 时因子应是 {want}，现在是 {value}",
                f"for {at.replace('、', ', ')} the factor should be {want}, it is {value}",
            )
    return None


def _equal(value, want):
    """Whether two sympy numbers agree, exact or in floating point."""
    return abs(complex(value) - complex(want)) < 1e-9


def _turn(x, positions, inv_freq, *, adjacent=False):
    """RoPE written once more, by complex numbers, so that the checks do not rest on `companion.rope`."""
    half = x.shape[-1] // 2
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if adjacent else (slice(0, half), slice(half, None))
    )
    z = (x[:, first] + 1j * x[:, second]) * np.exp(1j * np.outer(positions, inv_freq))
    turned = np.empty_like(x)
    turned[:, first], turned[:, second] = z.real, z.imag
    return turned


def _not_yet(got, want):
    """Say in which way a number is wrong, but not what is right: that would be the answer."""
    if difference(got, want, rtol=1e-4) is None:
        return None
    try:
        number = np.asarray(_numbers(got, np.float64))
    except (TypeError, ValueError, RuntimeError):
        return difference(got, want)
    if number.shape != ():
        return difference(got, want)
    if not np.isfinite(number) or np.iscomplexobj(number) or number <= 0:
        return "还不对：波长是正数", "not yet: a wavelength is positive"
    if abs(number / want - 1) < 0.05:
        return (
            "还不对，但很接近：先别取整，最后再算出数来",
            "not yet, but close: round nothing before the end",
        )
    if number < want:
        return (
            "还不对，太小了：最慢的一对转一圈要的词元数是 2π/θ_i，i 取最大的",
            "not yet, too small: the slowest pair takes 2π/θ_i tokens for a turn, for the largest i",
        )
    return (
        "还不对，太大了：θ_i = b 的 −2i/d 次方，检查 i 最大是多少",
        "not yet, too large: θ_i is b to the power −2i/d; check how large i can get",
    )


def _known_mistake(got, mistakes):
    for wrong, zh, en in mistakes:
        if difference(got, wrong, rtol=1e-4, atol=1e-9) is None:
            return zh, en
    return None
