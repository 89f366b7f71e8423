"""Reading TOML and JSON within limits, so that a hostile or damaged file leads to a clear error.

What is read is a tree of at most `MOST_LEVELS` levels; its whole numbers have at most 300 digits, and its strings can
be written to a file again. Code that uses the tree has to check only its structure.
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
LARGEST_WHOLE_NUMBER = 10**300  # small enough for a float, and for Python to print in a message
# The parser's time grows with the square of a dotted key's length. (40 is MOST_LEVELS.)
LONG_KEY = re.compile(r"""(?<![\w"'.-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){40}""")

HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")

Structure = TypeVar("Structure")


class Malformed(DataError):
    """A file's content is not what it should be. Callers that know which file it is wrap this in their own error."""


class Versioned(msgspec.Struct):
    """The field that every file prade writes for itself has, so that an older version can recognise a newer file."""

    format: int


def file_text(path: str | PathLike[str], what: str, error: type[PradeError] = DataError, most: int = MOST_BYTES) -> str:
    """The text of a file. Errors are of type `error` and call the file `what`, for example "plan"."""
    try:
        with open(path, "rb") as file:
            content = file.read(most + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):  # the last: a null character
        raise error(f"there is no {what} at {path}; check the path") from None
    except OSError as fault:
        raise error(f"{path} cannot be read ({fault.strerror}); check its permissions") from None
    if len(content) > most:
        raise error(f"{path} is larger than {most // 2**20} MiB, too large for a {what}; check the path")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path} is not a UTF-8 text file, so it cannot be a {what}; check the path") from None


def toml_table(text: str, error: type[PradeError] = Malformed) -> dict[str, Any]:
    """Parse a TOML document."""
    if LONG_KEY.search(text):
        raise error(f"the TOML is refused: a key has more than {MOST_LEVELS} names joined by dots")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise error(_too_deep("TOML")) from None
    except ValueError as fault:  # also of int() and date(), for a number with too many digits or no date
        raise error(f"this is not valid TOML: {fault}") from None
    _check(table, error, "TOML")
    return table


def json_value(text: str | bytes, error: type[PradeError] = Malformed) -> Any:
    """Parse a JSON document; repeated keys, NaN and Infinity are refused."""
    try:
        value = json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)
    except RecursionError:
        raise error(_too_deep("JSON")) from None
    except ValueError as fault:
        raise error(f"this is not valid JSON: {str(fault)[:200]!a}") from None
    _check(value, error, "JSON")
    return value


def structured(value: Any, kind: type[Structure], error: type[PradeError] = Malformed) -> Structure:
    """Convert a parsed value to a type that msgspec knows; extra keys are ignored.

    >>> structured({"a": [1, 2]}, dict[str, list[int]])
    {'a': [1, 2]}
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as fault:
        raise error(str(fault)) from None


def _check(value: Any, error: type[PradeError], language: str, level: int = 0) -> None:
    """Refuse what would cause trouble later: deep nesting, very long numbers, unpaired surrogates."""
    if level > MOST_LEVELS:
        raise error(_too_deep(language))
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            _check(each, error, language, level + 1)
    elif isinstance(value, str) and not writable(value):
        raise error(
            f"the text {value[:40]!a} contains half a character (an unpaired surrogate), which cannot be written to a "
            "file; correct it"
        )
    elif isinstance(value, int) and abs(value) >= LARGEST_WHOLE_NUMBER:
        raise error("a number has more than 300 digits; use a smaller one")
    elif isinstance(value, float) and language == "JSON" and not math.isfinite(value):
        raise error("a number is too large for a floating-point number; use a smaller one")


def writable(text: str) -> bool:
    """Whether a string can be written to a file: one with an unpaired surrogate cannot.

    >>> writable("é"), writable("\\ud800")
    (True, False)
    """
    return HALF_A_CHARACTER.search(text) is None


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated[:40]} appears twice")
    return values


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _too_deep(language: str) -> str:
    return f"the {language} is refused: it is nested more than {MOST_LEVELS} levels deep"
