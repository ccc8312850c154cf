"""Every cell of the page that sums up all encodings is backed by a section of a lesson or a cited place."""

import re

import pytest

from book import CHAPTERS, LANGS
from book.lesson import read_lesson

LINK = re.compile(r"\[(\d+\.\d+)\]\((\w+)\.ipynb\)")
CITED = re.compile(r"\{cite\}`\w+`")
PAGE = {cell.lang: cell.source for cell in read_lesson(CHAPTERS / "a_summary.md")[1]}
LABELS = {
    "zh": ["定义", "代价", "先坏在哪", "谁在用", "何时选"],
    "en": ["definition", "cost", "breaks first", "used by", "choose it when"],
}


def rows(text):
    """Return label and content of every row of the tables of a page, without the row that names the encoding."""
    return re.findall(r"^\| <span[^>]*>(.*?)</span> \| (.*) \|$", text, re.M)


def unbacked(text):
    """Yield the rows that name neither a section of a lesson nor a paper, and the sections that are not there."""
    for label, cell in rows(text):
        if not LINK.search(cell) and not CITED.search(cell):
            yield f"{label}: {cell}"
    for section, lesson in LINK.findall(text):
        path = CHAPTERS / f"{lesson}.md"
        if not path.exists() or not re.search(rf"^## {re.escape(section)} ", path.read_text("utf8"), re.M):
            yield f"{lesson} has no section {section}"


@pytest.mark.parametrize("lang", LANGS)
def test_every_cell_is_backed(lang):
    assert list(unbacked(PAGE[lang])) == []


@pytest.mark.parametrize("lang", LANGS)
def test_every_encoding_has_all_five_rows(lang):
    encodings = re.findall(r"^### (.+)$", PAGE[lang], re.M)
    assert len(encodings) == len(set(encodings)) > 8
    assert [label for label, _ in rows(PAGE[lang])] == LABELS[lang] * len(encodings)


def test_both_languages_have_the_same_evidence():
    zh, en = ([*LINK.findall(PAGE[lang]), *CITED.findall(PAGE[lang])] for lang in LANGS)
    assert sorted(map(str, zh)) == sorted(map(str, en))


def test_a_row_without_evidence_and_a_dead_section_are_found():
    assert list(unbacked("| <span>cost</span> | nothing |")) == ["cost: nothing"]
    assert list(unbacked("| <span>cost</span> | none [4.99](04_rope.ipynb) |")) == [
        "04_rope has no section 4.99"
    ]
    assert list(unbacked("| <span>cost</span> | none [1.1](04_rop.ipynb) |")) == ["04_rop has no section 1.1"]
