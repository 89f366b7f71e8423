"""What engines write differently: text without spaces around it, patterns, bytes, hashes, SQL's lists of values.

Nothing here may fail on a cell, in whatever mode an engine runs. Spark needs the most care:

    line ends    in Java's patterns "$" also matches before a last line end, and U+2028 is one: a text of a number and
                 U+2028 would pass for a number, and its cast would end the run in Spark's ANSI mode. "\\z" does not
    literals     Spark reads "\\v" in a literal as the letter v, and Ibis writes it: listed texts are given as bytes
    encodings    Spark's encode() fails on text that is not UTF-8; a cast to binary does not
    collations   a column of text may have one; bytes have none
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prade.core.errors import DataError

if TYPE_CHECKING:
    import ibis.expr.types as ir

AROUND = " \t\n\r"  # what is trimmed from both sides of text
SPARK = "pyspark"


@dataclass(frozen=True)
class Dialect:
    """One engine's way to write expressions. `supports` says whether it knows an operation of Ibis."""

    engine: str
    supports: Callable[[Any], bool]

    @property
    def has_nan(self) -> bool:
        """Whether the engine knows NaN."""
        import ibis.expr.operations as ops

        return self.supports(ops.IsNan)

    @property
    def has_arrays(self) -> bool:
        """Whether a statement may hold a list of values, and make rows of it."""
        import ibis.expr.operations as ops

        return self.supports(ops.Array) and self.supports(ops.Unnest)

    def stripped(self, text: Any) -> Any:
        """Text without spaces, tabs and line ends around it."""
        return _builtin("btrim", "string, string", "string")(text, AROUND) if self.engine == SPARK else text.strip()

    def pattern(self, pattern: str) -> str:
        """A regular expression as the engine reads it; "$" is the very end of a text."""
        return pattern.replace("$", r"\z") if self.engine == SPARK else pattern

    def comparable(self, text: Any, listed: Sequence[tuple[str, int]]) -> tuple[Any, list[tuple[Any, int]]]:
        """Text and listed texts in the form in which the engine compares them."""
        if self.engine == SPARK:
            return text.cast("binary"), [(each.encode(), position) for each, position in listed]
        return text, list(listed)

    def joinable(self, text: Any) -> Any:
        """Text in the form in which it is joined with a list: bytes, or None where no such function is known."""
        if text.type().is_binary():
            return text
        as_bytes = _bytes_in(self.engine)
        return None if as_bytes is None else as_bytes(text)

    def entry(self, value: Any) -> str:
        """A listed value as a part of a literal text; `joined_entry` turns it back."""
        return value.hex() if isinstance(value, bytes) else str(value)

    def joined_entry(self, entry: Any, kind: Any) -> Any:
        """The value of an entry, to be joined with cells of a type."""
        if kind.is_binary():
            return _builtin("unhex", "string", "binary")(entry)
        if kind.is_string():
            return self.joinable(entry)
        return entry.cast("int64" if kind.is_integer() else kind)  # the list may exceed the range of a narrow column

    def sha256(self, text: Any) -> Any:
        """The SHA-256 of a text; engines that lack one are refused."""
        import ibis.expr.operations as ops

        if self.engine == "duckdb":
            return _builtin("sha256", "string", "string")(text)
        as_bytes = _bytes_in(self.engine)
        if self.engine == SPARK and as_bytes is not None:
            return _builtin("sha2", "binary, int32", "string")(as_bytes(text), 256)
        if as_bytes is not None:
            return _builtin("sha256", "binary", "binary")(as_bytes(text))
        if self.supports(ops.HexDigest):
            return text.hexdigest("sha256")
        raise DataError(
            f"prade knows no hash function of the engine {self.engine}, which it needs to choose a person's rows: leave"
            " person_id out and give max_rows as a statement about the table, or give the rows as a parquet file"
        )


def _bytes_in(engine: str) -> Callable[[Any], Any] | None:
    """An engine's function that turns any text into bytes; None for engines where no such function is known."""
    if engine == SPARK:
        return lambda text: text.cast("binary")
    if engine == "duckdb":
        return _builtin("encode", "string", "binary")
    if engine == "postgres":
        convert, encoding = (
            _builtin("convert_to", "string, string", "binary"),
            _builtin("getdatabaseencoding", "", "string"),
        )
        return lambda text: convert(text, encoding())  # the text's own encoding: no conversion takes place or can fail
    return None


def _builtin(name: str, takes: str, gives: str) -> Callable[..., ir.Value]:
    """A function of the engine, by its name and its types."""
    import ibis

    kinds = [kind.strip() for kind in takes.split(",") if kind.strip()]
    function = (lambda: None, lambda a: None, lambda a, b: None)[len(kinds)]
    made: Callable[..., ir.Value] = ibis.udf.scalar.builtin(function, name=name, signature=(kinds, gives))
    return made
