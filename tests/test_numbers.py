"""Each decimal number in the prose of a lesson is printed or written by one of its cells, or stands beside a citation."""

import re

import nbformat
import pytest

from book import LANGS
from book.compose import edition_path
from book.lesson import read_lesson
from tests.test_editions import WITH_CODE

DECIMAL = re.compile(r"(?<![\w.])(\d+\.\d+)(?!\w|\.\d)(\s*\\?%)?")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
GROUPED = re.compile(r"(?<=\d)(?:\\,|[_,\u202f])(?=\d{3})")
# Numbers of sections, figures, tables, exercises and versions of Python, and what a link points to.
LABEL = re.compile(
    r"^#.*$|\]\([^)]*\)|\d+\.\d+(?=\*\*|\s*节)"
    r"|(?:练习|图|表|第|Exercises?|Figures?|Tables?|Sections?|Lessons?|Python)\s*\d+\.\d+(?:\s*(?:,|、|and on|and|to|or|和|与|至|–|到)\s*\d+\.\d+)*",
    re.MULTILINE | re.IGNORECASE,
)


def numbers(text):
    return {float(number) for number in NUMBER.findall(GROUPED.sub("", text))}


def of_the_cells(path, lang):
    """Every number that a code cell of the edition holds or prints."""
    notebook = nbformat.read(edition_path(path, lang, suffix=".ipynb"), as_version=4)
    found = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found |= numbers(cell.source)
            for output in cell.outputs:
                data = output.get("data", {})
                shown = [
                    output.get("text", ""),
                    *(data.get(f"text/{kind}", "") for kind in ("plain", "latex", "html")),
                ]
                found |= numbers("\n".join(shown))
    for cell in read_lesson(path)[1]:
        if cell.kind == "code":  # with the solutions, which the answers show
            found |= numbers(cell.source)
    return found


def unfounded(prose, known):
    """The decimals of a text without a citation that round no known number."""
    text = GROUPED.sub("", LABEL.sub(" ", prose))
    for written, percent in DECIMAL.findall(text):
        half_a_step = 0.5000001 * 10 ** -len(written.split(".")[1])
        factors = (1, 100) if percent else (1,)
        if not any(
            abs(number * factor - float(written)) <= half_a_step for number in known for factor in factors
        ):
            yield written


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_each_decimal_in_the_prose_comes_from_a_cell_or_a_cited_table(path, lang):
    prose = [cell.source for cell in read_lesson(path)[1] if cell.lang == lang]
    cited = [text for text in prose if "{cite}" in text]
    known = of_the_cells(path, lang) | {number for text in cited for number in numbers(text)}
    found = [number for text in prose if text not in cited for number in unfounded(text, known)]
    assert not found, (
        f"{path.name} ({lang}) has these from nowhere: print them in a cell, or cite their source"
    )


def test_a_number_from_nowhere_is_found():
    assert list(unfounded("about 3.14, in Section 4.2 and 1\\,234.5", {3.14159, 7.0})) == ["1234.5"]
