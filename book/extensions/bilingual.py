"""The two editions as one site: language switch to the same page, hreflang, Pagefind instead of Sphinx's search."""

import re

NAMES = {"zh": ("zh-CN", "中文"), "en": ("en", "English")}

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
    if doctree is None:
        return
    links = [
        f'<link rel="alternate" hreflang="{tag}" href="{up}{code}/{pagename}.html">'
        for code, (tag, _) in NAMES.items()
    ]
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(links)
    # Pagefind links to a section only if its heading carries the anchor.
    context["body"] = _SECTION.sub(r'<section\1\3>\4<h\5 id="\2">', context["body"])
    # Pagefind indexes only what is marked: not the toolbar, not the side bar.
    context["body"] = f"<div data-pagefind-body>\n{context['body']}\n</div>"


def replace_search(app):
    """Keep the theme's search box, but build no Sphinx index: it does not find Chinese phrases."""
    app.builder.search = False
    app.config.html_additional_pages = {"search": "search.html"}


def setup(app):
    app.connect("builder-inited", replace_search)
    app.connect("html-page-context", add_context)
    app.config.html_theme_options["article_header_end"] = ["lang-switch.html", "article-header-buttons.html"]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
