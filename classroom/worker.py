"""Inside the sandbox: the first process, which never runs a line of a student's, and the children it forks, which do.

It imports the packages once, forks a child for each question, passes messages on, and ends the child and all that it
started when time, memory or the length of an answer runs out. As process 1 it cannot be killed from inside.
"""

import ctypes
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time

from cells import serve

LONGEST_REPLY = 8 << 20
MOST_FILES = 10_000
SCRATCH = ("/tmp", "/dev/shm")
_DUMPABLE = 4  # of prctl


def main():
    config = json.loads(sys.stdin.buffer.readline())
    give_up_privileges(config["uid"])
    sys.path.append("/packages")
    versions = {
        name: getattr(importlib.import_module(name), "__version__", "") for name in config["packages"]
    }
    importlib.import_module("wire")
    alone, child = _anonymous_memory("self"), None
    _reply({"ready": versions})
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "open" in message:
            end_all()
            child = Child(message["open"], config["memory"] << 20, alone)
            _reply(child.load(message["seconds"]))
        else:
            _reply(child.ask(message["ask"], message["seconds"]))
    end_all()
    os._exit(0)


def give_up_privileges(uid):
    """Become the user `uid`, if the sandbox was made by root; refuse to go on with any privilege left."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)  # nobody may look into this process or at its files
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 does not feel a signal without a handler
    with open("/proc/self/status") as status:
        rights = dict(line.split(":\t", 1) for line in status.read().splitlines() if ":\t" in line)
    if os.getpid() != 1 or os.getuid() == 0 or int(rights["CapEff"], 16) or int(rights["CapPrm"], 16):
        _reply(
            {"refused": f"process {os.getpid()}, user {os.getuid()}, capabilities {rights['CapEff'].strip()}"}
        )
        sys.exit(1)


class Child:
    """A process with a student's cells in it, and the channel to it. What comes out of the channel is not trusted."""

    def __init__(self, request, memory, alone):
        self.memory, self.alone, self.pending, self.looked = memory, alone, bytearray(), 0
        self.channel, theirs = socket.socketpair()
        if os.fork():
            theirs.close()
            return
        try:
            self.channel.close()
            nowhere = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):  # the pipes to the grader end here
                os.dup2(nowhere, descriptor)
            os.close(nowhere)
            _limit(memory)
            ctypes.CDLL(None).prctl(_DUMPABLE, 1, 0, 0, 0)
            serve(theirs, request["cells"], set(request["skip"]))
        finally:
            os._exit(0)

    def load(self, seconds):
        """Return what is said when the cells have been run, or at which statement that ended and why."""
        last, everything = [0, 0, 0], time.monotonic() + 3 * seconds
        self.channel.settimeout(seconds)
        while True:
            line, failure = self._receive(min(time.monotonic() + seconds, everything))
            try:
                message = {} if failure else json.loads(line)
                if "loaded" in message:
                    return line
                if not failure:
                    last = [int(number) for number in message["unit"]]
                    self.channel.sendall(b"\n")  # the child waits: what is found later is of this statement
            except Exception:  # somebody else writes into the channel, or nobody reads it
                failure = "died"
            if failure:
                end_all()
                return {"stuck": last, "failed": failure}

    def ask(self, question, seconds):
        """Pass a question on and return the answer as it comes, or why there is none."""
        until = time.monotonic() + seconds
        try:
            self.channel.settimeout(seconds)
            self.channel.sendall(json.dumps(question).encode() + b"\n")
            answer, failure = self._receive(until)
        except OSError:
            failure = "died"
        if failure:
            end_all()
            return {"failed": failure}
        return answer

    def _receive(self, until):
        """Return (line, None), or (None, why there is none)."""
        while b"\n" not in self.pending:
            now = time.monotonic()
            if now > until:
                return None, "time"
            if len(self.pending) > LONGEST_REPLY:
                return None, "long"
            if self._takes_too_much(0.1):
                return None, "memory"
            ready = select.select([self.channel, 0], [], [], min(0.1, until - now))[0]
            if 0 in ready:  # nobody sends anything before the answer: the grader has ended
                end_all()
                os._exit(0)
            if ready:
                try:
                    chunk = self.channel.recv(1 << 18)
                except OSError:
                    chunk = b""
                if not chunk:
                    return None, "died"
                self.pending.extend(chunk)
        if self._takes_too_much(0.005):
            return None, "memory"
        line, _, rest = bytes(self.pending).partition(b"\n")
        self.pending[:] = rest
        return line, None

    def _takes_too_much(self, pause):
        """Look at it, if the last look was so many seconds ago."""
        now = time.monotonic()
        if now < self.looked + pause:
            return False
        self.looked = now
        return _excessive(self.memory, self.alone)


def end_all():
    """Kill everything but this process, wait for it, and empty the folders that can be written to."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    for folder in SCRATCH:
        if os.listdir(folder):  # shutil.rmtree fails on folders in folders in folders
            subprocess.run(["/usr/bin/find", folder, "-mindepth", "1", "-delete"], stderr=subprocess.DEVNULL)


def _limit(memory):
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    for name, most in {
        "AS": mapped + memory,
        "NPROC": 64,
        "NOFILE": 128,
        "FSIZE": 16 << 20,
        "CORE": 0,
        "MSGQUEUE": 0,
        "MEMLOCK": 1 << 16,
    }.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def _excessive(memory, alone):
    """Say whether all processes and files in the sandbox take too much together."""
    others = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != "1"]
    used = [max(0, _anonymous_memory(pid) - alone) for pid in others]
    files = (os.statvfs(folder) for folder in SCRATCH)
    return sum(used) > memory or any(f.f_files - f.f_ffree > MOST_FILES for f in files)


def _anonymous_memory(pid):
    """Bytes of memory of a process that are no pages of a file."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return sum(
                int(line.split()[1]) << 10 for line in status if line.startswith(("RssAnon", "RssShmem"))
            )
    except (OSError, ValueError):  # it has ended
        return 0


def _reply(message):
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
