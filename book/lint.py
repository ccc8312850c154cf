"""Check the lessons without running them: languages, typography, terms, links, imports, exercises.

Every problem is one line: file, line, what is wrong, and the way out.
"""

import argparse
import ast
import difflib
import itertools
import re
import sys
from collections import Counter

import autocorrect_py
import yaml
from markdown_it import MarkdownIt

from book import CHAPTERS, LANGS, ROOT
from book.compose import compose
from book.lesson import WORDS, lesson_paths, read_lesson

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
_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?!\d|\.\d| billion)")
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d+\.\d+)["']""")
_EXERCISE = {"zh": re.compile(r"\*\*练习 (\d+\.\d+)"), "en": re.compile(r"\*\*Exercise (\d+\.\d+)")}


def lesson_problems(path):
    """Yield (line, message) for everything that is wrong in a lesson."""
    front, cells = read_lesson(path)
    glossary = yaml.safe_load((ROOT / "book" / "glossary.yml").read_text("utf8"))
    for cell in cells:
        if cell.kind == "markdown":
            yield from _at(cell, _broken_bold(cell.source))
            yield from _at(cell, _forbidden_tex(cell.source))
            yield from _at(cell, _dead_links(cell.source, path))
            yield from _at(cell, _open_details(cell.source))
            yield from _at(cell, _other_language(cell.source, cell.lang))
            if cell.lang == "zh":
                yield from _at(cell, _chinese_typography(cell.source))
        else:
            yield from _at(cell, _code_problems(cell.source))
            yield from _at(cell, _missing_alt(cell))
        yield from _at(cell, _banned_words(cell.source, glossary))
    yield from _first_uses([cell for cell in cells if cell.lang == "zh"], glossary)
    yield from _exercise_problems(cells)
    yield from _unequal_numbers(cells)
    if not isinstance(front.get("minutes", 1), int):
        yield 2, f"minutes must be a whole number, got {front['minutes']!r}"


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


def _open_details(source):
    """An unclosed <details> swallows the rest of the page; one without <summary> has no words to click on."""
    opened, closed = source.count("<details>"), source.count("</details>")
    if not opened == closed == source.count("<summary>") == source.count("</summary>"):
        yield 0, "each <details> needs one <summary>…</summary> and one </details> in the same cell"
    for offset, line in enumerate(source.split("\n")):
        if re.search(r"\]\[[^\]]+\]", _FORMULA_OR_CODE.sub("", line)):
            yield offset, "[text][reference] is printed as it stands; write [text](address)"


def _other_language(source, lang):
    plain = _LINK.sub("]", _FORMULA_OR_CODE.sub("x", source))
    for offset, line in enumerate(plain.split("\n")):
        if lang == "zh" and re.search(r"(?:\b[a-z]+[ ,]+){7}[a-z]+\b", line):
            yield offset, "an English sentence in the Chinese cell; translate it"
        if lang == "en" and (found := re.search(rf"{_CJK.pattern}{{5,}}", line)):
            yield offset, f"Chinese text in the English cell ({found[0][:12]}); translate it"


def _missing_alt(cell):
    """A figure has a text for those who do not see it, in both languages."""
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    if "plt.show()" in cell.source and not WORDS.fullmatch(alt):
        yield 0, 'this figure needs :mystnb: {image: {alt: "«中文||English»"}}'


def _unequal_numbers(cells):
    """The decimals of a pair are the same in both languages."""
    for zh, en in itertools.pairwise(cells):
        if (zh.lang, en.lang) == ("zh", "en"):
            ours, theirs = (Counter(_DECIMAL.findall(_LINK.sub("]", cell.source))) for cell in (zh, en))
            if ours != theirs:
                only = " ".join(((ours - theirs) + (theirs - ours)).elements())
                yield en.line, f"these numbers stand in one language only: {only}"


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
        if re.search(r"default_rng\(\)|np\.random\.(?!default_rng|Generator)", line):
            yield (
                offset,
                "random numbers need a seed, np.random.default_rng(0), or the outputs differ from run to run",
            )
        longest = max((WORDS.sub(lambda m, i=i: m[i], line) for i in (1, 2)), key=len)
        if len(longest) > LONGEST_CODE_LINE:
            yield (
                offset,
                f"this line of code has {len(longest)} characters, at most {LONGEST_CODE_LINE} fit a phone; break it",
            )
        if ("«" in line or "»" in line) and not WORDS.search(line):
            yield offset, "«中文||English» must open and close on one line of code"
    for node in ast.walk(ast.parse(WORDS.sub(r"\2", source))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            if module.split(".")[0] in ("datetime", "random", "time"):
                yield (
                    node.lineno - 1,
                    f"{module!r} would make the outputs differ from run to run; do without it",
                )
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
    checked = {
        number: cell.line for cell in cells if cell.kind == "code" for number in _CHECK.findall(cell.source)
    }
    both = [
        set(_EXERCISE[lang].findall("\n".join(c.source for c in cells if c.lang == lang))) for lang in LANGS
    ]
    for number in sorted(both[0] ^ both[1]):
        yield cells[0].line, f"exercise {number} is asked in one language only"
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
        for number in sorted(checked.keys() - set(numbers)):
            yield (
                checked[number],
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
    arguments = parser.parse_args()
    try:
        problems = all_problems(arguments.names)
    except (ValueError, yaml.YAMLError) as error:
        sys.exit(str(error))
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
