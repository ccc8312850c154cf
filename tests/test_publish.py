"""The published course: launch buttons, notebooks that fetch the package, and their run where nothing else is."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from importlib import util
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest

from book import LANGS, ROOT, publish, website
from book.compose import WORDS
from book.publish import Place
from tests.conftest import serve
from tests.test_editions import RUNS_HERE, WITH_CODE, extras_of
from tests.test_environments import new_environment, run

PLACE = Place("someone/course", "https://someone.example/course")


def setup_cell(notebook):
    (cell,) = (c for c in notebook["cells"] if "setup" in c["metadata"].get("tags", ()))
    return cell


@pytest.fixture(params=LANGS)
def first_cell(request):
    """The source of the first code cell in one language."""
    source = (ROOT / "book" / "first_cell.py").read_text("utf8")
    return WORDS.sub(lambda match: match[1 + LANGS.index(request.param)], source)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_a_committed_notebook_opens_with_a_cell_that_names_no_address(path, lang):
    notebook = nbformat.read(path.parent / lang / f"{path.stem}.ipynb", as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert first is setup_cell(notebook)
    assert 'WHEEL = ""' in first.source and "://" not in first.source
    assert first.outputs == []


def test_the_first_cell_does_nothing_where_companion_is_there(first_cell, monkeypatch, capsys):
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("something was installed"))
    exec(first_cell, {})
    assert capsys.readouterr().out == ""


@pytest.fixture
def no_companion(monkeypatch):
    """Hide companion from the first cell, and return a function that says what its pip does instead."""
    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "companion" else find(name))

    def pip(returncode=0, **versions):
        def fake(command, **options):
            assert command[1:4] == ["-m", "pip", "install"] and "--no-deps" in command
            real = importlib.metadata.version
            monkeypatch.setattr(importlib.metadata, "version", lambda name: versions.get(name) or real(name))
            return subprocess.CompletedProcess(command, returncode, "what pip said", "")

        monkeypatch.setattr(subprocess, "run", fake)

    return pip


def test_without_an_address_the_first_cell_says_what_to_do(first_cell, no_companion):
    with pytest.raises(ModuleNotFoundError, match=r"pip install \."):
        exec(first_cell, {})


def stamped(source):
    return source.replace('WHEEL = ""', 'WHEEL = "https://someone.example/a.whl"')


def test_the_first_cell_says_what_it_installed_and_what_stayed(first_cell, no_companion, capsys):
    no_companion()
    exec(stamped(first_cell), {})
    said = capsys.readouterr().out
    assert "companion" in said and importlib.metadata.version("numpy") in said


@pytest.mark.parametrize("fault", [{"returncode": 1}, {"numpy": "0.1"}])
def test_the_first_cell_stops_where_pip_fails_or_replaces_numpy(first_cell, no_companion, fault):
    no_companion(**fault)
    with pytest.raises(RuntimeError, match="what pip said"):
        exec(stamped(first_cell), {})


@pytest.mark.parametrize("lang", LANGS)
def test_a_stamped_notebook_differs_in_the_address_and_in_links_only(tmp_path, lang):
    source = ROOT / "chapters" / lang / "04_rope.ipynb"
    publish.write_notebook(source, tmp_path / "a.ipynb", PLACE)
    before, after = (nbformat.read(path, as_version=4) for path in (source, tmp_path / "a.ipynb"))
    changed = [(a.source, b.source) for a, b in zip(before.cells, after.cells, strict=True) if a != b]
    wheel = f'WHEEL = "{PLACE.site}/{publish.wheel_name()}"'
    assert (setup_cell(before).source.replace('WHEEL = ""', wheel)) == setup_cell(after).source
    for old, new in changed:
        assert (
            re.sub(r"\]\((\w+)\.ipynb", rf"]({PLACE.site}/{lang}/\1.html", old).replace('WHEEL = ""', wheel)
            == new
        )
    assert len(changed) > 1
    assert not any(re.search(r"\]\(\w+\.ipynb", cell.source) for cell in after.cells)


def test_a_notebook_without_the_first_cell_is_not_published(tmp_path):
    (tmp_path / "en").mkdir()
    source = tmp_path / "en" / "old.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import companion")]), source)
    with pytest.raises(ValueError, match=r"old\.ipynb.*make notebooks"):
        publish.write_notebook(source, tmp_path / "a.ipynb", PLACE)


def test_without_a_site_the_notebook_is_the_committed_one(tmp_path):
    source = ROOT / "chapters" / "en" / "04_rope.ipynb"
    publish.write_notebook(source, tmp_path / "a.ipynb", Place())
    assert (tmp_path / "a.ipynb").read_bytes() == source.read_bytes()


def test_the_environment_says_where_the_course_lives(monkeypatch):
    monkeypatch.setenv("COURSE_REPOSITORY", "someone/course")
    monkeypatch.setenv("COURSE_SITE", "https://someone.example/course/")
    assert publish.known_place() == PLACE
    assert publish.known_place().root == "/course/"


@pytest.mark.parametrize(
    ("name", "value"), [("COURSE_REPOSITORY", "course"), ("COURSE_SITE", "someone.example")]
)
def test_a_place_that_is_none_is_refused_by_name(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=rf"{value}.*{name}"):
        publish.known_place()


def test_a_site_without_a_place_is_not_published(monkeypatch):
    monkeypatch.setattr(publish, "known_place", Place)
    monkeypatch.setattr(sys, "argv", ["website", "--publish"])
    with pytest.raises(SystemExit, match="COURSE_REPOSITORY"):
        website.main()


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Build the site that is published, serve it at the address it was built for, and return (folder, Place)."""
    folder = tmp_path_factory.mktemp("published")
    with serve(folder) as address:
        place = Place("someone/course", address)
        website.build(folder / "site", place)
        for path in (folder / "site").iterdir():  # the server looks into the folder that was there before
            path.rename(folder / path.name)
        yield folder, place


@pytest.mark.slow
def test_every_launch_button_opens_a_notebook_of_its_page(published):
    folder, place = published
    targets = []
    for page in folder.glob("*/*.html"):
        for link in re.findall(r'class="dropdown-item launch" href="([^"]+)"', page.read_text("utf8")):
            address = urlsplit(link.replace("&amp;", "&"))
            if address.netloc.startswith("colab"):
                path = address.path.removeprefix(f"/github/{place.repository}/blob/gh-pages/")
                target = folder / path
            else:
                target = ROOT / parse_qs(address.query)["urlpath"][0].removeprefix("lab/tree/")
                assert not extras_of(target.parent.parent / f"{target.stem}.md")
            assert target.stem == page.stem and target.parent.name == page.parent.name
            nbformat.validate(nbformat.read(target, as_version=4))
            targets.append(target)
    assert sum(target.is_relative_to(folder) for target in targets) == len(LANGS) * len(WITH_CODE)


@pytest.mark.slow
def test_the_wheel_holds_the_present_package(published):
    folder, _ = published
    with zipfile.ZipFile(folder / publish.wheel_name()) as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist() if name.startswith("companion/")}
    present = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in (ROOT / "companion").rglob("*")
        if path.suffix in (".py", ".html")
    }
    assert held == present


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return a function that gives an environment with a few packages of those that Colab has, and without companion."""
    few = ["-c", "constraints.txt", "numpy", "sympy", "matplotlib", "ipython"]

    @cache
    def having(*extras):
        return new_environment(tmp_path_factory.mktemp("bare") / "venv", *few, *extras)

    return having


RUN_CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1], encoding="utf8"))["cells"]:
    if cell["cell_type"] == "code":
        shell.run_cell("".join(cell["source"])).raise_error()
"""


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_a_published_notebook_runs_in_an_empty_folder(published, bare, tmp_path, monkeypatch, path, lang):
    folder, place = published
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if path not in RUNS_HERE:
        pytest.skip(f"this lesson needs {extras_of(path)}, which are tested on Python 3.11")
    python = bare(*("torch", "triton") if extras_of(path) else ())
    run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "where-order-lives")
    failed = subprocess.run([python, "-c", "import companion"], capture_output=True, cwd=tmp_path)
    assert failed.returncode
    source = json.loads((folder / lang / f"{path.stem}.ipynb").read_text("utf8"))
    shutil.copy(folder / lang / f"{path.stem}.ipynb", tmp_path)
    said = run(
        python,
        "-c",
        RUN_CELLS,
        f"{path.stem}.ipynb",
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert place.site in "".join(setup_cell(source)["source"])
    assert importlib.metadata.version("numpy") in said.splitlines()[0]
