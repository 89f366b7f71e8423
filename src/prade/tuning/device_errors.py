"""The errors of a rehearsal's two-way tables, from estimates that an accelerator makes and scores.

Estimates stay on the accelerator as weights of public rows, where their tables are compared with the true ones
(`prade.scoring.device_distances`); only the distances come back. What is the same for many draws of noise stays there,
too: public rows and layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from prade.core.arrays import Floats
from prade.data.joint import Joint
from prade.estimating import cuda
from prade.estimating.cuda import device_of, suits
from prade.estimating.levels.descent import Descent
from prade.scoring.device_distances import DeviceDistances, fit
from prade.scoring.distances import WORST, Pair

MOST_TABLES = 4  # public tables on the accelerator, those used lately


def can_score(descent: Descent, pairs: Sequence[Pair]) -> bool:
    """Whether the accelerator can estimate the last level's groups and score them on these pairs."""
    layout = descent.foundation.layout(len(descent.plan.levels) - 1)
    return descent.estimator is None and suits(layout) and fit(layout.prior.schema, pairs)


def distances_on_device(descent: Descent, scored: range, shares: Floats, pairs: tuple[Pair, ...]) -> Floats:
    """The mean distances of the scored groups' tables from their true shares (`true_shares`): [scored groups]."""
    last, parents = descent.parents_of_last()
    found, foundation = descent.groups(last, parents), descent.foundation
    tilts = descent.tilts(found, scored)
    layout, priors = foundation.layout(last), list[Floats]()
    common: dict[int, Floats] = {}  # by parent: the prior of its groups that have none of their own
    for tilt in tilts:
        ancestors = found.ancestors(tilt.group)
        parent = ancestors[-1].group if ancestors else 0
        own = foundation.own_prior(last, tilt.group)
        if own or parent not in common:
            priors.append(foundation.prior(tilt, foundation.weights(ancestors)).weights)
            common |= {} if own else {parent: priors[-1]}
        else:
            priors.append(common[parent])
    weights = device_of(layout).weights(priors, np.stack([tilt.multipliers for tilt in tilts]))
    distances = _rows_of(layout.prior, pairs).means(weights, shares)
    distances[~shares.any(axis=1)] = WORST  # a group without rows has nothing in common with its estimate
    return distances


@lru_cache(maxsize=MOST_TABLES)
def _rows_of(joint: Joint, pairs: tuple[Pair, ...]) -> DeviceDistances:
    return DeviceDistances(joint, pairs)


def let_go() -> None:
    """Give back what rehearsals keep of the accelerator's memory in this process: tables and layouts."""
    _rows_of.cache_clear()
    cuda.let_go()
