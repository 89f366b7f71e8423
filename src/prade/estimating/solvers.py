"""Ways to climb the dual, each a frozen value with a `step`; `climb` is the loop that they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.estimating.block_step import ascend_bundle
from prade.estimating.dual import Certificate, Dual, Quadratic
from prade.estimating.kernels import Tilted

MOST_CELLS_FOR_NEWTON = 2000  # the dense curvature then takes 32 MB, its factorisation some hundred milliseconds


@dataclass(frozen=True)
class State:
    """Where a solver stands."""

    multipliers: Floats
    tilted: Tilted
    certificate: Certificate
    passes: float  # passes over all rows so far, one pass touching every bundle once
    sample: int = 0  # rows for the next curvature estimate (Newton)
    reach: float = 0.0  # how far the next step may move a multiplier (Newton)
    model: Quadratic | None = None  # of an earlier step, if it will do for the next (Newton)
    stuck: bool = False


@dataclass(frozen=True)
class Tolerance:
    """When to stop: gap <= relative * objective (or <= absolute), and exact answers met to `misfit`."""

    relative: float = 1e-6
    absolute: float = 1e-12
    misfit: float = 1e-9

    def met(self, certificate: Certificate) -> bool:
        """Whether the certificate is good enough."""
        allowed = max(self.relative * abs(certificate.objective), self.absolute)
        return certificate.gap <= allowed and certificate.misfit <= self.misfit


class Solver(Protocol):
    """One way to climb: `step` leads to a better state, which is `stuck` if there is none."""

    def step(self, dual: Dual, state: State) -> State: ...


def state_at(dual: Dual, multipliers: Floats, passes: float) -> State:
    """Evaluate multipliers."""
    # without any multiplier in reach, it is the prior, which other groups may share
    still = not multipliers[dual.layout.reachable].any()
    tilted = dual.layout.start if still else dual.layout.evaluate(multipliers)
    return State(multipliers, tilted, dual.certify(multipliers, tilted), passes)


def climb(
    dual: Dual,
    solver: Solver,
    tolerance: Tolerance,
    *,
    max_steps: int,
    start: State | None = None,
    watch: Callable[[State], None] = lambda state: None,
) -> tuple[State, str]:
    """Step until the certificate is good enough; returns the last state and why it stopped.

    "converged", "unreachable" (proved: exact answers contradict each other or the support), "stalled" (no progress
    left in double precision) or "exhausted" (`max_steps`).
    """
    state = state_at(dual, dual.start(), 1.0) if start is None else start
    for step in range(max_steps + 1):
        if step > 0 or start is None:
            watch(state)
        if tolerance.met(state.certificate):
            return state, "converged"
        if dual.refuted(state.multipliers, state.tilted):
            return state, "unreachable"
        if state.stuck:
            return state, "stalled"
        if step < max_steps:
            state = solver.step(dual, state)
    return state, "exhausted"


# Of a climb on few rows, whose optimum is further from that of all rows.
ROUGHLY, FIRST_STEPS = Tolerance(relative=1e-2), 10


@dataclass(frozen=True)
class BlockAscent:
    """Sweeps of exact block steps: for one part, Z = u + sum_i clip(y_i Z, s_i e^(-lam_i - C), s_i e^(-lam_i + C)).

    With C -> infinity this is Algorithm 1 in cyclic order. `sweeps` are done between two certificates. They often creep
    in one direction for long, so a step continues in it, twice as far each time, while the dual climbs and the gap
    falls.
    """

    sweeps: int = 4

    def step(self, dual: Dual, state: State) -> State:
        low, high = dual.box
        new = self.swept(dual, state)
        way, stretch = new.multipliers - state.multipliers, 2.0
        while True:
            longer = state_at(dual, np.clip(state.multipliers + stretch * way, low, high), new.passes + 1.0)
            shorter, further = new.certificate, longer.certificate
            if not (further.value > shorter.value and further.gap < shorter.gap):
                break
            new, stretch = longer, 2.0 * stretch
        return replace(new, passes=longer.passes, stuck=np.array_equal(new.multipliers, state.multipliers))

    def swept(self, dual: Dual, state: State) -> State:
        """Some sweeps, then a fresh evaluation from the multipliers, so that rounding does not pile up."""
        layout = dual.layout
        low, high = dual.box
        lam = state.multipliers.copy()
        weights = state.tilted.normalised()
        bundles = layout.bundles
        hist = np.zeros((len(layout.chunks), bundles.widest))
        ratio = np.ones(bundles.widest)
        layout.count(0, weights, hist)
        for visit in range(self.sweeps * len(bundles)):
            now, then = visit % len(bundles), (visit + 1) % len(bundles)
            start, stop = int(bundles.start[now]), int(bundles.start[now + 1])
            mass = hist.sum(axis=0)[: stop - start]
            mass /= mass.sum()
            ascend_bundle(
                mass, start, stop, bundles.indptr, bundles.cells, bundles.parts[now], layout.part_start,
                layout.occupied, dual.y, dual.variance, low, high, lam, ratio,
            )  # fmt: skip
            layout.scale_and_count(now, ratio, then, weights, hist)
        return state_at(dual, lam, state.passes + self.sweeps + 1.0)


@dataclass(frozen=True)
class Newton:
    """Projected Newton with block ascent to fall back on: the dual's quadratic model is maximised in the box.

    The curvature of log Z is the covariance of the cell indicators under q. It is estimated on a sample of rows (see
    `Bundles.covariance`), doubled when a short step gains less than hoped: a wrong curvature costs steps, never
    correctness, because gradient and certificate see all rows. Instead of a step that does not climb there are two
    sweeps of block ascent. The first step is some sweeps, too, or, where there are many rows and all answers are noisy,
    a climb on few of them (`prade.estimating.layout`). A curvature that served well serves again.
    """

    sample: int = 8192
    reach: float = 3.0  # how far the first step may move a multiplier: the model is one of exponentials
    shrink: float = 0.5  # a step that leaves more than this share of the gap asks for a better curvature
    first: int = 3  # sweeps of block ascent before the first step
    serves: float = 0.3  # a step that leaves at most this share of it is followed by one with the same curvature

    def step(self, dual: Dual, state: State) -> State:
        if not state.sample:  # the first step: the optimum is farther away than any parabola sees
            first = self._first(dual, state)
            if first.certificate.value > state.certificate.value:
                return replace(first, sample=max(self.sample, 8 * int(dual.layout.reachable.sum())))
        within = np.flatnonzero(dual.layout.reachable)  # a matrix should not have room for cells that no row is in
        lam = state.multipliers
        # eight rows per cell give a fair curvature, two hundred a very good one
        largest = min(dual.layout.rows, max(8 * self.sample, 200 * len(within)))
        sample = min(state.sample or max(self.sample, 8 * len(within)), largest)
        low, high = dual.box
        slope = dual.slope(lam, state.tilted)
        model = state.model or Quadratic(self._curvature(dual, state, sample, within))
        reach = state.reach or self.reach
        near, far = np.maximum(low - lam, -reach), np.minimum(high - lam, reach)
        direction = dual.start() - lam  # right for cells out of reach, which their answers alone decide
        direction[within] = model.maximise(slope[within], near[within], far[within])
        # a long step disappoints because an exponential is not a parabola; a short one because of the sample
        finer = 2 * sample if float(np.abs(direction).max()) <= 1.0 else sample
        before = state.certificate
        # beyond this no comparison of dual values means anything in double precision
        noise = 1e-14 * (1.0 + abs(before.value) + float(np.abs(lam) @ np.abs(dual.y)))
        trial = state_at(dual, np.clip(lam + direction, low, high), state.passes + 1.0)
        if trial.certificate.value >= before.value + 0.1 * float(slope @ direction) - noise:
            after = trial.certificate
            left = (after.gap + after.misfit) / max(before.gap + before.misfit, 1e-300)
            settled = np.array_equal(trial.multipliers, lam) and sample == largest and state.model is None
            good = left <= self.shrink or state.model is not None
            again = model if left <= self.serves else None
            return replace(trial, sample=sample if good else finer, reach=2.0 * reach, model=again, stuck=settled)
        if state.model is not None:  # it no longer serves
            return self.step(dual, replace(state, model=None, passes=trial.passes))
        swept = BlockAscent(sweeps=2).step(dual, replace(state, passes=trial.passes))
        if swept.certificate.value < before.value - noise:
            swept = replace(state, passes=swept.passes)
        # where q sits in a corner, sweeps may see nothing but underflow: only a short enough step says that it is over
        stuck = np.array_equal(swept.multipliers, lam) and reach <= 1e-9 * (1.0 + float(np.abs(lam).max()))
        return replace(swept, sample=finer, reach=reach / 4.0, stuck=stuck)

    def _first(self, dual: Dual, state: State) -> State:
        """A climb on few rows, or sweeps over all."""
        few = dual.layout.few if dual.variance.all() else None  # few rows may not meet answers that must hold exactly
        if few is None:
            return BlockAscent(sweeps=self.first).swept(dual, state)
        rough, _ = climb(replace(dual, layout=few), replace(self, serves=np.inf), ROUGHLY, max_steps=FIRST_STEPS)
        passes = state.passes + rough.passes * few.rows / dual.layout.rows + 1.0
        again = rough.model if np.array_equal(few.reachable, dual.layout.reachable) else None
        return replace(state_at(dual, rough.multipliers, passes), model=again)

    def _curvature(self, dual: Dual, state: State, sample: int, within: Ints) -> Floats:
        """The curvature in some cells, from about `sample` rows."""
        tilted = replace(state.tilted, masses=state.tilted.masses[within])
        curvature = dual.layout.bundles.only(within).covariance(tilted, sample, offset=0.5)
        curvature.flat[:: len(within) + 1] += dual.variance[within]
        return curvature


@dataclass(frozen=True)
class LBFGSB:
    """scipy's L-BFGS-B on the dual with its box; a step ends early where the certificate is `good_enough`."""

    iterations: int = 200
    memory: int = 20
    good_enough: Tolerance | None = None

    def step(self, dual: Dual, state: State) -> State:
        from scipy.optimize import Bounds, minimize

        evaluations, latest = 0, (state.multipliers, state.tilted)

        def negative(lam: Floats) -> tuple[float, Floats]:
            nonlocal evaluations, latest
            evaluations += 1
            tilted = dual.layout.evaluate(lam)
            latest = lam.copy(), tilted
            return -dual.value(lam, tilted), -dual.slope(lam, tilted)

        def stop(lam: Floats) -> None:
            # a line search ends where it evaluated last, so this takes no further pass
            wanted = self.good_enough
            if wanted is not None and np.array_equal(lam, latest[0]) and wanted.met(dual.certify(*latest)):
                raise StopIteration

        low, high = dual.box
        result = minimize(
            negative,
            state.multipliers,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(low, high),
            callback=stop,
            options={"maxiter": self.iterations, "maxcor": self.memory, "ftol": 0.0, "gtol": 0.0, "maxls": 50},
        )
        new = state_at(dual, np.clip(result.x, low, high), state.passes + evaluations + 1.0)
        gained = new.certificate.value - state.certificate.value
        # a line search that failed is started afresh by the next step; without any gain there is none to come
        return replace(new, stuck=gained <= 1e-15 * abs(state.certificate.value))


@dataclass(frozen=True)
class QuasiNewton:
    """Sweeps of block ascent, which come near quickly and then creep; L-BFGS-B from there."""

    first: int = 10  # sweeps
    finish: LBFGSB = LBFGSB()

    def step(self, dual: Dual, state: State) -> State:
        if state.passes <= 1.0:
            swept = BlockAscent(sweeps=self.first).swept(dual, state)
            if swept.certificate.value > state.certificate.value:
                return swept
        return self.finish.step(dual, state)


def best_solver(dual: Dual, tolerance: Tolerance, most_cells: int = MOST_CELLS_FOR_NEWTON) -> Solver:
    """Newton where its matrix of reachable cells is small enough, L-BFGS-B where variances make the dual smooth."""
    if int(dual.layout.reachable.sum()) <= most_cells:
        return Newton()
    return QuasiNewton(finish=LBFGSB(good_enough=tolerance)) if (dual.variance > 0).all() else BlockAscent()
