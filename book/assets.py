"""What a page loads beside its text: KaTeX with the glyphs the course uses, and the theme's files without what no page needs."""

import base64
import io
import logging
import re
import shutil

from fontTools import subset
from PIL import Image

from book import npm

KATEX = "0.16.22"
# The two fonts of nearly every formula travel in the style sheet: nothing jumps when they arrive.
EMBEDDED = ("KaTeX_Main-Regular", "KaTeX_Math-Italic")
UNUSED = (
    "scripts/fontawesome.js",
    "scripts/*.LICENSE.txt",
    "scripts/*.map",
    "styles/*.map",
    "vendor",
    "sphinx-thebe.*",
    "sphinx-design.min.css",
    "design-tabs.js",
    "togglebutton.*",
    "translations.js",
    "doctools.js",
    "sphinx_highlight.js",
    "searchtools.js",
    "language_data.js",
    "locales",
    "images",
    "webpack-macros.html",
    "sbt-webpack-macros.html",
    "root.html",
    "404.html",
    "readme.png",
    "*-solid.svg",
    "copy-button.svg",
    "claims.js",
    "file.png",
    "minus.png",
    "plus.png",
)
_FONT_SOURCE = re.compile(r"src:url\(fonts/([\w-]+)\.woff2\)[^}]*")


def prepare_katex(folder, script):
    """Put KaTeX's style sheet into `folder` and its script, which only the build runs, at the path `script`."""
    dist = npm.unpacked("katex", KATEX) / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(dist / "katex.min.css", folder)
    shutil.copy(dist / "katex.min.js", script)


def slim_theme(static):
    """Remove from an edition's _static folder what no page loads, and the icon font from the theme's style sheet."""
    for pattern in UNUSED:
        for path in static.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    sheet = static / "styles" / "pydata-sphinx-theme.css"
    css = re.sub(r"/\*.*?\*/", "", sheet.read_text("utf8"), flags=re.S)
    css = re.sub(r"@font-face\{[^}]*Font Awesome[^}]*\}", "", css)
    css = re.sub(r"(?<=[}{])(?:\.fa[\w:.()>*-]*,?)+\{[^{}]*\}", "", css)
    sheet.write_text(css, "utf8")


def shrink_figures(editions):
    """Turn the figures into lossless WebP, which needs half the bytes; the editions share most of them."""
    done = {}
    for edition in editions:
        for path in (edition / "_images").glob("*.png"):
            if path.name not in done:
                content = io.BytesIO()
                Image.open(path).save(content, "WEBP", lossless=True, quality=60, method=2)
                done[path.name] = content.getvalue()
            path.with_suffix(".webp").write_bytes(done[path.name])
            path.unlink()
        for page in edition.glob("*.html"):
            text = re.sub(r"(_images/\w+)\.png", r"\1.webp", page.read_text("utf8"))
            page.write_text(text, "utf8")


def subset_fonts(editions):
    """Give each edition KaTeX's fonts with the glyphs that the formulas of the whole site show."""
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it doubts that KaTeX was made when its fonts say
    lists = [edition / "_static" / "katex" / "glyphs.txt" for edition in editions]
    characters = "".join(path.read_text("utf8") for path in lists)
    files = sorted((npm.unpacked("katex", KATEX) / "dist" / "fonts").glob("*.ttf"))
    fonts = {path.stem: _subset(path, characters) for path in files}
    for edition, glyphs in zip(editions, lists, strict=True):
        glyphs.unlink()
        folder = edition / "_static" / "katex"
        (folder / "fonts").mkdir(exist_ok=True)
        for name, content in fonts.items():
            if name not in EMBEDDED:
                (folder / "fonts" / f"{name}.woff").write_bytes(content)
        css = (folder / "katex.min.css").read_text("utf8")
        css = _FONT_SOURCE.sub(lambda match: f"src:{_source(match[1], fonts)}", css)
        (folder / "katex.min.css").write_text(css, "utf8")


def _subset(path, characters):
    options = subset.Options(layout_features=["*"], hinting=False, notdef_outline=True)
    font = subset.load_font(path, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=characters)
    subsetter.subset(font)
    font.flavor = "woff"  # compressed by zlib; woff2 would need one more package
    content = io.BytesIO()
    font.save(content)
    return content.getvalue()


def _source(name, fonts):
    if name not in EMBEDDED:
        return f'url(fonts/{name}.woff) format("woff")'
    return f'url(data:font/woff;base64,{base64.b64encode(fonts[name]).decode()}) format("woff")'
