"""Run many jobs, once each: the result files are the truth, and the same command goes on where it was stopped.

Threads suffice on one machine, for each job is a sandbox of its own; on a Dask cluster the same jobs run elsewhere. A job
writes its result itself and returns nothing large: a cluster that loses a worker then repeats the jobs of that moment only.
"""

import json
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from classroom.grading import grade_submission
from classroom.sandbox import SandboxError

FAILED = "«评分程序出了错，请人工看一看：{0}||grading itself failed, please look at it: {0}»"


def run_all(jobs, out, assignment, seed, *, workers=2, scheduler=None, tell=None):
    """Grade every job that has no result in `out` yet, and return the results of all, in the order of the jobs."""
    results = Path(out) / "results"
    results.mkdir(parents=True, exist_ok=True)
    for left in results.glob(".*.tmp"):  # of a process that was killed while writing
        left.unlink()
    todo = [job for job in jobs if not _is_done(job, results)]
    progress = Progress(len(jobs), len(jobs) - len(todo), tell or _to_stderr)
    with _executor(workers, scheduler) as executor:
        suspects = _grade(todo, executor, progress, (str(results), assignment, seed))
        # A cluster blames all that a lost worker was doing: one after the other shows which of them it was.
        for job in suspects:
            for _ in _grade([job], executor, progress, (str(results), assignment, seed)):
                _write(results, _failed(job, assignment, "a worker was lost"))
                progress.one_more()
    return [json.loads((results / f"{job['key']}.json").read_text("utf8")) for job in jobs]


def _grade(jobs, executor, progress, rest):
    """Run the jobs, and return those that were lost with their worker."""
    lost, waiting = [], {executor.submit(run_job, job, *rest): job for job in jobs}
    while waiting:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            job = waiting.pop(future)
            try:
                refusal = future.result()
            except Exception:  # of the cluster: a job itself raises nothing
                lost.append(job)
                continue
            finally:
                del future  # a cluster computes again what somebody still holds
            if refusal:
                executor.shutdown(wait=False, cancel_futures=True)
                raise SandboxError(refusal)
            progress.one_more()
    return lost


def run_job(job, results, assignment, seed):
    """Grade one submission and write its result; return None, or why there is no sandbox to run it in.

    It may be called twice: the file is the same. It raises nothing, for an exception may get lost on its way through a cluster.
    """
    try:
        result = grade_submission(job, assignment, seed)
    except SandboxError as error:
        return str(error)
    except Exception as error:
        result = _failed(job, assignment, f"{type(error).__name__}: {error}")
    return _write(Path(results), result)


class Progress:
    """One line after each job: how many, how fast, and for how long still."""

    def __init__(self, total, done, tell):
        self.total, self.done, self.tell, self.count, self.start = total, done, tell, 0, time.monotonic()
        if done:
            tell(f"已有 {done} 份结果，接着评其余的 / {done} results are there, going on with the rest")

    def one_more(self):
        self.done, self.count = self.done + 1, self.count + 1
        each = (time.monotonic() - self.start) / self.count
        left = round(each * (self.total - self.done))
        clock = f"{left // 60}:{left % 60:02d}"
        self.tell(f"{self.done}/{self.total}  {each:.1f} s  还要 / left {clock}")


def _to_stderr(line):
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _executor(workers, scheduler):
    if scheduler is None:
        with ThreadPoolExecutor(workers) as executor:
            yield executor
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            f"--scheduler {scheduler} 需要 distributed：pip install '.[distributed]' / needs the package distributed"
        ) from None
    try:
        client = Client(scheduler, timeout=20)
    except (OSError, ValueError) as error:
        raise ValueError(f"连不上 {scheduler} / cannot reach the scheduler: {error}") from None
    with client:
        # pure=False: Dask would take two submissions that are equal for one job.
        yield client.get_executor(pure=False)


def _is_done(job, results):
    try:
        result = json.loads((results / f"{job['key']}.json").read_text("utf8"))
    except (OSError, ValueError):
        return False
    return result["status"] != "failed" and (result["sha256"], result["file"]) == (job["sha256"], job["file"])


def _failed(job, assignment, error):
    about = {key: job[key] for key in ("key", "id", "student", "file", "sha256", "notes")}
    maximum = sum(question["points"] for question in assignment["questions"])
    reason = FAILED.format(error[:300])
    return about | {"status": "failed", "reason": reason, "points": 0, "maximum": maximum, "questions": []}


def _write(results, result):
    path = results / f"{result['key']}.json"
    new = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    new.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", "utf8")
    os.replace(new, path)
