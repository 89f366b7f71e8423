"""Workloads, budget split and settings chosen by rehearsal on public data, before any budget is spent.

A coordinate search: one choice after another is changed, the whole run is rehearsed (`prade.rehearse`), and a change is
kept when the mean error falls by more than its standard error,

    mean(d) < -sd(d) / sqrt(number of groups),      d: difference of a group's error, with and without the change

Both sides have the same groups and the same noise up to its scale, so that d says more than the errors do. Candidates
come from simple to elaborate, so that ties stay simple. What is chosen is rehearsed once more with fresh noise: the best
of many trials was partly lucky, and what is promised must not be. Nothing here can see private rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.column import names_of
from prade.errors import PradeError
from prade.groups import Groups
from prade.plan import Ask, Expected, Level, Plan
from prade.privacy import Budget, Unit
from prade.public import Public
from prade.rehearse import WORDS, Rehearsal
from prade.schema import Schema
from prade.select import Information, strongest_pairs
from prade.settings import Settings
from prade.workload import Workload
from prade.worth import worth

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Columns = tuple[str, ...]
Progress = Callable[[str, int, int], None]

TOTALS = tuple(Fraction(share) for share in ("1/50", "1/20", "1/10", "1/5", "1/3"))
ONE_WAY = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))  # of the columns, those that pay best
TWO_WAY = (5, 15)
SHARES_ABOVE = (Fraction(1, 10), Fraction(3, 10))
MIXTURES, OWNS, N0S = (0.3, 0.7), (0.9, 0.999), (3.0, 30.0)
MOST_CELLS = 100  # of a two-way part: a group has too few rows for more
MOST_PAIRS = 60  # that are looked at more closely
FEWEST_ERRORS = 8  # that a mean is taken of: with fewer groups, noise is drawn several times
CLEARLY = 2.0  # standard errors by which a candidate must be behind after one fold for the others to be spared


@dataclass(frozen=True)
class Choice:
    """What is chosen: the columns of each part and the share of the totals at the last level, and what is asked above.

    `above` has the share of the whole budget and the parts of each level but the last.
    """

    parts: tuple[Columns, ...]
    above: tuple[tuple[Fraction, tuple[Columns, ...]], ...]
    total: Fraction = Fraction(0)
    settings: Settings = Settings()


@dataclass(frozen=True)
class Trial:
    """One rehearsal: what was changed, its error, the best so far on the same folds, and the difference's spread."""

    what: str
    error: float
    best: float
    spread: float
    kept: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The outcome: a plan with its settings and expected error, advice in plain words, and everything that was tried."""

    plan: Plan
    advice: str
    trials: tuple[Trial, ...]
    finished: bool  # False: the time was up before all candidates had their turn

    @property
    def settings(self) -> Settings:
        """How to estimate."""
        return self.plan.settings or Settings()

    @property
    def expected(self) -> Expected:
        """The error to expect, and the prior's."""
        assert self.plan.expected is not None
        return self.plan.expected

    @property
    def prior_error(self) -> float:
        """The error of the public rows as they are."""
        return self.expected.prior

    def table(self) -> pa.Table:
        """The trials, one a row."""
        import pyarrow as pa

        return pa.Table.from_pylist([vars(trial) for trial in self.trials])


def tune(
    dataset: str,
    schema: Schema,
    budget: Budget,
    unit: Unit,
    levels: Sequence[str | Sequence[str]],
    groups: Any,
    public: Any,
    *,
    seconds: float = 120,
    seed: int = 0,
    weight: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """A plan for this budget, chosen by rehearsal on the `public` table (a table, a file or a `Public`).

    `levels` are the columns of each level, as in ``["STATE", "PUMA"]``, `groups` is the public list of groups, `weight` a
    column of public weights. It takes about `seconds`, and at least two rehearsals; what it finds is the same for the
    same seed unless the time is up first. `progress(what, done, all)` is told the seconds.

    >>> from prade.datasets import census_like
    >>> data = census_like(persons=2_000, places_per_state=4, seed=1)
    >>> groups = data.groups.select(["PLACE"]).group_by(["PLACE"]).aggregate([])
    >>> tuned = tune("people", data.schema, Budget.pure(1), Unit(4), ["PLACE"], groups, data.public, seconds=0)
    >>> tuned.advice.split(":")[0], tuned.finished, len(tuned.trials)
    ('Do not touch the private data at this budget', False, 1)
    """
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        raise PradeError(f"seconds is {seconds!r}: give how long the tuner may take, such as 120")
    began = time.monotonic()
    listed = Groups.of(groups)
    nest: list[Columns] = [names_of(level) for level in levels] or [()]
    rows = public if isinstance(public, Public) else Public.of(schema, public, listed.names, weight=weight)
    rehearsal = Rehearsal.of(rows, listed, nest, seed=seed, threads=threads)

    def plan_of(choice: Choice, expected: Expected | None = None) -> Plan:
        return Plan(
            dataset,
            schema,
            budget,
            unit,
            _levels(schema, nest, choice),
            listed,
            settings=choice.settings,
            expected=expected,
        )

    search = Search(rehearsal, plan_of, began + seconds, seed, progress)
    one_way = tuple((name,) for name in schema.coded)
    search.start(Choice(one_way, ((Fraction(0), ()),) * (len(nest) - 1)))
    finished = search.run(Candidates(rehearsal, rows, plan_of))
    expected = search.expected()
    plan = plan_of(search.best, expected)
    return Tuned(plan, _advice(rehearsal, plan, finished), tuple(search.trials), finished)


def _levels(schema: Schema, nest: Sequence[Columns], choice: Choice) -> list[Level]:
    found = [
        Level(by, Ask(Workload.marginals(schema, parts), share) if share else (), 0)
        for by, (share, parts) in zip(nest, choice.above, strict=False)
    ]
    last = 1 - sum((share for share, _ in choice.above), Fraction(0))
    ask = Ask(Workload.marginals(schema, choice.parts), last * (1 - choice.total))
    return [*found, Level(nest[-1], ask, last * choice.total)]


# ---------------------------------------------------------------------- candidates


class Candidates:
    """What may be changed, one thing at a time, from simple to elaborate."""

    def __init__(self, rehearsal: Rehearsal, public: Public, plan_of: Callable[[Choice], Plan]) -> None:
        self.rehearsal = rehearsal
        self.schema = public.prior.schema
        self.plan_of = plan_of
        strongest = strongest_pairs(Information.of(public.prior, self.schema.coded))
        small = [pair for pair in strongest if self.schema.domain_size(pair) <= MOST_CELLS]
        self.pairs: list[Columns] = list(small[:MOST_PAIRS])

    def changes(self, best: Callable[[], Choice]) -> Iterator[Iterator[tuple[str, Choice]]]:
        """Ladders of changes to what is the best when their turn comes: who falls from a rung need not climb on."""
        yield ((f"share of the totals {share}", replace(best(), total=share)) for share in (Fraction(0), *TOTALS))
        yield self._one_way(best)
        yield self._two_way(best)
        for place in reversed(range(len(best().above))):
            yield self._above(best, place)
        options = {"mixture": MIXTURES if self._several_groups() else (), "own": OWNS if self._own() else (), "n0": N0S}
        for name, values in options.items():
            for value in (getattr(Settings(), name), *values):
                yield iter([(f"{name} {value:g}", replace(best(), settings=replace(best().settings, **{name: value})))])

    def _one_way(self, best: Callable[[], Choice]) -> Iterator[tuple[str, Choice]]:
        columns: list[Columns] = [(name,) for name in self.schema.coded]
        ranked = self._ranked(columns, best())
        for share in (Fraction(1), *ONE_WAY):
            number = math.ceil(share * len(columns))
            kept = tuple(part for part in columns if part in ranked[:number])
            pairs = tuple(part for part in best().parts if len(part) > 1)
            yield f"{number} one-way parts", replace(best(), parts=kept + pairs)

    def _two_way(self, best: Callable[[], Choice]) -> Iterator[tuple[str, Choice]]:
        single = tuple(part for part in best().parts if len(part) == 1)
        ranked = self._ranked(self.pairs, best())
        for number in (0, *TWO_WAY):
            yield f"{number} two-way parts", replace(best(), parts=single + tuple(ranked[:number]))

    def _above(self, best: Callable[[], Choice], place: int) -> Iterator[tuple[str, Choice]]:
        single: tuple[Columns, ...] = tuple((name,) for name in self.schema.coded)
        asked = {"nothing": (Fraction(0), ())} | {
            f"{words} for {share}": (share, parts)
            for words, parts in (
                ("one-way parts", single),
                ("one- and two-way parts", single + tuple(self.pairs[: TWO_WAY[-1]])),
            )
            for share in SHARES_ABOVE
        }
        for words, ask in asked.items():
            if sum(share for share, _ in best().above[:place] + (ask,) + best().above[place + 1 :]) < 1:
                above = best().above[:place] + (ask,) + best().above[place + 1 :]
                yield f"level {place + 1}: {words}", replace(best(), above=above)

    def _ranked(self, parts: Sequence[Columns], choice: Choice) -> list[Columns]:
        """The parts by what asking for them at this choice's noise would improve, the best first."""
        question = self.plan_of(choice).questions[-1]
        gains = [worth(self.rehearsal.folds, self.schema, part, question.variance) for part in parts]
        return [parts[k] for k in np.argsort(-np.array(gains), kind="stable")]

    def _several_groups(self) -> bool:
        return all(len(fold.public.groups) > 1 for fold in self.rehearsal.folds)

    def _own(self) -> bool:
        """Whether public rows of the same groups are there, at any level."""
        plan = self.plan_of(Choice(((self.schema.coded[0],),), ()))
        del plan
        return self.rehearsal.kind == "same groups"
