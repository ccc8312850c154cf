"""Each fault, put into a copy of the project, turns its test red with a message that names the place."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from book import ROOT

LINT = "tests/test_lesson_source.py::test_the_committed_lessons_pass_the_lint"
SOLVED = "tests/test_editions.py::test_every_solution_passes_its_check"


def copy_project(folder):
    """Copy the project without what was built, and return the path of the copy."""
    ignore = shutil.ignore_patterns(
        ".git", ".venv", "_build", "__pycache__", "*.egg-info", ".hypothesis", ".ruff_cache", ".pytest_cache"
    )
    return shutil.copytree(ROOT, folder / "project", ignore=ignore)


@pytest.fixture
def project(tmp_path):
    return copy_project(tmp_path)


def run(project, *arguments):
    """Run pytest in the copy, on the copy's package, and return (passed, output)."""
    command = [sys.executable, "-m", "pytest", "--numprocesses", "0", *arguments]
    done = subprocess.run(
        command,
        cwd=project,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(project), "PATH": "/usr/bin:/bin"},
    )
    return done.returncode == 0, done.stdout + done.stderr


def edit(path, old, new):
    """Replace the first `old` in a file and return the number of its line."""
    text = path.read_text("utf8")
    assert old in text, f"{path.name} no longer holds {old!r}: choose another place for this fault"
    path.write_text(text.replace(old, new, 1), "utf8")
    return text[: text.index(old)].count("\n") + 1


def test_the_copy_without_a_fault_passes(project):
    passed, output = run(project, LINT)
    assert passed, output


def test_a_changed_digit_in_a_stored_output(project):
    path = project / "chapters" / "en" / "01_order.ipynb"
    notebook = json.loads(path.read_text("utf8"))
    printed = [
        "".join(line for o in cell.get("outputs", ()) for line in o.get("text", ()))
        for cell in notebook["cells"]
    ]
    position, text = next((i, text) for i, text in enumerate(printed) if re.search(r"\d", text))
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), text, count=1)
    notebook["cells"][position]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": changed}]
    notebook["cells"] = notebook["cells"][: position + 1]
    path.write_text(json.dumps(notebook), "utf8")
    passed, output = run(project, str(path))
    assert not passed
    assert (
        "chapters/en/01_order.ipynb" in output
        and f"Cell {sum(c['cell_type'] == 'code' for c in notebook['cells']) - 1}" in output
    )
    assert "mismatch" in output


def test_a_flipped_sign_in_a_displayed_identity(project):
    line = edit(
        project / "chapters" / "04_rope.md", "re(q) * re(k) + im(q) * im(k)", "re(q) * re(k) - im(q) * im(k)"
    )
    passed, output = run(project, f"{SOLVED}[04_rope]")
    assert not passed
    assert "the two sides are not equal" in output
    found = re.search(r"chapters/04_rope\.md:(\d+): this code cell fails", output)
    assert found and int(found[1]) <= line


def test_a_deleted_english_paragraph(project):
    path = project / "chapters" / "01_order.md"
    text = path.read_text("utf8")
    start = text.index('\n+++ {"lang": "en"}')
    end = re.compile(r"\n\+\+\+|\n```\{code-cell").search(text, start + 5).start()
    path.write_text(text[:start] + text[end:], "utf8")
    passed, output = run(project, LINT)
    assert not passed
    assert re.search(r"chapters/01_order\.md:\d+: this Chinese paragraph has no English partner", output)


FAULTS = [
    (
        "04_rope.md",
        "{cite}`su2021roformer`",
        "{cite}`su2021rofromer`",
        "unknown citation 'su2021rofromer'; did you mean",
    ),
    (
        "04_rope.md",
        "](01_order.ipynb",
        "](01_ordre.ipynb",
        "'01_ordre.ipynb' in 04_rope.md leads nowhere; did you mean",
    ),
    ("01_order.md", "Transformer", "变压器", "'变压器' is the wrong word here; write 'Transformer'"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), FAULTS)
def test_a_fault_in_the_prose(project, name, old, new, message):
    line = edit(project / "chapters" / name, old, new)
    passed, output = run(project, LINT)
    assert not passed
    assert f"chapters/{name}:{line}: " in output and message in output
