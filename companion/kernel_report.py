"""What a Triton kernel compiles to on each chip, with no GPU: registers, spills, shared memory, tensor cores.

Triton's wheel carries NVIDIA's assembler: all but the run itself can be done anywhere. A process of its own
compiles, for in one that interprets (TRITON_INTERPRET=1) Triton's own functions can no longer be compiled.
Limits: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
"""

import ast
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

# Compute capability: a well-known chip, and the most shared memory that one block may have, in bytes.
CHIPS = {
    75: ("T4", 64 << 10),
    80: ("A100", 163 << 10),
    86: ("A10", 99 << 10),
    89: ("L4", 99 << 10),
    90: ("H100", 227 << 10),
    100: ("B200", 227 << 10),
    120: ("RTX 5090", 99 << 10),
}
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


class KernelReport(tuple):
    """Rows of `Compiled`, printed as a table."""

    def __repr__(self):
        head = ("chip", "", "compiles", "registers", "spills", "shared memory", "tensor cores")
        lines = [head, *(row.cells() for row in self)]
        # The message of a row that does not compile stands in the fourth place, and may be long.
        widths = [
            max(len(line[i]) for line in lines if i < 3 or len(line) == len(head)) for i in range(len(head))
        ]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
            for line in lines
        )


class Compiled(NamedTuple):
    """A kernel on one chip: registers and spilled bytes of a thread, bytes of shared memory of a program."""

    target: int
    compiles: bool
    registers: int = 0
    spills: int = 0
    shared: int = 0
    shared_limit: int = 0
    tensor_cores: str = ""
    error: str = ""

    @property
    def fits(self):
        """Does it compile, within the shared memory that the chip has?"""
        return self.compiles and self.shared <= self.shared_limit

    def cells(self):
        """The row of the table, as text."""
        chip = f"sm_{self.target}", CHIPS[self.target][0]
        if not self.compiles:
            return *chip, "no", self.error.strip().splitlines()[-1]
        shared = f"{self.shared} of {self.shared_limit}{'' if self.fits else ', too much'}"
        return *chip, "yes", f"{self.registers}", f"{self.spills} B", shared, self.tensor_cores or "no"


def kernel_report(kernel, *args, targets=(75, 80, 89, 90, 100), **constexprs):
    """Return one `Compiled` row for each target, as a tuple that prints as a table.

    The arguments are those of the launch, `kernel[grid](*args, **constexprs)`, with `num_warps` and the like.
    Of tensors only the dtype and the alignment count: `torch.empty(shape, device="meta")` needs no memory.
    `targets` are compute capabilities: 75 T4, 80 A100, 86 A10, 89 L4, 90 H100, 100 B200, 120 RTX 5090. Spills
    are bytes of local memory a thread; `shared` is in bytes, `fits` says if the chip has them; `tensor_cores`
    names the instruction. A row that does not compile has the whole message in `error`.

        >>> kernel_report(copy_kernel, x, y, x.numel(), BLOCK=1024, targets=(75, 90))  # doctest: +SKIP
        chip         compiles  registers  spills  shared memory  tensor cores
        sm_75  T4    yes       16         0 B     0 of 65536     no
        sm_90  H100  yes       16         0 B     0 of 232448    no

    Raises TypeError for a kernel without @triton.jit, for arguments that do not fit it, and for one that is
    neither a tensor nor a number; ValueError for an unknown target, and if the source cannot be read.
    """
    function = _function(kernel)
    targets = [targets] if isinstance(targets, int) else list(targets)
    for target in targets:
        if target not in CHIPS:
            raise ValueError(f"targets must be among {', '.join(map(str, CHIPS))}, got {target!r}")
    options = {name: constexprs.pop(name) for name in OPTIONS if name in constexprs}
    try:
        arguments = inspect.signature(function).bind(*args, **constexprs).arguments
    except TypeError as error:
        raise TypeError(
            f"the arguments must be those of a launch of {function.__name__}, "
            f"{', '.join(inspect.signature(function).parameters)}, and {', '.join(OPTIONS)} if wanted, "
            f"got {len(args)} by place and {', '.join(constexprs) or 'none'} by name: {error}"
        ) from None
    arguments = {name: _described(name, value) for name, value in arguments.items()}
    job = {"name": function.__name__, "arguments": arguments | options, **_code(function)}
    rows = []
    while len(rows) < len(targets):  # a compiler that crashes takes its process along, not the other targets
        rows += _compiled_elsewhere(job, targets[len(rows) :])
    return KernelReport(rows)


def _function(kernel):
    """The Python function under @triton.jit, and under autotune or heuristics if they are there."""
    function = kernel
    while not inspect.isfunction(function) and hasattr(function, "fn"):
        function = function.fn
    if function is kernel or not inspect.isfunction(function):
        raise TypeError(f"kernel must be a function under @triton.jit, got {kernel!r:.60}")
    return function


def _described(name, value):
    """A tensor without its numbers: what the launcher looks at."""
    if hasattr(value, "data_ptr"):
        return SimpleNamespace(dtype=value.dtype, data_ptr=partial(int, value.data_ptr() % 16))
    if type(value).__module__.partition(".")[0] not in ("builtins", "triton", "torch"):
        raise TypeError(
            f"{name} must be a tensor or a Python number, got {value!r:.60} of type {type(value).__name__}; "
            "use torch.from_numpy, or .item() for a single number"
        )
    return value


def _code(function, code=None):
    """The source of the kernel, after that of the kernels it calls, and what their global names stand for."""
    code = code or {"source": "", "imports": {"triton": "import triton"}, "values": {}}
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise ValueError(
            f"the source of {function.__name__} must be readable, got a function typed into an interpreter; "
            "write it into a file or a notebook cell"
        ) from None
    source = source[re.search(r"^def ", source, re.MULTILINE).start() :]  # without decorators
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    known = {function.__name__, *function.__code__.co_varnames, *code["imports"], *code["values"]}
    for name in sorted((names & scope.keys()) - known):
        _add_global(name, scope[name], code)
    code["source"] += f"@triton.jit\n{source}\n\n"
    return code


def _add_global(name, value, code):
    if isinstance(value, ModuleType):
        code["imports"][name] = f"import {value.__name__} as {name}"
    elif hasattr(value, "fn") and value.fn.__module__.startswith("triton."):
        code["imports"][name] = f"from {value.fn.__module__} import {value.fn.__name__} as {name}"
    elif hasattr(value, "fn"):
        function = _function(value)
        code["values"][name] = None  # until its definition is executed
        _code(function, code)
        if name != function.__name__:
            code["source"] += f"{name} = {function.__name__}\n\n\n"
    else:  # Triton knows its own constants and functions, and says what is wrong with anything else
        known = type(value).__module__.startswith("triton.") or str(
            getattr(value, "__module__", "")
        ).startswith("triton.")
        code["values"][name] = value if known else None


def _compiled_elsewhere(job, targets):
    """Rows for the first of the targets, all of them unless the compiler crashes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job").write_bytes(pickle.dumps({**job, "targets": targets}))
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        command = [sys.executable, "-P", __file__, folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        results = Path(folder, "results")
        lines = results.read_text("utf8").splitlines() if results.exists() else []
    rows = [Compiled(*json.loads(line)) for line in lines]
    if len(rows) < len(targets):
        crash = f"the compiler ended with code {done.returncode}: {done.stderr.strip() or 'no message'}"
        rows.append(Compiled(targets[len(rows)], False, error=crash))
    return rows


# The other process


def _compile_all(folder):
    job = pickle.loads(Path(folder, "job").read_bytes())
    source = Path(folder, "kernel.py")  # Triton reads a kernel from its file
    source.write_text(job["source"], "utf8")
    scope = {"__name__": "kernel", **job["values"]}
    for line in (*job["imports"].values(), compile(job["source"], source, "exec")):
        exec(line, scope)
    with Path(folder, "results").open("w", encoding="utf8") as results:
        for target in job["targets"]:
            try:
                row = _compile(scope[job["name"]], job, target)
            except Exception as error:
                row = Compiled(target, False, error=str(error) or repr(error))
            print(json.dumps(row), file=results, flush=True)


def _compile(kernel, job, target):
    """Have Triton's launcher do all but the launch, for a chip that is only named."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    driver.set_active(
        SimpleNamespace(
            get_current_device=lambda: target,
            get_current_stream=lambda device: 0,
            get_current_target=lambda: GPUTarget("cuda", target, 32),
        )
    )
    compiled = kernel.warmup(**job["arguments"], grid=(1,))
    used = _resources(compiled.asm["cubin"])
    units = [unit for unit in ("tcgen05.mma", "wgmma", "mma.sync") if unit in compiled.asm["ptx"]]
    shared = compiled.metadata.shared
    return Compiled(target, True, used["REG"], used["STACK"], shared, CHIPS[target][1], "".join(units[:1]))


def _resources(cubin):
    """What NVIDIA's cuobjdump, which lies in Triton's wheel, reads from the binary."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r"(REG|STACK):(\d+)", text)}


if __name__ == "__main__":
    _compile_all(sys.argv[1])
