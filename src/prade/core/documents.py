"""Reading TOML and JSON within limits: a tree of at most `MOST_LEVELS` levels, whole numbers of at most 300 digits, and
strings that can be written to a file again."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from os import PathLike
from typing import Any, TypeVar, cast

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
    return cast(dict[str, Any], _parsed("TOML", tomllib.loads, text, error))


def json_value(text: str | bytes) -> Any:
    """Parse a JSON document; NaN and Infinity are refused."""
    return _parsed("JSON", json.loads, text, Malformed)


def _parsed(language: str, parse: Callable[[Any], Any], text: str | bytes, error: type[PradeError]) -> Any:
    try:
        value = parse(text)
        _check(value, language)
    except RecursionError:
        raise error(f"the {language} is refused: it is nested more than {MOST_LEVELS} levels deep") from None
    except ValueError as fault:  # also of int() and date(), for a number with too many digits or no date
        raise error(f"this is not valid {language}: {str(fault)[:200]!a}") from None
    return value


def structured(value: Any, kind: type[Structure], error: type[PradeError] = Malformed) -> Structure:
    """Convert a parsed value to a type that msgspec knows; extra keys are ignored."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as fault:
        raise error(str(fault)) from None


def _check(value: Any, language: str, level: int = 0) -> None:
    """Refuse what would cause trouble later: deep nesting, very long numbers, unpaired surrogates."""
    if level > MOST_LEVELS:
        raise RecursionError
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            _check(each, language, level + 1)
    elif isinstance(value, str) and not writable(value):
        raise ValueError(f"the text {value[:40]!a} contains half a character (an unpaired surrogate)")
    elif isinstance(value, int) and abs(value) >= LARGEST_WHOLE_NUMBER:
        raise ValueError("a number has more than 300 digits")
    elif isinstance(value, float) and language == "JSON" and not math.isfinite(value):
        raise ValueError("a number is infinite, or too large, or none")


def writable(text: str) -> bool:
    """Whether a string can be written to a file: one with an unpaired surrogate cannot."""
    return HALF_A_CHARACTER.search(text) is None
