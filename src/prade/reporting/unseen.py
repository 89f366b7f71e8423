"""Values that no public row has, although the noisy answers show that private rows have them.

How far beyond noise an answer must be is in `prade.estimating.levels.unseen_cells`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from prade.data.display import display_texts
from prade.estimating.levels.unseen_cells import FALSE_ALARM, largest_noise
from prade.queries.parts import Marginal
from prade.reporting.facts import cells_of

if TYPE_CHECKING:
    from prade.data.schema import Schema
    from prade.estimating.levels.estimates import Estimates
    from prade.queries.parts import Part
    from prade.reporting.facts import Facts


def unseen_values(estimates: Estimates, facts: Facts) -> list[str]:
    """Measured values that no public row has, but that the answers about the whole table show beyond their noise."""
    answers, plan = facts.views[0].answers, estimates.plan
    absent = []
    for part in answers.parts:
        cells, size = cells_of(part, estimates)
        own = cells[: len(cells) - estimates.public.added]  # an added row is of no public person
        absent.append(np.bincount(own, minlength=size)[:size] == 0)
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


def cell_texts(part: Part, schema: Schema) -> list[str]:
    """One text for readers per cell of a part: titles and labels instead of names and codes, where there are any."""
    if not isinstance(part, Marginal):
        return part.labels(schema)
    columns = [schema[name] for name in part.columns]
    each = [[f"{column.title or column.name} {text}" for text in display_texts(column)] for column in columns]
    return [", ".join(combination) for combination in itertools.product(*each)]
