"""The interactive figure of the lesson on ALiBi: how far each head looks."""

from companion.figures import _figure, _number, _whole
from companion.relative_bias import alibi_slopes


def alibi_horizons(lang, *, head_counts=(6, 8, 12, 16), num_heads=8, head=4, distance=64, patience=10.0):
    """Return the figure of the discounts exp(−slope · distance) of all heads, and of the horizon of each.

    A horizon is the distance at which the charge, slope · distance, reaches `patience` nats. Four controls: the
    number of heads (one of `head_counts`), the head, the distance of a key, and by how many nats its score
    beats the scores of all other keys; the text says what the key pays and which weight it is left with when
    the text goes back without end.
    """
    words = {
        "zh": {
            "alt": "上面是每个头的折扣随距离变化的曲线，下面是每个头的视野，距离是对数坐标，竖线是所选的键",
            "discount": "折扣 e⁻ᵐʳ",
            "horizons": "视野：扣分到 {patience} 为止（每个头一条）",
            "distance": "距离 r（词元）",
            "count": "头数 H",
            "head": "第几个头 h",
            "key": "键有多远 r",
            "edge": "键的分数比别人高多少",
            "status": "第 {head} 个头：m = {slope}，视野 {horizon} 个词元。\n"
            "距离 {r} 扣 {charge} 分，折扣 {discount}；分数高 {edge}，权重 {weight}。\n"
            "{count} 个头里，视野到得了这里的有 {seeing} 个。",
        },
        "en": {
            "alt": "Above, the discount of every head as a curve over the distance; below, the horizon of every "
            "head; the distance is logarithmic, the vertical line is the chosen key",
            "discount": "discount e⁻ᵐʳ",
            "horizons": "horizon: charge up to {patience} (one bar per head)",
            "distance": "distance r (tokens)",
            "count": "heads H",
            "head": "head number h",
            "key": "distance of the key, r",
            "edge": "its score above all others",
            "status": "Head {head}: m = {slope}, horizon {horizon} tokens.\n"
            "At distance {r} the charge is {charge}, the discount {discount}; "
            "with a score {edge} higher, the weight is {weight}.\n"
            "Of {count} heads, {seeing} have a horizon that reaches this far.",
        },
    }
    head_counts = [_whole("each of head_counts", count, least=1) for count in head_counts]
    num_heads, head = _whole("num_heads", num_heads, least=1), _whole("head", head, least=1)
    distance, patience = _number("distance", distance, least=1), _number("patience", patience, least=0)
    if num_heads not in head_counts or not 1 <= head <= num_heads:
        raise ValueError(
            f"num_heads must be one of head_counts {tuple(head_counts)} and head lie in 1 … num_heads, "
            f"got num_heads={num_heads} and head={head}; add the number to head_counts"
        )
    slopes = {str(count): alibi_slopes(count).tolist() for count in head_counts}
    start = {"count": num_heads, "head": head, "distance": distance}
    return _figure("alibi_horizons", lang, words, slopes=slopes, start=start, patience=patience)
