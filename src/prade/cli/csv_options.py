"""The options that describe CSV files: `--encoding`, `--delimiter` and, for private files, `--line-breaks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from prade.cli.main import Command

if TYPE_CHECKING:
    from prade.data.csv_format import CsvFormat


def csv_options(*names: str, private: bool = False) -> Callable[[Command], Command]:
    """Add the options, and give the command the named paths together with the format that the options declare."""

    def add(command: Command) -> Command:
        @wraps(command)
        def with_format(encoding: str, delimiter: str, line_breaks: bool = False, **arguments: Any) -> Any:
            from prade.data.csv_format import DEFAULT_FORMAT, CsvFormat

            form = CsvFormat(encoding, delimiter, line_breaks)
            if form != DEFAULT_FORMAT:
                arguments.update(
                    {name: _formatted(arguments[name], form) for name in names if _fits(name, arguments, form)}
                )
            return command(**arguments)

        options = [
            click.option("--encoding", default="utf-8", show_default=True, help="Encoding of CSV files."),
            click.option(
                "--delimiter", default=",", show_default=True, help="Character between the cells of CSV files; or tab."
            ),
        ]
        if private:
            options.append(
                click.option(
                    "--line-breaks",
                    is_flag=True,
                    help="Cells in quotes of the private CSV file may have line breaks. [default: a record is a line]",
                )
            )
        decorated = cast(Command, with_format)
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add


def _fits(name: str, arguments: Mapping[str, Any], form: CsvFormat) -> bool:
    """Whether a file may have the format: the public list of groups is often a file of another make."""
    path = arguments[name]
    if name != "groups_file" or path is None or "://" in path:
        return True
    try:
        with open(path, "rb") as file:
            return form.delimiter.encode(form.encoding) in file.readline()
    except OSError:
        return True


def _formatted(path: Any, form: Any) -> Any:
    """A path or several with the format. The address of a database is returned unchanged."""
    if isinstance(path, tuple):
        return tuple(_formatted(each, form) for each in path)
    return path if path is None or "://" in path else form.file(path)
