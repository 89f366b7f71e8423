"""A small plan, and runs of it that are observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from prade import Budget, Column, Schema, Unit, Workload
from prade.core.execution import Execution
from prade.measuring.run import measure
from prade.measuring.source import open_source
from prade.measuring.streams import Stream
from prade.planning.plan import Plan
from prade.planning.questions import Level
from worlds.counting import count
from worlds.observation import Observed, observing
from worlds.plans import ledger_for
from worlds.private_tables import TABLES

SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=[18, 65], missing=True),
        Column("SEX", "categorical", values=["f", "m"], missing=True),
        Column("HOURS", "numeric", edges=[20, 38]),
    ]
)
GROUPS = {"PLACE": ["a", "b", "nobody"]}
LEVELS = [Level((), Workload.all_marginals(SCHEMA, 1), total=1), Level("PLACE", Workload.all_marginals(SCHEMA, 2))]
PERSONS = Unit(2, person_id="ID", per_group=1)
PLAN = Plan("people", SCHEMA, Budget.pure(1), PERSONS, LEVELS, GROUPS)
EMPTY = TABLES["empty"]
LEDGER = "budget.ledger"


def plan_for(unit: Unit = PERSONS, budget: Budget = PLAN.budget) -> Plan:
    return Plan("people", SCHEMA, budget, unit, LEVELS, GROUPS)


def counts_of(private: Any, unit: Unit | None = None) -> list[list[Any]]:
    """The counts of every column, pair and place, of a source or of what is to be opened as one."""
    parts = Workload.all_marginals(SCHEMA, 2).parts
    with private if isinstance(private, Stream) else open_source(private) as source:
        return [each.tolist() for each in count(source, SCHEMA, parts, GROUPS, unit)]


class Runs:
    """Runs in one folder, with their private files in another: names are in messages, so both are always the same."""

    def __init__(self, folder: Path) -> None:
        self.home, self.private = folder / "home", folder / "private"

    def measured(self, kind: Any, table: pa.Table, plan: Plan = PLAN, *, broken: str = "") -> Observed:
        """`measure`, in Python; what it returns and tells its caller's `progress` is observed, too."""
        with self.given(kind, table) as private, observing(self.home, broken=broken) as found:
            release = measure(
                plan, private, "release", ledger_for(plan, LEDGER), execution=Execution(1, progress=self.told(found))
            )
            found["release"] = repr(release), [each.tolist() for part in release.noisy for each in part]
        return found

    @contextmanager
    def given(self, kind: Any, table: pa.Table) -> Iterator[Any]:
        self.private.mkdir()
        yield kind(table, self.private)
        for path in self.private.iterdir():
            path.unlink()
        self.private.rmdir()

    @staticmethod
    def told(found: Observed) -> Callable[..., None]:
        return lambda *arguments: found["progress"].append(arguments)


def succeeded(found: Observed) -> Observed:
    """Two runs that fail alike would show nothing."""
    assert found["outcome"] == "returned", found["outcome"]
    assert found["file release/release.json"][1] > 0
    return found
