"""Figures of the lesson on order: attention weights, moved rows, and the places where a position can enter."""

import numpy as np

from companion.plots import BLUE, GREEN, ORANGE, clean


def plot_weights(weights, ax, labels):
    """Draw a matrix of attention weights with its numbers; rows are queries i, columns are keys j."""
    if np.shape(weights) != (len(labels), len(labels)):
        raise ValueError(
            f"labels must be one for each row and column of weights {np.shape(weights)}, got {len(labels)}; "
            "take one head, and one label a token"
        )
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1.6)
    for (i, j), weight in np.ndenumerate(weights):
        ax.text(j, i, f"{weight:.2f}", ha="center", va="center", fontsize=13)
    ax.set_xticks(range(len(labels)), labels, fontsize=14)
    ax.set_yticks(range(len(labels)), labels, fontsize=14)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    return ax


def plot_changes(changes, ax, labels):
    """Draw bars, one group per position i: how far each output row moved, one colour per experiment of `changes`."""
    if not 1 <= len(changes) <= 3 or len(labels) != len(changes) or len({len(row) for row in changes}) > 1:
        raise ValueError(
            "changes must hold 1 to 3 experiments of one length, each with a label, got the lengths "
            f"{[len(row) for row in changes]} and {len(labels)} labels; draw others on another axis"
        )
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
        ("$x_m$", 0.9, 5),
        ("$x_n$", 4.5, 5),
        ("$q_m = x_m W_q$", 0.9, 3.75),
        ("$k_n = x_n W_k$", 3.3, 3.75),
        ("$v_n = x_n W_v$", 5.7, 3.75),
        ("$s_{mn} = q_m \\cdot k_n/\\sqrt{d}$", 2.1, 2.35),
        ("$a_{mn} = \\mathrm{softmax}(s_m)_n$", 2.1, 1.15),
        ("$y_m = \\sum_n a_{mn} v_n$", 4.5, 0),
    ]:
        ax.text(x, y, text, ha="center", va="center", fontsize=13, bbox=_BOX)
    for number, start, end in [
        (1, (0.9, 4.7), (0.9, 4.1)),
        (1, (4.2, 4.7), (3.5, 4.1)),
        (1, (4.8, 4.7), (5.5, 4.1)),
        (3, (1.0, 3.4), (1.65, 2.7)),
        (3, (3.2, 3.4), (2.55, 2.7)),
        (2, (2.1, 2.0), (2.1, 1.5)),
        (0, (2.5, 0.8), (3.8, 0.35)),
        (0, (5.7, 3.4), (4.9, 0.35)),
    ]:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": _ENTRANCE[number], "lw": 2.5})
        if number:
            _badge(ax, number, (start[0] + end[0]) / 2 + 0.4, (start[1] + end[1]) / 2)
    for number, text in enumerate(["$x_m + p_m$", "$s_{mn} + b_{n-m}$", "$R_m q_m,\\ R_n k_n$"], 1):
        _badge(ax, number, 7.2, 5.65 - 0.65 * number)
        ax.text(7.5, 5.65 - 0.65 * number, text, va="center", fontsize=13, color=_ENTRANCE[number])
    ax.set(xlim=(-0.2, 9.3), ylim=(-0.5, 5.5))
    ax.axis("off")
    return ax


def _badge(ax, number, x, y):
    circle = {"boxstyle": "circle,pad=0.15", "facecolor": _ENTRANCE[number], "edgecolor": "none"}
    ax.text(x, y, f"${number}$", ha="center", va="center", fontsize=11, color="white", bbox=circle)


_ENTRANCE = ("#444444", BLUE, ORANGE, GREEN)
_BOX = {"boxstyle": "round,pad=0.4", "facecolor": "#f2f2f2", "edgecolor": "#888888"}
