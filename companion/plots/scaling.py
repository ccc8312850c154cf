"""Static figures of the lesson on longer contexts: each `plot_*` draws on the axis it is given and returns it."""

import numpy as np
from matplotlib.patches import Circle, Wedge

from companion.plots import BLUE, GREEN, ORANGE, clean, styled

GREY, PURPLE = "#999999", "#cc79a7"


def plot_dials(turns, ax, *, columns=11):
    """Draw one dial per pair, numbered i, with the sector of angles that training has covered.

    `turns` counts the turns of each pair within the trained length. A pair that completes a turn has seen the
    whole dial (grey); of the others only the shaded sector, counter-clockwise from the right, is known.
    """
    for i, turned in enumerate(turns):
        x, y = i % columns, -1.45 * (i // columns)
        complete = turned >= 1
        ax.add_patch(
            Circle((x, y), 0.4, facecolor="#dddddd" if complete else "white", edgecolor="#666666", lw=0.8)
        )
        if not complete:
            ax.add_patch(Wedge((x, y), 0.4, 0, 360 * turned, facecolor=ORANGE, edgecolor=ORANGE))
        ax.text(x, y - 0.64, f"{i}", ha="center", va="center", fontsize=11)
    ax.set(
        xlim=(-0.6, columns - 0.4), ylim=(-1.45 * ((len(turns) - 1) // columns) - 0.95, 0.6), aspect="equal"
    )
    ax.axis("off")
    ax.figure.set_facecolor("white")
    return ax


def plot_profiles(distances, curves, ax, trained):
    """Draw the score of one head over the distance m − n (logarithmic), one curve for each label of `curves`.

    The shaded part up to `trained` tokens is what training has seen.
    """
    for (label, values), (color, style) in styled("curves", curves, _STYLES):
        ax.plot(distances, values, style, color=color, label=label, lw=1.6)
    ax.axvspan(distances[0], trained, color="#eeeeee", zorder=0)
    ax.axhline(0, color="#444444", lw=0.8)
    ax.set_xscale("log", base=2)
    ax.set_xlim(distances[0], distances[-1])
    ax.text(trained, 0.8, f"$L = {trained}$ ", fontsize=11, ha="right", transform=ax.get_xaxis_transform())
    ax.set_xlabel(r"$\Delta = m - n$", fontsize=13)
    ax.legend(frameon=False, fontsize=11)
    return clean(ax)


def plot_slowdowns(curves, ax, factor, *, turns=None):
    """Draw by how much each pair is slowed down, θ_i / θ'_i, over the pair number i, one curve per label.

    With `turns` (within the trained length), lines mark where a pair makes 32 turns and where it makes 1.
    """
    for (label, values), (color, style) in styled("curves", curves, _STYLES):
        ax.semilogy(values, style, color=color, label=label, lw=1.8, base=2)
    ax.axhline(factor, color="#444444", lw=0.8, ls=":")
    ax.text(0, factor, f"$s = {factor:g}$", fontsize=11, va="bottom")
    for count in () if turns is None else (32, 1):
        at = np.interp(-np.log(count), -np.log(turns), np.arange(len(turns)))
        ax.axvline(at, color="#444444", lw=0.8, ls="--")
        ax.text(at, 1, f" $r = {count}$", fontsize=11, va="bottom", rotation=90, ha="right")
    ax.set_xlabel("$i$", fontsize=13)
    ax.set_ylabel(r"$\theta_i \,/\, \theta'_i$", fontsize=13)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.legend(frameon=False, fontsize=11, loc="center left")
    return clean(ax)


def plot_entropies(lengths, curves, ax, trained):
    """Draw the entropy of attention rows over the number of keys n (logarithmic), one curve per label."""
    for (label, values), (color, style) in styled("curves", curves, _STYLES):
        ax.plot(lengths, values, style, color=color, label=label, lw=1.6, marker="o", markersize=4)
    ax.axvline(trained, color="#444444", lw=0.8, ls="--")
    ax.set_xscale("log", base=2)
    ax.set_xlabel("$n$", fontsize=13)
    ax.set_ylabel("$H$", fontsize=13)
    ax.legend(frameon=False, fontsize=11)
    return clean(ax)


# Colour and line together, so that the curves differ in print and to every reader.
_STYLES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (PURPLE, "-"), (GREY, ":"))
