"""`check` tells the reader, in the reader's language, where an answer stands."""

import re
import sys
import types

import numpy as np
import pytest

from companion.exercises import checker, difference

both_languages = pytest.mark.parametrize("lang", ["zh", "en"])
EMPTY = {
    "zh": "还没有作答：把 ... 换成你的答案，再运行这个单元格",
    "en": "not attempted: replace the ... with your answer and run this cell again",
}
NOTHING = {
    "zh": "你的函数返回了 None：是不是忘了 return？",
    "en": "your function returned None: is a return missing?",
}
RIGHT = {"zh": "正确", "en": "correct"}
HINT = {"zh": "符号反了", "en": "the sign is wrong"}


@pytest.fixture(autouse=True)
def lesson_98(monkeypatch):
    """A lesson that exists in these tests only: 98.1 asks for a number, as 98.3, which converts it; 98.2 for a function that doubles."""
    lesson = types.ModuleType("companion.exercises.lesson_98")

    def exercise_1(answer):
        return (HINT["zh"], HINT["en"]) if answer == -42 else difference(answer, 42)

    def exercise_2(function):
        return difference(function(3.0), 6.0)

    def exercise_3(answer):
        return difference(np.asarray(answer, dtype=float), 42)

    lesson.exercise_1, lesson.exercise_2, lesson.exercise_3 = exercise_1, exercise_2, exercise_3
    monkeypatch.setitem(sys.modules, lesson.__name__, lesson)


def undone(x):
    return ...


def undone_with_docstring(x):
    """twice x"""
    ...


def forgot_to_return(x):
    x * 2


def works_in_place(x):
    doubled = [x]
    doubled.append(2 * x)


def raises(x):
    raise ZeroDivisionError("division by zero")


@both_languages
@pytest.mark.parametrize(("name", "answer"), [("98.1", 42), ("98.1", 42.0), ("98.2", lambda x: 2 * x)])
def test_a_right_answer_is_called_right(lang, name, answer, capsys):
    checker(lang)(name, answer)
    assert capsys.readouterr().out == f"✓ {name}: {RIGHT[lang]}\n"


@both_languages
@pytest.mark.parametrize(
    ("name", "answer"), [("98.1", ...), ("98.2", ...), ("98.2", undone), ("98.2", undone_with_docstring)]
)
def test_an_untouched_exercise_is_not_attempted_and_stops_nothing(lang, name, answer, capsys):
    checker(lang)(name, answer)
    assert capsys.readouterr().out == f"○ {name}: {EMPTY[lang]}\n"


@both_languages
@pytest.mark.parametrize("answer", [forgot_to_return, works_in_place, print])
def test_a_function_that_returns_nothing_is_told_so(lang, answer, capsys):
    checker(lang)("98.2", answer)
    assert f"✗ 98.2: {NOTHING[lang]}\n" in capsys.readouterr().out


@both_languages
def test_a_known_mistake_gets_its_own_hint(lang, capsys):
    checker(lang)("98.1", -42)
    assert capsys.readouterr().out == f"✗ 98.1: {HINT[lang]}\n"


@both_languages
def test_another_wrong_answer_says_what_was_expected_and_what_came(lang, capsys):
    checker(lang)("98.2", lambda x: x**2)
    printed = capsys.readouterr().out
    assert printed.startswith("✗ 98.2: ") and "6" in printed and "9" in printed


@both_languages
def test_an_answer_that_raises_is_reported_not_raised(lang, capsys):
    checker(lang)("98.2", raises)
    printed = capsys.readouterr().out
    assert printed.startswith("✗ 98.2: ") and "ZeroDivisionError: division by zero" in printed


@both_languages
@pytest.mark.parametrize(
    ("name", "answer"),
    [("98.1", ...), ("98.1", -42), ("98.2", undone), ("98.2", forgot_to_return), ("98.2", raises)],
)
def test_strict_raises_what_it_would_have_printed(lang, name, answer, capsys):
    checker(lang)(name, answer)
    line = capsys.readouterr().out.rstrip("\n")
    with pytest.raises(ValueError) as caught:
        checker(lang, strict=True)(name, answer)
    assert str(caught.value) == line


@both_languages
def test_strict_lets_a_right_answer_pass(lang, capsys):
    checker(lang, strict=True)("98.1", 42)
    assert capsys.readouterr().out == f"✓ 98.1: {RIGHT[lang]}\n"


@pytest.mark.parametrize("name", ["98.7", "97.1", "98", "", "four.one", "98.1.2"])
def test_an_unknown_exercise_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"there is no exercise '{name}'"):
        checker("en")(name, 42)


@pytest.mark.parametrize("name", [98.1, 98, None, ["98.1"]])
def test_the_name_of_an_exercise_is_a_string(name):
    with pytest.raises(ValueError, match=r'must be a string such as "4\.2", got .*; add the quotes'):
        checker("en")(name, 42)


@pytest.mark.parametrize(
    ("name", "answer", "zh", "en"),
    [
        ("98.2", 5, "这里要的是一个函数，得到的却是 int 5", "a function is expected here, got int 5"),
        (
            "98.1",
            raises,
            "这里要的是一个值，得到的却是函数 raises",
            "a value is expected here, got the function raises",
        ),
        ("98.3", "x", "读不懂这个答案：str 'x'", "this answer cannot be read: str 'x'"),
    ],
)
def test_an_answer_of_the_wrong_kind_is_no_error_of_the_readers_code(name, answer, zh, en, capsys):
    for lang, says in (("zh", zh), ("en", en)):
        checker(lang)(name, answer)
        out = capsys.readouterr().out
        assert out.startswith(f"✗ {name}: {says}") and "raised" not in out and "抛出" not in out


def test_a_tensor_that_requires_grad_is_compared_like_any_other():
    torch = pytest.importorskip("torch", reason="torch is an extra")
    assert difference(torch.tensor([2.0], requires_grad=True), [2.0]) is None
    assert difference(torch.tensor([3.0], requires_grad=True), [2.0]) is not None


@pytest.mark.parametrize("lang", ["fr", "", None, ["en"], {}])
def test_an_unknown_language_is_refused_by_name(lang):
    with pytest.raises(ValueError, match=re.escape(f"lang must be 'zh' or 'en', got {lang!r}; ")):
        checker(lang)


@pytest.mark.parametrize("got", [1.0, np.float32(1), [1.0], 1 + 1e-13])
def test_equal_numbers_show_no_difference(got):
    assert difference(np.ravel(got), [1.0]) is None


@pytest.mark.parametrize(
    "want", [1 / 12, 47117.13, np.cos(np.arange(4) * np.pi / 2), [1e-7, 3e-7], [-np.inf, -1 / 3]]
)
def test_the_right_answer_in_float32_shows_no_difference(want):
    want = np.asarray(want)
    assert difference(want.astype(np.float32), want) is None


@pytest.mark.parametrize(
    ("got", "want"), [(1.1e-7, 1e-7), (1.0001, 1.0), ([1.0, 1e-5], [1.0, 0.0]), (1e-9, 0.0)]
)
def test_an_answer_off_by_more_than_rounding_shows_a_difference(got, want):
    assert difference(got, want) is not None


def test_enough_digits_are_printed_to_see_the_difference():
    assert difference(0.08333334, 0.08333331, rtol=1e-9) == (
        "结果应该是 0.08333331，得到的却是 0.08333334",
        "the result should be 0.08333331, got 0.08333334",
    )


@pytest.mark.parametrize(
    ("got", "want", "zh", "en"),
    [
        ([1.0, 3.0], [1.0, 2.0], "结果[1] 应该是 2，得到的却是 3", "the result[1] should be 2, got 3"),
        (3.0, 2.0, "结果应该是 2，得到的却是 3", "the result should be 2, got 3"),
        ([1.0], [1.0, 2.0], "形状应该是 (2,)，得到的却是 (1,)", "the shape should be (2,), got (1,)"),
        ("2", 2.0, "应该得到一个数或数组，得到的却是 str", "expected a number or an array, got str"),
        (["2"], [2.0], "应该得到一个数或数组，得到的却是 list", "expected a number or an array, got list"),
        (2 + 1j, 2.0, "结果应该是 2，得到的却是 2+1j", "the result should be 2, got 2+1j"),
        ("two", 2.0, "应该得到一个数或数组，得到的却是 str", "expected a number or an array, got str"),
        (np.nan, 2.0, "结果应该是 2，得到的却是 nan", "the result should be 2, got nan"),
    ],
)
def test_a_difference_is_described_in_both_languages(got, want, zh, en):
    assert difference(got, want) == (zh, en)
