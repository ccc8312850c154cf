"""Faults of public repositories, each with its smallest input and the right value.

The names begin with the number of the case; the report stands in the docstring. Cases of other libraries' caches,
buffers and kernels have their tests with the torch modules.
"""

import inspect
from pathlib import Path

import numpy as np
import pytest

import companion.frequencies
import companion.frequency_scaling
import companion.multimodal
import companion.relative_bias
import companion.rope
import companion.sinusoidal
from companion.attention import attention_weights, causal_mask
from companion.frequencies import inverse_frequencies, rotation_angles
from companion.frequency_scaling import dynamic_ntk, llama3, ntk_aware, position_interpolation, yarn
from companion.hf_config import mrope_layout, read_rope_config
from companion.multimodal import mrope_axes
from companion.relative_bias import alibi_bias, alibi_slopes, relative_offsets, t5_buckets
from companion.rope import apply_rope, pairing_permutation, rotation_table
from companion.sinusoidal import sinusoidal_table

CONFIGS = Path(__file__).parent / "configs"
SEVEN_DIGITS = 0.5e-6  # relative, of the values in the reports
EPS = np.finfo(np.float64).eps


def near(value, expected, digits=SEVEN_DIGITS):
    np.testing.assert_allclose(value, expected, rtol=digits)


def turn(x, positions, base=10000.0, **options):
    x = np.array(x, dtype=float)
    cos, sin = rotation_table(positions, inverse_frequencies(options.get("rotary_dim", x.shape[-1]), base))
    return apply_rope(x, cos, sin, **options)


def logits(q, k, positions):
    return turn(q, positions) @ np.swapaxes(turn(k, positions), -1, -2)


def test_b01_dynamic_ntk_forgets_the_long_text_before_a_short_one():
    """huggingface/transformers #25306, #27226."""
    inv_freq = inverse_frequencies(128)
    near(dynamic_ntk(inv_freq, 4096, 2048, 2.0)[63], 3.849273e-5)
    for seq_len in (2048, 2047, 1):
        near(dynamic_ntk(inv_freq, seq_len, 2048, 2.0)[63], 1.154782e-4)
    between = dynamic_ntk(inv_freq, 3000, 2048, 2.0)
    dynamic_ntk(inv_freq, 8192, 2048, 2.0)
    np.testing.assert_array_equal(dynamic_ntk(inv_freq, 3000, 2048, 2.0), between)
    near(ntk_aware(inv_freq, 3.0)[63], inverse_frequencies(128, 30527.7367)[63])


def test_b02_a_short_text_is_not_scaled_by_dynamic_ntk():
    """vllm-project/vllm #3488, #5093: the base was computed once, for L · factor."""
    near(dynamic_ntk(inverse_frequencies(128), 1000, 2048, 2.0)[1], 0.8659643)
    near(dynamic_ntk(inverse_frequencies(128), 4096, 2048, 2.0)[1], 0.8509943)  # what short texts got


def test_b03_the_phase_is_computed_in_float64():
    """sgl-project/sglang-jax #1472, NVIDIA/Megatron-LM #744: speeds in bfloat16 turn pair 1 by 5 radians too much."""
    inv_freq = inverse_frequencies(128)
    near(rotation_angles(4095, inv_freq)[1], 3546.1239, 1e-8)
    cos, _ = rotation_table([4095], inv_freq)
    near(cos[0, 1], -0.742366, 1e-6)
    with pytest.raises(TypeError, match="inv_freq must not be half precision, got float16"):
        rotation_table([4095], inv_freq.astype(np.float16))


@pytest.mark.parametrize("position", [257, 2049, 4095])
def test_b04_positions_stay_what_they_are_and_half_precision_is_refused(position):
    """nkalyanv99/UNI-D2 PR 6, huggingface/transformers PR 29285."""
    assert rotation_angles(position, [1.0])[0] == position
    with pytest.raises(TypeError, match="positions must not be half precision"):
        rotation_angles(np.array([position], dtype=np.float16), [1.0])


def test_b05_the_two_pairings_differ_by_one_permutation():
    """huggingface/transformers #25199, jzhang38/TinyLlama #24, EleutherAI/gpt-neox #834."""
    x = [[1.0, 2.0, 3.0, 4.0]]
    near(turn(x, [1], pairing="adjacent")[0], [-1.142640, 1.922076, 2.959851, 4.029800])
    near(turn(x, [1], pairing="half")[0], [-1.984111, 1.959901, 2.462378, 4.019800])
    perm = pairing_permutation(4)
    assert perm.tolist() == [0, 2, 1, 3]
    np.testing.assert_array_equal(turn(np.array(x)[:, perm], [1]), turn(x, [1], pairing="adjacent")[:, perm])


def test_b06_slopes_of_6_heads_are_not_those_of_the_sentence_and_not_sorted():
    """ml-explore/mlx #343; NVIDIA/TensorRT-LLM PR 1611 and antofuller/CROMA #12 take the order for a fault."""
    assert alibi_slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert alibi_slopes(8)[0] == 1 / 2 and alibi_slopes(8)[-1] == 1 / 256


def test_b07_alibi_charges_for_distance_and_never_rewards_the_future():
    """meta-pytorch/attention-gym PR 86, lucidrains/x-transformers PR 88."""
    bias = alibi_bias(relative_offsets([5], np.arange(6)), [0.5])[0, 0]
    assert bias.tolist() == [-2.5, -2, -1.5, -1, -0.5, 0]
    expected = [0.0340, 0.0560, 0.0924, 0.1523, 0.2512, 0.4141]
    np.testing.assert_allclose(attention_weights(bias), expected, rtol=0, atol=0.5e-4)
    future = relative_offsets([0], np.arange(4))
    assert (alibi_bias(future, [0.5])[0, 0, 1:] == -np.inf).all()
    assert (alibi_bias(future, [0.5], causal=False)[0, 0, 1:] < 0).all()


def test_b08_left_padded_logits_equal_those_without_padding():
    """huggingface/transformers #22161, unslothai/unsloth #3699, pytorch/executorch PR 2010."""
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    assert positions[0, 2:].tolist() == [0, 1] and positions[1].tolist() == [0, 1, 2, 3]
    q, k = np.random.default_rng(0).standard_normal((2, 2, 1, 4, 8))
    padded = logits(q, k, positions[:, np.newaxis])
    alone = logits(q[0, :, 2:], k[0, :, 2:], [0, 1])
    np.testing.assert_allclose(padded[0, :, 2:, 2:], alone, rtol=0, atol=64 * EPS)
    biased = alibi_bias(relative_offsets(positions[:, np.newaxis], positions[:, np.newaxis]), alibi_slopes(1))
    assert biased[0, 0, 3, 2] == -alibi_slopes(1)[0]


def test_b08_the_token_after_a_left_padded_prompt_stands_at_its_number_of_real_tokens():
    """One step with a cache: 2 and 4, not 4 and 4."""
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 1]])
    new = mask.sum(axis=1).reshape(2, 1, 1)
    assert new.ravel().tolist() == [2, 4]
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, np.newaxis]
    assert causal_mask(new, positions).all()
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 1, 8)), rng.standard_normal((2, 1, 4, 8))
    step = turn(q, new) @ np.swapaxes(turn(k, positions), -1, -2)
    alone = turn(q[0], [2]) @ np.swapaxes(turn(k[0, :, 2:], [0, 1]), -1, -2)
    np.testing.assert_allclose(step[0, :, :, 2:], alone, rtol=0, atol=64 * EPS)
    bias = alibi_bias(relative_offsets(new, positions), [0.5])
    assert bias[0, 0, 0, 2:].tolist() == [-1.0, -0.5] and bias[1, 0, 0].tolist() == [-2.0, -1.5, -1.0, -0.5]


def test_b09_far_keys_share_the_last_bucket_and_rows_begin_after_the_cache():
    """huggingface/candle PR 1312 and PR 899, lucidrains/x-transformers PR 10."""
    assert t5_buckets(-200, bidirectional=False) == 31 == t5_buckets(1000, bidirectional=True)
    cached = t5_buckets(relative_offsets([6], np.arange(7)), bidirectional=False)[0]
    assert cached.tolist() == [6, 5, 4, 3, 2, 1, 0]


YARN = {"head_dim": 128, "max_position_embeddings": 4096, "rope_theta": 10000.0}


@pytest.mark.parametrize(
    ("keys", "right"),
    [
        ({"factor": 64.0, "attention_factor": 1.0}, 1.0),
        ({"factor": 16.0, "mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
        ({"factor": 128.0, "attention_factor": 1.4852030}, 1.4852030),
    ],
)
def test_b10_an_explicit_attention_factor_replaces_the_formula_and_two_weights_cancel(keys, right):
    """vllm-project/vllm #48621, ml-explore/mlx-lm PR 1507, sgl-project/sglang PR 22711."""
    config = YARN | {"rope_scaling": {"type": "yarn", **keys}}
    near(read_rope_config(config).attention_factor, right, 4 * EPS)


def test_b11_longrope_takes_the_short_list_at_the_trained_length_and_the_long_one_after_it():
    """huggingface/transformers PR 33129, vllm #27414, ggml-org/llama.cpp #8995."""
    path = CONFIGS / "phi_3_vision_128k.json"
    at, after = (read_rope_config(path, seq_len=seq_len) for seq_len in (4096, 4097))
    near(inverse_frequencies(96)[-1] / at.inv_freq[-1], 3.05, 1e-12)
    near(inverse_frequencies(96)[-1] / after.inv_freq[-1], 64.81001281738281, 1e-12)
    near([at.attention_factor, after.attention_factor], 1.1902381, 1e-7)


def test_b12_partial_rotary_counts_exponents_and_pairs_over_the_turned_part():
    """huggingface/transformers #48630, pie-project/pie #602, AI-Hypercomputer/maxtext #4616."""
    config = read_rope_config({"head_dim": 256, "partial_rotary_factor": 0.25, "rope_theta": 1e7})
    assert config.inv_freq.shape == (32,) and config.rotary_dim == 64
    near(config.inv_freq[1], 0.6042964)
    x = np.random.default_rng(0).standard_normal((1, 256))
    turned = turn(x, [3], base=1e7, rotary_dim=64)
    np.testing.assert_array_equal(turned[:, 64:], x[:, 64:])
    touched = turn(np.eye(256)[[5]], [3], base=1e7, rotary_dim=64)[0]
    assert np.flatnonzero(touched).tolist() == [5, 5 + 32]


def test_b13_sections_are_contiguous_in_qwen2_vl_and_interleaved_in_qwen3_vl():
    """alibaba/MNN #4120, QwenLM/Qwen3-VL #1800, vllm #49290."""
    strings = {"qwen2_vl_7b": "T" * 16 + "H" * 24 + "W" * 24, "qwen3_vl_8b": "THW" * 20 + "TTTT"}
    for name, expected in strings.items():
        path = CONFIGS / f"{name}.json"
        axes = mrope_axes(64, read_rope_config(path).sections, layout=mrope_layout(path))
        assert "".join("THW"[axis] for axis in axes) == expected


def test_b14_the_same_tensor_at_another_offset_is_turned_anew():
    """lucidrains/rotary-embedding-torch #11: the cache knew nothing of the offset."""
    x = np.random.default_rng(0).standard_normal((3, 8))
    first, second = turn(x, np.arange(3)), turn(x, 3 + np.arange(3))
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(second, turn(np.vstack([x, x]), np.arange(6))[3:])


def test_b15_a_table_shorter_than_cache_and_new_tokens_is_an_error_and_its_full_length_works():
    """karpathy/nanochat #514: the bound was checked against T instead of T0 + T."""
    cos, sin = rotation_table(np.arange(16), inverse_frequencies(8))
    x = np.ones((3, 8))
    with pytest.raises(
        ValueError, match="cos must have one row for each of the 3 positions of x, got 2 rows"
    ):
        apply_rope(x, cos[14:17], sin[14:17])
    np.testing.assert_array_equal(apply_rope(x, cos[13:16], sin[13:16]), turn(x, [13, 14, 15]))


def test_b16_no_result_depends_on_the_call_before_it():
    """facebookresearch/xformers #728, lucidrains/x-transformers PR 90, ml-explore/mlx PR 561."""
    full = rotation_table(np.arange(513), inverse_frequencies(64))[0]
    for length in (512, 513, 511):
        np.testing.assert_array_equal(
            rotation_table(np.arange(length), inverse_frequencies(64))[0], full[:length]
        )
    assert rotation_table([1], inverse_frequencies(32))[0].shape == (1, 16)


def test_b16_the_package_keeps_nothing_between_calls():
    for module in (
        companion.frequencies,
        companion.frequency_scaling,
        companion.multimodal,
        companion.relative_bias,
        companion.rope,
        companion.sinusoidal,
    ):
        state = {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("__")
            and not inspect.ismodule(value)
            and not inspect.isroutine(value)
            and not inspect.isclass(value)
        }
        assert state == {}, module.__name__


@pytest.mark.parametrize(
    "call",
    [
        lambda: inverse_frequencies(9),
        lambda: turn(np.ones((1, 9)), [1]),
        lambda: turn(np.ones((1, 4)), [1], rotary_dim=3),
        lambda: read_rope_config({"head_dim": 4, "rotary_pct": 0.75}),
        lambda: sinusoidal_table([0], 3),
    ],
)
def test_b17_odd_widths_are_refused_at_once(call):
    """huggingface/transformers #35233, lucidrains/rotary-embedding-torch #45, ml-explore/mlx PR 3614."""
    with pytest.raises(ValueError, match=r"must be even and at least 2, got [39]; .*take"):
        call()


def test_b17_a_width_of_2_divides_by_nothing():
    np.testing.assert_array_equal(sinusoidal_table([3], 2), [[np.sin(3), np.cos(3)]])


def test_b18_the_scaling_of_llama_3_divides_the_slowest_pair_by_8_and_keeps_the_first():
    """unslothai/unsloth PR 6907, meta-pytorch/torchtune PR 1544, ggml-org/llama.cpp #8650."""
    config = read_rope_config(CONFIGS / "llama_3_1_8b.json")
    near(config.inv_freq[63], 3.068926e-07)
    near(inverse_frequencies(128, 500000.0)[63], 2.455141e-06)
    assert config.inv_freq[0] == 1.0


def test_b19_positions_are_used_by_value_and_heads_are_no_positions():
    """NVIDIA-NeMo/Automodel PR 2377, mlfoundations/open_lm #4."""
    table, some = (rotation_table(p, inverse_frequencies(8))[0] for p in (np.arange(10), [5, 9, 2]))
    np.testing.assert_array_equal(some, table[[5, 9, 2]])
    x = np.random.default_rng(0).standard_normal((2, 4, 7, 8))  # batch heads seq_len head_dim
    order = [2, 0, 3, 1]
    np.testing.assert_array_equal(turn(x[:, order], np.arange(7)), turn(x, np.arange(7))[:, order])


def test_b20_a_factor_is_applied_once():
    """NVIDIA/TensorRT-LLM PR 16378, ggml-org/ggml #835, rasbt/LLMs-from-scratch #939."""
    inv_freq = inverse_frequencies(128)
    assert rotation_angles(10, inv_freq)[0] == 10
    assert rotation_angles(8, position_interpolation(inv_freq, 4))[0] == 2
    assert rotation_angles(100, yarn(inv_freq, 8, 4096))[0] == 100
    linear = read_rope_config(YARN | {"rope_scaling": {"type": "linear", "factor": 4.0}})
    assert rotation_angles(8, linear.inv_freq)[0] == 2


def test_f1_truncate_is_read_from_the_dict_of_the_layer():
    """Found in transformers 5.24.0: with a dict for each type of layer the flag was looked for one level too high."""
    layer = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False}
    sizes = {"head_dim": 64, "max_position_embeddings": 131072, "rope_theta": 150000}
    nested = read_rope_config(
        sizes | {"rope_parameters": {"full_attention": layer}}, layer_type="full_attention"
    )
    flat = read_rope_config(sizes | {"rope_parameters": layer})
    rounded = read_rope_config(sizes | {"rope_parameters": layer | {"truncate": True}})
    np.testing.assert_array_equal(nested.inv_freq, flat.inv_freq)
    near(rounded.inv_freq[17] / flat.inv_freq[17], 1.76, 0.01)


def test_f2_dynamic_ntk_is_unscaled_at_exactly_the_trained_length():
    """Found in transformers 5.24.0: n = L after a long text kept the long base."""
    inv_freq = inverse_frequencies(64)
    dynamic_ntk(inv_freq, 64, 32, 2.0)
    np.testing.assert_array_equal(dynamic_ntk(inv_freq, 32, 32, 2.0), inv_freq)


def test_llama_4_scout_has_a_middle_band_of_no_width():
    """low_freq_factor = high_freq_factor = 1 divides by zero in the published formula."""
    assert np.isfinite(llama3(inverse_frequencies(128, 500000.0), 16, 8192, high_freq_factor=1.0)).all()
