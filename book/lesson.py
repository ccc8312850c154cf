"""Read a bilingual lesson, chapters/NAME.md, and say where its two languages do not fit together."""

import ast
import re
from collections import Counter
from typing import NamedTuple

import yaml
from jupytext.myst import myst_to_notebook
from markdown_it import MarkdownIt

from book import CHAPTERS, LANGS, ROOT

HEADING = re.compile(r"^(#+) ", re.M)
WORDS = re.compile(r"«(.*?)\|\|(.*?)»", re.S)
_MATH_BLOCK = re.compile(r"\$\$.+?\$\$", re.S)
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.M | re.S)
_FORMULA = re.compile(r"\$\$.+?\$\$|(?<!\\)\$[^$\n]+?(?<!\\)\$", re.S)
_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"


class Cell(NamedTuple):
    kind: str  # "markdown" or "code"
    lang: str | None  # None for a code cell: both editions share it
    source: str
    line: int  # of the first line of `source` in the file
    metadata: dict


def lesson_paths(names=()):
    """Return the paths of the lessons with these names, or of all lessons."""
    paths = sorted(CHAPTERS.glob("*.md"))
    known = {path.stem: path for path in paths}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no lesson {name!r} in chapters/; there are: {', '.join(known)}")
    return [known[name] for name in names] or paths


def read_lesson(path):
    """Return (front matter, cells) of a lesson, or raise ValueError naming every place that must change."""
    where = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    try:
        text = path.read_text("utf8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}:1: this file is not UTF-8 ({error}); save it as UTF-8") from None
    if not re.match(r"---\n.*?^kernelspec:.*?^---\n", text, re.M | re.S):
        raise ValueError(
            f"{where}:1: the front matter is missing; begin the file with the three lines\n"
            "---\nkernelspec: {name: python3, display_name: Python 3, language: python}\n---"
        )
    try:
        front = yaml.safe_load(text.split("---")[1])
        if not {"name", "display_name"} <= set(front["kernelspec"] or ()):
            raise ValueError("kernelspec needs a name and a display_name; copy the line of another lesson")
        notebook = myst_to_notebook(text, add_source_map=True)
    except Exception as error:  # whatever jupytext and its YAML and JSON readers raise
        raise ValueError(f"{where}:1: this file cannot be read: {str(error).strip()}") from None
    lines = notebook.metadata.pop("source_map")
    cells = [
        Cell(
            c.cell_type, c.metadata.get("lang"), c.source, _first_line(text, line, c.source), dict(c.metadata)
        )
        for c, line in zip(notebook.cells, lines, strict=True)
    ]
    problems = [f"{where}:{line}: {message}" for line, message in _problems(cells)]
    if problems:
        raise ValueError("\n".join(problems))
    return dict(notebook.metadata), cells


def formulas(markdown):
    """Return the formulas of a Markdown text in order, without white space."""
    return [re.sub(r"\s+", "", formula) for formula in _FORMULA.findall(_CODE.sub("", markdown))]


def split_solution(code):
    """Return (lines before, lines of the solution, lines after) of an exercise cell, or None if it has no solution."""
    lines = code.split("\n")
    marks = [i for i, line in enumerate(lines) if line.strip() in (_BEGIN, _END)]
    if not marks:
        return None
    if [lines[i].strip() for i in marks] != [_BEGIN, _END]:
        raise ValueError(f"an exercise cell needs one {_BEGIN!r} followed by one {_END!r}")
    begin, end = marks
    if not any(line.strip() for line in lines[begin + 1 : end]):
        raise ValueError(f"there is no solution between {_BEGIN!r} and {_END!r}; write one")
    return lines[:begin], lines[begin + 1 : end], lines[end + 1 :]


def _first_line(text, line, source):
    """Return the number of the line that opens `source`, found at or below `line` (counted from 0 by jupytext)."""
    first = source.split("\n", 1)[0]
    lines = text.split("\n")
    return next((i + 1 for i in range(max(line - 1, 0), len(lines)) if lines[i] == first), line + 1)


def _problems(cells):
    """Yield (line, message) for every place where the two languages do not fit together."""
    previous = None
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if cell.kind == "markdown":
            if cell.lang not in LANGS:
                yield (
                    cell.line,
                    'text without a language; open it with +++ {"lang": "zh"} or +++ {"lang": "en"}',
                )
            elif cell.lang == "zh" and (following is None or following.lang != "en"):
                yield (
                    cell.line,
                    'this Chinese paragraph has no English partner; add a +++ {"lang": "en"} cell below it',
                )
            elif cell.lang == "en" and (previous is None or previous.lang != "zh"):
                yield (
                    cell.line,
                    'this English paragraph has no Chinese partner; add a +++ {"lang": "zh"} cell above it',
                )
            elif cell.lang == "en":
                yield from _pair_problems(previous, cell)
        else:
            yield from _code_problems(cell)
        previous = cell


def _code_problems(cell):
    try:
        split_solution(cell.source)
    except ValueError as error:
        yield cell.line, str(error)
    try:
        ast.parse(WORDS.sub(r"\2", cell.source))
    except SyntaxError as error:
        hint = "; %magic and !commands are not Python" if (error.text or "").lstrip()[:1] in "%!" else ""
        yield cell.line + (error.lineno or 1) - 1, f"this code does not parse: {error.msg}{hint}"


def _blocks(markdown):
    """Return the kinds of the top-level blocks of a text: heading, paragraph, list, table, …"""
    tokens = MarkdownIt("commonmark").enable("table").parse(_MATH_BLOCK.sub("\n\nformula\n\n", markdown))
    return [token.type.removesuffix("_open") for token in tokens if token.level == 0 and token.nesting >= 0]


def _pair_problems(zh, en):
    if len(ours := _blocks(en.source)) != len(theirs := _blocks(zh.source)):
        counts = f"the English text has {len(ours)} paragraphs, lists and headings, the Chinese {len(theirs)}"
        yield en.line, f"{counts}; a paragraph is missing, or two are one"
    if (levels := HEADING.findall(_CODE.sub("", zh.source))) != HEADING.findall(_CODE.sub("", en.source)):
        yield (
            en.line,
            f"the headings of this pair differ in number or level; the Chinese cell has {levels or 'none'}",
        )
    ours, theirs = Counter(formulas(en.source)), Counter(formulas(zh.source))
    if ours != theirs:
        only_en, only_zh = " ".join((ours - theirs).elements()), " ".join((theirs - ours).elements())
        yield (
            en.line,
            f"the formulas of this pair differ: only in English {only_en or '-'}; only in Chinese {only_zh or '-'}",
        )
