"""The two editions as one site: language switch to the same page, hreflang, Pagefind instead of Sphinx's search."""

import re
from pathlib import Path

import yaml
from docutils import nodes
from markupsafe import Markup, escape

NAMES = {"zh": ("zh-CN", "中文"), "en": ("en", "English")}
PER_MINUTE = {"zh": 400, "en": 220}  # characters, words: slow reading, for the formulas

_SECTION = re.compile(r'<section([^>]*) id="([^"]+)"([^>]*)>(\s*)<h([1-4])>')


def edition(config):
    return "zh" if config.language.startswith("zh") else "en"


def add_context(app, pagename, templatename, context, doctree):
    here = edition(app.config)
    other = "en" if here == "zh" else "zh"
    up = "../" * (pagename.count("/") + 1)
    exists = doctree is not None or pagename == "search"
    context["site_root"] = up
    context["switch_code"], (context["switch_tag"], context["switch_name"]) = other, NAMES[other]
    context["switch_url"] = f"{up}{other}/{pagename if exists else 'index'}.html"
    if pagename == "search":
        context["headings"] = headings(app.env)
    if doctree is None:
        return
    notebook = app.env.doc2path(pagename).endswith(".ipynb")
    context["notebook"] = f"{pagename}.ipynb" if notebook else ""
    context["launch"] = launch_links(app, pagename) if notebook else []
    context["summary"] = summary(doctree)
    if site := context["site_address"]:
        context["metatags"] = context.get("metatags", "") + alternates(site, pagename)
    # Pagefind links to a section only if its heading carries the anchor.
    body = _SECTION.sub(r'<section\1\3>\4<h\5 id="\2">', context["body"])
    body = body.replace("</h1>", "</h1>" + reading_time(app, pagename, doctree, context["words"]), 1)
    # Pagefind indexes only what is marked: not the toolbar, not the side bar.
    context["body"] = f"<div data-pagefind-body>\n{body}\n</div>"


def alternates(site, pagename):
    """Return the links for search engines from a page to its editions; they must be whole addresses."""
    return "".join(
        f'\n<link rel="alternate" hreflang="{tag}" href="{site}/{code}/{pagename}.html">'
        for code, (tag, _) in NAMES.items()
    )


def launch_links(app, pagename):
    """Return (name, address) for each place that runs the notebook; none if the repository is not known."""
    repository, lang = app.config.html_context["repository"], edition(app.config)
    if not repository:
        return []
    links = [
        (
            "Colab",
            f"https://colab.research.google.com/github/{repository}/blob/gh-pages/{lang}/{pagename}.ipynb",
        )
    ]
    # Binder's environment has no torch.
    source = Path(app.env.doc2path(pagename)).read_text("utf8")
    if not re.search(r'"(?:import|from) [^"]*(?:torch|triton)\b', source):
        path = f"chapters/{lang}/{pagename}.ipynb"
        links.append(("Binder", f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/{path}"))
    return links


def reading_time(app, pagename, doctree, words):
    """Return a line with the minutes that the source of a lesson states, or those that reading its text takes."""
    if pagename == "index":
        return ""
    source = (Path(app.srcdir).parent / f"{pagename}.md").read_text("utf8")
    minutes = yaml.safe_load(source.split("---")[1]).get("minutes")
    text = words["lesson_minutes"] if minutes else words["minutes"]
    unit = r"[\u3400-\u9fff]|[A-Za-z]+" if edition(app.config) == "zh" else r"[A-Za-z]+"
    count = len(re.findall(unit, doctree.astext()))
    minutes = minutes or max(1, round(count / PER_MINUTE[edition(app.config)]))
    return f'<p class="reading-time" data-pagefind-ignore>{escape(text.format(n=minutes))}</p>'


def summary(doctree):
    """Return the first sentences of a page, without formulas, for search engines."""
    paragraph = next(iter(doctree.findall(nodes.paragraph)), None)
    text = " ".join(paragraph.astext().split()) if paragraph else ""
    return text if len(text) <= 160 else re.sub(r"\s?\S{0,12}$", "", text[:160]) + "…"


def headings(environment):
    """Return (title, address) of every page and section: what the search page filters without a server."""
    found = []
    for name, toc in environment.tocs.items():
        for link in toc.findall(nodes.reference):
            found.append((Markup(link.astext()), f"{name}.html{link['anchorname']}"))
    return found


def replace_search(app):
    """Keep the theme's search box, but build no Sphinx index: it does not find Chinese phrases."""
    app.builder.search = False
    app.config.html_additional_pages = {"search": "search.html"}


def setup(app):
    app.connect("builder-inited", replace_search)
    app.connect("html-page-context", add_context)
    app.config.html_theme_options["article_header_end"] = ["header-buttons.html"]
    app.config.html_theme_options["footer_content_items"] = ["offline.html"]
    app.add_js_file("course.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
