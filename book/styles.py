"""One style sheet for all pages of an edition, with the rules that they can use: the theme brings ten times as many."""

import hashlib
import re

# In the order in which the theme links them; what a page links besides stays a link of its own.
SHEETS = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "mystnb.*.css",
    "katex/katex.min.css",
    "course.css",
)
_LINK = re.compile(
    r'\s*<link[^>]*href="_static/(?:styles/(?:theme|pydata-sphinx-theme|sphinx-book-theme)|pygments|copybutton'
    r'|mystnb\.\w+|katex/katex\.min|course)\.css[^"]*"[^>]*>'
)
_NAMED = re.compile(r'\b(?:class|id)="([^"]*)"')
_NESTED = ("@media", "@supports", "@container")


def bundle(edition):
    """Write _static/site.css for the pages of an edition, and link it in place of what went into it."""
    static = edition / "_static"
    pages = {path: path.read_text("utf8") for path in edition.glob("*.html")}
    named = {name for page in pages.values() for name in _NAMED.findall(page)}
    scripts = [script for page in pages.values() for script in re.findall(r"<script.*?</script>", page, re.S)]
    scripts += [path.read_text("utf8") for path in static.rglob("*.js")]
    words = {"bs-tooltip-auto", *re.findall(r"[\w-]+", " ".join([*named, *scripts]))}  # one is put together
    sheets = [next(static.glob(name)) for name in SHEETS]
    parts = []
    for sheet in sheets:
        css = re.sub(r"/\*.*?\*/", "", sheet.read_text("utf8"), flags=re.S)
        css = css.replace("url(fonts/", "url(katex/fonts/")
        parts.append(css if sheet.name == "course.css" else used_rules(css, words))
        sheet.unlink()
    (static / "styles" / "theme.css").unlink()
    text = "\n".join(parts)
    (static / "site.css").write_text(text, "utf8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    for path, page in pages.items():
        page = _LINK.sub("", page)
        link = f'<link rel="stylesheet" href="_static/site.css?v={digest}">'
        path.write_text(page.replace("</title>", f"</title>\n{link}", 1), "utf8")


def used_rules(css, words):
    """Return the rules of a style sheet without those for a class or an id that is none of the words."""
    kept = []
    for head, body in _rules(css):
        if head.startswith(_NESTED):
            if inner := used_rules(body, words):
                kept.append(f"{head}{{{inner}}}")
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}" if body is not None else f"{head};")
        else:
            selectors = [one for one in re.split(r",(?![^(]*\))", head) if _names(one) <= words]
            if selectors:
                kept.append(f"{','.join(selectors)}{{{body}}}")
    return "".join(kept)


def _names(selector):
    """Return the classes and ids that a selector asks for; those in brackets may be alternatives, or denied."""
    bare = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", selector))
    return {
        name.replace("\\", "")
        for name in re.findall(r"[.#]((?:[\w-]|\\.)+)", re.sub(r"\[[^\]]*\]", "", bare))
    }


def _rules(css):
    """Yield (head, body) of each rule; body is None for a statement such as @charset."""
    position = 0
    while match := re.compile(r"\s*([^{};]+?)\s*([{;])").match(css, position):
        position = match.end()
        if match[2] == ";":
            yield match[1], None
            continue
        depth, start = 1, position
        while depth:
            brace = re.compile(r"[{}]").search(css, position)
            depth += 1 if brace[0] == "{" else -1
            position = brace.end()
        yield match[1], css[start : position - 1].strip()
