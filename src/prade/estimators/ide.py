"""`IDE`: Algorithm 1 of the paper, Iterative Distribution Estimation, as published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prade.errors import EstimationError
from prade.estimate import Estimate, Report, Status, TraceRow
from prade.estimators.base import Answers, check, hopeless
from prade.estimators.projection import nearest_l1, nearest_l2
from prade.joint import mass_per_cell
from prade.layout import Layout
from prade.measurement import Measurement
from prade.prior import Prior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class IDE:
    """Start at q = p; T times take a part, project its noisy answer to the nearest distribution, update q to have it.

    The update f of Definition 1 for a row j and the projected answer y (s: current masses of the part's cells):

        1. in cell i, s_i > 0:                 q_j y_i / s_i
        2. in cell i, s_i = 0:                 y_i / number of domain cells in i
        3. in no cell, uncovered mass u > 0:   q_j (1 - sum y) / u
        4. in no cell, u = 0:                  (1 - sum y) / number of uncovered domain cells

    Cases 2 and 4 need the full domain (`Prior.on_full_domain`). On a support there is nowhere to put such mass: those
    cells are unreachable, their mass goes to the reachable ones by the same projection, and the report says how much.

    `steps` is T (default: twice the number of parts). `order` is "random" as in the paper, "cyclic" as the authors did
    in practice (every part once a sweep, parts of a bundle together), or the parts' numbers. `projection` is
    "least-kl" or "euclidean". Answers that contradict each other make the iteration go in circles (`Status.CYCLING`).
    """

    steps: int | None = None
    order: Literal["random", "cyclic"] | Sequence[int] = "random"
    projection: Literal["least-kl", "euclidean"] = "least-kl"
    seed: int = 0
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        whole = isinstance(self.steps, (int, np.integer)) and not isinstance(self.steps, bool)
        if self.steps is not None and not (whole and self.steps >= 0):
            raise EstimationError(f"steps is {self.steps!r}: T must be a whole number, 0 or more")
        if isinstance(self.order, str) and self.order not in ("random", "cyclic"):
            raise EstimationError(f"order is {self.order!r}, expected 'random', 'cyclic' or a list of part numbers")
        if self.projection not in ("least-kl", "euclidean"):
            raise EstimationError(f"projection is {self.projection!r}, expected 'least-kl' or 'euclidean'")

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """Algorithm 1. On a full domain rows are not collapsed: the definition speaks of its cells one by one."""
        answers = check(prior, measurements, total, layout, collapse=not prior.complete)
        layout = answers.layout
        if prior.complete and layout.kind is not None:
            raise EstimationError(
                "on a full domain IDE needs a layout that keeps all rows: Layout(..., collapse=False)"
            )
        if prior.complete:
            # by cases 2 and 4, wherever the domain has a row
            answers = replace(answers, reachable=layout.masses_of(np.ones(layout.rows)) > 0)
        if answers.hopeless:
            return hopeless(answers, "IDE")
        visits = self.visits(layout)
        run = _Run(answers, self._projector(), prior.complete)
        parts = len(measurements)
        residuals: list[float] = []  # after each sweep's worth of visits
        trace: list[TraceRow] = []
        sweeps = [visits[i : i + parts] for i in range(0, len(visits), parts)]
        for number, sweep in enumerate(sweeps):
            following = sweeps[number + 1][0] if number + 1 < len(sweeps) else sweep[0]
            run.sweep(sweep, following)
            residuals.append(run.largest_miss)
            trace.append(TraceRow(number + 1, number + 1.0, run.largest_miss, np.nan, np.nan))
        q = run.weights / run.weights.sum()
        masses = layout.masses_of(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            kl = float(np.sum(np.where(q > 0, q * np.log(q / layout.base), 0.0)))
        report = Report(
            estimator="IDE",
            status=self._status(answers, masses, residuals),
            total=answers.total,
            kl=max(kl, 0.0),
            objective=float(np.abs(masses - answers.y).sum()),
            gap=np.nan,  # Algorithm 1 optimises no objective: there is no gap to speak of
            parts=answers.fits(masses),
            trace=tuple(trace),
            settings={
                "steps": float(len(visits)),
                "order": self.order if isinstance(self.order, str) else "given",
                "projection": self.projection,
            },
        )
        return Estimate(prior.schema, prior.codes, report, weights=layout.expand(q))

    def visits(self, layout: Layout) -> list[int]:
        """Which part is visited at each of the T steps."""
        parts = len(layout.workload)
        steps = 2 * parts if self.steps is None else self.steps
        if isinstance(self.order, str):
            if self.order == "random":
                return [int(k) for k in np.random.default_rng(self.seed).integers(0, parts, size=steps)]
            sequence = [int(k) for members in layout.bundles for k in members]
        else:
            sequence = list(self.order)
            if not sequence or not all(isinstance(k, (int, np.integer)) and 0 <= k < parts for k in sequence):
                raise EstimationError(f"order is {self.order!r}: give part numbers from 0 to {parts - 1}")
        return [sequence[i % len(sequence)] for i in range(steps)]

    def _projector(self) -> Callable[..., Floats]:
        return nearest_l1 if self.projection == "least-kl" else nearest_l2

    def _status(self, answers: Answers, masses: Floats, residuals: Sequence[float]) -> Status:
        wanted = np.where(answers.reachable, answers.y, 0.0)
        if float(np.abs(masses - wanted).max()) <= self.tolerance:
            return Status.CONVERGED
        # the largest misses of the last third against the third before: a run that settles leaves less and less
        third = len(residuals) // 3
        if third >= 2 and max(residuals[-third:]) > 0.9 * max(residuals[-2 * third : -third]) > self.tolerance:
            return Status.CYCLING
        return Status.EXHAUSTED


class _Run:
    """The weights under way: rows are scaled by one bundle and counted for the next in one fused pass."""

    def __init__(self, answers: Answers, project: Callable[..., Floats], complete: bool) -> None:
        self.answers = answers
        self.project = project
        self.complete = complete
        layout = answers.layout
        self.layout = layout
        self.weights = layout.base.copy()
        self.bundle_of = {int(k): b for b, members in enumerate(layout.bundles) for k in members}
        self.hist = np.zeros((len(layout.chunks()), int(np.diff(layout.start).max())))
        self.counted = -1  # the bundle that `hist` holds
        self.largest_miss = 0.0
        self._cell_of = {}
        for k, b in self.bundle_of.items():
            # cell of part k for every cell of its bundle; n_cells where the part has none
            block = layout.membership[layout.start[b] : layout.start[b + 1], layout.part(k)].tocoo()
            cell = np.full(block.shape[0], block.shape[1], np.int64)
            cell[block.row] = block.col
            self._cell_of[k] = cell
        if complete:
            everybody = np.ones(layout.rows)
            sizes = np.diff(layout.start)
            self._rows_in = [mass_per_cell(code, everybody, n) for code, n in zip(layout.codes, sizes, strict=True)]

    def sweep(self, visits: Sequence[int], following: int) -> None:
        """Visit parts in order; consecutive ones of a bundle are handled inside its table."""
        self.largest_miss = 0.0
        runs = [(b, list(ks)) for b, ks in groupby(visits, key=self.bundle_of.__getitem__)]
        for position, (bundle, parts) in enumerate(runs):
            then = runs[position + 1][0] if position + 1 < len(runs) else self.bundle_of[following]
            self._visit(bundle, parts, then)

    def _visit(self, bundle: int, parts: Sequence[int], then: int) -> None:
        layout = self.layout
        if self.counted != bundle:
            layout.count(bundle, self.weights, self.hist)
        size = int(layout.start[bundle + 1] - layout.start[bundle])
        mass = self.hist.sum(axis=0)[:size]
        ratio, extra = np.full(size, 1.0 / mass.sum()), np.zeros(size)
        mass *= ratio
        for k in parts:
            scale, added = self._update(k, mass, self._rows_in[bundle] if self.complete else None)
            ratio *= scale
            extra = extra * scale + added
            mass = mass * scale + (added * self._rows_in[bundle] if self.complete else 0.0)
        layout.scale_and_count(bundle, ratio, then, self.weights, self.hist, extra if extra.any() else None)
        self.counted = then

    def _update(self, k: int, mass: Floats, rows: Floats | None) -> tuple[Floats, Floats]:
        """Definition 1 for part k on its bundle's cells: weights become weights * scale + added."""
        cell = self._cell_of[k]
        number = self.answers.measurements[k].part.n_cells
        masses = mass_per_cell(cell, mass, number + 1)
        s = masses[:-1]
        y = self.answers.y[self.layout.part(k)]
        if rows is not None:
            counts = mass_per_cell(cell, rows, number + 1)
            possible = counts > 0  # cells of the domain that the part can be in at all
        else:
            counts = np.ones(number + 1)
            possible = masses > 0
        goal = np.zeros(number + 1)
        inside = possible[:-1]
        if inside.any():
            goal[:-1][inside] = self.project(y[inside], s[inside], covers=not possible[-1])
        goal[-1] = max(1.0 - goal[:-1].sum(), 0.0) if possible[-1] else 0.0
        self.largest_miss = max(self.largest_miss, float(np.abs(goal[:-1] - s).max(initial=0.0)))
        held = masses > 0
        scale = np.divide(goal, masses, out=np.zeros(number + 1), where=held)  # cases 1 and 3
        added = np.where(held | ~possible, 0.0, goal / np.maximum(counts, 1.0))  # cases 2 and 4
        return scale[cell], added[cell]
