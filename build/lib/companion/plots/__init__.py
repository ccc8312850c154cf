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
