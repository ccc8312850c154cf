"""Formulas as KaTeX HTML at build time: no formula script in the page, and a TeX mistake is a warning with its place."""

import json
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.util import logging

logger = logging.getLogger(__name__)

GLYPHS = set()
_CLOSING = tuple("，。；：、）！？”.,;:!?)")
_RENDER = """
var render = (tex, display) => {
  try { return JSON.stringify([katex.renderToString(tex, {displayMode: display, strict: false}), null]); }
  catch (error) { return JSON.stringify([null, String(error.message)]); }
}
"""


@cache
def engine(katex_script):
    context = MiniRacer()
    context.eval(Path(katex_script).read_text("utf8"))
    context.eval(_RENDER)
    return context


@cache
def render(katex_script, tex, display):
    """Return (HTML, None) or (None, what KaTeX says); half of a lesson's formulas stand in it more than once."""
    return json.loads(engine(katex_script).eval(f"render({json.dumps(tex)}, {json.dumps(display)})"))


def note_glyphs(app, exception):
    """Write down the characters that the formulas show, for the fonts of the website."""
    if exception is None:
        target = Path(app.outdir) / "_static" / "katex" / "glyphs.txt"
        if target.parent.exists():
            target.write_text("".join(sorted(GLYPHS)), "utf8")


def close_engine(app, exception):
    """Close the engine before the interpreter ends: left to its destructor it hangs on Python 3.13."""
    if engine.cache_info().currsize:
        engine(app.config.katex_script).close()
        engine.cache_clear()


def visit(translator, node, display):
    tex = node.astext()
    script = translator.builder.config.katex_script
    html, error = render(script, tex, display)
    if html:
        GLYPHS.update(re.sub(r"<[^>]*>", "", html.split('class="katex-html"')[1]))
    if error:
        logger.warning("KaTeX: %s", error, location=node)
        html = f"<code>{translator.encode(tex)}</code>"
    if display:
        # A wide formula scrolls in its box; tabindex makes that possible from the keyboard.
        html = f'<div class="math notranslate nohighlight" tabindex="0">{html}</div>'
    else:
        html = f'<span class="math notranslate nohighlight">{html}</span>'
    translator.body.append(html)
    raise nodes.SkipNode


def keep_punctuation(app, doctree, docname):
    """Keep a short formula and the punctuation after it on one line: browsers would break between them."""
    for formula in list(doctree.findall(nodes.math)):
        follower = formula.next_node(siblings=True, descend=False)
        if not isinstance(follower, nodes.Text) or follower[:1] not in _CLOSING or len(formula.astext()) > 40:
            continue
        parent, place = formula.parent, formula.parent.index(formula)
        together = nodes.inline("", "", formula, nodes.Text(follower[:1]), classes=["keep-together"])
        parent[place : place + 2] = [together, nodes.Text(follower[1:])]


def setup(app):
    app.add_config_value("katex_script", "", "env")
    app.add_html_math_renderer(
        "katex_static",
        (lambda translator, node: visit(translator, node, False), None),
        (lambda translator, node: visit(translator, node, True), None),
    )
    app.connect("build-finished", note_glyphs)
    app.connect("build-finished", close_engine)
    app.connect("doctree-resolved", keep_punctuation)
    app.add_css_file("katex/katex.min.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
