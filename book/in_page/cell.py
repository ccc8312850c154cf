"""Run a cell in the page's Python and send what it gives: text, formulas and pictures, never HTML."""

import base64
import builtins
import io
import linecache
import logging
import os
import sys
import traceback

from _page import emit
from pyodide.code import eval_code_async

os.environ["MPLBACKEND"] = "agg"
# Else it reports on its font cache in red.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
LONGEST = 10_000  # characters of a formula
space = {"__name__": "__main__", "__builtins__": builtins}


def display(*values):
    for value in values:
        latex = getattr(value, "_repr_latex_", None)
        formula = latex() if latex else None
        # The page stands still while a formula is typeset.
        short = formula and len(formula) <= LONGEST
        emit(*(("latex", formula) if short else ("text", repr(value))))


def send_figures(*args, **kwargs):
    """What plt.show() does here."""
    plt = sys.modules["matplotlib.pyplot"]
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=144, bbox_inches="tight")
        emit("png", base64.b64encode(picture.getvalue()).decode())
    plt.close("all")


async def run_cell(source, number, imports):
    """Return whether the cell ran to its end. `imports` are those of the cells above that it uses."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        exec(imports, space)
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].show = send_figures
        value = await eval_code_async(source, space, filename=name)
        if value is not None:
            display(value)
        if "matplotlib.pyplot" in sys.modules:
            send_figures()
        return True
    except BaseException as error:
        frames = error.__traceback__
        while frames and frames.tb_frame.f_code.co_filename != name:
            frames = frames.tb_next
        emit("error", "".join(traceback.format_exception(type(error), error, frames)))
        return False
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


builtins.display = display
