"""The interactive figure of the laboratory: how one key drowns among many, and what a temperature does about it."""

from companion.figures import _figure, _number, _whole
from companion.relative_bias import alibi_slopes


def needle_dilution(lang, *, edge=8.0, length=1024, train_len=64, num_heads=4):
    """Return the figure of the weight of one key, the needle, over the number of other keys.

    The needle stands farthest away and scores `edge` nats above all others, which score alike. Three controls:
    the length, the edge, and the slope of ALiBi (none, or that of one of `num_heads` heads). One curve is without
    and one with the temperature of YaRN, which multiplies scores by (0.1 ln s + 1)² at s = length / `train_len`.
    """
    words = {
        "zh": {
            "alt": "针的权重随文本长度变化的两条曲线：不调温度，和用 YaRN 的温度；长度是对数坐标，竖线是所选的长度",
            "weight": "针的权重",
            "axis": "文本长度（词元）",
            "plain": "不调温度",
            "warm": "YaRN 的温度",
            "length": "文本长度 N",
            "edge": "针的分数比别人高多少",
            "slope": "ALiBi 的斜率 m",
            "none": "没有",
            "status": "长度 {length}，s = {factor}：分数乘以 {temperature}。\n"
            "针的路费 {charge} 分；其余的键合起来相当于 {rivals} 个分数为 0 的键。\n"
            "针的权重：不调温度 {plain}，调温度 {warm}。",
        },
        "en": {
            "alt": "two curves of the weight of the needle over the length of the text: without and with the "
            "temperature of YaRN; the length is logarithmic, the vertical line is the chosen length",
            "weight": "weight of the needle",
            "axis": "length of the text (tokens)",
            "plain": "no temperature",
            "warm": "temperature of YaRN",
            "length": "length of the text, N",
            "edge": "score of the needle above all others",
            "slope": "slope of ALiBi, m",
            "none": "none",
            "status": "Length {length}, s = {factor}: scores are multiplied by {temperature}.\n"
            "The needle is charged {charge}; the other keys together are worth {rivals} keys of score 0.\n"
            "Weight of the needle: {plain} without temperature, {warm} with it.",
        },
    }
    start = {
        "edge": _number("edge", edge, least=0, most=16),
        "length": _number("length", length, least=1, most=65536),
    }
    train_len = _whole("train_len", train_len, least=1)
    slopes = alibi_slopes(_whole("num_heads", num_heads, least=1)).tolist()
    return _figure("needle_dilution", lang, words, slopes=slopes, start=start, train_len=train_len)
