"""Releases of generated tables with simulated noise: nothing in them is private, and nothing is protected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prade import Groups, Plan, Release
from prade.core.arrays import mass_by_group


def numbers_of(groups: Groups, by: Sequence[str], rows: Any) -> np.ndarray:
    """The group of each row, by these columns; without groups, all rows are in the only one."""
    if not groups.names:
        return np.zeros(rows.num_rows, np.int64)
    keyed = groups.keyed(groups.names, groups.level(by).number)
    return keyed.numbers(rows.select(list(groups.names)))


def discrete_laplace(generator: np.random.Generator, scale: float, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers k with probabilities proportional to exp(-|k| / scale): the law of the real noise.

    It is the difference of two geometric numbers. A rounded Laplace number varies more where the scale is below one.
    """
    first, second = (generator.geometric(-np.expm1(-1 / scale), shape) for _ in range(2))
    return np.asarray(first - second)


def released(plan: Plan, groups: Groups, rows: Any, codes: dict[str, np.ndarray], seed: int | Sequence[int]) -> Release:
    """What measuring these rows would release, with the plan's scales of Laplace noise."""
    generator, noisy = np.random.default_rng(seed), []
    for question in plan.questions:
        number, size = numbers_of(groups, plan.levels[question.level].by, rows), len(plan.groupings[question.level])
        answers = []
        for part in question.parts:
            true = mass_by_group(number, size, part.cells(plan.schema, codes), part.n_cells)
            answers.append(true + discrete_laplace(generator, float(question.scale), true.shape))
        noisy.append(tuple(answers))
    return Release(Path("nowhere"), plan, tuple(noisy))
