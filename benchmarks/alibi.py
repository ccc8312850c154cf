"""Claim: ALiBi as one more dimension of q and k costs little more than causal attention, and no memory.

    python benchmarks/alibi.py [--quick]

(1, 8, length, 64), one thread. Every call is first compared with NumPy in float64. Times are medians of interleaved
rounds, over those of causal attention without ALiBi; memory is the peak of one call, bias included, in a process of
its own. `--quick` leaves FlexAttention out, which compiles for minutes.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import torch
from measure import circumstances, in_a_process_of_its_own, interleaved, show, summary, write
from torch.nn.functional import scaled_dot_product_attention

from companion import attention as numpy_attention
from companion.attention_torch import alibi_attention, attention
from companion.relative_bias import alibi_bias, alibi_slopes, relative_offsets

HEADS, WIDTH = 8, 64
COLUMNS = "dtype length call milliseconds ratio cpu_ratio peak_mib error".split()
CAUSAL = "causal, without ALiBi"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, without FlexAttention")
    parser.add_argument("--threads", type=int, help="set by the script itself")
    parser.add_argument(
        "--memory", nargs=3, metavar=("DTYPE", "LENGTH", "CALL"), help="set by the script itself"
    )
    arguments = parser.parse_args()
    if not arguments.threads:
        sys.exit(not in_a_process_of_its_own(__file__, *(["--quick"] if arguments.quick else []), threads=1))
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    if arguments.memory:
        dtype, length, call = arguments.memory
        print(json.dumps(peak_mib(partial(CALLS[call], *inputs(dtype, int(length))))))
        return
    calls = {name: make for name, make in CALLS.items() if name != FLEX or not arguments.quick}
    cases = [(dtype, length) for dtype in ("float32", "bfloat16") for length in (512, 2048)]
    errors = {case: check(case, calls) for case in cases}
    rows = [row for case in cases for row in measured(case, calls, errors[case], arguments)]
    write("alibi" + ("-quick" if arguments.quick else ""), rows)
    show(rows, COLUMNS)


# Each takes q, k and v, and returns a call without arguments: what one keeps between calls, it keeps.


def causal(q, k, v):
    return lambda: scaled_dot_product_attention(q, k, v, is_causal=True)


def as_a_dimension(q, k, v):
    slopes = torch.from_numpy(alibi_slopes(HEADS))
    return lambda: alibi_attention(q, k, v, slopes)


def kept_bias(q, k, v):
    bias = torch.from_numpy(exact_bias(q.shape[-2])).float()
    return lambda: attention(q, k, v, bias=bias)


def built_bias(q, k, v):
    slopes, places = torch.from_numpy(alibi_slopes(HEADS)).float(), torch.arange(q.shape[-2])

    def call():
        offsets = places[None] - places[:, None]
        bias = (slopes[:, None, None] * offsets).masked_fill(offsets > 0, -torch.inf)
        return scaled_dot_product_attention(q, k, v, attn_mask=bias[None])

    return call


def by_hand(q, k, v):
    bias = torch.from_numpy(exact_bias(q.shape[-2])).to(q.dtype)
    return lambda: ((q @ k.transpose(-1, -2)) * WIDTH**-0.5 + bias).softmax(-1) @ v


def flex(q, k, v):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slopes, length = torch.from_numpy(alibi_slopes(HEADS)).float(), q.shape[-2]

    def add_bias(score, batch, head, query, key):
        return score + slopes[head] * (key - query)

    mask = create_block_mask(
        lambda batch, head, query, key: query >= key, None, None, length, length, device="cpu"
    )
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(q, k, v, score_mod=add_bias, block_mask=mask)


FLEX = "FlexAttention, compiled"
CALLS = {
    CAUSAL: causal,
    "companion.alibi_attention": as_a_dimension,
    "companion.attention, kept bias": kept_bias,
    "bias built in each call": built_bias,
    "by hand": by_hand,
    FLEX: flex,
}


def exact_bias(length):
    places = np.arange(length)
    return alibi_bias(relative_offsets(places, places), alibi_slopes(HEADS))[None]


def inputs(dtype, length):
    """q, k and v."""
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(1, HEADS, length, WIDTH, generator=generator).to(getattr(torch, dtype)) for _ in range(3)
    ]


def check(case, calls):
    """Return {name: largest error}; end the run if one is wrong."""
    dtype, length = case
    q, k, v = inputs(dtype, length)
    exact = numpy_attention.attention(*(x.double().numpy() for x in (q, k, v)), bias=exact_bias(length))
    errors = {}
    for name, make in calls.items():
        if name == CAUSAL:
            continue
        error = np.abs(make(q, k, v)().double().numpy() - exact).max()
        if error > v.abs().max().item() * max(1e-4, 4 * torch.finfo(q.dtype).eps):
            sys.exit(f"{name} is wrong by {error:.2g}: {dtype}, {length}")
        errors[name] = f"{error:.1e}"
    return errors


def measured(case, calls, errors, arguments):
    """Time all, then the memory of each; yield the rows of the CSV."""
    ready = {name: make(*inputs(*case)) for name, make in calls.items()}
    found = summary(interleaved(ready, rounds=3 if arguments.quick else 15), CAUSAL)
    about = circumstances("torch", "numpy")
    for name, numbers in found.items():
        command = [sys.executable, __file__, "--threads", "1", "--memory", *map(str, case), name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peak = {"peak_mib": json.loads(done.stdout.splitlines()[-1])}
        yield {
            **dict(zip(("dtype", "length"), case, strict=True)),
            "call": name,
            **numbers,
            **peak,
            "error": errors.get(name, ""),
            **about,
        }


def peak_mib(make):
    """How far a call and what it keeps raise the memory of this process, in MiB; None where that is unknown."""
    if sys.platform != "linux":
        return None
    make()()  # whatever is made once only, compiled code for example
    give_back_freed_memory()
    before = mib("VmRSS")
    call = make()
    give_back_freed_memory()
    Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is that of the call
    call()
    return round(mib("VmHWM") - before, 1)


def give_back_freed_memory():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def mib(kind):
    return int(Path("/proc/self/status").read_text().split(f"{kind}:")[1].split()[0]) / 1024


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
