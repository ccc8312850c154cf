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
    command = ["npm", "pack", f"katex@{KATEX_VERSION}", "--silent"]
    try:
        subprocess.run(command, cwd=work, check=True, capture_output=True, timeout=300)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"npm could not fetch KaTeX: {error}; check the network, then run again") from None
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


def build_edition(lang, target):
    """Build one edition into the folder `target`; any warning is an error: ValueError with Sphinx's messages."""
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
        raise ValueError(f"the {lang} edition does not build:\n" + _faults(built.stdout + built.stderr, lang))
    shutil.copytree(work / "_build" / "html", target)
    for page in target.rglob("*.html"):
        text = _UNUSED.sub("", page.read_text("utf8"))
        for words, translated in _edition(lang)["untranslated"].items():
            text = text.replace(f'"{words}"', f'"{translated}"')
        page.write_text(text, "utf8")
    print(f"  {lang}: built without a warning", flush=True)


def index_search(site):
    """Write the full-text index of both languages to pagefind/ in the site."""
    command = [
        sys.executable,
        "-m",
        "pagefind",
        "--site",
        site,
        "--exclude-selectors",
        ".katex-html, annotation, .headerlink",
    ]
    subprocess.run(command, check=True, capture_output=True)


def build():
    """Build both editions beside the present site and put them in its place once both are whole."""
    fetch_katex()
    fresh, faults = BUILD / "site.new", []
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for lang in LANGS:
        try:
            build_edition(lang, fresh / lang)
        except ValueError as error:
            faults.append(str(error))
    if faults:
        raise ValueError("\n".join(faults))
    shutil.copy(BOOK / "static" / "root.html", fresh / "index.html")
    (fresh / ".nojekyll").touch()
    index_search(fresh)
    shutil.rmtree(SITE, ignore_errors=True)
    fresh.rename(SITE)


def _faults(output, lang):
    """Return Sphinx's warnings with the cell instead of its number in the millions, and the source to change."""
    lines = []
    for line in re.sub(r"\x1b\[[\d;]*m", "", output).splitlines():
        if re.search(r"WARNING|ERROR|Error", line):
            line = line.replace(f"{ROOT}/", "")
            place = re.match(r"chapters/\w+/(\w+)\.(?:ipynb:(\d+))?", line)
            if place and place[2]:
                cell, row = divmod(int(place[2]), 10_000)
                line = line.replace(f":{place[2]}:", f", cell {cell}, line {row}:")
            lines.append(line + (f" (change chapters/{place[1]}.md, then make notebooks)" if place else ""))
    return "\n".join(lines or [output])


def _say_what_is_stale():
    # A minute, for a fresh clone writes all files at about the same time.
    for source in sorted(CHAPTERS.glob("*.md")):
        editions = list(CHAPTERS.glob(f"*/{source.stem}.*"))
        if editions and source.stat().st_mtime > 60 + min(edition.stat().st_mtime for edition in editions):
            print(
                f"  chapters/{source.name} is newer than its editions: run make notebooks first", flush=True
            )


def _edition(lang):
    return yaml.safe_load((BOOK / f"{lang}.yml").read_text("utf8"))


def _merged(base, extra):
    both = dict(base)
    for key, value in extra.items():
        both[key] = _merged(base.get(key) or {}, value) if isinstance(value, dict) else value
    return both


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    _say_what_is_stale()
    try:
        build()
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
