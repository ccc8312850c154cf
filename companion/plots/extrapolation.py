"""Figures of the laboratory: how losses rise beyond the trained length, and how many needles are found there."""

from companion.plots import BLUE, GREEN, ORANGE, clean, styled


def plot_by_length(curves, ax, *, ylabel, trained=1, xlabel="$L$", chance=None):
    """Draw one curve over the length (logarithmic) for each label of `curves`, a dict {label: (lengths, values)}.

    An encoding looks the same in every figure. A vertical line ends the trained length; `chance`, if given, is a
    horizontal line.
    """
    for (label, (lengths, values)), (color, line, mark) in styled("curves", curves, _styles(curves)):
        ax.plot(lengths, values, line, color=color, marker=mark, markersize=4.5, lw=1.6, label=label)
    ax.axvline(trained, color="#444444", lw=1, ls=":")
    if chance is not None:
        ax.axhline(chance, color="#444444", lw=0.8, ls="--")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(xlabel, fontsize=13)
    ax.set_ylabel(ylabel, fontsize=13)
    ax.legend(frameon=False, fontsize=10, loc="center left", bbox_to_anchor=(1, 0.5))
    return clean(ax)


def _styles(curves):
    """A style for each label: that of its encoding, or one of those that nobody else here has."""
    names = [{"nope": "none"}.get(str(label).lower(), str(label).lower()) for label in curves]
    free = iter([style for name, style in _STYLES.items() if name not in names])
    styles = [_STYLES.get(name) or next(free, None) for name in names]
    return [style for style in styles if style]


# Colour, line and mark together, so that the curves differ in print and to every reader.
_STYLES = {
    "learned": ("#cc79a7", ":", "s"),
    "sinusoidal": ("#e69f00", "--", "D"),
    "rope": (BLUE, "-", "o"),
    "t5": (GREEN, "-.", "^"),
    "alibi": (ORANGE, "-", "x"),
    "none": ("#666666", "--", "v"),
}
