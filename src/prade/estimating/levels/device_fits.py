"""The estimates of all groups of a level at once, on an accelerator (`prade.estimating.cuda`).

Priors are made by threads of this process. A group whose climb does not end on the accelerator is estimated by a
worker, as without one; so are all groups of levels that it has no room for or that have only a few groups, and of the
paper's own estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

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


def estimated_on_device(
    foundation: Foundation, method: Method, batches: Sequence[Batch], elsewhere: Elsewhere, threads: int
) -> Iterator[list[Made]]:
    """The estimates of all batches of a level; `elsewhere` makes those that the accelerator does not."""
    estimator, layout = method.estimator, foundation.layout(method.level)
    if not isinstance(estimator, MAP) or estimator.n0 == "auto":
        yield from elsewhere(batches)
        return
    n0 = float(estimator.n0)
    asked = [(batch, answers) for batch in batches for answers in batch.groups]
    duals = [
        estimator.problem(check(layout.prior, measurements_of(layout, each, method.law), each.rows, layout), n0)
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
    reached = climb_together(duals, each_base, Tolerance(relative=estimator.tolerance))
    found = {answers.group: each for (_, answers), each in zip(asked, reached, strict=True)}
    left = [
        replace(batch, groups=tuple(each for each in batch.groups if found[each.group] is None)) for batch in batches
    ]
    yield from elsewhere([batch for batch in left if batch.groups])

    def made(item: tuple[Batch, GroupAnswers]) -> list[Made]:
        batch, answers = item
        at = found[answers.group]
        assert at is not None
        return [
            _made(
                foundation,
                method,
                batch,
                Tilt(method.level, answers.group, at.multipliers, alike[answers.group]),
                at,
                n0,
            )
        ]

    yield from several(made, [item for item in asked if found[item[1].group] is not None], threads)


def _made(foundation: Foundation, method: Method, batch: Batch, tilt: Tilt, at: Reached, n0: float) -> Made:
    """A group's estimate, with the shares of the cells that `Made` has."""
    wanted = foundation.layout(foundation.wanted_after(method.level))
    masses = at.masses
    if wanted.workload.parts != foundation.layout(method.level).workload.parts:
        masses = wanted.masses_of(wanted.collapsed(foundation.weights_of(tilt, foundation.weights(batch.ancestors))))
    return Made(tilt, "converged", at.certificate.kl, n0 * at.certificate.gap, np.asarray(masses))
