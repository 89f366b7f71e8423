"""A release's noisy counts turned into estimates: what all answers tell about each group, then the least change to it.

    raw answers -> posteriors (`prade.estimating.levels.tree`) -> for each group of the last level, MAP
                                                                  (`prade.estimating.levels.group_fits`)

A group's estimate is the distribution closest to its base distribution that follows its posterior. All above the last
level are sums of its groups. All of it is post-processing. Posteriors are worked out here, in threads; estimates are
made by workers, a few groups at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from prade.core.arrays import Floats
from prade.core.execution import Execution, Shared, several, single_threaded_blas
from prade.data.public.public import Public
from prade.estimating.base import Estimator
from prade.estimating.estimate import Estimate
from prade.estimating.levels.foundation import Foundation, opened_foundation, shared_foundation
from prade.estimating.levels.group_fits import GroupAnswers, Made, Method, batches_of, estimated, fitted, multipliers_of
from prade.estimating.levels.public_cells import PublicCells
from prade.estimating.levels.tree import LevelPosterior, Tree
from prade.estimating.paper_estimators import IDE, TwoStage
from prade.estimating.posterior_mode import MAP
from prade.planning.settings import Settings
from prade.privacy.noise_law import GAUSSIAN
from prade.release.release import Release

Result = TypeVar("Result")

LIMIT = 5.0  # of multipliers: an answer changes the prior's weight of a row by at most a factor of e^5 = 148
TOLERANCE = 1e-3  # of MAP's objective: far below the effect of the noise
MOST_STEPS = 200  # of MAP, far more than it takes to get to the tolerance
FEW_STEPS = 25  # of MAP in rehearsals: enough for thousands of raw cells, too
PAPERS: dict[str, Estimator] = {"ide": IDE(), "two-stage": TwoStage()}


@dataclass(frozen=True)
class GroupEstimate:
    """A group's number, its number of rows, and its distribution."""

    group: int
    total: float
    estimate: Estimate


class Descent:
    """The posteriors of a release, and the estimates that follow them.

    `rough` is for rehearsals: few steps of `MAP`, and nothing that only error bars need. `cells` is what other descents
    on the same public table share. An executor makes estimates elsewhere, if `share` has written what its workers need.
    """

    def __init__(
        self,
        release: Release,
        public: Public,
        settings: Settings | None = None,
        *,
        rough: bool = False,
        cells: PublicCells | None = None,
        execution: Execution = Execution(),
    ) -> None:
        self.release = release
        self.plan = release.plan
        self.settings = settings or Settings()
        self.execution = execution
        self.cells = (cells or PublicCells(public)).with_added(release, self.settings)
        self.public = self.cells.public
        self.foundation = Foundation.of(self.plan, self.cells, self.settings)
        self.shared = Shared(self.foundation, opened_foundation)
        paper = PAPERS.get(self.settings.estimator)
        self.tree = Tree(
            release,
            self.cells,
            self.foundation,
            smooth=self.smooth,
            fit=self.smooth or not rough,
            threads=execution.threads,
        )
        n0: float | Literal["auto"] = self.settings.n0 if self.smooth else "auto"
        steps = FEW_STEPS if rough else MOST_STEPS
        # Added rows are there to be raised from almost nothing to what raw answers say.
        limit = None if self.settings.extra and not self.smooth else LIMIT
        trust = self.settings.trust
        estimator = paper or MAP(n0=n0, tolerance=TOLERANCE, limit=limit, trust=trust, max_steps=steps)
        # Posteriors are nearly Gaussian. MAP takes raw Laplace answers as Gaussian, too: the mode under their own law
        # meets most of them exactly, noise included, and is further from the truth.
        self.method = Method(estimator, self.plan.law if paper else GAUSSIAN)

    @property
    def smooth(self) -> bool:
        """Whether groups are estimated from posteriors, and not from raw answers."""
        return self.settings.smooth and self.settings.estimator == "map"

    def share(self, folder: Path, key: str) -> None:
        """Write what workers need to a folder that they see; `key` tells this run from others."""
        self.shared = shared_foundation(self.foundation, folder, key)

    @property
    def last(self) -> LevelPosterior:
        """What is known of the groups of the last level."""
        return self.tree.levels[-1]

    def map(self, task: Callable[[GroupEstimate], Result], groups: range | None = None) -> Iterator[Result]:
        """task(estimate) for the groups of the last level, in order, several at a time; estimates are not kept.

        `groups` are those that are wanted, by default all.
        """

        def alone(group: int) -> Result:
            with single_threaded_blas():  # the order of sums must not depend on what else runs
                return task(self.estimate(group))

        every = range(len(self.last.totals))
        assert self._above  # what all groups share is worked out before the threads
        return several(alone, every if groups is None else groups, self.execution.threads)

    def estimate(self, group: int, number: int = -1) -> GroupEstimate:
        """The estimate of one group of the last level, or of another of the foundation's groupings."""
        answers = self.asked(group, number % len(self.tree.levels))
        estimate = fitted(self.foundation.start(group, answers.above, number), self.method, answers)
        return GroupEstimate(group, float(self.tree.levels[number].totals[group]), estimate)

    def asked(self, group: int, number: int) -> GroupAnswers:
        """What a group of one of the foundation's groupings is estimated from."""
        level = self.tree.levels[number]
        above = self._above[number][self.foundation.parents(number)[group]]
        deviation = np.sqrt(level.variance[group])
        return GroupAnswers(group, float(level.rows[group]), level.shares[group], deviation, above)

    @cached_property
    def _above(self) -> list[Floats]:
        """For each of the groupings, the multipliers of its groups' parents: [parents, cells]. Everybody has none."""
        found = [np.zeros((1, self.foundation.layout.n_cells))]
        for number, level in enumerate(self.tree.levels[:-1]):

            def multipliers(group: int, number: int = number) -> Floats:
                answers = self.asked(group, number)
                start = self.foundation.start(group, answers.above, number)
                with single_threaded_blas():
                    return multipliers_of(fitted(start, self.method, answers), answers)

            self.__dict__["_above"] = found  # what `asked` needs of those above
            found.append(np.stack(list(several(multipliers, range(len(level.totals)), self.execution.threads))))
        return found

    def made(self, known: Collection[int] = ()) -> Iterator[list[Made]]:
        """The estimates of the last level's groups, by workers, batch by batch, except for batches of known groups."""
        number = len(self.tree.levels) - 1
        batches = batches_of([self.asked(group, number) for group in range(len(self.last.totals))])
        wanted = [batch for batch in batches if not all(each.group in known for each in batch)]
        return self.execution.map(partial(estimated, self.shared, self.method), wanted)

    def weights(self, group: int, number: int) -> Floats:
        """Weights of the public rows in a group above the last level, estimated alone rather than as a sum: quicker."""
        return self.estimate(group, number).estimate.weights
