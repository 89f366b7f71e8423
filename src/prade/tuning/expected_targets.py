"""The expected error of a plan in everything that its targets want."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prade.planning.plan import Plan
from prade.planning.settings import Expected, Settings, TargetError
from prade.tuning.expectation import expected_in_another
from prade.tuning.rehearse import Rehearsal


def expected_of_targets(rehearsal: Rehearsal, plan: Plan, settings: Settings, seeds: Sequence[int]) -> Expected:
    """The error of two-way tables, and those of everything wanted, with noise and groups that chose no plan."""
    wanted = rehearsal.wanted
    assert wanted is not None
    stand_ins = range(len(rehearsal.stand_ins))
    made = [
        [rehearsal.both_errors(plan, settings, seed=seed, stand_in=k, fresh=True) for seed in seeds] for k in stand_ins
    ]
    public = [rehearsal.both_public_errors(k, fresh=True) for k in stand_ins]
    groups = len(plan.groupings[-1])
    errors = [np.stack([distances for distances, _ in each]) for each in made]
    error, error_spread = expected_in_another(errors, groups)
    _, spread = expected_in_another([public[k][0][None] - errors[k] for k in stand_ins], groups)
    targets = []
    for number, each in enumerate(wanted.wanted):
        one = [
            np.unique(
                rehearsal.targets_of(k).above[number][list(rehearsal.groups_of(k, fresh=True))], return_index=True
            )
            for k in stand_ins
        ]
        tables = [np.stack([found[1][first, number] for found in made[k]]) for k, (_, first) in enumerate(one)]
        found, off = expected_in_another(tables, len(plan.groups.level(each.by)))
        prior = float(np.mean([public[k][1][first, number].mean() for k, (_, first) in enumerate(one)]))
        targets.append(TargetError(each.words, each.level, round(found, 6), round(off, 6), round(prior, 6)))
    prior = float(np.mean([each[0].mean() for each in public]))
    rounded = round(error, 6), round(spread, 6), round(prior, 6)
    return Expected(*rounded, error_spread=round(error_spread, 6), targets=tuple(targets))
