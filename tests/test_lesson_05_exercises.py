"""The checks of lesson 5: a right answer passes, and each typical mistake is named in both languages."""

import numpy as np
import pytest

from companion.exercises import lesson_05 as lesson
from companion.rope import apply_rope, pairing_permutation, rotation_table


def distinct(p, k):
    return np.unique(lesson._rounded(np.arange(2**k), p)).size


def packed(document):
    place = np.arange(len(document))
    same = document == document[:, None]
    return (place <= place[:, None]) & same & (document >= 0)


def order(size):
    place = np.arange(size)
    return place <= place[:, None]


def restarted(document):
    at = np.array([np.sum(document[:i] == document[i]) for i in range(len(document))])
    return at <= at[:, None]


def permuted(weight, rows):
    return weight[np.asarray(rows).ravel()]


def heads_of(weight, num_heads):
    return np.arange(len(weight)).reshape(num_heads, -1)


def back(weight, num_heads):
    rows = heads_of(weight, num_heads)
    return permuted(weight, rows[:, np.argsort(pairing_permutation(rows.shape[1]))])


def there(weight, num_heads):
    rows = heads_of(weight, num_heads)
    return permuted(weight, rows[:, pairing_permutation(rows.shape[1])])


def across(weight, num_heads):
    return permuted(weight, np.argsort(pairing_permutation(len(weight))))


def tables(at, speeds, dtype):
    angles = np.outer(at, speeds)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def exact(x, speeds):
    return tables(np.arange(len(x)), speeds, x.dtype)


def cast_positions(x, speeds):
    return tables(np.arange(len(x)).astype(x.dtype).astype(float), speeds, x.dtype)


def cast_speeds(x, speeds):
    return tables(np.arange(len(x)), speeds.astype(x.dtype).astype(float), x.dtype)


def cast_angles(x, speeds):
    angles = np.outer(np.arange(len(x)), speeds).astype(x.dtype).astype(float)
    return np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)


def obliging(x, speeds):
    angles = np.outer(np.arange(len(x)).astype(x.dtype), speeds.astype(x.dtype))
    return np.cos(angles), np.sin(angles)


def real_tokens(mask, new):
    return np.maximum(mask.cumsum(axis=1) - 1, 0), mask.sum(axis=1, keepdims=True) + np.arange(new)


def slots(mask, new):
    at = np.tile(np.arange(mask.shape[1] + new), (len(mask), 1))
    return at[:, : mask.shape[1]], at[:, mask.shape[1] :]


def mixed(mask, new):
    return real_tokens(mask, new)[0], slots(mask, new)[1]


def part(x, position, rotary_dim):
    table = rotation_table([position], 10000.0 ** (-np.arange(0, rotary_dim, 2) / rotary_dim))
    return apply_rope(x[None], *table, rotary_dim=rotary_dim)[0]


def still_wrong(x, position, rotary_dim):
    return lesson._partial(x, position, rotary_dim, len(x), len(x) // 2)


def whole_exponent(x, position, rotary_dim):
    return lesson._partial(x, position, rotary_dim, len(x), rotary_dim // 2)


def whole_pairs(x, position, rotary_dim):
    return lesson._partial(x, position, rotary_dim, rotary_dim, len(x) // 2)


def all_turned(x, position, rotary_dim):
    return part(x, position, len(x))


def rows(table, past, new):
    if past + new > len(table):
        raise ValueError("too short")
    return table[past : past + new]


def rows_new(table, past, new):
    if new > len(table):
        raise ValueError("too short")
    return table[past : past + new]


def rows_strict(table, past, new):
    if past + new >= len(table):
        raise ValueError("too short")
    return table[past : past + new]


def rows_from_start(table, past, new):
    if past + new > len(table):
        raise ValueError("too short")
    return table[:new]


SPEEDS = 10000.0 ** (-np.arange(32) / 32)


def acceptance(at, *, moves=(0, 1), atol=1e-4):
    """An acceptance test with these positions, called once for each number by which they are moved."""
    x = np.random.default_rng(0).standard_normal((len(at), 64))

    def accepts(rope):
        return all(
            np.allclose(
                rope(x, np.add(at, move)), lesson._turned(x, np.add(at, move), SPEEDS), rtol=0, atol=atol
            )
            for move in moves
        )

    return accepts


def keeps_properties(rope):
    """Lengths stay, position 0 changes nothing, scores depend on the distance only: all that is beautiful."""
    q, k = np.random.default_rng(0).standard_normal((2, 1, 64))
    lengths = np.allclose(np.linalg.norm(rope(q, np.array([5]))), np.linalg.norm(q))
    shifted = [rope(q, np.array([m])) @ rope(k, np.array([m - 3])).T for m in (5, 105)]
    return bool(lengths and np.allclose(rope(q, np.array([0])), q) and np.allclose(*shifted))


RIGHT = [
    ("5.1", "AB"),
    ("5.1", "BA"),
    ("5.2", distinct),
    ("5.3", packed),
    ("5.4", (12, 2 * np.pi * 10000 ** (22 / 24))),
    ("5.4", [12, 29164]),
    ("5.5", back),
    ("5.6", exact),
    ("5.7", real_tokens),
    ("5.7", slots),
    ("5.8", part),
    ("5.9", rows),
    ("5.10", acceptance([0, 3, 2049, 257, 9001, 70])),
]
WRONG = [
    ("5.1", "A", "每个距离都少 3", "every distance is 3 too small"),
    ("5.1", "B", "大家一起多数 5", "everybody counts 5 too many"),
    ("5.1", "ABC", "挪到 2049", "moved to 2049"),
    ("5.1", "ABD", "挤在一处", "stand in one place"),
    ("5.1", "E", "由 A、B、C、D 组成", "a string of the letters"),
    ("5.2", lambda p, k: distinct(p, k) - 1, "少了 1", "one too few"),
    ("5.2", lambda p, k: 2**p + (k - p) * 2**p, "只多出 2^(p−1)", "adds 2^(p−1)"),
    ("5.2", lambda p, k: 2**p, "2^p 以后", "beyond 2^p"),
    ("5.2", lambda p, k: 2**k, "没有舍入", "without rounding"),
    ("5.3", lambda d: order(len(d)), "没有遮住", "not hidden"),
    ("5.3", lambda d: d == d[:, None], "看得见将来", "the future can be seen"),
    ("5.3", lambda d: packed(d).T, "先后反了", "the order is reversed"),
    ("5.3", restarted, "重新数过的位置", "restarted positions"),
    (
        "5.3",
        lambda d: order(len(d)) & (d == d[:, None]),
        "填充还看得见填充",
        "padding still sees padding",
    ),
    ("5.3", lambda d: packed(d) & ~np.eye(len(d), dtype=bool), "看得见自己", "sees itself"),
    ("5.3", lambda d: packed(d).astype(int), "布尔数组", "a boolean array is wanted"),
    ("5.4", (24, 29164), "一对有两维", "a pair has two"),
    ("5.4", (48, 29164), "只转四分之一", "a quarter of it turns"),
    ("5.4", (12, 51.87), "不是 96 维", "not 96"),
    ("5.4", (12, 2 * np.pi * 10000), "i = 11", "i = 11"),
    ("5.4", (12, 10000 ** (22 / 24)), "少了 2π", "2π is missing"),
    ("5.4", 12, "要两个数", "two numbers are wanted"),
    ("5.5", there, "要用它的逆", "takes its inverse"),
    ("5.5", across, "不能跨头", "not across heads"),
    ("5.5", lambda weight, num_heads: weight, "什么也没有变", "nothing has changed"),
    ("5.6", obliging, "不止舍入了一次", "more than one rounding"),
    ("5.6", cast_positions, "位置还在乘之前", "positions are still cast"),
    ("5.6", cast_speeds, "转速还在乘之前", "speeds are still cast"),
    ("5.6", cast_angles, "角也要用 float64", "angles need float64"),
    (
        "5.6",
        lambda x, speeds: tables(np.arange(len(x)), speeds, float),
        "类型应该是 float16",
        "should be float16",
    ),
    ("5.7", mixed, "现在隔了 3", "it is 3 away"),
    (
        "5.7",
        lambda mask, new: (
            real_tokens(mask, new)[0],
            np.repeat(mask.sum(axis=1, keepdims=True), new, axis=1),
        ),
        "应当相差 1",
        "should be 1 apart",
    ),
    ("5.7", lambda mask, new: real_tokens(mask, new)[1], "两个数组", "two arrays are wanted"),
    ("5.8", still_wrong, "两处都还是", "both are still"),
    ("5.8", whole_exponent, "分母还是整个头", "still over the whole head"),
    ("5.8", whole_pairs, "配对还是横跨", "still span the whole head"),
    ("5.8", all_turned, "原样留着", "stay as they are"),
    ("5.9", rows_new, "却没有抛出", "no ValueError was raised"),
    ("5.9", rows_strict, "正好够用", "rows are enough"),
    ("5.9", rows_from_start, "past = 13", "past = 13"),
    ("5.10", lambda rope: False, "拒绝了一个正确的实现", "it rejects a right implementation"),
    ("5.10", acceptance([3, 2049, 257], atol=1e-12), "表是 float32", "a table in float32"),
    ("5.10", keeps_properties, "放过了一个错的实现：配对弄反", "accepts a wrong implementation: pairings"),
    ("5.10", acceptance([0, 3, 70]), "bfloat16", "positions in bfloat16"),
    ("5.10", acceptance([0, 3, 257, 70]), "位置存成 float16", "positions in float16"),
    ("5.10", acceptance([0, 3, 2049], moves=(0,)), "缓存只认长度", "knows the length but not"),
    ("5.10", acceptance([0, 1, 2, 3, 4, 5], moves=(0,)), "自己从 0 数起", "counting from 0"),
    ("5.10", lambda rope: 1, "True 或 False", "True or False should be returned"),
]


@pytest.mark.parametrize("bits", [8, 11])
def test_rounding_to_so_many_bits_is_the_cast_of_the_format(bits):
    x = np.random.default_rng(0).standard_normal(10_000) * 100
    if bits == 11:
        expected = x.astype(np.float16)
    else:  # bfloat16: the upper half of a float32, rounded to even
        words = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        words = (words + 0x7FFF + ((words >> 16) & 1)) & 0xFFFF0000
        expected = words.astype(np.uint32).view(np.float32)
        x = x.astype(np.float32).astype(float)
    np.testing.assert_array_equal(lesson._rounded(x, bits), expected)


def test_every_implementation_handed_in_is_what_its_name_says():
    """Right ones turn as `companion.rope` does, wrong ones differ somewhere."""
    x = np.random.default_rng(1).standard_normal((5, 64))
    for name, rope, accepted in lesson._implementations():
        off = 0.0
        for at in ([0, 3, 2049, 257, 4001], [1, 4, 2051, 259, 4003]):
            want = apply_rope(x, *rotation_table(at, SPEEDS))
            off = max(off, abs(rope(x, np.array(at)) - want).max())
        assert (off < 1e-5) == accepted, name
