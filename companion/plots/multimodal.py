"""Figures of the lesson on several axes: distances of patches, the speeds of each axis, what a step on it does."""

import numpy as np

from companion.plots import BLUE, GREEN, ORANGE, clean

# Axis, colour, line and marker: told apart by shape too.
_AXES = (("T", BLUE, "-", "o"), ("H", ORANGE, "--", "s"), ("W", GREEN, ":", "^"))


def plot_patch_distances(distances, ax, title):
    """Draw how far each patch of a picture is from the one at distance 0 (black frame), the number in its cell."""
    distances = np.asarray(distances)
    ax.imshow(distances, cmap="Blues", vmin=0, vmax=1.7 * distances.max())
    for (row, column), distance in np.ndenumerate(distances):
        ax.text(column, row, f"{distance}", ha="center", va="center", fontsize=11)
    row, column = np.argwhere(distances == 0)[0]
    ax.plot(column + 0.46 * _SQUARE[0], row + 0.46 * _SQUARE[1], color="black", lw=2)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=13)
    ax.spines[:].set_visible(False)
    ax.figure.set_facecolor("white")
    return ax


def plot_axis_spectra(inv_freq, axes, ax, title):
    """Draw the wavelengths of the pairs that each of the axes T, H and W drives, one line of marks for each axis.

    `axes` holds 0, 1 or 2 for every pair, as `companion.multimodal.mrope_axes` returns it.
    """
    inv_freq, axes = np.asarray(inv_freq), np.asarray(axes)
    for axis, (_, color, _, marker) in enumerate(_AXES):
        lengths = 2 * np.pi / inv_freq[axes == axis]
        ax.semilogx(lengths, np.full(lengths.shape, -axis), marker, color=color, markersize=5)
    ax.set(yticks=[0, -1, -2], ylim=(-2.6, 0.6))
    ax.set_yticklabels([name for name, *_ in _AXES], fontsize=13)
    ax.set_xlabel("$\\lambda_i$", fontsize=13)
    ax.set_title(title, fontsize=13)
    return clean(ax)


def plot_axis_profiles(distances, profiles, ax, title):
    """Draw the score over the distance (logarithmic) on one axis alone, for T, H and W, from three rows of `profiles`."""
    if len(profiles) != len(_AXES):
        raise ValueError(
            f"profiles must hold one row each for T, H and W, got {len(profiles)}; compute all three"
        )
    for (name, color, line, _), profile in zip(_AXES, profiles, strict=True):
        ax.semilogx(distances, profile, line, color=color, label=f"${name}$", lw=1.8)
    ax.set_xlabel("$\\Delta$", fontsize=13)
    ax.set_title(title, fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc="lower left")
    return clean(ax)


_SQUARE = np.array([[-1, 1, 1, -1, -1], [-1, -1, 1, 1, -1]])
