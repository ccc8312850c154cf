"""The checks of lesson 10 accept the kernels of the lesson, and name what is wrong with 65 others."""

import pytest

pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
pytest.importorskip("triton", reason="triton is an extra: pip install -e '.[kernels]'")

from tests.lesson_kernels import kernel, right, wrong

NOTHING = kernel("@triton.jit\ndef nothing(x, y, BLOCK: tl.constexpr):\n    tl.arange(0, BLOCK)\n")

RIGHT = [
    ("10.1", (16, 24)),
    ("10.1", [16, 24]),
    *((f"10.{number}", right(f"10.{number}")) for number in range(2, 13)),
]

WRONG = [
    ("10.1", (15, 24), "15 个程序只够 960 行", "15 programs cover 960 rows"),
    ("10.1", (17, 24), "程序数不对", "wrong number of programs"),
    ("10.1", (16, 40), "最后一个程序有 40 行要做", "40 rows have work"),
    ("10.1", (16, 25), "空闲的行数不对", "wrong number of idle rows"),
    ("10.1", 16, "要两个数", "two numbers are wanted"),
    ("10.2", NOTHING, "什么也没有写", "wrote nothing to y"),
    # Off by one block: block 0 is nobody's, and the last program steps out of the tensor.
    (
        "10.2",
        wrong("10.2", ("tl.program_id(0) * BLOCK", "(tl.program_id(0) + 1) * BLOCK")),
        "y 末尾之后的 32 个元素",
        "wrote 32 elements past the end of y",
    ),
    (
        "10.2",
        wrong("10.2", ("tl.program_id(0) * BLOCK +", "tl.program_id(0) +")),
        "y[33:64] 从来没有写过",
        "y[33:64] was never written",
    ),
    # Two programs write one element: with the same number here, so that only the record of accesses tells.
    (
        "10.3",
        wrong("10.3", ("tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK - 1)")),
        "程序 0 和程序 1 都写了 y[31]",
        "programs 0 and 1 both wrote y[31]",
    ),
    (
        "10.3",
        wrong("10.3", ("tl.store(y + i, value, mask=mask)", "tl.store(y + i, value)")),
        "程序 3 写到了 y 末尾之后的 28 个元素：检查 tl.store 的掩码",
        "program 3 wrote 28 elements past the end of y: check the mask of tl.store",
    ),
    (
        "10.3",
        wrong("10.3", ("tl.load(x + i, mask=mask, other=0.0)", "tl.load(x + i)")),
        "程序 3 读到了 x 末尾之后的 28 个元素：检查 tl.load 的掩码",
        "program 3 read 28 elements past the end of x: check the mask of tl.load",
    ),
    ("10.3", wrong("10.3", ("i < size", "i < size + 3")), "末尾之后的 3 个元素", "wrote 3 elements past the end of y"),
    ("10.3", wrong("10.3", ("i < size", "i < size - 1")), "y[99] 从来没有写过", "y[99] was never written"),
    (
        "10.3",
        wrong("10.3", ("mask = i < size", "mask = (i < size) & (i != 5)")),
        "y[5] 从来没有写过",
        "y[5] was never written",
    ),
    ("10.3", wrong("10.3", ("tl.load(x + i,", "tl.load(x + i - 1,")), "x 开头之前的 1 个", "read 1 element before the start of x"),
    ("10.3", wrong("10.3", ("tl.store(y + i,", "tl.store(y + i - 2,")), "y 开头之前的", "before the start of y"),
    ("10.3", wrong("10.3", ("x + i", "x + i + 2**40")), "远离一切张量", "far away from every tensor"),
    ("10.3", wrong("10.3", ("y + i", "y + i + 2**40")), "写到了远离一切张量", "writes far away from every tensor"),
    ("10.3", wrong("10.3", ("i < size", "i < length")), "内核抛出了 NameError", "the kernel raised NameError"),
    ("10.3", wrong("10.3", ("value, mask", "value + 1, mask")), "y[0] 应该是", "y[0] should be"),
    # A stride that is taken for granted: rows with gaps, and a transposed input.
    ("10.4", wrong("10.4", ("m * x_row", "m * columns")), "行与行之间", "between the rows of x"),
    (
        "10.4",
        wrong("10.4", ("n * x_column", "n"), ("n * y_column", "n")),
        "y[0, 2:7], … 从来没有写过",
        "y[0, 2:7], … was never written",
    ),
    (
        "10.4",
        wrong("10.4", ("n * x_column", "n")),
        "layout=transposed 时 y[",
        "layout=transposed, y[",
    ),
    ("10.4", wrong("10.4", ("m * y_row + n * y_column", "m * x_row + n * x_column")), "y 的行与行之间", "between the rows of y"),
    ("10.4", wrong("10.4", (" & (n < columns)", "")), "末尾之后", "past the end of y"),
    ("10.4", wrong("10.4", ("(m < rows) & ", "")), "末尾之后", "past the end of y"),
    ("10.4", wrong("10.4", ("tl.program_id(1) * COLUMNS", "tl.program_id(0) * COLUMNS")), "y[0, 32:40], … 从来没有写过", "y[0, 32:40], … was never written"),
    ("10.5", wrong("10.5", ("a * c - b * s", "a * c + b * s"), ("b * c + a * s", "b * c - a * s")), "方向反了", "the other way"),
    (
        "10.5",
        wrong("10.5", ("m * x_row + i", "m * x_row + 2 * i"), ("first + HALF", "first + 1"),
              ("m * y_row + i", "m * y_row + 2 * i"), ("target + HALF", "target + 1")),
        "这是相邻配对",
        "that is adjacent pairing",
    ),
    (
        "10.5",
        wrong("10.5", ("cos + m * HALF", "cos + (m + 1) * HALF"), ("sin + m * HALF", "sin + (m + 1) * HALF")),
        "cos 末尾之后",
        "past the end of cos",
    ),
    (
        "10.5",
        wrong("10.5", ("cos + m * HALF + i, mask=mask", "cos + (m + 1) * HALF + i, mask=m + 1 < seq_len"),
              ("sin + m * HALF + i, mask=mask", "sin + (m + 1) * HALF + i, mask=m + 1 < seq_len")),
        "位置多数了 1",
        "positions are one too large",
    ),
    ("10.5", wrong("10.5", ("cos + m * HALF", "cos"), ("sin + m * HALF", "sin")), "每一行都用了表的第 0 行", "row 0 of the table"),
    ("10.5", wrong("10.5", ("a, b = a.to(tl.float32), b.to(tl.float32)", "c, s = c.to(x.dtype.element_ty), s.to(x.dtype.element_ty)")), "像是在 float16", "looks like arithmetic in float16"),
    ("10.5", wrong("10.5", ("m * x_row", "m * 2 * HALF")), "行与行之间", "between the rows of x"),
    ("10.5", wrong("10.5", ("m < seq_len", "m <= seq_len")), "程序 3 写到了 y 末尾之后的 2 个", "program 3 wrote 2 elements past the end of y"),
    ("10.5", wrong("10.5", ("cos + m * HALF", "sin + m * HALF")), "不对", "is wrong"),
    ("10.5", wrong("10.5", ("cos + m * HALF", "SIN"), ("sin + m * HALF", "cos + m * HALF"), ("SIN", "sin + m * HALF")), "用反了", "are exchanged"),
    ("10.5", wrong("10.5", ("a * c - b * s", "a * c + b * s")), "第一式里 sin 前面", "sine of the first formula"),
    ("10.5", wrong("10.5", ("b * c + a * s", "b * c - a * s")), "第二式里 sin 前面", "sine of the second formula"),
    ("10.5", wrong("10.5", ("m * y_row", "m * x_row")), "y 的行与行之间", "between the rows of y"),
    ("10.5", wrong("10.5", ("[:, None]", "")), "← c = tl.load(cos", "← c = tl.load(cos"),
    ("10.5", wrong("10.5", ("first = x + m * x_row", "first = x + (m - 1) * x_row")), "x 开头之前", "before the start of x"),
    ("10.6", right("10.5"), "这是对半配对", "that is half pairing"),
    ("10.7", wrong("10.7", ("        s = -s", "        s = s")), "反向：方向反了", "backward: turned the other way"),
    ("10.7", wrong("10.7", ("        s = -s", "        c = -c")), "正向对了", "forward is right; backward, with"),
    ("10.8", wrong("10.8", ("tl.store(first, a * c - b * s, mask=mask)", "tl.store(first, a * c - b * s, mask=mask)\n    a = tl.load(first, mask=mask, other=0.0).to(tl.float32)")), "旧的 a", "the old a"),
    ("10.8", wrong("10.8", ("tl.store(first", "tl.load(first"), ("a * c - b * s, ", ""), ("b * c + a * s, ", "")), "什么也没有转", "nothing was turned"),
    ("10.8", wrong("10.8", ("tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK - 1)")), "都写了 x[31, 0]", "both wrote x[31, 0]"),
    ("10.9", wrong("10.9", ("mask = h < q_heads", "mask = h < Q_BLOCK")), "程序 6 写到了 q 末尾之后", "program 6 wrote 16 elements past the end of q"),
    ("10.9", wrong("10.9", ("k + m * k_token", "k + m * q_token")), "k 末尾之后", "past the end of k"),
    ("10.9", wrong("10.9", ("cos + m * HALF", "cos"), ("sin + m * HALF", "sin")), "每一行都用了表的第 0 行", "row 0 of the table"),
    ("10.9", wrong("10.9", ("mask = h < k_heads", "mask = h < 0")), "k 没有转", "k was not turned"),
    ("10.10", wrong("10.10", ("total = total * shrink +", "total = total +"), ("result = result * shrink +", "result = result +")), "旧的 Z 和 A 要乘以", "the old Z and A must be multiplied"),
    ("10.10", wrong("10.10", ("total = total * shrink +", "total = total +")), "旧的 Z 要乘以", "the old Z must be multiplied"),
    ("10.10", wrong("10.10", ("result = result * shrink +", "result = result +")), "旧的 A 要乘以", "the old A must be multiplied"),
    ("10.10", wrong("10.10", ('other=float("-inf"))', "other=0.0)")), "末尾之外的格子分到了权重", "cells beyond the last key got weight"),
    ("10.10", wrong("10.10", ('tl.full((ROWS,), float("-inf"), tl.float32)', "tl.zeros((ROWS,), tl.float32)")), "y[:] 是 nan", "y[:] is nan"),
    ("10.10", wrong("10.10", ("        best = new\n", "")), "y[:] 不对", "y[:] is wrong"),
    ("10.10", wrong("10.10", ("result / total", "result")), "没有除以权重的和", "sum of the weights"),
    ("10.10", wrong("10.10", ('other=float("-inf"))', "other=1000.0)")), "y[:] 不对", "y[:] is wrong"),
    ("10.10", wrong("10.10", ("new = tl.maximum(best, tl.max(s, 1))", "new = best * 0 + 0.0")), "y[:] 是 nan", "y[:] is nan"),
    ("10.11", wrong("10.11", ("slope * (n - m)", "slope * (m - n)")), "正负号反了", "wrong sign"),
    ("10.11", wrong("10.11", ("s += slope * (n - m)", "s += 0.0")), "偏置没有加上", "there is no bias"),
    ("10.11", wrong("10.11", ("slope * (n - m)", "SCALE * slope * (n - m)")), "偏置也乘了", "was scaled"),
    ("10.11", wrong("10.11", ("tl.load(slopes + h)", "tl.load(slopes)")), "第 0 个斜率", "slope 0"),
    ("10.11", wrong("10.11", ("n <= m, s", "n < m, s")), "y[:, :, :] 是 nan", "y[:, :, :] is nan"),
    ("10.11", wrong("10.11", ('s = tl.where(n <= m, s, float("-inf"))', 's = tl.where(n < seq_len, s, float("-inf"))')), "后面的键没有遮住", "later keys"),
    ("10.12", wrong("10.12", ("k_a * k_c - k_b * k_s", "k_a"), ("k_b * k_c + k_a * k_s", "k_b")), "只转了 q", "only q was turned"),
    ("10.12", wrong("10.12", ("k_a * k_c - k_b * k_s", "k_a"), ("k_b * k_c + k_a * k_s", "k_b"), ("q_a * q_c - q_b * q_s", "q_a"), ("q_b * q_c + q_a * q_s", "q_b")), "都没有转", "neither q nor k"),
    ("10.12", wrong("10.12", ("s * SCALE", "s")), "y[:, 1:45, :] 不对", "y[:, 1:45, :] is wrong"),
]  # fmt: skip
