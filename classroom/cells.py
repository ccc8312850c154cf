"""Inside the sandbox, in a child of the first process: run a student's cells, then answer questions about what they define.

Statement by statement, as a notebook would cell by cell: one that fails does not take the others with it.
"""

import __future__

import ast
import json
import linecache
import re
import sys
import types

MOST_NOTES = 20
# What only a notebook understands: %time, !pip install, files = !ls, name?
_MAGIC = re.compile(r"^([ \t]*)(?:[%!?].*|[\w, ]+=\s*[%!].*|[\w.]+\?+)$", re.M)


def serve(channel, cells, skip):
    """Run the cells, without the statements whose numbers are in `skip`, then answer until the channel ends."""
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
            channel.recv(1)  # the first process has looked at what the statement before left behind
            if getattr(statement, "module", None) == "__future__":
                flags |= __future__.annotations.compiler_flag  # the other features are no longer optional
            try:
                exec(compile(ast.Module([statement], []), file, "exec", flags, True), names)
            except BaseException as error:  # a student's exit() ends nothing
                notes.append([cell, statement.lineno, _said(error)])
    channel.sendall(json.dumps({"loaded": notes[:MOST_NOTES]}).encode() + b"\n")
    for line in channel.makefile("rb"):
        channel.sendall(json.dumps(_answer(json.loads(line), names)).encode() + b"\n")


def _answer(question, names):
    wire = sys.modules["wire"]
    if question["name"] not in names:
        return {"missing": question["name"]}
    try:
        value = names[question["name"]]
        if "arguments" in question:
            value = value(*wire.decode(question["arguments"]))
        return {"value": wire.encode(value)}
    except BaseException as error:
        return {
            "raised": next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
        }


def _statements(source, file):
    try:
        return ast.parse(source, file).body
    except SyntaxError:
        plain = _MAGIC.sub(r"\1pass", source)
        if plain == source:
            raise
        return ast.parse(plain, file).body


def _said(error):
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return type(error).__name__[:300]
