"""Asking adaptively through the one door: what is asked next may depend on what was answered, the price may not.

    check     the ledger has the budget and every release beside the file, whose folder is there; no row is read
    count     true counts of the first parts: what the table does not have shall fail here
    reserve   the whole budget is in the ledger, durably, before anything is chosen or answered
    ask       choices and noisy answers, each paid from what was reserved; nothing beyond it
    write     the noisy answers, sealed
    commit    the ledger knows their hash

Epsilons of adaptively chosen mechanisms add up (basic composition), so the run as a whole costs what was reserved,
whatever was asked. True counts are held by a `Door` while it is open. It has two ways to tell something of them: which
score is large (`choose`) and noisy counts (`answer`); its text has none, and it is neither copied nor pickled.

Each step is announced to audit hooks as ("prade.step", "adaptive.<step>").
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from prade.core.errors import BudgetError, DataError, PradeError
from prade.core.numbers import exact
from prade.measuring.adaptive.scores import MOST_ROWS, Dependence, Misfit, Score
from prade.measuring.adaptive.selection import select
from prade.measuring.counts import Counts, count
from prade.measuring.identity import refuse_public
from prade.measuring.noise import add_noise
from prade.measuring.source import Source, open_source
from prade.measuring.staging import reason, write_sealed
from prade.privacy.budget import Budget, Number
from prade.privacy.dataset_names import dataset_name
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Claim, Entry
from prade.privacy.protection import refuse_weak
from prade.privacy.unit import Unit
from prade.queries.parts import Marginal, Part
from prade.release.beside import Terms, need_on_record
from prade.release.measurement import Measurement
from prade.release.release import file_hash, head_of, read_sealed

if TYPE_CHECKING:
    from prade.data.schema import Schema

__all__ = ["Dependence", "Door", "Misfit", "adaptive", "answered"]

FORMAT = 1
Result = TypeVar("Result")


class Door:
    """The private counts of one run, behind two questions. Made by `adaptive`, and empty once its block ends."""

    __slots__ = ("_counts", "_left", "_measurements", "_record", "_schema", "_source", "_unit")

    def __init__(self, source: Source, schema: Schema, unit: Unit) -> None:
        self._source, self._schema, self._unit = source, schema, unit
        self._counts: dict[Part, Counts] = {}
        self._left = Fraction(0)  # nothing is told before the budget is reserved
        self._measurements: list[Measurement] = []
        self._record: list[dict[str, Any]] = []

    @property
    def left(self) -> Fraction:
        """The epsilon that is reserved and not yet used."""
        return self._left

    @property
    def unit(self) -> Unit:
        """What one person can change."""
        return self._unit

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy answers so far, in order."""
        return tuple(self._measurements)

    def choose(self, scores: Sequence[Score], epsilon: Number) -> int:
        """The place of a score that is large, for this epsilon (see `prade.measuring.adaptive.selection.select`)."""
        kinds = {type(score) for score in scores}
        if len(kinds) != 1 or not kinds <= {Misfit, Dependence}:
            raise PradeError(
                "choose takes a list of Misfit or of Dependence scores: for others no sensitivity is known"
            )
        cost, most = self._affordable(epsilon), scores[0].sensitivity(self._unit.rows)
        self._need([score.part for score in scores])
        self._left -= cost  # before anything is drawn
        place, failure = _quietly(lambda: select([s.of(self._true(s.part)) for s in scores], most, cost))
        if place is None:
            raise DataError(f"nothing could be chosen ({failure}); the epsilon {cost} is used")
        self._record.append({"chosen": scores[place].part.name, "of": len(scores), "epsilon": str(cost)})
        return place

    def answer(self, part: Part, epsilon: Number) -> Measurement:
        """Noisy counts of a part: discrete Laplace noise of scale unit.rows / epsilon."""
        cost = self._affordable(epsilon)
        scale = Budget.pure(cost).noise_scale(self._unit.rows, self._unit.rows**2)
        self._need([part])
        self._left -= cost
        noisy, failure = _quietly(lambda: add_noise(self._true(part), "laplace", scale))
        if noisy is None:
            raise DataError(f"{part.name}: no noise could be added ({failure}); the epsilon {cost} is used")
        measurement = Measurement(part, noisy, float(scale))
        self._measurements.append(measurement)
        asked = {"part": part.name, "columns": list(part.columns), "epsilon": str(cost), "scale": str(scale)}
        self._record.append({**asked, "counts": noisy.tolist()})
        return measurement

    def _need(self, parts: Sequence[Part]) -> None:
        """Count what has not been counted yet, each table once, where the rows are."""
        missing = [part for part in dict.fromkeys(map(self._table, parts)) if part not in self._counts]
        found = [each[0] for each in count(self._source, self._schema, missing, None, self._unit)] if missing else []
        if any(int(counts.sum()) > MOST_ROWS for counts in found):
            raise DataError("the table has more than 2**33 rows, for which no sensitivity is proved here; take fewer")
        self._counts.update(zip(missing, found, strict=True))

    def _table(self, part: Part) -> Part:
        """The part that is counted for this one: a marginal is counted once, whatever the order of its columns."""
        return Marginal.of(self._schema, sorted(part.columns)) if isinstance(part, Marginal) else part

    def _true(self, part: Part) -> Counts:
        """The counts of a part, in the order of its own columns."""
        counted = self._table(part)
        counts = self._counts[counted]
        if not isinstance(counted, Marginal) or counted == part:
            return counts
        axes = [counted.columns.index(name) for name in part.columns]
        return np.ascontiguousarray(counts.reshape(counted.sizes).transpose(axes)).ravel()

    def _affordable(self, epsilon: Number) -> Fraction:
        cost = exact(epsilon, "epsilon")
        if cost <= 0:
            raise PradeError(f"epsilon is {cost}; whatever is told of private rows costs more than 0")
        if cost > self._left:
            raise BudgetError(
                f"{cost} was asked for, but only {self._left} of what was reserved is left: nothing was told; plan the "
                "rounds so that their epsilons add up to the budget",
                Budget.pure(self._left),
                Budget.pure(cost),
            )
        return cost

    def _forget(self) -> None:
        self._counts.clear()
        self._left = Fraction(0)

    def __repr__(self) -> str:
        return f"Door({self._source.name!r}, epsilon left {self._left})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PradeError("a Door holds true counts, so it is neither copied nor pickled; keep its noisy answers")


@contextmanager
def adaptive(
    private: Any,
    schema: Schema,
    parts: Sequence[Part],
    path: str | PathLike[str],
    ledger: Ledger | str | PathLike[str],
    *,
    dataset: str,
    task: str,
    budget: Budget,
    unit: Unit,
    note: str = "",
    again: bool = False,
    public: Any = None,
    weak_protection: bool = False,
) -> Iterator[Door]:
    """A `Door` to the private table for one run; the whole `budget` (a pure one) is spent, used or not.

    `parts` are counted before anything is spent; others are counted when they are first asked for. `task` is the hash
    of everything that the run depends on but private rows: the ledger refuses a second run of it, unless `again`. At
    the end the noisy answers are written to `path`, from which `answered` reads them at no cost; when the block fails
    before it has used all epsilon, nothing is written and the budget is spent. `public` and `weak_protection` are as
    in `prade.measuring.run.measure`.

    >>> import pyarrow
    >>> from prade import Budget, Ledger, Schema, Unit, Workload
    >>> schema = Schema.from_mbi({"a": 2, "b": 3})
    >>> ledger = Ledger("people.ledger")
    >>> people = ledger.open_dataset("people", Unit(1), cap=Budget.pure(100))
    >>> rows = pyarrow.table({"a": [0, 0, 1] * 30, "b": [2, 2, 0] * 30})
    >>> parts = Workload.all_marginals(schema, 1).parts
    >>> terms = {"dataset": "people", "task": "3f2a", "budget": Budget.pure(100), "unit": Unit(1)}
    >>> with adaptive(rows, schema, parts, "answers.json", ledger, weak_protection=True, **terms) as door:
    ...     worst = door.choose([Misfit(parts[0], [45, 45]), Misfit(parts[1], [30, 0, 60])], epsilon=40)
    ...     answer = door.answer(parts[worst], epsilon=60)
    >>> worst, answer.counts
    (0, array([60., 30.]))
    >>> len(answered("answers.json", schema, parts, ledger, dataset="people", task="3f2a"))
    1
    """
    ledger, place = ledger if isinstance(ledger, Ledger) else Ledger(ledger), Path(path).resolve()
    _check(place, ledger, dataset, task, budget, unit, again, weak_protection)
    source = open_source(private)
    door = Door(source, schema, unit)
    try:
        refuse_public(source, public)
        door._need(parts)
        _step("counted")
        entry = ledger.reserve(dataset, task, budget, note, unit=unit, again=again)
        door._left = budget.epsilon
        _step("reserved")
        try:
            yield door
        except BaseException:
            if not door.left:  # all that was paid for has been told; what failed is what was made of it
                _keep(door, place, ledger, entry)
            raise
        _keep(door, place, ledger, entry)
    finally:
        door._forget()
        if source is not private:
            source.close()


def answered(
    path: str | PathLike[str],
    schema: Schema,
    parts: Sequence[Part],
    ledger: Ledger | str | PathLike[str],
    *,
    dataset: str,
    task: str,
) -> list[Measurement] | None:
    """The noisy answers of a run of this task, if they are in the file and the ledger paid for them; None without one.

    `parts` are those of the run; of what was asked besides, only marginals can be read back.
    """
    ledger, place = ledger if isinstance(ledger, Ledger) else Ledger(ledger), Path(path).resolve()
    if not place.exists():
        return None
    content = read_sealed(place)
    if content.get("task") != task:
        raise DataError(f"{place} holds the answers of another run; give a file of its own to this one")
    paid = ledger.paid(dataset, Claim(task, content["entry"], file_hash(place), head_of(content)))
    if paid is None:
        raise DataError(f"{ledger.path} did not pay for the answers in {place}; give the ledger that did")
    ledger.commit(paid.id, file_hash(place))  # a run that broke off after writing is completed here
    known = {part.name: part for part in parts}
    told = [each for each in content["record"] if "counts" in each]
    return [
        Measurement(
            known.get(each["part"]) or Marginal.of(schema, each["columns"]),
            each["counts"],
            float(Fraction(each["scale"])),
        )
        for each in told
    ]


def _check(
    place: Path, ledger: Ledger, dataset: str, task: str, budget: Budget, unit: Unit, again: bool, weak: bool
) -> None:
    """Everything that can be refused without reading a row."""
    if not isinstance(budget, Budget) or budget.kind != "pure":
        raise PradeError(f"an adaptive run is paid for in pure epsilon, got {budget!r}; give Budget.pure(...)")
    refuse_weak(budget, weak)
    if place.exists():
        raise DataError(f"{place} exists and is kept: read it with `answered`, or give another file")
    if not place.parent.is_dir():
        raise DataError(f"there is no folder {place.parent} that can be written to; make it first")
    need_on_record(Terms(dataset_name(dataset), budget, unit), place, ledger)
    ledger.check(dataset, task, budget, unit=unit, again=again)
    _step("checked")


def _keep(door: Door, place: Path, ledger: Ledger, entry: Entry) -> None:
    content = {"format": FORMAT, "dataset": entry.dataset, "task": entry.plan_hash, "entry": entry.id}
    content["head"] = entry.head and entry.head.to_dict()
    if place.exists():
        raise DataError(
            f"another run has written its answers to {place} in the meantime; they are kept, and those of entry "
            f"{entry.id} of data set {entry.dataset!r} are lost, though it is spent in {ledger.path}"
        )
    try:
        write_sealed(place, {**content, "record": door._record})
    except OSError as error:
        raise DataError(
            f"the noisy answers could not be written to {place} ({reason(error)}): entry {entry.id} of data set "
            f"{entry.dataset!r} is spent in {ledger.path}. Mend that, then run with again=True, which spends "
            f"{entry.cost} once more"
        ) from None
    _step("written")
    ledger.commit(entry.id, file_hash(place))
    _step("committed")


def _quietly(task: Callable[[], Result]) -> tuple[Result | None, str]:
    """Its result, or why there is none; an error is raised elsewhere, so that no frame of it leads back to a count."""
    try:
        return task(), ""
    except Exception as error:
        return None, reason(error)


def _step(name: str) -> None:
    sys.audit("prade.step", f"adaptive.{name}")
