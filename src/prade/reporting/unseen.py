"""Values that no public row has, although the noisy answers show that private rows have them.

An answer about an absent cell is noise alone unless private rows are in the cell. A chance of a false alarm is set for
the whole page and divided by the number of absent cells (Bonferroni); an answer shows private rows if noise alone
exceeds it less often. The noise X of an answer is a sum of independent draws with weights of at most 1, and its
variance v is known. For every s > 0, P(X >= t) <= E[exp(s X)] exp(-s t) (Chernoff), where

    discrete Laplace draws     E[exp(s X)] <= 1 / (1 - v (cosh(s) - 1))     equal for one draw
    discrete Gaussian draws    E[exp(s X)] <= exp(s^2 v / 2)

(A sum of Laplace draws has thinner tails than one draw of the same variance. A discrete Gaussian of a variance below 1
has tails that v does not bound so well, but no wider ones than a discrete Laplace of the same variance.)
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from prade.data.display import display_texts
from prade.queries.marginal import Marginal
from prade.reporting.facts import cells_of

if TYPE_CHECKING:
    from prade.data.schema import Schema
    from prade.estimating.levels.estimates import Estimates
    from prade.privacy.budget import Law
    from prade.queries.parts import Part
    from prade.reporting.facts import Facts

FALSE_ALARM = 0.01  # chance that a page names any value that no private row has
TRIED = np.linspace(0.01, 0.99, 99)  # of s: where v (cosh(s) - 1) is the square of these


def unseen_values(estimates: Estimates, facts: Facts) -> list[str]:
    """Measured values that no public row has, but that the answers about the whole table show beyond their noise."""
    answers, plan = facts.views[0].answers, estimates.plan
    absent = []
    for part in answers.parts:
        cells, size = cells_of(part, estimates)
        absent.append(np.bincount(cells, minlength=size)[:size] == 0)
    looked_at = sum(int(each.sum()) for each in absent)
    found = []
    for number, part in enumerate(answers.parts):
        if not absent[number].any():
            continue
        largest = largest_noise(plan.law, float(answers.variance[0, number]), FALSE_ALARM / looked_at)
        shown = np.flatnonzero(absent[number] & (answers.counts[number][0] > largest))
        texts = cell_texts(part, plan.schema) if len(shown) else []
        found += [texts[cell] for cell in shown]
    return found


def largest_noise(law: Law, variance: float, chance: float) -> float:
    """A number that noise of this variance exceeds with at most this chance.

    >>> round(largest_noise("gaussian", 100.0, 1e-6), 1), round(largest_noise("laplace", 200.0, 1e-6), 1)
    (52.6, 169.9)
    """
    if law == "gaussian" and variance >= 1:
        return math.sqrt(2 * variance * math.log(1 / chance))
    s = np.arccosh(1 + TRIED**2 / variance)
    return float(np.min(-(np.log(chance) + np.log1p(-(TRIED**2))) / s))


def cell_texts(part: Part, schema: Schema) -> list[str]:
    """One text for readers per cell of a part: titles and labels instead of names and codes, where there are any."""
    if not isinstance(part, Marginal):
        return part.labels(schema)
    columns = [schema[name] for name in part.columns]
    each = [[f"{column.title or column.name} {text}" for text in display_texts(column)] for column in columns]
    return [", ".join(combination) for combination in itertools.product(*each)]
