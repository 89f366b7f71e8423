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
from numpy.typing import NDArray

from prade.core.errors import DataError, many
from prade.data.read.cells import plain_array, python_values
from prade.data.read.coding import code_cells, exact_ids
from prade.measuring.person_bound import hashed, runs_of
from prade.measuring.source import Counting, guarded, open_source
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

    `problem` says why the table cannot be measured; `extra` are columns that the plan does not need. `outside` has, for
    each column with cells outside the schema, their share and the commonest of them. `unlisted` has the commonest
    groups that are not on the list, with their rows. `over_bound` is the number of persons with more rows than are
    counted.
    """

    rows: int = 0
    problem: str = ""
    extra: list[str] = field(default_factory=list)
    outside: dict[str, tuple[float, dict[str, int]]] = field(default_factory=dict)
    unlisted_rows: int = 0
    unlisted: dict[str, int] = field(default_factory=dict)
    empty_groups: list[str] = field(default_factory=list)
    persons: int | None = None
    over_bound: int | None = None
    without_id: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the plan can be measured, and at most a tenth of each column's cells and of all rows is left out."""
        shares = [share for share, _ in self.outside.values()]
        return not self.problem and max([*shares, self.unlisted_rows / max(1, self.rows)]) <= TOO_MANY

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        outside = {name: {"share": share, "values": values} for name, (share, values) in self.outside.items()}
        return {"warning": WARNING, "fits": self.fits, **asdict(self), "outside": outside}

    def __str__(self) -> str:
        if self.problem:
            return "\n".join([WARNING, self.problem, "No row was looked at: correct this first."])
        lines = [WARNING, many(self.rows, "row")]
        if self.extra:
            lines.append(f"not needed by the plan: {', '.join(self.extra)}")
        for name, (share, values) in self.outside.items():
            verdict = ": is this column coded as the schema says?" if share > TOO_MANY else ""
            lines.append(f"{name}: {share:.1%} of the cells are outside the schema ({_listed(values)}){verdict}")
        if not self.outside:
            lines.append("all cells fit the schema")
        if self.unlisted_rows:
            rows = f"{many(self.unlisted_rows, 'row')} ({self.unlisted_rows / self.rows:.1%})"
            lines.append(f"{rows} in groups that are not listed, which do not count ({_listed(self.unlisted)})")
        if self.empty_groups:
            shown = ", ".join(self.empty_groups[:SHOWN]) + (", ..." if len(self.empty_groups) > SHOWN else "")
            lines.append(f"{many(len(self.empty_groups), 'listed group')} without a row: {shown}")
        if self.persons is not None:
            lines.append(
                f"{many(self.persons, 'person')}, {self.over_bound:,} of them with more rows than are counted; "
                f"{many(self.without_id or 0, 'row')} without an id, which do not count"
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
            tally = Counting.of_plan(source, plan).tally
        except DataError as error:
            return Check(problem=str(error))
        look = _Look(tally)
        guarded(f"reading {source.name}", lambda: look.over(source.stream.read(tally.names or source.columns[:1])))
        return look.result(plan, [name for name in source.columns if name not in (*tally.names, *plan.groups.names)])


class _Look:
    """What has been seen of the rows so far."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._rows = self._unlisted = self._without_id = 0
        self._outside: Counter[str] = Counter()
        self._values: dict[str, Counter[str]] = defaultdict(Counter)
        self._groups: Counter[str] = Counter()
        self._filled = np.zeros(tally.listed[-1].size, np.bool_)
        self._people: list[NDArray[Any]] = []

    def over(self, batches: Iterable[Batch]) -> None:
        """Look at all rows."""
        for cells in batches:
            self._at(cells)

    def _at(self, cells: Batch) -> None:
        rows = len(next(iter(cells.values())))
        self._rows += rows
        listed = self._tally.listed[-1]
        joint, number = listed.joint_codes(cells, rows, refuse=False)
        self._filled[number[number >= 0]] = True
        for column in self._tally.columns:
            fits = code_cells(column, cells[column.name], refuse=False)[1]
            self._outside[column.name] += int((~fits).sum())
            _remember(self._values[column.name], _texts(cells[column.name], ~fits))
        if (elsewhere := number < 0).any():
            self._unlisted += int(elsewhere.sum())
            keys = [column.name for column in listed.columns]
            each = zip(*(_texts(cells[name], elsewhere) for name in keys), strict=True)
            _remember(self._groups, [", ".join(f"{n} {v}" for n, v in zip(keys, row, strict=True)) for row in each])
        if self._tally.person is not None:
            halves, known = hashed(exact_ids(cells[self._tally.person]), self._tally.secret)
            counted = known & (number >= 0)
            self._without_id += int((~known).sum())
            self._people.append(np.column_stack([halves[counted], joint[counted].astype(np.uint64)]))

    def result(self, plan: Plan, extra: list[str]) -> Check:
        """What was seen."""
        labels = plan.groupings[-1].labels() if plan.groups.names else []
        persons: tuple[int | None, ...] = (None, None, None)
        if self._tally.person is not None:
            rows = np.concatenate([np.zeros((0, 3), np.uint64), *self._people])
            persons = (*_over_bound(rows, plan.unit), self._without_id)
        return Check(
            self._rows,
            "",
            extra,
            {n: (k / self._rows, dict(self._values[n].most_common(SHOWN))) for n, k in self._outside.items() if k},
            self._unlisted,
            dict(self._groups.most_common(SHOWN)),
            [label for label, filled in zip(labels, self._filled, strict=False) if not filled],
            *persons,
        )


def _over_bound(rows: NDArray[np.uint64], unit: Unit) -> tuple[int, int]:
    """The number of persons, and of those with more rows than are counted; a row is a person in two halves, a group."""
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
    import pyarrow as pa

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
