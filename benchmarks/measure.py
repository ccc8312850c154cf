"""What the benchmarks share: fair rounds, the circumstances, one table, one CSV."""

import csv
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
# Freed memory is kept for the next call, as the allocators of accelerators do. Otherwise the numbers are those of
# the kernel of the operating system, which hands out large blocks page by page: clone() is then 7 times copy_().
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}


def in_a_process_of_its_own(script, *arguments, threads):
    """Run a script with a number of threads that holds for every library; return False if it fails."""
    environment = {
        **os.environ,
        **KEEP_MEMORY,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
    }
    command = [sys.executable, script, "--threads", str(threads), *arguments]
    return subprocess.run(command, env=environment).returncode == 0


def interleaved(calls, rounds, repeat=1):
    """Time every call once a round, in shuffled order, after one round to warm up.

    Returns {name: [(wall, CPU) seconds of each round]}. What else runs on the machine meets all calls alike, and
    comparing within a round cancels what is left.
    """
    times = {name: [] for name in calls}
    for number in range(rounds + 1):
        names = list(calls)
        random.Random(number).shuffle(names)
        for name in names:
            call = calls[name]
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(repeat):
                call()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if number:
                times[name].append((wall / repeat, cpu / repeat))
    return times


def summary(times, limit):
    """Return {name: {milliseconds, ratio, cpu_ratio}}, ratios being medians of those to `limit` in a round."""
    found = {}
    for name, rounds in times.items():
        ratios = [
            [mine / other for mine, other in zip(one, two, strict=True)]
            for one, two in zip(rounds, times[limit], strict=True)
        ]
        found[name] = {
            "milliseconds": round(1000 * statistics.median(wall for wall, _ in rounds), 5),
            "ratio": round(statistics.median(wall for wall, _ in ratios), 3),
            "cpu_ratio": round(statistics.median(cpu for _, cpu in ratios), 3),
        }
    return found


def circumstances(*packages):
    """Where and with what it was measured, the same columns in every CSV."""
    return {
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: installed(name) for name in packages},
    }


def cpu():
    """The name of the processor."""
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def installed(name):
    """The version of a package, or nothing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def write(name, rows):
    """Write the rows to results/<name>.csv."""
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{name}.csv", "w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(rows, columns):
    """Print the rows as a table of these columns."""
    cells = [columns, *([str(row[column]) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
