"""Files of plain values, TOML and JSON: read within limits, so that a hostile or damaged file ends in a complaint.

Whatever comes out is a tree of at most `MOST_LEVELS` levels, its whole numbers have at most 300 digits, and its texts
can be written to a file. Readers look at the tree's structure and need not think of the rest.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from os import PathLike
from typing import Any, TypeVar

import msgspec

from prade.core.errors import DataError, PradeError

MOST_BYTES = 2**28
MOST_LEVELS = 40
LARGEST_WHOLE_NUMBER = 10**300  # floats still hold it, and Python still writes it out in messages
# The parser's time grows with the square of a dotted key's length. (40 is MOST_LEVELS.)
LONG_KEY = re.compile(r"""(?<![\w"'.-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){40}""")

Structure = TypeVar("Structure")


class Malformed(DataError):
    """What a file holds is not what it should be; readers that know more of the file say so in their own words."""


class Versioned(msgspec.Struct):
    """The beginning of every file that prade writes for itself: older versions know by the number that it is newer."""

    format: int


def file_text(path: str | PathLike[str], what: str, error: type[PradeError] = DataError) -> str:
    """The text of a file; complaints call it `what`, as in "plan", and are of the kind `error`."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise error(f"there is no {what} at {path}; check the path") from None
    except OSError as fault:
        raise error(f"{path} cannot be read ({fault.strerror}): get access to it") from None
    except ValueError:  # a null character
        raise error(f"there is no {what} at {str(path)!a}; check the path") from None
    if len(content) > MOST_BYTES:
        raise error(f"{path} has more than {MOST_BYTES // 2**20} MiB, too much for a {what}; check the path")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path} is not a text file (UTF-8), and a {what} is one; check the path") from None


def toml_table(text: str, error: type[PradeError] = Malformed) -> dict[str, Any]:
    """The table that a TOML text holds."""
    if LONG_KEY.search(text):
        raise error(f"not TOML that is read here: a key has more than {MOST_LEVELS} names joined by dots")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise error(f"not TOML: {fault}") from None
    except RecursionError:
        raise error(_too_deep("TOML")) from None
    except ValueError:  # the parser leaves those to whoever makes a number or a date of the text
        raise error("not TOML: a number has too many digits, or a date does not exist") from None
    _check(found, error, "TOML")
    return found


def json_value(text: str | bytes, error: type[PradeError] = Malformed) -> Any:
    """The value that a JSON text holds; a key that is there twice is refused, and so are NaN and Infinity."""
    try:
        found = json.loads(text, object_pairs_hook=_each_once, parse_constant=_not_json)
    except RecursionError:
        raise error(_too_deep("JSON")) from None
    except ValueError as fault:
        raise error(f"not JSON: {str(fault)[:200]!a}") from None
    _check(found, error, "JSON")
    return found


def structured(value: Any, kind: type[Structure], error: type[PradeError] = Malformed) -> Structure:
    """A value of such a tree as a structure that msgspec knows; extra keys are passed over.

    >>> structured({"a": [1, 2]}, dict[str, list[int]])
    {'a': [1, 2]}
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as fault:
        raise error(str(fault)) from None


def _check(tree: Any, error: type[PradeError], language: str) -> None:
    """Refuse what would make trouble later: depth, endless numbers, halves of characters."""
    level, values = 0, [tree]
    while values:
        deeper: list[Any] = []
        for value in values:
            if isinstance(value, dict):
                deeper += value.keys()
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
            elif isinstance(value, str):
                if not writable(value):
                    raise error(
                        f"the text {value[:40]!a} holds half a character, which no file can hold: write it anew"
                    )
            elif isinstance(value, int):
                if abs(value) >= LARGEST_WHOLE_NUMBER:
                    raise error("a number has more than 300 digits: write a smaller one")
            elif isinstance(value, float) and language == "JSON" and not math.isfinite(value):
                raise error("a number is too large to be calculated with: write a smaller one")
        values, level = deeper, level + 1
        if level > MOST_LEVELS and values:
            raise error(_too_deep(language))


def writable(text: str) -> bool:
    """Whether a text can be written to a file: half of a surrogate pair cannot.

    >>> writable("é"), writable("\\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:40]} is there twice")
    return found


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _too_deep(language: str) -> str:
    return f"not {language} that is read here: it is nested more than {MOST_LEVELS} levels deep"
