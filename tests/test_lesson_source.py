"""The composer and the lint: what they make of a lesson, and how they name what is wrong with it."""

import subprocess
import sys

import nbformat
import pytest

from book import ROOT, lint
from book import compose as press
from book.lesson import formulas, read_lesson

LESSON = """\
---
kernelspec: {name: python3, display_name: Python 3, language: python}
---

+++ {"lang": "zh"}

# 旋转

位置编码（positional encoding）见 {cite}`su2021roformer`，
角是 $m\\theta$。

+++ {"lang": "en"}

# Turning

See {cite}`su2021roformer`; the angle is $m\\theta$.

```{code-cell} python
from companion.exercises import checker

check = checker("«zh||en»")
print("«转||turn»")
```

+++ {"lang": "zh"}

**练习 4.1** 转多少？

+++ {"lang": "en"}

**Exercise 4.1** How far?

```{code-cell} python
:tags: [exercise]
### BEGIN SOLUTION
answer = 1 + 1
### END SOLUTION
print(answer)
```

+++ {"lang": "zh"}

<details><summary>答案</summary>

{{solution}}

</details>

+++ {"lang": "en"}

<details><summary>Answer</summary>

{{solution}}

</details>
"""


@pytest.fixture
def lesson(tmp_path):
    """Return a function that writes a lesson (with replacements) and returns its path."""

    def write(*replacements):
        text = LESSON
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "04_small.md"
        path.write_text(text, "utf8")
        return path

    return write


def sources(path, lang, variant="reader"):
    """The sources of the lesson's own cells, without the one that every notebook opens with."""
    cells = press.compose(path, lang, variant)[0].cells
    return [cell.source for cell in cells if "setup" not in cell.metadata.get("tags", ())]


def line_of(path, text):
    return path.read_text("utf8").split("\n").index(text) + 1


def problems(path):
    return [f"{path.name}:{line}: {message}" for line, message in lint.lesson_problems(path)]


def test_an_edition_holds_one_language_and_all_code(lesson):
    zh, en = sources(lesson(), "zh"), sources(lesson(), "en")
    assert zh[0].startswith("# 旋转") and en[0].startswith("# Turning")
    assert 'print("转")' in zh[1] and 'print("turn")' in en[1]
    assert len(zh) == len(en) == 5


def test_below_the_title_stands_the_cell_that_installs_companion(lesson):
    notebook, lines = press.compose(lesson(), "en")
    assert notebook.cells[1].metadata["tags"] == ["setup", "remove-cell"]
    assert 'WHEEL = ""' in notebook.cells[1].source and "«" not in notebook.cells[1].source
    assert len(lines) == len(notebook.cells)


def test_citations_become_links_and_chinese_lines_are_joined(lesson):
    assert "见 [Su 等, 2021](https://arxiv.org/abs/2104.09864)，角是" in sources(lesson(), "zh")[0]
    assert "[Su et al., 2021](https://arxiv.org/abs/2104.09864)" in sources(lesson(), "en")[0]


def test_the_reader_sees_a_stub_and_the_answer_folded_away(lesson):
    stub, answer = sources(lesson(), "en")[3:]
    assert stub == "answer = ...  # your code here\nprint(answer)"
    assert "```python\nanswer = 1 + 1\n```" in answer


def test_the_solved_variant_holds_the_solution_and_a_strict_check(lesson):
    cells = sources(lesson(), "zh", "solved")
    assert 'checker("zh", strict=True)' in cells[1]
    assert cells[3] == "answer = 1 + 1\nprint(answer)"


def test_a_solution_inside_a_function_leaves_its_head(lesson):
    body = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n"
    path = lesson(("### BEGIN SOLUTION\nanswer = 1 + 1\n### END SOLUTION\nprint(answer)", body))
    assert sources(path, "en")[3].rstrip() == "def f(x):\n    ...  # your code here"
    assert "```python\nreturn x\n```" in sources(path, "en")[4]


def test_composing_twice_gives_the_same_bytes(lesson):
    first, second = (nbformat.writes(press.compose(lesson(), "zh")[0]) for _ in range(2))
    assert first == second


def test_ids_stay_when_another_cell_changes(lesson):
    before = [cell.id for cell in press.compose(lesson(), "zh")[0].cells]
    after = [cell.id for cell in press.compose(lesson(("转多少？", "转了多少？")), "zh")[0].cells]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, True, False, True, True]
    assert len(set(before)) == len(before) and all(cell_id.endswith("-zh") for cell_id in before)


def test_formulas_ignore_code_and_spaces():
    assert formulas("$a + b$ `$x$` $$\nc\n$$\n```\n$d$\n```") == ["$a+b$", "$$c$$"]


BROKEN = [
    (
        ('\n+++ {"lang": "en"}\n\n**Exercise 4.1** How far?\n', ""),
        "**练习 4.1** 转多少？",
        "no English partner",
    ),
    (
        ('+++ {"lang": "zh"}\n\n**练习 4.1** 转多少？\n\n', ""),
        "**Exercise 4.1** How far?",
        "no Chinese partner",
    ),
    (("angle is $m\\theta$", "angle is $n\\theta$"), "# Turning", "formulas of this pair differ"),
    (("# Turning", "## Turning"), "## Turning", "headings of this pair differ"),
    (("### END SOLUTION\n", ""), "### BEGIN SOLUTION", "'### END SOLUTION'"),
]


@pytest.mark.parametrize(("replacement", "place", "message"), BROKEN)
def test_a_source_that_does_not_fit_is_refused_with_its_line(lesson, replacement, place, message):
    path = lesson(replacement)
    with pytest.raises(ValueError, match=message) as error:
        read_lesson(path)
    assert f"04_small.md:{line_of(path, place)}: " in str(error.value)


def test_a_missing_front_matter_is_named_with_what_to_write(lesson):
    path = lesson((LESSON.split("+++")[0], ""))
    with pytest.raises(ValueError, match=r"04_small.md:1: the front matter is missing; begin the file with"):
        read_lesson(path)


def test_an_unknown_citation_is_named_with_the_nearest_key(lesson):
    path = lesson(("See {cite}`su2021roformer`", "See {cite}`su2021rofromer`"))
    with pytest.raises(
        ValueError, match=r"unknown citation 'su2021rofromer'; did you mean 'su2021roformer'"
    ) as error:
        press.compose(path, "en")
    assert f"04_small.md:{line_of(path, '# Turning') + 2}: " in str(error.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; print('careful', file=sys.stderr)", "writes to stderr"),
        ("print('/home/somebody/x')", "holds a path, a time or an address"),
    ],
)
def test_a_cell_that_fails_warns_or_is_unstable_is_named_and_nothing_is_written(
    lesson, monkeypatch, code, message
):
    path = lesson(("print(answer)", code))
    with pytest.raises(ValueError, match=message) as error:
        press.produce(path)
    assert f"04_small.md:{line_of(path, ':tags: [exercise]') + 1}: " in str(error.value)
    assert not list(path.parent.glob("*/*.ipynb"))


def test_a_lesson_of_the_test_passes_the_lint(lesson):
    assert problems(lesson()) == []


LINTED = [
    (("转多少？", "是**距离（差）**的函数。"), "is printed here instead of making bold"),
    (("$m\\theta$", "$m\\theta \\tag{1}$"), r"\tag breaks"),
    (("转多少？", "见[旋转](04_roqe.ipynb)。"), "did you mean 04_rope.ipynb?"),
    (("转多少？", "转过2个词"), "Chinese spacing or punctuation"),
    (("角是 $m", "角是$m"), "a space is missing"),
    (("How far?", "How far is $a$?"), "formulas of this pair differ"),
    (("转多少？", "变压器转多少？"), "write 'Transformer'"),
    (("位置编码（positional encoding）", "位置编码"), "first use of '位置编码'"),
    (("print(answer)", "import pandas"), "may not import 'pandas'"),
    (("print(answer)", "x = " + "1 + " * 20 + "1"), "at most 72 fit a phone"),
    (("print(answer)", 'check("4.2", answer)'), "has no question **练习 4.2**"),
    (("{{solution}}", ""), "has no folded answer"),
    (("转多少？", "转多少？\n\n再转一次。"), "a paragraph is missing, or two are one"),
    (("转多少？", "转 1.5 圈？"), "these numbers stand in one language only: 1.5"),
    (("转多少？", "转多少 you would think that this is a sentence in english？"), "an English sentence"),
    (("How far?", "转了多少圈呢?"), "Chinese text in the English cell"),
    (("转多少？", "[转][ref]？"), "is printed as it stands"),
    (("<details><summary>答案</summary>", "<details>"), "needs one <summary>"),
    (("**练习 4.1**", "**练习 4.2**"), "asked in one language only"),
    (("print(answer)", "plt.show()"), "this figure needs"),
    (("print(answer)", "import datetime"), "differ from run to run"),
    (("print(answer)", "np.random.default_rng()"), "need a seed"),
    (("print(answer)", "print(answer"), "this code does not parse"),
    (("print(answer)", "%timeit answer"), "%magic and !commands are not Python"),
    (("answer = 1 + 1\n", ""), "there is no solution between"),
    (
        ("kernelspec: {name: python3", "minutes: abc\nkernelspec: {name: python3"),
        "minutes must be a whole number",
    ),
    (
        ("kernelspec: {name: python3, display_name: Python 3, language: python}", "kernelspec: {}"),
        "kernelspec needs a name",
    ),
    (("kernelspec: {name", "kernelspec: [name"), "this file cannot be read"),
    (('+++ {"lang": "en"}\n\n# T', '+++ {"lang": "en"\n\n# T'), "this file cannot be read"),
]


@pytest.mark.parametrize(("replacement", "message"), LINTED)
def test_the_lint_names_what_is_wrong(lesson, replacement, message):
    path = lesson(replacement)
    try:
        found = problems(path)
    except ValueError as error:
        found = [str(error)]
    assert any(message in problem and "04_small.md:" in problem for problem in found), found


def test_the_committed_lessons_pass_the_lint():
    assert lint.all_problems() == []


def test_an_unknown_lesson_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match=r"there is no lesson '04_rop'.*04_rope"):
        lint.all_problems(["04_rop"])


def test_ruff_finds_nothing():
    for arguments in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "."], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
