"""Releases of generated tables with simulated noise: nothing in them is private, and nothing is protected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prade import Groups, Plan, Release
from prade.core.arrays import mass_by_group


def numbers_of(groups: Groups, by: Sequence[str], rows: Any) -> np.ndarray:
    """The group of each row, by these columns."""
    keyed = groups.keyed(groups.names, groups.level(by).number)
    return keyed.numbers(rows.select(list(groups.names)))


def released(plan: Plan, groups: Groups, rows: Any, codes: dict[str, np.ndarray], seed: int) -> Release:
    """What measuring these rows would release, with the plan's scales of Laplace noise."""
    generator, noisy = np.random.default_rng(seed), []
    for question in plan.questions:
        number, size = numbers_of(groups, plan.levels[question.level].by, rows), len(plan.groupings[question.level])
        answers = []
        for part in question.parts:
            true = mass_by_group(number, size, part.cells(plan.schema, codes), part.n_cells)
            noise = generator.laplace(0, float(question.scale), true.shape)
            answers.append(true + np.rint(noise).astype(np.int64))
        noisy.append(tuple(answers))
    return Release(Path("nowhere"), plan, tuple(noisy))
