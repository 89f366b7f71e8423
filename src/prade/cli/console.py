"""Helpers that the commands share: argument types, checks that a result can be written, tables as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from prade.core.errors import DataError

# The shell completes it as a file or folder. Click does not check it: the code that opens the file has better error
# messages, and the argument may also be a database address or a pattern of files.
FILE = click.Path(readable=False)


def need_folder(path: str | os.PathLike[str]) -> None:
    """Check that `path` can be written, so that a command fails before the work and not after it."""
    folder = Path(path).absolute().parent
    if not folder.exists():
        raise DataError(f"there is no folder {folder}; make it first")
    if not folder.is_dir():
        raise DataError(f"{folder} is a file, not a folder; choose another folder")
    if not os.access(folder, os.W_OK):
        raise DataError(f"you don't have permission to write to {folder}; choose another folder")


def need_file(path: str | os.PathLike[str]) -> None:
    """Check as `need_folder` does, and that `path` is not itself a folder."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder; give the name of a file to write")
    need_folder(path)


def need_new_file(path: str | os.PathLike[str], force: bool, option: str = "-o") -> None:
    """Check as `need_file` does, and that nothing is lost: a file that exists is replaced with --force only."""
    need_file(path)
    if Path(path).exists() and not force:
        raise DataError(f"{path} exists already; give another name with {option}, or add --force to replace it")


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as a table: a header line, numbers aligned to the right, the same number of decimals in each column.

    >>> print(text_table([{"STATE": 17, "count": 9.5, "share": 0.25}, {"STATE": 39, "count": 1200, "share": 1.0}]))
    STATE    count   share
       17      9.5  0.2500
       39  1,200.0  1.0000
    """
    if not rows:
        return "no rows"
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    texts = [[name, *_texts(values)] for name, values in columns.items()]
    numeric = [all(isinstance(value, (int, float, type(None))) for value in values) for values in columns.values()]
    padded = [
        [text.rjust(width) if is_numeric else text.ljust(width) for text in column]
        for column, is_numeric in zip(texts, numeric, strict=True)
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _texts(values: Sequence[Any]) -> list[str]:
    """Format a column's cells: four decimals if all of its numbers are below ten, otherwise one."""
    numbers = [value for value in values if isinstance(value, (int, float))]
    style = ".4f" if all(abs(number) < 10 for number in numbers) else ",.1f"
    decimal = any(isinstance(value, float) for value in values)
    return [
        "" if value is None else format(value, style) if decimal and isinstance(value, (int, float)) else str(value)
        for value in values
    ]
