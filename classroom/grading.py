"""Grade one submission: run its questions one by one in a sandbox, and compare what comes back out here."""

import builtins
import time

from classroom.checks import KIND, generator, load_tests
from classroom.sandbox import BrokenError, Sandbox, SandboxError
from classroom.wire import decode, encode

# So many calls may end by the clock before a question, or a submission, is given up.
QUESTION_CALLS, SUBMISSION_CALLS = 6, 40
MOST_MESSAGES = 40
MISSING = "«没有作答：没有找到 {0}||not answered: there is no {0} in the notebook»"
RAISED = "«调用时抛出了 {0}||the call raised {0}»"
FAILURES = {
    "time": "«{0} 秒内没有结束||it did not end within {0} seconds»",
    "died": "«代码结束了自己的进程||the code ended its own process»",
    "memory": "«占用的内存、进程或文件太多||too much memory, or too many processes or files»",
    "long": "«返回的数据太大||what it returned is too large»",
}
USED_UP = "«时间用完了||the time is used up»"


class NoAnswerError(Exception):
    """Why there is no value to compare, as "«中文||English»"."""


class Student:
    """What a hidden test sees of a submission: functions to call and values to read, all by name."""

    def __init__(self, sandbox, cells, seconds):
        self.sandbox, self.cells, self.seconds = sandbox, cells, seconds
        self.skip, self.notes = set(), {}  # statements that did not end; what went wrong in a cell
        self.until = time.monotonic() + SUBMISSION_CALLS * seconds

    def begin(self, adapter):
        """Start a question in a process of its own, with the adapter after the student's cells."""
        self.adapter, self.ready = adapter, False
        self.question_until = min(self.until, time.monotonic() + QUESTION_CALLS * self.seconds)

    def call(self, name, *arguments):
        return self._ask({"name": name, "arguments": encode(arguments)})

    def value(self, name):
        return self._ask({"name": name})

    def _ask(self, question):
        self._load()
        self._spend()
        try:
            answer = self.sandbox.ask(question, self.seconds)
        except BrokenError:
            answer = {"failed": "died"}
        if "value" in answer:
            try:
                return decode(answer["value"])
            except (ValueError, TypeError, RecursionError, OverflowError):
                raise NoAnswerError(KIND) from None
        if "missing" in answer:
            raise NoAnswerError(MISSING.format(question["name"]))
        if "raised" in answer:
            name = str(answer["raised"])
            known = isinstance(getattr(builtins, name, None), type)
            raise NoAnswerError(RAISED.format(name if known else "Exception"))
        self.ready = False
        raise NoAnswerError(_failure(answer.get("failed"), self.seconds))

    def _load(self):
        """Run the cells; a statement that does not end is left out, now and in the questions that follow."""
        cells = [*self.cells, *([self.adapter] if self.adapter else [])]
        while not self.ready:
            self._spend()
            try:
                message = self.sandbox.open(cells, self.skip, self.seconds)
            except BrokenError:
                raise NoAnswerError(FAILURES["died"]) from None
            if isinstance(message.get("loaded"), list):
                self.ready = True
                self._note(message["loaded"])
            elif _is_place(message.get("stuck")):
                unit, cell, line = message["stuck"]
                self._note([[cell, line, _failure(message.get("failed"), self.seconds)]])
                if unit in self.skip or len(self.skip) > 20:
                    raise NoAnswerError(_failure(message.get("failed"), self.seconds))
                self.skip.add(unit)
            else:
                raise NoAnswerError(FAILURES["died"])

    def _note(self, notes):
        for note in notes[:20]:
            if isinstance(note, list) and len(note) == 3 and type(note[0]) is int:
                # A lone surrogate can be said, but not written down.
                said = str(note[2])[:300].encode("utf8", "replace").decode()
                self.notes.setdefault((note[0], note[1] if type(note[1]) is int else 0), said)

    def _spend(self):
        if time.monotonic() > self.question_until:
            raise NoAnswerError(USED_UP)


def grade_submission(job, assignment, seed):
    """Return the result of one job of `collect` as plain values; the same job, assignment and seed give the same points."""
    started = time.monotonic()
    result = {key: job[key] for key in ("key", "id", "student", "file", "sha256", "notes")}
    result |= {"maximum": sum(question["points"] for question in assignment["questions"]), "questions": []}
    if "rejected" in job:
        return result | {"status": "rejected", "reason": job["rejected"], "points": 0, "seconds": 0}
    with Sandbox(assignment["packages"], assignment["memory"]) as sandbox:
        result |= grade_in(sandbox, job["cells"], assignment, seed)
    return result | {"status": "graded", "seconds": round(time.monotonic() - started, 2)}


def grade_in(sandbox, cells, assignment, seed):
    """Return what grading finds out about the cells of one submission.

    A sandbox is for one submission only: its first process has read them, and what it forks may search that memory.
    """
    given, questions = assignment["given"], []
    student = Student(sandbox, [*given, *cells], assignment["seconds"])
    for question in assignment["questions"]:
        student.begin(question["adapter"])
        tests = load_tests(question["tests"], question["id"])
        names = seed, assignment["assignment"], question["id"]
        outcomes = [_outcome(test, student, names) for test in tests]
        points = sum(outcome["points"] for outcome in outcomes)
        about = {"id": question["id"], "maximum": question["points"], "points": points, "tests": outcomes}
        questions.append(about)
    first, last = len(given), len(given) + len(cells)  # of the student's own cells
    own = [(place, text) for place, text in sorted(student.notes.items()) if first <= place[0] < last]
    return {
        "questions": questions,
        "points": sum(question["points"] for question in questions),
        "messages": [[cell - first + 1, line, text] for (cell, line), text in own[:MOST_MESSAGES]],
        "versions": sandbox.versions,
    }


def _outcome(test, student, names):
    outcome = {"name": test.name, "maximum": test.points, "points": 0, "hint": test.hint}
    try:
        problem = test.function(student, generator(*names, test.name))
    except NoAnswerError as reason:
        problem = str(reason)
    except SandboxError:
        raise
    except Exception as error:
        # The test met a value that it did not expect; its author finds the reason in the result.
        return outcome | {"problem": KIND, "exception": f"{type(error).__name__}: {error}"[:300]}
    if problem is None:
        return outcome | {"points": test.points, "problem": None}
    return outcome | {"problem": problem if isinstance(problem, str) else KIND}


def _failure(kind, seconds):
    return FAILURES.get(str(kind), FAILURES["died"]).format(seconds)


def _is_place(stuck):
    return isinstance(stuck, list) and len(stuck) == 3 and all(type(number) is int for number in stuck)
