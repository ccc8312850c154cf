"""Figures of the lesson on absolute positions: heat maps of codes, products of two codes, and what lies beyond L."""

from matplotlib.colors import LinearSegmentedColormap

from companion.plots import BLUE, GREEN, ORANGE, clean, styled


def plot_codes(codes, ax, *, xlabel):
    """Draw a table of codes as a heat map, one row per position m, one column per component: −1 orange, 0 white, 1 blue."""
    two_colours = LinearSegmentedColormap.from_list("orange, white, blue", [ORANGE, "white", BLUE])
    ax.imshow(codes, cmap=two_colours, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    ax.set_xlabel(xlabel, fontsize=13)
    ax.set_ylabel("$m$", fontsize=13)
    ax.figure.set_facecolor("white")
    return ax


def plot_products(offsets, curves, ax):
    """Draw one curve over the offset m − n for each label of `curves`."""
    for (label, values), (color, style) in styled("curves", curves, _LINES):
        ax.plot(offsets, values, style, color=color, label=label, lw=1.8)
    ax.axvline(0, color="#444444", lw=0.8)
    ax.set_xlabel("$m - n$", fontsize=13)
    ax.legend(frameon=False, fontsize=13)
    return clean(ax)


def plot_readings(readings, ax, trained):
    """Draw the position that was read against the true one; the line at `trained` ends the training range."""
    ax.plot([0, len(readings)], [0, len(readings)], "--", color="#444444", lw=1, label=r"$\hat m = m$")
    ax.plot(readings, color=BLUE, lw=1.8, label=r"$\hat m = w\cdot p_m + c$")
    ax.axvline(trained, color=ORANGE, lw=1)
    ax.text(trained + 8, len(readings) * 0.02, f"$L = {trained}$", fontsize=12)
    ax.set_xlabel("$m$", fontsize=13)
    ax.set_ylabel(r"$\hat m$", fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc="upper left")
    return clean(ax)


def plot_perplexity(lengths, rows, ax, trained):
    """Draw perplexity over the length of the text, both logarithmic, one curve for each label of `rows`."""
    for (label, values), (color, style) in styled("rows", rows, _LINES):
        ax.loglog(lengths, values, style, color=color, label=label, marker="o", markersize=4, lw=1.5)
    ax.axvline(trained, color="#444444", lw=1, ls=":")
    ax.text(trained * 1.03, max(max(values) for values in rows.values()), f"$L = {trained}$", fontsize=12)
    ax.set_xticks([512, 1024, 2048, 4096, 8192, 16384], [512, 1024, 2048, 4096, 8192, 16384])
    ax.set_yticks([20, 50, 100, 200, 400], [20, 50, 100, 200, 400])
    ax.minorticks_off()
    ax.set_xlabel("$L_{\\mathrm{test}}$", fontsize=13)
    ax.set_ylabel("ppl", fontsize=13)
    ax.legend(frameon=False, fontsize=12, loc=(0.06, 0.6))
    return clean(ax)


_LINES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), ("#cc79a7", ":"))
