"""Look before you spend: how a private table fits a plan, for the custodian's eyes only.

`measure` must not refuse a table because of its cells, since a refusal would be an answer about them. A column that is
coded in another way (SEX as M and F, ages in words) is therefore measured without a remark. The custodian may look:
this reads every row and shows values of private rows, writes nothing, and leaves the ledger unchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.errors import DataError, many
from prade.data.read.cells import plain_array, python_values
from prade.data.read.coding import code_cells, exact_ids
from prade.measuring.person_bound import hashed, runs_of
from prade.measuring.source import guarded, open_source, planned_tally
from prade.measuring.streams import Batch
from prade.measuring.tally import Tally
from prade.planning.plan import Plan
from prade.privacy.protection import Unit

TOO_MANY = 0.1  # of a column's cells outside the schema: the column is probably coded in another way
SHOWN = 5  # values that are listed, the commonest first
REMEMBERED = 10_000  # different values of a column; in a column with more, rare ones are forgotten
WARNING = "For the custodian's eyes only: this shows values of private rows. Nothing was written or spent."


@dataclass(frozen=True)
class Check:
    """How a private table fits a plan. It contains values of private rows: show it to nobody else.

    `problem` says why the table cannot be measured. `outside` has, for each column with cells outside the schema, their
    share and the commonest of them. `unlisted` has the commonest groups that are not on the list, with their rows.
    `persons` is the number of persons if they have ids, `over_bound` of those with more rows than are counted, and
    `without_id` the number of rows that do not count because they have no id.
    """

    rows: int = 0
    problem: str = ""
    outside: dict[str, tuple[float, dict[str, int]]] = field(default_factory=dict)
    unlisted_rows: int = 0
    unlisted: dict[str, int] = field(default_factory=dict)
    persons: int | None = None
    over_bound: int = 0
    without_id: int = 0

    @property
    def fits(self) -> bool:
        """Whether the plan can be measured, and at most a tenth of each column's cells and of all rows is left out."""
        shares = [share for share, _ in self.outside.values()]
        left_out = max(self.unlisted_rows, self.without_id) / max(1, self.rows)
        return not self.problem and max([*shares, left_out]) <= TOO_MANY

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        outside = {name: {"share": share, "values": values} for name, (share, values) in self.outside.items()}
        return {"warning": WARNING, "fits": self.fits, **asdict(self), "outside": outside}

    def __str__(self) -> str:
        if self.problem:
            return "\n".join([WARNING, self.problem, "No row was looked at: correct this first."])
        lines = [WARNING, many(self.rows, "row")]
        for name, (share, values) in self.outside.items():
            verdict = ": is this column coded as the schema says?" if share > TOO_MANY else ""
            lines.append(f"{name}: {share:.1%} of the cells are outside the schema ({_listed(values)}){verdict}")
        if not self.outside:
            lines.append("all cells fit the schema")
        if self.unlisted_rows:
            rows = f"{many(self.unlisted_rows, 'row')} ({self.unlisted_rows / self.rows:.1%})"
            lines.append(f"{rows} in groups that are not listed, which do not count ({_listed(self.unlisted)})")
        if self.persons is not None:
            lines.append(
                f"{many(self.persons, 'person')}, {self.over_bound:,} of them with more rows than are counted; "
                f"{many(self.without_id, 'row')} without an id, which do not count"
            )
        return "\n".join(lines)


def check(plan: Plan, private: Any) -> Check:
    """How a private table fits a plan, before anything is spent. For the custodian's eyes only.

    `private` is as in `prade.measure`. All rows are read. Nothing is written, and the ledger is not touched. Print the
    result to read it; ``result.fits`` is False if a column is missing or has more than a tenth of its cells outside
    the schema.

    >>> import pyarrow
    >>> from prade import Budget, Column, Level, Plan, Schema, Unit, Workload
    >>> schema = Schema([Column("SEX", "categorical", values=[1, 2])])
    >>> plan = Plan("people", schema, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(schema, 1))])
    >>> print(check(plan, pyarrow.table({"SEX": ["F", "M", "F", "1"]})))
    For the custodian's eyes only: this shows values of private rows. Nothing was written or spent.
    4 rows
    SEX: 75.0% of the cells are outside the schema (F 2, M 1): is this column coded as the schema says?
    """
    with open_source(private) as source:
        try:
            tally = planned_tally(source, plan)
        except DataError as error:
            return Check(problem=str(error))
        batches = source.read(tally.names or source.columns[:1])
        return guarded(f"reading {source.name}", lambda: _seen(tally, batches, plan.unit))


def _seen(tally: Tally, batches: Iterable[Batch], unit: Unit) -> Check:
    rows = unlisted = without_id = 0
    outside: Counter[str] = Counter()
    values: dict[str, Counter[str]] = defaultdict(Counter)
    groups: Counter[str] = Counter()
    people = [np.zeros((0, 3), np.uint64)]  # of each row: its person, in two halves, and its group
    listed = tally.listed[-1]
    for cells in batches:
        size = len(next(iter(cells.values())))
        rows += size
        for column in tally.columns:
            fits = code_cells(column, cells[column.name], refuse=False)[1]
            outside[column.name] += int((~fits).sum())
            _remember(values[column.name], _texts(cells[column.name], ~fits))
        joint, number = listed.joint_codes(cells, size, refuse=False)
        elsewhere = number < 0
        unlisted += int(elsewhere.sum())
        keys = [column.name for column in listed.columns]
        each = zip(*(_texts(cells[name], elsewhere) for name in keys), strict=True)
        _remember(groups, [", ".join(f"{n} {v}" for n, v in zip(keys, row, strict=True)) for row in each])
        if tally.person is not None:
            halves, known = hashed(exact_ids(cells[tally.person]), tally.secret)
            counted = known & ~elsewhere
            without_id += int((~known).sum())
            people.append(np.column_stack([halves[counted], joint[counted].astype(np.uint64)]))
    shares = {n: (k / rows, dict(values[n].most_common(SHOWN))) for n, k in outside.items() if k}
    persons, over = (None, 0) if tally.person is None else _over_bound(np.concatenate(people), unit)
    return Check(rows, "", shares, unlisted, dict(groups.most_common(SHOWN)), persons, over, without_id)


def _over_bound(rows: NDArray[np.uint64], unit: Unit) -> tuple[int, int]:
    """The number of persons, and of those with more rows than are counted."""
    rows = rows[np.lexsort(rows.T[::-1])]
    person, place = runs_of(rows[:, 0], rows[:, 1]), runs_of(*rows.T)
    over = np.bincount(person) > unit.max_rows
    if unit.per_group is not None:
        over[person[np.bincount(place)[place] > unit.per_group]] = True
    return len(over), int(over.sum())


def _texts(cells: Any, chosen: NDArray[np.bool_]) -> list[str]:
    """The chosen cells as text that cannot move the cursor or forge a line of a terminal."""
    if not chosen.any():
        return []
    plain = plain_array(cells)
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    values = python_values(plain.take(pa.array(np.flatnonzero(chosen))))
    shown = ("(missing)" if value is None else str(value)[:40] for value in values)
    return ["".join(each if each.isprintable() else repr(each)[1:-1] for each in text) for text in shown]


def _remember(values: Counter[str], texts: Sequence[str]) -> None:
    values.update(texts)
    if len(values) > 2 * REMEMBERED:
        common = values.most_common(REMEMBERED)
        values.clear()
        values.update(dict(common))


def _listed(values: dict[str, int]) -> str:
    return ", ".join(f"{value} {number:,}" for value, number in values.items())
