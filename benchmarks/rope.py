"""Claim: turning q and k costs little more than copying them, and less than in every other package.

    python benchmarks/rope.py [--quick]

Every call is first compared with NumPy in float64: a wrong one of ours ends the run, a wrong one of others is named
and not timed. The measure is the time over that of `copy_` of q and k, twice for a gradient, in the same round: of
the processor with one thread, which others on the machine do not lengthen, and on the wall with two.
"""

import argparse
import sys
import warnings
from functools import partial

import numpy as np
import torch
from measure import circumstances, in_a_process_of_its_own, interleaved, show, summary, write
from peers import HEADS_FIRST, PACKAGES, TOKENS_FIRST, installed_packages

from companion import rope as numpy_rope
from companion.frequencies import inverse_frequencies
from companion.rope_torch import apply_rope, apply_rope_

SHAPES = {"large": (1, 32, 2048, 128), "middle": (4, 8, 512, 64), "decode": (1, 32, 1, 128)}
FIRST = {"large": 0, "middle": 0, "decode": 1001}  # odd: half precision holds 1000
ROUNDS = {"large": 15, "middle": 41, "decode": 41}
COPY = "copy_"
COLUMNS = "threads operation shape dtype pairing call milliseconds ratio cpu_ratio error".split()

# (operation, pairing, dtype, shapes, call, at most so many copies), on one thread
BOTH = ("large", "middle")
GOALS = [
    ("forward", "adjacent", "float32", BOTH, "companion in place", 0.8),
    ("forward", "adjacent", "float32", BOTH, "companion out=", 1.5),
    ("forward", "half", "float32", BOTH, "companion in place", 2.5),
    ("forward", "adjacent", "bfloat16", BOTH, "companion in place", 4.5),
    ("forward + backward", "adjacent", "float32", BOTH, "companion", 1.8),
    ("forward", "adjacent", "float32", ("decode",), "companion in place", 5.0),
    ("forward", "adjacent", "float32", BOTH, "companion in NumPy", 1.5),
    ("forward", "half", "float32", BOTH, "companion out=", 2.0),
    ("forward", "half", "float32", BOTH, "companion, torch.compile", 2.0),
    ("forward", "adjacent", "bfloat16", BOTH, "companion in place", 2.5),
    ("forward + backward", "half", "float32", BOTH, "companion", 2.0),
    ("forward + backward", "half", "float32", BOTH, "companion, torch.compile", 2.0),
]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds, without the large shape and torch.compile"
    )
    parser.add_argument(
        "--threads", type=int, help="set by the script, which starts a process for each number"
    )
    arguments = parser.parse_args()
    if not arguments.threads:
        quick = ["--quick"] if arguments.quick else []
        sys.exit(not all(in_a_process_of_its_own(__file__, *quick, threads=n) for n in (1, 2)))
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore")  # of the packages, about themselves
    cases = list(all_cases(arguments.quick))
    packages = installed_packages()
    errors = {case: check(case, packages, arguments) for case in cases}
    rows = [row for case in cases for row in measured(case, errors[case], packages, arguments)]
    write(f"rope-{arguments.threads}-threads" + ("-quick" if arguments.quick else ""), rows)
    show(rows, COLUMNS)
    if arguments.threads == 1:
        show_goals(rows)
    show_packages(rows)


def all_cases(quick):
    """(operation, shape, dtype, pairing)"""
    for operation in ("forward", "forward + backward"):
        for shape in SHAPES:
            if (quick and shape == "large") or (operation != "forward" and shape == "decode"):
                continue
            for dtype in ("float32", "bfloat16"):
                for pairing in ("half", "adjacent"):
                    yield operation, shape, dtype, pairing


def candidates(case, packages, arguments):
    """Yield (name, axes, turn): `turn(q, k)` returns both turned."""
    operation, shape, dtype, pairing = case
    q, (cos, sin) = (
        torch.empty(SHAPES[shape], dtype=dtype_of(case)),
        (torch.from_numpy(t).float() for t in table(case)),
    )
    ours = (torch.complex(cos, sin),) if pairing == "adjacent" else (cos, sin)
    yield (
        "companion",
        HEADS_FIRST,
        lambda q, k: (
            apply_rope(q, *ours, pairing=pairing),
            apply_rope(k, *ours, pairing=pairing),
        ),
    )
    if operation == "forward":
        out_q, out_k = torch.empty_like(q), torch.empty_like(q)
        yield (
            "companion in place",
            HEADS_FIRST,
            lambda q, k: (
                apply_rope_(q, *ours, pairing=pairing),
                apply_rope_(k, *ours, pairing=pairing),
            ),
        )
        yield (
            "companion out=",
            HEADS_FIRST,
            lambda q, k: (
                apply_rope(q, *ours, pairing=pairing, out=out_q),
                apply_rope(k, *ours, pairing=pairing, out=out_k),
            ),
        )
        if dtype == "float32" and arguments.threads == 1:
            yield "companion in NumPy", HEADS_FIRST, both(in_numpy(cos.numpy(), sin.numpy(), pairing))
    textbook = (
        textbook_half(cos.to(q.dtype), sin.to(q.dtype)) if pairing == "half" else textbook_complex(*ours)
    )
    yield "textbook", HEADS_FIRST, both(textbook)
    if not arguments.quick:
        torch._dynamo.reset()
        real = textbook if pairing == "half" else textbook_stacked(cos, sin)
        yield "textbook, torch.compile", HEADS_FIRST, both(torch.compile(real, dynamic=False))
        compiled = torch.compile(lambda x: apply_rope(x, cos, sin, pairing=pairing), dynamic=False)
        yield "companion, torch.compile", HEADS_FIRST, both(compiled)
    for name in packages:
        its_pairing, axes, turn = PACKAGES[name](q, FIRST[shape])
        if its_pairing == pairing:
            yield name, axes, turn


def both(turn):
    return lambda q, k: (turn(q), turn(k))


def in_numpy(cos, sin, pairing):
    return lambda x: torch.from_numpy(numpy_rope.apply_rope(x.numpy(), cos, sin, pairing=pairing))


def textbook_half(cos, sin):
    """As most pages have it: two halves, joined again."""

    def turn(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    return turn


def textbook_complex(turns):
    """As in Meta's first Llama."""

    def turn(x):
        numbers = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(numbers * turns).flatten(-2).type_as(x)

    return turn


def textbook_stacked(cos, sin):
    """The same in real numbers, since torch.compile does not fuse complex ones."""

    def turn(x):
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).type_as(x)

    return turn


def table(case):
    shape = case[1]
    positions = FIRST[shape] + np.arange(SHAPES[shape][-2])
    return numpy_rope.rotation_table(positions, inverse_frequencies(SHAPES[shape][-1]))


def dtype_of(case):
    return getattr(torch, case[2])


def inputs(case, axes):
    """q and k, and a gradient for each."""
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(SHAPES[case[1]], generator=generator).to(dtype_of(case)) for _ in range(4)]
    if axes == TOKENS_FIRST:
        made = [x.transpose(1, 2).contiguous() for x in made]
    return [x.requires_grad_(case[0] != "forward") for x in made[:2]], made[2:]


def result(case, turn, x, gradient):
    """One call: q and k turned, or their gradients."""
    return turn(*x) if case[0] == "forward" else torch.autograd.grad(turn(*x), x, gradient)


def check(case, packages, arguments):
    """Return {name: largest error} of those that are right; end the run if one of ours is wrong."""
    cos, sin = table(case)
    x, gradient = inputs(case, HEADS_FIRST)
    given, sin = (x, sin) if case[0] == "forward" else (gradient, -sin)
    exact = [numpy_rope.apply_rope(t.double().numpy(), cos, sin, pairing=case[3]) for t in given]
    largest, eps = max(t.abs().max().item() for t in given), torch.finfo(dtype_of(case)).eps
    errors = {}
    for name, axes, turn in candidates(case, packages, arguments):
        got = result(case, turn, *inputs(case, axes))
        got = [t.transpose(1, 2) if axes == TOKENS_FIRST else t for t in got]
        error = max(np.abs(t.double().numpy() - want).max() for t, want in zip(got, exact, strict=True))
        if name.startswith("companion") and error > largest * (eps + 4 * torch.finfo(torch.float32).eps):
            sys.exit(f"{name} is wrong by {error:.2g}: {', '.join(case)}")
        # The angles of others are float32, their tables of this dtype.
        if error > largest * max(1e-3, 4 * eps):
            print(f"{name} is wrong by {error:.2g} and not timed: {', '.join(case)}")
            continue
        errors[name] = error
    return errors


def measured(case, errors, packages, arguments):
    """Time what is right; return the rows of the CSV."""
    x, gradient = inputs(case, HEADS_FIRST)
    target = [torch.empty_like(t) for t in gradient]
    copies = 1 if case[0] == "forward" else 2

    def copy():
        for _ in range(copies):
            for to, t in zip(target, gradient, strict=True):
                to.copy_(t)

    calls = {COPY: copy}
    for name, axes, turn in candidates(case, packages, arguments):
        if name in errors:
            its_x, its_gradient = inputs(case, axes) if axes == TOKENS_FIRST else (x, gradient)
            calls[name] = partial(result, case, turn, its_x, its_gradient)
    rounds, repeat = 3 if arguments.quick else ROUNDS[case[1]], 200 if case[1] == "decode" else 1
    found = summary(interleaved(calls, rounds, repeat), COPY)
    where = dict(zip(("operation", "shape", "dtype", "pairing"), case, strict=True))
    about = circumstances("torch", "numpy", *PACKAGES)
    for name, numbers in found.items():
        error = f"{errors[name]:.1e}" if name in errors else ""
        yield {"threads": arguments.threads, **where, "call": name, **numbers, "error": error, **about}


def show_goals(rows):
    print("\nGoals, in copies of q and k, one thread:")
    ratios = {tuple(row[key] for key in COLUMNS[1:6]): row["cpu_ratio"] for row in rows}
    for operation, pairing, dtype, shapes, call, goal in GOALS:
        for shape in shapes:
            ratio = ratios.get((operation, shape, dtype, pairing, call))
            if ratio is not None:
                verdict = "met" if ratio <= goal else "missed"
                print(
                    f"  {verdict:7} {ratio:6.2f} ≤ {goal}: {call}, {operation}, {pairing}, {dtype}, {shape}"
                )


def show_packages(rows):
    print("\nThe fastest of the packages against the fastest and the allocating call of ours:")
    for case in dict.fromkeys(tuple(row[key] for key in COLUMNS[1:5]) for row in rows):
        times = {
            row["call"]: row["cpu_ratio" if row["threads"] == 1 else "ratio"]
            for row in rows
            if tuple(row[key] for key in COLUMNS[1:5]) == case
        }
        packages = {name: times[name] for name in PACKAGES if name in times}
        if packages:
            name = min(packages, key=packages.get)
            ours = min(time for call, time in times.items() if call.startswith("companion"))
            verdict = "faster" if ours < packages[name] else "SLOWER"
            print(
                f"  {verdict} {packages[name] / ours:5.2f} times (allocating {packages[name] / times['companion']:5.2f}) "
                f"than {name}: {', '.join(case)}"
            )


if __name__ == "__main__":
    main()
