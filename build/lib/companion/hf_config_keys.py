"""The keys of a model's `config.json` that concern RoPE: found, checked, and put into one flat dict.

The names are those of Hugging Face transformers, of all its versions: `rope_scaling` or `rope_parameters`, `type` or
`rope_type`, at the top or in `text_config`, one dict for all layers or one for each type of layer.
"""

import json
import os
from itertools import pairwise

from companion.frequencies import _even_size, _number
from companion.frequency_scaling import _length
from companion.multimodal import _sections


def rope_settings(config, *, layer_type=None):
    """Return what a configuration, a dict or the path of a file, says about the RoPE of one type of layer.

    A dict with the keys of the file, as far as they stand among those of RoPE, and always with
    `rope_type`, `rope_theta`, `head_dim` and `rotary_dim` (dimensions), `partial_rotary_factor`, `pairing`,
    `mrope_section` (or None), `mrope_interleaved`, `max_position_embeddings` and `train_len` (tokens, or None), `latent` (multi-head
    latent attention, where a part of the head does not turn), `base_is_assumed` and `train_len_is_assumed`.

    >>> rope_settings({"head_dim": 128, "rope_theta": 500000.0})["rotary_dim"]
    128

    Raises as `read_rope_config`. Source: `modeling_rope_utils.py` in Hugging Face transformers.
    """
    levels = _levels(_loaded(config))
    layers = _layers(levels)
    if layers and layer_type not in layers:
        raise ValueError(
            f"layer_type must be one of {', '.join(layers)}, got {layer_type!r}; the layers of this model differ"
        )
    name, rope = _rope_dict(levels, layer_type)
    # Where layers differ, what is said outside their dicts is for those that say nothing themselves.
    stated = _first_of if layers else _agreed
    rope_type = _rope_type(rope)
    _check_keys(rope, rope_type)
    rope["rope_type"] = rope_type
    places = [(f"{name}.", rope), *levels]
    return rope | _base(stated, places) | _lengths(stated, places) | _sizes(stated, places, layer_type)


def layer_types(config):
    """Return the types of layers with positions of their own as a list, empty if all layers are alike.

    >>> layer_types({"rope_parameters": {"full_attention": {}, "sliding_attention": {}}})
    ['full_attention', 'sliding_attention']

    Raises as `read_rope_config`. Source: `rope_parameters` in Hugging Face transformers; Gemma 3.
    """
    return _layers(_levels(_loaded(config)))


# Keys of every rope type, and of each: those it must have, and those it may have besides.
_COMMON = (
    "rope_type",
    "type",
    "rope_theta",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "mrope_section",
    "mrope_interleaved",
)
_KEYS = {
    "default": ((), ()),
    "linear": (("factor",), ()),
    "dynamic": (("factor",), ()),
    "yarn": (
        (),
        ("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    ),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor"), ()),
    "longrope": (("short_factor", "long_factor"), ("factor", "attention_factor")),
    "proportional": ((), ("factor",)),
}
_DICTS = ("rope_parameters", "rope_scaling")
_OTHER_NAMES = {"su": "longrope", "mrope": "default"}

# Model types whose published weights pair neighbouring dimensions; all others known pair the halves.
_ADJACENT = (
    "codegen cohere cohere2 deepseek_v2 deepseek_v3 ernie4_5 glm glm4 gptj helium kimi_k2 llama4 llama4_text"
).split()


def _loaded(config):
    if isinstance(config, str | os.PathLike):
        try:
            with open(config, encoding="utf8") as file:
                config = json.load(file)
        except ValueError as error:
            raise ValueError(
                f"config must be a JSON file, got {config} ({error}); is it complete?"
            ) from error
    if not isinstance(config, dict):
        raise TypeError(
            f"config must be a dict or the path of a JSON file with one, got {type(config).__name__}; "
            "give the config.json of a model"
        )
    return config


def _levels(config):
    """The places to look at, innermost first, each with the prefix for messages."""
    text = config.get("text_config")
    levels = [("text_config.", text), ("", config)] if isinstance(text, dict) else [("", config)]
    for key, others in (("alibi", (True,)), ("position_embedding_type", ("absolute", "alibi"))):
        if levels[0][1].get(key) in others:
            raise ValueError(
                f"config must be of a model with RoPE, got {key} = {levels[0][1][key]!r}; its positions are others"
            )
    return levels


def _agreed(*stated):
    """The value that all the places (name, value) state which are not silent (None); or None."""
    spoken = [(name, value) for name, value in stated if value is not None]
    for (first, value), (second, other) in pairwise(spoken):
        if value != other:
            raise ValueError(
                f"{first} and {second} must agree, got {value!r} and {other!r}; remove the wrong one"
            )
    return spoken[0][1] if spoken else None


def _first_of(*stated):
    return next((value for _, value in stated if value is not None), None)


def _places(levels, *keys):
    return [(prefix + key, level.get(key)) for prefix, level in levels for key in keys]


def _rope_dicts(levels):
    """Every dict with keys of RoPE, with its name for messages."""
    named = [(prefix + name, level.get(name)) for prefix, level in levels for name in _DICTS]
    for name, value in named:
        if not isinstance(value, dict | None):
            raise TypeError(f"{name} must be a dict or null, got {value!r}; write the keys of RoPE into it")
    return [(name, value) for name, value in named if value is not None]


def _layers(levels):
    """The types of layers with positions of their own, or none if all layers are alike."""
    if (
        _agreed(*_places(levels, "rope_local_base_freq")) is not None
    ):  # Gemma 3 before there were dicts for each type
        return ["full_attention", "sliding_attention"]
    entries = [item for _, value in _rope_dicts(levels) for item in value.items()]
    return list(dict.fromkeys(key for key, entry in entries if isinstance(entry, dict)))


def _rope_dict(levels, layer_type):
    """The keys of RoPE for this type of layer that are not null, whatever dicts they stand in, and the name."""
    local = _agreed(*_places(levels, "rope_local_base_freq"))
    if local is not None and layer_type == "sliding_attention":
        return "rope_local_base_freq", {"rope_theta": local}
    sources = [
        (name, value[layer_type] if isinstance(value.get(layer_type), dict) else value)
        for name, value in _rope_dicts(levels)
    ]
    keys = dict.fromkeys(key for _, source in sources for key in source)
    rope = {key: _agreed(*((f"{name}.{key}", source.get(key)) for name, source in sources)) for key in keys}
    return sources[0][0] if sources else "rope_scaling", {
        key: value for key, value in rope.items() if value is not None
    }


def _rope_type(rope):
    names = [(key, rope[key]) for key in ("rope_type", "type") if key in rope]
    for key, name in names:
        if not isinstance(name, str) or name not in (*_KEYS, *_OTHER_NAMES):
            raise ValueError(
                f"{key} must be one of {', '.join([*_KEYS, *_OTHER_NAMES])}, got {name!r}; "
                "other methods cannot be read from a configuration"
            )
    return _agreed(*((key, _OTHER_NAMES.get(name, name)) for key, name in names)) or "default"


def _check_keys(rope, rope_type):
    needed, possible = _KEYS[rope_type]
    unknown = [key for key in rope if key not in (*_COMMON, *needed, *possible)]
    missing = [key for key in needed if key not in rope]
    needs_sections = "mrope" in (rope.get("type"), rope.get("rope_type")) or "mrope_interleaved" in rope
    if needs_sections and "mrope_section" not in rope:
        missing.append("mrope_section")
    if unknown:
        raise ValueError(
            f"the rope parameters of rope_type {rope_type!r} must have known keys only, "
            f"got {', '.join(unknown)}; known are {', '.join((*_COMMON, *needed, *possible))}"
        )
    if missing:
        raise ValueError(
            f"the rope parameters of rope_type {rope_type!r} must have {', '.join(missing)}, "
            f"got only {', '.join(rope) or 'none'}; add what is missing"
        )


def _base(stated, places):
    base = stated(*_places(places, "rope_theta", "rotary_emb_base"))
    if base is not None and _number("rope_theta", base) <= 1:
        raise ValueError(f"rope_theta must be greater than 1, got {base!r}; 10000.0 is the usual value")
    return {"rope_theta": 10000.0 if base is None else float(base), "base_is_assumed": base is None}


def _lengths(stated, places):
    """The trained length, the longest one, and the factor of YaRN and LongRoPE where it is only implied."""
    rope, text = places[0][1], places[1][1]
    key, rope_type = "original_max_position_embeddings", rope["rope_type"]
    original = stated(*_places(places, key))
    longest = _agreed(*_places([("", text)], "max_position_embeddings", "n_positions"))
    if original is None and rope_type in ("llama3", "longrope"):
        raise ValueError(f"{key} must be given for rope_type {rope_type!r}, got none; add it")
    if original is None and longest is None and rope_type in ("dynamic", "yarn"):
        raise ValueError(f"max_position_embeddings must be given for {rope_type!r}, got none; add it")
    if rope_type in ("yarn", "longrope") and "factor" not in rope and None in (original, longest):
        raise ValueError(
            f"factor must be given, or follow from max_position_embeddings and {key}, "
            f"got {longest} and {original}; add it"
        )
    lengths = {
        "max_position_embeddings": None if longest is None else _length("max_position_embeddings", longest),
        "train_len": longest if original is None else _length(key, original),
        "train_len_is_assumed": original is None,
    }
    if rope_type in ("yarn", "longrope") and "factor" not in rope:
        lengths["factor"] = longest / original
    return lengths


def _sizes(stated, places, layer_type):
    rope, text = places[0][1], places[1][1]
    head_dim = _head_dim(text, layer_type)
    fraction = stated(*_places(places, "partial_rotary_factor", "rotary_pct"))
    if fraction is not None and not 0 < _number("partial_rotary_factor", fraction) <= 1:
        raise ValueError(
            f"partial_rotary_factor must be above 0 and at most 1, got {fraction}; 1.0 turns all"
        )
    # Proportional RoPE keeps the pairs of the whole head and stops the slow ones.
    whole = fraction is None or rope["rope_type"] == "proportional"
    rotary_dim = _agreed(
        ("head_dim × partial_rotary_factor", None if whole else int(head_dim * fraction)),
        ("rotary_dim", text.get("rotary_dim")),
    )
    rotary_dim = _even_size("rotary_dim", head_dim if rotary_dim is None else rotary_dim)
    return {
        "head_dim": head_dim,
        "rotary_dim": rotary_dim,
        "partial_rotary_factor": 1.0 if fraction is None else fraction,
        "pairing": _pairing(text),
        "latent": text.get("qk_rope_head_dim") is not None,
        **_axes(rope, rotary_dim // 2),
    }


def _axes(rope, half_dim):
    sections, interleaved = rope.get("mrope_section"), rope.get("mrope_interleaved", False)
    if not isinstance(interleaved, bool):
        raise TypeError(
            f"mrope_interleaved must be true or false, got {interleaved!r}; write it without quotes"
        )
    return {
        "mrope_section": None if sections is None else _sections("mrope_section", sections, half_dim),
        "mrope_interleaved": interleaved,
    }


def _pairing(text):
    adjacent = text.get("rope_interleave")
    if adjacent is None:
        adjacent = text.get("model_type") in _ADJACENT
    if not isinstance(adjacent, bool):
        raise TypeError(f"rope_interleave must be true or false, got {adjacent!r}; write it without quotes")
    return "adjacent" if adjacent else "half"


def _head_dim(text, layer_type):
    names = ("qk_rope_head_dim", *(["global_head_dim"] if layer_type == "full_attention" else []), "head_dim")
    for name in names:
        if text.get(name) is not None:
            return _length(name, text[name], of="dimensions")
    width = _agreed(*_places([("", text)], "hidden_size", "n_embd"))
    heads = _agreed(*_places([("", text)], "num_attention_heads", "n_head"))
    if width is None or heads is None:
        raise ValueError(
            "config must have head_dim, or hidden_size and num_attention_heads, "
            f"got {', '.join(list(text)[:5]) or 'no keys'}; is it the config.json of a language model?"
        )
    if _length("hidden_size", width, of="dimensions") % _length("num_attention_heads", heads, of="heads"):
        raise ValueError(
            f"hidden_size must be a multiple of num_attention_heads, got {width} and {heads}; give head_dim"
        )
    return width // heads
