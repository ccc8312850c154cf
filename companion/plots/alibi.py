"""Figures of the lesson on ALiBi: matrices of scores and biases, slopes, staircases of rounding, perplexities."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from companion.plots import BLUE, ORANGE, clean, styled


def plot_entries(entries, ax, *, shades=None, marked=None):
    """Draw a matrix of formulas, a row for each query and a column for each key, counted from 1.

    `shades` colours the entries, from 0 (white) to 1; an entry that is None is grey: nobody may look there.
    `marked`, a pair (row, column), gets a frame.
    """
    size = len(entries)
    for i, row in enumerate(entries):
        for j, text in enumerate(row):
            shade = 0.0 if shades is None or text is None else shades[i][j]
            color = "#d9d9d9" if text is None else _mix(ORANGE, 0.75 * shade)
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white", lw=1.5))
            ax.text(
                j, i, r"$-\infty$" if text is None else f"${text}$", ha="center", va="center", fontsize=12
            )
    if marked is not None:
        ax.add_patch(
            Rectangle((marked[1] - 0.5, marked[0] - 0.5), 1, 1, fill=False, edgecolor=BLUE, lw=3, zorder=3)
        )
    ax.set(xlim=(-0.55, size - 0.45), ylim=(size - 0.45, -0.55), aspect="equal")
    ax.set_xticks(range(size), [f"$k_{j + 1}$" for j in range(size)], fontsize=13)
    ax.set_yticks(range(size), [f"$q_{i + 1}$" for i in range(size)], fontsize=13)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.set_facecolor("white")
    return ax


def plot_slopes(tables, ax):
    """Draw the slope of every head on a logarithmic axis, one set of marks for each label of `tables`."""
    for (label, slopes), (color, marker) in styled("tables", tables, ((BLUE, "o"), (ORANGE, "x"))):
        heads = np.arange(1, len(slopes) + 1)
        ax.semilogy(heads, slopes, marker, color=color, label=label, markersize=8, mew=2, base=2)
    ax.set_xticks(heads)
    exponents = range(-8, 1)
    ax.set_yticks(
        [2.0**e for e in exponents], [f"$2^{{{e}}}$" if e else "$1$" for e in exponents], fontsize=12
    )
    ax.minorticks_off()
    ax.set_xlabel("$h$", fontsize=13)
    ax.set_ylabel("$m_h$", fontsize=13, rotation=0, labelpad=16)
    ax.legend(frameon=False, fontsize=12, loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1.0))
    return clean(ax)


def plot_staircase(distances, curves, ax):
    """Draw biases over the distance from the query, a line for the first label of `curves`, steps for the second."""
    if len(curves) != 2:
        raise ValueError(
            f"curves must hold 2 labels, a line and steps, got {len(curves)}; give the exact one first"
        )
    (exact, line), (rounded, steps) = curves.items()
    ax.plot(distances, line, color=BLUE, lw=2, label=exact)
    ax.step(distances, steps, where="mid", color=ORANGE, lw=2, label=rounded)
    ax.set_xlabel("$i - j$", fontsize=13)
    ax.set_ylabel("$b_{ij} - b_{ii}$", fontsize=13)
    ax.legend(frameon=False, fontsize=12)
    return clean(ax)


def plot_patterns(biases, axes):
    """Draw matrices of biases beside each other: white costs nothing, deep orange much, grey may not be seen."""
    finite = [bias[np.isfinite(bias)] for bias in biases]
    deepest = -min(values.min() for values in finite)
    for bias, ax in zip(biases, axes, strict=True):
        for (i, j), value in np.ndenumerate(bias):
            color = "#d9d9d9" if np.isneginf(value) else _mix(ORANGE, -value / deepest)
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white", lw=1))
        size = len(bias)
        ax.set(xlim=(-0.55, size - 0.45), ylim=(size - 0.45, -0.55), aspect="equal", xticks=[], yticks=[])
        ax.set_xlabel("$j$", fontsize=13)
        ax.set_ylabel("$i$", fontsize=13, rotation=0, labelpad=8)
        ax.spines[:].set_visible(False)
        ax.figure.set_facecolor("white")
    return axes


def plot_flatness(lengths, measured, curve_lengths, curve, ax, *, trained):
    """Draw measured perplexities (dots) and predicted ones (a line) over the length of the text, logarithmic."""
    ax.semilogx(curve_lengths, curve, color=ORANGE, lw=2, label=r"$\widehat{\mathrm{ppl}}(N)$")
    ax.semilogx(lengths, measured, "o", color=BLUE, markersize=6, label=r"$\mathrm{ppl}(N)$")
    ax.axvline(trained, color="#444444", lw=1, ls=":")
    ax.text(trained * 1.05, 18.02, f"$L = {trained}$", fontsize=12)
    ticks = [512, 1024, 2048, 4096, 8192, 16384]
    ax.set_xticks(ticks, ticks)
    ax.minorticks_off()
    ax.set_xlabel(r"$N$", fontsize=13)
    ax.set_ylabel("ppl", fontsize=13)
    ax.legend(frameon=False, fontsize=12)
    return clean(ax)


def _mix(color, amount):
    """White with `amount` (0 … 1) of the colour."""
    return tuple(1 - amount * (1 - part) for part in to_rgb(color))
