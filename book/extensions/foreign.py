"""Say in which language a passage is that is not in the language of its page, for those who hear it read aloud."""

import re

from docutils import nodes

# On Chinese pages a term in Latin letters is part of the sentence; three words are a passage.
_PASSAGE = {
    "zh": (re.compile(r"[A-Za-z][\w’'-]*(?:[ ,:;–-]+[A-Za-z(][\w’'()-]*){2,}[?!.]?"), "language-en"),
    "en": (re.compile(r"[\u3400-\u9fff][\u3400-\u9fff\u3000-\u303f\uff00-\uffef“”]*"), "language-zh-CN"),
}
_EXEMPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.title)


def mark_passages(app, doctree, docname):
    pattern, name = _PASSAGE["zh" if app.config.language.startswith("zh") else "en"]
    for text in list(doctree.findall(nodes.Text)):
        if not pattern.search(text) or _is_exempt(text):
            continue
        parts, end = [], 0
        for found in pattern.finditer(text):
            parts += [nodes.Text(text[end : found.start()]), nodes.inline("", found[0], classes=[name])]
            end = found.end()
        place = text.parent.index(text)
        text.parent[place : place + 1] = [part for part in [*parts, nodes.Text(text[end:])] if part.astext()]


def _is_exempt(node):
    while node := node.parent:
        if isinstance(node, _EXEMPT):
            return True
    return False


def setup(app):
    app.connect("doctree-resolved", mark_passages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
