"""Adaptive measuring through the one door: the next question may depend on earlier answers, but the price may not.

    check     the ledger has the budget, the folder of the file exists, the table has the columns; no row is read
    reserve   the whole budget is in the ledger, durably, before the first row is read
    count     true counts of the first parts
    draw      the ledger records that noise is drawn
    ask       choices and noisy answers, each paid from what was reserved, and no more than that
    write     the noisy answers, sealed
    commit    the ledger records their hash

Epsilons of adaptively chosen mechanisms add up (basic composition), so the run as a whole costs what was reserved,
whatever it asks. A `Door` holds true counts while it is open. It reveals something about them in two ways only: which
score is large (`choose`) and noisy counts (`answer`). Its text shows no count, and it cannot be copied or pickled.

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

from prade.core.errors import BudgetError, DataError, PradeError, Remedy
from prade.core.interrupts import held_back
from prade.core.numbers import exact
from prade.measuring.adaptive.scores import MOST_ROWS, Dependence, Gain, Misfit, Score
from prade.measuring.adaptive.selection import select
from prade.measuring.noise import add_noise
from prade.measuring.refusals import refuse_same_contents, refuse_same_files
from prade.measuring.run import reason, traced, write_sealed
from prade.measuring.source import Counting, Source, count, open_source
from prade.measuring.tally import Counts
from prade.privacy.budget import Budget, Number
from prade.privacy.dataset_names import dataset_name
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Claim, Entry
from prade.privacy.protection import Unit, refuse_weak
from prade.queries.parts import Marginal, Part
from prade.release.payment import Terms, need_on_record
from prade.release.release import Measurement, file_hash, head_of, read_sealed

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

__all__ = ["Dependence", "Door", "Gain", "Misfit", "adaptive", "answered"]

FORMAT = 1
Result = TypeVar("Result")


class Door:
    """The private counts of one run, behind two methods. Made by `adaptive`, and empty once its block ends."""

    __slots__ = ("_counts", "_left", "_measurements", "_record", "_schema", "_source", "_unit")

    def __init__(self, source: Source, schema: Schema, unit: Unit) -> None:
        self._source, self._schema, self._unit = source, schema, unit
        self._counts: dict[Part, Counts] = {}
        self._left = Fraction(0)  # nothing is revealed before the budget is reserved
        self._measurements: list[Measurement] = []
        self._record: list[dict[str, Any]] = []

    @property
    def left(self) -> Fraction:
        """The epsilon that is reserved and not yet used."""
        return self._left

    @property
    def unit(self) -> Unit:
        """How much of the table one person can change."""
        return self._unit

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy answers so far, in order."""
        return tuple(self._measurements)

    def choose(self, scores: Sequence[Score], epsilon: Number) -> int:
        """The index of a large score, for this epsilon (see `prade.measuring.adaptive.selection.select`)."""
        types = {type(score) for score in scores}
        if len(types) != 1 or not types <= {Misfit, Gain, Dependence}:
            raise PradeError(
                "choose takes a list of Misfit scores, of Gain scores or of Dependence scores: the sensitivity of "
                "others is not known"
            )
        cost, most = self._affordable(epsilon), scores[0].sensitivity(self._unit.rows)
        self._need([score.part for score in scores])
        self._left -= cost  # before anything is drawn
        index, failure = _quietly(lambda: select([s.of(self._true(s.part)) for s in scores], most, cost))
        if index is None:
            raise DataError(f"the choice failed ({failure}); its epsilon {cost} is spent")
        self._record.append({"chosen": scores[index].part.name, "of": len(scores), "epsilon": str(cost)})
        return index

    def answer(self, part: Part, epsilon: Number) -> Measurement:
        """Noisy counts of a part: discrete Laplace noise of scale unit.rows / epsilon."""
        cost = self._affordable(epsilon)
        scale = Budget.pure(cost).noise_scale(self._unit.rows, self._unit.rows**2)
        self._need([part])
        self._left -= cost
        noisy, failure = _quietly(lambda: add_noise(self._true(part), "laplace", scale))
        if noisy is None:
            raise DataError(f"{part.name}: adding noise failed ({failure}); its epsilon {cost} is spent")
        measurement = Measurement(part, noisy, float(scale))
        self._measurements.append(measurement)
        asked = {"part": part.name, "columns": list(part.columns), "epsilon": str(cost), "scale": str(scale)}
        self._record.append({**asked, "counts": noisy.tolist()})
        return measurement

    def _need(self, parts: Sequence[Part]) -> None:
        """Count, in the rows' own engine, the parts that have not been counted yet."""
        missing = [part for part in dict.fromkeys(map(self._table, parts)) if part not in self._counts]
        counted = [each[0] for each in count(self._source, self._schema, missing, None, self._unit)] if missing else []
        if any(int(counts.sum()) > MOST_ROWS for counts in counted):
            raise DataError("the table has more than 2**33 rows, beyond what the sensitivity proofs cover; use fewer")
        self._counts.update(zip(missing, counted, strict=True))

    def _table(self, part: Part) -> Part:
        """The part that is counted in place of this one: a marginal is counted once, whatever its columns' order."""
        return Marginal.of(self._schema, sorted(part.columns)) if isinstance(part, Marginal) else part

    def _true(self, part: Part) -> Counts:
        """The true counts of a part, in the order of its own columns."""
        counted = self._table(part)
        counts = self._counts[counted]
        if not isinstance(counted, Marginal) or counted == part:
            return counts
        axes = [counted.columns.index(name) for name in part.columns]
        return np.ascontiguousarray(counts.reshape(counted.sizes).transpose(axes)).ravel()

    def _affordable(self, epsilon: Number) -> Fraction:
        cost = exact(epsilon, "epsilon")
        if cost <= 0:
            raise PradeError(f"epsilon is {cost}; every answer about private rows needs an epsilon above 0")
        if cost > self._left:
            raise BudgetError(
                f"the question costs {cost}, but only {self._left} of the reserved epsilon is left. Nothing was "
                "revealed: plan the rounds so that their epsilons add up to the budget",
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
        raise PradeError("a Door holds true counts, so it cannot be copied or pickled; keep its noisy answers instead")


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
    """A `Door` to the private table for one run; the whole `budget`, which must be pure, is spent, used or not.

    `parts` are counted first, others when they are first needed. `task` is the hash of everything but private rows that
    the run depends on: the ledger refuses a second run of it, unless `again`. At the end the noisy answers are written
    to `path`, from which `answered` reads them at no cost. If the block fails before it has used all of its epsilon,
    nothing is written and the budget is spent. `public` and `weak_protection` are as in `prade.measuring.run.measure`.

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
    ledger, target = ledger if isinstance(ledger, Ledger) else Ledger(ledger), Path(path).resolve()
    _check(target, ledger, dataset, task, budget, unit, again, weak_protection)
    with _door(private, schema, unit) as door, traced(ledger) as trace:
        refuse_same_files(door._source, public)
        Counting.of(door._source, schema, [((), parts)], None, unit)  # the table has the columns, in types that fit
        with held_back():
            entry = trace.entry = ledger.reserve(dataset, task, budget, note, unit=unit, again=again, folder=target)
        _step("reserved")
        refuse_same_contents(door._source, public)
        door._need(parts)
        _step("counted")
        trace.start_drawing(ledger)
        door._left = budget.epsilon
        try:
            yield door
        except BaseException:
            if not door.left:  # all that was paid for has been answered; the failure came after that
                _keep(door, target, ledger, entry)
            raise
        trace.stage = "write"
        _keep(door, target, ledger, entry)


@contextmanager
def _door(private: Any, schema: Schema, unit: Unit) -> Iterator[Door]:
    """A door to a source; when the block ends, the door forgets its counts and a source opened here is closed."""
    source = open_source(private)
    door = Door(source, schema, unit)
    try:
        yield door
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
    """The noisy answers in the file of an earlier run of this task, if the ledger paid for them; None without a file.

    `parts` are those of that run; of its other questions, only marginals can be read back.
    """
    ledger, target = ledger if isinstance(ledger, Ledger) else Ledger(ledger), Path(path).resolve()
    if not target.exists():
        return None
    content = read_sealed(target)
    if content.get("task") != task:
        raise DataError(f"{target} holds the answers of another run; choose a separate file for this one")
    paid = ledger.paid(dataset, Claim(task, content["entry"], file_hash(target), head_of(content)))
    if paid is None:
        raise DataError(f"{ledger.path} did not pay for the answers in {target}; use the ledger that did")
    ledger.commit(paid.id, file_hash(target))  # completes a run that ended after writing
    known = {part.name: part for part in parts}
    answers = [each for each in content["record"] if "counts" in each]
    return [
        Measurement(
            known.get(each["part"]) or Marginal.of(schema, each["columns"]),
            each["counts"],
            float(Fraction(each["scale"])),
        )
        for each in answers
    ]


def _check(
    target: Path, ledger: Ledger, dataset: str, task: str, budget: Budget, unit: Unit, again: bool, weak: bool
) -> None:
    """Refuse everything that can be refused without reading a row."""
    if not isinstance(budget, Budget) or budget.kind != "pure":
        raise PradeError(f"an adaptive run is paid for in pure epsilon, got {budget!r}; give Budget.pure(...)")
    refuse_weak(budget, weak)
    if target.exists():
        raise DataError(f"{target} already exists and is kept: read it with `answered`, or choose another file")
    if not target.parent.is_dir():
        raise DataError(f"there is no folder {target.parent} that you can write to; make it first")
    need_on_record(Terms(dataset_name(dataset), budget, unit), target, ledger)
    ledger.check(dataset, task, budget, unit=unit, again=again, folder=target)
    _step("checked")


def _keep(door: Door, target: Path, ledger: Ledger, entry: Entry) -> None:
    """Write the noisy answers and commit them to the ledger."""
    content = {"format": FORMAT, "dataset": entry.dataset, "task": entry.plan_hash, "entry": entry.id}
    content["head"] = entry.head and entry.head.to_dict()
    if target.exists():
        raise DataError(
            f"another run has written its answers to {target} in the meantime; they are kept, and those of entry "
            f"{entry.id} of data set {entry.dataset!r} are lost, although it is spent in {ledger.path}"
        )
    try:
        write_sealed(target, {**content, "record": door._record})
    except OSError as error:
        raise DataError(
            f"the noisy answers could not be written to {target} ({reason(error)}): entry {entry.id} of data set "
            f"{entry.dataset!r} is spent in {ledger.path}. Fix the cause first",
            remedy=Remedy("again", entry.cost),
        ) from None
    _step("written")
    ledger.commit(entry.id, file_hash(target))
    _step("committed")


def _quietly(task: Callable[[], Result]) -> tuple[Result | None, str]:
    """The task's result, or why it failed; the caller raises the error, so that none of its frames leads to a count."""
    try:
        return task(), ""
    except Exception as error:
        return None, reason(error)


def _step(name: str) -> None:
    sys.audit("prade.step", f"adaptive.{name}")
