"""Mend the theme's pages: drawn icons, no unused scripts, images with their size, names for what is read aloud."""

import html
import re

# One path each, drawn as strokes on a field of 24 by 24; the keys are the names of the theme's icon font.
ICONS = {
    "angle-left": "M15 4 7 12l8 8",
    "angle-right": "m9 4 8 8-8 8",
    "bars": "M3 6h18M3 12h18M3 18h18",
    "circle-half-stroke": "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18M9.5 4v16M7 5.5v13M4.8 8v8",
    "download": "M12 3v12m-5-5 5 5 5-5M4 20h16",
    "list": "M8 6h13M8 12h13M8 18h13M3 6h1M3 12h1M3 18h1",
    "magnifying-glass": "m21 21-6-6M4 10a6.5 6.5 0 1 0 13 0 6.5 6.5 0 1 0-13 0",
    "moon": "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
    "play": "m7 4 12 8-12 8z",
    "sun": "M8 12a4 4 0 1 0 8 0 4 4 0 1 0-8 0M12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4m11.2 11.2L19 19M19 5l-1.4 1.4M6.4 17.6 5 19",
}
_ICON = re.compile(r'<(i|span) class="([^"]*\bfa-[^"]*)"([^>]*)></\1>')
_UNUSED = re.compile(
    r"<script[^>]*(?:fontawesome|sphinx-thebe|design-tabs|togglebutton|translations|doctools|sphinx_highlight)[^>]*></script>\s*"
    r"|<link[^>]*(?:fontawesome|sphinx-thebe|sphinx-design|togglebutton)[^>]*>\s*"
    r"|<script>(?:(?!</script>).)*(?:THEBE_JS_URL|toggle(?:Hint|OpenOnPrint|buttonSelector))(?:(?!</script>).)*</script>\s*"
    r'|<meta name="viewport" content="width=device-width, initial-scale=1" />'
    r'|<div id="ethical-ad-placement".*?</div>'
    r"|<annotation.*?</annotation>",
    re.S,
)
# The theme settles on light or dark only after the first paint, which then lacks its colours, and jumps.
_MODE = """{
      const root = document.documentElement.dataset;
      try { root.mode = localStorage.getItem("mode") || "auto"; } catch { root.mode = "auto"; }
      root.theme = root.mode !== "auto" ? root.mode
        : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    }"""
_SETTLE = re.compile(r'document\.documentElement\.dataset\.mode = .*?"auto";\s*document.*?"auto";', re.S)
# What the theme keeps from a screen reader, or tells it wrongly.
_REPAIRS = [
    (' aria-label="Toggle hidden content"', ""),
    ('<th class="head"><p></p></th>', "<td></td>"),
    ('<dialog id="pst-search-dialog"', '<dialog id="pst-search-dialog" aria-label="Search"'),
    ('<dialog id="pst-primary-sidebar-modal"', '<dialog id="pst-primary-sidebar-modal" aria-label="Main"'),
    (
        '<dialog id="pst-secondary-sidebar-modal"',
        '<dialog id="pst-secondary-sidebar-modal" aria-label="Page"',
    ),
    ('<div id="pst-primary-sidebar"', '<div id="pst-primary-sidebar" role="region" aria-label="Sidebar"'),
    (
        '<div id="pst-secondary-sidebar"',
        '<div id="pst-secondary-sidebar" role="region" aria-label="On this page"',
    ),
]
_SEARCH_BUTTON = re.compile(r'(<button class="btn search-button-field[^>]*?) aria-label="[^"]*"')
_OPTIONS = re.compile(r"<script[^>]*documentation_options[^>]*></script>")
_IMAGE = re.compile(r'<img ([^>]*?)\s*style="width: (\d+)px; height: (\d+)px;"')
_ANCHOR = re.compile(r'<h[1-4] id="([^"]+)"')
_TARGET = re.compile(r'(\b(?:id|href)=")(?:([\w]+)\.html)?(#?)([^"#/:]+)"')


def mend(page, translations, options):
    """Return the HTML of a page as readers get it.

    `translations` are the attributes that the theme leaves in English, `options` is the script that all others read:
    it goes into the page, so that the others can wait until the page is there.
    """
    page = _UNUSED.sub("", page)
    page = _OPTIONS.sub(lambda match: f"<script>{options}</script>", page)
    page = page.replace('<script src="_static/', '<script defer src="_static/')
    page = _ICON.sub(_drawn, page)
    page = _IMAGE.sub(r'<img \1 width="\2" height="\3" loading="lazy" decoding="async"', page)
    page = _SETTLE.sub(lambda match: _MODE, page)
    page = _SEARCH_BUTTON.sub(r"\1", page)
    for fault, repaired in _REPAIRS:
        page = page.replace(fault, repaired)
    for words, translated in translations.items():
        page = page.replace(f'"{words}"', f'"{html.escape(translated)}"')
    return page


def unify_anchors(pages, model):
    """Give the headings of an edition the anchors of another; both are dictionaries, name of the page -> its HTML.

    So a link to a section, and the switch of languages in it, works for both. Chinese headings have no anchors
    of their own that mean anything: Sphinx counts them.
    """
    renamed = {}
    for name, page in pages.items():
        ours, theirs = _ANCHOR.findall(page), _ANCHOR.findall(model.get(name, ""))
        renamed[name] = dict(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else {}
    return {name: _rename(page, name, renamed) for name, page in pages.items()}


def _rename(page, name, renamed):
    def one(match):
        before, target, mark, anchor = match.groups()
        is_id = before.startswith("id")
        if (is_id and (target or mark)) or not (is_id or mark):
            return match[0]
        new = renamed.get(target or name, {}).get(anchor, anchor)
        return f'{before}{f"{target}.html" if target else ""}{mark}{new}"'

    return _TARGET.sub(one, page)


def _drawn(match):
    _, classes, attributes = match.groups()
    words = classes.split()
    name = next((word[3:] for word in words if word[3:] in ICONS), None)
    if name is None:
        raise ValueError(
            f"a page asks for an icon that is not drawn: {classes!r}; add it to ICONS in book/pages.py"
        )
    kept = " ".join(word for word in words if not re.match(r"fa[srb]?(-|$)", word))
    attributes = re.sub(r'\s*title="[^"]*"', "", attributes)
    return f'<svg class="icon {kept}"{attributes} viewBox="0 0 24 24" aria-hidden="true"><path d="{ICONS[name]}"/></svg>'
