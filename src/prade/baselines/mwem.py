"""MWEM and PMW^Pub: in each round, ask for what the estimate gets most wrong and learn it by multiplicative weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from prade.baselines.base import ask_total, check_settings, judged, number_of_rows
from prade.core.arrays import Floats, distinct_rows, mass_per_cell
from prade.core.errors import EstimationError
from prade.core.numbers import exact
from prade.estimating.base import check
from prade.measuring.adaptive.session import Door, Misfit
from prade.privacy.budget import Budget
from prade.queries.parts import Part
from prade.queries.workload import Workload

if TYPE_CHECKING:
    from prade.data.public.joint import Prior
    from prade.estimating.estimate import Estimate
    from prade.estimating.layout import Layout
    from prade.release.release import Measurement


@dataclass(frozen=True)
class MWEM:
    """Multiplicative weights with the exponential mechanism, on the rows of the prior's support, from uniform weights.

    Each of T rounds privately chooses a part k of the workload, by how far the estimate q is from the truth,

        score_k = sum over cells |true count - n q_k| - (cells of k) b        b: the noise scale of the next answer

    (if every part has one query, this is the paper's score, because the last term is then the same for all parts). It
    asks for that part with Laplace noise; choice and answer cost half of the round's epsilon each. Then it learns from
    all answers so far, going through them `passes` times:

        q_j <- q_j exp(rate * (y_i - q_i)), renormalised        j in cell i; y_i, q_i: noisy and estimated share

    `rate` is 1/2 in the paper. The estimate is the average of the rounds' q, as in the paper, or the `last` one.

    Hardt, Ligett, McSherry: A Simple and Practical Algorithm for Differentially Private Data Release (2012); the score
    of a marginal as a whole: McKenna, Sheldon, Miklau: Graphical-model based estimation and inference (2019).

    >>> from prade import Schema
    >>> from prade.release.release import Measurement
    >>> from prade.data.public.joint import Prior
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> workload = Workload.all_marginals(schema, 1)
    >>> mwem = MWEM(workload, rounds=2, passes=100, iterate="last")
    >>> mwem.fit(Prior.uniform(schema), [Measurement(workload[0], [80, 20], 1.0)], total=100).project(["a"]).round(3)
    array([0.8, 0.2])
    """

    workload: Workload
    rounds: int = 20
    passes: int = 20
    rate: float = 0.5
    iterate: Literal["average", "last"] = "average"
    total_share: float = 0.05

    def __post_init__(self) -> None:
        check_settings(rounds=self.rounds, passes=self.passes, total_share=self.total_share)
        if not 0 < self.rate < math.inf:
            raise EstimationError(f"rate is {self.rate!r}; give a number above 0, such as 0.5")
        if self.iterate not in ("average", "last"):
            raise EstimationError(f"iterate is {self.iterate!r}, expected 'average' or 'last'")
        if not len(self.workload):
            raise EstimationError("the workload has no parts to choose from; give at least one")

    def start(self, prior: Prior) -> Floats:
        """The initial weights: equal for all distinct rows that have mass in the prior."""
        first, kind = distinct_rows(list(prior.codes.values()))
        mass = mass_per_cell(kind, prior.weights, len(first))
        share = np.divide(prior.weights, mass[kind], out=np.zeros_like(prior.weights), where=prior.weights > 0)
        return np.asarray(share / (mass > 0).sum(), np.float64)

    def parts(self, prior: Prior) -> Sequence[Part]:
        """All parts of the workload, any of which may be chosen."""
        return self.workload.parts

    def ask(self, prior: Prior, door: Door) -> Estimate:
        """Choose, ask and learn in T rounds; then learn all answers again with the final total."""
        ask_total(prior, door, exact(self.total_share, "total_share"))
        half = door.left / (2 * self.rounds)
        expected_noise = math.ceil(Budget.pure(half).noise_scale(door.unit.rows, door.unit.rows**2))
        learnt = _Learner(self, prior)
        cells = [part.cells(prior.schema, prior.codes) for part in self.workload]
        for _ in range(self.rounds):
            total = number_of_rows(door.measurements)
            guesses = [learnt.masses(each, part.n_cells) for each, part in zip(cells, self.workload, strict=True)]
            scores = [
                Misfit(part, np.rint(total * guess).astype(np.int64), part.n_cells * expected_noise)
                for part, guess in zip(self.workload, guesses, strict=True)
            ]
            chosen = door.choose(scores, half)
            learnt.learn(cells[chosen], door.answer(self.workload[chosen], half), number_of_rows(door.measurements))
        return self.fit(prior, door.measurements[1:], number_of_rows(door.measurements))

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The estimate that the rounds learn from these answers, one per round, in this order."""
        answers = check(prior, measurements, total, layout)
        learnt = _Learner(self, prior)
        for measurement in measurements:
            learnt.learn(measurement.part.cells(prior.schema, prior.codes), measurement, answers.total)
        return judged(self, prior, learnt.result(), measurements, total, answers.layout)


@dataclass(frozen=True)
class PMWPub(MWEM):
    """PMW^Pub: MWEM that starts from the public weights of the rows instead of uniform weights.

    Liu, Vietri, Steinke, Ullman, Wu: Leveraging Public Data for Practical Private Query Release (2021).
    """

    def start(self, prior: Prior) -> Floats:
        """The weights of the public rows."""
        return prior.weights


class _Learner:
    """The current weights q, and the sum of the weights of all rounds."""

    def __init__(self, settings: MWEM, prior: Prior) -> None:
        self.settings = settings
        self.weights = np.array(settings.start(prior))
        self.sum = np.zeros_like(self.weights)
        self.rounds = 0
        self.answers: list[tuple[NDArray[np.integer], Floats]] = []

    def masses(self, cells: NDArray[np.integer], number: int) -> Floats:
        """The estimated share of each cell."""
        return mass_per_cell(cells, self.weights, number + 1)[:number]

    def learn(self, cells: NDArray[np.integer], measurement: Measurement, total: float) -> None:
        """One round: add the new answer to the old ones, then learn from all of them."""
        self.answers.append((cells, measurement.counts))
        for _ in range(self.settings.passes):
            for each, counts in self.answers:
                share = counts / total
                step = self.settings.rate * (share - self.masses(each, len(share)))
                factor = np.exp(np.append(step, 0.0) - step.max(initial=0.0))  # the largest is 1: nothing overflows
                self.weights *= factor[each]
                self.weights /= self.weights.sum()
        self.sum += self.weights
        self.rounds += 1

    def result(self) -> Floats:
        """The last weights, or the average of the rounds, as the settings say."""
        return self.weights if self.settings.iterate == "last" else self.sum / self.rounds
