"""What describes the project says the same everywhere: version, requirements, Pythons; and the pages stay short."""

import re
import tomllib
from pathlib import Path

import prade

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_WORDS = 30_000
MOST_WORDS_OF_README = 700


def text(name):
    return (ROOT / name).read_text("utf-8")


def test_the_version_stands_in_one_place_and_others_agree():
    assert PROJECT["dynamic"] == ["version"]
    cited = re.search(r"^version: (.+)$", text("CITATION.cff"), re.MULTILINE)
    conda = re.search(r'set version = "(.+)"', text("conda/meta.yaml"))
    newest = re.search(r"^## \[(\d[^]]*)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert [found[1] for found in (cited, conda, newest) if found] == [prade.__version__] * 3
    assert re.findall(r"[Vv]ersion (\d[\d.]*)", text("README.md")) == []


def test_the_recipe_for_conda_requires_what_the_package_requires():
    listed = text("conda/meta.yaml").split("  run:\n", 1)[1].split("\n\n", 1)[0]
    conda = {line.strip(" -").replace(" ", "") for line in listed.splitlines()}
    assert conda == {"python" + PROJECT["requires-python"], *PROJECT["dependencies"]}


def test_every_declared_python_is_checked_on_every_push():
    declared = [each.rsplit(" ", 1)[1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    matrix = text(".github/workflows/check.yml").split("matrix:")[1].split("steps:")[0]
    assert re.findall(r'"(3\.\d+)"', matrix) == declared


def test_users_install_what_the_package_requires_and_nothing_for_development():
    users = set(re.findall(r"^([\w.-]+)==", text("requirements.lock"), re.MULTILINE))
    developers = dict(re.findall(r"^([\w.-]+)==(\S+)", text("requirements-dev.lock"), re.MULTILINE))
    assert {re.split("[>=]", each)[0] for each in PROJECT["dependencies"]} <= users
    assert dict(re.findall(r"^([\w.-]+)==(\S+)", text("requirements.lock"), re.MULTILINE)).items() <= developers.items()
    assert "pytest" not in users


def test_the_pages_stay_short():
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    words = {page.name: len(page.read_text("utf-8").split()) for page in pages}
    assert words["README.md"] <= MOST_WORDS_OF_README
    assert sum(words.values()) <= MOST_WORDS
