"""The directive {course-map}: the ladder of lessons as a picture, each box a link."""

from docutils import nodes
from docutils.parsers.rst import Directive
from markupsafe import escape

# name of the lesson, column, row, short title zh, short title en
LESSONS = [
    ("01_order", 1, 0, "次序从哪里来", "Order"),
    ("02_absolute", 0, 1, "绝对编码", "Absolute"),
    ("03_relative", 1, 1, "相对编码", "Relative"),
    ("04_rope", 2, 1, "旋转 RoPE", "RoPE"),
    ("05_rope_in_practice", 2, 2, "RoPE 实战", "RoPE in practice"),
    ("06_context_extension", 2, 3, "上下文扩展", "Longer context"),
    ("07_alibi", 1, 2, "ALiBi", "ALiBi"),
    ("08_extrapolation", 0, 3, "外推实验室", "Laboratory"),
    ("09_multimodal", 2, 4, "多模态", "Multimodal"),
    ("10_kernels", 1, 4, "GPU 内核", "GPU kernels"),
]
ARROWS = ["01 02", "01 03", "01 04", "03 07", "04 05", "05 06", "02 08", "07 08", "06 08", "06 09", "07 10"]
FAMILIES = {
    "zh": ["加到输入", "加到分数", "旋转 q 与 k"],
    "en": ["add to the input", "add to the score", "rotate q and k"],
}
CAPTION = {
    "zh": "课程地图：点一个方框，打开那一课。",
    "en": "Map of the course: each box opens its lesson.",
}
HEAD = (
    '<defs><marker id="course-map-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" '
    'markerUnits="userSpaceOnUse" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" style="fill: var(--pst-color-text-muted)"/></marker></defs>'
)
COLUMN, ROW, WIDTH, HEIGHT = 122, 92, 112, 46


def draw(lang):
    """Return the map as HTML."""
    place = {name[:2]: (column * COLUMN + 2, row * ROW + 2) for name, column, row, *_ in LESSONS}
    parts = [HEAD]
    for arrow in ARROWS:
        path = _arrow(*(place[number] for number in arrow.split()))
        parts.append(f'<path class="arrow" d="{path}" marker-end="url(#course-map-head)"/>')
    for column, family in enumerate(FAMILIES[lang]):
        parts.append(f'<text class="family" x="{column * COLUMN + 58}" y="{ROW - 20}">{family}</text>')
    for name, _, _, *titles in LESSONS:
        x, y = place[name[:2]]
        box = (
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
            f'<text x="{x + WIDTH / 2}" y="{y + 18}">{name[:2]}</text>'
            f'<text x="{x + WIDTH / 2}" y="{y + 35}">{escape(titles[lang == "en"])}</text>'
        )
        parts.append(f'<a href="{name}.html">{box}</a>')
    size = f"0 0 {3 * COLUMN - 6} {4 * ROW + HEIGHT + 4}"
    return (
        f'<figure class="course-map"><svg viewBox="{size}" role="group" aria-label="{CAPTION[lang]}">{"".join(parts)}</svg>'
        f"<figcaption>{CAPTION[lang]}</figcaption></figure>"
    )


def _arrow(start, end):
    (x1, y1), (x2, y2) = start, end
    if y1 == y2:
        return f"M{x1} {y1 + HEIGHT / 2} H{x2 + WIDTH}"
    return f"M{x1 + WIDTH / 2} {y1 + HEIGHT} L{x2 + WIDTH / 2} {y2}"


class CourseMap(Directive):
    def run(self):
        environment = self.state.document.settings.env
        *folder, _ = environment.docname.split("/")
        lang = folder[-1] if folder else environment.config.language[:2]
        return [nodes.raw("", draw(lang), format="html")]


def setup(app):
    app.add_directive("course-map", CourseMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
