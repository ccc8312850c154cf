"""Make what students and teachers get from the source of an assignment, and look for solutions where none belong."""

import html
import json
import re
from pathlib import Path

import nbformat

from book import LANGS, ROOT
from book.compose import compose, execute
from book.lesson import read_lesson, split_solution
from classroom.assignment import HIDDEN, SETUP, kind_of, pick

EXPECTED = "**«期望的图||The expected picture»**"
_SHORTEST_LINE, _SHORTEST_SOLUTION = 16, 40


def release(assignment, folder):
    """Write the student notebooks of both languages, and the instructor pack, into `folder`."""
    for lang in LANGS:
        solved = _solved(assignment, lang)
        student = student_notebook(assignment, lang, _pictures(assignment, solved))
        for part, notebook in (("student", student), ("instructor", solved)):
            path = Path(folder) / part / lang / f"{assignment.name}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(nbformat.writes(notebook, indent=1) + "\n", "utf8")
        path = Path(folder) / "instructor" / lang / f"{assignment.name}_rubric.md"
        path.write_text(rubric(assignment, lang), "utf8")


def student_notebook(assignment, lang, pictures=()):
    """Return the notebook for students: stubs, public checks, and metadata that nbgrader understands."""
    cells = _cells(assignment, lang, "reader")
    pictures = dict(pictures)
    notebook, made = nbformat.v4.new_notebook(), []
    place = next(i for i, (source, _) in enumerate(cells) if source.kind == "code")
    setup = nbformat.v4.new_code_cell(
        pick(SETUP, lang), id=f"setup-{lang}", metadata=_locked(f"{assignment.name}-setup")
    )
    points = {question.id: question.points for question in assignment.questions}
    current = None
    for i, (source, cell) in enumerate(cells):
        kind = kind_of(source)
        if i == place:
            made.append(setup)
        if kind in HIDDEN:
            continue
        grade_id = f"{assignment.name}-{kind}-{i}"
        if kind == "answer":
            current = str(source.metadata["question"]["id"])
            cell.metadata.update(_nbgrader(f"{assignment.name}-{current}", locked=False, solution=True))
        elif kind == "public":
            if source.line in pictures:
                made.append(_picture(cell, pictures[source.line], lang))
            cell.metadata.update(
                _locked(f"{assignment.name}-{current}-public", points=points[current], grade=True)
            )
        else:
            cell.metadata.update(_locked(grade_id))
        made.append(cell)
    notebook.cells = made
    notebook.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return notebook


def rubric(assignment, lang):
    """Return the rubric in Markdown: what each hidden test is worth and what a student reads when it is wrong."""
    from classroom.checks import load_tests

    lines = [f"# {assignment.title[lang]}", ""]
    lines += [pick(f"{assignment.points} «分||points», {assignment.minutes} «分钟||minutes»", lang), ""]
    for question in assignment.questions:
        stars = "★" * question.difficulty + "☆" * (3 - question.difficulty)
        about = f"{question.points} «分||points», {stars}, {question.minutes} «分钟||minutes»"
        lines += [pick(f"## «第 {question.id} 题||Question {question.id}» ({about})", lang), ""]
        lines += [pick("| «检查||test» | «分||points» | «提示||hint» |", lang), "|---|---|---|"]
        for test in load_tests(question.tests, question.id):
            lines.append(f"| {test.name} | {test.points} | {pick(test.hint, lang)} |")
        lines.append("")
    return "\n".join(lines)


def leaks(assignments, folder, site=None):
    """Return one line for each piece of a solution or hidden test in the student notebooks, or of a solution on the site."""
    found = []
    for assignment in assignments:
        lines, solutions = _secrets(assignment)
        for path in sorted(Path(folder).rglob("*.ipynb")):
            text = _plain("\n".join(cell["source"] for cell in nbformat.read(path, 4).cells))
            found += [f"{path}: {line}" for line in sorted(lines) if _plain(line) in text]
        for path in sorted(Path(site).rglob("*")) if site else ():
            if path.suffix in (".html", ".ipynb", ".md", ".txt"):
                text = _plain(_text(path))
                found += [f"{path}: {solution.strip()}" for solution in solutions if _plain(solution) in text]
    return found


def _cells(assignment, lang, variant):
    """Return the source and the composed cell of everything that stands in the edition."""
    _, sources = read_lesson(assignment.path)
    notebook, lines = compose(assignment.path, lang, variant)
    by_line = {source.line: source for source in sources}
    # What the composer adds to a lesson of its own, an assignment does without.
    return [
        (by_line[line], cell) for line, cell in zip(lines, notebook.cells, strict=True) if line in by_line
    ]


def _solved(assignment, lang):
    """Return the executed instructor notebook; a public check that the solution does not pass raises ValueError."""
    cells = _cells(assignment, lang, "solved")
    runnable, lines = [nbformat.v4.new_code_cell(pick(SETUP, lang), id="setup")], [1]
    for source, cell in cells:
        if kind_of(source) in HIDDEN:
            fence = f"```python\n{pick(cell.source, lang)}\n```"
            cell = nbformat.v4.new_markdown_cell(fence, id=cell.id)
        cell.metadata["line"] = source.line
        runnable.append(cell)
        lines.append(source.line)
    notebook = nbformat.v4.new_notebook(cells=runnable)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    execute(notebook, lines, assignment.path)
    for (source, _), cell in zip(cells, runnable[1:], strict=True):
        if kind_of(source) == "public":
            said = "".join(output.get("text", "") for output in cell.outputs)
            if not said.startswith("✓"):
                raise ValueError(
                    f"{assignment.path.name}:{source.line}: the solution does not pass the public check: {said}"
                )
    return notebook


def _pictures(assignment, solved):
    for cell in solved.cells:
        for output in cell.get("outputs", ()):
            if image := output.get("data", {}).get("image/png"):
                yield cell.metadata["line"], image.replace("\n", "")


def _picture(cell, image, lang):
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    text = f"{pick(EXPECTED, lang)}\n\n![{alt}](data:image/png;base64,{image})"
    return nbformat.v4.new_markdown_cell(
        text, id=f"{cell.id}-picture", metadata=_locked(f"{cell.id}-picture")
    )


def _locked(grade_id, **more):
    return {"deletable": False, "editable": False, **_nbgrader(grade_id, locked=True, solution=False, **more)}


def _nbgrader(grade_id, *, grade=False, **more):
    return {"nbgrader": {"grade_id": grade_id, "grade": grade, "schema_version": 3, "task": False, **more}}


def _secrets(assignment):
    """Return (lines that no student notebook may hold, whole solutions that no page may hold)."""
    _, sources = read_lesson(assignment.path)
    shown, secret, solutions = set(), set(), []
    for source in sources:
        kind, lines = kind_of(source), source.source.split("\n")
        if kind == "answer":
            before, solution, after = split_solution(source.source)
            solutions.append("\n".join(solution))
            secret.update(solution)
            shown.update(before + after)
        elif kind in HIDDEN:
            secret.update(lines)
        else:
            shown.update(lines)
    shown = {_plain(pick(line, lang)) for line in shown for lang in LANGS}
    both = {pick(line, lang).strip() for line in secret for lang in LANGS}
    long = {
        line
        for line in both
        if len(_plain(line)) >= _SHORTEST_LINE and not any(_plain(line) in s for s in shown)
    }
    return long, [solution for solution in solutions if len(_plain(solution)) >= _SHORTEST_SOLUTION]


def _text(path):
    text = path.read_text("utf8", "replace")
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return html.unescape(re.sub(r"<[^>]*>", "", text)) if path.suffix == ".html" else text


def _plain(text):
    return re.sub(r"\s+", "", text)


SITE = ROOT / "_build" / "site"
