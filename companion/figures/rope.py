"""The interactive figure of the lesson on RoPE: the clock."""

from companion.figures import _figure, _number, _whole


def rope_clock(lang, *, query_angle=100, key_angle=40, speed=30, steps=24):
    """Return the clock with two hands, a query and a key of length 1, each turned by its position times the speed.

    All angles are in degrees, counter-clockwise from the right. Three sliders set the position of the query
    (from 6, in `steps` steps), how many tokens before it the key stands (−6 … 6), and the speed in degrees per
    token (0 … 90, by 5). Moving the first turns both hands, and the angle between them stands still.
    """
    own = {"q": _number("query_angle", query_angle), "k": _number("key_angle", key_angle)}
    speed, steps = _number("speed", speed, least=0, most=90), _whole("steps", steps, least=1)
    if speed % 5:
        raise ValueError(f"speed must be a multiple of 5, the steps of its slider, got {speed}; round it")
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
    return _figure("rope_clock", lang, words, own=own, speed=speed, steps=steps)
