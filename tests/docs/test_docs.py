"""The documentation is true: its code runs, its shown output is what comes out, and what it points to exists."""

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest

import prade
from prade.cli import main as cli
from prade.cli.main import every_command
from worlds.commands import commands
from worlds.page_blocks import FLAGS, Block, blocks, run_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
MODULES = ["prade", *(m.name for m in pkgutil.walk_packages(prade.__path__, "prade."))]

FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
QUOTED = re.compile(r"`([^`\n]+)`")
NAMES = re.compile(r"^::: prade\.(\S+)$", re.MULTILINE)
HELP = re.compile(r"<!-- help: (.+?) -->")
VERBS = ("plan", "measure", "estimate", "sample", "report")
STAGES = {verb: (ROOT / "docs" / f"{verb}.md").read_text("utf-8") for verb in VERBS}

# The numbered parts of the paper, and the problem that it merges its two stages into.
PAPER = [
    *("Definition 2.1", "Definition 2.2", "Definition 3.1"),
    *("Theorem 1", "Theorem 2", "Algorithm 1", "Algorithm 2", "merged problem"),
]


def page_id(path):
    return path.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=page_id)
each_linked_page = pytest.mark.parametrize("page", LINKED, ids=page_id)


def prose(page):
    return FENCE.sub("", page.read_text("utf-8"))


def anchors(page):
    """The names that a heading can be linked by: lower case, punctuation gone, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    made = {f"prade.{name}" for name in NAMES.findall(prose(page))}  # by mkdocstrings
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | made


@each_page
@pytest.mark.filterwarnings("ignore:no schema was given")
# Spark leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_code_blocks_run(page, tmp_path, monkeypatch, start_postgres, start_spark, request):
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    environment = {}
    if any(block.language == "bash" for block in blocks(text)):
        programs = request.getfixturevalue("commands_of_pages"), Path(sys.executable).parent, os.environ["PATH"]
        environment["PATH"] = os.pathsep.join(map(str, programs))
    has = set()
    if any(block.needs == "postgres" for block in blocks(text)) and (url := start_postgres()):
        address = urlsplit(url)
        monkeypatch.setenv("PGPASSWORD", str(address.password))
        monkeypatch.setenv("AGENCY", url.replace(f":{address.password}@", "@"))
        has.add("postgres")
    if any(block.needs == "spark" for block in blocks(text)) and start_spark():
        has.add("spark")
    left_out = run_page(text, page_id(page), has, environment)  # a block that fails raises
    assert set(left_out) <= {"postgres", "spark"} - has
    if left_out:
        pytest.skip(f"all other blocks ran; absent: {', '.join(sorted(set(left_out)))}")


CLI = every_command()
COMMANDS = {" ".join(words): command for words, command in commands().items()}


def test_the_reference_has_every_command_once():
    """The five stages have pages of their own, the other commands are on the command line's page."""
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    existing = list(COMMANDS)
    others = [name for name in existing if name not in VERBS]
    assert sorted(re.findall(r"^## `prade (.+)`$", text, re.MULTILINE)) == sorted(others)
    assert sorted(re.findall(r"^\| \[`prade (.+?)`\]", text, re.MULTILINE)) == sorted(existing)
    assert sorted(HELP.findall(text)) == sorted(others)
    for verb, page in STAGES.items():
        assert HELP.findall(page) == [verb]
        assert f"prade {verb} " in "\n".join(block.code for block in blocks(page) if block.language == "bash")
    shown = "\n".join(block.code for block in blocks(text) if block.language == "bash")
    assert [name for name in others if f"prade {name} " not in shown] == []


def test_the_command_line_page_has_the_exit_codes():
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    codes = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
    assert [int(code) for code in codes] == [0, cli.WRONG, 2, cli.TOO_MUCH, cli.INTERRUPTED]


def test_options_that_pages_name_exist():
    parameters = [each for command in COMMANDS.values() for each in command.params]
    known = {option for each in parameters for option in (*each.opts, *each.secondary_opts)} | {"--help", "--version"}
    for page in PAGES:
        for quoted in QUOTED.findall(prose(page)):
            if quoted.startswith(("prade ", "--")) and "=" not in quoted:
                named = re.findall(r"--[a-z][a-z-]*", quoted)
                assert set(named) <= known, f"{page_id(page)} names {quoted}"


def test_indented_commands_are_understood():
    """Commands on files that a reader has and we have not: nothing is run, but every option must exist."""
    seen = 0
    for page in PAGES:
        for line in re.findall(r"^    prade (.+)$", prose(page), re.MULTILINE):
            words = shlex.split(line, comments=True)
            if words and words[0] in CLI.commands:
                command: click.Command = CLI.commands[words[0]]
                command.make_context(words[0], words[1:], parent=click.Context(CLI, **CLI.context_settings))
                seen += 1
    assert seen


def test_the_reference_has_every_public_name_once():
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    pages = {"": text, **{f"{verb}.md": page for verb, page in STAGES.items()}}
    listed = {page: NAMES.findall(words) for page, words in pages.items()}
    names = [name for each in listed.values() for name in each]
    assert sorted(name for name in names if "." not in name) == sorted(set(prade.__all__) - {"__version__"})
    assert [name for name in names if not found(f"prade.{name}")] == []
    linked = {name: (page, anchor) for name, page, anchor in re.findall(r"\[`(\w+)`\]\(([\w.]*)#prade\.(\w+)\)", text)}
    assert linked == {name: (page, name) for page, each in listed.items() for name in each if "." not in name}


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


@each_linked_page
def test_links_resolve(page):
    for match in LINK.finditer(prose(page)):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"\w+:", target):
            continue  # another site: not checked here
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page_id(page)} links to {target}, which does not exist"
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{page_id(page)} links to {match['target']}: no such heading"


@each_linked_page
def test_named_files_tests_and_objects_exist(page):
    for quoted in QUOTED.findall(prose(page)):
        wrong = f"{page_id(page)} names {quoted}, which does not exist"
        if re.fullmatch(r"(src|tests|docs|benchmarks|examples)/[\w./-]+\.\w+(::\w+)?", quoted):
            path, _, function = quoted.partition("::")
            assert (ROOT / path).is_file(), wrong
            assert not function or f"def {function}(" in (ROOT / path).read_text("utf-8"), wrong
        if re.fullmatch(r"prade(\.\w+)+", quoted):
            assert found(quoted), wrong


def test_every_part_of_the_paper_has_its_function_and_its_test():
    text = (ROOT / "docs" / "the-paper-in-the-code.md").read_text("utf-8")
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = [row.strip("| ").split(" | ") for table in tables for row in table.splitlines()[2:]]
    assert len(rows) > 15
    for part, code, test in rows:
        assert re.search(r"`prade\.[\w.]+`", code), f"{part}: {code} names no function"
        assert re.search(r"`tests/[\w/]+\.py(::\w+)?`", test), f"{part}: {test} names no test"
    named = "\n".join(["\n".join(re.findall(r"^#+ .+$", text, re.MULTILINE)), *(part for part, _, _ in rows)])
    for name in PAPER:
        assert name in named, f"no heading and no row of a table is about {name}"


def found(dotted):
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


@pytest.mark.parametrize(
    ("block", "error", "words"),
    [
        (Block("python", ">>> 1 + 1\n3\n"), AssertionError, "Expected"),
        (Block("bash", "echo 2", shown="3\n"), AssertionError, "but prints"),
        (Block("bash", "false; echo 2"), AssertionError, "ended with 1"),
        (Block("", "anything"), AssertionError, "no language"),
        (Block("toml", 'version = 1\n[[column]]\nname = "AGE"\nkind = "number"\n'), prade.PradeError, "kind"),
    ],
)
def test_a_wrong_block_is_noticed(block, error, words):
    with pytest.raises(error, match=words):
        block.run({}, "page")


def test_blocks_share_a_namespace_and_a_folder_and_rehearsals_are_short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "```python\nx = 1\n```\ntext\n```bash\necho $((1 + 1)) > two; cat two\n```\n\n```text\n2\n```\n"
    text += "<!-- needs: moon -->\n```bash\nfalse\n```\n```python\n>>> x + 1\n2\n```\n```bash\nrm two\n```\n"
    assert run_page(text, "page") == ["moon"]
    assert [block.shown for block in blocks(text)] == [None, "2\n", None, None, None]
    text = "```bash\nprade plan --effort 20 -o a\n```\n```python\nprade.plan(task, effort=5)\n```\n"
    assert [block.code for block in blocks(text)] == ["prade plan --effort 0 -o a\n", "prade.plan(task, effort=0)\n"]
