"""The interactive figure of the lesson on RoPE in practice: the fingerprint that each fault leaves in the scores."""

import numpy as np

from companion.figures import _figure, _finite_array


def fault_fingerprints(lang, places, distances, errors):
    """Return the table of errors of a fault, a row for each place of the key and a column for each distance.

    `errors` maps the name of each fault to its table, `(len(places), len(distances))`, in percent of a typical
    score. A menu chooses the fault and two sliders choose a cell; the text says whether rows differ (then moving the
    text gives the fault away) and from which distance on the error exceeds 10 percent.
    """
    words = {
        "zh": {
            "alt": "表格：每行是键的一个位置，每列是一个距离，格子里是分数的误差，越橙越大",
            "fault": "错误",
            "across": "距离 m − n →",
            "down": "键的位置 n ↓",
            "distance": "距离 m − n",
            "place": "键的位置 n（大约）",
            "cell": "键在 {place} 附近，距离 {distance}：分数的误差是 {error}。\n",
            "moved": "各行相同：挪动整段文字，分数不变，平移测试看不出来。\n",
            "fixed": "各行不同：挪动整段文字，分数就变，平移测试抓得住。\n",
            "from": "误差从距离 {distance} 起超过 10%。",
            "never": "误差处处不到 10%。",
        },
        "en": {
            "alt": "Table: a row for each place of the key, a column for each distance; in the cells the error of the "
            "score, the more orange, the larger",
            "fault": "fault",
            "across": "distance m − n →",
            "down": "key at n ↓",
            "distance": "distance m − n",
            "place": "place of the key, n (about)",
            "cell": "Key near {place}, distance {distance}: the score is off by {error}.\n",
            "moved": "All rows are equal: moving the text changes no score, and the shift test sees nothing.\n",
            "fixed": "Rows differ: moving the text changes scores, and the shift test catches it.\n",
            "from": "The error exceeds 10% from distance {distance} on.",
            "never": "The error is below 10% everywhere.",
        },
    }
    places = _finite_array("places", places).tolist()
    distances = _finite_array("distances", distances).tolist()
    if not isinstance(errors, dict) or not errors:
        raise TypeError(
            f"errors must be a dict from name to table, got {type(errors).__name__}; use {{name: table}} with at least one"
        )
    tables = {name: _table(name, table, len(places), len(distances)) for name, table in errors.items()}
    return _figure("fault_fingerprints", lang, words, places=places, distances=distances, tables=tables)


def _table(name, table, rows, columns):
    table = _finite_array(f"errors[{name!r}]", table)
    if table.shape != (rows, columns):
        raise ValueError(
            f"errors[{name!r}] must have a row for each of {rows} places and a column for each of {columns} distances, "
            f"got shape {table.shape}; transpose it, perhaps"
        )
    if (table < 0).any():
        raise ValueError(
            f"errors[{name!r}] must be percentages ≥ 0, got {table.min()}; take the absolute value"
        )
    return np.round(table.astype(float), 1).tolist()
