"""What the configurations of real models say, and what no configuration may say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from companion.frequencies import inverse_frequencies
from companion.frequency_scaling import dynamic_ntk, ntk_by_parts, position_interpolation, proportional
from companion.hf_config import RopeConfig, mrope_layout, read_rope_config
from companion.hf_config_keys import layer_types, rope_settings

CONFIGS = Path(__file__).parent / "configs"
EPS = np.finfo(np.float64).eps
TWELVE_DIGITS = 0.5e-11
LLAMA = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
}


def with_rope(**keys):
    return LLAMA | {"rope_scaling": keys}


# Real models, against the golden values of their parameters


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("llama_3_1_8b", "llama3.1_8b"),
        ("llama_3_2_1b", "llama3.2_1b"),
        ("qwen2_5_7b_yarn", "yarn_qwen2.5_7b_factor4"),
        ("deepseek_v3", "yarn_deepseek_v3"),
        ("gpt_oss_20b", "yarn_gpt_oss_20b_truncate_false"),
    ],
)
def test_a_published_configuration_gives_the_golden_speeds_and_factor(goldens, name, golden):
    case = next(case for case in goldens["rope_scaling"] if case["id"] == golden)
    config = read_rope_config(CONFIGS / f"{name}.json")
    np.testing.assert_allclose(config.inv_freq, case["ref_inv_freq"], rtol=TWELVE_DIGITS)
    np.testing.assert_allclose(config.attention_factor, case["peer_attention_factor"], rtol=4 * EPS)
    assert config.rotary_dim == case["inputs"]["head_dim"]


@pytest.mark.parametrize(("seq_len", "golden"), [(None, "short"), (4096, "short"), (4097, "long")])
def test_phi_3_vision_switches_lists_one_past_the_trained_length(goldens, seq_len, golden):
    cases = {case["id"]: case for case in goldens["rope_scaling"]}
    case = cases[f"longrope_phi3v_128k_{golden}"]
    config = read_rope_config(CONFIGS / "phi_3_vision_128k.json", seq_len=seq_len)
    np.testing.assert_allclose(config.inv_freq, case["ref_inv_freq"], rtol=TWELVE_DIGITS)
    np.testing.assert_allclose(config.attention_factor, case["ref_attention_factor"], rtol=4 * EPS)


@pytest.mark.parametrize(
    ("name", "rotary_dim", "base", "pairing", "sections"),
    [
        ("llama_2_7b", 128, 10000.0, "half", None),
        ("mistral_7b", 128, 10000.0, "half", None),
        ("gpt_neox_20b", 24, 10000.0, "half", None),
        ("qwen2_vl_7b", 128, 1000000.0, "half", (16, 24, 24)),
        ("qwen3_vl_8b", 128, 5000000.0, "half", (24, 20, 20)),
    ],
)
def test_a_published_configuration_without_scaling(name, rotary_dim, base, pairing, sections):
    config = read_rope_config(CONFIGS / f"{name}.json")
    np.testing.assert_array_equal(config.inv_freq, inverse_frequencies(rotary_dim, base))
    assert config[1:] == (1.0, rotary_dim, pairing, sections, 1.0)


def test_qwen_vl_2_is_contiguous_and_3_interleaved():
    assert mrope_layout(CONFIGS / "qwen2_vl_7b.json") == "contiguous"
    assert mrope_layout(CONFIGS / "qwen3_vl_8b.json") == "interleaved"
    assert mrope_layout(CONFIGS / "mistral_7b.json") is None


def test_deepseek_v3_pairs_neighbours_and_moves_the_temperature_into_the_softmax():
    config = read_rope_config(CONFIGS / "deepseek_v3.json")
    assert config.pairing == "adjacent"
    np.testing.assert_allclose(config.softmax_scale_factor, (0.1 * np.log(40) + 1) ** 2, rtol=4 * EPS)


def test_without_latent_attention_the_softmax_keeps_its_scale():
    config = read_rope_config(with_rope(type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=1.0))
    assert config.attention_factor == config.softmax_scale_factor == 1.0


def test_gemma_4_has_positions_of_its_own_for_each_type_of_layer():
    path = CONFIGS / "gemma_4_text.json"
    assert layer_types(path) == ["full_attention", "sliding_attention"]
    wide = read_rope_config(path, layer_type="full_attention")
    np.testing.assert_array_equal(wide.inv_freq, proportional(512, 0.25, 1e6))
    near = read_rope_config(path, layer_type="sliding_attention")
    np.testing.assert_array_equal(near.inv_freq, inverse_frequencies(256, 1e4))


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_dict_a_path_and_a_string_are_read_alike(path):
    layer_type = (layer_types(path) or [None])[0]
    results = [
        read_rope_config(config, layer_type=layer_type)
        for config in (path, str(path), json.loads(path.read_text("utf8")))
    ]
    assert all(isinstance(result, RopeConfig) for result in results)
    for result in results[1:]:
        np.testing.assert_array_equal(result.inv_freq, results[0].inv_freq)
        assert result[1:] == results[0][1:]


def test_every_golden_case_of_scaling_can_be_read_from_a_configuration(goldens):
    for case in goldens["rope_scaling"]:
        inputs = case["inputs"]
        config = {
            "head_dim": inputs["head_dim"],
            "max_position_embeddings": inputs["max_position_embeddings"],
            "rope_parameters": inputs["rope_parameters"],
        }
        result = read_rope_config(config, seq_len=inputs["seq_len"])
        np.testing.assert_allclose(
            result.inv_freq, case["ref_inv_freq"], rtol=TWELVE_DIGITS, err_msg=case["id"]
        )
        np.testing.assert_allclose(
            result.attention_factor, case["peer_attention_factor"], rtol=4 * EPS, err_msg=case["id"]
        )


# Where a key may stand, and under which name


@pytest.mark.parametrize("name", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("kind", ["type", "rope_type"])
def test_old_and_new_names_of_the_dict_and_the_method_mean_the_same(name, kind):
    config = read_rope_config(LLAMA | {name: {kind: "linear", "factor": 4.0}})
    np.testing.assert_array_equal(config.inv_freq, position_interpolation(inverse_frequencies(128), 4))


def test_both_names_at_once_are_fine_while_they_agree():
    config = LLAMA | {
        "rope_scaling": {"type": "linear", "factor": 4.0},
        "rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 10000},
    }
    np.testing.assert_array_equal(
        read_rope_config(config).inv_freq, position_interpolation(inverse_frequencies(128), 4)
    )


def test_null_is_as_if_the_key_were_missing():
    config = with_rope(rope_type="yarn", factor=4.0, attention_factor=None, beta_fast=None, mscale=None)
    plain = with_rope(rope_type="yarn", factor=4.0)
    np.testing.assert_array_equal(read_rope_config(config).inv_freq, read_rope_config(plain).inv_freq)
    assert read_rope_config(config)[1:] == read_rope_config(plain)[1:]
    assert read_rope_config(LLAMA | {"rope_scaling": None}).attention_factor == 1.0


def test_the_base_may_stand_in_the_dict_at_the_top_or_under_the_name_of_gpt_neox():
    sizes = {"hidden_size": 64, "num_attention_heads": 1}
    for config in (
        {"rope_parameters": {"rope_theta": 500.0}},
        {"rope_theta": 500.0},
        {"rotary_emb_base": 500},
    ):
        np.testing.assert_array_equal(read_rope_config(sizes | config).inv_freq, inverse_frequencies(64, 500))
    np.testing.assert_array_equal(read_rope_config(sizes).inv_freq, inverse_frequencies(64, 10000))


@pytest.mark.parametrize("level", ["top", "dict", "both"])
def test_the_original_length_may_stand_at_either_level(level):
    key = {"original_max_position_embeddings": 2048}
    config = with_rope(rope_type="yarn", **(key if level != "top" else {})) | (key if level != "dict" else {})
    assert rope_settings(config)["train_len"] == 2048
    assert rope_settings(config)["factor"] == 2.0  # 4096 / 2048, for none is given
    np.testing.assert_array_equal(
        read_rope_config(config).inv_freq,
        read_rope_config(with_rope(type="yarn", factor=2.0, **key)).inv_freq,
    )


@pytest.mark.parametrize("keys", [{"partial_rotary_factor": 0.25}, {"rotary_pct": 0.25}, {"rotary_dim": 32}])
def test_partial_rotary_has_three_names(keys):
    config = read_rope_config(LLAMA | keys)
    assert config.rotary_dim == 32
    np.testing.assert_array_equal(config.inv_freq, inverse_frequencies(32))


def test_partial_rotary_may_stand_in_the_dict():
    config = read_rope_config(with_rope(rope_type="default", partial_rotary_factor=0.5))
    assert config.rotary_dim == 64


def test_the_width_of_a_head_is_the_turned_part_else_the_given_one_else_a_share_of_the_model():
    assert read_rope_config(LLAMA).rotary_dim == 128
    assert read_rope_config(LLAMA | {"head_dim": 64}).rotary_dim == 64
    assert read_rope_config(LLAMA | {"head_dim": None}).rotary_dim == 128
    assert read_rope_config(LLAMA | {"head_dim": 64, "qk_rope_head_dim": 32}).rotary_dim == 32
    assert read_rope_config({"n_embd": 4096, "n_head": 16, "rotary_dim": 64}).rotary_dim == 64


def test_the_text_of_a_multimodal_model_may_be_nested():
    nested = {"model_type": "some_vl", "text_config": LLAMA | {"head_dim": 64}, "head_dim": 80}
    assert read_rope_config(nested).rotary_dim == 64
    outside = {"text_config": LLAMA, "rope_scaling": {"type": "linear", "factor": 2.0}}
    np.testing.assert_array_equal(
        read_rope_config(outside).inv_freq, position_interpolation(inverse_frequencies(128), 2)
    )


def test_su_is_longrope_and_mrope_is_default_with_sections():
    lists = {"short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "original_max_position_embeddings": 1024}
    old, new = (read_rope_config(with_rope(type=name, **lists)) for name in ("su", "longrope"))
    np.testing.assert_array_equal(old.inv_freq, new.inv_freq)
    assert old[1:] == new[1:]
    assert read_rope_config(with_rope(type="mrope", mrope_section=[16, 24, 24])).sections == (16, 24, 24)
    both = with_rope(type="mrope", rope_type="default", mrope_section=[16, 24, 24])
    assert read_rope_config(both).sections == (16, 24, 24)


def test_longrope_takes_the_given_factor_before_the_quotient_of_the_lengths():
    lists = {"short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "original_max_position_embeddings": 1024}
    by_quotient = read_rope_config(with_rope(type="longrope", **lists)).attention_factor
    given = read_rope_config(with_rope(type="longrope", factor=32.0, **lists)).attention_factor
    np.testing.assert_allclose(by_quotient, np.sqrt(1 + np.log(4) / np.log(1024)), rtol=4 * EPS)
    np.testing.assert_allclose(given, np.sqrt(1 + np.log(32) / np.log(1024)), rtol=4 * EPS)


def test_dynamic_ntk_follows_the_length_at_hand_and_forgets_it():
    config = with_rope(type="dynamic", factor=2.0)
    inv_freq = inverse_frequencies(128)
    for seq_len in (16384, 4096, 8192, 1):
        expected = dynamic_ntk(inv_freq, seq_len, 4096, 2.0)
        np.testing.assert_array_equal(read_rope_config(config, seq_len=seq_len).inv_freq, expected)
    np.testing.assert_array_equal(read_rope_config(config).inv_freq, inv_freq)


def test_proportional_may_have_a_factor():
    config = with_rope(rope_type="proportional", partial_rotary_factor=0.25, factor=4.0)
    result = read_rope_config(config)
    assert result.rotary_dim == 128
    np.testing.assert_array_equal(result.inv_freq, proportional(128, 0.25) / 4)


def test_layers_that_differ_need_a_layer_type():
    layers = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    config = {"head_dim": 256, "rope_parameters": layers}
    wide = read_rope_config(config, layer_type="full_attention")
    np.testing.assert_array_equal(wide.inv_freq, inverse_frequencies(256, 1e6) / 8)
    near = read_rope_config(config, layer_type="sliding_attention")
    np.testing.assert_array_equal(near.inv_freq, inverse_frequencies(256, 1e4))
    with pytest.raises(
        ValueError, match="layer_type must be one of full_attention, sliding_attention, got None"
    ):
        read_rope_config(config)


def test_a_base_outside_serves_the_layers_without_one():
    layers = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_type": "default"}}
    config = {"head_dim": 64, "rope_theta": 500.0, "rope_parameters": layers}
    near = read_rope_config(config, layer_type="sliding_attention")
    np.testing.assert_array_equal(near.inv_freq, inverse_frequencies(64, 500.0))


def test_gemma_3_in_its_first_form_keeps_the_local_base_apart():
    config = {
        "head_dim": 256,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    }
    wide = read_rope_config(config, layer_type="full_attention")
    np.testing.assert_array_equal(wide.inv_freq, inverse_frequencies(256, 1e6) / 8)
    near = read_rope_config(config, layer_type="sliding_attention")
    np.testing.assert_array_equal(near.inv_freq, inverse_frequencies(256, 1e4))


@pytest.mark.parametrize(
    ("keys", "pairing"),
    [
        ({"model_type": "llama"}, "half"),
        ({"model_type": "gptj"}, "adjacent"),
        ({"model_type": "cohere2"}, "adjacent"),
        ({"model_type": "deepseek_v3", "rope_interleave": False}, "half"),
        ({"rope_interleave": True}, "adjacent"),
        ({}, "half"),
    ],
)
def test_the_pairing_is_that_of_the_weights_of_the_model_type(keys, pairing):
    assert read_rope_config(LLAMA | keys).pairing == pairing


def test_keys_elsewhere_are_nobodys_business():
    strange = {
        "factor": "x",
        "beta_fast": [],
        "use_cache": 3,
        "vision_config": {"rope_scaling": {"type": "?"}},
    }
    assert read_rope_config(LLAMA | strange).attention_factor == 1.0


def test_what_a_llama_3_configuration_says_is_ntk_by_parts():
    config = read_rope_config(CONFIGS / "llama_3_1_8b.json")
    expected = ntk_by_parts(inverse_frequencies(128, 500000.0), 8, 8192, alpha=1, beta=4)
    np.testing.assert_array_equal(config.inv_freq, expected)


# What is refused: the message names the key, the rule and the way out

LISTS = {"short_factor": [1.0] * 64, "long_factor": [2.0] * 64}
BAD = [
    ("must have known keys only, got factr", with_rope(type="linear", factor=2.0, factr=2.0)),
    ("must have known keys only, got factor", with_rope(factor=2.0)),
    ("must have known keys only, got beta_fast", with_rope(type="linear", factor=2.0, beta_fast=32)),
    ("must have known keys only, got finetuned", with_rope(type="yarn", factor=2.0, finetuned=True)),
    ("rope_type 'linear' must have factor, got only type", with_rope(type="linear")),
    ("rope_type 'dynamic' must have factor, got only type", with_rope(type="dynamic")),
    (
        "rope_type 'llama3' must have low_freq_factor, high_freq_factor",
        with_rope(rope_type="llama3", factor=8.0),
    ),
    ("rope_type 'longrope' must have long_factor", with_rope(type="su", short_factor=[1.0] * 64)),
    ("must have mrope_section", with_rope(type="mrope")),
    ("must have mrope_section", with_rope(rope_type="mrope")),
    ("must have mrope_section", with_rope(mrope_interleaved=True)),
    ("type must be one of default, linear", with_rope(type="ntk")),
    ("rope_type must be one of default, linear", with_rope(rope_type=["yarn"])),
    ("rope_type and type must agree, got 'yarn' and 'linear'", with_rope(type="linear", rope_type="yarn")),
    ("rope_scaling.rope_theta and rope_theta must agree", with_rope(rope_theta=5000.0)),
    ("rope_theta and rotary_emb_base must agree", LLAMA | {"rotary_emb_base": 5000}),
    (
        "text_config.rope_theta and rope_theta must agree",
        LLAMA | {"text_config": LLAMA | {"rope_theta": 5.0}},
    ),
    (
        "text_config.rope_scaling.factor and rope_scaling.factor must agree, got 4.0 and 2.0",
        with_rope(type="linear", factor=2.0) | {"text_config": with_rope(type="linear", factor=4.0)},
    ),
    (
        "rope_parameters.factor and rope_scaling.factor must agree",
        with_rope(type="linear", factor=2.0) | {"rope_parameters": {"rope_type": "linear", "factor": 4.0}},
    ),
    (
        "rope_scaling.original_max_position_embeddings and original_max_position_embeddings must agree",
        with_rope(type="yarn", original_max_position_embeddings=2048)
        | {"original_max_position_embeddings": 1024},
    ),
    (
        "rope_scaling.partial_rotary_factor and partial_rotary_factor must agree",
        with_rope(partial_rotary_factor=0.5) | {"partial_rotary_factor": 0.25},
    ),
    (
        "partial_rotary_factor and rotary_pct must agree",
        LLAMA | {"partial_rotary_factor": 1.0, "rotary_pct": 0.5},
    ),
    (
        "head_dim × partial_rotary_factor and rotary_dim must agree, got 32 and 64",
        LLAMA | {"partial_rotary_factor": 0.25, "rotary_dim": 64},
    ),
    ("factor must be given, or follow from", with_rope(type="yarn")),
    (
        "original_max_position_embeddings must be given for rope_type 'llama3'",
        with_rope(type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0),
    ),
    (
        "original_max_position_embeddings must be given for rope_type 'longrope'",
        with_rope(type="su", **LISTS),
    ),
    (
        "max_position_embeddings must be given for 'dynamic'",
        with_rope(type="dynamic", factor=2.0) | {"max_position_embeddings": None},
    ),
    ("factor must be at least 1, got 0.5", with_rope(type="linear", factor=0.5)),
    ("rope_theta must be greater than 1, got 0.5", LLAMA | {"rope_theta": 0.5}),
    ("partial_rotary_factor must be above 0 and at most 1, got 1.5", LLAMA | {"partial_rotary_factor": 1.5}),
    ("rotary_dim must be even and at least 2, got 19", LLAMA | {"head_dim": 64, "rotary_pct": 0.3}),
    (
        "short_factor must have one number for each of the 64 pairs",
        with_rope(type="su", **LISTS | {"short_factor": [1.0]}, original_max_position_embeddings=1024),
    ),
    (
        "mrope_section must be three integers ≥ 0 with the sum 64",
        with_rope(type="mrope", mrope_section=[1, 2, 3]),
    ),
    ("attention_factor must be greater than 0", with_rope(type="yarn", factor=2.0, attention_factor=0)),
    (
        "beta_slow and beta_fast must be 0 ≤ beta_slow ≤ beta_fast",
        with_rope(type="yarn", factor=2.0, beta_fast=1, beta_slow=32),
    ),
    (
        "low_freq_factor and high_freq_factor must be",
        with_rope(
            type="llama3",
            factor=8.0,
            low_freq_factor=4,
            high_freq_factor=1,
            original_max_position_embeddings=512,
        ),
    ),
    (
        "hidden_size must be a multiple of num_attention_heads, got 4096 and 33",
        LLAMA | {"num_attention_heads": 33},
    ),
    ("config must have head_dim, or hidden_size and num_attention_heads, got a", {"a": 1}),
    ("config must have head_dim, or hidden_size and num_attention_heads, got no keys", {}),
    ("config must be of a model with RoPE, got alibi = True", LLAMA | {"alibi": True}),
    (
        "config must be of a model with RoPE, got position_embedding_type = 'absolute'",
        LLAMA | {"position_embedding_type": "absolute"},
    ),
    (
        "layer_type must be one of full_attention, sliding_attention, got None",
        LLAMA | {"rope_local_base_freq": 1e4},
    ),
]
BAD_TYPES = [
    ("rope_scaling must be a dict or null, got 4", LLAMA | {"rope_scaling": 4}),
    ("rope_parameters must be a dict or null, got []", LLAMA | {"rope_parameters": []}),
    ("factor must be a real number, got '2'", with_rope(type="linear", factor="2")),
    ("factor must be a real number, got True", with_rope(type="linear", factor=True)),
    ("rope_theta must be a real number, got '1e4'", LLAMA | {"rope_theta": "1e4"}),
    ("truncate must be True or False, got 'false'", with_rope(type="yarn", factor=2.0, truncate="false")),
    ("mscale must be a real number, got 'x'", with_rope(type="yarn", factor=2.0, mscale="x")),
    (
        "mrope_interleaved must be true or false, got 'true'",
        with_rope(mrope_section=[16, 24, 24], mrope_interleaved="true"),
    ),
    ("rope_interleave must be true or false, got 1", LLAMA | {"rope_interleave": 1}),
    ("head_dim must be an integer, got 128.0", LLAMA | {"head_dim": 128.0}),
    ("max_position_embeddings must be an integer, got '4k'", LLAMA | {"max_position_embeddings": "4k"}),
    ("config must be a dict or the path of a JSON file with one, got list", []),
    ("config must be a dict or the path of a JSON file with one, got NoneType", None),
]


@pytest.mark.parametrize(
    ("error", "says", "config"),
    [(ValueError, *bad) for bad in BAD] + [(TypeError, *bad) for bad in BAD_TYPES],
    ids=[says for says, _ in BAD + BAD_TYPES],
)
def test_a_bad_configuration_is_refused_with_key_rule_and_way_out(error, says, config):
    with pytest.raises(error) as caught:
        read_rope_config(config)
    message = str(caught.value)
    assert says in message
    assert re.search(r"must (not )?(be|have|agree).+got .+; .+", message), "rule, value given, way out"


def test_a_length_that_is_no_length_is_refused_also_where_it_does_not_matter():
    for seq_len, error in [(0, ValueError), (1.5, TypeError), (True, TypeError)]:
        with pytest.raises(error, match="seq_len must be"):
            read_rope_config(LLAMA, seq_len=seq_len)


def test_a_file_that_is_cut_short_is_named(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 40')
    with pytest.raises(
        ValueError, match=f"config must be a JSON file, got {re.escape(str(path))} .*complete"
    ):
        read_rope_config(path)
    with pytest.raises(FileNotFoundError):
        read_rope_config(tmp_path / "other.json")
