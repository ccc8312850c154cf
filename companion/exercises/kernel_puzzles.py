"""The puzzles of lesson 10: for each kernel a definition, its launch, the cases it must pass and common mistakes.

The definitions and launches are printed in the lesson, hence their short lines.
"""

import torch
from triton import cdiv, next_power_of_2

from companion.exercises.kernel_check import Axes, Puzzle


def copy(x: Axes("size")) -> Axes("size"):
    return x.clone()


def launch_whole_blocks(kernel, x, y):
    kernel[(len(x) // 32,)](x, y, BLOCK=32)


def launch_blocks(kernel, x, y):
    kernel[(cdiv(len(x), 32),)](x, y, len(x), BLOCK=32)


def copy_matrix(
    x: Axes("rows columns"),
) -> Axes("rows columns"):
    return x.clone()


def launch_tiles(kernel, x, y):
    rows, columns = x.shape
    grid = cdiv(rows, 16), cdiv(columns, 32)
    kernel[grid](
        x, y, rows, columns, *x.stride(), *y.stride(),
        ROWS=16, COLUMNS=32)  # fmt: skip


def rope_half(
    x: Axes("seq_len head_dim"),
    cos: Axes("seq_len half_dim"),
    sin: Axes("seq_len half_dim"),
) -> Axes("seq_len head_dim"):
    a, b = x.chunk(2, -1)
    turned = a * cos - b * sin, b * cos + a * sin
    return torch.cat(turned, -1)


def launch_rope(kernel, x, cos, sin, y):
    seq_len, half_dim = cos.shape
    kernel[(cdiv(seq_len, 32),)](
        x, cos, sin, y, seq_len, x.stride(0), y.stride(0),
        HALF=half_dim, BLOCK=32)  # fmt: skip


def rope_adjacent(
    x: Axes("seq_len head_dim"),
    cos: Axes("seq_len half_dim"),
    sin: Axes("seq_len half_dim"),
) -> Axes("seq_len head_dim"):
    a, b = x[..., 0::2], x[..., 1::2]
    turned = a * cos - b * sin, b * cos + a * sin
    return torch.stack(turned, -1).flatten(-2)


def launch_both_ways(kernel, x, cos, sin, y, backward=False):
    seq_len, half_dim = cos.shape
    kernel[(cdiv(seq_len, 32),)](
        x, cos, sin, y, seq_len, x.stride(0), y.stride(0),
        BACKWARD=backward, HALF=half_dim, BLOCK=32)  # fmt: skip


def launch_in_place(kernel, x, cos, sin, backward=False):
    seq_len, half_dim = cos.shape
    kernel[(cdiv(seq_len, 32),)](
        x, cos, sin, seq_len, x.stride(0),
        BACKWARD=backward, HALF=half_dim, BLOCK=32)  # fmt: skip


def rope_both(
    q: Axes("seq_len q_heads head_dim"),
    k: Axes("seq_len k_heads head_dim"),
    cos: Axes("seq_len half_dim"),
    sin: Axes("seq_len half_dim"),
) -> tuple[Axes("q"), Axes("k")]:
    cos, sin = cos[:, None], sin[:, None]
    return rope_half(q, cos, sin), rope_half(k, cos, sin)


def launch_fused(kernel, q, k, cos, sin, backward=False):
    seq_len, half_dim = cos.shape
    q_heads, k_heads = q.shape[1], k.shape[1]
    kernel[(seq_len,)](
        q, k, cos, sin, *q.stride()[:2], *k.stride()[:2],
        q_heads, k_heads, BACKWARD=backward, HALF=half_dim,
        Q_BLOCK=next_power_of_2(q_heads),
        K_BLOCK=next_power_of_2(k_heads))  # fmt: skip


def weighted_mean(
    scores: Axes("rows keys"),
    values: Axes("keys"),
) -> Axes("rows"):
    return scores.softmax(-1) @ values


def launch_rows(kernel, scores, values, y):
    rows, keys = scores.shape
    kernel[(cdiv(rows, 16),)](
        scores, values, y, rows, keys, scores.stride(0),
        ROWS=16, KEYS=32)  # fmt: skip


def alibi_attention(
    q: Axes("heads seq_len head_dim"),
    k: Axes("heads seq_len head_dim"),
    v: Axes("heads seq_len head_dim"),
    slopes: Axes("heads"),
) -> Axes("heads seq_len head_dim"):
    at = torch.arange(q.shape[1], device=q.device)
    offsets = at[None, :] - at[:, None]  # key - query
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores + slopes[:, None, None] * offsets
    scores = scores.masked_fill(offsets > 0, -torch.inf)
    return scores.softmax(-1) @ v


def launch_alibi(kernel, q, k, v, slopes, y):
    heads, seq_len, head_dim = q.shape
    kernel[(cdiv(seq_len, 32), heads)](
        q, k, v, slopes, y, seq_len, *q.stride()[:2],
        SCALE=head_dim**-0.5, DIM=head_dim, ROWS=32, KEYS=32)  # fmt: skip


def rope_attention(
    q: Axes("heads seq_len head_dim"),
    k: Axes("heads seq_len head_dim"),
    v: Axes("heads seq_len head_dim"),
    cos: Axes("seq_len half_dim"),
    sin: Axes("seq_len half_dim"),
) -> Axes("heads seq_len head_dim"):
    q, k = rope_half(q, cos, sin), rope_half(k, cos, sin)
    at = torch.arange(q.shape[1], device=q.device)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = at[None, :] > at[:, None]
    scores = scores.masked_fill(future, -torch.inf)
    return scores.softmax(-1) @ v


def launch_rope_attention(kernel, q, k, v, cos, sin, y):
    heads, seq_len, head_dim = q.shape
    kernel[(cdiv(seq_len, 32), heads)](
        q, k, v, cos, sin, y, seq_len, *q.stride()[:2],
        SCALE=head_dim**-0.5, HALF=head_dim // 2,
        ROWS=32, KEYS=32)  # fmt: skip


def _other_way(definition):
    def turned_back(*tensors):
        return definition(*tensors[:-1], -tensors[-1])

    return turned_back, (
        "方向反了：检查两个 sin 的正负号",
        "turned the other way: check the signs of the two sines",
    )


def _next_row(definition):
    def from_one(*tensors):
        *others, cos, sin = tensors
        return definition(*others, cos.roll(-1, 0), sin.roll(-1, 0))

    return from_one, (
        "位置多数了 1：第 m 行要用表的第 m 行",
        "positions are one too large: row m takes row m of the table",
    )


def _first_row(definition):
    def from_zero(*tensors):
        *others, cos, sin = tensors
        return definition(*others, cos[:1].expand_as(cos), sin[:1].expand_as(sin))

    return from_zero, (
        "每一行都用了表的第 0 行：表的偏移量里少了位置",
        "every row took row 0 of the table: its offsets lack the position",
    )


def _new_a(x, cos, sin):
    a, b = x.chunk(2, -1)
    a = a * cos - b * sin
    return torch.cat((a, b * cos + a * sin), -1)


def _one_sign(first):
    """RoPE with one of its signs changed: that of the first line or that of the second."""

    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        one, two = (-sin, sin) if first else (sin, -sin)
        return torch.cat((a * cos - b * one, b * cos + a * two), -1)

    return turned, (
        f"{'第一' if first else '第二'}式里 sin 前面的正负号错了",
        f"the sine of the {'first' if first else 'second'} formula has the wrong sign",
    )


def _sin_for_cos(definition):
    def exchanged(*tensors):
        *others, cos, sin = tensors
        return definition(*others, sin, cos)

    return exchanged, ("cos 和 sin 的表用反了", "the tables of cos and sin are exchanged")


_UNCHANGED = "什么也没有转：结果没有写进去", "nothing was turned: the result was not written"
_SWAPPED_HALF = (
    rope_adjacent,
    (
        "这是相邻配对 (2i, 2i+1)，题目要对半配对",
        "that is adjacent pairing (2i, 2i+1); half pairing is wanted",
    ),
)
_SWAPPED_ADJACENT = (
    rope_half,
    (
        "这是对半配对，题目要相邻配对 (2i, 2i+1)",
        "that is half pairing; adjacent pairing (2i, 2i+1) is wanted",
    ),
)
_NEW_A = (
    _new_a,
    ("算新的 b 时用了新的 a，应当用旧的 a", "the new b was computed from the new a; it needs the old a"),
)
_HALF_MISTAKES = (
    _other_way(rope_half),
    _SWAPPED_HALF,
    _next_row(rope_half),
    _first_row(rope_half),
    _NEW_A,
    _one_sign(True),
    _one_sign(False),
    _sin_for_cos(rope_half),
    (lambda x, cos, sin: 1 * x, _UNCHANGED),
)


def _block_by_block(shrink_total, shrink_result):
    """The softmax in one pass that does not bring one of its sums, or neither, to the new reference."""

    def mean(scores, values):
        best, total, result = torch.full_like(scores[:, 0], -torch.inf), 0.0, 0.0
        for s, v in zip(scores.split(32, 1), values.split(32), strict=True):
            new = torch.maximum(best, s.amax(1))
            weights, shrink = (s - new[:, None]).exp(), (best - new).exp()
            total = total * (shrink if shrink_total else 1) + weights.sum(1)
            result = result * (shrink if shrink_result else 1) + weights @ v
            best = new
        return result / total

    which = ("A", "A") if shrink_total else ("Z", "Z") if shrink_result else ("Z 和 A", "Z and A")
    return mean, (
        f"最大值变大时，旧的 {which[0]} 要乘以 exp(M − M')",
        f"when the largest score grows, the old {which[1]} must be multiplied by exp(M − M')",
    )


def _padded(scores, values):
    """The softmax with scores of 0 after the last key, up to whole blocks of 32; in float32, where some vanish."""
    more = -scores.shape[1] % 32
    padded = torch.nn.functional.pad(scores, (0, more)).softmax(-1).float().double()
    return padded[:, : scores.shape[1]] @ values


def _no_future(q, k, v, slopes):
    """ALiBi without its mask, which so sees the keys of its own block of 32, also later ones."""
    at = torch.arange(q.shape[1], device=q.device)
    scores = q @ k.mT / q.shape[-1] ** 0.5 + slopes[:, None, None] * (at[None, :] - at[:, None])
    scores = scores.masked_fill(at[None, :] // 32 > at[:, None] // 32, -torch.inf)
    return scores.softmax(-1) @ v


def _plain(q, k, v, cos, sin):
    return rope_attention(q, k, v, torch.ones_like(cos), torch.zeros_like(sin))


def _only_q(q, k, v, cos, sin):
    """Keys that are not turned: undo what `rope_attention` will do to them."""
    return rope_attention(q, rope_half(k, cos, -sin), v, cos, sin)


def _sizes(**axes):
    """One case for each place of the lists of sizes."""
    return tuple(dict(zip(axes, sizes, strict=True)) for sizes in zip(*axes.values(), strict=True))


HALF = torch.float16
LENGTHS = (100, 7, 1, 63)
_HEADS = {"head_dim": (4, 16, 64, 8), "half_dim": (2, 8, 32, 4)}
_ROPE = (
    *_sizes(seq_len=LENGTHS, **_HEADS, layout=("rows", "gaps", "rows", "gaps")),
    {"seq_len": 45, "head_dim": 32, "half_dim": 16, "dtype": HALF, "layout": "rows"},
)
_CAUSAL = _sizes(heads=(2, 1, 2), seq_len=(45, 1, 70), head_dim=(32, 32, 64), half_dim=(16, 16, 32))
PUZZLES = {
    "10.2": Puzzle(copy, launch_whole_blocks, _sizes(size=(32, 64, 160)), transpose=True),
    "10.3": Puzzle(copy, launch_blocks, _sizes(size=LENGTHS), transpose=True),
    "10.4": Puzzle(
        copy_matrix,
        launch_tiles,
        _sizes(rows=LENGTHS, columns=(40, 33, 1, 7), layout=("rows", "gaps", "rows", "transposed")),
        transpose=True,
    ),
    "10.5": Puzzle(rope_half, launch_rope, _ROPE, transpose=True, rounding=4, mistakes=_HALF_MISTAKES),
    "10.6": Puzzle(
        rope_adjacent,
        launch_rope,
        _ROPE,
        transpose=True,
        rounding=4,
        mistakes=(
            _other_way(rope_adjacent),
            _SWAPPED_ADJACENT,
            _next_row(rope_adjacent),
            _first_row(rope_adjacent),
            _sin_for_cos(rope_adjacent),
            (lambda x, cos, sin: 1 * x, _UNCHANGED),
        ),
    ),
    "10.7": Puzzle(rope_half, launch_both_ways, _ROPE, backward=True, rounding=4, mistakes=_HALF_MISTAKES),
    "10.8": Puzzle(
        rope_half, launch_in_place, _ROPE, in_place=1, backward=True, rounding=4, mistakes=_HALF_MISTAKES
    ),
    "10.9": Puzzle(
        rope_both,
        launch_fused,
        _sizes(
            seq_len=(7, 1, 11, 3),
            q_heads=(6, 4, 3, 8),
            k_heads=(2, 4, 1, 2),
            head_dim=(16, 32, 8, 64),
            half_dim=(8, 16, 4, 32),
            layout=("rows", "gaps", "rows", "rows"),
            dtype=(torch.float32, torch.float32, torch.float32, HALF),
        ),
        in_place=2,
        backward=True,
        rounding=4,
        mistakes=(
            _other_way(rope_both),
            _next_row(rope_both),
            _first_row(rope_both),
            _sin_for_cos(rope_both),
            (
                lambda q, k, cos, sin: (rope_half(q, cos[:, None], sin[:, None]), 1 * k),
                ("k 没有转", "k was not turned"),
            ),
            (lambda q, k, cos, sin: (1 * q, 1 * k), _UNCHANGED),
        ),
    ),
    "10.10": Puzzle(
        weighted_mean,
        launch_rows,
        _sizes(rows=(20, 7, 1, 33), keys=(100, 32, 7, 63), layout=("rows", "gaps", "rows", "rows")),
        rounding=64,
        mistakes=(
            (
                lambda scores, values: (scores - scores.amax(-1, keepdim=True)).exp() @ values,
                ("没有除以权重的和", "the sum of the weights was not divided out"),
            ),
            _block_by_block(False, True),
            _block_by_block(True, False),
            _block_by_block(False, False),
            (
                _padded,
                (
                    "末尾之外的格子分到了权重：分数的 other 应当取 −∞",
                    "cells beyond the last key got weight: other must be −∞ for the scores",
                ),
            ),
        ),
    ),
    "10.11": Puzzle(
        alibi_attention,
        launch_alibi,
        _CAUSAL,
        rounding=64,
        mistakes=(
            (
                lambda q, k, v, slopes: alibi_attention(q, k, v, 0 * slopes),
                ("偏置没有加上：斜率没有起作用", "there is no bias: the slope has no effect"),
            ),
            (
                lambda q, k, v, slopes: alibi_attention(q, k, v, -slopes),
                (
                    "偏置的正负号反了：越远应当越低",
                    "the bias has the wrong sign: farther keys must score lower",
                ),
            ),
            (
                lambda q, k, v, slopes: alibi_attention(q, k, v, slopes[:1].expand_as(slopes)),
                ("每个头都用了第 0 个斜率", "every head took slope 0"),
            ),
            (
                lambda q, k, v, slopes: alibi_attention(q, k, v, slopes / q.shape[-1] ** 0.5),
                (
                    "偏置也乘了 1/√d：它要加在缩放之后",
                    "the bias was scaled by 1/√d too: add it after the scaling",
                ),
            ),
            (_no_future, ("后面的键没有遮住", "later keys are not masked")),
        ),
    ),
    "10.12": Puzzle(
        rope_attention,
        launch_rope_attention,
        _CAUSAL,
        rounding=64,
        mistakes=(
            (_plain, ("q 和 k 都没有转", "neither q nor k was turned")),
            (_only_q, ("只转了 q，没有转 k", "only q was turned, k was not")),
        ),
    ),
}
