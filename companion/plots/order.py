"""Figures of the lesson on order: attention weights, moved rows, and the places where a position can enter."""

import numpy as np

from companion.plots import BLUE, GREEN, ORANGE, clean


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
    for k, (row, label) in enumerate(zip(changes, labels, strict=True)):
        at = np.arange(len(row)) + (k - (len(changes) - 1) / 2) * width
        ax.bar(at, row, width * 0.9, color=(BLUE, ORANGE, GREEN)[k], label=label)
    ax.set_xticks(range(len(changes[0])))
    ax.set_xlabel("$i$", fontsize=13)
    ax.legend(frameon=False, fontsize=12)
    return clean(ax)


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


_BOX = {"boxstyle": "round,pad=0.4", "facecolor": "#f2f2f2", "edgecolor": "#888888"}
