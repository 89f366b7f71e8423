"""Linked columns, whose values belong together: which sets a schema may declare, and which a public table suggests.

A table suggests a link between two numeric columns if one is hardly ever above the other (wages and income), although
it often would be if each column's values were drawn alone within their bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.errors import SchemaError, closest
from prade.data.cells import one_piece
from prade.data.column import Column
from prade.data.matching import code_cells, numbers_of

EXAMPLE = 'linked = [["WAGES", "INCOME"]]'
HOLDS = 0.99  # an order that holds in at least this share of the public rows is a rule
BREAKS = 0.05  # below this share of rows, the order may be one of scale only (hours of work are below most incomes)
MOST_ROWS = 50_000  # enough to tell such shares apart
FEWEST_ROWS = 100  # rows with both values; an order of fewer may be chance

Sets = tuple[tuple[str, ...], ...]


def checked_links(linked: Any, coded: Sequence[str], names: Sequence[str]) -> Sets:
    """Sets of linked columns, if that is what they are: two or more coded columns each, no column in two sets."""
    if not _is_list(linked) or not all(_is_list(together) for together in linked):
        raise SchemaError(f"linked is {linked!r}; give a list of lists of column names, e.g. {EXAMPLE}")
    sets = tuple(tuple(together) for together in linked)
    seen: set[str] = set()
    for together in sets:
        shown = f"linked: {list(together)}"
        for name in together:
            if not isinstance(name, str) or name not in names:
                hint = closest(name, coded) if isinstance(name, str) else ""
                raise SchemaError(f"{shown} has {name!r}, which is not a column of the schema{hint}")
            if name not in coded:
                raise SchemaError(
                    f"{shown} has the group column {name!r}; remove it, because groups come from the list of groups"
                )
            if name in seen:
                raise SchemaError(f"linked: column {name!r} is listed twice; join the sets that have it, or remove it")
            seen.add(name)
        if len(together) < 2:
            raise SchemaError(f"{shown} has fewer than two columns; add those that belong to it, or remove it")
    return sets


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def proposed_links(columns: Sequence[Column], table: Any) -> Sets:
    """The sets of columns that a PUBLIC table suggests to link.

    >>> wages = np.arange(1000)
    >>> columns = [Column(name, "numeric", edges=[500], integer=True) for name in ("WAGES", "INCOME")]
    >>> proposed_links(columns, {"WAGES": wages, "INCOME": wages + 10})
    (('WAGES', 'INCOME'),)
    """
    from prade.data.read.tables import plain_cells, read_table

    numeric = [column for column in columns if column.kind == "numeric"]
    if len(numeric) < 2:
        return ()
    public = read_table(table, [column.name for column in numeric])
    rows = np.arange(0, public.num_rows, max(1, -(-public.num_rows // MOST_ROWS)))
    values: dict[str, Floats] = {}
    codes: dict[str, Ints] = {}
    for column in numeric:
        cells = one_piece(plain_cells(public[column.name])).take(rows)
        values[column.name] = numbers_of(column, cells)
        codes[column.name] = code_cells(column, cells)[0]
    return _joined([column.name for column in numeric], ordered_pairs(numeric, values, codes))


def ordered_pairs(
    columns: Sequence[Column], values: Mapping[str, Floats], codes: Mapping[str, NDArray[Any]]
) -> list[tuple[str, str]]:
    """The pairs (low, high) of numeric columns such that low is hardly ever above high, and not by scale only.

    `values` has NaN for missing.
    """
    generator = np.random.default_rng(0)
    # each column's values, exchanged within their bins
    alone = {column.name: values[column.name][_exchanged(codes[column.name], generator)] for column in columns}
    return [
        (low.name, high.name)
        for low, high in permutations(columns, 2)
        if low.dates == high.dates and _ordered(values, alone, low.name, high.name)
    ]


def _ordered(values: Mapping[str, Floats], alone: Mapping[str, Floats], low: str, high: str) -> bool:
    """Whether one column is hardly ever above another, and often would be if their values were drawn alone."""
    both = ~np.isnan(values[low]) & ~np.isnan(values[high])
    if both.sum() < FEWEST_ROWS:
        return False
    broken = (values[low] > values[high])[both].mean()
    broken_alone = (alone[low] > alone[high])[both].mean()
    return bool(broken <= 1 - HOLDS and broken_alone >= max(BREAKS, 2 * broken))


def _exchanged(codes: NDArray[Any], generator: np.random.Generator) -> Ints:
    """For each row, another row with the same code: the rows of each code are shuffled among themselves."""
    shuffled, kept = np.lexsort((generator.random(len(codes)), codes)), np.argsort(codes, kind="stable")
    exchanged = np.empty_like(kept)
    exchanged[kept] = shuffled
    return exchanged


def _joined(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Sets:
    """The sets that the pairs connect, in the order of `names`."""
    together = {name: {name} for name in names}
    for one, other in pairs:
        union = together[one] | together[other]
        together.update(dict.fromkeys(union, union))
    sets = {tuple(name for name in names if name in together[each]) for each in names}
    return tuple(sorted((each for each in sets if len(each) > 1), key=lambda each: names.index(each[0])))
