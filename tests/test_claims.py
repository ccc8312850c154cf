"""The ledger of claims: complete, in both languages, and every verdict stands on evidence that lives."""

import ast
import copy
import json
import re
from functools import cache

import pytest
import yaml
from pybtex.database import parse_file

from book import CHAPTERS, LANGS, ROOT, lint
from book.compose import edition_path
from book.lesson import formulas, read_lesson

CLAIMS = yaml.safe_load((ROOT / "book" / "claims.yml").read_text("utf8"))
TERMS = yaml.safe_load((ROOT / "book" / "glossary.yml").read_text("utf8"))["terms"]
PAPERS = parse_file(ROOT / "book" / "references.bib").entries
VERDICTS = {"true", "imprecise", "misleading", "wrong", "missing", "unsupported", "editorial"}
REQUIRED = [f"A{n}" for n in range(1, 35)] + ["A18b"] + [f"B{n}" for n in range(1, 29)]
KEYS = {"id", "group", "source", "said", "verdict", "right"}
PLACE = r"(section|appendix|Table|Fig\.|Eq\.|Theorem|footnote) \w[\w.]*(, \w[\w.]*)*"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def ledger_problems(claims):
    """Yield what is missing or doubled in the list as a whole."""
    ids = [claim.get("id") for claim in claims]
    yield from (f"{name} is missing" for name in REQUIRED if name not in ids)
    yield from (f"{name} stands twice" for name in sorted({name for name in ids if ids.count(name) > 1}))


def entry_problems(claim):
    """Yield what is wrong in the form of one entry."""
    name = claim.get("id")
    for key in sorted(KEYS - claim.keys()):
        yield f"{name}: {key} is missing"
    for key in sorted(claim.keys() - KEYS - {"primary", "evidence"}):
        yield f"{name}: unknown key {key}"
    if claim.get("verdict") not in VERDICTS:
        yield f"{name}: unknown verdict {claim.get('verdict')}"
    for key in ("said", "right"):
        texts = claim.get(key, {})
        if set(texts) != set(LANGS) or not all(texts.values()):
            yield f"{name}: {key} needs zh and en"
            continue
        if sorted(formulas(texts["zh"])) != sorted(formulas(texts["en"])):
            yield f"{name}: {key} has other formulas in zh than in en"
        yield from (f"{name}: {key}: {message}" for _, message in lint._chinese_typography(texts["zh"]))
    yield from (f"{name}: primary: {problem}" for problem in primary_problems(claim))


def primary_problems(claim):
    if claim.get("verdict") != "editorial" and not claim.get("primary"):
        yield "is missing"
    for target in claim.get("primary", ()):
        if not target.startswith("https://"):
            yield from paper_problems(target)


def paper_problems(target):
    key, _, place = target.partition(" ")
    if key not in PAPERS:
        yield f"{key} is not in references.bib"
    for part in place.split("; ") if place else ():
        if not re.fullmatch(PLACE, part):
            yield f"{part!r} is no place in a paper"


def evidence_problems(claim):
    """Yield why the evidence of an entry does not live."""
    if claim["verdict"] != "editorial" and not claim.get("evidence"):
        yield f"{claim['id']}: no evidence"
    checks = {
        "cell": cell_problems,
        "exercise": exercise_problems,
        "test": test_problems,
        "table": table_problems,
    }
    for item in claim.get("evidence", ()):
        for kind, target in item.items():
            found = checks[kind](target) if kind in checks else ["unknown kind of evidence"]
            yield from (f"{claim['id']}: {kind} {target}: {problem}" for problem in found)


def cell_problems(target):
    """A section lives if its heading is followed by code before the next heading of its level or above."""
    lesson, _, number = target.partition("#")
    if not (CHAPTERS / f"{lesson}.md").exists():
        yield "no such lesson"
        return
    if not re.fullmatch(r"\d+\.\d+", number):
        yield "a section is a number such as 4.7"
        return
    found, level, code = False, 0, False
    for cell in lesson_cells(lesson):
        if cell.kind == "code":
            code = code or level > 0
        elif cell.lang == "en":
            for marks, title in re.findall(r"^(#+) (.*)", cell.source, re.M):
                if title.startswith(f"{number} "):
                    found, level = True, len(marks)
                elif len(marks) <= level:
                    level = 0
    if not found:
        yield "no such section"
    elif not code:
        yield "the section has no code"


@cache
def lesson_cells(lesson):
    return read_lesson(CHAPTERS / f"{lesson}.md")[1]


def exercise_problems(target):
    lesson, _, number = target.partition("#")
    cells = lesson_cells(lesson) if (CHAPTERS / f"{lesson}.md").exists() else []
    if not any(cell.kind == "code" and f'check("{number}"' in cell.source for cell in cells):
        yield "no such exercise"


def test_problems(target):
    file, _, name = target.partition("::")
    path = ROOT / file
    if not path.exists():
        yield "no such file"
    elif name not in {node.name for node in ast.parse(path.read_text("utf8")).body if hasattr(node, "name")}:
        yield "no such test"
    elif not name.startswith("test_"):
        yield "pytest does not run it"


test_problems.__test__ = False


def table_problems(target):
    if " " not in target:
        yield "says no place in the paper"
    yield from paper_problems(target)


def number_problems(claim):
    """Yield the numbers that stand neither in what the entry cites nor, where it cites a paper's table, in any lesson."""
    cited, tables = "", False
    for kind, target in (pair for item in claim.get("evidence", ()) for pair in item.items()):
        if kind == "test":
            cited += (ROOT / target.partition("::")[0]).read_text("utf8")
        elif kind == "table":
            tables = True
        else:
            cited += printed(target.partition("#")[0])
    if tables:
        cited += "".join(printed(path.stem) for path in CHAPTERS.glob("[0-9]*.md"))
    known = numbers(cited)
    for lang in LANGS:
        yield from (
            f"{claim['id']} ({lang}): {number} stands nowhere in its evidence"
            for number in sorted(numbers(claim["right"][lang]) - known)
            if float(number) >= 20 or "." in number
        )


@cache
def printed(lesson):
    """Return the English edition of a lesson with its outputs."""
    path = edition_path(CHAPTERS / f"{lesson}.md", "en", suffix=".ipynb")
    cells = json.loads(path.read_text("utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        texts.append("".join(output.get("text", ())) + "".join(output.get("data", {}).get("text/plain", ())))
    return "\n".join(texts)


def numbers(text):
    """Return the numbers of a text: 1 024 and 1,024 are 1024, and 5.0 is 5."""
    text = re.sub(r"(?<=\d) (?=\d{3}\b)", "", text)
    return {number.replace(",", "").removesuffix(".0") for number in NUMBER.findall(text)}


def glossary_problems(terms):
    for term in terms:
        name = term.get("zh") or term.get("en")
        if set(term.get("means", {})) != set(LANGS) or not term.get("zh") or not term.get("en"):
            yield f"{name}: zh, en and a meaning in both languages are needed"
        elif sorted(formulas(term["means"]["zh"])) != sorted(formulas(term["means"]["en"])):
            yield f"{name}: other formulas in zh than in en"
        if not list(CHAPTERS.glob(f"{term.get('lesson', 0):02}_*.md")):
            yield f"{name}: there is no lesson {term.get('lesson')}"
    for lang in LANGS:
        names = [term.get(lang) for term in terms]
        yield from (f"{name} stands twice" for name in sorted({str(n) for n in names if names.count(n) > 1}))


def page_problems(page, claims):
    """Yield the groups that the page does not print once in each language."""
    printed_groups = re.findall(r"^```\{claims\} (\w+)$", page, re.M)
    for group in sorted({claim["group"] for claim in claims} | set(printed_groups)):
        if printed_groups.count(group) != len(LANGS):
            yield f"group {group} is printed {printed_groups.count(group)} times"


def wording_problems(claim):
    """A reader has not seen the sources: nothing may be said about what they say."""
    for text in (*claim["said"].values(), *claim["right"].values()):
        if found := re.search(r"\bthe sources? (says?|claims?)|来源说|来源称|原文称", text):
            yield f"{claim['id']}: {found[0]}"


def test_every_statement_of_both_texts_is_there_once():
    assert list(ledger_problems(CLAIMS)) == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_an_entry_is_complete_in_both_languages(claim):
    assert list(entry_problems(claim)) == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_the_evidence_of_an_entry_lives(claim):
    assert list(evidence_problems(claim)) == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_every_number_of_an_entry_stands_in_its_evidence(claim):
    assert list(number_problems(claim)) == []


def test_the_page_prints_every_group_once_in_each_language():
    assert list(page_problems((CHAPTERS / "a_sources.md").read_text("utf8"), CLAIMS)) == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_an_entry_speaks_of_the_matter_and_not_of_its_source(claim):
    assert list(wording_problems(claim)) == []


def test_the_ledger_has_no_banned_word():
    assert list(lint.file_problems(ROOT / "book" / "claims.yml")) == []


def test_every_term_has_a_meaning_and_a_lesson():
    assert list(glossary_problems(TERMS)) == []


def changed(name, **values):
    """Return a copy of an entry with other values; None removes a key."""
    claim = copy.deepcopy(next(claim for claim in CLAIMS if claim["id"] == name)) | values
    return {key: value for key, value in claim.items() if value is not None}


def with_evidence(**item):
    return changed("A4", evidence=[item])


FAULTS = [
    (entry_problems, changed("A4", right=None), "A4: right is missing"),
    (entry_problems, changed("A4", note="x"), "A4: unknown key note"),
    (entry_problems, changed("A4", verdict="false"), "A4: unknown verdict false"),
    (entry_problems, changed("A4", said={"zh": "说"}), "A4: said needs zh and en"),
    (entry_problems, changed("A4", said={"zh": "$a$ 对", "en": "$b$"}), "A4: said has other formulas"),
    (entry_problems, changed("A4", said={"zh": "用RoPE", "en": "RoPE"}), "A4: said: Chinese spacing"),
    (entry_problems, changed("A4", primary=None), "A4: primary: is missing"),
    (entry_problems, changed("A4", primary=["nobody2020 Table 1"]), "nobody2020 is not in references.bib"),
    (entry_problems, changed("A4", primary=["peng2023yarn page 3"]), "'page 3' is no place"),
    (evidence_problems, changed("A4", evidence=None), "A4: no evidence"),
    (evidence_problems, with_evidence(proof="trust me"), "unknown kind"),
    (evidence_problems, with_evidence(cell="04_ropes#4.7"), "no such lesson"),
    (evidence_problems, with_evidence(cell="04_rope#4"), "a section is a number"),
    (evidence_problems, with_evidence(cell="04_rope#4.99"), "no such section"),
    (evidence_problems, with_evidence(cell="07_alibi#7.11"), "the section has no code"),
    (evidence_problems, with_evidence(exercise="04_rope#4.99"), "no such exercise"),
    (evidence_problems, with_evidence(test="tests/test_none.py::test_x"), "no such file"),
    (evidence_problems, with_evidence(test="tests/test_rope.py::test_x"), "no such test"),
    (evidence_problems, with_evidence(test="tests/test_claims.py::changed"), "pytest does not run it"),
    (evidence_problems, with_evidence(table="press2022alibi"), "says no place"),
    (evidence_problems, with_evidence(table="press2023alibi Table 2"), "press2023alibi is not in"),
    (number_problems, changed("A29", right={"zh": "0.7073", "en": "1"}), "A29 (zh): 0.7073 stands nowhere"),
    (wording_problems, changed("A4", said={"zh": "x", "en": "x, as the source says"}), "A4: the source says"),
    (ledger_problems, CLAIMS[1:], f"{CLAIMS[0]['id']} is missing"),
    (ledger_problems, [*CLAIMS, CLAIMS[0]], f"{CLAIMS[0]['id']} stands twice"),
    (glossary_problems, [TERMS[0] | {"means": {"zh": "词"}}], "a meaning in both languages"),
    (glossary_problems, [TERMS[0] | {"means": {"zh": "$L$", "en": "$d$"}}], "other formulas"),
    (glossary_problems, [TERMS[0] | {"lesson": 99}], "there is no lesson 99"),
    (glossary_problems, [TERMS[0], TERMS[0]], "stands twice"),
]


def test_a_group_that_no_page_prints_is_found():
    page = "```{claims} order\n```\n```{claims} order\n```\n"
    assert list(page_problems(page, [changed("A4")])) == []
    assert list(page_problems(page, [changed("A4", group="new")])) != []


def test_a_banned_word_is_found(tmp_path):
    path = tmp_path / "claims.yml"
    path.write_text("said: 每个令牌", "utf8")
    assert [message for _, message in lint.file_problems(path)] != []


@pytest.mark.parametrize(("check", "faulty", "says"), FAULTS, ids=[says for *_, says in FAULTS])
def test_every_check_can_fail(check, faulty, says):
    assert any(says in problem for problem in check(faulty))
