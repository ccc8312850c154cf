"""Static figures, one module a topic: each `plot_*` draws on the axis it is given and returns it.

Labels are symbols, for words differ between the editions and stand in the captions.
"""

# The colours of Okabe and Ito, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"


def clean(ax):
    """Take the top and right frame away and draw on white, also where the page is dark."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.set_facecolor("white")
    return ax


def styled(name, curves, styles):
    """Pair every label and its values with a style; a curve too many is refused, never left out."""
    if not isinstance(curves, dict):
        raise TypeError(
            f"{name} must be a dict from label to values, got {type(curves).__name__}; use {{label: values}}"
        )
    if not 1 <= len(curves) <= len(styles):
        raise ValueError(
            f"{name} must hold 1 to {len(styles)} labels, for there are so many colours here, got {len(curves)}; "
            "draw the others on another axis"
        )
    return zip(curves.items(), styles, strict=False)
