"""The wall between students' code and everything else: bubblewrap, limits, and a reader that trusts no byte.

Without bubblewrap, or where the system forbids what it needs, `Sandbox` refuses; there is no other way to run an answer.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time

from classroom.bubblewrap import MISSING, SandboxError, command
from classroom.seccomp import filter_program

LONGEST_LINE = 9 << 20
_GRACE = 5  # seconds more than the first process of the sandbox has to answer in
_FIRST_USER, _USERS = 61184, 4336  # the numbers that systemd sets aside for users of one moment
_REFUSED = (
    "沙箱建不起来，所以什么也没有运行：{reason}。系统若禁止用户命名空间，请看教师指南，或用 root 运行 / "
    "the sandbox cannot be built, so nothing was run: {reason}. If the system forbids user namespaces, see the teacher's guide, or run as root"
)


class BrokenError(Exception):
    """This one sandbox has ended, or does not answer."""


class Sandbox:
    """One sandbox for one submission: `open` runs cells in a fresh process, `ask` puts a question to it."""

    def __init__(self, packages, memory):
        self.packages, self.memory, self.versions = list(packages), memory, {}
        # Bubblewrap, and the number of the first process in the sandbox.
        self.process, self.first = None, None

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
                raise SandboxError(MISSING) from None
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


def probe(packages, memory):
    """Build one sandbox, and return the versions of the packages in it; SandboxError says in both languages why there is none."""
    with Sandbox(packages, memory) as sandbox, contextlib.suppress(BrokenError):
        if "loaded" in sandbox.open(["x = 1"], (), 10):
            return sandbox.versions
    raise SandboxError(_REFUSED.format(reason="bwrap"))
