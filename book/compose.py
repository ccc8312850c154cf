"""Compose and execute the two editions of each lesson.

chapters/NAME.md -> chapters/{zh,en}/NAME.ipynb (NAME.md where the lesson has no code). The reader variant has
stubs in place of the solutions; the solved variant, in _build/solved/, exists only to be executed.
"""

import argparse
import ast
import difflib
import hashlib
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from pybtex.database import parse_file
from pybtex.exceptions import PybtexError

from book import LANGS, ROOT
from book.in_page.names import PACKAGES, runnable
from book.lesson import WORDS, Cell, lesson_paths, read_lesson, split_solution

VARIANTS = ("reader", "solved")
_CITE = re.compile(r"\{cite\}`([^`]+)`")
_PUNCTUATION = r"[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20“”‘’…]"
_CHINESE = r"[\u3400-\u9fff]"
# A line break of the source becomes a space; between Chinese characters and beside their punctuation none belongs.
_BLOCK = r"\s|[-*+] |\d+\. |[#>|<]|```"
_WRAP = re.compile(
    rf"(?<={_PUNCTUATION})\n(?!{_BLOCK})|(?<=[^\n])\n(?={_PUNCTUATION})|(?<={_CHINESE})\n(?={_CHINESE})"
)
_SOLUTION = "{{solution}}"
_STUB = "...  # «在这里写你的代码||your code here»"
_VOLATILE = re.compile(r"/home/|/root/|/tmp/|site-packages|0x[0-9a-f]{6,}|\b\d{1,2}:\d{2}:\d{2}\b")


def edition_path(path, lang, variant="reader", *, suffix):
    folder = path.parent if variant == "reader" else ROOT / "_build" / "solved"
    return folder / lang / f"{path.stem}{suffix}"


def compose(path, lang, variant="reader"):
    """Return (notebook, lines): one edition of a lesson without outputs, and the source line of each of its cells."""
    front, cells = read_lesson(path)
    composed, lines, solution = [], [], None
    for cell in cells:
        if cell.lang not in (None, lang):
            continue
        if cell.kind == "markdown":
            source = _markdown(cell, lang, path, solution)
        else:
            source, solution = _code(cell, variant)
        composed.append(_notebook_cell(cell, _pick(source, lang), lang, composed))
        lines.append(cell.line)
    _tag_for_the_page(composed)
    if any(cell.kind == "code" for cell in cells):
        # Below the title, where a reader who opens the notebook alone meets it before the first import.
        source = (ROOT / "book" / "first_cell.py").read_text("utf8").rstrip()
        first = Cell("code", None, source, 1, {"tags": ["setup", "remove-cell"]})
        composed.insert(1, _notebook_cell(first, _pick(source, lang), lang, composed))
        lines.insert(1, first.line)
    metadata = {"kernelspec": front["kernelspec"], "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=composed, metadata=metadata), lines


def execute(notebook, lines, path):
    """Run the notebook in an empty folder; ValueError names the source line of a cell that fails or warns."""
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=["--InlineBackend.figure_formats=retina", "--log-level=ERROR"],
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            failed = next(i for i, c in enumerate(notebook.cells) if _is_error(c))
            raise ValueError(f"{_place(path, lines[failed])}: this code cell fails:\n{error}") from None
        if left := sorted(file.name for file in Path(folder).iterdir()):
            raise ValueError(
                f"{_place(path, 1)}: the lesson leaves files in the reader's folder: {', '.join(left)}; "
                "write them into a tempfile.TemporaryDirectory"
            )
    notebook.metadata["language_info"] = {"name": "python"}
    for cell, line in zip(notebook.cells, lines, strict=True):
        for output in cell.get("outputs", ()):
            _refuse_unstable(output, _place(path, line))
    return notebook


def produce(path, variant="reader"):
    """Compose and execute both editions of a lesson, then write them; nothing is written if one of them fails."""

    def one(lang, notebook, lines):
        start = time.monotonic()
        if not any(cell.cell_type == "code" for cell in notebook.cells):
            return "\n\n".join(cell.source for cell in notebook.cells) + "\n", ".md"
        execute(notebook, lines, path)
        print(f"  {path.stem} {lang}: {len(lines)} cells in {time.monotonic() - start:.0f} s", flush=True)
        return nbformat.writes(notebook, indent=1) + "\n", ".ipynb"

    # Composed before the threads start: in CPython 3.11 two threads that parse code at once can break each other.
    composed = [compose(path, lang, variant) for lang in LANGS]
    with ThreadPoolExecutor(len(LANGS)) as pool:
        editions = list(pool.map(one, LANGS, *zip(*composed, strict=True)))
    for lang, (text, suffix) in zip(LANGS, editions, strict=True):
        target = edition_path(path, lang, variant, suffix=suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf8")


def _markdown(cell, lang, path, solution):
    source = _CITE.sub(lambda match: _citation(match, cell, lang, path), cell.source)
    if lang == "zh":
        source = _WRAP.sub("", source)
    if _SOLUTION not in source:
        return source
    if solution is None:
        raise ValueError(f"{_place(path, cell.line)}: {_SOLUTION} follows no exercise cell with a solution")
    return source.replace(_SOLUTION, f"```python\n{solution}\n```")


def _code(cell, variant):
    """Return (source, solution): what the variant shows of a code cell, and its solution or None."""
    parts = split_solution(cell.source)
    if parts is None:
        strict = cell.source.replace('checker("«zh||en»")', 'checker("«zh||en»", strict=True)')
        return (strict if variant == "solved" else cell.source), None
    before, solution, after = parts
    shown = solution if variant == "solved" else _stub(solution)
    indent = min(len(line) - len(line.lstrip()) for line in solution if line.strip())
    return "\n".join([*before, *shown, *after]), "\n".join(line[indent:] for line in solution)


def _stub(solution):
    """Return the lines that stand in for a solution: `name = ...` for each name it assigns, or one line in a function."""
    first = next(line for line in solution if line.strip())
    if indent := len(first) - len(first.lstrip()):
        return [" " * indent + _STUB]
    names = []
    for statement in ast.parse("\n".join(solution)).body:
        for target in getattr(statement, "targets", [statement]):
            name = getattr(target, "id", getattr(target, "name", None))
            if name and name not in names:
                names.append(name)
    return [f"{name} = {_STUB}" for name in names]


def _citation(match, cell, lang, path):
    links = []
    for key in (key.strip() for key in match[1].split(",")):
        entry = _bibliography().get(key)
        if entry is None:
            line = cell.line + cell.source[: match.start()].count("\n")
            near = difflib.get_close_matches(key, _bibliography(), n=1)
            hint = f"did you mean {near[0]!r}?" if near else "add it to book/references.bib"
            raise ValueError(f"{_place(path, line)}: unknown citation {key!r}; {hint}")
        names = [" ".join(person.last_names) for person in entry.persons["author"]]
        others = "" if len(names) == 1 else " 等" if lang == "zh" else " et al."
        links.append(f"[{names[0]}{others}, {entry.fields['year']}]({entry.fields['url']})")
    return "; ".join(links)


@cache
def _bibliography():
    try:
        return dict(parse_file(ROOT / "book" / "references.bib").entries)
    except PybtexError as error:
        raise ValueError(f"book/references.bib: {error}") from None


def _pick(text, lang):
    return WORDS.sub(lambda match: match[1 + LANGS.index(lang)], text)


def _notebook_cell(cell, source, lang, composed):
    """Return the cell with an id made of its content, so that an edit elsewhere does not change it."""
    digest = hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:8]
    repeats = sum(other.id.startswith(f"{digest}-{lang}") for other in composed)
    metadata = {key: cell.metadata[key] for key in ("tags", "mystnb") if key in cell.metadata}
    if alt := metadata.get("mystnb", {}).get("image", {}).get("alt"):
        metadata["mystnb"] = {"image": {**metadata["mystnb"]["image"], "alt": _pick(alt, lang)}}
    new_cell = getattr(nbformat.v4, f"new_{cell.kind}_cell")
    return new_cell(source, id=f"{digest}-{lang}" + (f"-{repeats + 1}" if repeats else ""), metadata=metadata)


def _tag_for_the_page(cells):
    """Tag the cells that a page can run if it ships every package; a figure whose code is folded away needs no button."""
    code = [cell for cell in cells if cell.cell_type == "code"]
    for cell, fits in zip(code, runnable([cell.source for cell in code], PACKAGES), strict=True):
        tags = cell.metadata.get("tags", [])
        if fits and "hide-input" not in tags:
            cell.metadata["tags"] = [*tags, "run-in-page"]


def _is_error(cell):
    return cell.cell_type == "code" and (
        any(output.output_type == "error" for output in cell.outputs) or cell.execution_count is None
    )


def _refuse_unstable(output, place):
    if output.get("name") == "stderr":
        raise ValueError(f"{place}: this cell writes to stderr; a reader would see:\n{output.text}")
    texts = [
        output.get("text", ""),
        *(v for k, v in output.get("data", {}).items() if not k.startswith("image/")),
    ]
    for text in texts:
        if found := _VOLATILE.search(str(text)):
            raise ValueError(
                f"{place}: the output holds a path, a time or an address ({found[0]!r}); do not print it"
            )


def _place(path, line):
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="lessons such as 04_rope; all if none is named"
    )
    parser.add_argument("--variant", choices=VARIANTS, default="reader")
    arguments = parser.parse_args()
    try:
        for path in lesson_paths(arguments.names):
            produce(path, arguments.variant)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
