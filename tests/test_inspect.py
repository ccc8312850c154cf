"""`python -m companion inspect`, as a new user would try it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from unicodedata import east_asian_width
from xml.etree import ElementTree

import numpy as np
import pytest

from companion.__main__ import main
from companion.inspect_report import inspect_rope, report
from companion.inspect_traps import traps

CONFIGS = Path(__file__).parent / "configs"
LLAMA = {"head_dim": 128, "max_position_embeddings": 4096, "rope_theta": 10000.0}
ORIGINAL = {"original_max_position_embeddings": 4096}
every_config = pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
both_languages = pytest.mark.parametrize("lang", ["zh", "en"])


def with_rope(**keys):
    return LLAMA | {"rope_scaling": keys}


def has_chinese(text):
    return re.search(r"[\u4e00-\u9fff]", text) is not None


def width(text):
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def table(text):
    """The lines of the table of a report, cut into cells."""
    lines = text.split("\n\n")[1].splitlines()
    return [re.split(r" {2,}", line) for line in lines]


# The report


@every_config
@both_languages
def test_every_published_configuration_has_a_report_in_both_languages(path, lang, capsys):
    assert main(["inspect", str(path), "--lang", lang, "--length", "200000"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert has_chinese(printed.out) == (lang == "zh")
    assert "nan" not in printed.out and "None" not in printed.out


@every_config
def test_both_languages_show_the_same_numbers(path):
    layer_type = {"gemma_4_text": "full_attention"}.get(path.stem)
    inspection = inspect_rope(path, seq_len=200000, layer_type=layer_type)
    zh, en = (report(inspection, lang=lang) for lang in ("zh", "en"))
    numbers = [[re.findall(r"[\d.,]*\d|∞", " ".join(line)) for line in table(text)[1:]] for text in (zh, en)]
    assert numbers[0] == numbers[1]
    assert zh.count("•") == en.count("•")


@both_languages
def test_columns_of_the_table_line_up(lang):
    lines = report(inspect_rope(CONFIGS / "gpt_oss_20b.json"), lang=lang).split("\n\n")[1].splitlines()
    last = [width(line[: line.rindex("  ") + 2]) for line in lines]
    assert len(set(last)) == 1


def test_the_table_of_llama_3_1_shows_the_three_bands():
    header, kept, blended, interpolated = table(report(inspect_rope(CONFIGS / "llama_3_1_8b.json")))
    assert header[:3] == ["pairs", "number", "treatment"] and header[-1] == "before: turns in 8,192"
    assert kept[:3] == ["0 – 28", "29", "kept"] and kept[3] == kept[4]
    assert blended[:3] == ["29 – 34", "6", "blended ÷1.21 – 5.26"]
    assert interpolated[:3] == ["35 – 63", "29", "interpolated ÷8, under 1 turn"]
    assert interpolated[3:5] == ["8,219 – 2,559,196", "65,750 – 20,473,564"]


def test_a_line_ends_where_pairs_no_longer_complete_a_turn_in_training():
    complete, short = table(report(inspect_rope(CONFIGS / "llama_2_7b.json")))[1:]
    assert complete[:3] == ["0 – 45", "46", "kept"]
    assert short[:3] == ["46 – 63", "18", "kept, under 1 turn"]


def test_with_every_pair_there_is_a_line_for_each_and_its_axis():
    lines = table(report(inspect_rope(CONFIGS / "qwen3_vl_8b.json"), every_pair=True))
    assert len(lines) == 1 + 64
    assert "".join(line[-1] for line in lines[1:]) == "THW" * 20 + "TTTT"


def test_the_asked_length_has_a_column_with_the_speeds_after_scaling():
    lines = table(report(inspect_rope(with_rope(type="linear", factor=4.0, **ORIGINAL), seq_len=8192)))
    assert lines[0][-1] == "after: turns in 8,192"
    assert lines[1][-1].split(" – ")[0] == f"{8192 / 4 / (2 * np.pi):.3g}"


def test_without_any_length_there_is_no_column_of_turns():
    lines = table(report(inspect_rope({"head_dim": 8, "rope_theta": 100.0})))
    assert lines[0] == ["pairs", "number", "treatment", "wavelength, tokens", "after scaling"]
    assert lines[1][:3] == ["0 – 3", "4", "kept"]


def test_a_single_pair_is_no_range():
    lines = table(report(inspect_rope({"head_dim": 2, "max_position_embeddings": 100})))
    assert lines[1] == ["0", "1", "kept", "6.28", "6.28", "15.9"]


def test_pairs_that_do_not_turn_have_an_infinite_wavelength():
    path = CONFIGS / "gemma_4_text.json"
    lines = table(report(inspect_rope(path, layer_type="full_attention")))
    assert [line[2] for line in lines[1:]] == ["kept", "not turned", "not turned, under 1 turn"]
    assert lines[2][4] == "∞"


def test_layers_that_differ_are_reported_one_after_the_other(capsys):
    path = str(CONFIGS / "gemma_4_text.json")
    assert main(["inspect", path]) == 0
    both = capsys.readouterr().out
    assert both.index("full_attention") < both.index("sliding_attention")
    assert main(["inspect", path, "--layer-type", "sliding_attention"]) == 0
    assert "full_attention" not in capsys.readouterr().out


def test_an_unknown_language_is_refused():
    with pytest.raises(ValueError, match="lang must be 'zh' or 'en', got 'fr'; "):
        report(inspect_rope(LLAMA), lang="fr")


# What is easily done wrong

TRAPS = [
    ("rope_theta is not in the file", {"head_dim": 8}, {}),
    ("original_max_position_embeddings is not in the file", with_rope(type="yarn", factor=4.0), {}),
    ("original_max_position_embeddings is not in the file", with_rope(type="linear", factor=4.0), {}),
    ("8,192 is beyond the trained length 4,096 and nothing is scaled: 18 pairs", LLAMA, {"seq_len": 8192}),
    (
        "20,000 is beyond 16,384, as far as",
        with_rope(type="yarn", factor=4.0, **ORIGINAL),
        {"seq_len": 20000},
    ),
    ("The scaling is static", with_rope(type="yarn", factor=4.0, **ORIGINAL), {}),
    (
        "factor × trained length = 16,384 is more than max_position_embeddings = 4,096",
        with_rope(type="yarn", factor=4.0, **ORIGINAL),
        {},
    ),
    (
        "factor × trained length = 65,536 is less than max_position_embeddings = 131,072",
        CONFIGS / "llama_3_1_8b.json",
        {},
    ),
    ("here 8,192 tokens; rotated keys", with_rope(type="dynamic", factor=2.0), {"seq_len": 8192}),
    ("here 4,096 tokens; rotated keys", with_rope(type="dynamic", factor=2.0), {"seq_len": 100}),
    ("(here: short_factor)", CONFIGS / "phi_3_vision_128k.json", {"seq_len": 4096}),
    ("(here: long_factor)", CONFIGS / "phi_3_vision_128k.json", {"seq_len": 4097}),
    ("is beyond 131,072, as far as", CONFIGS / "phi_3_vision_128k.json", {"seq_len": 131073}),
    (
        "8.09 and 17.40, not rounded; software that rounds gets pair 17 wrong by 76%",
        CONFIGS / "gpt_oss_20b.json",
        {},
    ),
    (
        "replaces the formula's 1.138629; it is not multiplied",
        with_rope(type="yarn", factor=4.0, attention_factor=1.0, **ORIGINAL),
        {},
    ),
    ("sits in the softmax", CONFIGS / "deepseek_v3.json", {}),
    ("only 64 dimensions of a head (qk_rope_head_dim)", CONFIGS / "deepseek_v3.json", {}),
    ("pairs neighbouring dimensions", CONFIGS / "deepseek_v3.json", {}),
    (
        "first 24 of 96 dimensions turn, and the exponents are over 24, not 96",
        CONFIGS / "gpt_neox_20b.json",
        {},
    ),
    ("Proportional RoPE", CONFIGS / "gemma_4_text.json", {"layer_type": "full_attention"}),
    ("16, 24 and 24 pairs for T, H and W, layout contiguous", CONFIGS / "qwen2_vl_7b.json", {}),
    ("24, 20 and 20 pairs for T, H and W, layout interleaved", CONFIGS / "qwen3_vl_8b.json", {}),
]


@pytest.mark.parametrize(("says", "config", "options"), TRAPS, ids=[says for says, _, _ in TRAPS])
def test_the_report_warns_of_what_is_easily_done_wrong(says, config, options):
    found = traps(inspect_rope(config, **options))
    assert sum(says in en for _, en in found) == 1
    assert all(has_chinese(zh) and not has_chinese(en) for zh, en in found)


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (LLAMA, {}),
        (LLAMA, {"seq_len": 4096}),
        (CONFIGS / "mistral_7b.json", {"seq_len": 32768}),
        (CONFIGS / "llama_3_2_1b.json", {"seq_len": 131072}),
    ],
)
def test_where_nothing_can_go_wrong_there_is_no_warning(config, options):
    inspection = inspect_rope(config, **options)
    assert traps(inspection) == []
    assert "Take care" not in report(inspection)


# The command line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory"),
        ('{"hidden_size": 40', "config must be a JSON file"),
        ("\x00\x01", "config must be a JSON file"),
        ("[1, 2]", "config must be a dict or the path of a JSON file with one, got list"),
        ('{"a": 1}', "config must have head_dim, or hidden_size and num_attention_heads"),
        ('{"head_dim": 8, "rope_scaling": {"type": "linear"}}', "rope_type 'linear' must have factor"),
        ('{"head_dim": 8, "rope_theta": "x"}', "rope_theta must be a real number"),
    ],
)
def test_a_bad_file_gives_one_line_and_exit_code_2(content, says, tmp_path, capsys):
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    assert main(["inspect", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ") and says in printed.err and printed.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--length", "0"], ["--layer-type", "x"]])
def test_a_bad_option_gives_one_line_and_exit_code_2(arguments, capsys):
    assert main(["inspect", str(CONFIGS / "gemma_4_text.json"), *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["inspect"], ["inspect", "c.json", "--lang", "fr"], ["unknown"]])
def test_a_bad_command_line_shows_the_usage_and_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m companion" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--help"], ["inspect"]),
        (["inspect", "--help"], ["--length", "--plot", "--lang", "--all", "example"]),
    ],
)
def test_the_help_names_what_there_is(arguments, names, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert all(name in capsys.readouterr().out for name in [names[0]])


def run(*arguments, **environment):
    command = [sys.executable, "-m", "companion", *arguments]
    root = Path(__file__).parents[1]
    return subprocess.run(
        command, cwd=root, env=environment or None, capture_output=True, text=True, encoding="utf8"
    )


def test_the_module_runs_as_a_command():
    done = run("inspect", str(CONFIGS / "llama_3_1_8b.json"))
    assert done.returncode == 0 and done.stdout.startswith("method") and done.stderr == ""
    failed = run("inspect", "nowhere.json")
    assert failed.returncode == 2 and "Traceback" not in failed.stderr


def test_a_terminal_without_unicode_gets_question_marks_and_no_traceback():
    done = run("inspect", str(CONFIGS / "llama_3_1_8b.json"), "--lang", "zh", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "?" in done.stdout and done.stderr == ""


# The picture


@every_config
def test_every_published_configuration_has_a_picture(path, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "wavelengths.svg"
    assert main(["inspect", str(path), "--length", "200000", "--plot", str(picture)]) == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_the_ending_chooses_the_kind_of_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "wavelengths.png"
    assert main(["inspect", str(CONFIGS / "mistral_7b.json"), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_picture_shows_the_wavelengths_and_the_blended_pairs():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from companion.plots.inspect import plot_inspection

    inspection = inspect_rope(CONFIGS / "llama_3_1_8b.json", seq_len=100000)
    ax = plot_inspection(inspection, Figure().subplots())
    before, after, trained, asked = ax.lines
    np.testing.assert_allclose(before.get_ydata(), 2 * np.pi / inspection.before)
    np.testing.assert_allclose(after.get_ydata(), 2 * np.pi / inspection.result.inv_freq)
    assert trained.get_ydata()[0] == 8192 and asked.get_ydata()[0] == 100000
    (shade,) = ax.patches
    assert shade.get_x() == 28.5 and shade.get_width() == 6


def test_the_picture_has_no_words_but_the_name_of_the_method():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from companion.plots.inspect import plot_inspection

    ax = plot_inspection(inspect_rope(CONFIGS / "qwen2_vl_7b.json"), Figure().subplots())
    labels = [ax.get_xlabel(), ax.get_ylabel(), *(text.get_text() for text in ax.get_legend().get_texts())]
    assert all(label.startswith("$") and label.endswith("$") for label in labels)
    assert ax.get_title() == "default  $b = 1000000$"


def test_without_matplotlib_the_report_comes_and_one_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "companion.plots.inspect", None)  # importing it raises ImportError
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert main(["inspect", str(path), "--plot", str(tmp_path / "x.svg")]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("method")
    assert (
        printed.err.startswith("error: --plot needs matplotlib") and "pip install matplotlib" in printed.err
    )


def test_a_picture_of_an_unknown_kind_or_place_gives_one_line(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = str(CONFIGS / "mistral_7b.json")
    for picture in (tmp_path / "x.xyz", tmp_path / "no" / "x.svg"):
        assert main(["inspect", path, "--plot", str(picture)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
