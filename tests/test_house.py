"""The house itself: the tree in the README, its commands, the one list of dependencies."""

import importlib.metadata
import re
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from book import LANGS, ROOT
from book.lesson import lesson_paths

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
READMES = ["README.md", "README.zh.md"]


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return [line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def commands_of(readme):
    return re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / readme).read_text("utf8"), re.M)


@pytest.mark.parametrize("readme", READMES)
def test_the_tree_in_the_readme_is_the_tree_on_the_disk(readme):
    top = {path.split("/")[0] for path in tracked()}
    tree = (ROOT / readme).read_text("utf8").split("```\nREADME.md ")[1].split("```")[0]
    names = {name for line in tree.splitlines() for name in re.split(r" {3,}", line)[0].split()}
    assert names | {"README.md"} == top - {".gitignore"}


@pytest.mark.parametrize("readme", READMES)
def test_every_command_in_the_readme_is_a_target(readme):
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text("utf8"), re.M))
    commands = set(commands_of(readme))
    assert {"book", "test"} <= commands <= targets


@pytest.mark.parametrize("readme", READMES)
def test_every_local_link_of_the_readme_leads_somewhere(readme):
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / readme).read_text("utf8"))
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_the_two_readmes_show_the_same_commands():
    first, second = map(commands_of, READMES)
    assert sorted(first) == sorted(second)


def test_numpy_is_the_only_dependency_one_must_have():
    assert [Requirement(line).name for line in PROJECT["dependencies"]] == ["numpy"]
    assert {"torch", "kernels", "site", "notebooks", "classroom", "dev"} <= set(
        PROJECT["optional-dependencies"]
    )


def test_every_dependency_has_one_pinned_version_that_satisfies_it():
    lines = [
        line for line in (ROOT / "constraints.txt").read_text("utf8").splitlines() if line and line[0] != "#"
    ]
    pins = {}
    for requirement in map(Requirement, lines):
        assert [part.operator for part in requirement.specifier] == ["=="], requirement
        pins[requirement.name.lower().replace("_", "-")] = next(iter(requirement.specifier)).version
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in map(Requirement, (line for group in groups for line in group)):
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_the_pinned_versions_accept_the_first_release_of_every_python():
    refusing = []
    for distribution in importlib.metadata.distributions():
        wanted = SpecifierSet(distribution.metadata.get("Requires-Python") or "")
        refusing += [(distribution.name, v) for v in ("3.11.0", "3.12.0", "3.13.0") if not wanted.contains(v)]
    assert refusing == []


@pytest.mark.parametrize("lang", LANGS)
def test_the_table_of_contents_lists_every_lesson(lang):
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    files = [parts["root"], *(chapter["file"] for part in parts["parts"] for chapter in part["chapters"])]
    listed = {file.split("/")[-1] for file in files if file.startswith(f"chapters/{lang}/")}
    assert listed == {path.stem for path in lesson_paths()}, "_toc.yml does not list the lessons of chapters/"


def test_the_environment_file_has_no_list_of_its_own():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))
    python, pip, section = environment["dependencies"]
    assert python.startswith("python=3.") and pip == "pip"
    assert section["pip"][0] == "-c constraints.txt" and all(line.startswith("-") for line in section["pip"])
