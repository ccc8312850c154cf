"""Faults put into a copy of the package one by one: every one must turn a test red.

    python -m tests.mutants            all of them
    python -m tests.mutants clamp      those with the word in their name

A check that has never been red is no check. Prints which test found which fault; exits with 1 if one was not found.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """`old`, which stands exactly once in companion/`file`, becomes `new`; one of the `tests` must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple


ROPE, BUGS, CONFIG = "test_rope.py", "test_bug_cases.py", "test_hf_config.py"
FREQUENCIES, SCALING, BIAS = "test_frequencies.py", "test_frequency_scaling.py", "test_relative_bias.py"
ATTENTION, LINEAR, VISION = "test_attention.py", "test_linear_attention.py", "test_multimodal.py"
INSPECT = "test_inspect.py"

MUTANTS = [
    # Speeds and angles
    Mutant(
        "base + 1 %",
        "frequencies.py",
        "return base ** (-np.arange",
        "return (1.01 * base) ** (-np.arange",
        (FREQUENCIES,),
    ),
    Mutant(
        "exponents over half the width",
        "frequencies.py",
        "np.arange(0, head_dim, 2) / head_dim)",
        "np.arange(0, head_dim, 2) / (head_dim // 2))",
        (FREQUENCIES,),
    ),
    Mutant(
        "positions from 1",
        "frequencies.py",
        'return _exact("positions", positions)[..., np.newaxis]',
        'return (1 + _exact("positions", positions))[..., np.newaxis]',
        (FREQUENCIES, ROPE),
    ),
    Mutant(
        "−sin in single precision", "rope.py", "turns = cos + 1j * sin", "turns = cos - 1j * sin", (ROPE,)
    ),
    Mutant(
        "half-precision positions accepted",
        "frequencies.py",
        'if "float16" in str(dtype):',
        "if False:",
        (BUGS,),
    ),
    # Rotation
    Mutant(
        "minus sine",
        "rope.py",
        "attention_factor * np.sin(angles)",
        "-attention_factor * np.sin(angles)",
        (ROPE,),
    ),
    Mutant(
        "pairing swapped",
        "rope.py",
        'if _half_or_adjacent("pairing", pairing) == "half":',
        'if _half_or_adjacent("pairing", pairing) == "adjacent":',
        (ROPE,),
    ),
    Mutant(
        "attention factor squared",
        "rope.py",
        "return attention_factor * np.cos(angles), attention_factor * np.sin(angles)",
        "return attention_factor**2 * np.cos(angles), attention_factor**2 * np.sin(angles)",
        (ROPE,),
    ),
    Mutant(
        "batch table laid on the heads",
        "rope.py",
        "if not _lies_on(table.shape, x_shape):",
        "if False:",
        (ROPE,),
    ),
    Mutant(
        "short table broadcast",
        "rope.py",
        "if table.shape[-2] != want[0]:",
        "if table.shape[-2] not in (1, want[0]) and False:",
        (BUGS, "test_bad_input.py"),
    ),
    # Attention
    Mutant(
        "is_causal with a cache",
        "attention.py",
        "return key[..., np.newaxis, :] <= query[..., :, np.newaxis]",
        "return np.broadcast_to(np.tri(query.shape[-1], key.shape[-1], dtype=bool), "
        "(*query.shape, key.shape[-1]))",
        (ATTENTION,),
    ),
    Mutant(
        "bias divided by the root of the width",
        "attention.py",
        "scores = scores + _bias(bias, scores.shape)",
        "scores = scores + scale * _bias(bias, scores.shape)",
        (ATTENTION, BIAS),
    ),
    # Scaling
    Mutant(
        "YaRN with the ramp of the paper",
        "frequency_scaling.py",
        "return _blend(inv_freq, factor, 1 - np.clip((np.arange(inv_freq.size) - low) / (high - low), 0, 1))",
        "return ntk_by_parts(inv_freq, factor, train_len, alpha=beta_slow, beta=beta_fast)",
        (SCALING,),
    ),
    Mutant(
        "NTK-by-parts with the ramp of the code",
        "frequency_scaling.py",
        "kept = np.clip((turns - alpha) / (beta - alpha), 0, 1)",
        "kept = np.clip(np.log(turns / alpha) / np.log(beta / alpha), 0, 1)",
        (SCALING,),
    ),
    Mutant(
        "truncate ignored",
        "frequency_scaling.py",
        "    if truncate:\n",
        "    if True:\n",
        (SCALING,),
    ),
    Mutant(
        "ramp end clamped to the last pair",
        "frequency_scaling.py",
        "min(high, dim - 1)",
        "min(high, dim // 2 - 1)",
        (SCALING,),
    ),
    Mutant(
        "mscale squared",
        "frequency_scaling.py",
        "return 0.1 * weight * math.log(_factor(factor)) + 1",
        "return (0.1 * weight * math.log(_factor(factor)) + 1) ** 2",
        (SCALING,),
    ),
    Mutant(
        "dynamic NTK with memory",
        "frequency_scaling.py",
        'stretch = max(1.0, _length("seq_len", seq_len) / _length("train_len", train_len))',
        'stretch = dynamic_ntk.__dict__["longest"] = max(1.0, dynamic_ntk.__dict__.get("longest", 1.0), '
        '_length("seq_len", seq_len) / _length("train_len", train_len))',
        (BUGS,),
    ),
    Mutant(
        "dynamic NTK static",
        "frequency_scaling.py",
        "return ntk_aware(inv_freq, 1 + _factor(factor) * (stretch - 1))",
        "return ntk_aware(inv_freq, _factor(factor))",
        (SCALING, BUGS),
    ),
    Mutant(
        "long list already at the trained length",
        "frequency_scaling.py",
        'if _length("seq_len", seq_len) <= _length("train_len", train_len) else long',
        'if _length("seq_len", seq_len) < _length("train_len", train_len) else long',
        (SCALING, BUGS),
    ),
    Mutant(
        "division by zero for a band of no width",
        "frequency_scaling.py",
        " if beta > alpha else (turns >= beta).astype(float)",
        "",
        (SCALING,),
    ),
    Mutant(
        "proportional over the turned part",
        "frequency_scaling.py",
        "    inv_freq[int(fraction * head_dim // 2) :] = 0\n    return inv_freq",
        "    size = int(fraction * head_dim // 2)\n"
        "    inv_freq[size:] = 0\n"
        "    inv_freq[:size] **= 1 / max(fraction, 1e-3)\n"
        "    return inv_freq",
        (SCALING,),
    ),
    # Bias
    Mutant(
        "ALiBi sign",
        "relative_bias.py",
        "bias = 0.0 - slopes[:, np.newaxis, np.newaxis] * np.abs(offsets)",
        "bias = slopes[:, np.newaxis, np.newaxis] * np.abs(offsets)",
        (BIAS,),
    ),
    Mutant(
        "ALiBi rewards the future",
        "relative_bias.py",
        "slopes[:, np.newaxis, np.newaxis] * np.abs(offsets)",
        "slopes[:, np.newaxis, np.newaxis] * -offsets",
        (BIAS,),
    ),
    Mutant(
        "slopes sorted",
        "relative_bias.py",
        "return np.concatenate([slopes, between[: num_heads - lower]])",
        "return np.sort(np.concatenate([slopes, between[: num_heads - lower]]))[::-1]",
        (BIAS,),
    ),
    Mutant(
        "slopes by the sentence of the paper",
        "relative_bias.py",
        "return np.concatenate([slopes, between[: num_heads - lower]])",
        "return 2.0 ** (-8 * np.arange(1, num_heads + 1) / num_heads)",
        (BIAS,),
    ),
    Mutant(
        "T5 clamp removed",
        "relative_bias.py",
        "for k in range(far):",
        "for k in range(4 * far):",
        (BIAS,),
    ),
    Mutant(
        "T5 sides swapped",
        "relative_bias.py",
        "buckets + one_side * (offsets > 0)",
        "buckets + one_side * (offsets < 0)",
        (BIAS,),
    ),
    Mutant(
        "T5 logarithm rounded",
        "relative_bias.py",
        "        while start**far < target:\n            start += 1\n",
        "        start = int(np.ceil(near * (max_distance / near) ** (k / far)))\n",
        (BIAS,),
    ),
    Mutant(
        "offset of the query from the key",
        "relative_bias.py",
        "return key[..., np.newaxis, :] - query[..., :, np.newaxis]",
        "return query[..., :, np.newaxis] - key[..., np.newaxis, :]",
        (BIAS,),
    ),
    # Several axes
    Mutant(
        "interleaved sections read as contiguous",
        "multimodal.py",
        'if layout == "contiguous":',
        "if True:",
        (VISION,),
    ),
    Mutant(
        "text after a video at its last frame",
        "multimodal.py",
        "start = block.max(initial=start - 1) + 1",
        "start = block[0].max(initial=start - 1) + 1",
        (VISION,),
    ),
    Mutant(
        "rows and columns swapped",
        "multimodal.py",
        "return np.moveaxis(position_ids, 0, -1)[..., axes] * inv_freq",
        "return np.moveaxis(position_ids[[0, 2, 1]], 0, -1)[..., axes] * inv_freq",
        (VISION,),
    ),
    # Linear attention
    Mutant(
        "decay forgotten",
        "linear_attention.py",
        "decay[..., np.newaxis, np.newaxis] * state",
        "state",
        (LINEAR,),
    ),
    Mutant(
        "the turned features below the line too",
        "linear_attention.py",
        "    below = sums(q_features, k_features, np.ones((*values.shape[:-1], 1)))\n"
        "    if rotation is not None:\n"
        "        q_features, k_features = _turned(q_features, k_features, rotation, pairing)\n",
        "    if rotation is not None:\n"
        "        q_features, k_features = _turned(q_features, k_features, rotation, pairing)\n"
        "    below = sums(q_features, k_features, np.ones((*values.shape[:-1], 1)))\n",
        (LINEAR,),
    ),
    Mutant(
        "bias of the opposite offset",
        "linear_attention.py",
        "np.fft.rfft(weights[..., ::-1])",
        "np.fft.rfft(weights)",
        (LINEAR,),
    ),
    # Configurations
    Mutant(
        "attention_factor multiplied with the formula",
        "hf_config.py",
        'return _positive("attention_factor", rope["attention_factor"])',
        'return _positive("attention_factor", rope["attention_factor"]) * yarn_attention_factor(rope["factor"])',
        (CONFIG, BUGS),
    ),
    Mutant(
        "unknown keys ignored",
        "hf_config_keys.py",
        "    if unknown:\n",
        "    if False:\n",
        (CONFIG,),
    ),
    Mutant(
        "keys that disagree ignored",
        "hf_config_keys.py",
        "        if value != other:\n",
        "        if False:\n",
        (CONFIG,),
    ),
    Mutant(
        "turned dimensions not counted",
        "hf_config_keys.py",
        "None if whole else int(head_dim * fraction)",
        "None",
        (CONFIG, BUGS),
    ),
    Mutant(
        "softmax factor not squared",
        "hf_config.py",
        'return _magnitude(rope["factor"], rope["mscale_all_dim"]) ** 2',
        'return _magnitude(rope["factor"], rope["mscale_all_dim"])',
        (CONFIG,),
    ),
    Mutant(
        "report counts turns after scaling as before",
        "inspect_report.py",
        "return None if train_len is None else train_len * self.before / (2 * np.pi)",
        "return None if train_len is None else train_len * self.result.inv_freq / (2 * np.pi)",
        (INSPECT,),
    ),
]


# In torch; where it is missing its tests are skipped, and could find nothing

TORCH_ROPE, TORCH_ATTENTION = "test_rope_torch.py", "test_attention_torch.py"
TORCH_EMBEDDINGS = "test_embeddings_torch.py"

if importlib.util.find_spec("torch"):
    MUTANTS += [
        Mutant(
            "torch: minus sine in place",
            "rope_torch.py",
            "a_sin = a * sin\n",
            "a_sin = a * -sin\n",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: minus sine, out of place",
            "rope_torch.py",
            "out_b.addcmul_(a, sin)",
            "out_b.addcmul_(a, sin, value=-1)",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: minus sine, neighbours",
            "rope_torch.py",
            "(torch.complex(*table),) if want_complex",
            "(torch.complex(*table).conj_physical(),) if want_complex",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: pairing swapped",
            "rope_torch.py",
            '_half_or_adjacent("pairing", pairing)',
            '{"half": "adjacent", "adjacent": "half"}[_half_or_adjacent("pairing", pairing)]',
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: gradient turned on instead of back",
            "rope_torch.py",
            "(cos.conj_physical(),) if sin is None else (cos, -sin)",
            "(cos,) if sin is None else (cos, sin)",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: sine taken after the cosine has overwritten its half",
            "rope_torch.py",
            "torch.addcmul(a_sin, b, cos, out=b)",
            "torch.addcmul(a * sin, b, cos, out=b)",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: rest of the head left unwritten",
            "rope_torch.py",
            "out[..., rotary_dim:] = x[..., rotary_dim:]",
            "pass",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: half precision rounded at every step",
            "rope_torch.py",
            "work = x_piece.float()  # so",
            "work = (x_piece.float() * 1.5).to(x.dtype).float() / 1.5  # so",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: table rounded to bfloat16",
            "tables_torch.py",
            "return torch.tensor(self._numpy_table, device=device)",
            "return torch.tensor(self._numpy_table, device=device).bfloat16().float()",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: table spoilt by a cast",
            "tables_torch.py",
            "self.table = self._made(self.table.device)",
            "self.table = self.table.float()",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: table of the batch laid on the heads",
            "tables_torch.py",
            "return len(shape) == 2 and shape == target[-2:]",
            "return shape[-2:] == target[-2:]",
            (TORCH_ROPE,),
        ),
        Mutant(
            "torch: negative positions read from the end of the table",
            "tables_torch.py",
            "beyond = (positions < 0) | (positions >= table.shape[0])",
            "beyond = positions >= table.shape[0]",
            (TORCH_ROPE, TORCH_EMBEDDINGS),
        ),
        Mutant(
            "torch: is_causal with a cache",
            "attention_torch.py",
            "return _fused(q, k, v, mask, scale)",
            "return scaled_dot_product_attention(q, k, v, is_causal=mask is not None, scale=scale)",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: ALiBi counts queries from the first key",
            "attention_torch.py",
            "(key_len - query_len + start + n for n in",
            "(start + n for n in",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: ALiBi sign",
            "attention_torch.py",
            "_exact_parts(slopes * (256 / scale), q.dtype)",
            "_exact_parts(slopes * (-256 / scale), q.dtype)",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: ALiBi slopes and positions rounded to half precision",
            "attention_torch.py",
            "range(3 if dtype.itemsize < 4 else 1)",
            "range(1)",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: bias rounded to half precision",
            "attention_torch.py",
            "bias.to(torch.float64 if dtype == torch.float64 else torch.float32)",
            "bias.to(dtype)",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: bias rounded by autocast",
            "attention_torch.py",
            "torch.autocast(q.device.type, enabled=False)",
            "torch.enable_grad()",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: key heads tiled instead of repeated",
            "attention_torch.py",
            "x.repeat_interleave(q.shape[-3] // x.shape[-3], -3)",
            "torch.cat([x] * (q.shape[-3] // x.shape[-3]), -3)",
            (TORCH_ATTENTION,),
        ),
        Mutant(
            "torch: embedding added without the scale",
            "embeddings_torch.py",
            "alpha=math.sqrt(d_model)",
            "alpha=1",
            (TORCH_EMBEDDINGS,),
        ),
        Mutant(
            "torch: T5 offsets with the other sign",
            "embeddings_torch.py",
            "_offsets(query_positions, key_positions)",
            "_offsets(key_positions, query_positions).mT",
            (TORCH_EMBEDDINGS,),
        ),
    ]


# The kernels, which need Triton's interpreter or a GPU

if importlib.util.find_spec("torch") and importlib.util.find_spec("triton"):
    MUTANTS += [
        Mutant(f"triton: {name}", "rope_triton.py", old, new, ("test_rope_triton.py",))
        for name, old, new in [
            ("minus sine in halves", "(a * cos - b * sin).to(", "(a * cos + b * sin).to("),
            ("minus sine in neighbours", "tl.join(a * cos - b * sin,", "tl.join(a * cos + b * sin,"),
            ("pairing swapped", 'pairing == "adjacent"', 'pairing == "half"'),
            (
                "gradient turned on instead of back",
                "apply_rope(gradient, cos, -sin,",
                "apply_rope(gradient, cos, sin,",
            ),
            ("a pair too many in halves", "exists &= dim < HALF_DIM", "exists &= dim <= HALF_DIM"),
            (
                "a number too many in neighbours",
                "exists &= dim < 2 * HALF_DIM",
                "exists &= dim <= 2 * HALF_DIM",
            ),
            ("addresses of 32 bits", "program = tl.program_id(0).to(tl.int64)", "program = tl.program_id(0)"),
            (
                "last positions without a program",
                "groups * triton.cdiv(seq_len, positions) * batch",
                "groups * max(1, seq_len // positions) * batch",
            ),
            ("first head of the keys left out", "head -= q_heads", "head -= q_heads - 1"),
            ("table of the first head for all", "if heads > 1 and any(", "if False and any("),
            ("sines read in the order of the cosines", "if cos.stride() != sin.stride():", "if False:"),
            (
                "table rounded to half precision",
                "cos = tl.load(cos_ptr + place, mask=exists, other=1.0)",
                "cos = tl.load(cos_ptr + place, mask=exists, other=1.0).to(tl.float16).to(tl.float32)",
            ),
            ("rest of the head left unwritten", "out[..., rotary_dim:] = x[..., rotary_dim:]", "pass"),
            ("autograd told nothing", "torch.autograd.graph.increment_version(out)", "pass"),
        ]
    ]


def main(words=()):
    """Try the mutants with one of the words in their name, or all; return the exit code."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    if not chosen:
        print(f"no mutant has one of {words} in its name", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        scratch = _scratch(Path(folder))
        red = _first_red(scratch, sorted({test for mutant in chosen for test in mutant.tests}))
        if red is not None:
            print(f"without any fault a test is already red: {red}", file=sys.stderr)
            return 2
        survivors = [mutant.name for mutant in chosen if not _killed(scratch, mutant)]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults found", *survivors, sep="\n  not found: ")
    return 1 if survivors else 0


def _scratch(folder):
    """A copy of the package and its tests that may be spoiled."""
    skip = shutil.ignore_patterns("__pycache__")
    for name in ("companion", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    (folder / "pytest.ini").write_text(
        '[pytest]\nfilterwarnings = error\nmarkers =\n    slow\n    exhaustive\naddopts = -m "not slow and not exhaustive"\n'
    )
    return folder


def _killed(scratch, mutant):
    path = scratch / "companion" / mutant.file
    text = path.read_text("utf8")
    if text.count(mutant.old) != 1:
        print(f"{mutant.name:46} STALE: its text stands {text.count(mutant.old)} times in {mutant.file}")
        return False
    path.write_text(text.replace(mutant.old, mutant.new), "utf8")
    try:
        red = _first_red(scratch, mutant.tests)
    finally:
        path.write_text(text, "utf8")
    print(f"{mutant.name:46} {red or 'SURVIVED'}", flush=True)
    return red is not None


def _first_red(scratch, tests):
    """The first test that fails, as file::name, or None."""
    files = [f"tests/{name}" for name in tests]
    # Without byte code: Python takes a file of the same size and second for the one it has compiled.
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", done.stdout, re.M)
    return found[1] if found else f"pytest exit code {done.returncode}: {(done.stdout + done.stderr)[-300:]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
