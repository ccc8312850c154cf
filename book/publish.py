"""Where the course lives on the web, and what only a published site has: stamped notebooks, the wheel, an archive.

`repository:` and `html: baseurl:` in _config.yml say where the course lives, or COURSE_REPOSITORY (owner/name)
and COURSE_SITE in the environment. A site that knows neither has no launch buttons, and its notebooks name no address.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import yaml

from book import ROOT

ARCHIVE = "where-order-lives.zip"
_BLANK = 'WHEEL = ""'
_OFFLINE = re.compile(r'<p class="offline[^>]*>.*?</p>', re.S)
# Links between notebooks; Colab knows no neighbour of a notebook, so a published one points to the site's pages.
_NEIGHBOUR = re.compile(r"\]\((\w+)\.ipynb(#[^)]*)?\)")


class Place(NamedTuple):
    repository: str = ""  # owner/name on GitHub
    site: str = ""  # address of the folder that holds zh/ and en/, without a slash at its end

    @property
    def root(self):
        """The path of the site on its host, for the page that answers at any address."""
        return urlsplit(self.site).path + "/"


def known_place():
    """Return the Place that the environment or _config.yml names; ValueError if what they name is none."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    url = (config.get("repository") or {}).get("url") or ""
    repository = os.environ.get("COURSE_REPOSITORY") or urlsplit(url).path.strip("/")
    site = (os.environ.get("COURSE_SITE") or config["html"].get("baseurl") or "").rstrip("/")
    if repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ValueError(f"the repository must read owner/name, got {repository!r}; change COURSE_REPOSITORY")
    if site and not re.match(r"https?://[^/]", site):
        raise ValueError(f"the site's address must begin with https://, got {site!r}; change COURSE_SITE")
    return Place(repository, site)


def write_notebook(source, target, place):
    """Copy a composed notebook; where the site's address is known, its first code cell installs the wheel from there."""
    text = source.read_text("utf8")
    if place.site:
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            lines = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                lines = _NEIGHBOUR.sub(rf"]({place.site}/{source.parent.name}/\1.html\2)", lines)
            elif "setup" in cell["metadata"].get("tags", ()):
                lines = lines.replace(_BLANK, f'WHEEL = "{place.site}/{wheel_name()}"')
            cell["source"] = lines.splitlines(keepends=True)
        stamped = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
        if wheel_name() not in stamped:
            raise ValueError(
                f"{source.name}: there is no first code cell with the line {_BLANK}; run make notebooks"
            )
        text = stamped
    target.write_text(text, "utf8")


def wheel_name():
    """Return the name of the file that `pip wheel` makes of this project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    return f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"


def write_wheel(folder):
    """Build the wheel of companion from the present tree into a folder."""
    with tempfile.TemporaryDirectory() as work:
        # In a copy: a build leaves its files behind, and the next wheel would hold modules that are gone.
        shutil.copytree(
            ROOT / "companion", Path(work) / "companion", ignore=shutil.ignore_patterns("__pycache__")
        )
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, work)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, work]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"the wheel of companion cannot be built:\n{done.stdout}{done.stderr}")
    if not (folder / wheel_name()).exists():
        raise ValueError(
            f"the wheel of companion is not called {wheel_name()}: compare wheel_name in book/publish.py"
        )


def write_archive(site):
    """Write the archive of a site, which opens from the disk: without the link to itself, and before it has an index."""
    files = [path for path in sorted(site.rglob("*")) if path.is_file() and path.name != ARCHIVE]
    with zipfile.ZipFile(site / ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in files:
            content = path.read_bytes()
            if path.suffix == ".html":
                content = _OFFLINE.sub("", content.decode("utf8")).encode("utf8")
            archive.writestr(f"where-order-lives/{path.relative_to(site)}", content)
