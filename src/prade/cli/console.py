"""What commands share: types of their arguments, checks of places to write to, tables as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from prade.core.errors import DataError

# Completed by the shell as a file or folder. What is wrong with it is said by whoever opens it, and in better words;
# addresses and patterns pass as they are.
FILE = click.Path(readable=False)


def need_folder(path: str | os.PathLike[str]) -> None:
    """Complain before the work, not after it, when its result could not be written to `path`."""
    folder = Path(path).absolute().parent
    if not folder.exists():
        raise DataError(f"there is no folder {folder}; make it first")
    if not folder.is_dir():
        raise DataError(f"{folder} is a file and no folder; give another place")
    if not os.access(folder, os.W_OK):
        raise DataError(f"the folder {folder} may not be written to; get the right to, or give another place")


def need_file(path: str | os.PathLike[str]) -> None:
    """As `need_folder`, for a file: `path` may not be a folder itself."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder; give the name of a file to write")
    need_folder(path)


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of cells below their names, numbers to the right and with as many decimals as the others of their column.

    >>> print(text_table([{"STATE": 17, "count": 9.5, "share": 0.25}, {"STATE": 39, "count": 1200, "share": 1.0}]))
    STATE    count   share
       17      9.5  0.2500
       39  1,200.0  1.0000
    """
    if not rows:
        return "nothing"
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    texts = [[name, *_texts(values)] for name, values in columns.items()]
    right = [all(isinstance(value, (int, float)) for value in values) for values in columns.values()]
    padded = [
        [text.rjust(width) if number else text.ljust(width) for text in column]
        for column, number in zip(texts, right, strict=True)
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _texts(values: Sequence[Any]) -> list[str]:
    """A column's cells as text: four decimals where all of its numbers are below ten, one otherwise."""
    numbers = [value for value in values if isinstance(value, (int, float))]
    style = ".4f" if all(abs(number) < 10 for number in numbers) else ",.1f"
    decimal = any(isinstance(value, float) for value in values)
    return [
        "" if value is None else format(value, style) if decimal and isinstance(value, (int, float)) else str(value)
        for value in values
    ]
