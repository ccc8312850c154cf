"""What holds for the exercises of every lesson; right answers and typical mistakes stand in test_lesson_NN_exercises.py."""

import importlib
import re

import pytest

from book import LANGS, ROOT
from companion.exercises import checker

FILES = sorted((ROOT / "tests").glob("test_lesson_*_exercises.py"))


def answers(path):
    """The examples of one lesson; of none, without the libraries that it needs."""
    try:
        return [importlib.import_module(f"tests.{path.stem}")]
    except pytest.skip.Exception:
        return []


ANSWERS = [module for path in FILES for module in answers(path)]
RIGHT = [example for answers in ANSWERS for example in answers.RIGHT]
WRONG = [example for answers in ANSWERS for example in answers.WRONG]
LESSONS = "\n".join(path.read_text("utf8") for path in (ROOT / "chapters").glob("[0-9]*.md"))
TESTED = {int(module.__name__.split("_")[2]) for module in ANSWERS}
CHECKED = sorted(
    number for number in set(re.findall(r'^check\("([\d.]+)"', LESSONS, re.M)) if int(float(number)) in TESTED
)
FUNCTIONS = {name for name, answer in RIGHT if callable(answer)}


def printed(capsys, lang, name, answer):
    checker(lang)(name, answer)
    return capsys.readouterr().out


def test_every_checked_exercise_has_examples_of_both_kinds():
    assert {name for name, _ in RIGHT} == {name for name, *_ in WRONG} == set(CHECKED)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_a_right_answer_is_accepted(lang, name, answer, capsys):
    assert printed(capsys, lang, name, answer).startswith(f"✓ {name}: ")


@pytest.mark.parametrize(("name", "answer", "zh", "en"), WRONG)
def test_a_typical_mistake_is_named_in_both_languages(name, answer, zh, en, capsys):
    for lang, words in (("zh", zh), ("en", en)):
        out = printed(capsys, lang, name, answer)
        assert out.startswith(f"✗ {name}: ") and words in out


@pytest.mark.parametrize("name", CHECKED)
def test_an_open_stub_is_not_attempted(name, capsys):
    for stub in [..., lambda *arguments: ...] if name in FUNCTIONS else [...]:
        assert "还没有作答" in printed(capsys, "zh", name, stub)
        assert "not attempted" in printed(capsys, "en", name, stub)


@pytest.mark.parametrize("name", CHECKED)
def test_nonsense_is_refused(name, capsys):
    nonsense = (lambda *arguments: "nonsense") if name in FUNCTIONS else object()
    assert printed(capsys, "en", name, nonsense).startswith(f"✗ {name}: ")
