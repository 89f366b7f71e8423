"""What every strategy can say: which noise, what error to expect, how to get back to the workload."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from prade.core.arrays import Floats
from prade.core.errors import EstimationError, WorkloadError

Norm = Literal[1, 2]
Choice = Literal["optimised", "workload", "identity"]

MEANINGFUL = 1e-6  # an optimised strategy must be better than the simple ones by this much, relatively, to be worth it


class Reconstruction(NamedTuple):
    """Workload answers, unbiased, with the standard deviation of each; in the workload's order."""

    answers: Floats
    std: Floats


class Strategy(ABC):
    """What to measure for a workload, and how to get back. Made by the functions of this module.

    `errors` holds the expected total squared error (budget 1, one row a person) of what was compared: "optimised",
    "workload" (measure the workload and reconcile it by least squares), "identity" (measure every cell, infinite when
    there are more than may be measured), "raw" (the workload's noisy answers as they are), and "bound", which no
    strategy can beat. `choice` is the best of the first three.
    """

    norm: Norm
    choice: Choice
    errors: Mapping[str, float]
    variances: Floats  #: of each workload query's answer, for budget 1 and one row a person

    @property
    def law(self) -> Literal["laplace", "gaussian"]:
        """The noise that the strategy was made for: Laplace for norm 1, Gaussian for norm 2."""
        return "laplace" if self.norm == 1 else "gaussian"

    def expected_error(self, budget: float | Fraction = 1, rows: int = 1) -> float:
        """Total squared error over all queries of the workload; `budget` is eps (Laplace) or rho (Gaussian)."""
        return float(self.variances.sum()) * self._factor(budget, rows)

    def expected_std(self, budget: float | Fraction = 1, rows: int = 1) -> Floats:
        """Standard deviation of each workload query's answer."""
        return np.sqrt(self.variances * self._factor(budget, rows))

    @abstractmethod
    def reconstruct(self, noisy: Any, budget: float | Fraction = 1, rows: int = 1) -> Reconstruction:
        """The workload's answers from the noisy answers to the strategy's questions, by least squares."""

    @abstractmethod
    def exact(self, histogram: ArrayLike) -> Any:
        """The questions' true answers on a histogram of the domain; on private counts only behind the one door."""

    def explain(self) -> str:
        """What was chosen and what it gains, in plain words."""
        mine, raw = self.errors[self.choice], self.errors["raw"]
        what = {
            "optimised": "an optimised strategy",
            "workload": "the workload itself, reconciled by least squares (nothing better was found)",
            "identity": "every cell of the domain (nothing better was found)",
        }[self.choice]
        return (
            f"Measure {what} with {self.law} noise: expected squared error {mine / raw:.3g} times that of the "
            f"workload's noisy answers as they are; no strategy gets below {self.errors['bound'] / raw:.3g} times."
        )

    def _factor(self, budget: float | Fraction, rows: int) -> float:
        if not (float(budget) > 0 and math.isfinite(float(budget))) or rows < 1:
            raise EstimationError(
                f"budget is {budget}, rows is {rows}; expected a budget (eps or rho) above 0 and 1 row or more"
            )
        return rows**2 / float(budget) ** (2 if self.norm == 1 else 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.choice}, {self.law}, expected_error={self.expected_error():.6g})"


def choose(errors: Mapping[str, float]) -> Choice:
    """The best of the three; a simple strategy when the optimised one gains next to nothing."""
    simple: Choice = "workload" if errors["workload"] <= errors["identity"] else "identity"
    return "optimised" if errors["optimised"] < errors[simple] * (1 - MEANINGFUL) else simple


def check_norm(norm: int) -> None:
    if norm not in (1, 2):
        raise WorkloadError(f"norm is {norm!r}; use 1 for Laplace noise (pure eps), 2 for Gaussian noise (zCDP)")


def checked_importance(importance: Sequence[float] | None, n: int) -> list[float]:
    weights = [1.0] * n if importance is None else [float(weight) for weight in importance]
    if len(weights) != n or not all(weight > 0 and math.isfinite(weight) for weight in weights):
        raise WorkloadError(f"importance must be {n} positive numbers, got {importance!r}")
    return weights
