"""Release, check and grade assignments: python -m classroom {release,check,grade} --help"""

import argparse
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from book import ROOT
from classroom.assignment import ASSIGNMENTS, assignment_names, read_assignment
from classroom.check import problems
from classroom.intake import collect
from classroom.release import SITE, leaks, release
from classroom.report import write_reports
from classroom.roster import read_roster
from classroom.run import run_all
from classroom.sandbox import SandboxError, probe


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ValueError, SandboxError, OSError) as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        print(
            "\n已停下；再运行同一条命令就接着评 / stopped; the same command goes on from here",
            file=sys.stderr,
            flush=True,
        )
        os._exit(130)  # without waiting for the threads: their sandboxes end with this process


def _release(options):
    assignments = [read_assignment(name, options.assignments) for name in _names(options)]
    if not options.names:
        assignments = [one for one in assignments if not _says_what_it_lacks(one)]
    for assignment in assignments:
        release(assignment, options.out)
        print(f"{assignment.name}: {options.out}/student, {options.out}/instructor")
    found = leaks(assignments, options.out / "student", SITE if SITE.exists() else None)
    if found:
        raise ValueError("发布的文件里有答案 / a solution is in what is released:\n" + "\n".join(found))
    print("发布的笔记本里没有答案 / no solution in the student notebooks")
    if SITE.exists():
        print(f"{SITE} 里也没有 / nor on the site")


def _says_what_it_lacks(assignment):
    """Say in one line if packages of an assignment are not installed: its pictures could not be drawn."""
    missing = [name for name in assignment.packages if not find_spec(name)]
    if missing:
        install = f"{sys.executable} -m pip install -c constraints.txt {' '.join(missing)}"
        print(f"{assignment.name}: 跳过，缺少 / left out, missing: {', '.join(missing)}; {install}")
    return missing


def _check(options):
    found = []
    for name in _names(options):
        found += [f"{name}: {problem}" for problem in problems(read_assignment(name, options.assignments))]
        print(f"{name}: 检查完毕 / checked")
    if found:
        raise ValueError("\n".join(found))


def _grade(options):
    assignment = read_assignment(options.assignment, options.assignments)
    roster = read_roster(options.roster) if options.roster else ()
    if options.jobs < 1:
        raise ValueError(f"--jobs 至少是 1，现在是 {options.jobs} / --jobs must be at least 1")
    if options.out.resolve().is_relative_to(options.inbox.resolve()):
        raise ValueError(
            f"--out {options.out} 在收件夹里面，下次会被当成作业；换一个 / "
            "--out lies in the inbox and would be taken for a submission the next time; choose another"
        )
    # Before anything else: without a sandbox there is no grading.
    versions = probe(assignment.packages, assignment.memory)
    jobs = collect(options.inbox, assignment, roster)
    if not jobs:
        raise ValueError(f"{options.inbox} 里没有作业 / there are no submissions in it")
    seed = _log(options, assignment, versions)
    results = run_all(
        jobs, options.out, assignment.job(), seed, workers=options.jobs, scheduler=options.scheduler
    )
    write_reports(options.out, assignment, results, roster)
    for name in ("grades.csv", "feedback", "report.html"):
        print(options.out / name)
    return int(any(result["status"] == "failed" for result in results))


def _log(options, assignment, versions):
    """Return the seed of the class: the one of this folder if grading has begun there, else a new one, written down."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "log.json"
    now = {
        "assignment": assignment.name,
        "digest": assignment.digest,
        "seed": options.seed or secrets.token_hex(16),
        "versions": {"python": platform.python_version(), **versions, "bubblewrap": _version_of("bwrap")},
    }
    if path.exists():
        before = json.loads(path.read_text("utf8"))
        different = [key for key in now if before.get(key) != now[key] and (key != "seed" or options.seed)]
        if different:
            raise ValueError(
                f"{options.out} 里的成绩是用别的 {'、'.join(different)} 评的；换一个 --out / "
                f"the grades in {options.out} were made with another {', '.join(different)}; choose another --out"
            )
        return before["seed"]
    path.touch(mode=0o600)  # who knows the seed knows the hidden numbers
    path.write_text(json.dumps(now, ensure_ascii=False, indent=1) + "\n", "utf8")
    return now["seed"]


def _version_of(program):
    path = shutil.which(program)
    return subprocess.run([path, "--version"], capture_output=True, text=True).stdout.strip() if path else ""


def _names(options):
    return options.names or assignment_names(options.assignments)


def _parser():
    parser = argparse.ArgumentParser(prog="python -m classroom", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run, words in (
        ("release", _release, "学生笔记本和教师包 / student notebooks and instructor pack"),
        ("check", _check, "答案得满分，空白得 0 分，每项隐藏检查都错过一次 / prove the assignments"),
        ("grade", _grade, "在沙箱里评一个班的作业 / grade the submissions of a class in a sandbox"),
    ):
        command = commands.add_parser(name, help=words, description=words)
        command.set_defaults(run=run)
        command.add_argument(
            "--assignments",
            type=Path,
            default=ASSIGNMENTS,
            metavar="DIR",
            help="作业源文件的文件夹 / folder of the sources",
        )
        if name != "grade":
            command.add_argument("names", nargs="*", metavar="NAME", help="例如 / such as a1_order")
        if name == "release":
            command.add_argument("--out", type=Path, default=ROOT / "_build" / "release", metavar="DIR")
        if name == "grade":
            _add_grading(command)
    return parser


def _add_grading(command):
    command.add_argument(
        "inbox", type=Path, metavar="INBOX", help="文件夹或 zip / folder or zip of the submissions"
    )
    command.add_argument("--assignment", required=True, metavar="NAME")
    command.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="成绩和反馈 / grades and feedback"
    )
    command.add_argument("--roster", type=Path, metavar="CSV", help="id,name（学号、姓名）")
    command.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="同时评几份 / how many at once"
    )
    command.add_argument(
        "--seed", metavar="TEXT", help="重评时用 log.json 里的种子 / the seed of log.json, to grade again"
    )
    command.add_argument("--scheduler", metavar="ADDRESS", help="Dask, tcp://host:8786")


if __name__ == "__main__":
    sys.exit(main())
