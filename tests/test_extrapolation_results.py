"""What lesson 8 says of repetitions is what benchmarks/extrapolation.py recorded, and its verdicts are safe."""

import importlib
import re
import statistics
import sys

import pytest

from book import CHAPTERS, ROOT
from book.compose import compose

LESSON = CHAPTERS / "08_extrapolation.md"


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module("extrapolation")
    sys.path.remove(str(ROOT / "benchmarks"))


def margins(benchmark):
    return {key: values for key, values in benchmark.results().items() if key[1] == "margin"}


def test_the_table_in_the_lesson_is_the_recorded_one(benchmark):
    printed = re.search(r'recorded = """\n(.*?)\n"""', LESSON.read_text("utf8"), re.S)[1]
    assert printed == benchmark.summary(benchmark.results())


def test_five_seeds_were_run_on_two_texts(benchmark):
    assert {key[0] for key in margins(benchmark)} == {"3.11", "3.13"}
    assert {len(values) for values in benchmark.results().values()} == {5}


def test_the_verdicts_recorded_are_those_of_the_lesson(benchmark):
    notebook, _ = compose(LESSON, "en")
    stated = [v for cell in notebook.cells for v in re.findall(r'^verdict\("(.*?)"', cell.source, re.M)]
    for python in ("3.11", "3.13"):
        assert [name for version, _, name, _ in margins(benchmark) if version == python] == stated


def test_every_verdict_holds_for_every_seed_and_by_three_standard_deviations(benchmark):
    for key, values in margins(benchmark).items():
        assert min(values) > 0, key
        assert statistics.mean(values) >= 3 * statistics.stdev(values), key
