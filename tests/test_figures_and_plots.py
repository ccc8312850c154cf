"""Every static figure draws on the axis it is given, every interactive one speaks both languages."""

import importlib
import inspect
import io
import json
import pkgutil
import re
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import companion.figures
import companion.plots
from companion.plots import (
    absolute,
    alibi,
    extrapolation,
    kernels,
    multimodal,
    order,
    practice,
    relative,
    rope,
    scaling,
)
from companion.plots import inspect as inspection
from companion.rope import pairing_permutation, rotation_matrix
from companion.symbolic import block_rotation

SIX = np.arange(1.0, 7.0)
LENGTHS = np.array([512, 1024, 2048, 4096, 8192, 15512])
SQUARE = np.tri(4) / np.arange(1, 5)[:, None]
MASKED = np.where(np.tri(4) > 0, -np.arange(4.0), -np.inf)
TWO = {"$a$": SIX, "$b$": SIX**2}
CONFIG = Path(__file__).parent / "configs" / "llama_3_1_8b.json"


def inspect_example(ax):
    from companion.inspect_report import inspect_rope

    return inspection.plot_inspection(inspect_rope(CONFIG, seq_len=100000), ax)


# One call for each plot_* of companion.plots, named module.function.
PLOTS = {
    "absolute.plot_codes": lambda ax: absolute.plot_codes(SQUARE, ax, xlabel="$i$"),
    "absolute.plot_products": lambda ax: absolute.plot_products(SIX, TWO, ax),
    "absolute.plot_readings": lambda ax: absolute.plot_readings(SIX, ax, 4),
    "absolute.plot_perplexity": lambda ax: absolute.plot_perplexity(LENGTHS, {"sin": 20 * SIX}, ax, 512),
    "alibi.plot_entries": lambda ax: alibi.plot_entries(
        [["0", None], ["-m", "0"]], ax, shades=[[0, 0], [1, 0]], marked=(1, 0)
    ),
    "alibi.plot_slopes": lambda ax: alibi.plot_slopes({"$a$": 2.0**-SIX}, ax),
    "alibi.plot_staircase": lambda ax: alibi.plot_staircase(SIX, TWO, ax),
    "alibi.plot_patterns": lambda ax: alibi.plot_patterns([MASKED], [ax])[0],
    "alibi.plot_flatness": lambda ax: alibi.plot_flatness(
        LENGTHS, 18 + 1 / SIX, LENGTHS, 18 + SIX, ax, trained=512
    ),
    "extrapolation.plot_by_length": lambda ax: extrapolation.plot_by_length(
        {"rope": (LENGTHS, SIX)}, ax, ylabel="$p$", trained=512, chance=1 / 8
    ),
    "inspect.plot_inspection": inspect_example,
    "kernels.plot_traffic": lambda ax: kernels.plot_traffic({"A": 10.0, "B": 9.0}, ax),
    "kernels.plot_running_softmax": lambda ax: kernels.plot_running_softmax(SIX, SIX, SIX / 2, ax),
    "kernels.plot_tiles": lambda ax: kernels.plot_tiles(6, ax),
    "multimodal.plot_patch_distances": lambda ax: multimodal.plot_patch_distances([[1, 0, 2]], ax, "$r$"),
    "multimodal.plot_axis_spectra": lambda ax: multimodal.plot_axis_spectra(1 / SIX, [0, 1, 2] * 2, ax, "a"),
    "multimodal.plot_axis_profiles": lambda ax: multimodal.plot_axis_profiles(SIX, [SIX] * 3, ax, "a"),
    "order.plot_weights": lambda ax: order.plot_weights(SQUARE, ax, list("abcd")),
    "order.plot_changes": lambda ax: order.plot_changes(SQUARE[:2], ax, ["1", "2"]),
    "order.plot_three_places": order.plot_three_places,
    "practice.plot_stored_positions": lambda ax: practice.plot_stored_positions(SIX, {"a": SIX}, ax),
    "practice.plot_cast_errors": lambda ax: practice.plot_cast_errors(SIX, TWO, ax),
    "practice.plot_mask": lambda ax: practice.plot_mask(
        np.tri(2, 3, dtype=bool), np.arange(3), ax, right=np.tri(2, 3, 1, dtype=bool)
    ),
    "relative.plot_scores_along_text": lambda ax: relative.plot_scores_along_text(SIX, TWO, ax),
    "relative.plot_distance_grid": lambda ax: relative.plot_distance_grid(
        np.array([[1, 0, -1], [2, 1, np.nan]]), ax, "$s$"
    ),
    "relative.plot_reach": lambda ax: relative.plot_reach({"T5": (LENGTHS, 20 * SIX)}, ax, 512),
    "relative.plot_signed_weights": lambda ax: relative.plot_signed_weights(SQUARE - 0.3, ax, "$a$"),
    "relative.plot_row_sums": lambda ax: relative.plot_row_sums(SIX / 6, ax),
    "rope.plot_wavelengths": lambda ax: rope.plot_wavelengths(TWO, ax, 4),
    "rope.plot_pairings": lambda ax: rope.plot_pairings(pairing_permutation(8), ax),
    "rope.plot_rotation_pattern": lambda ax: rope.plot_rotation_pattern([(0, 2), (1, 3)], ax),
    "rope.plot_by_distance": lambda ax: rope.plot_by_distance(SIX, TWO, ax, ylabel="$s$"),
    "scaling.plot_dials": lambda ax: scaling.plot_dials([40, 2, 0.5, 0.1], ax),
    "scaling.plot_profiles": lambda ax: scaling.plot_profiles(SIX, TWO, ax, 3),
    "scaling.plot_slowdowns": lambda ax: scaling.plot_slowdowns(TWO, ax, 8, turns=64 / SIX**3),
    "scaling.plot_entropies": lambda ax: scaling.plot_entropies(SIX, TWO, ax, 3),
}
# What an interactive figure needs besides the language.
ARGUMENTS = {
    "program_map": ("ragged",),
    "attention_shuffle": (["one", "</script>"], np.eye(2), np.ones((2, 3))),
    "fault_fingerprints": ([0, 64], [0, 1, 16], {"A": np.eye(2, 3), "B": np.full((2, 3), 12.34)}),
}


def functions_of(package, wanted):
    """Name module.function and function of all that the modules of a package define and `wanted` accepts."""
    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        members = vars(importlib.import_module(f"{package.__name__}.{module.name}")).items()
        for name, function in members:
            if inspect.isfunction(function) and function.__module__.endswith(f".{module.name}"):
                if wanted(name, function):
                    found[f"{module.name}.{name}"] = function
    return found


def takes_a_language(name, function):
    return not name.startswith("_") and "lang" in inspect.signature(function).parameters


FIGURES = functions_of(companion.figures, takes_a_language)


def data_of(html, name):
    """Return what stands in the place of __DATA__, read as strict JSON (no NaN, no Infinity)."""
    template = (files("companion.figures") / f"{name}.html").read_text("utf8")
    before, after = template.split("__DATA__")
    assert html.startswith(before) and html.endswith(after)
    return json.loads(html[len(before) : len(html) - len(after)], parse_constant=pytest.fail)


def test_every_plot_has_an_example_here():
    plots = functions_of(companion.plots, lambda name, function: name.startswith("plot_"))
    assert set(PLOTS) == set(plots), "add a call of the new plot to PLOTS, or take the old one out"


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_draws_on_the_given_axis_without_warnings_and_returns_it(name):
    ax = Figure(figsize=(6, 3.2)).subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returned = PLOTS[name](ax)
        ax.figure.savefig(io.BytesIO())
    assert returned is ax
    assert ax.figure.axes == [ax]
    assert ax.lines or ax.patches or ax.images or ax.texts


def test_every_interactive_figure_is_a_function_and_a_template_of_one_name():
    templates = {path.name for path in files("companion.figures").iterdir() if path.name.endswith(".html")}
    assert {f"{name.partition('.')[2]}.html" for name in FIGURES} == templates


@pytest.mark.parametrize("figure", FIGURES)
def test_the_data_of_a_figure_parse_and_its_words_are_the_same_in_kind_in_both_languages(figure):
    name = figure.partition(".")[2]
    arguments = ARGUMENTS.get(name, ())
    zh, en = (data_of(FIGURES[figure](lang, *arguments).data, name) for lang in ("zh", "en"))
    words_zh, words_en = zh.pop("words"), en.pop("words")
    assert zh == en
    assert words_zh.keys() == words_en.keys()
    for key, text in words_zh.items():
        assert sorted(blanks(text)) == sorted(blanks(words_en[key])), key
    assert any("\u3400" <= letter <= "\u9fff" for letter in str(words_zh))
    assert not any("\u3400" <= letter <= "\u9fff" for letter in str(words_en))


NUMBERS = {
    "rope.rope_clock": ["query_angle", "key_angle", "speed", "steps"],
    "absolute.seat_dials": ["bits", "position"],
    "alibi.alibi_horizons": ["num_heads", "head", "distance", "patience"],
    "extrapolation.needle_dilution": ["edge", "length", "train_len", "num_heads"],
    "multimodal.position_tracks": ["rows", "columns", "frames", "interval", "text"],
    "relative.bucket_staircase": ["num_buckets", "reach", "query", "key"],
}


@pytest.mark.parametrize("value", ["a", None, True, 1j, [1], np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("figure", "option"), [(f, option) for f, names in NUMBERS.items() for option in names]
)
def test_a_figure_refuses_what_is_no_finite_number(figure, option, value):
    with pytest.raises(
        (TypeError, ValueError), match=rf"{option} must be an? .*, got {re.escape(repr(value))}; "
    ):
        FIGURES[figure]("en", **{option: value})


@pytest.mark.parametrize(
    ("figure", "options", "error", "says"),
    [
        ("rope.rope_clock", {"steps": 0}, ValueError, "steps must be a finite number of at least 1, got 0; "),
        (
            "rope.rope_clock",
            {"steps": -1},
            ValueError,
            "steps must be a finite number of at least 1, got -1; ",
        ),
        ("rope.rope_clock", {"steps": 2.5}, TypeError, "steps must be an integer, got 2.5; "),
        (
            "rope.rope_clock",
            {"speed": 1000},
            ValueError,
            "speed must be a finite number from 0 to 90, got 1000; ",
        ),
        ("rope.rope_clock", {"speed": 33}, ValueError, "speed must be a multiple of 5"),
        ("absolute.seat_dials", {"d_model": 5}, ValueError, "d_model must be even and at least 2, got 5; "),
        ("absolute.seat_dials", {"bits": 2.5}, TypeError, "bits must be an integer, got 2.5; "),
        ("absolute.seat_dials", {"position": 1.5}, TypeError, "position must be an integer, got 1.5; "),
        ("absolute.seat_dials", {"position": 256}, ValueError, "position must lie in 0 … 255"),
    ],
)
def test_a_figure_names_the_option_that_it_refuses(figure, options, error, says):
    with pytest.raises(error, match=re.escape(says)):
        FIGURES[figure]("en", **options)


@pytest.mark.parametrize(
    ("figure", "options"),
    [
        ("rope.rope_clock", {"query_angle": np.float32(100), "speed": np.int64(30), "steps": np.int32(24)}),
        ("absolute.seat_dials", {"bits": np.int64(8), "position": np.int64(7), "d_model": np.int64(12)}),
        ("alibi.alibi_horizons", {"head": np.int64(4), "patience": np.float32(10)}),
        ("extrapolation.needle_dilution", {"edge": np.float32(8), "length": np.int64(1024)}),
        ("relative.bucket_staircase", {"query": np.int64(60), "num_buckets": np.int64(32)}),
    ],
)
def test_numbers_of_numpy_draw_the_same_figure(figure, options):
    name = figure.partition(".")[2]
    given, usual = (data_of(FIGURES[figure]("en", **more).data, name) for more in (options, {}))
    assert given == usual


@pytest.mark.parametrize(
    ("tokens", "scores", "values", "error", "says"),
    [
        (["a", "b"], [[0, np.nan], [0, 0]], np.ones((2, 1)), ValueError, "scores must be finite, got nan; "),
        (["a", "b"], np.eye(2), [[np.inf], [0]], ValueError, "values must be finite, got inf; "),
        (
            ["a", "b"],
            np.eye(2) > 0,
            np.ones((2, 1)),
            TypeError,
            "scores must be an array of real numbers, got dtype",
        ),
        (
            ["a", "b"],
            np.eye(2),
            [["x"], ["y"]],
            TypeError,
            "values must be an array of real numbers, got dtype",
        ),
        (["a", "b"], np.eye(2), [[1], [1, 2]], TypeError, "values must be an array of real numbers, got "),
        (["a", "b"], np.eye(2), np.ones((2, 0)), ValueError, "value_dim ≥ 1"),
        (
            [],
            np.empty((0, 0)),
            np.empty((0, 1)),
            TypeError,
            "tokens must be a list of at least one string, got []; ",
        ),
        (
            "ab",
            np.eye(2),
            np.ones((2, 1)),
            TypeError,
            "tokens must be a list of at least one string, got 'ab'; ",
        ),
        (
            [1, 2],
            np.eye(2),
            np.ones((2, 1)),
            TypeError,
            "tokens must be a list of at least one string, got [1, 2]; ",
        ),
    ],
)
def test_the_shuffle_refuses_what_it_cannot_show(tokens, scores, values, error, says):
    with pytest.raises(error, match=re.escape(says)):
        FIGURES["order.attention_shuffle"]("en", tokens, scores, values)


@pytest.mark.parametrize(
    ("errors", "error", "says"),
    [
        ({}, TypeError, "errors must be a dict from name to table, got dict; "),
        ([np.eye(2, 3)], TypeError, "errors must be a dict from name to table, got list; "),
        ({"A": np.eye(3, 2)}, ValueError, "a row for each of 2 places and a column for each of 3 distances"),
        ({"A": -np.ones((2, 3))}, ValueError, "errors['A'] must be percentages ≥ 0, got -1.0; "),
        ({"A": np.full((2, 3), np.nan)}, ValueError, "errors['A'] must be finite, got nan; "),
    ],
)
def test_the_fingerprints_refuse_what_they_cannot_show(errors, error, says):
    with pytest.raises(error, match=re.escape(says)):
        FIGURES["practice.fault_fingerprints"]("en", [0, 64], [0, 1, 16], errors)


@pytest.mark.parametrize("example", ["flash", "", None, ["copy"]])
def test_the_map_of_programs_names_the_examples_there_are(example):
    got = re.escape(repr(example))
    with pytest.raises(ValueError, match=rf"example must be one of copy, .*, got {got}; "):
        FIGURES["kernels.program_map"]("en", example)


MANY = {f"${i}$": SIX for i in range(6)}


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: absolute.plot_products(SIX, MANY, ax),
        lambda ax: absolute.plot_perplexity(SIX, MANY, ax, 512),
        lambda ax: alibi.plot_slopes(MANY, ax),
        lambda ax: alibi.plot_staircase(SIX, MANY, ax),
        lambda ax: extrapolation.plot_by_length({f"${i}$": (SIX, SIX) for i in range(7)}, ax, ylabel="$p$"),
        lambda ax: relative.plot_scores_along_text(SIX, MANY, ax),
        lambda ax: relative.plot_reach({label: (SIX, SIX) for label in MANY}, ax, 512),
        lambda ax: rope.plot_wavelengths(MANY, ax, 4),
        lambda ax: rope.plot_by_distance(SIX, MANY, ax, ylabel="$s$"),
        lambda ax: scaling.plot_profiles(SIX, MANY, ax, 3),
        lambda ax: scaling.plot_slowdowns(MANY, ax, 8),
        lambda ax: practice.plot_stored_positions(SIX, MANY, ax),
        lambda ax: practice.plot_cast_errors(SIX, MANY, ax),
        lambda ax: scaling.plot_entropies(SIX, MANY, ax, 3),
        lambda ax: order.plot_changes(np.ones((4, 3)), ax, list("abcd")),
        lambda ax: order.plot_changes([], ax, []),
        lambda ax: order.plot_changes([[1, 2], [1]], ax, ["a", "b"]),
        lambda ax: kernels.plot_running_softmax(SIX, SIX[:2], SIX, ax),
        lambda ax: kernels.plot_tiles(0, ax),
        lambda ax: multimodal.plot_axis_profiles(SIX, [SIX] * 2, ax, "a"),
        lambda ax: order.plot_weights(SQUARE, ax, list("abc")),
        lambda ax: rope.plot_pairings([0, 1, 2], ax),
        lambda ax: rope.plot_pairings([0, 0, 1, 2], ax),
        lambda ax: rope.plot_pairings([], ax),
    ],
)
def test_a_plot_leaves_nothing_out_without_a_word(draw):
    with pytest.raises(ValueError, match=r"must (be|hold) .*, got .*; "):
        draw(Figure().subplots())


def test_curves_without_labels_are_refused():
    with pytest.raises(TypeError, match="tables must be a dict from label to values, got list; "):
        rope.plot_wavelengths([SIX], Figure().subplots(), 4)


def blanks(words):
    """The {names} that the script fills in, and for a list of words their number too."""
    return set(re.findall(r"\{\w+\}", str(words))) | ({str(len(words))} if isinstance(words, list) else set())


def test_a_word_of_the_reader_cannot_end_the_script():
    function = FIGURES["order.attention_shuffle"]
    html = function("en", *ARGUMENTS["attention_shuffle"]).data
    assert html.count("</script>") == 1
    assert data_of(html, "attention_shuffle")["tokens"] == ["one", "</script>"]


@pytest.mark.parametrize("figure", FIGURES)
def test_a_language_that_is_not_there_is_refused_with_the_rule(figure):
    arguments = ARGUMENTS.get(figure.partition(".")[2], ())
    with pytest.raises(ValueError, match=r"lang must be one of \['en', 'zh'\], got 'de'"):
        FIGURES[figure]("de", *arguments)


@pytest.mark.parametrize("pairing", ["adjacent", "half"])
@pytest.mark.parametrize("angles", [[0.7], [0.3, -1.2, 2.5], [100.0, 0.0, 1e-3, -7.0]])
def test_the_symbolic_rotation_of_a_head_equals_the_numerical_one(pairing, angles):
    symbolic = np.array(block_rotation(angles, pairing=pairing), dtype=float)
    np.testing.assert_allclose(symbolic, rotation_matrix(angles, pairing=pairing), rtol=0, atol=1e-15)


@pytest.mark.parametrize("pairing", ["neox", None, 0])
def test_the_symbolic_rotation_refuses_another_pairing(pairing):
    with pytest.raises(ValueError, match=rf"pairing must be 'half' or 'adjacent', got {pairing!r}"):
        block_rotation([0.1], pairing=pairing)
