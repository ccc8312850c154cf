"""Print book/claims.yml and book/glossary.yml: the directives {claims} GROUP, {claims-filter} and {glossary-table}."""

import json
import re
from collections import Counter
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from markupsafe import escape
from myst_parser.mdit_to_docutils.base import default_slugify
from pybtex.database import parse_file

BOOK = Path(__file__).resolve().parent.parent
VERDICTS = {
    "wrong": {"zh": "错", "en": "wrong"},
    "misleading": {"zh": "有误导", "en": "misleading"},
    "imprecise": {"zh": "不准确", "en": "imprecise"},
    "unsupported": {"zh": "没有依据", "en": "unsupported"},
    "missing": {"zh": "有缺漏", "en": "incomplete"},
    "true": {"zh": "对", "en": "true"},
    "editorial": {"zh": "笔误", "en": "misprint"},
}
WORDS = {
    "zh": {
        "said": "常见的说法",
        "printed": "论文写的",
        "right": "实际情况",
        "primary": "出处",
        "evidence": "依据",
        "cell": "第 {0} 课 {1} 节",
        "exercise": "练习 {1}",
        "test": "测试“{1}”（`{0}`）",
        "all": "全部",
        "filter": "按结论筛选",
        "shown": "显示 {n} 条",
        "colon": "：",
        "comma": "，",
        "semicolon": "；",
        "head": "| 中文 | English | 意思 |",
        "lesson": "（第 {0} 课）",
    },
    "en": {
        "said": "Commonly said",
        "printed": "In print",
        "right": "What is true",
        "primary": "Source",
        "evidence": "Evidence",
        "cell": "lesson {0}, section {1}",
        "exercise": "exercise {1}",
        "test": 'the test "{1}" (`{0}`)',
        "all": "all",
        "filter": "Filter by verdict",
        "shown": "{n} shown",
        "colon": ": ",
        "comma": ", ",
        "semicolon": "; ",
        "head": "| English | 中文 | Meaning |",
        "lesson": " (lesson {0})",
    },
}
# How a place in a paper is written in claims.yml, and how the Chinese page writes it.
PLACES = {
    "section": "第 {} 节",
    "appendix": "附录 {}",
    "Table": "表 {}",
    "Fig.": "图 {}",
    "Eq.": "式 {}",
    "Theorem": "定理 {}",
    "footnote": "脚注 {}",
}
PLACE = re.compile(rf"({'|'.join(map(re.escape, PLACES))}) (\w[\w.]*(?:, \w[\w.]*)*)")


def claims():
    """Return the entries of book/claims.yml."""
    # Each directive reads the file, so it is read by libyaml where that is there: ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((BOOK / "claims.yml").read_text("utf8"), loader)


def place_in(place, lang):
    """Return a place such as 'section 2.2; Table 2, 3' in the language of the page."""
    parts = []
    for part in place.split("; "):
        kind, numbers = PLACE.fullmatch(part).groups()
        if lang == "zh":
            parts.append(PLACES[kind].format(numbers.replace(", ", "、")))
        else:
            plural = "s" if ", " in numbers and not kind.endswith(".") else ""
            parts.append(f"{kind}{plural} {numbers}")
    return WORDS[lang]["comma"].join(parts)


def anchor(lang, lesson, mark):
    """Return '#slug' of the section with the first heading that matches `mark`, or that encloses the first such text."""
    path = BOOK.parent / "chapters" / lang / f"{lesson}.ipynb"
    title = ""
    for cell in json.loads(path.read_text("utf8"))["cells"]:
        for line in "".join(cell["source"]).split("\n") if cell["cell_type"] == "markdown" else ():
            if re.match("#+ ", line):
                title = line.lstrip("#").strip()
            if re.search(mark, line):
                plain = re.sub(r"\$[^$]*\$|[*`]", "", title)
                return "#" + default_slugify(plain)
    raise ValueError(f"{path.name} ({lang}) has no {mark!r}, which book/claims.yml names as evidence")


def evidence(kind, target, lang, papers):
    """Return one piece of evidence as Markdown."""
    words = WORDS[lang]
    if kind == "table":
        return source(target, lang, papers)
    if kind == "test":
        file, _, name = target.rpartition("/")[2].partition("::")
        return words["test"].format(file, name.removeprefix("test_").replace("_", " "))
    lesson, number = target.split("#")
    word = {"zh": "练习", "en": "Exercise"}[lang]
    mark = rf"^##+ {re.escape(number)} " if kind == "cell" else rf"^\*\*{word} {re.escape(number)}\*\*"
    text = words[kind].format(int(lesson[:2]), number)
    return f"[{text}]({lesson}.ipynb{anchor(lang, lesson, mark)})"


def source(target, lang, papers):
    """Return a paper with a place in it, or an address, as Markdown."""
    if target.startswith("https://"):
        label = re.sub(r"^https://(github\.com/)?|/(blob|tree)/master(?=/)", "", target)
        return f"[{label}]({target})"
    key, _, place = target.partition(" ")
    entry = papers[key]
    names = [" ".join(person.last_names) for person in entry.persons["author"]]
    others = "" if len(names) == 1 else " 等" if lang == "zh" else " et al."
    link = f"[{names[0]}{others}, {entry.fields['year']}]({entry.fields['url']})"
    return f"{link}{WORDS[lang]['comma']}{place_in(place, lang)}" if place else link


class Ledger(Directive):
    """A directive that prints Markdown in the language of its page."""

    def lang(self):
        environment = self.state.document.settings.env
        *folder, _ = environment.docname.split("/")
        return folder[-1] if folder else environment.config.language[:2]

    def parse(self, markdown, classes, names=()):
        box = nodes.container(classes=classes, ids=list(names))
        self.state.nested_parse(StringList(markdown.split("\n"), source="book"), 0, box)
        return box


class Claims(Ledger):
    required_arguments = 1

    def run(self):
        lang, entries = self.lang(), claims()
        papers = parse_file(BOOK / "references.bib").entries
        known = "|".join(claim["id"] for claim in entries)
        references = re.compile(rf"(?<![\w.$-])({known})(?![\w.])")
        group = nodes.container(classes=["claims"])
        group += [
            self.box(claim, lang, papers, references)
            for claim in entries
            if claim["group"] == self.arguments[0]
        ]
        return [group]

    def box(self, claim, lang, papers, references):
        words, name = WORDS[lang], claim["id"]

        def labelled(label, text):
            return f"**{words[label]}**{words['colon']}{text}"

        right = references.sub(
            lambda match: f'<a href="#claim-{match[1].lower()}">{match[1]}</a>', claim["right"][lang]
        )
        primary = words["semicolon"].join(source(target, lang, papers) for target in claim.get("primary", ()))
        shown = words["semicolon"].join(
            evidence(kind, target, lang, papers)
            for item in claim.get("evidence", ())
            for kind, target in item.items()
        )
        lines = [
            f'<span class="verdict">{VERDICTS[claim["verdict"]][lang]}</span>'
            f' <a class="claim-id" href="#claim-{name.lower()}">{name}</a>',
            labelled("printed" if claim["group"] == "papers" else "said", claim["said"][lang]),
            labelled("right", right),
        ]
        foot = [labelled("primary", primary)] if primary else []
        foot += [labelled("evidence", shown)] if shown else []
        classes = ["claim", f"claim-{claim['verdict']}"]
        box = self.parse("\n\n".join(lines), classes, [f"claim-{name.lower()}"])
        if foot:
            box += self.parse("\n\n".join(foot), ["claim-foot"])
        return box


class Filter(Ledger):
    """Buttons, one for each verdict; without scripts they stay hidden and every claim is shown."""

    def run(self):
        words, counts = WORDS[self.lang()], Counter(claim["verdict"] for claim in claims())
        choices = {"": words["all"]} | {
            key: names[self.lang()] for key, names in VERDICTS.items() if counts[key]
        }
        buttons = "".join(
            f'<button type="button" data-verdict="{key}" aria-pressed="{str(not key).lower()}">'
            f"{escape(label)} {counts[key] or counts.total()}</button>"
            for key, label in choices.items()
        )
        script = (BOOK / "static" / "claims.js").read_text("utf8")
        bar = (
            f'<div class="verdicts" role="group" aria-label="{words["filter"]}" data-pagefind-ignore hidden>{buttons}'
            f'<span role="status" data-words="{words["shown"]}"></span></div>'
        )
        return [nodes.raw("", f"{bar}<script>{script}</script>", format="html")]


class Glossary(Ledger):
    def run(self):
        lang = self.lang()
        other = "en" if lang == "zh" else "zh"
        rows = [WORDS[lang]["head"], "|---|---|---|"]
        for term in sorted(glossary(), key=lambda term: order(term[lang])):
            lesson = WORDS[lang]["lesson"].format(term["lesson"])
            rows.append(f"| {term[lang]} | {term[other]} | {term['means'][lang]}{lesson} |")
        return [self.parse("\n".join(rows), ["glossary"])]


def glossary():
    """Return the terms of book/glossary.yml."""
    return yaml.safe_load((BOOK / "glossary.yml").read_text("utf8"))["terms"]


def order(term):
    """Return the key that sorts Chinese by sound, as this national encoding does for all common characters."""
    return term.lower().encode("gb18030")


def setup(app):
    app.add_directive("claims", Claims)
    app.add_directive("claims-filter", Filter)
    app.add_directive("glossary-table", Glossary)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
