"""What comes out of grading: grades.csv for the teacher, one page of feedback for each student, a report about the class."""

import csv
import re
import statistics
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from classroom.assignment import pick

BLANK = "«没有作答"
STATUS = {
    "graded": "«已评||graded»",
    "rejected": "«读不了||cannot be read»",
    "failed": "«评分出错||grading failed»",
    "missing": "«未交||nothing handed in»",
}


def write_reports(out, assignment, results, roster=()):
    """Write grades.csv, feedback/KEY.html and report.html into `out`."""
    out = Path(out)
    (out / "feedback").mkdir(parents=True, exist_ok=True)
    handed_in = {result["id"] for result in results}
    absent = [student for student in roster if student.id not in handed_in]
    rows = [*results, *(_missing(student, assignment) for student in absent)]
    rows.sort(key=lambda row: (row["id"], row["student"]))
    _write_grades(out / "grades.csv", assignment, rows)
    page = _environment().get_template("feedback.html").render
    for result in results:
        text = page(assignment=assignment, result=result, status=STATUS)
        (out / "feedback" / f"{result['key']}.html").write_text(text, "utf8")
    facts = _facts(assignment, rows)
    text = _environment().get_template("report.html").render(assignment=assignment, status=STATUS, **facts)
    (out / "report.html").write_text(text, "utf8")


def _write_grades(path, assignment, rows):
    # utf-8-sig: without the mark Excel takes the file for the code page of the system.
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        questions = [f"{question.id} ({question.points})" for question in assignment.questions]
        head = "学号 id,姓名 name,状态 status,总分 points,满分 maximum".split(",")
        writer.writerow([*head, *questions, "文件 file", "说明 notes"])
        for row in rows:
            points = {question["id"]: question["points"] for question in row["questions"]}
            notes = "; ".join(
                _both(note) for note in [*([row["reason"]] if "reason" in row else []), *row["notes"]]
            )
            cells = [row["id"], row["student"], _both(STATUS[row["status"]])]
            cells += ["" if row["status"] == "missing" else row["points"], row["maximum"]]
            cells += [points.get(question.id, "") for question in assignment.questions]
            writer.writerow([_harmless(cell) for cell in [*cells, row["file"], notes]])


def _missing(student, assignment):
    empty = {"points": 0, "maximum": assignment.points, "questions": [], "notes": [], "file": ""}
    return {"id": student.id, "student": student.name, "status": "missing", **empty}


def _harmless(cell):
    """A text that begins like a formula would be one in Excel, and a student chooses the name of a file."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _both(text):
    return re.sub(r"«(.*?)\|\|(.*?)»", r"\1 / \2", text)


def _facts(assignment, rows):
    graded = [row for row in rows if row["status"] == "graded"]
    totals = [row["points"] for row in graded]
    bins = [0] * 10
    for total in totals:
        bins[min(int(10 * total / assignment.points), 9)] += 1
    parts = [f"{10 * i}–{10 * i + 10}" for i in range(10)]
    shares, mistakes = [], {}
    for question in assignment.questions:
        own = [q for row in graded for q in row["questions"] if q["id"] == question.id]
        shares.append(statistics.fmean(q["points"] for q in own) / question.points if own else 0)
        for test in (test for q in own for test in q["tests"]):
            if test["problem"] is not None and not test["problem"].startswith(BLANK):
                key = question.id, test["name"], test["problem"]
                mistakes[key] = mistakes.get(key, 0) + 1
    hardest = sorted(range(len(shares)), key=lambda i: shares[i])
    return {
        "counts": {status: sum(row["status"] == status for row in rows) for status in STATUS},
        "mean": statistics.fmean(totals) if totals else 0,
        "median": statistics.median(totals) if totals else 0,
        "distribution": _bars(parts, bins, [str(count) for count in bins]),
        "difficulty": _bars(
            [assignment.questions[i].id for i in hardest],
            [shares[i] for i in hardest],
            [f"{shares[i]:.0%}" for i in hardest],
            highest=1,
        ),
        "mistakes": sorted(mistakes.items(), key=lambda item: -item[1])[:15],
        "attention": [row for row in rows if row["status"] in ("rejected", "failed")],
    }


def _bars(labels, values, texts, highest=None):
    """Return what a template draws: one (x, y, width, height, label, text) for each value."""
    highest = highest or max(values, default=0) or 1
    width = 560 / max(len(values), 1)
    heights = [150 * value / highest for value in values]
    return [
        (20 + i * width + 4, 170 - height, width - 8, height, label, text)
        for i, (height, label, text) in enumerate(zip(heights, labels, texts, strict=True))
    ]


def _environment():
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["pick"] = pick
    return environment
