"""Immediate checks for the exercises of the lessons, with messages in the reader's language.

Exercise 4.2 is checked by `exercise_2` in `lesson_04.py`: it takes the reader's answer and returns
None when the answer is right, or a pair (Chinese, English) of sentences that say what is wrong.
"""

import dis
import importlib
import inspect

import numpy as np

_WORDS = {
    "zh": {
        "right": "正确",
        "empty": "还没有作答：把 ... 换成你的答案，再运行这个单元格",
        "nothing": "你的函数返回了 None：是不是忘了 return？",
        "raised": "你的代码抛出了 {error}",
        "value": "读不懂这个答案：{got} 不是题目要的那种值（{error}）",
        "no_function": "这里要的是一个函数，得到的却是 {got}",
        "no_value": "这里要的是一个值，得到的却是函数 {got}：是不是忘了调用它？",
        "kind": "lang 只能是 'zh' 或 'en'，收到的是 {value!r}",
    },
    "en": {
        "right": "correct",
        "empty": "not attempted: replace the ... with your answer and run this cell again",
        "nothing": "your function returned None: is a return missing?",
        "raised": "your code raised {error}",
        "value": "this answer cannot be read: {got} is not the kind of value the exercise asks for ({error})",
        "no_function": "a function is expected here, got {got}",
        "no_value": "a value is expected here, got the function {got}: was it never called?",
        "kind": "lang must be 'zh' or 'en', got {value!r}; write one of the two",
    },
}


def checker(lang, *, strict=False):
    """Return `check(name, answer)`, which prints in `lang` ("zh" or "en") whether an answer is right.

    `name` is the number of the exercise, such as "4.2"; `answer` is a value or a function.
    An answer that is still `...`, or a function with nothing but `...` in it, counts as not attempted.
    With `strict=True` everything but a right answer raises ValueError with the same message.

    >>> check = checker("en")
    >>> check("4.1", ...)
    ○ 4.1: not attempted: replace the ... with your answer and run this cell again
    """
    if not isinstance(lang, str) or lang not in _WORDS:
        raise ValueError(_WORDS["en"]["kind"].format(value=lang))
    words = _WORDS[lang]

    def check(name, answer):
        mark, message = _verdict(_exercise(name), answer, lang)
        line = f"{mark} {name}: {message or words['right']}"
        if strict and mark != "✓":
            raise ValueError(line)
        print(line)

    return check


def difference(got, want, *, rtol=1e-5, atol=None):
    """Return None if `got` equals `want` (an array or number) up to rounding, else a pair (zh, en) saying where not.

    A string counts for no number. The tolerances let answers in float32 pass; `atol` is by default 1e-7 of the largest finite number of `want`.
    """
    want = np.asarray(want)
    try:
        got = _numbers(got, np.result_type(want.dtype, np.float64))
    except (TypeError, ValueError, RuntimeError):
        return (
            f"应该得到一个数或数组，得到的却是 {type(got).__name__}",
            f"expected a number or an array, got {type(got).__name__}",
        )
    if got.shape != want.shape:
        return (
            f"形状应该是 {want.shape}，得到的却是 {got.shape}",
            f"the shape should be {want.shape}, got {got.shape}",
        )
    if atol is None:
        atol = 1e-12 + 1e-7 * np.abs(want[np.isfinite(want)]).max(initial=0)
    wrong = np.argwhere(~np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True))
    if len(wrong) == 0:
        return None
    where = tuple(int(i) for i in wrong[0])
    at = f"[{', '.join(map(str, where))}]" if where else ""
    right, wrong = _told_apart(want[where], got[where])
    return (
        f"结果{at + ' ' if at else ''}应该是 {right}，得到的却是 {wrong}",
        f"the result{at} should be {right}, got {wrong}",
    )


def _numbers(got, dtype):
    """The answer as an array: from torch without its gradient, complex if it is, and never read from a string."""
    if type(got).__module__.partition(".")[0] == "torch" and hasattr(got, "detach"):
        got = got.detach().cpu()
    array = np.asarray(got)
    if array.dtype.kind in "USmM" or (array.dtype == object and any(isinstance(x, str) for x in array.flat)):
        raise TypeError("a string is no number")
    return array.astype(np.result_type(dtype, array.dtype) if array.dtype.kind == "c" else dtype)


def _told_apart(right, wrong):
    """Print two different numbers with as many digits as show the difference."""
    for digits in (6, 9, 12, 17):
        texts = f"{right:.{digits}g}", f"{wrong:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def not_yet(got, want):
    """Say what is wrong with a value, but not what is right: a number in the message would be the answer."""
    problem = difference(got, want)
    try:
        comparable = np.asarray(got, dtype=np.float64).shape == np.shape(want)
    except (TypeError, ValueError):
        comparable = False
    return problem and (("还不对，再看看提示", "not yet; have a look at the hint") if comparable else problem)


def _exercise(name):
    if not isinstance(name, str):
        raise ValueError(
            f'the name of an exercise must be a string such as "4.2", got {name!r}; add the quotes'
        )
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
    words, wants_function = _WORDS[lang], _wants_function(exercise)
    got = f"{type(answer).__name__} {answer!r:.40}"
    if wants_function and not callable(answer):
        return "✗", words["no_function"].format(got=got)
    if not wants_function and inspect.isroutine(answer):
        return "✗", words["no_value"].format(got=getattr(answer, "__name__", got))
    try:
        hint = exercise(_attempted(answer) if inspect.isroutine(answer) else answer)
    except NotImplementedError as reason:
        forgotten = reason.args == ("nothing",)
        return ("✗", _WORDS[lang]["nothing"]) if forgotten else ("○", _WORDS[lang]["empty"])
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return "✗", words["raised" if wants_function else "value"].format(error=said, got=got)
    return ("✓", None) if hint is None else ("✗", hint[lang == "en"])


def _wants_function(exercise):
    """The checks call a value `answer`, and a function by another name."""
    return "answer" not in inspect.signature(exercise).parameters


def _attempted(function):
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        if result is None or result is ...:
            raise NotImplementedError("empty" if result is ... or _is_stub(function) else "nothing")
        return result

    return call


def _is_stub(function):
    """Say whether a function does nothing: what `...` and a docstring compile to returns None at once."""
    idle = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}
    code = getattr(function, "__code__", None)
    return code is not None and {step.opname for step in dis.get_instructions(code)} <= idle
