"""Build the website: _config.yml + _toc.yml + the composed editions -> _build/site/{zh,en}/ and a root page."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from book import CHAPTERS, LANGS, ROOT, assets, pages, publish, styles
from book.in_page import runtime

BOOK, BUILD = ROOT / "book", ROOT / "_build"
SITE, VENDOR = BUILD / "site", BUILD / "vendor"
EXTENSIONS = ("bilingual", "katex_static", "course_map", "ledger", "foreign", "run_in_page")


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


def edition_config(config, lang, place, python):
    """Return _config.yml with what book/{lang}.yml adds to it and what only the website has."""
    config = _merged(config, _edition(lang)["config"])
    config["html"]["favicon"] = os.path.relpath(ROOT / config["html"]["favicon"], CHAPTERS / lang)
    config["html"]["baseurl"] = f"{place.site}/{lang}/" if place.site else ""
    config["sphinx"]["local_extensions"] = {name: str(BOOK / "extensions") for name in EXTENSIONS}
    config["sphinx"]["config"]["html_context"] |= {
        "repository": place.repository,
        "site_address": place.site,
    }
    config["sphinx"]["config"] |= {
        "html_copy_source": False,
        "html_css_files": ["course.css"],
        "html_math_renderer": "katex_static",
        "html_static_path": [str(BOOK / "static"), str(VENDOR)],
        "html_use_index": False,
        "katex_script": str(BUILD / "katex.min.js"),
        "locale_dirs": [str(BOOK / "locale")],
        "run_in_page": python,
        "templates_path": [str(BOOK / "templates")],
    }
    return config


def build_edition(lang, target, place, python):
    """Build one edition into the folder `target`; any warning is an error: ValueError with Sphinx's messages."""
    work = BUILD / "work" / lang
    shutil.rmtree(work, ignore_errors=True)  # Sphinx would keep pages that are gone
    work.mkdir(parents=True)
    config, toc = (yaml.safe_load((ROOT / name).read_text("utf8")) for name in ("_config.yml", "_toc.yml"))
    made = (
        ("_config.yml", edition_config(config, lang, place, python)),
        ("_toc.yml", edition_toc(toc, lang)),
    )
    for name, data in made:
        (work / name).write_text(yaml.safe_dump(data, allow_unicode=True), "utf8")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", CHAPTERS / lang]
    command += ["--config", work / "_config.yml", "--toc", work / "_toc.yml", "--path-output", work]
    command += ["-W", "-n", "--keep-going"]
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    built = subprocess.run(command, capture_output=True, text=True, env=environment)
    if built.returncode:
        raise ValueError(f"the {lang} edition does not build:\n" + _faults(built.stdout + built.stderr, lang))
    shutil.copytree(work / "_build" / "html", target)
    assets.slim_theme(target / "_static")
    for page in target.glob("*.html"):
        options = (target / "_static" / "documentation_options.js").read_text("utf8")
        text = pages.mend(page.read_text("utf8"), _edition(lang)["untranslated"], options)
        page.write_text(text, "utf8")
    (target / "_static" / "documentation_options.js").unlink()
    for notebook in CHAPTERS.glob(f"{lang}/*.ipynb"):
        publish.write_notebook(notebook, target / notebook.name, place)
    print(f"  {lang}: built without a warning", flush=True)


def finish(site, place):
    """Add to the built editions what they share: anchors, fonts, root page, archive, Python for the pages, full-text search, package."""
    editions = [site / lang for lang in LANGS]
    texts = [{page.stem: page.read_text("utf8") for page in edition.glob("*.html")} for edition in editions]
    for name, page in pages.unify_anchors(texts[0], texts[1]).items():
        (editions[0] / f"{name}.html").write_text(page, "utf8")
    assets.shrink_figures(editions)
    assets.subset_fonts(editions)
    for edition in editions:
        styles.bundle(edition)
    for name in ("index.html", "404.html"):
        source = "root.html" if name == "index.html" else name
        text = (BOOK / "static" / source).read_text("utf8").replace("{{root}}", place.root)
        (site / name).write_text(text, "utf8")
    (site / ".nojekyll").touch()
    publish.write_archive(site)
    shutil.copytree(BUILD / "python", site / "python")
    index_search(site)
    if place.site:
        publish.write_wheel(site)


def index_search(site):
    """Write the full-text index of both languages to pagefind/ in the site."""
    skipped = ".katex-html, .headerlink, .cell_input, .cell_output"
    command = [sys.executable, "-m", "pagefind", "--site", site, "--exclude-selectors", skipped]
    subprocess.run(command, check=True, capture_output=True)
    for unused in (site / "pagefind").glob("pagefind-*ui.*"):
        unused.unlink()


def build(target=SITE, place=None):
    """Build both editions beside the folder `target` and put them in its place once both are whole."""
    place = publish.known_place() if place is None else place
    assets.prepare_katex(VENDOR / "katex", BUILD / "katex.min.js")
    python = runtime.assemble(BUILD / "python", {"katex.min.js": (BUILD / "katex.min.js").read_bytes()})
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)

    def one(lang):
        try:
            build_edition(lang, fresh / lang, place, python)
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(len(LANGS)) as pool:
        faults = [fault for fault in pool.map(one, LANGS) if fault]
    if faults:
        raise ValueError("\n".join(faults))
    finish(fresh, place)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--publish", action="store_true", help="build into _build/publish, for the address in COURSE_SITE"
    )
    arguments = parser.parse_args()
    _say_what_is_stale()
    try:
        if not arguments.publish:
            build()
        elif all(place := publish.known_place()):
            build(BUILD / "publish", place)
        else:
            raise ValueError(
                "a published site must know where it lives: set COURSE_REPOSITORY=owner/name and "
                "COURSE_SITE=https://… in the environment, or repository: url: and html: baseurl: in _config.yml"
            )
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
