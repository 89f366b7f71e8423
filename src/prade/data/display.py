"""Texts for readers: columns, values, bins and groups by their titles and labels instead of their codes.

A labelled value is shown by its label. If another cell of the column has the same text, the code follows: "other (6)".
A value without a label is shown unchanged, a bin in words: "10 to 39". The unit is part of the column's heading,
"Wages (US dollars a year)", instead of every bin.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from prade.data.column import LARGEST_WHOLE, Column

if TYPE_CHECKING:
    from prade.data.groups import Grouping
    from prade.data.schema import Schema

SEPARATED = 10_000  # a column with such numbers has separators between thousands; smaller numbers may be years


def heading(column: Column) -> str:
    """The column's title, or its name, with the unit in parentheses.

    >>> heading(Column("WAGP", "numeric", edges=[1], title="Wages", unit="US dollars a year"))
    'Wages (US dollars a year)'
    """
    title = column.title or column.name
    return f"{title} ({column.unit})" if column.unit else title


def described(column: Column) -> dict[str, Any]:
    """What a page shows of a column: name, title, description, unit, and one text per code as `labels`."""
    title = column.title or column.name
    words = {"name": column.name, "title": title, "description": column.description, "unit": column.unit}
    return {**words, "labels": display_texts(column)}


def display_texts(column: Column) -> list[str]:
    """One text for readers per code.

    >>> display_texts(Column("WKHP", "numeric", edges=[1, 10, 40], integer=True, min=1, max=99, missing=True))
    ['1 to 9', '10 to 39', '40 to 99', 'missing']
    >>> display_texts(Column("RACE", "categorical", values=[1, 2, 3], labels={1: "white", 2: "other", 3: "other"}))
    ['white', 'other (2)', 'other (3)']
    """
    codes = column.cell_texts()
    plain = [*_bin_words(column), *codes[column.present :]] if column.kind == "numeric" else codes
    values = [None] * column.present if column.kind == "numeric" else list(column.values)
    labels = [None if column.kind == "numeric" else column.label_of(value) for value in values]
    labels += [column.label_of(None)] * column.missing
    texts = [text if label is None else label for label, text in zip(labels, plain, strict=True)]
    shared = {text for text, number in Counter(texts).items() if number > 1}
    return [
        f"{label} ({code})" if label in shared else text for label, text, code in zip(labels, texts, codes, strict=True)
    ]


def group_texts(schema: Schema, grouping: Grouping) -> list[str]:
    """One text for readers per group: the label of its value in each column, or the column's title and the value.

    >>> from prade.data.groups import Groups
    >>> from prade.data.schema import Schema
    >>> schema = Schema([Column("STATE", "group", labels={"17": "Illinois"}), Column("PUMA", "group")])
    >>> group_texts(schema, Groups.of({"STATE": [17, 39], "PUMA": [100, 100]}).level(["STATE", "PUMA"]))
    ['Illinois, PUMA 100', 'STATE 39, PUMA 100']
    """
    texts: list[list[str]] = [[] for _ in grouping.values]
    for name, values in zip(grouping.by, zip(*grouping.values, strict=True), strict=True):
        listed = Column(name, "group", values=tuple(dict.fromkeys(values)))
        column = listed.labelled_like(schema[name]) if name in schema else listed
        text_of = dict(zip(column.values, display_texts(column), strict=True))
        for group, value in enumerate(values):
            labelled = column.label_of(value) is not None
            texts[group].append(text_of[value] if labelled else f"{column.title or name} {text_of[value]}")
    return [", ".join(each) or "all" for each in texts]


# ---------------------------------------------------------------------- bins


def _bin_words(column: Column) -> list[str]:
    if not column.integer:
        return [_interval(column, code) for code in range(column.present)]
    starts = [column.min, *column.thresholds]
    stops = [*(start - 1 for start in column.thresholds), column.max]
    return [_range(column, start, stop) for start, stop in zip(starts, stops, strict=True)]


def _range(column: Column, start: float | None, stop: float | None) -> str:
    """The whole numbers or days from `start` to `stop`; None is an open end."""
    if start is None or stop is None:
        edge = stop + 1 if stop is not None else start
        assert edge is not None  # a column has an edge, and its bins are open on one side at most
        before, after = ("before {}", "from {}") if column.dates else ("under {}", "{} or more")
        return (before if start is None else after).format(_number(column, edge))
    return _number(column, start) if start == stop else f"{_number(column, start)} to {_number(column, stop)}"


def _interval(column: Column, code: int) -> str:
    """A bin of numbers that need not be whole: which of its ends belong to it is said in words."""
    starts, stops = [column.min, *column.cuts], [*column.cuts, column.max]
    low, high = starts[code], stops[code]
    above = None if low is None else column.just_above(low)
    up_to = None if high is None else column.just_above(high)
    start = "" if low is None else _number(column, low) if above is None else f"over {_number(column, above)}"
    if high is None:
        return start if above is not None else f"{start} or more"
    if low == high:
        return start
    closed = up_to is not None or code == column.present - 1
    stop = _number(column, high if up_to is None else up_to)
    if not start:
        return f"up to {stop}" if closed else f"under {stop}"
    return f"{start} to {stop}" if closed else f"{start} to under {stop}"


def _number(column: Column, number: float) -> str:
    bounds = [abs(bound) for bound in (column.min, column.max, *column.cuts) if bound is not None]
    if column.dates or max(bounds) < SEPARATED or not number.is_integer() or abs(number) >= LARGEST_WHOLE:
        return column.number_text(number)
    return f"{int(number):,}"
