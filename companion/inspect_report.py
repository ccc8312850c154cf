"""What an engineer wants to know about the RoPE of a model, as text for a terminal, in Chinese or English."""

import re
from itertools import groupby
from textwrap import fill
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np

from companion.frequencies import inverse_frequencies, wavelengths
from companion.hf_config import RopeConfig, read_rope_config
from companion.hf_config_keys import rope_settings
from companion.inspect_traps import traps
from companion.multimodal import mrope_axes


class Inspection(NamedTuple):
    """What was found for one type of layer: the settings of the file, the result, and the speeds without scaling."""

    layer_type: str | None
    rope: dict
    result: RopeConfig
    before: np.ndarray
    seq_len: int | None

    @property
    def turns(self):
        """How often each pair turns within the trained length, or None if the file does not say that length."""
        train_len = self.rope["train_len"]
        return None if train_len is None else train_len * self.before / (2 * np.pi)

    @property
    def ratios(self):
        """By how much each pair was slowed down; ∞ for one that stands still."""
        after = self.result.inv_freq
        return np.divide(self.before, after, out=np.full_like(after, np.inf), where=after > 0)

    @property
    def treatments(self):
        """kept, blended, interpolated, rescaled or still, for each pair."""
        factor = (
            self.rope.get("factor", 1.0) if self.rope["rope_type"] not in ("dynamic", "longrope") else None
        )
        return [_treatment(ratio, factor) for ratio in self.ratios]


def inspect_rope(config, *, seq_len=None, layer_type=None):
    """Return the `Inspection` of a configuration, a dict or path, for texts of `seq_len` tokens.

    >>> inspect_rope({"head_dim": 4, "rope_theta": 100.0}).treatments
    ['kept', 'kept']

    Raises as `read_rope_config` does.
    """
    rope = rope_settings(config, layer_type=layer_type)
    result = read_rope_config(config, seq_len=seq_len, layer_type=layer_type)
    return Inspection(
        layer_type, rope, result, inverse_frequencies(rope["rotary_dim"], rope["rope_theta"]), seq_len
    )


def report(inspection, *, lang="en", every_pair=False):
    """Return the text about one type of layer: method, table of pairs, and what is easily done wrong.

    Pairs of the same treatment share a line; with `every_pair` each has its own.

    >>> text = report(inspect_rope({"head_dim": 4, "rope_theta": 100.0}))
    >>> text.splitlines()[0]
    'method           default, base 100'

    Raises ValueError unless `lang` is "zh" or "en".
    """
    if lang not in _WORDS:
        raise ValueError(f"lang must be 'zh' or 'en', got {lang!r}; choose one of the two editions")
    words = _WORDS[lang]
    table = _every_pair(inspection, words) if every_pair else _ranges(inspection, words)
    notes = [_in_lines(f"• {pair[lang == 'en']}", lang) for pair in traps(inspection)]
    parts = ["\n".join(_header(inspection, words)), _aligned(table)]
    return "\n\n".join([*parts, *(["\n".join([words["notes"], *notes])] if notes else [])])


_WORDS = {
    "en": {
        "layer": "layers",
        "method": "method",
        "base": "{method}, base {base:,.10g}",
        "factor": ", factor {factor:g}",
        "head": "head",
        "dims": "{turned} of {head} dimensions turn: {pairs} pairs, pairing {pairing}",
        "length": "trained length",
        "tokens": "{length:,} tokens",
        "unknown": "not in the file",
        "attention": "attention factor",
        "scores": "{factor:.7g} on cos and sin, so {square:.7g} on the scores",
        "softmax": "softmax scale",
        "times": "× {factor:.7g}",
        "pair": "pair",
        "pairs": "pairs",
        "count": "number",
        "treatment": "treatment",
        "before": "wavelength, tokens",
        "after": "after scaling",
        "turns before": "before: turns in {length:,}",
        "turns after": "after: turns in {length:,}",
        "axis": "axis",
        "short": ", under 1 turn",
        "notes": "Take care",
        "kept": "kept",
        "blended": "blended",
        "interpolated": "interpolated",
        "rescaled": "rescaled",
        "still": "not turned",
    },
    "zh": {
        "layer": "层类型",
        "method": "方法",
        "base": "{method}，底数 {base:,.10g}",
        "factor": "，扩展倍数 {factor:g}",
        "head": "注意力头",
        "dims": "{head} 维中旋转 {turned} 维：{pairs} 对，配对方式 {pairing}",
        "length": "训练长度",
        "tokens": "{length:,} 个词元",
        "unknown": "文件里没有",
        "attention": "注意力温度因子",
        "scores": "cos 和 sin 乘以 {factor:.7g}，即注意力分数乘以 {square:.7g}",
        "softmax": "softmax 缩放",
        "times": "再乘以 {factor:.7g}",
        "pair": "对",
        "pairs": "对",
        "count": "对数",
        "treatment": "处理",
        "before": "波长（词元）",
        "after": "缩放后",
        "turns before": "缩放前 {length:,} 内圈数",
        "turns after": "缩放后 {length:,} 内圈数",
        "axis": "轴",
        "short": "，不足 1 圈",
        "notes": "注意",
        "kept": "保持",
        "blended": "混合",
        "interpolated": "内插",
        "rescaled": "缩放",
        "still": "不转",
    },
}


def _treatment(ratio, factor):
    if np.isinf(ratio):
        return "still"
    if np.isclose(ratio, 1, rtol=1e-9):
        return "kept"
    if factor is None:
        return "rescaled"
    return "interpolated" if np.isclose(ratio, factor, rtol=1e-9) else "blended"


def _header(inspection, words):
    rope, result = inspection.rope, inspection.result
    method = words["base"].format(method=rope["rope_type"], base=rope["rope_theta"])
    dims = {"turned": rope["rotary_dim"], "head": rope["head_dim"], "pairs": result.inv_freq.size}
    length = rope["train_len"]
    lines = [
        (words["method"], method + (words["factor"].format(**rope) if "factor" in rope else "")),
        (words["head"], words["dims"].format(**dims, pairing=result.pairing)),
        (words["length"], words["tokens"].format(length=length) if length else words["unknown"]),
    ]
    if inspection.layer_type is not None:
        lines.insert(0, (words["layer"], inspection.layer_type))
    factor = result.attention_factor
    lines.append((words["attention"], words["scores"].format(factor=factor, square=factor**2)))
    if result.softmax_scale_factor != 1:
        lines.append((words["softmax"], words["times"].format(factor=result.softmax_scale_factor)))
    return _aligned(lines).splitlines()


def _ranges(inspection, words):
    """A line for neighbours of the same treatment that all, or all not, complete a turn within the trained length."""
    kinds, turns = inspection.treatments, inspection.turns
    whole = [True] * len(kinds) if turns is None else (turns >= 1).tolist()
    columns = _columns(inspection)
    titles = [words["pairs"], words["count"], words["treatment"], *_titles(inspection, words)]
    lines = [titles]
    for (kind, complete), group in groupby(range(len(kinds)), key=lambda i: (kinds[i], whole[i])):
        pairs = list(group)
        ends = sorted({pairs[0], pairs[-1]})
        cells = [" – ".join(dict.fromkeys(_number(column[i]) for i in ends)) for column in columns]
        slower = " – ".join(dict.fromkeys(_number(inspection.ratios[i]) for i in ends))
        kind = words[kind] + (f" ÷{slower}" if kind not in ("kept", "still") else "")
        kind += "" if complete else words["short"]
        lines.append([" – ".join(map(str, ends)), str(len(pairs)), kind, *cells])
    return lines


def _every_pair(inspection, words):
    columns = _columns(inspection)
    lines = [[words["pair"], words["treatment"], *_titles(inspection, words)]]
    for i, (kind, ratio) in enumerate(zip(inspection.treatments, inspection.ratios, strict=True)):
        kind = words[kind] + (f" ÷{_number(ratio)}" if kind not in ("kept", "still") else "")
        lines.append([str(i), kind, *(_number(column[i]) for column in columns)])
    if inspection.result.sections is not None:
        layout = "interleaved" if inspection.rope["mrope_interleaved"] else "contiguous"
        axes = mrope_axes(len(lines) - 1, inspection.result.sections, layout=layout)
        lines = [
            [*line, name]
            for line, name in zip(lines, [words["axis"], *("THW"[a] for a in axes)], strict=True)
        ]
    return lines


def _lengths(inspection):
    """The lengths in which turns are counted, with the speeds: as trained, and as asked for."""
    train_len, seq_len = inspection.rope["train_len"], inspection.seq_len
    lengths = [
        ("turns before", train_len, inspection.before),
        ("turns after", seq_len, inspection.result.inv_freq),
    ]
    return [(title, length, speeds) for title, length, speeds in lengths if length]


def _columns(inspection):
    waves = [wavelengths(inspection.before), wavelengths(inspection.result.inv_freq)]
    return waves + [length * speeds / (2 * np.pi) for _, length, speeds in _lengths(inspection)]


def _titles(inspection, words):
    turns = [words[title].format(length=length) for title, length, _ in _lengths(inspection)]
    return [words["before"], words["after"], *turns]


def _number(value):
    if np.isinf(value):
        return "∞"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _aligned(lines):
    """Columns side by side; a Chinese character is two columns wide."""
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    padded = (
        [cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)]
        for line in lines
    )
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _width(text):
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _in_lines(note, lang):
    """Return a note in lines of at most 79 columns: English ones end after a word, Chinese ones where a clause does."""
    if lang == "en":
        return fill(note, 79, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return re.sub(r"(.{12,36}[，。；：])(?=.)", r"\1\n  ", note)
