"""The option `--public` of commands that take a plan or a release; they say which public files they use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from prade.cli.console import FILE
from prade.cli.main import remark
from prade.core.errors import DataError

if TYPE_CHECKING:
    from prade.data.public.table import PublicFiles, PublicTable
    from prade.planning.plan import Plan

public_again = click.option(
    "--public",
    multiple=True,
    type=FILE,
    help="A public file of the plan that has moved, lies outside the plan's folder, or has no hash in the plan: look "
    "at it first. May be given several times.",
)


def public_files(paths: tuple[str, ...], weight: str | None = None) -> PublicFiles:
    """Return the public files at these paths, which must exist."""
    from prade.data.public.table import PublicFiles

    for path in paths:
        if not Path(path).is_file():
            raise DataError(f"there is no public file {path}; check the path")
    return PublicFiles.at(paths, weight)


def named_files(paths: tuple[str, ...]) -> PublicFiles | None:
    """Return the public files that the option names; None if it names none."""
    return public_files(paths) if paths else None


def public_table(plan: Plan, paths: tuple[str, ...]) -> tuple[PublicTable, list[str]]:
    """Return the public table in the files that the option or the plan names, and their paths, after saying them."""
    from prade.planning.public_of_plan import public_of

    table = public_of(plan, named_files(paths))
    return table, said_paths(table.files)


def said_paths(files: PublicFiles | None) -> list[str]:
    """Say which public files a command uses, and return their paths."""
    if files is None:
        return []
    remark(f"Public files: {', '.join(files.files)}")
    return list(files.files)
