"""From the bytes that a student handed in to the code that is run: the given cells as they were, then what the student wrote.

Nothing is believed but the text of the cells. Metadata, order, numbering and type of the cells may be lost or changed; a
cell that is one of the released ones is taken from the release, and an untouched stub counts for nothing. The text is never
parsed as Python here, for a parser can be made to run out of stack.
"""

import json
import re

from classroom.assignment import defined_names

LARGEST = 32 << 20


class RejectedError(Exception):
    """Why a file cannot be graded, as "«中文||English»"."""


def read_cells(data, name):
    """Return ([(kind, source)], notes) of a notebook or a script, or raise RejectedError."""
    notes = []
    if len(data) > LARGEST:
        raise RejectedError(
            "«文件超过 32 MiB：清除输出后再交||the file is over 32 MiB: clear its outputs and hand it in again»"
        )
    text = _decoded(data, notes).strip()
    if not text:
        raise RejectedError("«文件是空的||the file is empty»")
    if text[0] == "<":
        raise RejectedError(
            "«这是网页，不是笔记本：用“文件 → 下载 → 下载 .ipynb”||this is a web page, not a notebook: use File → Download → Download .ipynb»"
        )
    if text[0] == "{":
        return _notebook_cells(text), notes
    if name.lower().endswith(".py"):
        return [
            ("code", part) for part in re.split(r"^# (?:%%|In ?\[[ \d]*\]:?).*$", text, flags=re.M)
        ], notes
    raise RejectedError("«既不是 .ipynb 也不是 .py||this is neither an .ipynb nor a .py file»")


def student_code(cells, assignment):
    """Return (cells to run after the given ones, answered question ids, notes)."""
    stubs = {_plain(stub) for question in assignment.questions for stub in question.stubs}
    known = {_plain(source) for source in assignment.pristine} | stubs
    own = [(kind, source) for kind, source in cells if source.strip() and _plain(source) not in known]
    defined = {name for kind, source in own if kind == "code" for name in defined_names(source)}
    wanted = {name for question in assignment.questions for name in question.names}
    code, notes = [], []
    for kind, source in own:
        lost = defined_names(source) & wanted if kind != "code" else set()
        if lost - defined:
            notes.append(
                f"«{_list(lost)} 写在不是代码的单元格里，已当作代码||{_list(lost)} stands in a cell that is not code; taken as code»"
            )
            defined |= lost
        elif kind != "code":
            continue
        code.append(source)
    answered = [question.id for question in assignment.questions if set(question.names) & defined]
    return code, answered, notes


def _plain(source):
    return re.sub(r"\s+", " ", source).strip()


def _list(names):
    return ", ".join(sorted(names))


def _decoded(data, notes):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        notes.append("«文件不是 UTF-8，按 GB18030 读||the file is not UTF-8; read as GB18030»")
        return data.decode("gb18030", "replace")


def _notebook_cells(text):
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        raise RejectedError(
            "«文件不完整或已损坏：请重新下载、重新提交||the file is cut off or damaged: download it again»"
        ) from None
    raw = notebook.get("cells")
    if raw is None and isinstance(notebook.get("worksheets"), list):  # nbformat 3
        raw = [
            c for sheet in notebook["worksheets"] if isinstance(sheet, dict) for c in sheet.get("cells") or ()
        ]
    if not isinstance(raw, list):
        raise RejectedError("«这不是笔记本：里面没有单元格||this is no notebook: it has no cells»")
    cells = []
    for cell in raw:
        if isinstance(cell, dict):
            source = cell.get("source", cell.get("input", ""))
            lines = source if isinstance(source, list) else [source]
            joined = "".join(line for line in lines if isinstance(line, str))
            # A lone surrogate can stand in JSON, but neither in a file nor in a message.
            cells.append(
                (str(cell.get("cell_type")), joined.encode("utf8", "replace").decode().replace("\0", ""))
            )
    return cells
