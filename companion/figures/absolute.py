"""The interactive figure of the lesson on absolute positions: a binary counter beside a row of dials."""

from companion.figures import _figure, _whole
from companion.frequencies import _even_size, inverse_frequencies, wavelengths


def seat_dials(lang, *, d_model=12, base=10000.0, bits=8, position=7):
    """Return the figure in which one slider moves a position, and two codes of it follow.

    Above, the position in binary: bit i, counted from the fast end, has a period of 2^(i+1) tokens. Below, the
    sinusoidal code of width `d_model`: one dial for each pair, whose hand turns clockwise from the top by
    `inverse_frequencies(d_model, base)` radians per token, so that sine and cosine are its two coordinates. The
    text under the slider compares how far either code moves in the step to this position from the one before.
    """
    words = {
        "zh": {
            "alt": "上面是位置的二进制，下面是一排转速不同的指针，每根指针的横坐标和纵坐标就是编码里的两个数",
            "bits": "二进制 · 每一位的周期（词元）",
            "dials": "正弦编码 · 每根指针的波长（词元）",
            "numbers": "横坐标 sin，纵坐标 cos",
            "position": "位置 m",
            "back": "← 退一个座位",
            "forward": "进一个座位 →",
            "first": "m = 0 = {binary}（二进制）。所有指针都指着正上方。",
            "status": "m = {m} = {binary}（二进制）。\n从 {before} 到 {m}：二进制翻 {flips} 位，"
            "距离 {jump}；\n正弦编码：距离 {step}。",
        },
        "en": {
            "alt": "Above, the position in binary; below, a row of dials of different speed. "
            "The two coordinates of each hand are two numbers of the code",
            "bits": "binary: period of each bit, in tokens",
            "dials": "sinusoidal: wavelength of each dial, in tokens",
            "numbers": "across: sin, up: cos",
            "position": "position m",
            "back": "← one seat back",
            "forward": "one seat on →",
            "first": "m = 0 = {binary} in binary. All hands point straight up.",
            "status": "m = {m} = {binary} in binary.\nFrom {before} to {m}: bits flipped {flips}, "
            "distance {jump};\nsinusoidal code: distance {step}.",
        },
    }
    speeds = inverse_frequencies(_even_size("d_model", d_model), base)
    bits, position = _whole("bits", bits, least=1, most=16), _whole("position", position)
    if not 0 <= position < 2**bits:
        raise ValueError(
            f"position must lie in 0 … {2**bits - 1}, which {bits} bits can count, got {position}; raise bits"
        )
    lengths = [f"{length:.{0 if length >= 10 else 1}f}" for length in wavelengths(speeds)]
    return _figure(
        "seat_dials", lang, words, speeds=speeds.tolist(), lengths=lengths, bits=bits, position=position
    )
