"""The directives {claims} and {glossary}: book/claims.yml and book/glossary.yml as pages."""

from collections import Counter
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from pybtex.database import parse_file

BOOK = Path(__file__).resolve().parent.parent
VERDICTS = {
    "wrong": ("错误", "wrong"),
    "misleading": ("误导", "misleading"),
    "imprecise": ("不准确", "imprecise"),
    "unsupported": ("没有依据", "unsupported"),
    "missing": ("缺漏", "missing"),
    "true": ("正确", "true"),
    "editorial": ("文字", "editorial"),
}
WORDS = {
    "zh": {
        "said": "常见的说法",
        "right": "实际的情况",
        "source": "出处",
        "evidence": "依据",
        "cell": "第 {lesson} 课 {section} 节",
        "test": "测试 `{name}`",
        "table": "{paper}，{place}",
        "all": "全部",
        "terms": "| 中文 | English |",
    },
    "en": {
        "said": "Commonly said",
        "right": "What is true",
        "source": "Source",
        "evidence": "Evidence",
        "cell": "lesson {lesson}, section {section}",
        "test": "the test `{name}`",
        "table": "{paper}, {place}",
        "all": "all",
        "terms": "| English | 中文 |",
    },
}


def claims():
    """Return the entries of book/claims.yml."""
    return yaml.safe_load((BOOK / "claims.yml").read_text("utf8"))


def evidence_line(claim, lang, papers):
    """Return where the evidence of a claim stands, as Markdown with links."""
    words = WORDS[lang]
    parts = []
    for kind, target in (pair for item in claim.get("evidence", ()) for pair in item.items()):
        if kind == "cell":
            name, section = target.split("#")
            text = words["cell"].format(lesson=int(name[:2]), section=section)
            parts.append(f"[{text}]({name}.ipynb)")
        elif kind == "test":
            parts.append(words["test"].format(name=target.partition("::")[2]))
        else:
            key, _, place = target.partition(" ")
            parts.append(words["table"].format(paper=paper_link(key, lang, papers), place=place))
    return "；".join(parts) if lang == "zh" else "; ".join(parts)


def paper_link(key, lang, papers):
    entry = papers[key]
    names = [" ".join(person.last_names) for person in entry.persons["author"]]
    others = "" if len(names) == 1 else " 等" if lang == "zh" else " et al."
    return f"[{names[0]}{others}, {entry.fields['year']}]({entry.fields['url']})"


class Ledger(Directive):
    """A directive that prints Markdown in the language of its page."""

    def lang(self):
        environment = self.state.document.settings.env
        *folder, _ = environment.docname.split("/")
        return folder[-1] if folder else environment.config.language[:2]

    def parse(self, markdown, classes):
        box = nodes.container(classes=classes)
        self.state.nested_parse(StringList(markdown.split("\n"), source="book"), 0, box)
        return box


class Claims(Ledger):
    def run(self):
        lang = self.lang()
        words, column = WORDS[lang], lang == "en"
        papers = parse_file(BOOK / "references.bib").entries
        entries = claims()
        counts = Counter(claim["verdict"] for claim in entries)
        buttons = "".join(
            f'<button type="button" data-verdict="{verdict}">{names[column]} {counts[verdict]}</button>'
            for verdict, names in VERDICTS.items()
            if counts[verdict]
        )
        everything = f'<button type="button" data-verdict="" aria-pressed="true">{words["all"]} {len(entries)}</button>'
        bar = nodes.raw("", f'<p class="verdicts">{everything}{buttons}</p>', format="html")
        boxes = []
        for claim in entries:
            verdict = VERDICTS[claim["verdict"]][column]
            lines = [f"**{verdict}**", "", f"*{words['said']}* {claim['said'][lang]}", ""]
            lines += [f"*{words['right']}* {claim['right'][lang]}", ""]
            foot = [f"{words['source']}: {claim['source']}"] if claim.get("source") else []
            foot += [f"{words['evidence']}: {line}"] if (line := evidence_line(claim, lang, papers)) else []
            boxes.append(self.parse("\n".join([*lines, " · ".join(foot)]), ["claim", f"claim-{claim['verdict']}"]))
        return [bar, *boxes, nodes.raw("", '<script src="_static/claims.js"></script>', format="html")]


class Glossary(Ledger):
    def run(self):
        lang = self.lang()
        terms = yaml.safe_load((BOOK / "glossary.yml").read_text("utf8"))["terms"]
        rows = sorted((term[lang], term["en" if lang == "zh" else "zh"]) for term in terms)
        lines = [WORDS[lang]["terms"], "|---|---|", *(f"| {ours} | {theirs} |" for ours, theirs in rows)]
        return [self.parse("\n".join(lines), ["glossary"])]


def setup(app):
    app.add_directive("claims", Claims)
    app.add_directive("glossary-table", Glossary)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
