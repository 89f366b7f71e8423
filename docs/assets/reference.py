"""What the site's reference pages take from the code itself, when the site is built.

A page asks for it with a comment of its own: `<!-- help: plan -->` becomes what `prade plan --help` says, and
`<!-- names: Budget measure -->` their signatures and docstrings.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import click

from prade.cli.main import every_command

WIDTH = 100


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    markdown = re.sub(r"<!-- help: (.+?) -->", lambda found: help_of(found[1]), markdown)
    return re.sub(
        r"<!-- names: (.+?) -->", lambda found: "\n".join(described(name) for name in found[1].split()), markdown
    )


def help_of(command: str) -> str:
    """The help text of a command, as in a terminal."""
    found: click.Command = every_command()
    context = click.Context(found, info_name="prade", **{**found.context_settings, "max_content_width": WIDTH})
    for name in command.split():
        assert isinstance(found, click.Group)
        found = found.commands[name]
        context = click.Context(found, info_name=name, parent=context)
    return f"```text\n{found.get_help(context)}\n```\n"


def described(name: str) -> str:
    """A public name of the package: its signature, and its docstring as it is written."""
    module, _, last = f"prade.{name}".rpartition(".")
    thing = getattr(import_module(module), last)
    try:
        signature = f"{last}{inspect.signature(thing)}"
    except ValueError:
        signature = last
    title = f"`{module}.{last}`" if "." in name else last
    text = f"### {title} {{ #{name} }}\n\n```text\n{signature}\n\n{inspect.getdoc(thing)}\n```\n"
    return text + methods(thing) if inspect.isclass(thing) else text


def methods(thing: type) -> str:
    """Public methods and properties that the class itself documents, one line each."""
    lines = []
    for name, value in vars(thing).items():
        inner = getattr(value, "__func__", getattr(value, "func", value))  # a class method, a cached property
        words = inspect.getdoc(inner) if inspect.isfunction(inner) or isinstance(value, property) else None
        if words and not name.startswith("_"):
            brackets = "()" if inspect.isfunction(inner) and not hasattr(value, "func") else ""
            lines.append(f"| `{name}{brackets}` | {words.splitlines()[0].replace('|', chr(92) + '|')} |\n")
    return "".join(["\n| | |\n|---|---|\n", *lines, "\n"]) if lines else ""
