"""The project in an empty environment, and on another day."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

from book import LANGS, ROOT
from tests.test_faults import copy_project

pytestmark = pytest.mark.slow


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def new_environment(folder, *arguments):
    """Make an empty environment, install into it from the project, and return its python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", *arguments, cwd=ROOT)
    return python


def test_the_pip_section_of_the_environment_file_is_enough(tmp_path):
    section = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))["dependencies"][-1]["pip"]
    python = new_environment(tmp_path / "conda", *(word for line in section for word in line.split(" ", 1)))
    assert "sympy" in run(
        python, "-c", "import companion.symbolic, sympy; print(sympy.__name__)", cwd=tmp_path
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_project(tmp_path_factory.mktemp("copy"))


def without_learned_outputs(content):
    """Drop the outputs that no two machines give alike to the last digit: what training yields, and its progress."""
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        if "nbval-ignore-output" in cell["metadata"].get("tags", ()):
            cell["outputs"] = []
    return notebook


def comparable(file):
    content = file.read_bytes()
    return without_learned_outputs(content) if b"nbval-ignore-output" in content else content


def test_composing_anew_gives_the_committed_editions_byte_by_byte(project):
    before = {file: comparable(file) for lang in LANGS for file in (project / "chapters" / lang).iterdir()}
    run(sys.executable, "-m", "book.compose", cwd=project, env={**os.environ, "PYTHONPATH": str(project)})
    changed = [file.relative_to(project) for file, content in before.items() if comparable(file) != content]
    assert changed == []


def test_the_plain_jupyter_book_build_is_clean(project, tmp_path):
    command = [Path(sys.executable).with_name("jupyter-book"), "build", ".", "-W", "-n", "--keep-going"]
    output = run(*command, "--path-output", tmp_path, cwd=project)
    assert "build succeeded" in output
    for lang in LANGS:
        assert (tmp_path / "_build" / "html" / "chapters" / lang / "04_rope.html").exists()
