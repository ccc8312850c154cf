"""Claim: on a GPU the kernels are right, and turning q and k takes hardly longer than copying them.

    python benchmarks/gpu.py [--dry-run]

All in one call of at most 8 minutes: the lesson about kernels and its solved variant are executed; outputs and
gradients of all kernels are compared with float64, up to 131 072 positions; then they are timed against a copy,
torch.compile and other packages. What is not installed or leaves no time is named. `results/gpu.csv` is written on
a GPU only: `--dry-run` runs every line of this script in Triton's interpreter on tiny shapes, where times mean nothing.
"""

import argparse
import os
import random
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

DRY = "--dry-run" in sys.argv
if DRY:
    os.environ["TRITON_INTERPRET"] = "1"  # Triton looks at it when it is imported

import torch  # noqa: E402
from measure import circumstances, interleaved, show, summary, write  # noqa: E402
from peers import HEADS_FIRST, PACKAGES, TOKENS_FIRST  # noqa: E402
from rope import textbook_half, textbook_stacked  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from companion import rope_torch  # noqa: E402
from companion.attention_triton import (  # noqa: E402
    alibi_attention,
    attention,
    causal_attention,
    rope_attention,
)
from companion.frequencies import inverse_frequencies  # noqa: E402
from companion.relative_bias import alibi_slopes  # noqa: E402
from companion.rope import rotation_table  # noqa: E402
from companion.rope_triton import apply_rope, apply_rope_qk_  # noqa: E402

ROOT = Path(__file__).parents[1]
DEVICE = "cpu" if DRY else "cuda"
SECONDS = 460
WORKERS = 2 if DRY else 8  # compiling takes longer than all the rest
DTYPES = "float32", "float16", "bfloat16"
EPS32 = torch.finfo(torch.float32).eps
COPY, SDPA = "copy_", "SDPA, causal"

# (batch, query heads, key heads, length, head_dim)
RAGGED = [(2, 4, 2, length, 64) for length in ((1, 7, 33) if DRY else (1, 7, 63, 100, 1000))]
WIDE = (1, 4, 1, 20, 80) if DRY else (1, 4, 1, 777, 128)
LONG = (1, 2, 1, 70, 16) if DRY else (1, 2, 1, 131072, 64)
ROPE_TIMES = {
    "large": (1, 2, 1, 16, 8) if DRY else (4, 32, 8, 8192, 128),
    "long": (1, 2, 1, 24, 8) if DRY else (1, 8, 2, 131072, 128),
    "decode": (2, 2, 1, 1, 8) if DRY else (64, 32, 8, 1, 128),
}
ATTENTION_TIMES = {
    "4096 tokens": (1, 2, 1, 24, 16) if DRY else (4, 32, 8, 4096, 128),
    "16384 tokens": (1, 2, 2, 40, 16) if DRY else (1, 16, 16, 16384, 64),
}
COLUMNS = "operation shape dtype pairing call milliseconds ratio gb_per_s error".split()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry-run", action="store_true", help="in Triton's interpreter, on tiny shapes")
    parser.parse_args()
    if not DRY and not torch.cuda.is_available():
        sys.exit("no GPU that torch can use; python benchmarks/gpu.py --dry-run tries the script without one")
    warnings.simplefilter("ignore")  # of the packages, about themselves
    deadline = time.monotonic() + SECONDS
    about = {
        **chip(),
        **circumstances("torch", "triton", "numpy", "transformers", "liger-kernel", "flash-attn"),
    }
    print(*(f"{name} {value}" for name, value in about.items() if value), sep=", ")
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        checks = [pool.submit(attention_checks, *case) for case in product(KERNELS, DTYPES)]
        checks += [pool.submit(rope_checks, *case) for case in product(PAIRINGS, DTYPES)]
        failures = lessons()
        rows = [row for check in checks for row in check.result()]
    wrong = [row for row in rows if row["verdict"] != "right"]
    failures += ["{call} is wrong, {error}: {shape}, {dtype}, {pairing}".format(**row) for row in wrong]
    wrong = {row["call"] for row in wrong}
    rows += rope_times(wrong, deadline)
    rows += attention_times(wrong, deadline)
    show([{name: row.get(name, "") for name in COLUMNS} for row in rows], COLUMNS)
    show_goals(rows)
    if not DRY:
        names = dict.fromkeys(name for row in rows for name in row)
        write("gpu", [{**{name: row.get(name, "") for name in names}, **about} for row in rows])
    print(*failures or ["nothing failed"], sep="\n")
    print(f"{SECONDS + time.monotonic() - deadline:.0f} s")
    sys.exit(bool(failures))


def chip():
    """The GPU, and the program of the operating system that drives it."""
    if DRY:
        return {"chip": "Triton's interpreter", "capability": "", "driver": "", "cuda": ""}
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, capture_output=True, text=True).stdout.splitlines()
    except FileNotFoundError:
        driver = []
    major, minor = torch.cuda.get_device_capability()
    return {
        "chip": torch.cuda.get_device_name(),
        "capability": f"{major}.{minor}",
        "driver": driver[0] if driver else "unknown",
        "cuda": torch.version.cuda,
    }


# The lesson


def lessons():
    """Execute the lesson about kernels and its solved variant; return what failed. The editions share their code."""
    paths = [ROOT / "chapters/en/10_kernels.ipynb", ROOT / "_build/solved/en/10_kernels.ipynb"]
    missing = [path for path in paths if not path.exists()]
    found = [
        f"{path.relative_to(ROOT)} is missing: python -m book.compose --variant {variant} 10_kernels"
        for path, variant in zip(paths, ("reader", "solved"), strict=True)
        if path in missing
    ]
    for line in found if DRY else []:
        print(f"not executed: {line}")
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(executed, [path for path in paths if path not in missing])
    return [*([] if DRY else found), *(result for result in results if result)]


def executed(path):
    """Run a notebook in a fresh kernel; return what went wrong, or nothing."""
    try:
        import nbclient
        import nbformat
    except ImportError as error:
        return f"{path.relative_to(ROOT)} was not executed: {error}; pip install -e '.[kernels,notebooks]'"
    start = time.monotonic()
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    try:
        notebook = nbformat.read(path, as_version=4)
        client = nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": path.parent}}
        )
        client.execute()
    except Exception as error:  # a wrong answer, a crash of the kernel, a cell that hangs
        return f"{path.relative_to(ROOT)} failed: {str(error)[-2000:]}"
    print(f"{path.relative_to(ROOT)}: executed in {time.monotonic() - start:.0f} s")
    return None


# Correctness


def vectors(shape, dtype, count=1):
    """`count` tensors for the query heads and two for the key heads, with gradients."""
    batch, heads, key_heads, length, width = shape
    sizes = [heads] * count + [key_heads] * 2
    made = (torch.randn(batch, n, length, width, device=DEVICE).to(getattr(torch, dtype)) for n in sizes)
    return [x.requires_grad_() for x in made]


def table(length, width):
    """cos and sin in float64; the kernels take them in float32."""
    made = rotation_table(range(length), inverse_frequencies(width))
    return [torch.from_numpy(t).to(DEVICE) for t in made]


def rope_checks(pairing, dtype):
    """Every rotation against float64: half a unit in the last place of the result, and 4 units of float32."""
    rows = []
    for shape in (*RAGGED, WIDE, LONG):
        (x, _, k), cos_sin = vectors(shape, dtype), table(*shape[-2:])
        back = cos_sin[0], -cos_sin[1]
        turned = apply_rope(x, *cos_sin, pairing=pairing)
        in_place = apply_rope_qk_(x.detach().clone(), k.detach().clone(), *cos_sin, pairing=pairing)
        gradient = torch.autograd.grad(turned, x, x.detach())[0]
        for call, got, given, turns in (
            ("apply_rope", turned, x, cos_sin),
            ("apply_rope, gradient", gradient, x, back),
            ("apply_rope_qk_, q", in_place[0], x, cos_sin),
            ("apply_rope_qk_, k", in_place[1], k, cos_sin),
        ):
            exact = rope_torch.apply_rope(given.detach().double(), *turns, pairing=pairing)
            unit = torch.finfo(got.dtype).eps * (1 if DRY else 0.5)  # the interpreter cuts bfloat16 off
            allowed = unit * exact.abs() + 4 * EPS32 * given.detach().abs().max().double()
            error = (got.detach().double() - exact).abs() / allowed
            rows.append(checked(shape, dtype, pairing, call, error.max().item(), 1.0))
    return rows


def attention_checks(call, dtype):
    """Outputs and gradients against float64: the root of the mean square error of neighbouring rows."""
    rows = []
    for shape in (*RAGGED, WIDE, LONG):
        if shape is LONG and dtype == "float32":
            shape = (*LONG[:3], min(LONG[3], 16384), LONG[4])  # without tensor cores
        x, cos_sin = vectors(shape, dtype), table(*shape[-2:])
        gradient = torch.randn_like(x[0])
        out = KERNELS[call](*x, cos_sin)
        got = out, *torch.autograd.grad(out, x, gradient)
        want = exact_attention(*x, gradient, call, cos_sin)
        rounding = 4 * torch.finfo(out.dtype).eps + 8 * EPS32 * max(1.0, shape[-2] / 64) ** 0.5
        size = max(t.double().square().mean().sqrt().item() for t in want[1:])
        # With one key the gradients of q and k are 0, as a difference of rounded numbers.
        floor = size if shape[-2] == 1 else 1e-3 * size
        for name, mine, exact in zip(("", ", dq", ", dk", ", dv"), got, want, strict=True):
            error = relative_error(mine, exact, floor)
            rows.append(checked(shape, dtype, "", call + name, error, rounding))
    return rows


PAIRINGS = "half", "adjacent"
KERNELS = {
    "causal": lambda q, k, v, cos_sin: causal_attention(q, k, v),
    "ALiBi": lambda q, k, v, cos_sin: alibi_attention(q, k, v, alibi_slopes(q.shape[1])),
    "RoPE inside, half": lambda q, k, v, cos_sin: rope_attention(q, k, v, *cos_sin),
    "RoPE inside, adjacent": lambda q, k, v, cos_sin: rope_attention(q, k, v, *cos_sin, pairing="adjacent"),
}


def exact_attention(q, k, v, gradient, call, cos_sin, rows=512):
    """The definition in float64, some rows of queries at a time; returns out, dq, dk and dv."""
    pairing = call.rpartition(" ")[2] if "RoPE" in call else None
    x = [t.detach().double().requires_grad_() for t in (q, k, v)]
    turned = [rope_torch.apply_rope(t, *cos_sin, pairing=pairing) if pairing else t for t in x[:2]] + x[2:]
    leaves = [t.detach().requires_grad_() for t in turned]
    totals, outs = [torch.zeros_like(t) for t in leaves], []
    slopes = torch.from_numpy(alibi_slopes(q.shape[1])).to(DEVICE)[:, None, None] * (call == "ALiBi")
    group = q.shape[1] // k.shape[1]
    for start in range(0, q.shape[2], rows):
        end = min(start + rows, q.shape[2])
        some = leaves[0][:, :, start:end]
        keys, values = (t[:, :, :end].repeat_interleave(group, 1) for t in leaves[1:])
        places = torch.arange(end, device=DEVICE)
        offsets = places - places[start:, None]
        scores = q.shape[-1] ** -0.5 * some @ keys.mT + slopes * offsets
        out = scores.masked_fill(offsets > 0, -torch.inf).softmax(-1) @ values
        outs.append(out.detach())
        for total, part in zip(
            totals, torch.autograd.grad(out, leaves, gradient[:, :, start:end].double()), strict=True
        ):
            total += part
    if pairing:
        totals[:2] = torch.autograd.grad(turned[:2], x[:2], totals[:2])
    return torch.cat(outs, 2), *totals


def relative_error(got, want, size):
    """The largest relative error of 64 neighbouring rows: late rows are small, and a large early one must not hide them."""
    error, want = (got.detach().double() - want).square(), want.square()
    parts = [t.sum((0, 1, 3)).split(64) for t in (error, want)]
    count = want.numel() / want.shape[2]  # of the numbers in a row
    return max(
        (wrong.sum() / (right.sum() + size**2 * count * len(right))).sqrt().item()
        for wrong, right in zip(*parts, strict=True)
    )


def checked(shape, dtype, pairing, call, error, allowed):
    verdict = "right" if error <= allowed else "wrong"  # NaN is wrong
    where = {"operation": "check", "shape": "·".join(map(str, shape)), "dtype": dtype, "pairing": pairing}
    return {**where, "call": call, "error": f"{error:.2g} of {allowed:.2g}", "verdict": verdict}


# Times


def rope_times(wrong, deadline):
    """Turning q and k, with and without a gradient, in copies of q and k."""
    cases = [
        ("forward", name, "bfloat16", pairing) for name in ROPE_TIMES for pairing in ("half", "adjacent")
    ]
    cases += [("forward", "large", "float32", "half"), ("forward + backward", "large", "bfloat16", "half")]
    for operation, name, dtype, pairing in cases:
        if late(deadline, 20, f"{operation}, {name}, {dtype}, {pairing}"):
            continue
        backward = operation != "forward"
        q, k, _ = vectors(ROPE_TIMES[name], dtype)
        q, k = q.detach(), k.detach()
        cos_sin = [t.float() for t in table(*q.shape[-2:])]
        target = torch.empty_like(q), torch.empty_like(k)

        def copy(target=target, x=(q, k), times=1 + backward):
            for _ in range(times):
                for to, t in zip(target, x, strict=True):
                    to.copy_(t)

        calls, errors = {COPY: copy}, {}
        for call, axes, turn in rotations(q, k, cos_sin, pairing, target, backward):
            x = [t.transpose(1, 2).contiguous() if axes == TOKENS_FIRST else t.clone() for t in (q, k)]
            x = [t.requires_grad_(backward) for t in x]
            errors[call] = error_of(call, turn, x, axes, (q, k), cos_sin, pairing)
            bad = any(name.startswith("apply_rope") for name in wrong)
            if call.startswith("companion") and bad:
                print(f"{call} is not timed, for it is wrong: {name}, {dtype}, {pairing}")
            elif errors[call] > 4 * torch.finfo(q.dtype).eps + 1e-3:  # tables of others are of half precision
                print(f"{call} is not timed, its error is {errors[call]:.2g}: {name}, {dtype}, {pairing}")
            else:
                calls[call] = partial(with_gradient, turn, x) if backward else partial(turn, *x)
        moved = 2 * (1 + backward) * (q.numel() + k.numel()) * q.element_size()
        where = {"operation": operation, "shape": name, "dtype": dtype, "pairing": pairing}
        yield from timed(calls, COPY, where, errors, moved)


def with_gradient(turn, x):
    turned = turn(*x)
    return torch.autograd.grad(turned, x, [t.detach() for t in turned])


def rotations(q, k, cos_sin, pairing, target, backward):
    """Yield (call, axes, turn): `turn(q, k)` returns both turned, with the heads before or behind the tokens."""
    options = {"pairing": pairing}
    yield "companion", HEADS_FIRST, lambda q, k: [apply_rope(x, *cos_sin, **options) for x in (q, k)]
    yield (
        "companion, tokens first",
        TOKENS_FIRST,
        lambda q, k: [apply_rope(x.transpose(1, 2), *cos_sin, **options).transpose(1, 2) for x in (q, k)],
    )
    if not backward:
        yield (
            "companion, q and k in place",
            HEADS_FIRST,
            lambda q, k: apply_rope_qk_(q, k, *cos_sin, **options),
        )
        yield (
            "companion out=",
            HEADS_FIRST,
            lambda q, k: [
                apply_rope(x, *cos_sin, out=out, **options) for x, out in zip((q, k), target, strict=True)
            ],
        )
    textbook = (textbook_half if pairing == "half" else textbook_stacked)(*(t.to(q.dtype) for t in cos_sin))
    torch._dynamo.reset()
    compiled = compile_(textbook)
    yield "textbook, torch.compile", HEADS_FIRST, lambda q, k: [compiled(q), compiled(k)]
    for name, make in others(q, cos_sin, pairing).items():
        yield name, *make[1:]


def others(q, cos_sin, pairing):
    """{name: (pairing, axes, turn)} of the packages that are here and turn such pairs; the others are named."""
    found = {}
    for name, make in OTHERS.items():
        try:
            made = make(q, cos_sin, pairing)
            x = q.transpose(1, 2) if made[1] == TOKENS_FIRST else q
            if made[0] == pairing:
                made[2](x.clone(), x.clone())
                found[name] = made
        except Exception as error:  # not installed, or not for this GPU
            print(f"without {name}: {str(error).strip()[:100]}")
    return found


def compile_(function):
    # In one process Triton cannot interpret and be the back end of torch.compile.
    return torch.compile(function, dynamic=False, backend="eager" if DRY else "inductor")


def transformers(q, cos_sin, pairing):
    with torch.device(DEVICE):
        return PACKAGES["transformers"](q, 0)


def liger(q, cos_sin, pairing):
    """In place if the tokens come first in memory."""
    from liger_kernel.ops.rope import LigerRopeFunction

    doubled = [torch.cat((t, t), -1)[None].to(q.dtype) for t in cos_sin]

    def turn(q, k):
        return [
            x.transpose(1, 2)
            for x in LigerRopeFunction.apply(q.transpose(1, 2), k.transpose(1, 2), *doubled)[:2]
        ]

    return "half", TOKENS_FIRST, turn


def flash_attention(q, cos_sin, pairing):
    from flash_attn.layers.rotary import apply_rotary_emb

    tables = [t.to(q.dtype) for t in cos_sin]
    return (
        pairing,
        TOKENS_FIRST,
        lambda q, k: [apply_rotary_emb(x, *tables, interleaved=pairing == "adjacent") for x in (q, k)],
    )


OTHERS = {"transformers": transformers, "Liger": liger, "flash-attention": flash_attention}


def error_of(call, turn, x, axes, given, cos_sin, pairing):
    """The largest error relative to the largest number; x is left as it was, also by calls in place."""
    with torch.no_grad():
        got = turn(*(t.detach().clone() for t in x))
    largest = 0.0
    for mine, t in zip(got, given, strict=True):
        exact = rope_torch.apply_rope(t.double(), *(c.double() for c in cos_sin), pairing=pairing)
        mine = mine.transpose(1, 2) if axes == TOKENS_FIRST else mine
        largest = max(largest, ((mine.double() - exact).abs().max() / t.abs().max()).item())
    return largest


def attention_times(wrong, deadline):
    """Attention with positions, in causal SDPA without any."""
    for operation in ("forward", "forward + backward"):
        for name, shape in ATTENTION_TIMES.items():
            if late(deadline, 60, f"attention, {operation}, {name}"):
                continue
            x = vectors(shape, "bfloat16")
            if operation == "forward":
                x = [t.detach() for t in x]
            cos_sin = [t.float() for t in table(*shape[-2:])]
            calls = {}
            for call, function in attentions(x, cos_sin):
                if any(name.startswith(call.removeprefix("companion, ")) for name in wrong):
                    print(f"{call} is not timed, for it is wrong")
                    continue
                run = partial(function, *x)
                if operation != "forward":
                    run = partial(lambda run, x: torch.autograd.grad(run().sum(), x), run, x)
                try:
                    run()
                except Exception as error:
                    if call.startswith("companion"):
                        raise
                    print(f"without {call}: {str(error).strip().splitlines()[:1]}")
                    continue
                calls[call] = run
            yield from timed(
                calls, SDPA, {"operation": f"attention, {operation}", "shape": name, "dtype": "bfloat16"}
            )


def attentions(x, cos_sin):
    """Yield (call, function of q, k and v)."""
    length, heads = x[0].shape[2], x[0].shape[1]
    slopes = torch.from_numpy(alibi_slopes(heads)).float().to(DEVICE)
    places = torch.arange(length, device=DEVICE)
    sdpa = partial(scaled_dot_product_attention, enable_gqa=True)
    yield SDPA, lambda q, k, v: sdpa(q, k, v, is_causal=True)
    for name, kernel in KERNELS.items():
        yield f"companion, {name}", lambda q, k, v, kernel=kernel: kernel(q, k, v, cos_sin)
    yield (
        "companion, RoPE, then SDPA",
        lambda q, k, v: sdpa(apply_rope(q, *cos_sin), apply_rope(k, *cos_sin), v, is_causal=True),
    )
    if heads * length**2 < 2**31:
        offsets = places - places[:, None]
        bias = (slopes[:, None, None] * offsets).masked_fill_(offsets > 0, -torch.inf)[None]
        low = bias.to(x[0].dtype)
        yield "SDPA, ALiBi bias kept", lambda q, k, v: sdpa(q, k, v, attn_mask=low)
        yield "companion, ALiBi bias kept", lambda q, k, v: attention(q, k, v, bias=bias)
    torch._dynamo.reset()
    flex = compile_(flex_attention)
    block_mask = create_block_mask(lambda b, h, m, n: m >= n, None, None, length, length, device=DEVICE)
    yield (
        "FlexAttention, ALiBi",
        lambda q, k, v: flex(
            q,
            k,
            v,
            enable_gqa=True,
            block_mask=block_mask,
            score_mod=lambda s, b, h, m, n: s + slopes[h] * (n - m),
        ),
    )


def timed(calls, limit, where, errors=(), moved=0):
    """Rows with the median time of each call, and its ratio to the limit in the same round."""
    times = interleaved(calls, 2) if DRY else interleaved_on_gpu(calls)
    for call, numbers in summary(times, limit).items():
        milliseconds = numbers["milliseconds"]
        yield {
            **where,
            "call": call,
            "milliseconds": milliseconds,
            "ratio": numbers["ratio"],
            "gb_per_s": round(moved / milliseconds / 1e6) if moved and milliseconds else "",
            "error": f"{errors[call]:.1e}" if call in errors else "",
        }


def interleaved_on_gpu(calls, rounds=21):
    """As `measure.interleaved`, by the clock of the GPU, each call with an empty cache."""
    cache = torch.empty(2**28, dtype=torch.int8, device=DEVICE)  # more than any second-level cache
    events = {name: [] for name in calls}
    for number in range(rounds + 3):
        names = list(calls)
        random.Random(number).shuffle(names)
        for name in names:
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            cache.zero_()  # also keeps the GPU busy while Python launches the call
            pair[0].record()
            calls[name]()
            pair[1].record()
            if number >= 3:
                events[name].append(pair)
        torch.cuda.synchronize()
    seconds = {
        name: [start.elapsed_time(end) / 1000 for start, end in pairs] for name, pairs in events.items()
    }
    return {name: [(wall, wall) for wall in walls] for name, walls in seconds.items()}


def late(deadline, seconds, what):
    if time.monotonic() + seconds > deadline:
        print(f"not measured, there is no time left: {what}")
        return True
    return False


def show_goals(rows):
    print("\nGoals, for large shapes:")
    times = [row for row in rows if row.get("shape") in ("large", "long") and row["operation"] != "check"]
    for case in dict.fromkeys(tuple(row[key] for key in COLUMNS[:4]) for row in times):
        ratios = {
            row["call"]: row["ratio"] for row in times if tuple(row[key] for key in COLUMNS[:4]) == case
        }
        ours = {call: ratio for call, ratio in ratios.items() if call.startswith("companion")}
        others = {call: ratio for call, ratio in ratios.items() if call not in ours and call != COPY}
        call = min(ours, key=ours.get)
        verdict = "met" if ours[call] <= 1.15 else "missed"
        print(f"  {verdict:7} {ours[call]:6.2f} ≤ 1.15 copies: {call}, {', '.join(case)}")
        for other, ratio in others.items():
            verdict = "met" if ours[call] <= ratio else "missed"
            print(f"  {verdict:7} {ratio / ours[call]:6.2f} ≥ 1 times as fast as {other}")


if __name__ == "__main__":
    main()
