"""The help texts of commands on the site's pages: `<!-- help: plan -->` becomes what `prade plan --help` says."""

from __future__ import annotations

import re
from typing import Any

import click

from prade.cli.main import every_command

WIDTH = 100


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    return re.sub(r"<!-- help: (.+?) -->", lambda match: help_of(match[1]), markdown)


def help_of(command: str) -> str:
    """The help text of a command, as in a terminal."""
    found: click.Command = every_command()
    context = click.Context(found, info_name="prade", **{**found.context_settings, "max_content_width": WIDTH})
    for name in command.split():
        assert isinstance(found, click.Group)
        found = found.commands[name]
        context = click.Context(found, info_name=name, parent=context)
    return f"```text\n{found.get_help(context)}\n```\n"
