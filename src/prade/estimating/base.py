"""What all estimators share: checked input, the climb and its report, and the least radius of the exact problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.errors import EstimationError
from prade.core.execution import single_threaded_blas
from prade.data.public.joint import Joint, Prior
from prade.estimating.dual import Dual
from prade.estimating.estimate import Estimate, PartFit, Report, Status, TraceRow
from prade.estimating.layout import Layout
from prade.estimating.solvers import Solver, State, Tolerance, climb, state_at
from prade.queries.workload import Workload
from prade.release.release import Measurement

PATIENCE = 25  # steps; if answers that must hold exactly still do not, a linear programme decides whether they can

STIFF = 1e3  # bounds on multipliers above this: the dual is nearly piecewise linear, and a climb may get stuck


class Estimator(Protocol):
    """Noisy answers and a prior in, an estimate out."""

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """Estimate the distribution of a table of `total` rows; groups with one prior and workload share a layout."""
        ...


@dataclass(frozen=True)
class Answers:
    """Checked input: the measurements as one vector over all cells of a layout, in shares of the total."""

    layout: Layout
    measurements: tuple[Measurement, ...]
    total: float
    y: Floats
    reachable: NDArray[np.bool_]  # cells in which an estimate can have mass

    @property
    def hopeless(self) -> bool:
        """Whether every positive answer lies in cells that no row of the prior is in."""
        positive = self.y > 0
        return bool(positive.any() and not (positive & self.reachable).any())

    def fits(self, masses: Floats) -> tuple[PartFit, ...]:
        """How each part's answer is met by these cell masses."""
        result = []
        far = np.abs(masses - self.y) * self.total
        scale = np.concatenate([m.scale for m in self.measurements])
        lost = np.where(self.reachable, 0.0, np.maximum(self.y, 0.0))
        by_part = (np.add.reduceat(each, self.layout.part_start[:-1]).tolist() for each in (far, scale, lost))
        for m, residual, scales, unreachable in zip(self.measurements, *by_part, strict=True):
            size = scales * m.law.mean_size
            units = residual / size if size > 0 else (0.0 if residual <= 1e-6 * self.total else math.inf)
            result.append(PartFit(m.part.name, residual, units, min(unreachable, 1.0)))
        return tuple(result)


def check(
    prior: Joint, measurements: Sequence[Measurement], total: float, layout: Layout | None, *, collapse: bool = True
) -> Answers:
    """Refuse input that no estimator can work with, before any work."""
    if not measurements:
        raise EstimationError("no measurements: give at least one noisy answer, or use the prior itself")
    if not isinstance(total, (int, float, np.number)) or not np.isfinite(total) or total <= 0:
        raise EstimationError(f"total is {total!r}: give a positive number; a noisy one below 1 should be raised to 1")
    parts = [m.part for m in measurements]
    if layout is None:
        layout = Layout(prior, Workload(prior.schema, parts), collapse=collapse)
    elif layout.prior is not prior or list(layout.workload) != parts:
        raise EstimationError(
            "the layout was made for another prior or other parts: make it with Layout(prior, workload) "
            "from the same prior and the parts of the measurements, in their order"
        )
    y = np.concatenate([m.counts for m in measurements]) / total
    return Answers(layout, tuple(measurements), float(total), y, layout.reachable)


def settings_of(estimator: Any, **chosen: float | str) -> dict[str, float | str]:
    """The estimator's settings for the report, with those that it chose itself."""
    plain: dict[str, float | str] = {}
    for name, value in asdict(estimator).items():
        number = value.item() if isinstance(value, np.generic) else value
        if number is not None:
            plain[name] = number if isinstance(number, (int, float, str)) else " ".join(map(str, value))
    return {**plain, **chosen}


def check_limits(max_steps: int, **tolerances: float) -> None:
    """Refuse impossible stopping rules."""
    for name, value in tolerances.items():
        if not value >= 0:
            raise EstimationError(f"{name} is {value!r}: give a number, 0 or more")
    if not isinstance(max_steps, (int, np.integer)) or isinstance(max_steps, bool) or max_steps < 0:
        raise EstimationError(f"max_steps is {max_steps!r}: give a whole number, 0 or more")


def _impossible(dual: Dual) -> bool:
    """Whether the linear programme proves that the answers that must hold exactly cannot hold together."""
    both = np.logical_and(*dual.rigid)
    return bool(both.any()) and smallest_radius(dual.layout, dual.y, both.astype(np.float64)).lower > 1e-9


def hopeless(estimator: Any, answers: Answers) -> Estimate:
    """The prior itself, with a report that says why."""
    prior, parts = answers.layout.prior, answers.fits(answers.layout.start.masses)
    trace, name = (TraceRow(0, 0.0, 0.0, 0.0, 0.0),), type(estimator).__name__
    report = Report(name, Status.HOPELESS, answers.total, 0.0, 0.0, 0.0, parts, trace, settings_of(estimator))
    return Estimate(prior.schema, prior.codes, report, weights=prior.weights)


def solve(
    estimator: Any,
    answers: Answers,
    dual: Dual,
    solver: Solver,
    tolerance: Tolerance,
    *,
    scale: float = 1.0,
    certificate: dict[str, float] | None = None,
    **chosen: float,
) -> Estimate:
    """Climb a dual and report. `scale` turns its objective (in units of KL) into the estimator's own."""
    trace: list[TraceRow] = []

    def watch(state: State) -> None:
        c = state.certificate
        trace.append(TraceRow(len(trace), state.passes, scale * c.objective, scale * c.gap, c.kl))

    max_steps = estimator.max_steps
    with single_threaded_blas():
        state, reason = climb(dual, solver, tolerance, max_steps=min(max_steps, PATIENCE), watch=watch)
        unsettled = reason in ("exhausted", "stalled")
        if unsettled and state.certificate.misfit > tolerance.misfit and _impossible(dual):
            reason = "unreachable"
        elif unsettled and max_steps > PATIENCE:
            low, high = dual.box
            largest = float(high.max())
            if not dual.variance.any() and np.array_equal(-low, high) and largest > STIFF:
                # misfits are so expensive that KL hardly counts: begin at the prices of a linear programme
                prices = smallest_radius(dual.layout, dual.y, high / largest).prices * largest
                state = max(state, state_at(dual, prices, state.passes), key=lambda s: s.certificate.value)
            state = replace(state, stuck=False)
            state, reason = climb(dual, solver, tolerance, max_steps=max_steps - PATIENCE, start=state, watch=watch)
    reached = state.certificate
    report = Report(
        estimator=type(estimator).__name__,
        status=Status(reason),
        total=answers.total,
        kl=reached.kl,
        objective=scale * reached.objective,
        gap=scale * reached.gap,
        parts=answers.fits(state.tilted.masses),
        trace=tuple(trace),
        settings=settings_of(estimator, **chosen, solver=type(solver).__name__),
        certificate={"dual": scale * reached.value, "misfit": reached.misfit, **(certificate or {})},
    )
    prior = answers.layout.prior
    return Estimate(prior.schema, prior.codes, report, layout=dual.layout, multipliers=state.multipliers)


# ---------------------------------------------------------------------- stage 1 of the exact problem: the least radius


ROWS_AT_ONCE = 20_000  # a linear programme with more columns is solved by column generation
ROWS_PER_ROUND = 2_000


@dataclass(frozen=True)
class Radius:
    """Stage 1: r* = min over distributions z of sum_i cost_i |(Wz - y)_i| >= lam . y - max_j (W' lam)_j = `lower`."""

    upper: float
    lower: float
    prices: Floats
    reduced: Floats  # max_j (W' prices)_j - (W' prices)_j >= 0, per row
    rounds: int


def smallest_radius(
    layout: Layout, y: Floats, cost: Floats, *, at_once: int = ROWS_AT_ONCE, per_round: int = ROWS_PER_ROUND
) -> Radius:
    """Stage 1 by HiGHS; on supports of more rows than `at_once` by column generation, priced in one pass over all."""
    rows = np.flatnonzero(layout.base > 0)
    if len(rows) > at_once:
        rows = _first_rows(layout, 2 * per_round)
    for rounds in range(1, 1000):
        upper, prices = _master(layout, rows, y, cost)
        potential = layout.bundles.row_logits(prices)
        potential[layout.base <= 0] = -np.inf
        reduced = potential.max() - potential
        lower = float(prices @ y - potential.max())
        if upper - lower <= 1e-9 * max(1.0, upper):
            return Radius(upper, lower, prices, reduced, rounds)
        order = np.argsort(reduced, kind="stable")  # the rows that promise most
        candidates = order[np.isfinite(reduced[order]) & ~np.isin(order, rows)][:per_round]
        if len(candidates) == 0:
            return Radius(upper, lower, prices, reduced, rounds)
        rows = np.union1d(rows, candidates)
    raise EstimationError("stage 1 did not finish in 1000 rounds of column generation; use MAP on this problem")


def _first_rows(layout: Layout, number: int) -> NDArray[np.int64]:
    """A row for every cell of every bundle (hence of every part), and some of the heaviest rows."""
    somebody = [np.unique(code, return_index=True)[1] for code in layout.bundles.codes]
    heaviest = np.argsort(-layout.base, kind="stable")[:number]
    chosen: NDArray[np.int64] = np.unique(np.concatenate([*somebody, heaviest]))
    return np.asarray(chosen[layout.base[chosen] > 0])


def _master(layout: Layout, rows: NDArray[np.int64], y: Floats, cost: Floats) -> tuple[float, Floats]:
    """min cost . (above + below)  with  W z + below - above = y, sum z = 1, all >= 0, on some rows; and the prices."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    counted = cost > 0
    cells = int(np.count_nonzero(counted))
    identity = eye_array(cells, format="csr")
    answers = hstack([layout.bundles.cells_of(rows).T.tocsr()[counted], identity, -identity], format="csr")
    one = np.concatenate([np.ones(len(rows)), np.zeros(2 * cells)])
    result = linprog(
        np.concatenate([np.zeros(len(rows)), cost[counted], cost[counted]]),
        A_eq=vstack([answers, csr_array(one[None, :])], format="csr"),
        b_eq=np.append(y[counted], 1.0),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise EstimationError(f"stage 1: the linear programme solver stopped with: {result.message}")
    prices = np.zeros(layout.n_cells)
    prices[counted] = np.clip(result.eqlin.marginals[:-1], -cost[counted], cost[counted])
    return float(result.fun), prices
