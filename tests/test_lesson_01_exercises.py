"""The checks of lesson 1 accept right answers and name typical mistakes, in both languages."""

from itertools import permutations

import numpy as np
import pytest

from companion.exercises import checker, lesson_01


def recover(before, after):
    return np.abs(after[:, None] - before[None]).max(axis=-1).argmin(axis=1)


def count(bias, rows=True, columns=True):
    orders = map(list, permutations(range(len(bias))))
    moved = [(bias[p] if rows else bias)[:, p if columns else slice(None)] for p in orders]
    return sum(np.array_equal(other, bias) for other in moved)


def multiplied(bias):
    with np.errstate(invalid="ignore"):
        moved = [np.eye(len(bias))[list(p)] for p in permutations(range(len(bias)))]
        return sum(np.array_equal(p.T @ bias @ p, bias) for p in moved)


def swap_extremes(u):
    order = list(range(len(u)))
    i, j = np.argmin(u), np.argmax(u)
    order[i], order[j] = order[j], order[i]
    return order


def swap_first_two_that_differ(u):
    order, other = list(range(len(u))), next(i for i in range(len(u)) if u[i] != u[0])
    order[0], order[other] = order[other], order[0]
    return order


def one_entry(i, j, value=5.0):
    bias = np.zeros((3, 3))
    bias[i, j] = value
    return bias


RIGHT = [
    ("1.1", 4),
    ("1.1", 4.0),
    ("1.2", np.e / (np.e + 2)),
    ("1.2", 0.576),
    ("1.2", 0.58),
    ("1.2", np.float32(0.57611688)),
    ("1.3", "abf"),
    ("1.3", "F, B, A"),
    ("1.3", ["a", "b", "f"]),
    ("1.3", {"f", "b", "a"}),
    ("1.4", one_entry(0, 2)),
    ("1.4", one_entry(2, 2, -1.0).tolist()),
    ("1.5", recover),
    ("1.6", count),
    ("1.7", swap_extremes),
    ("1.7", swap_first_two_that_differ),
    ("1.8", lambda head_dim, std_q, std_k: 1 / (std_q * std_k * head_dim**0.5)),
    ("1.8", lambda head_dim, std_q, std_k: np.float32(1 / (std_q * std_k * head_dim**0.5))),
]
WRONG = [
    ("1.1", 5, "同一个集合", "see the same set"),
    ("1.1", 3, "两个不同的词元", "two different tokens"),
    ("1.1", 2, "不对，再想想", "not yet right"),
    ("1.1", "four", "不对，再想想", "not yet right"),
    ("1.2", np.e**2 / (np.e**2 + 2), "忘了除以 √d", "√d is missing"),
    ("1.2", 0.79, "忘了除以 √d", "√d is missing"),
    ("1.2", np.e**0.5 / (np.e**0.5 + 2), "除以了 d", "divided by d"),
    ("1.2", 1.0, "还要过一遍 softmax", "takes a softmax"),
    ("1.2", 0.3, "不对，再想想", "not yet right"),
    ("1.2", 0.57, "不对，再想想", "not yet right"),
    ("1.3", 3, "字母连成的字符串", "string of letters"),
    ("1.3", "abx", "没有 x 这个选项", "no option x"),
    ("1.3", "af", "b 漏了", "b is missing"),
    ("1.3", "abcf", "取决于前面有谁", "who came before"),
    ("1.3", "abdf", "置换不变", "invariance"),
    ("1.3", "abef", "认的是座位", "goes by seats"),
    ("1.3", "abfg", "左乘", "on the left"),
    ("1.4", one_entry(1, 1), "座位 1", "seat 1"),
    ("1.4", np.zeros((3, 3)), "得到的有 0 个", "got 0"),
    ("1.4", np.ones((3, 3)), "得到的有 9 个", "got 9"),
    ("1.4", np.ones(3), "(3, 3)", "(3, 3)"),
    ("1.4", one_entry(0, 1, -np.inf), "有限", "finite"),
    ("1.4", one_entry(0, 1, 1e-12), "太小", "too small"),
    ("1.5", lambda before, after: recover(after, before), "方向反了", "other way round"),
    ("1.5", lambda before, after: np.arange(len(before)), "结果[0] 应该是 1", "result[0] should be 1"),
    ("1.6", lambda bias: count(bias, columns=False), "只重排了行", "the rows only"),
    ("1.6", lambda bias: count(bias, rows=False), "只重排了列", "the columns only"),
    ("1.6", multiplied, "因果掩码：一种也没有？0·(−∞) 是 NaN", "the causal mask: none at all? 0·(−∞) is NaN"),
    ("1.6", lambda bias: 24, "按距离扣分", "the distance penalty"),
    ("1.7", lambda u: list(range(len(u)))[::-1], "倒序不总是管用", "reversing does not always work"),
    ("1.7", lambda u: list(range(len(u))), "加权和没有变", "the weighted sum stays"),
    ("1.7", lambda u: np.roll(np.arange(len(u)), 1), "对有些 Y 和不变", "not for all"),
    ("1.7", lambda u: [0] * len(u), "不是 0 到 1 的一个次序", "not an order of 0 to 1"),
    ("1.8", lambda d, q, k: d**-0.5, "没有用到标准差", "deviations are missing"),
    ("1.8", lambda d, q, k: q * k * d**0.5, "上下颠倒", "upside down"),
    ("1.8", lambda d, q, k: 1 / (q * q * k * k * d), "开方", "take the root"),
    ("1.8", lambda d, q, k: 1 / (q * k * d), "d 要开方", "the root of d"),
    ("1.8", lambda d, q, k: 1 / (q * q * k * k * d**0.5), "不要平方", "do not square"),
    ("1.8", lambda d, q, k: 0.1, "结果应该是", "the result should be"),
]


@pytest.mark.parametrize("i", range(3))
@pytest.mark.parametrize("j", range(3))
def test_every_place_but_the_middle_breaks_the_symmetry_of_exercise_4(i, j):
    assert (lesson_01.exercise_4(one_entry(i, j)) is None) == ((i, j) != (1, 1))


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(("name", "number"), [("1.1", "4"), ("1.2", "0.57")])
def test_a_wrong_guess_does_not_get_the_answer_for_free(lang, name, number, capsys):
    checker(lang)(name, 2)
    assert number not in capsys.readouterr().out


def test_three_weights_that_change_can_cancel_which_is_no_proof():
    u, order = np.array([1.0, 2.0, 4.0]), [2, 0, 1]
    change = u[np.argsort(order)] - u
    rows = np.array([0.0, 1.0, -change[1] / change[2]])
    assert len(set(rows)) == 3 and np.isclose(u @ rows[order], u @ rows)
