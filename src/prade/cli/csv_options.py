"""The options that describe CSV files: `--encoding`, `--delimiter` and, for private files, `--line-breaks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from prade.cli.main import Command

if TYPE_CHECKING:
    from prade.data.read.csv import CsvFormat


def csv_options(*names: str, private: bool = False) -> Callable[[Command], Command]:
    """Add the options, and give the command the named paths together with the format that the options declare."""

    def add(command: Command) -> Command:
        @wraps(command)
        def with_format(encoding: str, delimiter: str, line_breaks: bool = False, **arguments: Any) -> Any:
            from prade.data.read.csv import DEFAULT_FORMAT, CsvFormat

            form = CsvFormat(encoding, delimiter, line_breaks)
            if form != DEFAULT_FORMAT:
                for name in names:
                    fits = _of_list(arguments[name], form) if name == "groups_file" else form
                    arguments[name] = _formatted(arguments[name], fits)
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


def _of_list(path: str | None, form: CsvFormat) -> CsvFormat:
    """The format of the list of groups, which is public and often a file of another make: UTF-8 if it can be.

    Its delimiter is the declared one if the header has it, or else the usual one that the header has.
    """
    if path is None or not path.endswith(".csv"):
        return form
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8")
        encoding = "utf-8"
    except UnicodeDecodeError:
        text, encoding = content.decode(form.encoding, "replace"), form.encoding
    except OSError:
        return form
    header = text.partition("\n")[0]
    delimiter = next((each for each in (form.delimiter, *",;\t") if each in header), form.delimiter)
    return replace(form, encoding=encoding, delimiter=delimiter)


def _formatted(path: Any, form: Any) -> Any:
    """A path or several with the format. The address of a database is returned unchanged."""
    if isinstance(path, tuple):
        return tuple(_formatted(each, form) for each in path)
    return path if path is None or "://" in path else form.file(path)
