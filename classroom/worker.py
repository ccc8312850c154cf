"""Inside the sandbox: the first process, which never runs a line of a student's, and the children it forks, which do.

It imports the packages once, forks a child for each question, passes messages on, and ends the child and all that it
started when time, memory or the length of an answer runs out. As process 1 it cannot be killed from inside.
"""

import __future__

import ast
import ctypes
import importlib
import json
import linecache
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
import types

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
        until = time.monotonic() + message["seconds"]
        if "open" in message:
            _end_all()
            child = _fork(message["open"], config["memory"])
            _reply(_load(child, message["seconds"], config["memory"], alone))
            continue
        try:
            child.settimeout(message["seconds"])
            child.sendall(json.dumps(message["ask"]).encode() + b"\n")
            answer, failure = _receive(child, until, config["memory"], alone)
        except OSError:
            answer, failure = None, "died"
        if failure:
            _end_all()
        _reply({"failed": failure} if failure else answer)
    _end_all()
    os._exit(0)


def give_up_privileges(uid):
    """Become the user `uid`, if the sandbox was made by root; refuse to go on with any privilege left."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    libc = ctypes.CDLL(None)
    libc.prctl(_DUMPABLE, 0, 0, 0, 0)  # nobody may look into this process or at its files
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 does not feel a signal without a handler
    with open("/proc/self/status") as status:
        rights = dict(line.split(":\t", 1) for line in status.read().splitlines() if ":\t" in line)
    if os.getpid() != 1 or os.getuid() == 0 or int(rights["CapEff"], 16) or int(rights["CapPrm"], 16):
        _reply(
            {"refused": f"process {os.getpid()}, user {os.getuid()}, capabilities {rights['CapEff'].strip()}"}
        )
        sys.exit(1)


def serve(channel, cells, skip):
    """In a child: run the student's cells, one statement after the other, then answer questions about what they define."""
    encode, decode = sys.modules["wire"].encode, sys.modules["wire"].decode
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    names, notes, unit, flags = main.__dict__, [], 0, 0
    names["display"] = lambda *values, **options: None
    for cell, source in enumerate(cells):
        file = f"<cell {cell + 1}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        try:
            statements = _statements(source, file)
        except BaseException as error:  # also what a parser may raise that runs out of stack or memory
            notes.append([cell, getattr(error, "lineno", None), _said(error)])
            continue
        for statement in statements:
            unit += 1
            if unit in skip:
                continue
            channel.sendall(b'{"unit": [%d, %d, %d]}\n' % (unit, cell, statement.lineno))
            if getattr(statement, "module", None) == "__future__":
                flags |= __future__.annotations.compiler_flag  # the other features are no longer optional
            try:
                exec(compile(ast.Module([statement], []), file, "exec", flags, True), names)
            except BaseException as error:  # a student's exit() ends nothing
                notes.append([cell, statement.lineno, _said(error)])
    channel.sendall(json.dumps({"loaded": notes[:20]}).encode() + b"\n")
    for line in channel.makefile("rb"):
        question = json.loads(line)
        try:
            value = names[question["name"]]
        except KeyError:
            reply = {"missing": question["name"]}
        else:
            try:
                if "arguments" in question:
                    value = value(*decode(question["arguments"]))
                reply = {"value": encode(value)}
            except BaseException as error:
                kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
                reply = {"raised": kinds[0]}
        channel.sendall(json.dumps(reply).encode() + b"\n")


def _statements(source, file):
    """Parse a cell; what only a notebook understands (%time, !pip, name?) is left out."""
    try:
        return ast.parse(source, file).body
    except SyntaxError:
        magic = r"^([ \t]*)(?:[%!?].*|[\w, ]+=\s*[%!].*|[\w.]+\?+)$"
        plain = re.sub(magic, r"\1pass", source, flags=re.M)
        if plain == source:
            raise
        return ast.parse(plain, file).body


def _said(error):
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return type(error).__name__[:300]


def _reply(message):
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _fork(request, memory):
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        return ours
    try:
        ours.close()
        nowhere = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):  # the pipes to the grader end here
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
        _limit(memory << 20)
        ctypes.CDLL(None).prctl(_DUMPABLE, 1, 0, 0, 0)
        serve(theirs, request["cells"], set(request["skip"]))
    finally:
        os._exit(0)


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


def _load(child, seconds, memory, alone):
    """Pass on that the cells have been run, or at which statement that ended."""
    last, everything = [0, 0, 0], time.monotonic() + 3 * seconds
    while True:
        until = min(time.monotonic() + seconds, everything)
        line, failure = _receive(child, until, memory, alone)
        if failure:
            _end_all()
            return {"stuck": last, "failed": failure}
        try:
            message = json.loads(line)
            if "loaded" in message:
                return line
            last = [int(number) for number in message["unit"]]
        except (
            Exception
        ):  # somebody else writes into the channel: the reader outside makes nothing of it either
            _end_all()
            return {"stuck": last, "failed": "died"}


_pending = bytearray()  # what a child has sent beyond the last line; one child at a time


def _receive(child, until, memory, alone):
    """Return (line, None), or (None, why there is none)."""
    look = 0
    while b"\n" not in _pending:
        now = time.monotonic()
        if now > until:
            return None, "time"
        if len(_pending) > LONGEST_REPLY:
            return None, "long"
        if now > look:
            look = now + 0.1
            if _excessive(memory << 20, alone):
                return None, "memory"
        ready = select.select([child, 0], [], [], min(0.1, until - now))[0]
        if 0 in ready:  # nobody sends anything before the answer: the grader has ended
            _end_all()
            os._exit(0)
        if ready:
            try:
                chunk = child.recv(1 << 18)
            except OSError:
                chunk = b""
            if not chunk:
                return None, "died"
            _pending.extend(chunk)
    line, _, rest = bytes(_pending).partition(b"\n")
    _pending[:] = rest
    return line, None


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


def _end_all():
    """Kill everything but this process, wait for it, and empty the folders that can be written to."""
    _pending.clear()
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


if __name__ == "__main__":
    main()
