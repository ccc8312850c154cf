"""Claim: the verdicts of lesson 8 hold for five seeds, and by at least three standard deviations over them.

python benchmarks/extrapolation.py            runs the lesson for seeds 0 … 4, about a minute each
python benchmarks/extrapolation.py --verify   only reads what was measured so far, with any version of Python

The text of the lesson comes with Python, so every minor version is a repetition of its own, in a file of its own.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import platform
import statistics
import sys
from pathlib import Path

from measure import RESULTS, cpu, installed, show, write

ROOT = Path(__file__).parents[1]
LESSON = ROOT / "chapters" / "en" / "08_extrapolation.ipynb"
SEEDS = range(5)
# Of the lesson: {name: {length: value}} or {name: value}.
TABLES = ("losses", "untuned", "before", "after", "found")


def run_lesson(seed):
    """Execute the code of the lesson with this seed and return its variables."""
    cells = json.loads(LESSON.read_text("utf8"))["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    if code.count("\nseed = 0\n") != 1:
        sys.exit("the lesson must set its seed once, in a line 'seed = 0'")
    variables = {"display": lambda shown: None}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code.replace("\nseed = 0\n", f"\nseed = {seed}\n"), LESSON.name, "exec"), variables)
    return variables


def measured(variables):
    """Yield (what, name, length, value) of the margins of all verdicts and of all tables."""
    yield from (("margin", name, "", value) for name, value in variables["margins"].items())
    for table in TABLES:
        for name, row in variables[table].items():
            for length, value in row.items() if isinstance(row, dict) else [("", row)]:
                yield table, name, length, value


def results():
    """Return {(python, what, name, length): [value for each seed]} of all files."""
    found = {}
    for path in sorted(RESULTS.glob("extrapolation-*.csv")):
        with open(path, newline="", encoding="utf8") as file:
            for row in csv.DictReader(file):
                key = row["python"].rpartition(".")[0], row["what"], row["name"], row["length"]
                found.setdefault(key, []).append(float(row["value"]))
    return found


def weak_verdicts(found):
    """Return the verdicts that do not hold for all seeds, or by less than three standard deviations, and show all."""
    rows, weak = [], []
    for (python, what, name, _), margins in found.items():
        if what == "margin":
            mean, deviation = statistics.mean(margins), statistics.stdev(margins)
            ratio = mean / deviation
            numbers = {"least": min(margins), "mean": mean, "deviation": deviation, "ratio": ratio}
            rows.append({"python": python, "verdict": name, **{k: f"{v:.3f}" for k, v in numbers.items()}})
            if min(margins) <= 0 or ratio < 3:
                weak.append(f"{python}: {name}")
    show(rows, list(rows[0]))
    return weak


def summary(found):
    """Return the table that the lesson prints: mean ± standard deviation over all seeds and texts."""
    values = {}
    for (_, *key), seeds in found.items():
        values.setdefault(tuple(key), []).extend(seeds)

    def cell(what, name, length="", start=""):
        row = values[what, name, length]
        if start:
            row = [value - first for value, first in zip(row, values[what, name, start], strict=True)]
        return f"{statistics.mean(row):6.3f}±{statistics.stdev(row):.3f}"

    def block(title, columns, rows):
        return [f"{title:11}" + "".join(f"{column:>14}" for column in columns), *rows, ""]

    def names(what):
        return list(dict.fromkeys(name for kind, name, _ in values if kind == what))

    def line(name, cells):
        return f"{name:11}" + "".join(f"{text:>14}" for text in cells)

    lengths = ("96", "128", "256", "512")
    rows = [
        line(n, [cell("losses", n, "64"), *(cell("losses", n, x, "64") for x in ("96", "128", "512"))])
        for n in names("losses")
    ]
    text = block("rise", ("at 64", "96", "128", "512"), rows)
    rows = [line(n, [cell("untuned", n, x) for x in lengths]) for n in names("untuned")]
    text += block("untuned", lengths, rows)
    text += block(
        "256",
        ("before", "after"),
        [line(n, [cell(k, n) for k in ("before", "after")]) for n in names("after")],
    )
    far = ("64", "128", "256", "1024")
    text += block("needle", far, [line(n, [cell("found", n, x) for x in far]) for n in names("found")])
    return "\n".join(text).rstrip()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verify", action="store_true", help="do not run the lesson")
    if not parser.parse_args().verify:
        os.environ["MPLBACKEND"] = "agg"
        sys.path.insert(0, str(ROOT))
        where = {"python": platform.python_version(), "torch": installed("torch"), "cpu": cpu()}
        rows = []
        for seed in SEEDS:
            for what, name, length, value in measured(run_lesson(seed)):
                row = {"seed": seed, "what": what, "name": name, "length": length, "value": round(value, 4)}
                rows.append({**row, **where})
            print(f"seed {seed}", flush=True)
        write(f"extrapolation-{platform.python_version().rpartition('.')[0]}", rows)
    found = results()
    if not found:
        sys.exit("there are no results/extrapolation-*.csv yet; run this without --verify")
    print(summary(found))
    if weak := weak_verdicts(found):
        sys.exit("\n".join(["these verdicts are not safe:", *weak]))


if __name__ == "__main__":
    main()
