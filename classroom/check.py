"""Prove an assignment: the solution gets full marks, the blank notebook 0, and every hidden test was wrong once."""

from book import LANGS
from classroom.assignment import pick
from classroom.checks import load_tests
from classroom.grading import grade_in
from classroom.rebuild import student_code
from classroom.release import student_notebook
from classroom.sandbox import Sandbox

SEED = "a seed that is no secret"


def problems(assignment):
    """Yield one line for everything that is wrong with the assignment, by grading what must come out in a known way."""
    spec = assignment.job()
    # One sandbox for all, since all these answers are the teacher's.
    with Sandbox(assignment.packages, assignment.memory) as sandbox:
        for lang in LANGS:
            solved = [pick(question.solution, lang) for question in assignment.questions]
            yield from _not_full(grade_in(sandbox, solved, spec, SEED), lang)
            blank = [
                cell.source for cell in student_notebook(assignment, lang).cells if cell.cell_type == "code"
            ]
            code, _, _ = student_code([("code", source) for source in blank], assignment)
            if code:
                yield f"the released notebook ({lang}) is not recognised as blank: {code}"
            stubs = [question.stubs[LANGS.index(lang)] for question in assignment.questions]
            for question in grade_in(sandbox, stubs, spec, SEED)["questions"]:
                if question["points"]:
                    yield f"question {question['id']}: blank ({lang}) gets {question['points']} points"
        yield from _never_wrong(assignment, spec, sandbox)


def _not_full(result, lang):
    for question in result["questions"]:
        for test in question["tests"]:
            if test["problem"] is not None:
                reason = test.get("exception") or pick(test["problem"], "en")
                yield f"question {question['id']}: the solution ({lang}) fails {test['name']}: {reason}"


def _never_wrong(assignment, spec, sandbox):
    solved = [pick(question.solution, "en") for question in assignment.questions]
    for i, question in enumerate(assignment.questions):
        alone = spec | {"questions": [spec["questions"][i]]}
        never = {test.name for test in load_tests(question.tests, question.id)}
        for number, wrong in enumerate(question.wrong, 1):
            cells = [*solved[:i], pick(wrong, "en"), *solved[i + 1 :]]
            tests = grade_in(sandbox, cells, alone, SEED)["questions"][0]["tests"]
            failed = {test["name"] for test in tests if test["problem"] is not None}
            if not failed:
                yield f"question {question.id}: wrong answer {number} gets full marks"
            never -= failed
        for name in sorted(never):
            yield f"question {question.id}: no wrong answer fails the hidden test {name}"
