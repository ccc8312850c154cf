"""Static figures of the lessons: each `plot_*` draws on the axis it is given and returns it."""

import numpy as np
from matplotlib.patches import Rectangle

# The colours of Okabe and Ito, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"


def plot_weights(weights, ax, labels):
    """Draw a matrix of attention weights with its numbers; rows are queries i, columns are keys j."""
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1.6)
    for (i, j), weight in np.ndenumerate(weights):
        ax.text(j, i, f"{weight:.2f}", ha="center", va="center", fontsize=13)
    ax.set_xticks(range(len(labels)), labels, fontsize=14)
    ax.set_yticks(range(len(labels)), labels, fontsize=14)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    return ax


def plot_changes(changes, ax, labels):
    """Draw bars, one group a position i: how far each output row moved, one colour an experiment of `changes`."""
    width = 0.8 / len(changes)
    for k, (row, label, color) in enumerate(zip(changes, labels, (BLUE, ORANGE, GREEN), strict=False)):
        at = np.arange(len(row)) + (k - (len(changes) - 1) / 2) * width
        ax.bar(at, row, width * 0.9, color=color, label=label)
    ax.set_xticks(range(len(changes[0])))
    ax.set_xlabel("$i$", fontsize=13)
    ax.legend(frameon=False, fontsize=12)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_three_places(ax):
    """Draw the way from the tokens through one attention layer, with the three places where a position can enter."""
    for text, x, y in [
        ("$x_m,\\ x_n$", 2, 5),
        ("$q_m = x_m W_q$", 0.9, 3.8),
        ("$k_n = x_n W_k$", 3.1, 3.8),
        ("$s_{mn} = q_m \\cdot k_n/\\sqrt{d}$", 2, 2.3),
        ("$a_{mn} = \\mathrm{softmax}(s_m)_n$", 2, 1.15),
        ("$y_m = \\sum_n a_{mn} v_n$", 2, 0),
    ]:
        ax.text(x, y, text, ha="center", va="center", fontsize=13, bbox=_BOX)
    for start, end, color in [
        ((1.7, 4.7), (1.1, 4.15), BLUE),
        ((2.3, 4.7), (2.9, 4.15), BLUE),
        ((1.0, 3.45), (1.6, 2.65), GREEN),
        ((3.0, 3.45), (2.4, 2.65), GREEN),
        ((2, 1.95), (2, 1.5), ORANGE),
        ((2, 0.8), (2, 0.4), "#444444"),
    ]:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2.5})
    for text, y, color in [
        ("1   $x_m + p_m$", 4.45, BLUE),
        ("2   $s_{mn} + b_{n-m}$", 1.73, ORANGE),
        ("3   $R_m q_m,\\ R_n k_n$", 3.05, GREEN),
    ]:
        ax.text(3.25, y, text, va="center", fontsize=13, color=color)
    ax.set(xlim=(-0.4, 5.6), ylim=(-0.5, 5.5))
    ax.axis("off")
    return ax


def plot_wavelengths(tables, ax, length):
    """Draw the wavelength of every pair on a logarithmic axis, one curve for each labelled table of `tables`.

    The line at `length` tokens parts the pairs that complete a turn within that length (below) from the others.
    """
    for (label, table), color in zip(tables.items(), (BLUE, ORANGE, GREEN), strict=False):
        ax.semilogy(table, ".", color=color, label=label, markersize=6)
    ax.axhline(length, color="#444444", lw=1, ls="--")
    ax.text(0, length * 1.2, f"$L = {length}$", fontsize=12)
    ax.set_xlabel("$i$", fontsize=13)
    ax.set_ylabel("$\\lambda_i$", fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc="lower right")
    return _clean(ax)


def plot_pairings(permutation, ax):
    """Draw the dimensions of one head in the adjacent pairing (top) and, after `permutation`, in the half pairing.

    One colour a pair; an arc joins the two dimensions that turn together.
    """
    half = len(permutation) // 2
    ends = [(2 * i, 2 * i + 1) for i in range(half)], [(i, i + half) for i in range(half)]
    for row, order, arcs, side in [(2.2, range(2 * half), ends[0], 1), (0, permutation, ends[1], -1)]:
        for place, dim in enumerate(order):
            ax.add_patch(Rectangle((place - 0.4, row - 0.4), 0.8, 0.8, color=_PAIRS[dim // 2 % len(_PAIRS)]))
            ax.text(place, row, f"$x_{{{dim}}}$", ha="center", va="center", fontsize=13)
        for i, (a, b) in enumerate(arcs):
            height = 0.45 + 0.28 * (b - a > 1) * (1 + i)
            at = row + side * 0.45
            ax.plot([a, a, b, b], [at, at + side * height, at + side * height, at], color=_PAIRS[i % len(_PAIRS)], lw=2)
            ax.text((a + b) / 2, at + side * height, f"$\\theta_{i}$", fontsize=12, ha="center", va="center", bbox=_LABEL)
    for place, dim in enumerate(permutation):
        ax.plot([dim, place], [1.75, 0.45], color=_PAIRS[dim // 2 % len(_PAIRS)], lw=1.5)
    ax.set(xlim=(-0.6, 2 * half - 0.4), ylim=(-0.9 - 0.28 * (half + 1), 3.4))
    ax.axis("off")
    return ax


def plot_rotation_pattern(pairs, ax):
    """Draw where the cosines and sines of the rotation matrix stand if the pair i turns the dimensions pairs[i]."""
    size = 2 * len(pairs)
    for i, (a, b) in enumerate(pairs):
        for row, column, text in [(a, a, "c"), (a, b, "-s"), (b, a, "s"), (b, b, "c")]:
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color=_PAIRS[i % len(_PAIRS)]))
            ax.text(column, row, f"${text}_{i}$", ha="center", va="center", fontsize=12)
    ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
    return ax


def plot_by_distance(distances, curves, ax, *, ylabel):
    """Draw one curve over the distance m − n for each label of `curves`."""
    for (label, values), color in zip(curves.items(), (BLUE, ORANGE, GREEN), strict=False):
        ax.plot(distances, values, color=color, label=label, lw=1.5)
    ax.axhline(0, color="#444444", lw=0.8)
    ax.set_xlabel("$m - n$", fontsize=13)
    ax.set_ylabel(ylabel, fontsize=13)
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=12)
    return _clean(ax)


_BOX = {"boxstyle": "round,pad=0.4", "facecolor": "#f2f2f2", "edgecolor": "#888888"}
_LABEL = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
_PAIRS = ("#9fcbe8", "#f2b48f", "#8fd3ba", "#e6bfd4", "#f2d08a", "#c9c9c9")


def _clean(ax):
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.set_facecolor("white")
    return ax
