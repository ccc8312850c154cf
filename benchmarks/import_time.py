"""Claim: `import companion.rope` takes less than 60 ms beyond NumPy.

python benchmarks/import_time.py [--quick]
"""

import argparse
import statistics
import subprocess
import sys

from measure import circumstances, show, write

MODULES = ["companion.rope", "companion.attention", "companion.frequency_scaling", "companion.relative_bias"]
PROGRAM = """
import sys, time, numpy
start = time.perf_counter()
import {module}
print(1000 * (time.perf_counter() - start), "torch" in sys.modules)
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds")
    rounds = 3 if parser.parse_args().quick else 15
    rows = []
    for module in MODULES:
        times = []
        for _ in range(rounds):
            command = [sys.executable, "-c", PROGRAM.format(module=module)]
            milliseconds, torch = subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.split()
            if torch == "True":
                sys.exit(f"{module} loads torch")
            times.append(float(milliseconds))
        rows.append(
            {"module": module, "milliseconds": round(statistics.median(times), 2), **circumstances("numpy")}
        )
    write("import_time", rows)
    show(rows, ["module", "milliseconds"])
    print("met" if rows[0]["milliseconds"] < 60 else "missed", "companion.rope < 60 ms")


if __name__ == "__main__":
    main()
