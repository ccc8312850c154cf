"""The interactive figure of the lesson on kernels: what each program reads and writes."""

import numpy as np

from companion.figures import _figure


def program_map(lang, example):
    """Return the map of memory for one example: which cells each program reads and writes, access by access.

    `example` is "copy" (16 numbers in blocks of 4), "ragged" (10 numbers, so that the last block sticks out),
    "tiles" (a 5 × 7 matrix in tiles of 2 × 4), "half", "adjacent" or "in_place" (RoPE of 6 rows of width 8, in blocks
    of 4 rows), "fused" (RoPE in place of 3 query heads and 1 key head of width 4, one program a token), "softmax"
    (5 rows of 10 scores, walked in tiles of 2 × 4), or "alibi" or "rope" (causal attention of one head of 5 tokens
    of width 4, in blocks of 2). Sliders set the program and the access. Cells are [row, column]; those outside the
    tensor are masked.
    """
    words = {
        "zh": {
            "picture": "内存的格子图：蓝色是这个程序读的格子，橙色是它写的格子，虚线格子在张量之外，被掩码挡住",
            "program": "程序",
            "access": "第几次读写（0 表示全部）",
            "status": "程序 {program}：{accesses}。",
            "reads": "读 {name} 的 {count} 格",
            "writes": "写 {name} 的 {count} 格",
            "masked": "（其中 {count} 格在外面，被挡住）",
            "and": "，",
        },
        "en": {
            "picture": "Memory as a grid of cells: blue are those this program reads, orange those it writes; "
            "dashed cells lie outside the tensor and are masked",
            "program": "program",
            "access": "which access (0 for all)",
            "status": "Program {program} {accesses}.",
            "reads": "reads {count} cells of {name}",
            "writes": "writes {count} cells of {name}",
            "masked": " ({count} of them outside and masked)",
            "and": ", ",
        },
    }
    if not isinstance(example, str) or example not in _EXAMPLES:
        raise ValueError(f"example must be one of {', '.join(_EXAMPLES)}, got {example!r}; write one of them")
    tensors, programs = _EXAMPLES[example]()
    return _figure("program_map", lang, words, tensors=tensors, programs=programs)


def _copy(size=16):
    blocks = [_cells([0], range(start, start + 4)) for start in range(0, size, 4)]
    programs = [
        {"name": i, "accesses": [["reads", "x", cells], ["writes", "y", cells]]}
        for i, cells in enumerate(blocks)
    ]
    return [_tensor(name, 1, size) for name in "xy"], programs


def _tiles():
    programs = []
    for i in range(3):
        for j in range(2):
            cells = _cells(range(2 * i, 2 * i + 2), range(4 * j, 4 * j + 4))
            programs.append(
                {"name": f"({i}, {j})", "accesses": [["reads", "x", cells], ["writes", "y", cells]]}
            )
    return [_tensor(name, 5, 7) for name in "xy"], programs


def _rope(first, second, in_place=False):
    programs, y = [], "x" if in_place else "y"
    for i in range(2):
        rows = range(4 * i, 4 * i + 4)
        table, a, b = _cells(rows, range(4)), _cells(rows, first), _cells(rows, second)
        accesses = [["reads", "cos", table], ["reads", "sin", table], ["reads", "x", a], ["reads", "x", b]]
        programs.append({"name": i, "accesses": [*accesses, ["writes", y, a], ["writes", y, b]]})
    shapes = [("x", 8), *([] if in_place else [("y", 8)]), ("cos", 4), ("sin", 4)]
    return [_tensor(name, 6, columns) for name, columns in shapes], programs


def _fused():
    """The heads of a token lie side by side: head h begins at column 4h."""
    programs = []
    for token in range(3):
        table = _cells([token], range(2))
        accesses = [["reads", "cos", table], ["reads", "sin", table]]
        for name, heads in (("q", range(4)), ("k", range(1))):  # 3 heads in a block of 4
            a, b = (_cells([token], [4 * h + at + i for h in heads for i in range(2)]) for at in (0, 2))
            accesses += [["reads", name, a], ["reads", name, b], ["writes", name, a], ["writes", name, b]]
        programs.append({"name": token, "accesses": accesses})
    shapes = [("q", 12), ("k", 4), ("cos", 2), ("sin", 2)]
    return [_tensor(name, 3, columns, head_dim=4) for name, columns in shapes], programs


def _softmax():
    programs = []
    for i in range(3):
        rows, accesses = range(2 * i, 2 * i + 2), []
        for start in range(0, 10, 4):
            keys = range(start, start + 4)
            accesses += [["reads", "scores", _cells(rows, keys)], ["reads", "values", _cells([0], keys)]]
        programs.append({"name": i, "accesses": [*accesses, ["writes", "y", _cells(rows, [0])]]})
    return [_tensor("scores", 5, 10), _tensor("y", 5, 1), _tensor("values", 1, 10)], programs


def _attention(first, block, others):
    """Causal attention: `first(rows)` is read for the queries, `block(rows)` for each block of keys up to them."""
    programs = []
    for i in range(3):
        rows = range(2 * i, 2 * i + 2)
        accesses = first(rows) + [access for j in range(i + 1) for access in block(range(2 * j, 2 * j + 2))]
        programs.append({"name": i, "accesses": [*accesses, ["writes", "y", _cells(rows, range(4))]]})
    return [*(_tensor(name, 5, 4) for name in "qkvy"), *others], programs


def _alibi():
    def queries(rows):
        return [["reads", "slopes", [[0, 0]]], ["reads", "q", _cells(rows, range(4))]]

    def keys(rows):
        return [["reads", name, _cells(rows, range(4))] for name in "kv"]

    return _attention(queries, keys, [_tensor("slopes", 1, 1)])


def _rope_attention():
    def turned(name, rows):
        table = [["reads", part, _cells(rows, range(2))] for part in ("cos", "sin")]
        return [["reads", name, _cells(rows, half)] for half in (range(2), range(2, 4))] + table

    def keys(rows):
        return [*turned("k", rows), ["reads", "v", _cells(rows, range(4))]]

    return _attention(lambda rows: turned("q", rows), keys, [_tensor("cos", 5, 2), _tensor("sin", 5, 2)])


def _tensor(name, rows, columns, head_dim=0):
    return {"name": name, "rows": rows, "columns": columns, "group": head_dim}


def _cells(rows, columns):
    return np.stack(np.meshgrid(list(rows), list(columns), indexing="ij"), -1).reshape(-1, 2).tolist()


_EXAMPLES = {
    "copy": _copy,
    "ragged": lambda: _copy(10),
    "tiles": _tiles,
    "half": lambda: _rope(range(4), range(4, 8)),
    "adjacent": lambda: _rope(range(0, 8, 2), range(1, 8, 2)),
    "in_place": lambda: _rope(range(4), range(4, 8), in_place=True),
    "fused": _fused,
    "softmax": _softmax,
    "alibi": _alibi,
    "rope": _rope_attention,
}
