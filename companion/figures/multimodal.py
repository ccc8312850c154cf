"""The interactive figure of the lesson on several axes: the three positions of every token of a mixed sequence."""

from companion.figures import _figure, _whole


def position_tracks(lang, *, rows=3, columns=6, frames=3, interval=1, text=3):
    """Return the chart of T, H and W over the tokens of text, an image, text, a video (2 × 3 a frame) and text.

    Sliders set the rows and columns of the image (1 … 6 and 1 … 8), the frames of the video (1 … 5) and how
    many positions a frame takes (1 … 4), and choose a token whose three positions are read out. Each of the
    three texts has `text` tokens. The dotted line counts tokens, as ordinary RoPE would.
    """
    words = {
        "zh": {
            "alt": "横轴是词元的序号，纵轴是位置；三条线是 T、H、W：文字处重合，图像和视频处分开，点线只数词元，很快升出图外",
            "rows": "图像有几行",
            "columns": "图像有几列",
            "frames": "视频有几帧，每帧 2 × 3",
            "interval": "每帧占几个时间位置",
            "token": "看哪一个词元",
            "kinds": ["文字", "图像", "文字", "视频", "文字"],
            "across": "词元的序号",
            "up": "位置",
            "count": "只数词元",
            "status": "第 {i} 个词元（{kind}）：T = {t}，H = {h}，W = {w}。\n"
            "{n} 个词元只用掉 {p} 个位置。下一个词元的位置是 {p}，不是 {n}，相差 {delta}。",
        },
        "en": {
            "alt": "Across, the number of the token; up, its position. Three lines, T, H and W, are one in text and part in "
            "image and video; the dotted line counts tokens only and soon leaves the picture",
            "rows": "rows of the image",
            "columns": "columns of the image",
            "frames": "frames of the video, 2 × 3 each",
            "interval": "time positions for each frame",
            "token": "token to read out",
            "kinds": ["text", "image", "text", "video", "text"],
            "across": "number of the token",
            "up": "position",
            "count": "counting tokens",
            "status": "Token {i} ({kind}): T = {t}, H = {h}, W = {w}.\n"
            "{n} tokens take up {p} positions only. The next token stands at {p}, not at {n}: off by {delta}.",
        },
    }
    start = {
        "rows": _whole("rows", rows, least=1, most=6),
        "columns": _whole("columns", columns, least=1, most=8),
        "frames": _whole("frames", frames, least=1, most=5),
        "interval": _whole("interval", interval, least=1, most=4),
    }
    return _figure("position_tracks", lang, words, start=start, text=_whole("text", text, least=1, most=6))
