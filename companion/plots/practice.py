"""Figures of the lesson on RoPE in practice: positions as stored, the error of each cast, masks with positions."""

import numpy as np
from matplotlib.patches import Rectangle

from companion.plots import BLUE, GREEN, ORANGE, clean, styled


def plot_stored_positions(positions, stored, ax):
    """Draw the number that is stored for each position, one set of points for each label of `stored`."""
    ax.plot(positions, positions, "--", color="#444444", lw=1)
    for (label, values), style in styled("stored", stored, _POINTS):
        ax.plot(positions, values, "o", label=label, **style)
    ax.set_xlabel("$m$", fontsize=13)
    ax.set_ylabel(r"$\hat m$", fontsize=13, rotation=0, labelpad=12)
    ax.legend(frameon=False, fontsize=11, loc="upper left")
    return clean(ax)


def plot_cast_errors(positions, curves, ax):
    """Draw on two logarithmic axes how far the worst hand is off up to a position, a line for each label of `curves`."""
    for (label, values), (color, style) in styled("curves", curves, _LINES):
        ax.loglog(positions, values, style, color=color, label=label, lw=2)
    ax.set_xlabel("$m$", fontsize=13)
    ax.set_ylabel(r"$\max\,|e^{i\hat\varphi} - e^{i\varphi}|$", fontsize=13)
    ax.legend(frameon=False, fontsize=11, loc="lower right")
    return clean(ax)


def plot_mask(mask, positions, ax, *, right=None):
    """Draw who may look at whom, a row for each query; the ticks are the positions.

    Where `mask` differs from the mask `right`, the cell is orange: × for a key that must not be seen, ○ for one
    that is missing.
    """
    mask = np.asarray(mask)
    right = mask if right is None else np.asarray(right)
    rows, columns = mask.shape
    for i in range(rows):
        for j in range(columns):
            wrong = mask[i, j] != right[i, j]
            color = ORANGE if wrong else BLUE if mask[i, j] else "#eeeeee"
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white", lw=1.5))
            if wrong:
                sign = r"$\times$" if mask[i, j] else r"$\circ$"
                ax.text(j, i, sign, ha="center", va="center", fontsize=13, color="white")
    ax.set(xlim=(-0.55, columns - 0.45), ylim=(rows - 0.45, -0.55), aspect="equal")
    ax.set_xticks(range(columns), [f"${n}$" for n in positions[-columns:]], fontsize=11)
    ax.set_yticks(range(rows), [f"${m}$" for m in positions[-rows:]], fontsize=11)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.set_facecolor("white")
    return ax


# Hollow and large below small and full, so that equal points are seen both.
_POINTS = (
    {"color": GREEN, "fillstyle": "none", "markersize": 9},
    {"color": ORANGE, "markersize": 5},
)
_LINES = ((BLUE, "-"), (GREEN, "--"), (ORANGE, "-."), ("#cc79a7", ":"))
