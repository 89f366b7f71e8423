"""Questions to a release as text: a query that counts rows, or a statistic of a numeric column (`FORMS`).

A comparison that no row of the schema's domain can satisfy is refused here: a plan may ask it, but a person who asks a
release has mistaken the column's range.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, cast

from prade.core.errors import WorkloadError
from prade.data.declare.column import Column
from prade.data.declare.kinds import Numeric, OffEdge
from prade.data.declare.schema import Schema
from prade.queries.query import Compare, Mask, Query, Value, backticked, column_of, parse, shorten

Kind = Literal["mean", "sum", "quantile", "histogram"]

_STATISTIC = re.compile(
    r"\s*(?P<kind>mean|sum|median|quantile|histogram)\s*\(\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>[^\W\d]\w*))\s*"
    r"(?:,\s*(?P<at>[^()]*?)\s*)?\)\s*(?:where\b(?P<where>.*))?",
    re.IGNORECASE | re.DOTALL,
)
FORMS = "mean(WAGP), sum(WAGP), median(WAGP), quantile(WAGP, 0.9) or histogram(WAGP), each also with: where SEX == 2"


@dataclass(frozen=True)
class Statistic:
    """A statistic of one numeric column, of the rows that satisfy `where` (None for all that have a value)."""

    kind: Kind
    column: str
    at: float  # of a quantile
    where: str | None

    @property
    def text(self) -> str:
        shown = f", {self.at:g}" if self.kind == "quantile" else ""
        return f"{self.kind}({backticked(self.column)}{shown})" + (f" where {self.where}" if self.where else "")


def statistic_of(text: str, schema: Schema) -> Statistic | None:
    """Read a statistic of a numeric column; None if the text is a query that counts rows."""
    match = _STATISTIC.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    kind, name = match["kind"].lower(), match["name"] or match["quoted"].replace("``", "`")
    column, where = column_of(schema, name), match["where"]
    if not column.numeric:
        numeric = ", ".join(backticked(each.name) for each in schema if each.numeric) or "none"
        raise WorkloadError(f"{shorten(text)!r}: {name} is not a numeric column; these are: {numeric}")
    if column.dates and kind in ("mean", "sum"):
        raise WorkloadError(f"{shorten(text)!r}: {name} contains dates; ask for its median, a quantile or a histogram")
    if (match["at"] is not None) != (kind == "quantile") or (where is not None and not where.strip()):
        raise WorkloadError(f"{shorten(text)!r} is not a statistic; write {FORMS}")
    at = 0.5 if kind == "median" else math.nan
    if kind == "quantile":
        with suppress(ValueError):
            at = float(match["at"])
        if not 0 < at < 1:
            raise WorkloadError(f"{shorten(text)!r}: a quantile is at a share from 0 to 1, as in quantile(WAGP, 0.9)")
    name_of_kind = cast(Kind, "quantile" if kind == "median" else kind)
    return Statistic(name_of_kind, name, at, None if where is None else where.strip())


def asked_query(text: str, schema: Schema) -> Query:
    return parse(text, schema, _within_bounds)


def bracketing(text: str, schema: Schema) -> list[Query]:
    """Queries at the nearest edges instead: one for fewer rows and one for more, where there are such edges."""
    queries = []
    for wider in (False, True):
        with suppress(OffEdge):
            queries.append(parse(text, schema, _at_edges(wider)))
    return queries


def _within_bounds(column: Column, symbol: str, value: Value, negated: bool) -> tuple[str, Value, Mask]:
    """The comparison as it is written, unless no number between the column's bounds can satisfy it."""
    table = column.satisfying(symbol, value)
    # A row that is missing satisfies the negation of every comparison.
    if not column.numeric or (not table.all() if negated else table.any()):
        return symbol, value, table
    limits = (("at least", column.min), ("at most", column.max))
    bounds = [f"{word} {Numeric(column).number_text(bound)}" for word, bound in limits if bound is not None]
    raise WorkloadError(
        f"no row can satisfy {'not ' if negated else ''}{column.name} {symbol} {value!r}: by the schema, the values of "
        f"{column.name} are {' and '.join(bounds) or 'whole numbers'}"
    )


def _at_edges(wider: bool) -> Compare:
    """Comparisons at the nearest edge with which more rows satisfy the whole query, or fewer."""

    def compare(column: Column, symbol: str, value: Value, negated: bool) -> tuple[str, Value, Mask]:
        try:
            return _within_bounds(column, symbol, value, negated)
        except OffEdge as off:
            at_least, more = symbol in (">", ">="), wider != negated
            edge, bound = (off.below, column.min) if at_least == more else (off.above, column.max)
            new = ">=" if at_least else "<"
            if edge is None and more and bound is not None:  # everybody who has a value
                edge, new = bound, ">=" if at_least else "<="
            if edge is None:
                raise
            number = Numeric(column).number_text(edge) if column.dates else int(edge) if edge.is_integer() else edge
            return new, number, column.satisfying(new, number)

    return compare
