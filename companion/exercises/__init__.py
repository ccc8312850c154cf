"""Immediate checks for the exercises of the lessons, with messages in the reader's language.

Exercise 4.2 is checked by `exercise_2` in `lesson_04.py`: it takes the reader's answer and returns
None when the answer is right, or a pair (Chinese, English) of sentences that say what is wrong.
"""

import importlib

import numpy as np

_WORDS = {
    "zh": {
        "right": "正确",
        "empty": "还没有作答：把 ... 换成你的答案，再运行这个单元格",
        "raised": "你的代码抛出了 {error}",
        "kind": "lang 只能是 'zh' 或 'en'，收到的是 {value!r}",
    },
    "en": {
        "right": "correct",
        "empty": "not attempted: replace the ... with your answer and run this cell again",
        "raised": "your code raised {error}",
        "kind": "lang must be 'zh' or 'en', got {value!r}",
    },
}


def checker(lang, *, strict=False):
    """Return `check(name, answer)`, which prints in `lang` ("zh" or "en") whether an answer is right.

    `name` is the number of the exercise, such as "4.2"; `answer` is a value or a function.
    An answer that is still `...`, or a function that returns None or `...`, counts as not attempted.
    With `strict=True` everything but a right answer raises ValueError with the same message.

    >>> check = checker("en")
    >>> check("4.1", ...)
    ○ 4.1: not attempted: replace the ... with your answer and run this cell again
    """
    if lang not in _WORDS:
        raise ValueError(_WORDS["en"]["kind"].format(value=lang))
    words = _WORDS[lang]

    def check(name, answer):
        mark, message = _verdict(_exercise(name), answer, lang)
        line = f"{mark} {name}: {message or words['right']}"
        if strict and mark != "✓":
            raise ValueError(line)
        print(line)

    return check


def difference(got, want, *, rtol=1e-9, atol=1e-12):
    """Return None if `got` equals `want` (an array or number) up to rounding, else a pair (zh, en) saying where not."""
    want = np.asarray(want)
    try:
        got = np.asarray(got, dtype=np.result_type(want.dtype, np.float64))
    except (TypeError, ValueError):
        return (
            f"应该得到一个数或数组，得到的却是 {type(got).__name__}",
            f"expected a number or an array, got {type(got).__name__}",
        )
    if got.shape != want.shape:
        return (
            f"形状应该是 {want.shape}，得到的却是 {got.shape}",
            f"the shape should be {want.shape}, got {got.shape}",
        )
    wrong = np.argwhere(~np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True))
    if len(wrong) == 0:
        return None
    where = tuple(int(i) for i in wrong[0])
    at = f"[{', '.join(map(str, where))}]" if where else ""
    return (
        f"结果{at} 应该是 {want[where]:.6g}，得到的却是 {got[where]:.6g}",
        f"the result{at} should be {want[where]:.6g}, got {got[where]:.6g}",
    )


def _exercise(name):
    lesson, _, number = name.partition(".")
    try:
        module = importlib.import_module(f"companion.exercises.lesson_{int(lesson):02d}")
        return getattr(module, f"exercise_{int(number)}")
    except (ValueError, ModuleNotFoundError, AttributeError):
        raise ValueError(
            f"there is no exercise {name!r}; a name is the number printed with the exercise, such as '4.2'"
        ) from None


def _verdict(exercise, answer, lang):
    if answer is ...:
        return "○", _WORDS[lang]["empty"]
    try:
        hint = exercise(_attempted(answer) if callable(answer) else answer)
    except NotImplementedError:
        return "○", _WORDS[lang]["empty"]
    except Exception as error:
        return "✗", _WORDS[lang]["raised"].format(error=f"{type(error).__name__}: {error}")
    return ("✓", None) if hint is None else ("✗", hint[lang == "en"])


def _attempted(function):
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        if result is None or result is ...:
            raise NotImplementedError
        return result

    return call
