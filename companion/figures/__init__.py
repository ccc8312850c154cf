"""Interactive figures: inline SVG and a few lines of script, with no library, usable by keyboard and offline.

One module a topic; the template of each figure lies beside it. A template holds `__DATA__` where its data go.
"""

import json
import math
from importlib.resources import files
from numbers import Integral, Real

import numpy as np


def _figure(name, lang, words, **data):
    """Fill the template `name`.html with the words of one language and the data of the figure."""
    from IPython.display import (
        HTML,  # late: a page that runs its own cells has no IPython, and can import this
    )

    if not isinstance(lang, str) or lang not in words:
        raise ValueError(f"lang must be one of {sorted(words)}, got {lang!r}; write one of them")
    text = json.dumps({"words": words[lang], **data}, ensure_ascii=False, allow_nan=False)
    text = text.replace("</", "<\\/")
    return HTML((files(__package__) / f"{name}.html").read_text("utf8").replace("__DATA__", text))


def _number(name, value, *, least=-math.inf, most=math.inf):
    """Return a finite number as the plain int or float that JSON knows."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a real number, got {value!r}; use float(…)")
    if not math.isfinite(value) or not least <= value <= most:
        between = f" from {least} to {most}" if math.isfinite(most) else f" of at least {least}"
        between = between if math.isfinite(least) else ""
        raise ValueError(f"{name} must be a finite number{between}, got {value!r}; take another")
    return int(value) if isinstance(value, Integral) else float(value)


def _whole(name, value, *, least=-math.inf, most=math.inf):
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}; use int(…)")
    return _number(name, value, least=least, most=most)


def _finite_array(name, values):
    """Return what was given as an array of finite real numbers."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be an array of real numbers, got {error}; use np.array") from error
    if array.dtype.kind not in "iuf" or isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must be an array of real numbers, got dtype {array.dtype}; convert it first")
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite, got {array[~np.isfinite(array)][0]}; take out NaN and infinity"
        )
    return array
