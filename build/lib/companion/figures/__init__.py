"""Interactive figures: inline SVG and a few lines of script, with no library, usable by keyboard and offline.

One module a topic; the template of each figure lies beside it. A template holds `__DATA__` where its data go.
"""

import json
from importlib.resources import files

from IPython.display import HTML


def _figure(name, lang, words, **data):
    """Fill the template `name`.html with the words of one language and the data of the figure."""
    if lang not in words:
        raise ValueError(f"lang must be one of {sorted(words)}, got {lang!r}")
    text = json.dumps({"words": words[lang], **data}, ensure_ascii=False).replace("</", "<\\/")
    return HTML((files(__package__) / f"{name}.html").read_text("utf8").replace("__DATA__", text))
