"""Build the website: _config.yml + _toc.yml + the composed editions -> _build/site/{zh,en}/ and a root page."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from book import CHAPTERS, LANGS, ROOT

BOOK, BUILD = ROOT / "book", ROOT / "_build"
SITE, VENDOR = BUILD / "site", BUILD / "vendor"
KATEX_VERSION = "0.16.22"
EXTENSIONS = ("bilingual", "katex_static", "course_map", "ledger")
# Scripts that no page needs: the icons come from the theme's web font as well, and nothing runs through thebe.
_UNUSED = re.compile(
    r"<script[^>]*(?:fontawesome|sphinx-thebe)[^>]*></script>"
    r"|<link[^>]*(?:fontawesome\.js|sphinx-thebe)[^>]*>"
    r"|<script>(?:(?!</script>).)*THEBE_JS_URL(?:(?!</script>).)*</script>",
    re.S,
)


def fetch_katex():
    """Unpack KaTeX from npm into _build/vendor: the script serves the build, style sheet and fonts go to the site."""
    if (VENDOR / "katex" / "katex.min.css").exists():
        return
    if not shutil.which("npm"):
        raise ValueError(
            "npm is missing (it fetches KaTeX): install it with 'apt-get install npm' or from nodejs.org"
        )
    work = BUILD / "npm"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["npm", "pack", f"katex@{KATEX_VERSION}", "--silent"], cwd=work, check=True, stdout=subprocess.DEVNULL
    )
    shutil.unpack_archive(work / f"katex-{KATEX_VERSION}.tgz", work)
    dist = work / "package" / "dist"
    (VENDOR / "katex" / "fonts").mkdir(parents=True, exist_ok=True)
    for font in dist.glob("fonts/*.woff2"):
        shutil.copy(font, VENDOR / "katex" / "fonts")
    shutil.copy(dist / "katex.min.js", BUILD)
    # Without the sources that only browsers of before 2016 ask for: they are not in the site.
    css = re.sub(
        r",url\([^)]*\.(?:woff|ttf)\) format\(\"(?:woff|truetype)\"\)",
        "",
        (dist / "katex.min.css").read_text("utf8"),
    )
    (VENDOR / "katex" / "katex.min.css").write_text(css, "utf8")


def edition_toc(toc, lang):
    """Return the part of _toc.yml that lists the files of one edition, relative to its folder."""
    prefix = f"chapters/{lang}/"
    files = [c["file"] for part in toc["parts"] for c in part["chapters"] if c["file"].startswith(prefix)]
    names = [file.removeprefix(prefix) for file in files]
    return {
        "format": "jb-book",
        "root": "index",
        "chapters": [{"file": name} for name in names if name != "index"],
    }


def edition_config(config, lang):
    """Return _config.yml with what book/{lang}.yml adds to it and what only the website has."""
    config = _merged(config, _edition(lang)["config"])
    config["html"]["favicon"] = os.path.relpath(ROOT / config["html"]["favicon"], CHAPTERS / lang)
    config["sphinx"]["local_extensions"] = {name: str(BOOK / "extensions") for name in EXTENSIONS}
    config["sphinx"]["config"] |= {
        "html_css_files": ["course.css"],
        "html_math_renderer": "katex_static",
        "html_static_path": [str(BOOK / "static"), str(VENDOR)],
        "katex_script": str(BUILD / "katex.min.js"),
        "locale_dirs": [str(BOOK / "locale")],
        "templates_path": [str(BOOK / "templates")],
    }
    return config


def build_edition(lang):
    """Build one edition with Jupyter Book; any warning is an error and ends in ValueError with Sphinx's messages."""
    work = BUILD / "work" / lang
    work.mkdir(parents=True, exist_ok=True)
    config, toc = (yaml.safe_load((ROOT / name).read_text("utf8")) for name in ("_config.yml", "_toc.yml"))
    for name, data in (("_config.yml", edition_config(config, lang)), ("_toc.yml", edition_toc(toc, lang))):
        (work / name).write_text(yaml.safe_dump(data, allow_unicode=True), "utf8")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", CHAPTERS / lang]
    command += [
        "--config",
        work / "_config.yml",
        "--toc",
        work / "_toc.yml",
        "--path-output",
        work,
        "-W",
        "-n",
        "--keep-going",
        "--all",
    ]
    built = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    if built.returncode:
        lines = [
            line
            for line in (built.stdout + built.stderr).splitlines()
            if re.search(r"WARNING|ERROR|Error", line)
        ]
        raise ValueError(
            f"the {lang} edition does not build:\n" + "\n".join(lines or [built.stdout + built.stderr])
        )
    shutil.copytree(work / "_build" / "html", SITE / lang)
    for page in (SITE / lang).rglob("*.html"):
        text = _UNUSED.sub("", page.read_text("utf8"))
        for words, translated in _edition(lang)["untranslated"].items():
            text = text.replace(f'"{words}"', f'"{translated}"')
        page.write_text(text, "utf8")
    print(f"  {lang}: built without a warning", flush=True)


def index_search():
    """Write the full-text index of both languages to _build/site/pagefind/."""
    command = [
        sys.executable,
        "-m",
        "pagefind",
        "--site",
        SITE,
        "--exclude-selectors",
        ".katex-html, annotation, .headerlink",
    ]
    subprocess.run(command, check=True, capture_output=True)


def build():
    fetch_katex()
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True)
    for lang in LANGS:
        build_edition(lang)
    shutil.copy(BOOK / "static" / "root.html", SITE / "index.html")
    (SITE / ".nojekyll").touch()
    index_search()


def _edition(lang):
    return yaml.safe_load((BOOK / f"{lang}.yml").read_text("utf8"))


def _merged(base, extra):
    both = dict(base)
    for key, value in extra.items():
        both[key] = _merged(base.get(key) or {}, value) if isinstance(value, dict) else value
    return both


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        build()
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
