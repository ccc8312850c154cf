"""Which file belongs to which student: folders, zips, second uploads, and the roster.

A student decides what is inside a zip or a folder, but not under which name it lies in the inbox: only that name says whose
it is. Nothing is unpacked onto the disk.
"""

import hashlib
import io
import re
import time
import zipfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from classroom.rebuild import LARGEST, RejectedError, read_cells, student_code
from classroom.roster import key_of, owner_of

READABLE = (".ipynb", ".py", ".json", ".txt")
_MOST_FILES, _MOST_BYTES, _DEEPEST = 10_000, 1 << 30, 2


class Upload(NamedTuple):
    owner: str  # what lies in the inbox: a file or the folder around it
    path: str  # where in it
    when: float
    data: object  # bytes, or the RejectedError that stands in their place


def collect(inbox, assignment, roster=()):
    """Return one job for each student who handed something in, sorted by key, and none twice."""
    inbox = Path(inbox)
    if not inbox.exists():
        raise ValueError(f"没有 {inbox} 这个文件夹或压缩包 / there is no such folder or zip")
    belongings = {}
    for upload in _uploads(inbox):
        student = owner_of(upload.owner, assignment.name, roster)
        belongings.setdefault(student, []).append(_read(upload, assignment))
    jobs = [_job(student, files) for student, files in belongings.items()]
    for job in jobs:
        if roster and not job["id"]:
            job["notes"].append(
                "«文件名对不上名单：没有学号或姓名，或者同名的不止一人||the name of the file is not on the roster, or belongs to several students»"
            )
    return sorted(jobs, key=lambda job: job["key"])


def _uploads(inbox):
    if inbox.is_file():
        if not zipfile.is_zipfile(inbox):
            raise ValueError(f"{inbox} 不是文件夹，也不是 zip / is neither a folder nor a zip")
        with zipfile.ZipFile(inbox) as archive:
            for path, when, data in _entries(archive, 0, [_MOST_BYTES]):
                first, _, rest = path.partition("/")
                yield from _unpacked(Upload(first, rest or first, when, data))
        return
    for path in sorted(inbox.rglob("*")):
        place = path.relative_to(inbox)
        if path.is_symlink() or not path.is_file() or _is_litter(place.parts):
            continue
        large = path.stat().st_size > max(LARGEST, _MOST_BYTES if path.suffix.lower() == ".zip" else 0)
        data = b"x" * (LARGEST + 1) if large else path.read_bytes()
        yield from _unpacked(
            Upload(place.parts[0], "/".join(place.parts[1:]) or place.name, path.stat().st_mtime, data)
        )


def _unpacked(upload):
    """Yield an upload, or what is in it if it is a zip."""
    if not upload.path.lower().endswith(".zip"):
        yield upload
        return
    try:
        with zipfile.ZipFile(io.BytesIO(upload.data)) as archive:
            entries = list(_entries(archive, 0, [_MOST_BYTES // 4]))
        for path, when, data in entries:
            yield upload._replace(path=f"{upload.path}/{path}", when=max(when, upload.when), data=data)
        if not entries:
            yield upload._replace(data=RejectedError("«压缩包里没有笔记本||there is no notebook in the zip»"))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError, ValueError):
        reason = RejectedError("«压缩包打不开或加了密||the zip cannot be opened, or has a password»")
        yield upload._replace(data=reason)


def _entries(archive, depth, left):
    """Yield (path, time, bytes) of the readable files of a zip, and of zips in it, within the bytes that are left."""
    for entry in archive.infolist()[:_MOST_FILES]:
        name = entry.filename
        if not entry.flag_bits & 0x800:
            # Not UTF-8: zipfile took it for code page 437, and Windows in China wrote GBK.
            name = name.encode("cp437", "replace").decode("gb18030", "replace")
        place = PurePosixPath(name.replace("\\", "/"))
        if entry.is_dir() or _is_litter(place.parts) or place.suffix.lower() not in (*READABLE, ".zip"):
            continue
        with archive.open(entry) as file:
            data = file.read(min(left[0], LARGEST + 1))
        left[0] -= len(data)
        if left[0] <= 0:
            return
        when = _time_of(entry)
        if place.suffix.lower() == ".zip" and depth < _DEEPEST and zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as inner:
                for path, later, content in _entries(inner, depth + 1, left):
                    yield f"{place}/{path}", later, content
        else:
            yield str(place), when, data


def _time_of(entry):
    try:
        return time.mktime((*entry.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def _is_litter(parts):
    return any(
        part.startswith((".", "~$", "__MACOSX", "__pycache__")) or part == "Thumbs.db" for part in parts
    )


def _read(upload, assignment):
    """Return what is kept of an upload: the code in it, or why there is none. The bytes are not."""
    name = upload.path if upload.path.startswith(upload.owner) else f"{upload.owner}/{upload.path}"
    data = upload.data if isinstance(upload.data, bytes) else b""
    script = not upload.path.lower().endswith(".ipynb")
    file = {
        "file": name.encode("utf8", "replace").decode(),
        "sha256": hashlib.sha256(data).hexdigest(),
        "cells": [],
        "answered": [],
        "notes": [],
    }
    try:
        if isinstance(upload.data, RejectedError):
            raise upload.data
        cells, notes = read_cells(upload.data, upload.path)
        file["cells"], file["answered"], more = student_code(cells, assignment)
        file["notes"] = notes + more
    except RejectedError as error:
        file["rejected"] = str(error)
    # Of several files the best is one with answers, a notebook before a script, then the newest.
    rank = (
        "rejected" not in file,
        bool(file["answered"]),
        not script,
        upload.when,
        _number(upload.path),
        upload.path,
    )
    return rank, file


def _job(student, files):
    """Return what is graded for a student: one of the files."""
    _, best = max(files, key=lambda file: file[0])
    if len(files) > 1:
        best["notes"].append(
            f"«交了 {len(files)} 个文件，评的是 {best['file']}||{len(files)} files were handed in; graded is {best['file']}»"
        )
    return {"key": key_of(student), "id": student.id, "student": student.name, **best}


def _number(path):
    found = re.search(r"[(（](\d{1,6})[)）]", path)
    return int(found[1]) if found else 0
