"""The estimates of all groups of a level at once, on an accelerator (`prade.estimating.cuda`).

Priors are made by threads of this process. A group whose climb does not end on the accelerator is estimated by a
worker, as without one; so are all groups of levels that it has no room for or that have only a few groups, and of the
paper's own estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from prade.core.arrays import Floats
from prade.core.threads import several
from prade.estimating.base import check
from prade.estimating.cuda import Reached, climb_together
from prade.estimating.levels.foundation import Foundation, Tilt
from prade.estimating.levels.group_fits import Batch, GroupAnswers, Made, Method, measurements_of, prior_of
from prade.estimating.posterior_mode import MAP
from prade.estimating.solvers import Tolerance

FEWEST = 64  # groups of a level: the device takes about as long for one as for hundreds
Elsewhere = Callable[[Sequence[Batch]], Iterator[list[Made]]]


@dataclass(frozen=True, eq=False)
class Climb:
    """Where the climb of one group of a batch ended; None if the processor must climb."""

    batch: Batch
    answers: GroupAnswers
    alike: Floats | None
    reached: Reached | None

    def tilt(self, method: Method) -> Tilt:
        """The tilt of a group whose climb ended."""
        assert self.reached is not None
        return Tilt(method.level, self.answers.group, self.reached.multipliers, self.alike)


def estimated_on_device(
    foundation: Foundation, method: Method, batches: Sequence[Batch], elsewhere: Elsewhere, threads: int
) -> Iterator[list[Made]]:
    """The estimates of all batches of a level; `elsewhere` makes those that the accelerator does not."""
    climbs = _climbs(foundation, method, batches, threads)
    yield from elsewhere(_left(climbs, batches))
    ended = [each for each in climbs if each.reached is not None]
    yield from several(lambda climb: [_made(foundation, method, climb)], ended, threads)


def tilts_on_device(
    foundation: Foundation, method: Method, batches: Sequence[Batch], elsewhere: Elsewhere, threads: int
) -> Iterator[Tilt]:
    """As `estimated_on_device`, the tilts alone."""
    climbs = _climbs(foundation, method, batches, threads)
    yield from (each.tilt(method) for each in climbs if each.reached is not None)
    yield from (made.tilt for some in elsewhere(_left(climbs, batches)) for made in some)


def _left(climbs: Sequence[Climb], batches: Sequence[Batch]) -> list[Batch]:
    """What the accelerator left over of some batches."""
    ended = {each.answers.group for each in climbs if each.reached is not None}
    left = [replace(batch, groups=tuple(each for each in batch.groups if each.group not in ended)) for batch in batches]
    return [batch for batch in left if batch.groups]


def _climbs(foundation: Foundation, method: Method, batches: Sequence[Batch], threads: int) -> list[Climb]:
    """The climbs of all groups of some batches; none if the estimator is not one for the accelerator."""
    estimator, layout = method.estimator, foundation.layout(method.level)
    if not isinstance(estimator, MAP) or estimator.n0 == "auto":
        return []
    asked = [(batch, answers) for batch in batches for answers in batch.groups]
    duals = [
        estimator.problem(
            check(layout.prior, measurements_of(layout, each, method.law), each.rows, layout), float(estimator.n0)
        )
        for _, each in asked
    ]
    alike: dict[int, Floats | None] = {}

    def bases(batch: Batch) -> list[Floats]:
        """The priors of a batch's groups on collapsed rows; those without one of their own share one array."""
        found: list[Floats] = []
        common, parent = None, foundation.weights(batch.ancestors)
        for answers in batch.groups:
            own, alike[answers.group] = foundation.own_prior(method.level, answers.group), None
            if own or common is None:
                prior, alike[answers.group] = prior_of(foundation, method, answers, parent)
                found.append(layout.collapsed(prior.weights))
                common = common if own else found[-1]
            else:
                found.append(common)
        return found

    each_base = (base for some in several(bases, batches, threads) for base in some)
    reached = list(climb_together(duals, each_base, Tolerance(relative=estimator.tolerance)))
    return [Climb(*each, alike.get(each[1].group), at) for each, at in zip(asked, reached, strict=True)]


def _made(foundation: Foundation, method: Method, climb: Climb) -> Made:
    """A group's estimate, with the shares of the cells that `Made` has."""
    tilt, at = climb.tilt(method), climb.reached
    assert at is not None
    assert isinstance(method.estimator, MAP)
    wanted = foundation.layout(foundation.wanted_after(method.level))
    masses = at.masses
    if wanted.workload.parts != foundation.layout(method.level).workload.parts:
        parent = foundation.weights(climb.batch.ancestors)
        masses = wanted.masses_of(wanted.collapsed(foundation.weights_of(tilt, parent)))
    gap = float(method.estimator.n0) * at.certificate.gap
    return Made(tilt, "converged", at.certificate.kl, gap, np.asarray(masses))
