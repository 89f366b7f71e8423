"""The documentation is true: its code runs, its shown output is what comes out, and what it points to exists."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import prade

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
MODULES = ["prade", *(m.name for m in pkgutil.walk_packages(prade.__path__, "prade."))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
QUOTED = re.compile(r"`([^`\n]+)`")


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=page_id)
each_linked_page = pytest.mark.parametrize("page", LINKED, ids=page_id)


@dataclass(frozen=True)
class Block:
    """A fenced block of Python, with the line it starts at."""

    code: str
    line: int

    def run(self, namespace: dict[str, Any], page: Path) -> None:
        if ">>> " not in self.code:
            # the empty lines make a traceback name the page's own line
            exec(compile("\n" * self.line + self.code, str(page), "exec"), namespace)
            return
        name = f"{page_id(page)}:{self.line}"
        test = doctest.DocTestParser().get_doctest(self.code, namespace, name, str(page), self.line)
        report: list[str] = []
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False).failed
        namespace.update(test.globs)
        assert not failed, "".join(report)


def python_blocks(text: str) -> list[Block]:
    return [
        Block(match["body"], text[: match.start()].count("\n") + 1)
        for match in FENCE.finditer(text)
        if match["language"] == "python"
    ]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that a heading can be linked by: lower case, punctuation gone, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in python_blocks(page.read_text("utf-8")):
        block.run(namespace, page)


def test_readme_shows_code() -> None:
    assert python_blocks((ROOT / "README.md").read_text("utf-8"))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


def test_some_module_has_doctests() -> None:
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module("prade.prior"))
    assert any(test.examples for test in found)


@each_linked_page
def test_links_resolve(page: Path) -> None:
    for match in LINK.finditer(prose(page)):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"\w+:", target):
            continue  # another site: not checked here
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page_id(page)} links to {target}, which does not exist"
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{page_id(page)} links to {match['target']}: no such heading"


@each_linked_page
def test_named_files_and_tests_exist(page: Path) -> None:
    for quoted in QUOTED.findall(prose(page)):
        if not re.fullmatch(r"(src|tests|docs|benchmarks)/[\w./-]+\.\w+(::\w+)?", quoted):
            continue
        path, _, function = quoted.partition("::")
        assert (ROOT / path).is_file(), f"{page_id(page)} names {path}, which does not exist"
        if function:
            assert f"def {function}(" in (ROOT / path).read_text("utf-8"), f"{page_id(page)} names {quoted}"


@each_linked_page
def test_named_objects_exist(page: Path) -> None:
    for quoted in QUOTED.findall(prose(page)):
        if re.fullmatch(r"prade(\.\w+)+", quoted):
            assert found(quoted), f"{page_id(page)} names {quoted}, which does not exist"


def found(dotted: str) -> bool:
    """Whether a dotted name leads from a module to an object."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(thing, attribute) and attribute not in getattr(thing, "__annotations__", {}):
                return False
            thing = getattr(thing, attribute, None)
        return True
    return False


# What the checks above are worth: each must be able to fail.


def test_a_wrong_output_is_noticed() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        Block(">>> 1 + 1\n3\n", 1).run({}, ROOT / "README.md")


def test_blocks_share_a_namespace() -> None:
    namespace: dict[str, Any] = {}
    for block in python_blocks("```python\nx = 1\n```\ntext\n```python\n>>> y = x + 1\n>>> y\n2\n```\n"):
        block.run(namespace, ROOT / "README.md")
    assert namespace["y"] == 2


def test_names_that_do_not_exist_are_noticed() -> None:
    assert found("prade.prior.Prior.from_table")
    assert not found("prade.prior.Posterior")
    assert not found("prade.nowhere.Prior")
