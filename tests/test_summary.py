"""Every cell of the page that sums up all encodings is backed by a section of a lesson or a cited place."""

import re

import pytest
from myst_parser.mdit_to_docutils.base import default_slugify

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


def overview(text):
    """Return (name, where it leads, cells) for every row of the table of all encodings, in which names are links."""
    found = re.findall(r"^\| \[(.+?)\]\((#\S+)\) \|(.*)\|$", text, re.M)
    return [(plain(name), link, [cell.strip() for cell in row.split("|")]) for name, link, row in found]


def plain(text):
    return re.sub(r"<[^>]+>", "", text)


def unbacked(text):
    """Yield the cells that name neither a section of a lesson nor a paper, and the sections that are not there."""
    short = [(name, cell) for name, _, cells in overview(text) for cell in cells]
    for label, cell in [*rows(text), *short]:
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


@pytest.mark.parametrize("lang", LANGS)
def test_one_table_has_a_full_row_for_every_encoding_and_leads_to_its_details(lang):
    header = re.search(r"^\| (?:编码|encoding) \| (<span.*) \|$", PAGE[lang], re.M)[1]
    assert plain(header).split(" | ") == LABELS[lang]
    found = overview(PAGE[lang])
    assert [name for name, _, _ in found] == re.findall(r"^### (.+)$", PAGE[lang], re.M)
    for name, link, cells in found:
        assert link == f"#{default_slugify(name)}"
        said = [CITED.sub("", LINK.sub("", cell)).strip() for cell in cells]
        assert len(said) == len(LABELS[lang]) and all(said), name
        assert max(map(len, said)) < 60, f"{name}: a cell of this table is one short phrase"


def test_the_cells_of_the_table_have_the_same_evidence_in_both_languages():
    zh, en = ([cells for *_, cells in overview(PAGE[lang])] for lang in LANGS)
    evidence = re.compile(f"{LINK.pattern}|{CITED.pattern}")
    assert [[evidence.findall(cell) for cell in cells] for cells in zh] == [
        [evidence.findall(cell) for cell in cells] for cells in en
    ]


def test_both_languages_have_the_same_evidence():
    zh, en = ([*LINK.findall(PAGE[lang]), *CITED.findall(PAGE[lang])] for lang in LANGS)
    assert sorted(map(str, zh)) == sorted(map(str, en))


def test_a_row_without_evidence_and_a_dead_section_are_found():
    assert list(unbacked("| [RoPE](#rope) | none | turned [4.4](04_rope.ipynb) |")) == ["RoPE: none"]
    assert list(unbacked("| <span>cost</span> | nothing |")) == ["cost: nothing"]
    assert list(unbacked("| <span>cost</span> | none [4.99](04_rope.ipynb) |")) == [
        "04_rope has no section 4.99"
    ]
    assert list(unbacked("| <span>cost</span> | none [1.1](04_rop.ipynb) |")) == ["04_rop has no section 1.1"]
