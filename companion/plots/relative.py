"""Figures of the lesson on relative positions: scores along a text, the relative shift, buckets, reach, signed weights."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from companion.plots import BLUE, GREEN, ORANGE, clean, styled


def plot_scores_along_text(positions, curves, ax):
    """Draw the score of one pair of tokens over the position where the pair stands, one curve for each label."""
    for (label, values), (color, style) in styled("curves", curves, _LINES):
        ax.plot(positions, values, style, color=color, label=label, lw=1.5)
    ax.set_xlabel("$n$", fontsize=13)
    ax.set_ylabel("$s_{n+3,\\,n}$", fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc="upper right", ncols=len(curves))
    ax.margins(y=0.18)
    return clean(ax)


def plot_distance_grid(distances, ax, title):
    """Draw a table of distances m − n, one row per query; what does not belong (NaN) is grey, a filled-in 0 (−1) orange."""
    rows, columns = distances.shape
    shown = np.ma.masked_less(np.ma.masked_invalid(distances), 0)
    ax.imshow(shown, cmap="Blues", vmin=0, vmax=1.7 * np.nanmax(distances))
    for (row, column), distance in np.ndenumerate(distances):
        if np.isnan(distance) or distance < 0:
            color = "#bbbbbb" if np.isnan(distance) else ORANGE
            ax.fill_between([column - 0.5, column + 0.5], row - 0.5, row + 0.5, color=color, lw=0)
        else:
            ax.text(column, row, f"{distance:.0f}", ha="center", va="center", fontsize=12)
    ax.set(xticks=np.arange(columns + 1) - 0.5, yticks=np.arange(rows + 1) - 0.5)
    ax.grid(color="white", lw=1.5)
    ax.tick_params(length=0, labelbottom=False, labelleft=False)
    ax.set_title(title, fontsize=13)
    ax.spines[:].set_visible(False)
    ax.figure.set_facecolor("white")
    return ax


def plot_reach(curves, ax, trained):
    """Draw perplexity over the length of the text, a pair (lengths, perplexities) for each label of `curves`.

    Both axes are logarithmic; the dotted line marks the trained length, a ring the best value of each curve.
    """
    for (label, (lengths, values)), (color, style) in styled("curves", curves, _LINES):
        ax.loglog(lengths, values, style, color=color, label=label, marker=".", markersize=6, lw=1.5)
        best = int(np.argmin(values))
        ax.plot(lengths[best], values[best], "o", color=color, markersize=11, fillstyle="none")
    ax.axvline(trained, color="#444444", lw=1, ls=":")
    ax.set_xticks([512, 1024, 2048, 4096, 8192], [512, 1024, 2048, 4096, 8192])
    ax.set_yticks([20, 50, 100, 200, 400], [20, 50, 100, 200, 400])
    ax.minorticks_off()
    ax.set_xlabel("$L_{\\mathrm{test}}$", fontsize=13)
    ax.set_ylabel("ppl", fontsize=13)
    ax.legend(frameon=False, fontsize=11)
    return clean(ax)


def plot_signed_weights(weights, ax, title):
    """Draw a matrix of weights, one row per query m: blue above 0, orange with a stroke below 0, white at 0."""
    two_colours = LinearSegmentedColormap.from_list("orange, white, blue", [ORANGE, "white", BLUE])
    largest = np.abs(weights).max()
    ax.imshow(weights, cmap=two_colours, vmin=-largest, vmax=largest)
    for row, column in np.argwhere(weights < 0):
        ax.plot([column - 0.25, column + 0.25], [row, row], color="black", lw=1)
    ax.set_xlabel("$n$", fontsize=13)
    ax.set_ylabel("$m$", fontsize=13)
    ax.set_title(title, fontsize=13)
    ax.figure.set_facecolor("white")
    return ax


def plot_row_sums(sums, ax):
    """Draw the sum of the weights of every query m, from top to bottom; at the dotted line a row is a mean."""
    ax.axvline(1, color="#444444", lw=1, ls=":")
    ax.plot(sums, np.arange(len(sums)), ".-", color=ORANGE, lw=1.2)
    ax.set_xlim(left=0)
    ax.set_xlabel("$\\sum_n a_{mn}$", fontsize=13)
    ax.invert_yaxis()
    return clean(ax)


_LINES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), ("#cc79a7", ":"))
