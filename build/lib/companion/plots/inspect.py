"""Figure of `python -m companion inspect`: wavelengths of a model before and after scaling."""

import numpy as np
from matplotlib.figure import Figure

from companion.frequencies import wavelengths
from companion.multimodal import mrope_axes
from companion.plots import BLUE, GREEN, ORANGE, clean


def save_inspections(path, inspections):
    """Draw one panel for each `Inspection` of the list and write the figure to `path`, a .svg, .png or .pdf."""
    figure = Figure(figsize=(7, 3.8 * len(inspections)), layout="constrained")
    for ax, inspection in zip(
        figure.subplots(len(inspections), squeeze=False)[:, 0], inspections, strict=True
    ):
        plot_inspection(inspection, ax)
    figure.savefig(path)


def plot_inspection(inspection, ax):
    """Draw wavelengths λ before and λ′ after scaling on a logarithmic axis, blended pairs shaded; return the axis.

    Lines mark the trained length L and, if asked for, the length N: a pair above the line never completes a turn.
    """
    rope, after = inspection.rope, wavelengths(inspection.result.inv_freq)
    ax.semilogy(
        wavelengths(inspection.before), "o", color=BLUE, fillstyle="none", markersize=6, label="$\\lambda_i$"
    )
    for label, color, mine in _groups(inspection):
        pairs = np.flatnonzero(mine & np.isfinite(after))
        ax.semilogy(pairs, after[pairs], "o", color=color, markersize=3, label=label)
    blended = np.flatnonzero(np.array(inspection.treatments) == "blended")
    if blended.size:
        ax.axvspan(blended[0] - 0.5, blended[-1] + 0.5, color=GREEN, alpha=0.12, lw=0)
    for symbol, length, style in (("L", rope["train_len"], "--"), ("N", inspection.seq_len, ":")):
        if length:
            ax.axhline(length, color="#444444", lw=1, ls=style)
            ax.annotate(
                f"${symbol} = {length}$", (0, length), (2, 3), textcoords="offset points", fontsize=11
            )
    scale = f"  $s = {rope['factor']:g}$" if "factor" in rope else ""
    names = [inspection.layer_type or "", rope["rope_type"], f" $b = {rope['rope_theta']:.10g}${scale}"]
    ax.set_title(" ".join(filter(None, names)), fontsize=12)
    ax.set_xlabel("$i$", fontsize=13)
    ax.set_ylabel("$\\lambda_i$", fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc="lower right")
    return clean(ax)


def _groups(inspection):
    """Label, colour and which pairs: one group, or one for each axis of M-RoPE."""
    size, sections = inspection.before.size, inspection.result.sections
    if sections is None:
        return [("$\\lambda'_i$", ORANGE, np.ones(size, dtype=bool))]
    axes = mrope_axes(
        size, sections, layout="interleaved" if inspection.rope["mrope_interleaved"] else "contiguous"
    )
    colors = (ORANGE, GREEN, "#cc79a7")
    return [
        (f"$\\lambda'_i,\\ {name}$", color, axes == axis)
        for axis, (name, color) in enumerate(zip("THW", colors, strict=True))
    ]
