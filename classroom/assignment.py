"""Read the source of an assignment: a lesson whose code cells are given, answers, public checks or hidden from students."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from book import LANGS
from book.compose import compose
from book.lesson import read_lesson, split_solution
from classroom.checks import load_tests

ASSIGNMENTS = Path(__file__).parent / "assignments"
HIDDEN = ("HIDDEN TESTS", "ADAPTER", "WRONG ANSWER")
SETUP = """\
# «先运行本单元：公开检查要用到它||run this cell first: the public checks need it»
import os


class check:
    \"\"\"«with check("1", 答案): 里的断言是公开检查||the assertions in `with check("1", answer):` are public checks»\"\"\"

    def __init__(self, question, answer):
        code = getattr(answer, "__code__", None)
        idle = code and not code.co_names and len(code.co_code) < 9
        stub = idle and {*code.co_consts[bool(answer.__doc__):]} <= {None}
        self.name, self.blank = question, stub or answer is ...

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.blank:
            print(f"○ {self.name}: «还没有作答||not attempted yet»")
        elif error is None:
            print(f"✓ {self.name}: «公开检查通过；隐藏检查在评分时才运行||public checks passed; hidden checks run later»")
        elif isinstance(error, AssertionError):
            print(f"✗ {self.name}: {error}")
        else:
            print(f"✗ {self.name}: «你的代码抛出了||your code raised» {kind.__name__}: {error}")
        right = error is None and not self.blank
        return right or "NBGRADER_EXECUTION" not in os.environ"""


class Question(NamedTuple):
    id: str
    points: float
    difficulty: int
    minutes: int
    names: tuple  # what the answer cell defines
    solution: str  # the solved answer cell, with both languages
    stubs: tuple  # the answer cell as students get it, in each language
    adapter: str
    tests: str
    wrong: tuple


class Assignment(NamedTuple):
    name: str
    path: Path
    title: dict
    packages: tuple
    minutes: int
    seconds: float
    memory: int
    given: tuple  # code that runs before the student's, in English
    pristine: frozenset  # all code cells of the released notebooks but the answers, in both languages
    questions: tuple
    digest: str

    @property
    def points(self):
        return sum(question.points for question in self.questions)

    def job(self):
        """Return what grading one submission needs, as plain values that travel to another machine."""
        fields = ("id", "points", "names", "adapter", "tests")
        questions = [{field: getattr(question, field) for field in fields} for question in self.questions]
        return {
            "assignment": self.name,
            "packages": list(self.packages),
            "seconds": self.seconds,
            "memory": self.memory,
            "given": [pick(SETUP, "en"), *self.given],
            "questions": questions,
        }


def assignment_names(folder=ASSIGNMENTS):
    return sorted(path.stem for path in Path(folder).glob("*.md") if not path.stem.startswith("README"))


def read_assignment(name, folder=ASSIGNMENTS):
    """Return the assignment NAME.md of a folder, or raise ValueError that says in both languages what must change."""
    path = Path(folder) / f"{name}.md"
    if not path.is_file():
        known = ", ".join(assignment_names(folder)) or "-"
        raise ValueError(
            f"{folder} 里没有作业 {name!r}，有：{known} / there is no such assignment; there are: {known}"
        )
    front, cells = read_lesson(path)
    kinds = [kind_of(cell) for cell in cells]
    released = {lang: released_code(path, lang) for lang in LANGS}
    given = [released["en"][cell.line] for cell, kind in zip(cells, kinds, strict=True) if kind == "given"]
    locked = {cell.line for cell, kind in zip(cells, kinds, strict=True) if kind in ("given", "public")}
    pristine = {released[lang][line].strip() for lang in LANGS for line in locked}
    pristine |= {pick(SETUP, lang).strip() for lang in LANGS}
    questions = tuple(_questions(cells, kinds, released, path.name))
    problems = [f"{path.name}: {problem}" for problem in _problems(front, questions)]
    if problems:
        raise ValueError("\n".join(problems))
    return Assignment(
        name=name,
        path=path,
        title={lang: _title(cells, lang, name) for lang in LANGS},
        packages=tuple(front["packages"]),
        minutes=front["minutes"],
        seconds=front.get("seconds", 10),
        memory=front.get("memory", 2048),
        given=tuple(given),
        pristine=frozenset(pristine),
        questions=questions,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def pick(text, lang):
    """Return the text with each «中文||English» replaced by one of the two."""
    return re.sub(r"«(.*?)\|\|(.*?)»", lambda match: match[1 + LANGS.index(lang)], text, flags=re.S)


def kind_of(cell):
    """Return text, answer, public, given, or the words of the marker of a hidden cell."""
    if cell.kind == "markdown":
        return "text"
    for words in HIDDEN:
        if cell.source.startswith(f"### BEGIN {words}\n"):
            if not cell.source.rstrip().endswith(f"### END {words}"):
                raise ValueError(
                    f"line {cell.line}: ### BEGIN {words} needs ### END {words} as the last line of its cell"
                )
            return words
    if "question" in cell.metadata:
        return "answer"
    return "public" if "public" in cell.metadata.get("tags", ()) else "given"


def released_code(path, lang, variant="reader"):
    """Return {line: code} of the cells of one edition."""
    notebook, lines = compose(path, lang, variant)
    return {line: cell.source for cell, line in zip(notebook.cells, lines, strict=True)}


def defined_names(code):
    """Return the names that code defines at its top level, by pattern: what is not trusted is never parsed here."""
    found = re.findall(r"^(?:(?:async )?def|class)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)", code, re.M)
    return {function or variable for function, variable in found}


def _questions(cells, kinds, released, file):
    starts = [i for i, kind in enumerate(kinds) if kind == "answer"]
    for i, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        cell, option = cells[i], cells[i].metadata["question"]
        missing = {"id", "points", "difficulty", "minutes"} - set(option if isinstance(option, dict) else ())
        if missing or split_solution(cell.source) is None:
            need = ":question: {id: 1, points: 4, difficulty: 2, minutes: 8} and a solution between its two markers"
            raise ValueError(f"{file}:{cell.line}: an answer cell needs {need}")
        of_kind = {words: [cells[j].source for j in range(i, end) if kinds[j] == words] for words in HIDDEN}
        if len(of_kind["HIDDEN TESTS"]) != 1 or len(of_kind["ADAPTER"]) > 1:
            raise ValueError(
                f"{file}:{cell.line}: a question needs one cell of hidden tests, and at most one adapter"
            )
        before, solution, after = split_solution(cell.source)
        yield Question(
            str(option["id"]),
            option["points"],
            option["difficulty"],
            option["minutes"],
            tuple(sorted(defined_names(cell.source))),
            "\n".join([*before, *solution, *after]),
            tuple(released[lang][cell.line] for lang in LANGS),
            "\n".join(of_kind["ADAPTER"]),
            of_kind["HIDDEN TESTS"][0],
            tuple(of_kind["WRONG ANSWER"]),
        )


def _problems(front, questions):
    if not isinstance(front.get("packages"), list):
        yield "the front matter needs packages, such as packages: [numpy]"
    if front.get("minutes") != sum(question.minutes for question in questions):
        yield f"minutes is {front.get('minutes')!r}, but the questions add up to {sum(q.minutes for q in questions)}"
    for question in questions:
        tests = load_tests(question.tests, question.id)
        if sum(test.points for test in tests) != question.points:
            yield (
                f"question {question.id} has {question.points} points, "
                f"but its hidden tests add up to {sum(test.points for test in tests)}"
            )
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids) or not ids:
        yield f"each question needs an id of its own, got {ids}"


def _title(cells, lang, name):
    text = next((cell.source for cell in cells if cell.lang == lang), "")
    heading = re.search(r"^# (.+)$", text, re.M)
    return heading[1].strip() if heading else name
