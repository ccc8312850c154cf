"""The command line: `python -m companion inspect config.json` tells what a model does to positions."""

import argparse
import signal
import sys

from companion.hf_config_keys import layer_types
from companion.inspect_report import inspect_rope, report


def main(arguments=None):
    """Run the command line and return its exit code: 0, or 2 with one line that says what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        inspections = _inspections(options)
        print("\n\n".join(report(one, lang=options.lang, every_pair=options.all) for one in inspections))
        if options.plot is not None:
            _save_plot(options.plot, inspections)
    except OSError as error:
        way_out = (
            "give the path of a model's config.json"
            if error.filename == options.config
            else "choose another file"
        )
        print(f"error: {error.strerror}: {error.filename!r}; {way_out}", file=sys.stderr)
        return 2
    except (TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m companion",
        description='Companion of the course "Where Order Lives" (《次序在哪里》).',
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    inspect = commands.add_parser(
        "inspect",
        help="what a model's config.json does to positions",
        description="Print how a model turns queries and keys: the method, each pair's wavelength before and after "
        "scaling, its turns within the trained length, the attention factor, and what is easily done wrong.",
        epilog="example: python -m companion inspect config.json --length 131072 --plot wavelengths.svg",
    )
    inspect.add_argument("config", help="a config.json as published with models on Hugging Face")
    inspect.add_argument(
        "--length", type=int, metavar="N", help="the length of the texts you mean to use, in tokens"
    )
    inspect.add_argument(
        "--layer-type", metavar="T", help="one type of layer only, where they differ, e.g. full_attention"
    )
    inspect.add_argument(
        "--all", action="store_true", help="a line for every pair, not for every range of pairs"
    )
    inspect.add_argument(
        "--plot", metavar="FILE", help="draw the wavelengths to a .svg, .png or .pdf (needs matplotlib)"
    )
    inspect.add_argument(
        "--lang", choices=["en", "zh"], default="en", help="language of the report (default: en)"
    )
    return parser


def _inspections(options):
    layers = [options.layer_type] if options.layer_type else layer_types(options.config) or [None]
    return [inspect_rope(options.config, seq_len=options.length, layer_type=layer) for layer in layers]


def _save_plot(path, inspections):
    try:
        from companion.plots.inspect import save_inspections
    except ImportError as error:
        raise ValueError(
            f"--plot needs matplotlib ({error}); install it with: pip install matplotlib"
        ) from error
    save_inspections(path, inspections)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal without ÷ or λ shows ?, and no traceback
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `… | head` is no error
    sys.exit(main())
