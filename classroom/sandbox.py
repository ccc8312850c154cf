"""The wall between students' code and everything else: bubblewrap, limits, and a reader that trusts no byte.

Without bubblewrap, or where the system forbids what it needs, `Sandbox` refuses; there is no other way to run an answer.
"""

import contextlib
import importlib.metadata
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache
from pathlib import Path

from packaging.requirements import Requirement

from book import ROOT
from classroom.seccomp import filter_program

LONGEST_LINE = 9 << 20
HERE = Path(__file__).parent
_TMP = 64 << 20
_GRACE = 5  # seconds more than the first process of the sandbox has to answer in
_FIRST_USER, _USERS = 61184, 4336  # the numbers that systemd sets aside for users of one moment
_MISSING = (
    "没有找到 bubblewrap（bwrap），而学生的代码只在沙箱里运行。Debian、Ubuntu：apt-get install bubblewrap / "
    "bubblewrap (bwrap) is missing, and students' code runs in a sandbox or not at all. Debian, Ubuntu: apt-get install bubblewrap"
)
_REFUSED = (
    "沙箱建不起来，所以什么也没有运行：{reason}。系统若禁止用户命名空间，请看教师指南，或用 root 运行 / "
    "the sandbox cannot be built, so nothing was run: {reason}. If the system forbids user namespaces, see the teacher's guide, or run as root"
)


class SandboxError(Exception):
    """There is no sandbox on this machine. Nothing was run."""


class BrokenError(Exception):
    """This one sandbox has ended, or does not answer."""


class Sandbox:
    """One sandbox for one submission: `open` runs cells in a fresh process, `ask` puts a question to it."""

    def __init__(self, packages, memory):
        self.packages, self.memory, self.versions = list(packages), memory, {}
        self.process, self.first = (
            None,
            None,
        )  # bubblewrap, and the number of the first process in the sandbox

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()

    def open(self, cells, skip, seconds):
        """Run the cells, without the statements of those numbers; return the worker's message."""
        if self.process is None:
            self._start()
        # The worker gives each statement `seconds`, and all of them three times as long.
        return self._exchange(
            {"open": {"cells": cells, "skip": sorted(skip)}, "seconds": seconds}, 3 * seconds
        )

    def ask(self, question, seconds):
        """Put one question to the process that `open` has left, and return the answer, whatever it is."""
        if self.process is None:
            raise BrokenError
        return self._exchange({"ask": question, "seconds": seconds}, seconds)

    def close(self):
        process, self.process = self.process, None
        if process is None:
            return
        process.stdin.close()
        try:  # the first process ends all others, then itself: after that nothing is left
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._kill(process)
        process.stdout.close()

    def _kill(self, process):
        """End a sandbox that does not end itself: bubblewrap may not kill its child where the child has another user."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.first:
                os.kill(self.first, signal.SIGKILL)
        process.kill()
        process.wait()

    def _start(self):
        user = _FIRST_USER + threading.get_native_id() % _USERS if os.geteuid() == 0 else None
        with tempfile.TemporaryFile() as rules, _pipe() as (news, told):
            rules.write(filter_program())
            rules.seek(0)
            try:
                self.process = subprocess.Popen(
                    command(self.packages, rules.fileno(), told.fileno(), user),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=[rules.fileno(), told.fileno()],
                    env={},
                    bufsize=0,
                )
            except FileNotFoundError:
                raise SandboxError(_MISSING) from None
            told.close()
            self.first = _number_of_child(news.read())
        # Nothing of a student's has run yet: what goes wrong now is the machine.
        for pipe in (self.process.stdin, self.process.stdout):
            os.set_blocking(pipe.fileno(), False)
        message = {"uid": user, "packages": self.packages, "memory": self.memory}
        try:
            answer = self._exchange(message, 120)
        except BrokenError:
            answer = {}
        if "ready" not in answer:
            reason = answer.get("refused") or self._last_words() or "bwrap"
            self.close()
            raise SandboxError(_REFUSED.format(reason=reason))
        self.process.stderr.close()
        self.versions = answer["ready"]

    def _last_words(self):
        self._kill(self.process)
        return self.process.stderr.read(2000).decode(errors="replace").strip().replace("\n", "; ")

    def _exchange(self, message, seconds):
        """Send a message and return the answer; BrokenError, and the end of the sandbox, for anything but one line of JSON."""
        try:
            line = self._transfer(json.dumps(message).encode() + b"\n", time.monotonic() + seconds + _GRACE)
            answer = json.loads(line)
            if not isinstance(answer, dict):
                raise ValueError("not of this protocol")
        except (OSError, ValueError, RecursionError, BrokenError):
            if "uid" not in message:
                self.close()
            raise BrokenError from None
        return answer

    def _transfer(self, outgoing, until):
        stdin, stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        poll, received = select.poll(), bytearray()
        poll.register(stdin, select.POLLOUT)
        poll.register(stdout, select.POLLIN)
        while not received.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or len(received) > LONGEST_LINE:
                raise BrokenError
            for descriptor, event in poll.poll(left * 1000):
                if descriptor == stdin and outgoing:
                    outgoing = outgoing[os.write(stdin, outgoing[: 1 << 16]) :]
                    if not outgoing:
                        poll.unregister(stdin)
                elif descriptor == stdout and event & select.POLLIN:
                    received += os.read(stdout, 1 << 20)
                else:
                    raise BrokenError
        return bytes(received)


@contextlib.contextmanager
def _pipe():
    reading, writing = os.pipe()
    with open(reading, "rb") as news, open(writing, "wb") as told:
        yield news, told


def _number_of_child(news):
    """Return the number that bubblewrap reports of the first process, or None if it got nowhere."""
    try:
        return json.loads(news)["child-pid"]
    except (ValueError, KeyError):
        return None


def command(packages, rules, told, user):
    """Return the command that starts the worker; `rules` is the file descriptor of the seccomp filter, to `told` bubblewrap reports.

    A user other than root gets a user namespace. Root (`user` is a number then) makes the sandbox without one, and the worker
    becomes that user before anything else: limits on the number of processes do not hold for root's.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxError(_MISSING)
    namespaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    rights = ["--cap-drop", "ALL"]
    if user is None:
        namespaces += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    else:
        rights += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
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
        *_bind({HERE / "worker.py": "/grader/worker.py", HERE / "wire.py": "/grader/wire.py"}),
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


def probe(packages, memory):
    """Build one sandbox, and return the versions of the packages in it; SandboxError says in both languages why there is none."""
    with Sandbox(packages, memory) as sandbox, contextlib.suppress(BrokenError):
        if "loaded" in sandbox.open(["x = 1"], (), 10):
            return sandbox.versions
    raise SandboxError(_REFUSED.format(reason="bwrap"))
