"""Hostile, careless and unreadable submissions, graded together with honest ones: what each gets, and what it leaves behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from book import ROOT
from classroom.assignment import read_assignment
from classroom.grading import FAILURES
from classroom.intake import collect
from classroom.report import write_reports
from classroom.run import run_all
from classroom.sandbox import BrokenError, Sandbox
from tests import classroom_cases as cases

pytestmark = cases.NEEDS_SANDBOX

SEED = "seed of a class"
CANARY = "ENVIRONMENT-CANARY"
SLEEP = "7213"
NEIGHBOURS = ("0_first", "m_middle", "zz_last")


class Class:
    """One batch: an inbox, an outbox, a listener that hears what gets out, and the results by name."""

    def __init__(self, folder):
        self.inbox, self.out = folder / "inbox", folder / "out"
        self.inbox.mkdir()
        (folder / "assignments").mkdir()
        (folder / "assignments" / "small.md").write_text(cases.ASSIGNMENT, "utf8")
        self.assignment = read_assignment("small", folder / "assignments")
        self.listener = socket.create_server(("0.0.0.0", 0))
        self.calls = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                self.calls.append(self.listener.accept()[1])
            except OSError:
                return

    def put(self, name, data):
        path = self.inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def attack(self, name, *cells):
        places = {
            "inbox": self.inbox,
            "out": self.out,
            "root": ROOT,
            "sleep": SLEEP,
            "port": self.listener.getsockname()[1],
            "host": socket.gethostbyname(socket.gethostname()),
        }
        for word, value in places.items():
            cells = [cell.replace(f"{{{word}}}", str(value)) for cell in cells]
        self.put(f"{name}.ipynb", cases.notebook(cells))

    def grade(self):
        for name in NEIGHBOURS:
            self.put(f"{name}.ipynb", cases.notebook(cases.HONEST))
        os.environ["CANARY"] = CANARY
        try:
            jobs = collect(self.inbox, self.assignment)
            results = run_all(jobs, self.out, self.assignment.job(), SEED, workers=4, tell=lambda line: None)
        finally:
            del os.environ["CANARY"]
            self.listener.close()
        write_reports(self.out, self.assignment, results)
        self.results = {result["file"].split("/")[0].removesuffix(".ipynb"): result for result in results}
        return self

    def shown(self, name):
        """Everything that the student gets to see."""
        return (self.out / "feedback" / f"{self.results[name]['key']}.html").read_text("utf8")


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    batch = Class(tmp_path_factory.mktemp("class"))
    for name, code in (cases.FORGING | cases.STEALING | cases.TELLING).items():
        batch.attack(name, code)
    for name, (code, _) in cases.BREAKING_OUT.items():
        # The attack comes last, or an honest answer would hide that it did harm.
        batch.attack(name, *(cases.HONEST[1:] if "def double" in code else cases.HONEST), code)
    return batch.grade()


@pytest.mark.parametrize("name", cases.FORGING)
def test_no_forged_answer_gets_a_point(batch, name):
    assert batch.results[name]["points"] == 0


@pytest.mark.parametrize("name", cases.STEALING)
def test_nothing_is_found(batch, name):
    messages = batch.results[name]["messages"]
    assert [text for _, _, text in messages] in (["Exception: nothing"], [])
    assert messages or name == "own_memory"


@pytest.mark.parametrize("name", cases.TELLING)
def test_the_inputs_of_hidden_tests_are_not_told(batch, name):
    assert "LEAK" not in json.dumps(batch.results[name]) and "LEAK" not in batch.shown(name)


@pytest.mark.parametrize("name", cases.BREAKING_OUT)
def test_what_breaks_out_harms_itself_only(batch, name):
    points = cases.BREAKING_OUT[name][1]
    assert points is None or batch.results[name]["points"] == points


def test_a_line_without_end_is_cut_off_and_not_waited_for(batch):
    tests = [
        test for question in batch.results["one_line_without_end"]["questions"] for test in question["tests"]
    ]
    assert tests[0]["problem"] == FAILURES["long"]


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_the_neighbours_of_attacks_get_full_marks(batch, name):
    assert batch.results[name]["points"] == cases.ALL


def test_nothing_survives(batch):
    assert processes_that_sleep() == []
    assert batch.calls == []
    assert [
        p for p in (batch.inbox, batch.out, ROOT, Path("/tmp"), Path.home()) if (p / "PWNED").exists()
    ] == []


def test_no_secret_is_in_what_is_returned(batch):
    for path in [*batch.out.rglob("*.html"), *batch.out.rglob("*.csv")]:
        text = path.read_text("utf8")
        assert [word for word in (CANARY, "HIDDEN-CANARY", SEED, "<script>") if word in text] == []


def processes_that_sleep():
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if f"sleep\0{SLEEP}" in path.read_text() else []
        except OSError:
            pass
    return found


@pytest.fixture(scope="module")
def honest_class(tmp_path_factory):
    batch = Class(tmp_path_factory.mktemp("honest"))
    for name, data in (cases.CARELESS | cases.REJECTED).items():
        batch.put(name, data)
    return batch.grade()


@pytest.mark.parametrize("name", cases.CARELESS)
def test_careless_but_right_work_gets_full_marks(honest_class, name):
    result = honest_class.results[name.split("/")[0].removesuffix(".ipynb")]
    assert (result["status"], result["points"]) == ("graded", cases.ALL), result["messages"]


@pytest.mark.parametrize("name", cases.REJECTED)
def test_what_cannot_be_read_gets_a_reason_in_both_languages(honest_class, name):
    result = honest_class.results[name.removesuffix(".ipynb")]
    chinese, english = result["reason"].strip("«»").split("||")
    assert (result["status"], result["points"]) == ("rejected", 0)
    assert (has_chinese(chinese), has_chinese(english)) == (True, False)


def test_a_chinese_name_in_a_zip_of_windows_is_read(honest_class):
    assert honest_class.results["zipped_in_china.zip"]["file"] == "zipped_in_china.zip/作业.ipynb"


def has_chinese(text):
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def test_every_student_has_one_result(honest_class):
    students = {name.split("/")[0] for name in (*cases.CARELESS, *cases.REJECTED)}
    assert len(honest_class.results) == len(students) + len(NEIGHBOURS)


def test_killing_the_grader_ends_everything_in_its_sandboxes(tmp_path):
    batch = Class(tmp_path)
    batch.attack("sleeper", cases.BREAKING_OUT["a_daemon"][0], "import time\ntime.sleep(99)")
    command = [
        sys.executable,
        "-m",
        "classroom",
        "grade",
        batch.inbox,
        "--assignments",
        tmp_path / "assignments",
    ]
    grader = subprocess.Popen(
        [*command, "--assignment", "small", "--out", batch.out], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    assert soon(processes_that_sleep)
    grader.kill()
    grader.wait()
    assert soon(lambda: not processes_that_sleep())


def test_a_sandbox_that_does_not_answer_is_killed(monkeypatch):
    monkeypatch.setattr("classroom.sandbox._GRACE", 0.2)
    with Sandbox(["numpy"], 256) as sandbox:
        sandbox.open([cases.BREAKING_OUT["a_daemon"][0].replace("{sleep}", SLEEP)], (), 10)
        first = sandbox.first
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(BrokenError):
            sandbox.ask({"name": "os"}, 0.2)
    assert soon(lambda: not Path(f"/proc/{first}").exists() and not processes_that_sleep())


@pytest.mark.parametrize("harmless", [[], ["after = 1\nagain = 2"]])
def test_what_a_statement_leaves_behind_is_blamed_on_no_other(harmless):
    leave = """
def leave():
    import os, time
    global held
    held, (ready, tell) = b"x" * (50 << 20), os.pipe()
    if not os.fork():
        os.write(tell, b"1")
        time.sleep(60)
    os.read(ready, 1)
leave()"""
    with Sandbox(["numpy"], 64) as sandbox:
        answer = sandbox.open(["before = 1", leave, *harmless], (), 10)
    assert answer == {"stuck": [3, 1, 10], "failed": "memory"}


def soon(condition):
    until = time.monotonic() + 60
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return found
