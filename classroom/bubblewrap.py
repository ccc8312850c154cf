"""The command that builds the sandbox: what is in it, and what is not."""

import importlib.metadata
import os
import shutil
import sys
from functools import lru_cache
from pathlib import Path

from packaging.requirements import Requirement

from book import ROOT

HERE = Path(__file__).parent
_TMP = 64 << 20
MISSING = (
    "没有找到 bubblewrap（bwrap），而学生的代码只在沙箱里运行。Debian、Ubuntu：apt-get install bubblewrap / "
    "bubblewrap (bwrap) is missing, and students' code runs in a sandbox or not at all. Debian, Ubuntu: apt-get install bubblewrap"
)


class SandboxError(Exception):
    """There is no sandbox on this machine. Nothing was run."""


def command(packages, rules, told, user):
    """Return the command that starts the worker; `rules` is the file descriptor of the seccomp filter, to `told` bubblewrap reports.

    A user other than root gets a user namespace. Root (`user` is a number then) makes the sandbox without one, and the worker
    becomes that user before anything else: limits on the number of processes do not hold for root's.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxError(MISSING)
    namespaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    rights = ["--cap-drop", "ALL"]
    if user is None:
        namespaces += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    else:
        rights += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LD_LIBRARY_PATH": f"{sys.base_prefix}/lib",  # where some Pythons have their own library
        "USER": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TRITON_INTERPRET": "1",
    }
    scratch = ["--perms", "1777", "--size", str(_TMP), "--tmpfs"]
    return [
        *[bwrap, *namespaces, *rights, "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"],
        *["--hostname", "sandbox", "--seccomp", str(rules), "--info-fd", str(told)],
        *(word for name, value in variables.items() for word in ("--setenv", name, value)),
        *_system(),
        *["--proc", "/proc", "--dev", "/dev", *scratch, "/dev/shm", *scratch, "/tmp"],
        *_bind({HERE / file: f"/grader/{file}" for file in ("worker.py", "cells.py", "wire.py")}),
        *_bind(package_files(tuple(packages))),
        *["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"],
        *[_interpreter(), "-I", "-S", "-B", "-c", _START],
    ]


_START = "import sys; sys.path.insert(0, '/grader'); import worker; worker.main()"


def _interpreter():
    return os.path.realpath(sys.executable)


def _system():
    """Return the read-only system: /usr, the standard library, and in the place of installed packages nothing."""
    words, base = [], Path(sys.base_prefix).resolve()
    for path in map(
        Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/alternatives")
    ):
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            words += _bind({path: str(path)})
    visible = [Path("/usr")]
    if not base.is_relative_to("/usr"):
        words += _bind({base: str(base)})
        visible.append(base)
    hidden = [
        *Path("/usr").glob("lib/python3*/*-packages"),
        *Path("/usr").glob("local/lib/python3*/*-packages"),
    ]
    hidden += base.glob("lib/python3*/*-packages")
    hidden += [
        folder
        for folder in (Path("/usr/src"), ROOT)
        if any(map(folder.is_relative_to, visible)) and folder.is_dir()
    ]
    for folder in dict.fromkeys(hidden):
        words += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    return words


def _bind(places):
    """Return the words that show files read-only; a folder above them would else be open to root alone."""
    words = []
    for source, target in places.items():
        for folder in [*Path(target).parents][-2::-1]:
            words += ["--perms", "0755", "--dir", str(folder)]
        words += ["--ro-bind", str(source), target]
    return words


@lru_cache(maxsize=16)
def package_files(packages):
    """Return {path: path in the sandbox} of these packages and of all that they require, and of no other."""
    providers = importlib.metadata.packages_distributions()
    wanted, places = ["numpy"], {}
    for package in packages:
        if package not in providers:
            raise SandboxError(
                f"作业要用 {package}，这里没有装：pip install {package} / the assignment needs {package}, which is not installed"
            )
        wanted += providers[package]
    seen = set()
    while wanted:
        name = wanted.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # a requirement for another system, or one that is not needed
        for requirement in map(Requirement, distribution.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            path = Path(distribution.locate_file(top))
            if path.exists() and path.suffix != ".pth":
                places[path.resolve()] = f"/packages/{top}"
    return places
