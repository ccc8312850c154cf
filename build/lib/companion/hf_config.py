"""What a model's `config.json` says about RoPE, as a table of speeds that `rotation_table` can use.

The keys are those of Hugging Face transformers, old (`rope_scaling`, `type`) and new (`rope_parameters`,
`rope_type`). An unknown key among them, or two keys that disagree, is an error: a scaling that is silently
ignored shows up only in long texts. Keys elsewhere in the file are nobody's business here.
"""

from typing import NamedTuple

import numpy as np

from companion.frequencies import _positive, inverse_frequencies
from companion.frequency_scaling import (
    _length,
    _magnitude,
    dynamic_ntk,
    llama3,
    longrope,
    longrope_attention_factor,
    position_interpolation,
    proportional,
    yarn,
    yarn_attention_factor,
)
from companion.hf_config_keys import rope_settings


class RopeConfig(NamedTuple):
    """How a model turns its queries and keys.

    - `inv_freq`, shape `(half_dim,)`: the speeds, scaling included, radians per token, for `rotation_table`;
    - `attention_factor`: what multiplies cos and sin, for `rotation_table`;
    - `rotary_dim`: how many leading dimensions of a head turn, for `apply_rope`;
    - `pairing`: "half" or "adjacent", the layout of the weights of this model type, for `apply_rope`;
    - `sections`: the pairs of T, H and W for `mrope_angles`, or None; the layout is `mrope_layout(config)`;
    - `softmax_scale_factor`: what multiplies the usual 1/√d of the scores (DeepSeek; else 1).
    """

    inv_freq: np.ndarray
    attention_factor: float
    rotary_dim: int
    pairing: str
    sections: tuple | None
    softmax_scale_factor: float


def read_rope_config(config, *, seq_len=None, layer_type=None):
    """Return the `RopeConfig` of a model's configuration, a dict or the path of a `config.json`.

    `seq_len` is the length at hand in tokens, on which dynamic NTK and LongRoPE depend; without it they are as
    up to the trained length. `layer_type`, such as "full_attention", is needed if layers differ.

    >>> llama = {"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0}
    >>> read_rope_config(llama).inv_freq.shape
    (64,)

    Raises TypeError or ValueError, naming the key, for an unknown key among those of RoPE, a missing one, a bad
    value, and two that disagree; OSError for a path that cannot be read. Source: `modeling_rope_utils.py` in
    Hugging Face transformers; for the softmax, the code of DeepSeek-V3.
    """
    rope = rope_settings(config, layer_type=layer_type)
    return RopeConfig(
        inv_freq=_scaled_speeds(rope, seq_len),
        attention_factor=_attention_factor(rope),
        rotary_dim=rope["rotary_dim"],
        pairing=rope["pairing"],
        sections=rope["mrope_section"],
        softmax_scale_factor=_softmax_scale_factor(rope),
    )


def mrope_layout(config, *, layer_type=None):
    """Return "contiguous" or "interleaved", the layout of `sections`, or None for a model without them.

    >>> vision = {"type": "mrope", "mrope_section": [16, 24, 24]}
    >>> mrope_layout({"head_dim": 128, "rope_scaling": vision})
    'contiguous'

    Raises as `read_rope_config` does. Source: `mrope_interleaved` in the configurations of Qwen3-VL.
    """
    rope = rope_settings(config, layer_type=layer_type)
    if rope["mrope_section"] is None:
        return None
    return "interleaved" if rope["mrope_interleaved"] else "contiguous"


def _scaled_speeds(rope, seq_len):
    base, train_len = rope["rope_theta"], rope["train_len"]
    inv_freq = inverse_frequencies(rope["rotary_dim"], base)
    seq_len = train_len if seq_len is None else _length("seq_len", seq_len)
    match rope["rope_type"]:
        case "linear":
            return position_interpolation(inv_freq, rope["factor"])
        case "dynamic":
            return dynamic_ntk(inv_freq, seq_len, train_len, rope["factor"])
        case "yarn":
            options = {key: rope[key] for key in ("beta_fast", "beta_slow", "truncate") if key in rope}
            return yarn(inv_freq, rope["factor"], train_len, base=base, **options)
        case "llama3":
            options = {key: rope[key] for key in ("low_freq_factor", "high_freq_factor")}
            return llama3(inv_freq, rope["factor"], train_len, **options)
        case "longrope":
            return longrope(inv_freq, rope["short_factor"], rope["long_factor"], seq_len, train_len)
        case "proportional":
            inv_freq = proportional(rope["head_dim"], rope["partial_rotary_factor"], base)
            return position_interpolation(inv_freq, rope.get("factor", 1.0))
    return inv_freq


def _attention_factor(rope):
    if "attention_factor" in rope:
        return _positive("attention_factor", rope["attention_factor"])
    match rope["rope_type"]:
        case "yarn":
            weights = {key: rope.get(key) for key in ("mscale", "mscale_all_dim")}
            return yarn_attention_factor(rope["factor"], **weights)
        case "longrope":
            return longrope_attention_factor(rope["factor"], rope["train_len"])
    return 1.0


def _softmax_scale_factor(rope):
    # Only latent attention, where half of the head is not turned, moves the temperature into the softmax.
    if rope["latent"] and rope.get("mscale_all_dim"):
        return _magnitude(rope["factor"], rope["mscale_all_dim"]) ** 2
    return 1.0
