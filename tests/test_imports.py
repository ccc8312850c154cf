"""What the package loads, and which of its modules may import which."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "companion"
HEAVY = {"torch", "triton", "matplotlib", "sympy", "IPython"}

# The NumPy modules with the modules of the package below each; one that is not named stands on all of them.
GROUND = {"frequencies", "rope", "frequency_scaling", "sinusoidal"}
BELOW = {
    "frequencies": set(),
    "rope": {"frequencies"},
    "frequency_scaling": {"frequencies"},
    "sinusoidal": {"frequencies", "rope"},
    "attention": GROUND,
    "linear_attention": GROUND,
    "multimodal": GROUND,
    "relative_bias": GROUND,
    "hf_config_keys": GROUND | {"multimodal"},
    "hf_config": GROUND | {"hf_config_keys"},
    "inspect_traps": GROUND,
}
SPECIAL = {
    "plots": {"matplotlib"},
    "symbolic": {"sympy"},
    "figures": {"IPython"},
    "kernel_report": {"torch", "triton"},
}
ON_TOP = {"exercises", "__main__"}


def numpy_modules(package):
    names = {path.stem for path in package.glob("*.py")} - SPECIAL.keys() - ON_TOP - {"__init__"}
    return sorted(name for name in names if not name.endswith(("_torch", "_triton")))


def loaded(name, root):
    """The heavy packages that importing `name` loads in a fresh Python whose path begins with `root`."""
    program = f"import sys; sys.path.insert(0, {str(root)!r}); import {name}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("name", ["companion", *(f"companion.{name}" for name in numpy_modules(PACKAGE))])
def test_importing_it_loads_neither_torch_nor_matplotlib_nor_sympy(name):
    assert loaded(name, PACKAGE.parent) == set()


@pytest.mark.parametrize("heavy", sorted(HEAVY))
def test_the_check_of_what_is_loaded_can_fail(heavy, tmp_path):
    (tmp_path / f"{heavy}.py").touch()  # a stand-in: the real one need not be installed
    package = tmp_path / "companion"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "rope.py").write_text(f"import {heavy}\n")
    assert loaded("companion", tmp_path) == set()
    assert loaded("companion.rope", tmp_path) == {heavy}


def kind(name):
    """numpy, torch, triton, special or top: what a module of the package may import follows from it."""
    if name in ON_TOP:
        return "top"
    if name in SPECIAL:
        return "special"
    return {"torch": "torch", "triton": "triton"}.get(name.rpartition("_")[2], "numpy")


def may_import(name, other):
    """May the module `name` of the package import its module `other`?"""
    if name == "__init__":
        return False
    if kind(name) == "top":
        return True
    if kind(other) in ("top", "special"):
        return False
    if kind(name) == "numpy":
        return other in BELOW.get(name, BELOW.keys())
    return kind(other) in ("numpy", kind(name))


def may_load(name, library):
    """May the module `name` of the package import this library?"""
    if library in sys.stdlib_module_names:
        return True
    if kind(name) == "top":
        return library in {"numpy", "sympy", "matplotlib", "torch", "triton"}
    allowed = {"numpy": set(), "torch": {"torch"}, "triton": {"torch", "triton"}}
    return library in {"numpy"} | allowed.get(kind(name), set()) | SPECIAL.get(name, set())


def imports(tree):
    """Every import in a file, also inside functions, as (line, dotted name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = node.module == "companion" or node.level
            origin = "." * node.level + (node.module or "")
            names = [f"{origin}.{alias.name}" for alias in node.names] if inside else [origin]
            yield from ((node.lineno, name) for name in names)


def faults(package):
    """One line for each import against the arrows."""
    found = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").parts[0]
        for line, target in imports(ast.parse(path.read_text("utf8"))):
            first, _, rest = target.partition(".")
            other = rest.partition(".")[0]
            if first == "companion":
                allowed = other == name or may_import(name, other)
            else:
                allowed = may_load(name, first)
            if not allowed:
                found.append(f"{path.relative_to(package)}:{line} must not import {target}")
    return found


def test_imports_follow_the_arrows():
    assert faults(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line", "target"),
    [
        ("frequencies.py", "from companion.rope import apply_rope", "companion.rope"),
        ("rope.py", "from companion import attention", "companion.attention"),
        ("rope.py", "import torch", "torch"),
        ("rope.py", "def late():\n    import sympy", "sympy"),
        ("rope.py", "from companion.plots import plot", "companion.plots"),
        ("rope.py", "from .frequencies import wavelengths", ".frequencies.wavelengths"),
        ("attention.py", "import companion.multimodal", "companion.multimodal"),
        ("attention.py", "import book.compose", "book.compose"),
        ("rope_torch.py", "import companion.rope_triton", "companion.rope_triton"),
        ("rope_torch.py", "import triton", "triton"),
        ("rope_triton.py", "from companion.rope_torch import apply_rope", "companion.rope_torch"),
        ("plots.py", "import sympy", "sympy"),
        ("figures/__init__.py", "from companion.exercises import checker", "companion.exercises"),
        ("exercises/lesson_04.py", "from classroom import grade", "classroom"),
        ("__init__.py", "from companion import rope", "companion.rope"),
    ],
)
def test_the_check_of_the_arrows_can_fail(file, line, target, tmp_path):
    bad = tmp_path / file
    bad.parent.mkdir(exist_ok=True)
    bad.write_text(f"import numpy as np\n{line}\n")
    number = 2 + line.count("\n")
    assert faults(tmp_path) == [f"{file}:{number} must not import {target}"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("rope.py", "import math\nimport numpy.linalg\nfrom companion.frequencies import wavelengths"),
        ("multimodal.py", "from companion import frequencies, rope, sinusoidal"),
        ("rope_torch.py", "import torch\nfrom companion.rope import rotation_table"),
        ("rope_triton.py", "import torch, triton\nfrom companion.rope import rotation_table"),
        ("plots.py", "import matplotlib.pyplot\nfrom companion.rope import apply_rope"),
        (
            "exercises/lesson_04.py",
            "from companion.exercises import difference\nfrom companion.rope import apply_rope",
        ),
    ],
)
def test_the_arrows_themselves_are_allowed(file, line, tmp_path):
    good = tmp_path / file
    good.parent.mkdir(exist_ok=True)
    good.write_text(line)
    assert faults(tmp_path) == []
