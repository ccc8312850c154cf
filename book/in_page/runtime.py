"""The files of Python in the page -> _build/python/: Pyodide from npm, pure wheels from PyPI, the others as given.

PYODIDE_WHEELS is a folder, or an address that begins with https://, with the wheels of this Pyodide release;
numpy, matplotlib and what they need are taken from there and must have the hashes of npm's lock file. What is not
there is left out, and cells that import it get no button; with PYODIDE_REQUIRE=1 that is an error. PYODIDE_VERSION
takes another release of Pyodide.
"""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from io import BytesIO
from pathlib import Path

from book import ROOT
from book.npm import unpacked

VERSION = "314.0.7"
PURE = ("mpmath", "sympy")
BINARY = ("numpy", "matplotlib")
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
_HERE = Path(__file__).parent
_LEFT_OUT = {"tests", "test", "testing", "benchmarks", "__pycache__"}
# It would send pictures to the page in its own way; `cell.py` sends them as PNG.
_NOT_NEEDED = {"matplotlib-pyodide"}


def assemble(target, extra=None):
    """Write all files, with `extra` {name: bytes}, into target/<hash of them>/, and return what the pages must know:

    {"folder": the hash, "packages": [what cells may import beside the standard library], "needs": {package: [it and
    what it stands on]}, "sizes": {package: bytes that a reader downloads for it; "" is Python itself}}. ValueError
    names a file with a wrong hash and, with PYODIDE_REQUIRE, one that is missing.
    """
    version = os.environ.get("PYODIDE_VERSION", VERSION)
    dist = unpacked("pyodide", version)
    lock = json.loads((dist / "pyodide-lock.json").read_text("utf8"))
    files = {name: (dist / name).read_bytes() for name in CORE if (dist / name).exists()}
    # A host that does not compress .wasm would triple the download; .bin, since some unpack .gz on the way.
    files["pyodide.asm.wasm.bin"] = gzip.compress(files.pop("pyodide.asm.wasm"), 9, mtime=0)
    files |= {name: (_HERE / name).read_bytes() for name in ("worker.js", "cell.py")} | (extra or {})
    wheels = _binary_wheels(lock, version) | _pure_wheels(lock) | {"companion": _companion(lock)}
    packages = {name: entry for name, (entry, _) in wheels.items()}
    files |= {entry["file_name"]: content for entry, content in wheels.values()}
    files["pyodide-lock.json"] = json.dumps({"info": lock["info"], "packages": packages}).encode()
    folder = target / _fingerprint(files)
    if not folder.exists():
        shutil.rmtree(target, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    sizes = {name: len(content) for name, (_, content) in wheels.items()}
    sizes[""] = sum(len(files[name]) for name in ("pyodide.asm.wasm.bin", "python_stdlib.zip", "pyodide.mjs"))
    needs = {name: sorted(_closure([name], {"packages": packages})) for name in packages}
    return {"folder": folder.name, "packages": sorted(packages), "needs": needs, "sizes": sizes}


def _binary_wheels(lock, version):
    """Return {package: (entry of the lock file, content)} of those whose needs are all there."""
    source, found, missing = os.environ.get("PYODIDE_WHEELS", ""), {}, {}
    for name in _closure(BINARY, lock):
        entry = lock["packages"][name]
        try:
            content = _read(source, entry["file_name"])
        except OSError as error:
            missing[name] = f"{entry['file_name']}: {error}"
            continue
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise ValueError(
                f"{entry['file_name']} is not the file that the lock file of Pyodide names: take the wheels of "
                f"release {version}, and no others"
            )
        found[name] = {**entry, "depends": [n for n in entry["depends"] if n not in _NOT_NEEDED]}, content
    if missing and os.environ.get("PYODIDE_REQUIRE"):
        raise ValueError(
            "PYODIDE_REQUIRE is set and these wheels are missing, set PYODIDE_WHEELS to where they are:\n"
            + "\n".join(missing.values())
        )
    return {
        name: (entry, content)
        for name, (entry, content) in found.items()
        if not missing.keys() & set(_closure([name], lock))
    }


def _read(source, name):
    if source.startswith("https://"):
        with urllib.request.urlopen(f"{source.rstrip('/')}/{name}", timeout=120) as answer:
            return answer.read()
    if not source:
        raise FileNotFoundError("PYODIDE_WHEELS is not set")
    return (Path(source) / name).read_bytes()


def _closure(names, lock):
    todo, seen = list(names), []
    while todo:
        name = todo.pop()
        if name not in seen and name not in _NOT_NEEDED:
            seen.append(name)
            todo += lock["packages"][name]["depends"]
    return seen


def _pure_wheels(lock):
    """sympy and mpmath in the versions that printed the outputs of the lessons, without their tests."""
    store = ROOT / "_build" / "wheels"
    pins = [line for line in (ROOT / "constraints.txt").read_text().split() if line.split("==")[0] in PURE]
    store.mkdir(parents=True, exist_ok=True)
    paths = [next(store.glob(f"{pin.replace('==', '-')}-*.whl"), None) for pin in pins]
    if not all(paths):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run([*command, "--dest", store, *pins], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"pip could not fetch {', '.join(pins)}: {done.stderr.strip()[-500:]}")
        paths = [next(store.glob(f"{pin.replace('==', '-')}-*.whl")) for pin in pins]
    wheels = {}
    for pin, path in zip(pins, paths, strict=True):
        name, version = pin.split("==")
        with zipfile.ZipFile(path) as wheel:
            content = {
                info.filename: wheel.read(info)
                for info in wheel.infolist()
                if not info.is_dir() and not _LEFT_OUT & set(info.filename.split("/"))
            }
        depends = [other for other in lock["packages"][name]["depends"] if other in PURE]
        wheels[name] = _wheel(name, version, content, depends, [name])
    return wheels


def _companion(lock):
    """The modules of companion that need no torch. Its needs are loaded by the page, which knows them module by module."""
    content = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in sorted((ROOT / "companion").rglob("*"))
        if path.suffix in (".py", ".html") and not path.stem.endswith(("_torch", "_triton"))
    }
    information = "companion-0.dist-info"
    content[f"{information}/METADATA"] = b"Metadata-Version: 2.1\nName: companion\nVersion: 0\n"
    content[f"{information}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: book\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    return _wheel("companion", "0", content, [], ["companion"])


def _wheel(name, version, content, depends, imports):
    """Return (entry of the lock file, bytes): a zip that is equal on every machine."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(content):
            archive.writestr(
                zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content[path], zipfile.ZIP_DEFLATED, 9
            )
    data = buffer.getvalue()
    return {
        "name": name,
        "version": version,
        "file_name": f"{name}-{version}-py3-none-any.whl",
        "install_dir": "site",
        "package_type": "package",
        "sha256": hashlib.sha256(data).hexdigest(),
        "depends": depends,
        "imports": imports,
        "unvendored_tests": False,
    }, data


def _fingerprint(files):
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name} {len(files[name])} ".encode() + files[name])
    return digest.hexdigest()[:12]
