"""What to expect in one more table, from what was found in the tables that stood in for it.

A table is a state or a year, say. Let x_f be the mean of table f over its groups, F the number of tables, s^2 the
variance of the x_f, and e^2 that of groups within their table, of which n were looked at in each. The private table has
G groups. Its own mean is off from the mean of the x_f by

    between tables    t * sqrt(s^2 (1 + 1 / F))                 t: quantile of Student's law, F - 1 degrees of freedom
    between groups    t * sqrt(e^2 (1 / G + 1 / (F n)))         the same, F (n - 1) degrees of freedom

or less, about two times in three (as often as a normal variable is within one standard deviation). The larger one is
what we state: tables may resemble each other by chance. A single table tells nothing about other tables.

There will be a gain if no table lost, and either the mean or the number of groups that gained is beyond what chance
between groups explains: where gains differ much, their mean alone would not show that nearly all are gains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from prade.core.arrays import Floats
from prade.planning.plan import Plan
from prade.planning.settings import Expected, Settings, TargetError
from prade.tuning.rehearse import Rehearsal

CLEARLY = 2  # standard errors: chance alone gets there about once in 40 times
BY_CHANCE = 1 / 40  # probability that as many groups gain if each gains or loses as a coin says


def expected_in_another(tables: Sequence[Floats], groups: int) -> tuple[float, float]:
    """The mean to expect in another table with this many groups, and how far it may be off, two times in three.

    Each table has an array [draws of noise, groups]. Draws of one group are averaged: they are no further groups.

    >>> one, other = np.array([[0.1, 0.2, 0.3]]), np.array([[0.3, 0.4, 0.5]])
    >>> tuple(round(each, 3) for each in expected_in_another([one, other], groups=100))
    (0.3, 0.318)
    """
    means, variance, degrees, number = _summary(tables)
    off = [0.0]
    if len(tables) > 1:
        off.append(_quantile(len(tables) - 1) * math.sqrt(means.var(ddof=1) * (1 + 1 / len(tables))))
    if degrees:
        off.append(_quantile(degrees) * math.sqrt(variance * (1 / groups + 1 / number)))
    elif len(tables) == 1 and tables[0].size > 1:  # one group of one table: all that varies is the noise
        off.append(_quantile(tables[0].size - 1) * float(tables[0].std(ddof=1)))
    return float(means.mean()), max(off)


def clearly_gain(tables: Sequence[Floats]) -> bool:
    """Whether every table gained, and all together by more than two standard errors, or in clearly most groups.

    These are standard errors between groups; between tables where each has one group; between draws of noise where all
    that there is is one group.
    """
    from scipy.special import bdtr

    means, variance, degrees, number = _summary(tables)
    if not degrees:
        single = means if len(tables) > 1 else tables[0].ravel()
        variance, number = float(single.var(ddof=1)) if len(single) > 1 else 0.0, len(single)
    gains = np.concatenate([table.mean(axis=0) for table in tables])
    by_mean = means.mean() > CLEARLY * math.sqrt(variance / number)
    by_number = bdtr(np.count_nonzero(gains <= 0), len(gains), 0.5) < BY_CHANCE
    return bool((means > 0).all() and (by_mean or by_number))


def _summary(tables: Sequence[Floats]) -> tuple[Floats, float, int, int]:
    """Means of the tables; the variance of groups within their table, its degrees of freedom, and their number."""
    by_group = [table.mean(axis=0) for table in tables]
    degrees = sum(len(each) - 1 for each in by_group)
    variance = sum(float(np.sum((each - each.mean()) ** 2)) for each in by_group) / max(degrees, 1)
    return np.array([each.mean() for each in by_group]), variance, degrees, sum(map(len, by_group))


def _quantile(degrees: int) -> float:
    """What one standard deviation is to a normal variable, for Student's t."""
    from scipy.special import ndtr, stdtrit

    return float(stdtrit(degrees, ndtr(1.0)))


def expected_in_groups(errors: Sequence[Floats], public: Sequence[Floats], groups: int) -> Expected:
    """What to expect of errors and of the public table's, one array [draws of noise, groups] for each table."""
    error, error_spread = expected_in_another(errors, groups)
    _, spread = expected_in_another([before - after for before, after in zip(public, errors, strict=True)], groups)
    prior = float(np.mean([each.mean() for each in public]))
    return Expected(round(error, 6), round(spread, 6), round(prior, 6), error_spread=round(error_spread, 6))


def expected_of_targets(rehearsal: Rehearsal, plan: Plan, settings: Settings, seeds: Sequence[int]) -> Expected:
    """The error of two-way tables, and those of everything wanted, with noise and groups that chose no plan."""
    assert rehearsal.wanted is not None
    stand_ins = range(len(rehearsal.stand_ins))
    both = [
        [rehearsal.both_errors(plan, settings, seed=seed, stand_in=k, fresh=True) for seed in seeds] for k in stand_ins
    ]
    public = [rehearsal.both_public_errors(k, fresh=True) for k in stand_ins]
    targets = []
    for number, each in enumerate(rehearsal.wanted.wanted):
        tables, priors = [], []
        for k in stand_ins:  # groups of one parent share the errors of its level
            above = rehearsal.targets[k].above[number][list(rehearsal.groups_of(k, fresh=True))]
            first = np.unique(above, return_index=True)[1]
            tables.append(np.stack([wanted[first, number] for _, wanted in both[k]]))
            priors.append(public[k][1][first, number].mean())
        error, off = expected_in_another(tables, len(plan.groups.level(each.by)))
        prior = float(np.mean(priors))
        targets.append(TargetError(each.words, each.level, round(error, 6), round(off, 6), round(prior, 6)))
    errors = [np.stack([distances for distances, _ in each]) for each in both]
    expected = expected_in_groups(errors, [distances[None] for distances, _ in public], len(plan.groupings[-1]))
    return replace(expected, targets=tuple(targets))
