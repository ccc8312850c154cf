"""Claim: a class of a hundred is graded in one go; killing the grader or a worker half-way changes no grade.

    python benchmarks/classroom.py [--assignment a2_rope] [--students 100] [--jobs 2] [--no-cluster]

The class is made up from the assignment: right answers, wrong ones, careless files, and hostile code. It is graded three
times with the same seed: in one go; killed (SIGKILL) half-way and started again; on a Dask cluster of two workers, of which
one is killed half-way, with one submission more that kills every worker it meets. The last needs the package distributed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import circumstances, show, write

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from classroom.assignment import pick, read_assignment  # noqa: E402
from tests.classroom_cases import BREAKING_OUT, FORGING, notebook, zipped  # noqa: E402

HOSTILE = [
    "a_loop_in_the_cell",
    "a_fork_storm",
    "memory",
    "output_of_100_megabytes",
    "kills_everybody",
    "ends_the_process",
]
POISON = "poison"
# Loaded by the workers of the cluster: the sandbox lets no submission do this, so it is done for one of them.
PRELOAD = f"""
import os
import classroom.run as run
real = run.real = getattr(run, "real", run.grade_submission)  # Dask loads this file twice
def grade_submission(job, *rest):
    if job["student"] == "{POISON}":
        os.kill(os.getpid(), 9)
    return real(job, *rest)
run.grade_submission = grade_submission
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--assignment", default="a2_rope")
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-cluster", action="store_true")
    options = parser.parse_args()
    assignment = read_assignment(options.assignment)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options, assignment)
        kinds = bench.make_class()
        rows = [bench.in_one_go(), bench.killed_and_resumed()]
        if not options.no_cluster:
            rows.append(bench.on_a_cluster())
        bench.check(kinds)
    columns = ["way", "students", "seconds", "seconds_each", "memory_mib", "memory_half_way_mib", "regraded"]
    about = circumstances("numpy", "torch", "distributed")
    write(f"classroom-{options.assignment}", [about | row for row in rows])
    show(rows, columns)


class Bench:
    def __init__(self, folder, options, assignment):
        self.folder, self.options, self.assignment = folder, options, assignment
        self.inbox, self.grades = folder / "inbox", {}
        self.inbox.mkdir()

    def make_class(self):
        """Write the submissions and return {student: what kind of work it is}."""
        right = [pick(question.solution, "en") for question in self.assignment.questions]
        attacks = [FORGING[name] for name in sorted(FORGING)] + [BREAKING_OUT[name][0] for name in HOSTILE]
        kinds = {}
        for i in range(self.options.students):
            kind, name = ("right", "wrong", "careless", "right", "hostile")[i % 5], f"s{i:03d}"
            cells = list(right)
            if kind == "wrong":
                question = self.assignment.questions[i % len(right)]
                cells[i % len(right)] = pick(question.wrong[i % len(question.wrong)], "en")
            if kind == "hostile":
                cells = [*right[1:], attacks[i // 5 % len(attacks)].replace("{sleep}", "99")]
            files = {f"{name}.ipynb": notebook(cells)}
            if kind == "careless":
                files = [
                    {
                        f"{name} (1).ipynb": b"\xef\xbb\xbf"
                        + notebook(["!pip install numpy", *cells, "exit()"])
                    },
                    {f"{name}.py": "\n\n".join(cells).encode("utf-16")},
                    {f"{name}.zip": zipped({"作业/hw.ipynb": notebook([*cells, *cells])})},
                ][i % 3]
            for file, data in files.items():
                (self.inbox / file).write_bytes(data)
            kinds[name] = kind
        return kinds

    def command(self, out, *more):
        words = [sys.executable, "-m", "classroom", "grade", self.inbox, "--assignment", self.assignment.name]
        return [
            *map(str, words),
            "--out",
            str(out),
            "--seed",
            "benchmark",
            "--jobs",
            str(self.options.jobs),
            *more,
        ]

    def in_one_go(self):
        out = self.folder / "one"
        return self.row("one go", out, *self.run(out))

    def killed_and_resumed(self):
        out = self.folder / "two"
        first = self.run(out, kill_after=self.options.students // 2)
        before = {path: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}
        second = self.run(out)
        again = sum(path.stat().st_mtime_ns != when for path, when in before.items())
        seconds, memory, half_way = (first[0] + second[0], max(first[1], second[1]), second[2])
        return self.row(f"killed after {len(before)}, resumed", out, seconds, memory, half_way) | {
            "regraded": again
        }

    def on_a_cluster(self):
        (self.inbox / f"{POISON}.ipynb").write_bytes(notebook([]))
        out, preload = self.folder / "three", self.folder / "preload.py"
        preload.write_text(PRELOAD)
        environment = os.environ | {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "PYTHONPATH": str(ROOT),
        }
        dask, address = [sys.executable, "-m", "distributed.cli."], "tcp://127.0.0.1:8799"
        start = [
            [
                *dask[:2],
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "8799",
                "--no-dashboard",
            ],
            *[
                [
                    *dask[:2],
                    "distributed.cli.dask_worker",
                    address,
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--preload",
                    preload,
                ]
            ]
            * 2,
        ]
        processes = [
            subprocess.Popen(
                list(map(str, words)),
                env=environment,
                cwd=self.folder,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for words in start
        ]
        try:
            time.sleep(5)
            measured = self.run(
                out, "--scheduler", address, half=lambda: os.killpg(processes[2].pid, signal.SIGKILL)
            )
        finally:
            for process in processes:
                process.poll() is None and os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        (self.inbox / f"{POISON}.ipynb").unlink()
        return self.row("Dask, two workers, one killed half-way", out, *measured)

    def run(self, out, *more, kill_after=None, half=None):
        """Grade, and return (seconds, most memory of the grader in MiB, the same half-way)."""
        start, half_way, seen = time.monotonic(), 0, 0
        process = subprocess.Popen(
            self.command(out, *more), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            time.sleep(0.1)
            done = len(list((out / "results").glob("*.json"))) if (out / "results").exists() else 0
            seen = memory_of(process.pid) or seen
            if done >= self.options.students // 2 and not half_way:
                half_way = seen
                if half:
                    half()
            if kill_after and done >= kill_after:
                process.kill()
                process.wait()
        return time.monotonic() - start, seen, half_way

    def row(self, way, out, seconds, memory, half_way):
        results = [json.loads(path.read_text("utf8")) for path in sorted((out / "results").glob("*.json"))]
        self.grades[way] = {result["key"]: (result["status"], result["points"]) for result in results}
        students = self.options.students
        return {
            "way": way,
            "students": len(results),
            "seconds": round(seconds, 1),
            "seconds_each": round(seconds / students, 2),
            "memory_mib": memory,
            "memory_half_way_mib": half_way,
            "regraded": 0,
        }

    def check(self, kinds):
        """Exit unless everybody was graded, the grades are what they must be, and the same every time."""
        most, problems = self.assignment.points, []
        first = next(iter(self.grades.values()))
        for way, grades in self.grades.items():
            status, points = grades.pop(POISON, ("failed", 0))
            if (status, points) != ("failed", 0):
                problems.append(f"{way}: the submission that kills its worker is {status}")
            if grades != first or set(grades) != set(kinds):
                different = sorted(set(grades.items()) ^ set(first.items()))
                problems.append(f"{way}: other grades than in one go: {different}")
        for student, (status, points) in first.items():
            full = kinds[student] in ("right", "careless")
            if status != "graded" or (points == most) != full:
                problems.append(f"{student}, {kinds[student]}: {status}, {points} of {most} points")
        if problems:
            sys.exit("\n".join(problems))
        print(
            f"{len(first)} submissions of {self.assignment.name}: the same grades in {len(self.grades)} ways"
        )


def memory_of(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024
    except (OSError, StopIteration):
        return 0


if __name__ == "__main__":
    main()
