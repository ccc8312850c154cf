"""The interactive figure of the lesson on order: tokens that can be moved."""

import numpy as np

from companion.figures import _figure, _finite_array


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
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens) or len(tokens) == 0:
        raise TypeError(f'tokens must be a list of at least one string, got {tokens!r}; write ["the", "cat"]')
    length = len(tokens)
    scores, values = _finite_array("scores", scores), _finite_array("values", values)
    if scores.shape != (length, length) or values.ndim != 2 or len(values) != length or not values.size:
        raise ValueError(
            f"scores must be ({length}, {length}) and values ({length}, value_dim ≥ 1) for {length} tokens, "
            f"got {scores.shape} and {values.shape}; take one head of one sentence"
        )
    rounded = {"scores": np.round(scores, 3).tolist(), "values": np.round(values, 3).tolist()}
    return _figure("attention_shuffle", lang, words, tokens=[str(token) for token in tokens], **rounded)
