"""Assignments, what is released of them, who handed in what, and the results."""

import csv
import doctest
import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from book import LANGS, ROOT
from book.lint import LONGEST_CODE_LINE, lesson_problems
from classroom import __main__ as command_line
from classroom import checks, sandbox, seccomp, wire
from classroom.assignment import ASSIGNMENTS, SETUP, assignment_names, pick, read_assignment
from classroom.check import problems
from classroom.grading import grade_submission
from classroom.intake import collect
from classroom.release import SITE, leaks, release, student_notebook
from classroom.report import write_reports
from classroom.roster import Student, key_of, read_roster
from classroom.run import run_all
from tests import classroom_cases as cases

pytestmark = cases.NEEDS_SANDBOX

# What a hidden cell may do and a student never sees, or what assignments do otherwise than lessons.
NOT_OF_ASSIGNMENTS = re.compile(r"characters, at most|no folded answer")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.md").write_text(cases.ASSIGNMENT, "utf8")
    return tmp_path


@pytest.fixture
def small(folder):
    return read_assignment("small", folder)


@pytest.fixture
def inbox(tmp_path):
    """Return a function that puts files into an inbox and returns it."""

    def put(files):
        for name, data in files.items():
            path = tmp_path / "inbox" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return tmp_path / "inbox"

    return put


def changed(folder, old, new):
    assert old in cases.ASSIGNMENT
    (folder / "small.md").write_text(cases.ASSIGNMENT.replace(old, new), "utf8")
    return read_assignment("small", folder)


# The assignments of the course


def heavy_is_slow(name):
    """An assignment with torch imports for seconds."""
    heavy = re.search(r"^packages: .*torch", (ASSIGNMENTS / f"{name}.md").read_text("utf8"), re.M)
    return pytest.param(name, marks=pytest.mark.slow) if heavy else name


@pytest.mark.parametrize("name", [heavy_is_slow(name) for name in assignment_names()])
def test_solved_is_full_marks_blank_is_none_and_every_hidden_test_was_wrong_once(name):
    assignment = read_assignment(name)
    missing = [package for package in assignment.packages if not importlib.util.find_spec(package)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert list(problems(assignment)) == []


@pytest.mark.parametrize("name", assignment_names())
def test_an_assignment_follows_the_rules_of_the_lessons(name):
    found = lesson_problems(read_assignment(name).path)
    assert [problem for problem in found if not NOT_OF_ASSIGNMENTS.search(problem[1])] == []


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", assignment_names())
def test_the_code_that_students_see_fits_a_phone(name, lang):
    cells = student_notebook(read_assignment(name), lang).cells
    code = [
        cell.source
        for cell in cells
        if cell.cell_type == "code" and not cell.source.startswith(pick(SETUP, lang))
    ]
    assert [line for source in code for line in source.split("\n") if len(line) > LONGEST_CODE_LINE] == []


@pytest.mark.parametrize("name", assignment_names())
def test_the_printed_points_difficulty_and_minutes_are_those_of_the_question(name):
    assignment = read_assignment(name)
    text = assignment.path.read_text("utf8")
    for question in assignment.questions:
        stars = "★" * question.difficulty + "☆" * (3 - question.difficulty)
        assert f"（{question.points} 分，难度 {stars}，{question.minutes} 分钟）" in text
        assert f"({question.points} points, difficulty {stars}, {question.minutes} minutes)" in text


# The proof of an assignment can fail


def test_a_small_assignment_has_no_problems(small):
    assert list(problems(small)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return np.multiply(x, SCALE)", "return x", "the solution (en) fails doubles_any_array"),
        ("return len(x)", "return sum(x)", "wrong answer 1 gets full marks"),
        ("    return len(x)", "    return sum(x)", "no wrong answer fails the hidden test the_sum_of_random"),
        ('return same(student.value("answer_3"), 42)', "return None", "blank (zh) gets 1 points"),
    ],
)
def test_the_proof_finds_what_is_wrong(folder, old, new, said):
    assert any(said in problem for problem in problems(changed(folder, old, new)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("points: 2, difficulty: 1, minutes: 2}\ndef double", "points: 3, difficulty: 1, minutes: 2}\ndef double", "add up to 2"),
        ("minutes: 6", "minutes: 7", "the questions add up to 6"),
        ("packages: [numpy]\n", "", "packages: [numpy]"),
        ("{id: 3,", "{id: 2,", "an id of its own"),
        ("{id: 3, ", "{", "an answer cell needs :question:"),
        ("### END HIDDEN TESTS\n```\n\n```{code-cell} python\n### BEGIN WRONG ANSWER\nanswer_3", "```\n\n```{code-cell} python\n### BEGIN WRONG ANSWER\nanswer_3", "### END HIDDEN TESTS"),
        ("小作业\n", "小作业 $x$\n", "the formulas of this pair differ"),
    ],
)  # fmt: skip
def test_a_source_that_is_wrong_says_what_must_change(folder, old, new, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        changed(folder, old, new)


def test_an_unknown_assignment_names_those_that_exist(folder):
    with pytest.raises(ValueError, match="small"):
        read_assignment("large", folder)


# What is released


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    (folder / "small.md").write_text(cases.ASSIGNMENT.replace('"«一的两倍||twice one»"', DRAWING), "utf8")
    assignment = read_assignment("small", folder)
    release(assignment, folder / "release")
    return assignment, folder / "release"


DRAWING = '"«一的两倍||twice one»"\n\n    import matplotlib.pyplot as plt\n    plt.plot([0, 1], [0, 2])\n    plt.show()'


@pytest.mark.parametrize("lang", LANGS)
def test_a_released_notebook_holds_neither_solution_nor_hidden_test(released, lang):
    assignment, folder = released
    text = (folder / "student" / lang / "small.ipynb").read_text("utf8")
    assert [
        word
        for word in ("np.multiply", "CANARY", "rng.normal", "HIDDEN", "WRONG", "《", "||")
        if word in text
    ] == []
    assert leaks([assignment], folder / "student") == []


def test_the_scan_finds_a_solution_and_a_hidden_test(released, tmp_path):
    assignment, _ = released
    for line in ("    return np.multiply( x,SCALE)", "x = rng.normal(size=5)  # HIDDEN-CANARY"):
        cell = nbformat.v4.new_code_cell(line)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "leaking.ipynb")
        assert [leak.split(": ")[1] for leak in leaks([assignment], tmp_path)] == [
            line.strip()
        ] or "multiply" in line
        assert len(leaks([assignment], tmp_path)) == 1


def test_the_scan_finds_a_whole_solution_on_a_page(folder, tmp_path):
    long = (
        "    ### BEGIN SOLUTION\n    pairs = zip(x, [SCALE] * len(x))\n    return [a * b for a, b in pairs]\n"
    )
    assignment = changed(folder, "    ### BEGIN SOLUTION\n    return np.multiply(x, SCALE)\n", long)
    site = tmp_path / "site"
    site.mkdir()
    page = "".join(f"<span>{html.escape(word)} </span>" for word in long.split("SOLUTION")[1].split(" "))
    (site / "page.html").write_text(f"<pre>{page}</pre>", "utf8")
    assert len(leaks([assignment], tmp_path / "none", site)) == 1
    (site / "page.html").write_text("<pre>pairs = zip(x, [SCALE] * len(x))</pre>", "utf8")
    assert leaks([assignment], tmp_path / "none", site) == []


def test_no_solution_stands_on_the_site(tmp_path):
    assert SITE.exists() or "CI" not in os.environ, "make book builds the site"
    assert leaks(list(map(read_assignment, assignment_names())), tmp_path, SITE) == []


RUN = """
import json, sys
names = {}
for cell in json.load(open(sys.argv[1], encoding="utf8"))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
"""


@pytest.mark.parametrize("lang", LANGS)
def test_a_released_notebook_runs_blank_in_an_empty_folder_and_says_not_attempted(released, lang, tmp_path):
    path = released[1] / "student" / lang / "small.ipynb"
    environment = {"PATH": os.environ["PATH"], "MPLBACKEND": "agg", "HOME": str(tmp_path)}
    command = [sys.executable, "-I", "-c", RUN, path]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == {"zh": "○ 1: 还没有作答\n", "en": "○ 1: not attempted yet\n"}[lang]


@pytest.mark.parametrize("lang", LANGS)
def test_nbgrader_finds_answers_checks_and_points(released, lang):
    cells = nbformat.read(released[1] / "student" / lang / "small.ipynb", 4).cells
    marks = [cell.metadata.nbgrader for cell in cells]
    assert [mark.grade_id for mark in marks if mark.solution] == ["small-1", "small-2", "small-3"]
    assert [(mark.grade_id, mark.points) for mark in marks if mark.grade] == [("small-1-public", 2)]
    assert len({mark.grade_id for mark in marks}) == len(cells)
    assert all(mark.locked != mark.solution for mark in marks)


@pytest.mark.parametrize("lang", LANGS)
def test_the_expected_picture_stands_above_the_check_that_draws(released, lang):
    cells = nbformat.read(released[1] / "student" / lang / "small.ipynb", 4).cells
    check = next(i for i, cell in enumerate(cells) if cell.source.startswith("with check"))
    assert "data:image/png;base64," in cells[check - 1].source
    assert {"zh": "期望的图", "en": "The expected picture"}[lang] in cells[check - 1].source


@pytest.mark.parametrize("lang", LANGS)
def test_the_instructor_pack_holds_solutions_tests_and_points(released, lang):
    folder = released[1] / "instructor" / lang
    text = (folder / "small.ipynb").read_text("utf8")
    assert "np.multiply(x, SCALE)" in text and "HIDDEN-CANARY" in text and "✓ 1" in text
    assert "| the_answer | 1 | " in (folder / "small_rubric.md").read_text("utf8")


def test_a_solution_that_fails_its_public_check_is_not_released(folder, tmp_path):
    with pytest.raises(ValueError, match="does not pass the public check"):
        release(changed(folder, "assert double(1) == 2", "assert double(1) == 3"), tmp_path / "release")


CHECK = "with check('1', answer):\n    assert answer == 4, 'four'"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("answer = ...", "○ 1: not attempted yet"),
        ("answer = 4", "✓ 1: public checks passed; hidden checks run later"),
        ("answer = 5", "✗ 1: four"),
        ("def answer():\n    'a docstring'\n    ...", "○ 1: not attempted yet"),
        ("def answer(): return 4", "✗ 1: four"),
        ("answer = type('A', (), {'__eq__': lambda s, o: 1 / 0})()", "✗ 1: your code raised ZeroDivisionError: division by zero"),
    ],
)  # fmt: skip
def test_a_public_check_says_what_is_the_matter_and_goes_on(small, answer, said, capsys):
    setup = next(cell.source for cell in student_notebook(small, "en").cells if cell.cell_type == "code")
    exec(f"{setup}\n{answer}\n{CHECK}", {})
    assert capsys.readouterr().out.strip() == said


def test_under_nbgrader_a_public_check_raises(small, monkeypatch):
    setup = next(cell.source for cell in student_notebook(small, "en").cells if cell.cell_type == "code")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(AssertionError, match="four"):
        exec(f"{setup}\nanswer = 5\n{CHECK}", {})
    exec(f"{setup}\nanswer = 4\n{CHECK}", {})


# Who handed in what

ROSTER = [
    Student("2024001", "张三"),
    Student("2024002", "李四"),
    Student("17", "Ann Lee"),
    Student("7", "Bo"),
]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("2024001.ipynb", "2024001"),
        ("small (1) 2024002.ipynb", "2024002"),
        ("张三_small.ipynb", "2024001"),
        ("作业一（李四）.ipynb", "2024002"),
        ("Ann_Lee_17_assignsubmission_file_/any name.ipynb", "17"),
        ("annlee-small.ipynb", "17"),
        ("17.ipynb", "17"),
        ("7.ipynb", "7"),
        ("2024001_2024002.ipynb", "2024001"),
        ("170.ipynb", ""),
        ("bob.ipynb", ""),
    ],
)
def test_the_name_in_the_inbox_says_whose_it_is(inbox, small, name, owner):
    (found,) = collect(inbox({name: cases.notebook(cases.HONEST)}), small, ROSTER)
    assert found["id"] == owner


def test_what_is_in_a_zip_or_a_folder_does_not_say_whose_it_is(inbox, small):
    honest, hostile = cases.notebook(cases.HONEST), cases.notebook(["answer_3 = 0"])
    files = {
        "2024001.ipynb": honest,
        "2024002.zip": cases.zipped({"2024001.ipynb": hostile}),
        "17/2024001.ipynb": hostile,
    }
    found = {job["id"]: job["cells"] for job in collect(inbox(files), small, ROSTER)}
    assert found == {"2024001": cases.HONEST, "2024002": ["answer_3 = 0"], "17": ["answer_3 = 0"]}


def test_an_inbox_may_be_the_zip_of_a_whole_class(tmp_path, small):
    files = {
        "张三_2024001/a.ipynb": cases.notebook(cases.HONEST),
        "2024002.zip": cases.zipped({"b.py": b"answer_3 = 42"}),
    }
    (tmp_path / "class.zip").write_bytes(cases.zipped(files))
    found = collect(tmp_path / "class.zip", small, ROSTER)
    assert [(job["id"], len(job["cells"])) for job in found] == [("2024001", 3), ("2024002", 1)]


def test_nothing_is_unpacked_onto_the_disk(tmp_path, inbox, small):
    data = cases.zipped({"../../escaped.ipynb": cases.notebook(cases.HONEST), "/tmp/escaped.py": b"x = 1"})
    before = sorted(tmp_path.rglob("*"))
    inbox({"a.zip": data})
    assert collect(tmp_path / "inbox", small)[0]["cells"] == ["x = 1"]
    assert {path.name for path in tmp_path.rglob("*")} - {path.name for path in before} == {"inbox", "a.zip"}


def test_a_zip_that_unpacks_to_gigabytes_is_not_read_to_the_end(inbox, small):
    bomb = cases.zipped({f"{i}.ipynb": bytes(40 << 20) for i in range(12)})
    (found,) = collect(inbox({"bomb.zip": bomb}), small)
    assert "rejected" in found


def test_a_link_in_the_inbox_is_not_followed(tmp_path, inbox, small):
    (tmp_path / "secret.ipynb").write_bytes(cases.notebook(cases.HONEST))
    folder = inbox({"a.ipynb": cases.notebook([])})
    (folder / "b.ipynb").symlink_to(tmp_path / "secret.ipynb")
    assert [job["file"] for job in collect(folder, small)] == ["a.ipynb"]


def test_who_is_not_on_the_roster_is_graded_and_said_not_to_be(inbox, small):
    (found,) = collect(inbox({"bob.ipynb": cases.notebook(cases.HONEST)}), small, ROSTER)
    assert found["student"] == "bob" and "not on the roster" in found["notes"][0]
    (found,) = collect(inbox({}), small)
    assert found["notes"] == []


def test_a_name_that_two_students_have_belongs_to_neither(inbox, small):
    roster = [Student("1001", "王伟"), Student("1002", "王伟")]
    files = {
        "王伟.ipynb": cases.notebook([]),
        "王伟 (1).ipynb": cases.notebook([]),
        "1002 王伟.ipynb": cases.notebook([]),
    }
    jobs = collect(inbox(files), small, roster)
    assert sorted((job["id"], job["student"]) for job in jobs) == [
        ("", "王伟"),
        ("", "王伟 (1)"),
        ("1002", "王伟"),
    ]
    assert all("belongs to several students" in job["notes"][0] for job in jobs if not job["id"])


def test_an_assignment_whose_packages_are_missing_is_left_out_of_a_release(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("classroom.__main__.find_spec", lambda name: None)
    command_line.main(["release", "--out", str(tmp_path)])
    assert "a2_rope: 跳过" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.ipynb"))


def test_an_inbox_that_is_not_there_says_so(tmp_path, small):
    with pytest.raises(ValueError, match="there is no such folder"):
        collect(tmp_path / "nowhere", small)


@pytest.mark.parametrize(
    "data",
    [
        "学号,姓名\n2024001,张三\n".encode("utf-8-sig"),
        "学号,姓名\n2024001,张三\n".encode("gb18030"),
        "id\tname\n2024001\t张三\n".encode("utf-16"),
        "Name;Email;Student ID\n张三;a@b;2024001\n\n".encode(),
    ],
)
def test_a_roster_is_read_as_excel_saves_it(tmp_path, data):
    (tmp_path / "roster.csv").write_bytes(data)
    assert read_roster(tmp_path / "roster.csv") == [Student("2024001", "张三")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "id 和 name"),
        ("mail,name\na,b\n", "id 和 name"),
        ("id,name\n1,a\n1,b\n", "第 2 行"),
        ("id,name\n,a\n", "为空或重复"),
    ],
)
def test_a_bad_roster_says_what_is_wrong_with_it(tmp_path, text, said):
    (tmp_path / "roster.csv").write_text(text, "utf8")
    with pytest.raises(ValueError, match=said):
        read_roster(tmp_path / "roster.csv")


def test_different_students_have_different_files():
    names = ["张三", "a b", "a_b", "a/b", "../a", "=cmd", "", "A" * 300]
    keys = [key_of(Student("", name)) for name in names]
    assert len(set(keys)) == len(names) and all(re.fullmatch(r"[\w-]{1,80}", key) for key in keys)


# Grading


def test_the_same_seed_gives_the_same_result_and_another_seed_other_numbers(small):
    guess = ["import os\ndef double(x):\n    return 2 * x if x.ravel()[0] > 0 else x"]

    def points(seed):
        result = grade_submission(cases.job(guess), small.job(), seed)
        return [test["points"] for question in result["questions"] for test in question["tests"]]

    results = {seed: points(seed) for seed in "abcdef"}
    assert {seed: points(seed) for seed in "ab"} == {seed: results[seed] for seed in "ab"}
    assert len({tuple(result) for result in results.values()}) > 1


@pytest.fixture
def graded(inbox, small, tmp_path):
    files = {
        "2024001.ipynb": cases.notebook([*cases.HONEST, "raise Exception('<script>alert(1)</script>')"]),
        "2024002 李四.ipynb": cases.notebook([cases.DOUBLE, cases.ANSWER]),
        "=2+3.ipynb": b"{",
    }
    jobs = collect(inbox(files), small, ROSTER)
    results = run_all(jobs, tmp_path / "out", small.job(), "seed", tell=lambda line: None)
    write_reports(tmp_path / "out", small, results, ROSTER)
    return tmp_path / "out", jobs


def test_the_grades_open_in_excel(graded):
    data = (graded[0] / "grades.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(data.decode("utf-8-sig").splitlines()))
    assert [len(row) for row in rows] == [len(rows[0])] * 6
    assert [(row[0], row[1], row[3]) for row in rows[1:]] == [
        ("", "'=2+3", "0"),
        ("17", "Ann Lee", ""),
        ("2024001", "张三", "5"),
        ("2024002", "李四", "3"),
        ("7", "Bo", ""),
    ]


def test_the_feedback_is_bilingual_and_nothing_in_it_runs(graded):
    text = (graded[0] / "feedback" / "2024001.html").read_text("utf8")
    assert "<script>" not in text and "&lt;script&gt;alert(1)" in text
    wrong = (graded[0] / "feedback" / "2024002.html").read_text("utf8")
    assert all(
        words in wrong
        for words in ("3 / 5", "提示三", "hint three", "没有作答：没有找到 total", "not answered")
    )


def test_the_report_has_pictures_and_the_hardest_question_first(graded):
    text = (graded[0] / "report.html").read_text("utf8")
    charts = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(charts) == 2 and charts[0].count("<rect") == 10
    assert re.findall(r'y="188">(.*?)<', charts[1]) == ["2", "1", "3"]
    assert "文件不完整" in text


def test_a_second_run_keeps_what_is_there_and_grades_what_is_new(graded, small, inbox, monkeypatch):
    out, jobs = graded
    times = {path.name: path.stat().st_mtime_ns for path in (out / "results").iterdir()}
    jobs = [job | {"sha256": "new"} if job["id"] == "2024002" else job for job in jobs]
    (out / "results" / ".left.1.tmp").write_text("{")
    lines = []
    run_all(jobs, out, small.job(), "seed", tell=lines.append)
    after = {path.name: path.stat().st_mtime_ns for path in (out / "results").iterdir()}
    assert {name for name in after if after[name] != times.get(name)} == {"2024002.json"}
    assert lines[0].startswith("已有 2 份结果") and lines[1].startswith("3/3")


def test_a_job_that_breaks_the_grader_costs_itself_only_and_is_tried_again(graded, small, monkeypatch):
    out, jobs = graded
    for path in (out / "results").iterdir():
        path.unlink()

    def breaks(job, *rest):
        if job["id"] == "2024002":
            raise RuntimeError("KilledWorker")
        return grade_submission(job, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("classroom.run.grade_submission", breaks)
        results = run_all(jobs, out, small.job(), "seed", tell=lambda line: None)
    assert [(result["id"], result["status"]) for result in results if result["status"] == "failed"] == [
        ("2024002", "failed")
    ]
    again = run_all(jobs, out, small.job(), "seed", tell=lambda line: None)
    assert [result["points"] for result in again if result["id"] == "2024002"] == [3]


# The command, and machines without a sandbox


def grade(inbox, folder, out, *more):
    command_line.main(
        ["grade", str(inbox), "--assignments", str(folder), "--assignment", "small", "--out", str(out), *more]
    )


def test_the_command_grades_a_folder_and_grades_it_again_from_the_log(inbox, folder, tmp_path):
    place = inbox({"a.ipynb": cases.notebook(cases.HONEST), "b.ipynb": cases.notebook([cases.DOUBLE])})
    grade(place, folder, tmp_path / "one")
    log = json.loads((tmp_path / "one" / "log.json").read_text("utf8"))
    assert (tmp_path / "one" / "log.json").stat().st_mode & 0o077 == 0
    grade(place, folder, tmp_path / "two", "--seed", log["seed"])
    assert (tmp_path / "one" / "grades.csv").read_text("utf8") == (tmp_path / "two" / "grades.csv").read_text(
        "utf8"
    )
    with pytest.raises(SystemExit, match="another seed"):
        grade(place, folder, tmp_path / "one", "--seed", "other")
    (folder / "small.md").write_text(cases.ASSIGNMENT + "\n", "utf8")
    with pytest.raises(SystemExit, match="another digest"):
        grade(place, folder, tmp_path / "one")


def test_an_empty_inbox_says_so(inbox, folder, tmp_path):
    with pytest.raises(SystemExit, match="there are no submissions"):
        grade(inbox({".hidden": b""}), folder, tmp_path / "out")


def test_an_outbox_in_the_inbox_is_refused(inbox, folder):
    place = inbox({"a.ipynb": cases.notebook(cases.HONEST)})
    with pytest.raises(SystemExit, match="--out lies in the inbox"):
        grade(place, folder, place / "out")


def test_without_bubblewrap_it_refuses_and_says_how_to_get_it(monkeypatch, small, inbox, folder, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install bubblewrap"):
        grade(inbox({"a.ipynb": cases.notebook(cases.HONEST)}), folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fails", ["exit 1", "echo 'No permissions to create a new namespace' >&2; exit 1"])
def test_where_the_sandbox_cannot_be_built_it_refuses_with_the_reason(monkeypatch, tmp_path, small, fails):
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{fails}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / "bwrap"))
    with pytest.raises(
        sandbox.SandboxError, match="so nothing was run: " + ("No permissions" if "echo" in fails else "")
    ):
        grade_submission(cases.job(cases.HONEST), small.job(), "seed")


def test_a_worker_with_privileges_left_refuses(monkeypatch, small):
    real = sandbox.command

    def keeps_them(*arguments):
        return [word for word in real(*arguments) if word != "--as-pid-1"]

    monkeypatch.setattr(sandbox, "command", keeps_them)
    with pytest.raises(sandbox.SandboxError, match="process 2"):
        grade_submission(cases.job(cases.HONEST), small.job(), "seed")


def test_a_package_that_is_not_installed_is_named(folder):
    assignment = changed(folder, "packages: [numpy]", "packages: [numpy, no_such_package]")
    with pytest.raises(sandbox.SandboxError, match="no_such_package, which is not installed"):
        grade_submission(cases.job(cases.HONEST), assignment.job(), "seed")


def test_the_modules_of_the_course_are_not_there_while_grading(small):
    code = "import sys\nraise Exception([p for p in sys.path])"
    result = grade_submission(cases.job([code]), small.job(), "seed")
    assert str(ROOT) not in json.dumps(result["messages"])


@pytest.mark.parametrize("module", [wire, checks, seccomp])
def test_the_examples_in_the_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0 and doctest.testmod(module).attempted > 0


@pytest.mark.parametrize(
    "tree",
    [
        {"array": ["object", [1], ""]},
        {"array": ["float64", [2], "AAAA"]},
        {"array": ["float64", [-1], ""]},
        {"array": [["float64"], [], ""]},
        {"array": ["float64", [], "not base64"]},
        {"array": 3},
        {"complex": [1]},
        {"expression": ["os.system", "ls"]},
        {"expression": ["Symbol", ["x"]]},
        {"expression": ["sin", 1, 2]},
        {"expression": None},
        {"other": "function"},
        {"map": 1},
        {"a": 1, "b": 2},
    ],
)
def test_what_is_no_value_is_refused(tree):
    with pytest.raises((ValueError, TypeError)):
        wire.decode(tree)
