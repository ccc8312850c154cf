"""Check the lessons without running them: languages, typography, terms, links, imports, exercises.

Every problem is one line: file, line, what is wrong, and the way out.
"""

import argparse
import ast
import difflib
import re
import sys

import autocorrect_py
import yaml
from markdown_it import MarkdownIt

from book import CHAPTERS, LANGS, ROOT
from book.compose import compose
from book.lesson import lesson_paths, read_lesson

ALLOWED_IMPORTS = {
    "numpy",
    "torch",
    "sympy",
    "matplotlib",
    "triton",
    "IPython",
    "companion",
} | sys.stdlib_module_names
LONGEST_CODE_LINE = 72
_CJK = re.compile(r"[\u3400-\u9fff]")
_FORMULA_OR_CODE = re.compile(r"```.*?```|\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]+`", re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d+\.\d+)["']""")
_EXERCISE = {"zh": re.compile(r"\*\*练习 (\d+\.\d+)"), "en": re.compile(r"\*\*Exercise (\d+\.\d+)")}
_WORDS = re.compile(r"«(.*?)\|\|(.*?)»", re.S)


def lesson_problems(path):
    """Yield (line, message) for everything that is wrong in a lesson."""
    _, cells = read_lesson(path)
    glossary = yaml.safe_load((ROOT / "book" / "glossary.yml").read_text("utf8"))
    for cell in cells:
        if cell.kind == "markdown":
            yield from _at(cell, _broken_bold(cell.source))
            yield from _at(cell, _forbidden_tex(cell.source))
            yield from _at(cell, _dead_links(cell.source, path))
            if cell.lang == "zh":
                yield from _at(cell, _chinese_typography(cell.source))
        else:
            yield from _at(cell, _code_problems(cell.source))
        yield from _at(cell, _banned_words(cell.source, glossary))
    yield from _first_uses([cell for cell in cells if cell.lang == "zh"], glossary)
    yield from _exercise_problems(cells)


def file_problems(path):
    """Yield (line, message) for the banned words in a file that is not a lesson."""
    glossary = yaml.safe_load((ROOT / "book" / "glossary.yml").read_text("utf8"))
    yield from ((line + 1, message) for line, message in _banned_words(path.read_text("utf8"), glossary))


def all_problems(names=()):
    """Return the problems of the lessons (all, or those named) and of the other texts as lines of text."""
    found = []
    for path in lesson_paths(names):
        try:
            found += [
                f"{path.relative_to(ROOT)}:{line}: {message}" for line, message in lesson_problems(path)
            ]
            for lang in LANGS:
                compose(path, lang)
        except ValueError as error:
            found.append(str(error))
    texts = [ROOT / "README.zh.md", ROOT / "book" / "claims.yml"]
    others = [] if names else [*texts, *sorted((ROOT / "companion").rglob("*.py"))]
    for path in others:
        found += [f"{path.relative_to(ROOT)}:{line}: {message}" for line, message in file_problems(path)]
    return found


def _at(cell, problems):
    """Turn line offsets within a cell into lines of the file."""
    return ((cell.line + offset, message) for offset, message in problems)


def _broken_bold(source):
    """CommonMark does not close ** after punctuation and before a letter: the asterisks would be printed."""
    plain = _FORMULA_OR_CODE.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), source)
    for token in MarkdownIt("commonmark").enable("table").parse(plain):
        for child in token.children or ():
            if child.type == "text" and "**" in child.content:
                near = child.content[max(child.content.index("**") - 10, 0) :][:30]
                yield (
                    token.map[0],
                    f"** is printed here instead of making bold: {near!r}; move the punctuation outside the bold",
                )


def _forbidden_tex(source):
    for offset, line in enumerate(source.split("\n")):
        if "\\tag" in line:
            yield offset, r"\tag breaks in a displayed formula; write \qquad (1) instead"
        if re.search(r"\\text\{[^}]*[\u3400-\u9fff]", line):
            yield (
                offset,
                "Chinese inside a formula cannot be the same in both languages; put the words outside",
            )


def _dead_links(source, path):
    targets = {p.stem for p in CHAPTERS.glob("*.md")}
    for offset, line in enumerate(source.split("\n")):
        for link in _LINK.findall(line):
            if re.match(r"https?://|#", link):
                continue
            name, _, suffix = link.partition("#")[0].rpartition(".")
            if suffix not in ("ipynb", "md") or name not in targets:
                near = difflib.get_close_matches(name, targets, n=1, cutoff=0.4)
                hint = f"; did you mean {near[0]}.ipynb?" if near else ""
                yield offset, f"the link {link!r} in {path.name} leads nowhere{hint}"


def _chinese_typography(source):
    fixed = autocorrect_py.format_for(source, "markdown")
    for offset, (ours, theirs) in enumerate(zip(source.split("\n"), fixed.split("\n"), strict=True)):
        if ours != theirs:
            yield offset, f"Chinese spacing or punctuation: {ours.strip()!r} should be {theirs.strip()!r}"
    without_fences = re.sub(r"```.*?```", lambda match: "\n" * match[0].count("\n"), source, flags=re.S)
    for offset, line in enumerate(without_fences.split("\n")):
        for span in _FORMULA_OR_CODE.finditer(line):
            if _CJK.match(line[: span.start()][-1:]) or _CJK.match(line, span.end()):
                near = line[max(span.start() - 6, 0) : span.end() + 6]
                yield (
                    offset,
                    f"a space is missing between a Chinese character and a formula or code: {near!r}",
                )


def _code_problems(source):
    for offset, line in enumerate(source.split("\n")):
        longest = max((_WORDS.sub(lambda m, i=i: m[i], line) for i in (1, 2)), key=len)
        if len(longest) > LONGEST_CODE_LINE:
            yield (
                offset,
                f"this line of code has {len(longest)} characters, at most {LONGEST_CODE_LINE} fit a phone; break it",
            )
        if ("«" in line or "»" in line) and not _WORDS.search(line):
            yield offset, "«中文||English» must open and close on one line of code"
    for node in ast.walk(ast.parse(_WORDS.sub(r"\2", source))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            if module.split(".")[0] not in ALLOWED_IMPORTS:
                yield (
                    node.lineno - 1,
                    f"lessons may not import {module!r}: Colab may lack it; use NumPy, torch or companion",
                )


def _banned_words(source, glossary):
    banned = dict(glossary["banned"])
    for term in glossary["terms"]:
        banned |= {word: term["zh"] for word in term.get("banned", ())}
    for offset, line in enumerate(source.split("\n")):
        for word, right in banned.items():
            if word in line:
                yield offset, f"{word!r} is the wrong word here; write {right!r}"


def _first_uses(cells, glossary):
    """The English term stands in brackets at the first use of a Chinese term outside headings, formulas and code."""
    for term in glossary["terms"]:
        for cell in cells if term.get("bracket", True) else ():
            text = re.sub(
                r"^#.*$",
                "",
                _FORMULA_OR_CODE.sub(lambda m: re.sub(r"[^\n]", "x", m[0]), cell.source),
                flags=re.M,
            )
            if (start := text.find(term["zh"])) < 0:
                continue
            rest = text[start + len(term["zh"]) :]
            if not re.match(rf"\S{{0,4}}?[*_]{{0,2}}（[^）]*{re.escape(term['en'])}", rest, re.I):
                line = cell.line + text[:start].count("\n")
                yield line, f"first use of {term['zh']!r} in this lesson: write {term['zh']}（{term['en']}）"
            break


def _exercise_problems(cells):
    checked = {number for cell in cells if cell.kind == "code" for number in _CHECK.findall(cell.source)}
    for lang in LANGS:
        asked = [
            (n, cell.line)
            for cell in cells
            if cell.lang == lang
            for n in _EXERCISE[lang].findall(cell.source)
        ]
        numbers = [number for number, _ in asked]
        for number, line in asked:
            if numbers.count(number) > 1:
                yield line, f"exercise {number} is asked twice"
        for number in sorted(checked - set(numbers)):
            yield (
                cells[0].line,
                f"check({number!r}, …) has no question **{'练习' if lang == 'zh' else 'Exercise'} {number}**",
            )
    for previous, cell, following in zip([None, *cells], cells, [*cells[1:], None], strict=False):
        if cell.kind == "code" and "### BEGIN SOLUTION" in cell.source:
            if following is None or "{{solution}}" not in following.source:
                yield (
                    cell.line,
                    "this exercise has no folded answer: put {{solution}} inside <details> in the pair below it",
                )
            if previous is None or previous.kind != "markdown":
                yield cell.line, "this exercise has no question above it"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="lessons such as 04_rope; everything if none is named"
    )
    try:
        problems = all_problems(parser.parse_args().names)
    except ValueError as error:
        sys.exit(str(error))
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
