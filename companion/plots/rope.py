"""Figures of the lesson on RoPE: wavelengths, the two pairings, and scores over the distance."""

from matplotlib.patches import Rectangle

from companion.plots import BLUE, GREEN, ORANGE, clean, styled


def plot_wavelengths(tables, ax, length):
    """Draw the wavelength of every pair on a logarithmic axis, one curve for each labelled table of `tables`.

    The line at `length` tokens parts the pairs that complete a turn within that length (below) from the others.
    """
    for (label, table), color in styled("tables", tables, (BLUE, ORANGE, GREEN)):
        ax.semilogy(table, ".", color=color, label=label, markersize=6)
    ax.axhline(length, color="#444444", lw=1, ls="--")
    ax.text(0, length * 1.2, f"$L = {length}$", fontsize=12)
    ax.set_xlabel("$i$", fontsize=13)
    ax.set_ylabel("$\\lambda_i$", fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc="lower right")
    return clean(ax)


def plot_pairings(permutation, ax):
    """Draw the dimensions of one head in the adjacent pairing (top) and, after `permutation`, in the half pairing.

    One colour per pair; an arc joins the two dimensions that turn together.
    """
    if len(permutation) % 2 or sorted(permutation) != list(range(len(permutation))) or not len(permutation):
        raise ValueError(
            "permutation must be of an even length and hold each dimension 0, 1, 2 … once, "
            f"got {list(permutation)}; see companion.rope.pairing_permutation(head_dim)"
        )
    half = len(permutation) // 2
    ends = [(2 * i, 2 * i + 1) for i in range(half)], [(i, i + half) for i in range(half)]
    for row, order, arcs, side in [(2.2, range(2 * half), ends[0], 1), (0, permutation, ends[1], -1)]:
        for place, dim in enumerate(order):
            ax.add_patch(Rectangle((place - 0.4, row - 0.4), 0.8, 0.8, color=_PAIRS[dim // 2 % len(_PAIRS)]))
            ax.text(place, row, f"$x_{{{dim}}}$", ha="center", va="center", fontsize=13)
        for i, (a, b) in enumerate(arcs):
            height = 0.45 + 0.28 * (b - a > 1) * (1 + i)
            at = row + side * 0.45
            ax.plot(
                [a, a, b, b],
                [at, at + side * height, at + side * height, at],
                color=_PAIRS[i % len(_PAIRS)],
                lw=2,
            )
            ax.text(
                (a + b) / 2,
                at + side * height,
                f"$\\theta_{i}$",
                fontsize=12,
                ha="center",
                va="center",
                bbox=_LABEL,
            )
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
    for (label, values), color in styled("curves", curves, (BLUE, ORANGE, GREEN)):
        ax.plot(distances, values, color=color, label=label, lw=1.5)
    ax.axhline(0, color="#444444", lw=0.8)
    ax.set_xlabel("$m - n$", fontsize=13)
    ax.set_ylabel(ylabel, fontsize=13)
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=12)
    return clean(ax)


_LABEL = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
_PAIRS = ("#9fcbe8", "#f2b48f", "#8fd3ba", "#e6bfd4", "#f2d08a", "#c9c9c9")
