"""Figures of the lesson on kernels: memory traffic, the running softmax, the tiles of causal attention."""

from matplotlib.patches import Rectangle

from companion.plots import BLUE, GREEN, ORANGE, clean


def plot_traffic(passes, ax):
    """Draw a bar for each labelled way: how many times it goes over the memory of x; the line is a copy, 2."""
    if not isinstance(passes, dict) or not passes:
        raise TypeError(
            f"passes must be a dict from label to a number, got {passes!r}; use {{label: number}}"
        )
    names = list(passes)[::-1]
    ax.barh(range(len(names)), [passes[name] for name in names], color=BLUE, height=0.6)
    ax.axvline(2, color=ORANGE, lw=1.5, ls="--")
    ax.set_yticks(range(len(names)), names, fontsize=13)
    ax.set_xlabel("$n$", fontsize=13)
    return clean(ax)


def plot_running_softmax(scores, largest, total, ax):
    """Draw the scores of one row and, after each, the largest so far and the sum of the weights so far."""
    if not len(scores) == len(largest) == len(total):
        raise ValueError(
            f"scores, largest and total must be of one length, got {len(scores)}, {len(largest)} and {len(total)}; "
            "give a value for every score"
        )
    places = range(len(scores))
    ax.plot(places, scores, "o", color=BLUE, markersize=5, label="$s_n$")
    ax.step(places, largest, color=ORANGE, lw=2, where="post", label="$M_n$")
    ax.plot(places, total, color=GREEN, lw=2, label="$Z_n$")
    ax.set_xlabel("$n$", fontsize=13)
    ax.legend(frameon=False, fontsize=12)
    return clean(ax)


def plot_tiles(blocks, ax):
    """Draw the tiles of causal attention: those below the diagonal full, those on it half, the others never read."""
    if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
        raise ValueError(f"blocks must be an integer of at least 1, got {blocks!r}; take another")
    for row in range(blocks):
        for column in range(blocks):
            color = BLUE if column < row else ORANGE if column == row else "white"
            ax.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="#444444", lw=1))
    ax.set(xlim=(0, blocks), ylim=(blocks, 0), aspect="equal", xticks=[], yticks=[])
    ax.set_xlabel("$n$", fontsize=13)
    ax.set_ylabel("$m$", fontsize=13)
    return ax
