"""The teacher's guide: its example is an assignment, its commands are commands, what it quotes the program says."""

import re
import shlex

import pytest
from markdown_it import MarkdownIt

from book import CHAPTERS, LANGS, ROOT
from book.compose import compose
from classroom import __main__ as command_line
from classroom import grading, sandbox
from classroom.assignment import read_assignment
from classroom.check import problems
from tests import classroom_cases as cases


def page(lang):
    """Return the guide as readers see it."""
    notebook, _ = compose(CHAPTERS / "a_teaching.md", lang)
    return "\n\n".join(cell.source for cell in notebook.cells)


def fences(lang):
    tokens = MarkdownIt().parse(page(lang))
    return [token.content.replace("\\\n", " ") for token in tokens if token.type == "fence"]


def example(lang):
    """Return the assignment that the guide builds up block by block."""
    return "\n".join(text for text in fences(lang) if "kernelspec:" in text or "{code-cell}" in text)


def commands(lang):
    lines = [line for text in fences(lang) for line in text.split("\n")]
    return [line.split(" -m classroom ")[1] for line in lines if " -m classroom " in line]


@cases.NEEDS_SANDBOX
def test_the_example_of_the_guide_passes_check(tmp_path):
    (tmp_path / "quiz.md").write_text(example("zh"), "utf8")
    quiz = read_assignment("quiz", tmp_path)
    assert [question.points for question in quiz.questions] == [2]
    assert list(problems(quiz)) == []


def test_both_editions_build_the_same_assignment():
    assert example("zh") == example("en")


@pytest.mark.parametrize("lang", LANGS)
def test_the_program_understands_every_command_of_the_guide(lang):
    assert {line.split()[0] for line in commands(lang)} == {"release", "check", "grade"}
    for line in commands(lang):
        command_line._parser().parse_args(shlex.split(line))


@pytest.mark.parametrize("lang", LANGS)
def test_every_target_and_extra_package_of_the_guide_exists(lang):
    shell = [line for text in fences(lang) for line in text.split("\n")]
    makefile, pins = (ROOT / "Makefile").read_text("utf8"), (ROOT / "constraints.txt").read_text("utf8")
    targets = [line.split()[1] for line in shell if line.startswith("make ")]
    assert targets == [".venv/classroom"] and "$(VENV)/classroom" in makefile
    packages = [
        word for line in shell if "--constraint" in line for word in line.split("constraints.txt")[1].split()
    ]
    assert packages and all(f"\n{package}==" in pins for package in packages)


@pytest.mark.parametrize("lang", LANGS)
def test_the_guide_quotes_the_refusal_of_the_sandbox(lang):
    quoted = re.search(r"^> (.+?)[：:]", page(lang), re.M)[1]
    assert quoted in str(sandbox._REFUSED)


@pytest.mark.parametrize("lang", LANGS)
def test_the_limits_in_the_guide_are_those_of_the_program(lang):
    times = re.findall(r"用掉(?:它的)? (\d+) 倍|after (\d+) times", page(lang))
    found = [int(first or second) for first, second in times]
    assert found == [grading.QUESTION_CALLS, grading.SUBMISSION_CALLS]
