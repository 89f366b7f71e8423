"""What the baselines share: a run through the one door, which the ledger pays for, and a report on the result."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from prade.core.arrays import Floats, PreciseMean
from prade.core.errors import EstimationError
from prade.core.numbers import exact, whole
from prade.estimating.base import Estimator, check
from prade.estimating.estimate import Estimate, Report, Status, TraceRow
from prade.measuring.adaptive.session import Door, adaptive, answered
from prade.privacy.ledger import Ledger
from prade.queries.parts import Part, everybody

if TYPE_CHECKING:
    from prade.data.public.joint import Prior
    from prade.estimating.layout import Layout
    from prade.privacy.budget import Budget
    from prade.privacy.protection import Unit
    from prade.release.release import Measurement


SMALLEST_VARIANCE = 1e-9  # of a sum of counts, because an answer may be declared exact
EXACT = 1e-9  # an answer counts as met if it is missed by no more than this share of the total


class Baseline(Estimator, Protocol):
    """An estimator that also decides what to ask: `ask` uses private rows and costs budget, `fit` does not.

    `fit` makes the same estimate from the noisy answers alone, wherever they come from.
    """

    def parts(self, prior: Prior) -> Sequence[Part]:
        """The parts that are counted at the beginning, which fails if the table lacks one of their columns."""
        ...

    def ask(self, prior: Prior, door: Door) -> Estimate:
        """Ask for the total, then ask the method's own questions, with all of the door's epsilon."""
        ...


def run(
    baseline: Baseline,
    prior: Prior,
    private: Any,
    path: str | PathLike[str],
    ledger: Ledger | str | PathLike[str],
    *,
    dataset: str,
    budget: Budget,
    unit: Unit,
    again: bool = False,
    public: Any = None,
    weak_protection: bool = False,
) -> Estimate:
    """The baseline's estimate of the private table, for a pure budget; its noisy answers are kept in the file `path`.

    The ledger must know `dataset` with this unit. If the file already has the answers of the same run, they are used
    and nothing is spent; a run that was paid for but has no file is refused, unless `again` allows paying a second
    time. Groups are a coded column of the schema like any other. `public`, the table or file that the prior was made
    from, must not be the private one; a budget that gives little protection needs `weak_protection` (see
    `prade.measuring.run.measure`). ``estimate.report.total`` is the noisy number of rows.

    >>> import pyarrow
    >>> from prade import Budget, Ledger, Schema, Unit
    >>> from prade.data.public.joint import Prior
    >>> from prade.baselines import Histogram
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> ledger = Ledger("people.ledger")
    >>> people = ledger.open_dataset("people", Unit(1), cap=Budget.pure(2000))
    >>> rows = pyarrow.table({"a": [0, 0, 1, 1], "b": [0, 0, 1, 0]})
    >>> terms = {"dataset": "people", "budget": Budget.pure(2000), "unit": Unit(1), "weak_protection": True}
    >>> run(Histogram(), Prior.uniform(schema), rows, "answers.json", ledger, **terms).weights
    array([0.5 , 0.  , 0.25, 0.25])
    """
    ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    parts = [everybody(prior.schema, prior.columns[0]), *baseline.parts(prior)]
    task = _hash(baseline, prior, parts, budget, unit)
    answers = None if again else answered(path, prior.schema, parts, ledger, dataset=dataset, task=task)
    if answers is not None:
        return baseline.fit(prior, answers[1:], number_of_rows(answers))
    note = f"baseline {baseline!r}"
    with adaptive(
        private,
        prior.schema,
        parts,
        path,
        ledger,
        dataset=dataset,
        task=task,
        budget=budget,
        unit=unit,
        note=note,
        again=again,
        public=public,
        weak_protection=weak_protection,
    ) as door:
        return baseline.ask(prior, door)


def ask_total(prior: Prior, door: Door, share: Fraction) -> None:
    """Ask for a noisy number of rows, with a share of the door's epsilon; every baseline does this first."""
    door.answer(everybody(prior.schema, prior.columns[0]), door.left * share)


def number_of_rows(measurements: Sequence[Measurement]) -> float:
    """The number of rows of an estimate, at least 1.

    It is the mean of the measured total and of the sum of every other part that covers all rows, weighted by inverse
    variances.

    >>> from prade import Schema
    >>> from prade.release.release import Measurement
    >>> part = everybody(Schema.from_mbi({"sex": 2}), "sex")
    >>> number_of_rows([Measurement(part, [90], scale=2.0), Measurement(part, [100], scale=1.0)])
    98.0
    """
    mean = PreciseMean()
    for each in (each for each in measurements if each.part.covers):
        mean.add(each.counts.sum(), max(each.variance.sum(), SMALLEST_VARIANCE))
    return max(float(mean.value), 1.0)


def judged(
    baseline: Baseline,
    support: Prior,
    weights: Floats,
    measurements: Sequence[Measurement],
    total: float,
    layout: Layout | None = None,
) -> Estimate:
    """The estimate with these weights on a support's rows, and a report on how well it meets the noisy answers."""
    answers = check(support, measurements, total, layout)
    if answers.hopeless:  # none of the answers concerns these rows
        weights = support.weights
    masses = answers.layout.masses_of(answers.layout.collapsed(weights))
    inside = weights > 0
    with np.errstate(divide="ignore"):
        kl = float(np.sum(weights[inside] * np.log(weights[inside] / support.weights[inside])))
    missed = np.abs(masses - np.where(answers.reachable, answers.y, 0.0))
    met = Status.CONVERGED if missed.max() <= EXACT else Status.EXHAUSTED
    settings = {name: value for name, value in vars(baseline).items() if isinstance(value, (int, float, str))}
    report = Report(
        estimator=type(baseline).__name__,
        status=Status.HOPELESS if answers.hopeless else met,
        total=answers.total,
        kl=max(kl, 0.0),
        objective=float(np.abs(masses - answers.y).sum()),
        gap=np.nan,  # these methods solve no optimisation problem that would have a gap
        parts=answers.fits(masses),
        trace=(TraceRow(1, 1.0, float(missed.sum()), np.nan, kl),),
        settings=settings,
    )
    return Estimate(support.schema, support.codes, report, weights=weights)


def check_settings(**given: float) -> None:
    """Refuse shares that are not between 0 and 1, and other numbers that are not whole or are below 1."""
    for name, value in given.items():
        if name.endswith("share"):
            if not 0 < exact(value, name) < 1:
                raise EstimationError(f"{name} is {value!r}; give a share of the budget above 0 and below 1")
        elif not whole(value, 1):
            raise EstimationError(f"{name} is {value!r}; give a whole number, 1 or more")


def _hash(baseline: Baseline, prior: Prior, parts: Sequence[Part], budget: Budget, unit: Unit) -> str:
    """The hash of everything but private rows that a run depends on."""
    digest = hashlib.sha256()
    known = [baseline, prior.schema.fingerprint(), [part.name for part in parts], budget, unit]
    digest.update("\n".join(map(repr, known)).encode())
    for values in (*prior.codes.values(), prior.weights):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
