"""The committed editions are what the sources give, and every solution passes its own check."""

import re
from importlib.util import find_spec

import nbformat
import pytest

from book import LANGS
from book.compose import compose, edition_path, execute
from book.lesson import lesson_paths, read_lesson

LESSONS = lesson_paths()
WITH_CODE = [path for path in LESSONS if any(cell.kind == "code" for cell in read_lesson(path)[1])]


def extras_of(path):
    """Which of torch and triton a lesson needs; on some versions of Python they are not installed."""
    text = path.read_text("utf8")
    return {name for name in ("torch", "triton") if re.search(rf"^(import|from) .*{name}\b", text, re.M)}


RUNS_HERE = [path for path in WITH_CODE if all(map(find_spec, extras_of(path)))]


def without_outputs(notebook):
    return [(cell.cell_type, cell.id, cell.source, dict(cell.metadata)) for cell in notebook.cells]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_committed_edition_is_a_fresh_composition(path, lang):
    fresh, _ = compose(path, lang)
    way_out = f"chapters/{lang}/{path.stem} is not what chapters/{path.name} gives; run 'make notebooks'"
    if path not in WITH_CODE:
        text = edition_path(path, lang, suffix=".md").read_text("utf8")
        assert text == "\n\n".join(cell.source for cell in fresh.cells) + "\n", way_out
        return
    committed = nbformat.read(edition_path(path, lang, suffix=".ipynb"), as_version=4)
    assert without_outputs(committed) == without_outputs(fresh), way_out
    assert committed.metadata == fresh.metadata, way_out
    counts = [cell.execution_count for cell in committed.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), way_out


@pytest.mark.parametrize("path", RUNS_HERE, ids=lambda path: path.stem)
def test_every_solution_passes_its_check(path):
    notebook, lines = compose(path, "en", "solved")
    execute(notebook, lines, path)


def test_no_edition_is_left_over():
    wanted = {
        edition_path(p, lang, suffix=s)
        for p in LESSONS
        for lang in LANGS
        for s in [".ipynb" if p in WITH_CODE else ".md"]
    }
    present = {
        file
        for lang in LANGS
        for file in (LESSONS[0].parent / lang).iterdir()
        if not file.name.startswith(".")
    }
    assert present == wanted
