"""Who is in the class, and whose is a name that lies in the inbox."""

import csv
import hashlib
import io
import re
from pathlib import Path
from typing import NamedTuple

_IDS = ("id", "student id", "student_id", "sid", "number", "学号", "编号")
_NAMES = ("name", "student name", "student_name", "full name", "姓名", "名字")


class Student(NamedTuple):
    id: str
    name: str


def read_roster(path):
    """Return the students of a CSV file with the columns id and name (学号, 姓名), or raise ValueError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"读不了名单 {path}：{error.strerror} / the roster cannot be read") from None
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("gb18030", "replace")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    rows = [[word.strip() for word in row] for row in csv.reader(io.StringIO(text), delimiter=delimiter)]
    rows = [row for row in rows if any(row)]
    head = [word.lower() for word in rows[0]] if rows else []
    columns = [next((i for i, word in enumerate(head) if word in words), None) for words in (_IDS, _NAMES)]
    if None in columns:
        raise ValueError(
            f"名单 {path} 的第一行要有 id 和 name 两列（学号、姓名），现在是 {first.strip()[:80]!r} / "
            "the first line of the roster needs the columns id and name"
        )
    students = [Student(*(row[i] if i < len(row) else "" for i in columns)) for row in rows[1:]]
    ids = [student.id for student in students]
    for line, student in enumerate(students, 2):
        if not student.id or ids.count(student.id) > 1:
            raise ValueError(
                f"名单 {path} 第 {line} 行：学号 {student.id!r} 为空或重复 / line {line} of the roster: this id is empty or occurs twice"
            )
    return students


def owner_of(name, assignment, roster):
    """Return the student to whom a name in the inbox belongs: of the roster if one is named in it, the earliest first.

    A name that several students of the roster have belongs to none of them: what carries it is graded on its own.
    """
    stem = re.sub(r"\.(ipynb|py|zip|json|txt)$", "", name, flags=re.I)
    places = []
    for student in roster:
        for word in filter(None, (student.id, student.name)):
            pattern = r"[\s_-]*".join(map(re.escape, word.split()))
            edge = r"(?<![0-9A-Za-z]){}(?![0-9A-Za-z])" if word.isascii() else "{}"
            if found := re.search(edge.format(pattern), stem, re.I):
                places.append((found.start(), -len(found[0]), student))
    if places:
        first = min(places)
        same = {student for *place, student in places if place == list(first[:2])}
        return first[2] if len(same) == 1 else Student("", stem)
    short = re.sub(r"\s*(\(\d+\)|（\d+）|[-_ ]*(copy|副本)( ?\d+)?)\s*", "", stem, flags=re.I)
    short = re.sub(rf"[-_ ]*{re.escape(assignment)}[-_ ]*", "", short, flags=re.I).strip()
    return Student("", short or stem)


def key_of(student):
    """Return the name of the student's files: safe on every system, and different for different students."""
    text = student.id or student.name
    plain = re.sub(r"[^\w-]+", "_", text).strip("_")[:60]
    return (
        plain
        if plain and plain == text
        else f"{plain or 'student'}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    )
