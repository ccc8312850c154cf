"""Interactive figures: inline SVG and a few lines of script, with no library, usable by keyboard and offline.

Each figure is a template beside this file; what is drawn and the words come from here.
"""

import json
from importlib.resources import files

import numpy as np
from IPython.display import HTML


def attention_shuffle(lang, tokens, scores, values):
    """Return the figure in which the tokens of a sentence can be moved and an attention layer follows at once.

    `tokens` are the words, `scores` the (seq_len, seq_len) scores q · k / √d of one head without positions,
    `values` the (seq_len, value_dim) values. The figure computes weights, outputs and their mean in the browser,
    with no positions, with a causal mask, or with a score that falls by 1 for each step of distance.
    """
    words = {
        "zh": {
            "alt": "注意力权重矩阵，右边是每个词元的输出，最下面是各行输出的平均；移动词元时行和列跟着移动",
            "chips": "句子里的词元：拖动，或用左右方向键移动",
            "place": "位置",
            "left": "← 左移",
            "right": "右移 →",
            "reset": "还原",
            "rule": "位置信息",
            "rules": ["没有", "因果掩码", "每远一步，分数减 1"],
            "output": "输出",
            "mean": "各行输出的平均",
            "moved": "“{token}”从位置 {from} 移到位置 {to}。",
            "restored": "回到原来的次序。",
            "report": "与原来的次序相比：{all} 个权重里变了 {changed} 个，各行平均的变化是 {drift}。",
        },
        "en": {
            "alt": "Matrix of attention weights with the output of each token to the right and the mean of the "
            "outputs below; rows and columns move with the tokens",
            "chips": "tokens of the sentence: drag them, or move them with the left and right arrow keys",
            "place": "position",
            "left": "← left",
            "right": "right →",
            "reset": "reset",
            "rule": "order from",
            "rules": ["nothing", "a causal mask", "score − 1 for each step away"],
            "output": "output",
            "mean": "mean of the outputs",
            "moved": "“{token}” went from position {from} to position {to}. ",
            "restored": "Back in the first order. ",
            "report": "Against the first order: {changed} of {all} weights changed, "
            "the mean of the outputs changed by {drift}.",
        },
    }
    rounded = {"scores": np.round(scores, 3).tolist(), "values": np.round(values, 3).tolist()}
    return _figure("attention_shuffle", lang, words, tokens=list(tokens), **rounded)


def rope_clock(lang, *, query_angle=100, key_angle=40, speed=30, steps=24):
    """Return the clock with two hands, a query and a key of length 1, each turned by its position times the speed.

    All angles are in degrees, counter-clockwise from the right. Three sliders set the position of the query
    (from 6, in `steps` steps), how many tokens before it the key stands (−6 … 6), and the speed in degrees per
    token. Moving the first turns both hands, and the angle between them stands still.
    """
    words = {
        "zh": {
            "picture": "钟面上的两根指针：查询 q 与键 k。虚线是转动之前的方向，扇形是两根指针的夹角",
            "position": "查询的位置 m",
            "back": "键在查询之前几个词元，m − n",
            "speed": "角频率 θ：每个词元转多少度",
            "status": "查询在 m = {m}，转了 {mt}；键在 n = {n}，转了 {nt}。\n"
            "夹角 = 自带的 {own} + {d} × {t} = {between}\n分数 = cos {between} = {score}。",
        },
        "en": {
            "picture": "Two hands on a clock face: the query q and the key k. Dashed: before turning; "
            "the sector is the angle between the hands",
            "position": "position of the query, m",
            "back": "how many tokens before it the key stands, m − n",
            "speed": "speed θ, in degrees per token",
            "status": "Query at m = {m}, turned by {mt}; key at n = {n}, turned by {nt}.\n"
            "Angle between them = their own {own} + {d} × {t} = {between}\nScore = cos {between} = {score}.",
        },
    }
    own = {"q": query_angle, "k": key_angle}
    return _figure("rope_clock", lang, words, own=own, speed=speed, steps=steps)


def _figure(name, lang, words, **data):
    """Fill the template `name`.html with the words of one language and the data of the figure."""
    if lang not in words:
        raise ValueError(f"lang must be one of {sorted(words)}, got {lang!r}")
    text = json.dumps({"words": words[lang], **data}, ensure_ascii=False).replace("</", "<\\/")
    return HTML((files(__package__) / f"{name}.html").read_text("utf8").replace("__DATA__", text))
