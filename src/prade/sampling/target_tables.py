"""The tables that a sample meets first: those of a plan's targets.

The search for better rows (`prade.sampling.improve`) weighs all one- and two-way tables alike. The tables of targets
are counted several times over, so that together they weigh as much as a share of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from prade.planning.task import Target, Wanted, wanted_of

if TYPE_CHECKING:
    from prade.data.schema import Schema

# Weight of the targets' tables together, beside one for all two-way tables together. On public ACS rows with five
# targets, their error fell from 0.0677 to 0.0642 (the estimates' is 0.0635), and that of all pairs stayed at 0.260.
# With 0.5 it fell to 0.0638, and that of all pairs rose to 0.262.
TOGETHER = 0.2
MOST_COPIES = 32  # of one table


def tables_first(targets: Sequence[Target], schema: Schema) -> tuple[tuple[str, str], ...]:
    """Pairs of columns, each as often as it counts more; a column paired with itself is its one-way table.

    >>> from collections import Counter
    >>> from prade.data.schema import Schema
    >>> schema = Schema.from_mbi({"age": 10, "sex": 2} | {f"column {k}": 2 for k in range(8)})
    >>> Counter(tables_first([Target(["age x sex"], by="all"), Target(["age"], by="all", weight=2)], schema))
    Counter({('age', 'age'): 6, ('age', 'sex'): 3})
    """
    weights: dict[tuple[str, str], float] = {}
    for each in wanted_of(targets, schema):
        pairs = _pairs(each)
        for pair in pairs:
            weights[pair] = weights.get(pair, 0.0) + each.weight / len(pairs)
    whole = TOGETHER * comb(len(schema.coded), 2) / max(sum(weights.values()), 1e-300)
    copies = {pair: min(max(round(whole * weight), 1), MOST_COPIES) for pair, weight in weights.items()}
    return tuple(pair for pair, number in copies.items() for _ in range(number))


def _pairs(wanted: Wanted) -> list[tuple[str, str]]:
    columns = (
        wanted.part.columns[:1] if wanted.kind in ("mean", "quantile") and wanted.query is None else wanted.part.columns
    )
    return [(columns[0], columns[0])] if len(columns) == 1 else list(combinations(sorted(columns), 2))
