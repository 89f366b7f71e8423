"""`IDE`: Algorithm 1 of the paper, Iterative Distribution Estimation, as published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import numpy as np

from prade.core.arrays import Floats, mass_per_cell
from prade.core.errors import EstimationError
from prade.data.public.joint import Prior
from prade.estimating.base import Answers, check, check_limits, hopeless, settings_of, smallest_radius, solve
from prade.estimating.dual import Dual
from prade.estimating.estimate import Estimate, Report, Status, TraceRow
from prade.estimating.layout import Layout
from prade.estimating.solvers import Tolerance, best_solver
from prade.release.release import Measurement

MET = 1e-9  # an answer that is missed by less is met
ENOUGH_SWEEPS = 6  # before that, cycling cannot be told from slow convergence


@dataclass(frozen=True)
class IDE:
    """Start at q = p; T times take a part, project its noisy answer to the nearest distribution, update q to match it.

    The update f of Definition 3.1 for a row j and the projected answer y (s: current masses of the part's cells):

        1. in cell i, s_i > 0:                 q_j y_i / s_i
        2. in cell i, s_i = 0:                 y_i / number of domain cells in i
        3. in no cell, uncovered mass u > 0:   q_j (1 - sum y) / u
        4. in no cell, u = 0:                  (1 - sum y) / number of uncovered domain cells

    Cases 2 and 4 need the full domain (`Prior.on_full_domain`). On a support those cells are unreachable: their mass
    goes to the reachable ones by the same projection, and the report says how much.

    `steps` is T (default: twice the number of parts). `order` is "random" as in the paper, "cyclic" as the authors did
    in practice (every part once per sweep, parts of a bundle together), or the parts' numbers. `projection` is
    "least-kl" or "euclidean". Answers that contradict each other make the iteration go in circles (`Status.CYCLING`).

    >>> from prade import Schema, Workload
    >>> from prade.estimating import IDE, Measurement, Prior
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> prior = Prior.from_table(schema, {"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]})
    >>> part = Workload.marginals(schema, ["a"])[0]
    >>> IDE().fit(prior, [Measurement(part, [40, 60], scale=2.0)], total=100).project(["a", "b"]).round(3).tolist()
    [[0.267, 0.133], [0.0, 0.6]]
    """

    steps: int | None = None
    order: Literal["random", "cyclic"] | Sequence[int] = "random"
    projection: Literal["least-kl", "euclidean"] = "least-kl"
    seed: int = 0

    def __post_init__(self) -> None:
        check_limits(self.steps or 0)
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
            return hopeless(self, answers)
        visits = self.visits(layout)
        run = _Run(answers, nearest_l1 if self.projection == "least-kl" else nearest_l2, prior.complete)
        trace: list[TraceRow] = []
        for first in range(0, len(visits), len(measurements)):
            miss = run.sweep(visits[first : first + len(measurements)])
            trace.append(TraceRow(len(trace) + 1, len(trace) + 1.0, miss, np.nan, np.nan))
        q, multipliers = run.weights / run.weights.sum(), run.multipliers.copy()  # before further sweeps for the status
        masses = layout.masses_of(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            kl = float(np.sum(np.where(q > 0, q * np.log(q / layout.base), 0.0)))
        report = Report(
            estimator="IDE",
            status=self._status(answers, masses, run, sweeps=len(trace)),
            total=answers.total,
            kl=max(kl, 0.0),
            objective=float(np.abs(masses - answers.y).sum()),
            gap=np.nan,  # Algorithm 1 has no objective, and so no gap
            parts=answers.fits(masses),
            trace=tuple(trace),
            settings=settings_of(self, steps=len(visits)),
        )
        if prior.complete:  # rows filled by cases 2 and 4 have weights that no multiplier gives
            return Estimate(prior.schema, prior.codes, report, weights=layout.expand(q))
        return Estimate(prior.schema, prior.codes, report, layout=layout.restricted(q > 0), multipliers=multipliers)

    def visits(self, layout: Layout) -> list[int]:
        """Which part is visited at each of the T steps."""
        parts = len(layout.workload)
        steps = 2 * parts if self.steps is None else self.steps
        if isinstance(self.order, str):
            if self.order == "random":
                return [int(k) for k in np.random.default_rng(self.seed).integers(0, parts, size=steps)]
            sequence = [int(k) for members in layout.bundles.parts for k in members]
        else:
            sequence = list(self.order)
            if not sequence or not all(isinstance(k, (int, np.integer)) and 0 <= k < parts for k in sequence):
                raise EstimationError(f"order is {self.order!r}: give part numbers from 0 to {parts - 1}")
        return [sequence[i % len(sequence)] for i in range(steps)]

    def _status(self, answers: Answers, masses: Floats, run: _Run, sweeps: int) -> Status:
        wanted = np.where(answers.reachable, answers.y, 0.0)
        if float(np.abs(masses - wanted).max()) <= MET:
            return Status.CONVERGED
        if sweeps < ENOUGH_SWEEPS:
            return Status.EXHAUSTED
        # Three more sweeps, for the status alone: answers that go together are missed less each time, answers that
        # contradict each other by the same amount for ever.
        every = [int(k) for members in answers.layout.bundles.parts for k in members]
        _, before, after = (run.sweep(every) for _ in range(3))
        return Status.CYCLING if after > max(0.99 * before, MET) else Status.EXHAUSTED


class _Run:
    """The current weights: one fused pass scales rows by one bundle and counts them for the next."""

    def __init__(self, answers: Answers, project: Callable[..., Floats], complete: bool) -> None:
        layout = answers.layout
        self.answers, self.layout, self.project = answers, layout, project
        self.weights = layout.base.copy()
        self.multipliers = np.zeros(layout.n_cells)  # of rows that have not been emptied
        self.bundle_of = {int(k): b for b, members in enumerate(layout.bundles.parts) for k in members}
        self.hist = np.zeros((len(layout.chunks), layout.bundles.widest))
        self.counted = -1  # the bundle that `hist` holds
        self.largest_miss = 0.0
        self._cell_of = {}
        self._rows_in: list[Floats] | None = None  # of each cell of each bundle, on a full domain
        for k, b in self.bundle_of.items():
            # cell of part k for every cell of its bundle; n_cells where the part has none
            inside = slice(*layout.bundles.start[b : b + 2])
            block = layout.bundles.membership[inside, layout.part(k)].tocoo()
            cell = np.full(block.shape[0], block.shape[1], np.int64)
            cell[block.row] = block.col
            self._cell_of[k] = cell
        if complete:
            coded = zip(layout.bundles.codes, layout.bundles.sizes, strict=True)
            self._rows_in = [mass_per_cell(code, np.ones(layout.rows), size) for code, size in coded]

    def sweep(self, visits: Sequence[int]) -> float:
        """Visit parts in order, consecutive ones of a bundle inside its table; returns the largest miss met."""
        self.largest_miss = 0.0
        runs = [(b, list(ks)) for b, ks in groupby(visits, key=self.bundle_of.__getitem__)]
        for position, (bundle, parts) in enumerate(runs):
            # after the last one the first comes again in a cyclic order; in a random one its masses may be wasted
            self._visit(bundle, parts, then=runs[(position + 1) % len(runs)][0])
        return self.largest_miss

    def _visit(self, bundle: int, parts: Sequence[int], then: int) -> None:
        layout = self.layout
        if self.counted != bundle:
            layout.count(bundle, self.weights, self.hist)
        size = int(layout.bundles.sizes[bundle])
        mass = self.hist.sum(axis=0)[:size]
        ratio, extra = np.full(size, 1.0 / mass.sum()), np.zeros(size)
        mass *= ratio
        rows = None if self._rows_in is None else self._rows_in[bundle]
        for k in parts:
            scale, added = self._update(k, mass, rows)
            ratio *= scale
            extra = extra * scale + added
            mass = mass * scale + (0.0 if rows is None else added * rows)
        layout.scale_and_count(bundle, ratio, then, self.weights, self.hist, extra if extra.any() else None)
        self.counted = then

    def _update(self, k: int, mass: Floats, rows: Floats | None) -> tuple[Floats, Floats]:
        """Definition 3.1 for part k on its bundle's cells: weights become weights * scale + added."""
        cell = self._cell_of[k]
        number = self.answers.measurements[k].part.n_cells
        masses = mass_per_cell(cell, mass, number + 1)
        s, y = masses[:-1], self.answers.y[self.layout.part(k)]
        counts = np.ones(number + 1) if rows is None else mass_per_cell(cell, rows, number + 1)
        possible = (masses if rows is None else counts) > 0  # cells that the part can be in at all
        goal, inside = np.zeros(number + 1), possible[:-1]
        if inside.any():
            goal[:-1][inside] = self.project(y[inside], s[inside], covers=not possible[-1])
        goal[-1] = max(1.0 - goal[:-1].sum(), 0.0) if possible[-1] else 0.0
        self.largest_miss = max(self.largest_miss, float(np.abs(goal[:-1] - s).max(initial=0.0)))
        scale = np.divide(goal, masses, out=np.zeros(number + 1), where=masses > 0)
        added = np.where((masses > 0) | ~possible, 0.0, goal / np.maximum(counts, 1.0))
        log = np.log(np.where(scale > 0, scale, 1.0))
        self.multipliers[self.layout.part(k)] += log[:-1] - log[-1]
        return scale[cell], added[cell]


# ---------------------------------------------------------------------- the projection inside Algorithm 1


def nearest_l1(y: Floats, reference: Floats, *, covers: bool) -> Floats:
    """The L1-nearest z >= 0 to y with sum 1 (at most 1 if the part does not cover everything).

    Of the many such z, the one with the least KL divergence from `reference`, the current masses r: with
    y+ = max(y, 0), min(y+, c r) where y+ sums to more than 1, or max(y+, c r), with c such that the sum is 1.

    >>> nearest_l1(np.array([0.7, 0.7]), np.array([0.9, 0.1]), covers=True)
    array([0.7, 0.3])
    """
    z = np.maximum(y, 0.0)
    total = z.sum()
    if total > 1.0:
        return _capped(z, reference)
    if total < 1.0 and covers:
        return _raised(z, reference)
    return np.asarray(z)


def nearest_l2(y: Floats, _: Floats, *, covers: bool) -> Floats:
    """The Euclidean-nearest z >= 0 with sum 1 (at most 1): another member of the L1-nearest set."""
    z = np.maximum(y, 0.0)
    if not covers and z.sum() <= 1.0:
        return np.asarray(z)
    ordered = np.sort(y)[::-1]
    shift = (np.cumsum(ordered) - 1.0) / np.arange(1, len(y) + 1)
    kept = np.flatnonzero(ordered > shift)[-1]
    return np.asarray(np.maximum(y - shift[kept], 0.0))


def _capped(z: Floats, reference: Floats) -> Floats:
    """min(z, c r) with sum 1, given that z sums to more."""
    held = reference > 0
    if z[held].sum() <= 1.0:
        # what is left must go where the reference has nothing, and no KL tells how: in proportion to the answer
        rest = np.where(held, 0.0, z)
        return np.asarray(np.where(held, z, rest * (1.0 - z[held].sum()) / rest.sum()))
    level, mass = z[held], reference[held]
    order = np.argsort(level / mass)
    below = np.concatenate([[0.0], np.cumsum(level[order])[:-1]])  # cells that stay under c r
    above = np.cumsum(mass[order][::-1])[::-1]
    c = (1.0 - below) / above
    # the first cell whose own threshold z/r is beyond the c that it would give
    fits = c * mass[order] <= level[order]
    fits[-1] = True  # by construction, whatever rounding says
    chosen = c[np.argmax(fits)]
    return np.asarray(np.where(held, np.minimum(z, chosen * reference), 0.0))


def _raised(z: Floats, reference: Floats) -> Floats:
    """max(z, c r) with sum 1, given that z sums to less."""
    held = reference > 0
    if not held.any():
        return np.asarray(z + (1.0 - z.sum()) / len(z))
    level, mass = z[held], reference[held]
    order = np.argsort(level / mass)
    inside = np.cumsum(mass[order])  # cells that are raised to c r
    outside = z.sum() - np.cumsum(level[order])
    c = (1.0 - outside) / inside
    following = np.concatenate([(level / mass)[order][1:], [np.inf]])
    chosen = c[np.argmax(c <= following)]
    return np.asarray(np.maximum(z, chosen * reference))


# ---------------------------------------------------------------------- the exact problem


@dataclass(frozen=True)
class TwoStage:
    """Of all distributions nearest to the answers, the one nearest to the prior.

        stage 1   r* = min |Wz - y|_1             over distributions z on the support
        stage 2   min KL(q || p)  with  |Wq - y|_1 <= r*

    By complementary slackness with the prices lam of *any* dual optimum of stage 1, the constraint is:

        rows off the maximum of W' lam have no mass;    |lam_i| < 1:  (Wq)_i = y_i;
        lam_i = 1:  (Wq)_i <= y_i;                      lam_i = -1:  (Wq)_i >= y_i

    so stage 2 is the dual of `dual.py` with half-open boxes, and ends with a duality gap.

    >>> from prade import Schema, Workload
    >>> from prade.estimating import Measurement, Prior, TwoStage
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> prior = Prior.from_table(schema, {"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]})
    >>> part = Workload.marginals(schema, ["a"])[0]
    >>> estimate = TwoStage().fit(prior, [Measurement(part, [70, 70], scale=2.0)], total=100)
    >>> estimate.project(["a"]).round(3), round(estimate.report.certificate["radius"], 3)
    (array([0.7, 0.3]), 0.4)
    """

    tolerance: float = 1e-8
    max_steps: int = 500

    def __post_init__(self) -> None:
        check_limits(self.max_steps, tolerance=self.tolerance)

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The paper's optimum. Scales of the measurements are not used."""
        answers = check(prior, measurements, total, layout)
        if answers.hopeless:
            return hopeless(self, answers)
        radius = smallest_radius(answers.layout, answers.y, np.ones(answers.layout.n_cells))
        slack = 1e-7
        face = answers.layout.restricted(radius.reduced <= slack)
        high = np.where(radius.prices >= 1 - slack, 0.0, np.inf)
        low = np.where(radius.prices <= -1 + slack, 0.0, -np.inf)
        # nobody can be in an unreachable cell: it adds a constant to the distance, and nothing to decide
        low, high = (np.where(face.reachable, bound, 0.0) for bound in (low, high))
        dual = Dual(face, answers.y, np.zeros(face.n_cells), low, high)
        tolerance = Tolerance(relative=self.tolerance, absolute=1e-10, misfit=1e-8)
        found = {"radius": radius.upper, "radius_lower": radius.lower}
        return solve(self, answers, dual, best_solver(dual, tolerance), tolerance, certificate=found)
