"""Formulas as KaTeX HTML at build time: no formula script in the page, and a TeX mistake is a warning with its place."""

import json
from functools import cache
from pathlib import Path

from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.util import logging

logger = logging.getLogger(__name__)

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


def visit(translator, node, display):
    tex = node.astext()
    script = translator.builder.config.katex_script
    html, error = json.loads(engine(script).eval(f"render({json.dumps(tex)}, {json.dumps(display)})"))
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


def setup(app):
    app.add_config_value("katex_script", "", "env")
    app.add_html_math_renderer(
        "katex_static",
        (lambda translator, node: visit(translator, node, False), None),
        (lambda translator, node: visit(translator, node, True), None),
    )
    app.add_css_file("katex/katex.min.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
