"""One model of all groups in the place of the present smoothing, on public tables: errors and intervals side by side.

Illinois stands for the private table and Ohio for the public one, and the other way round; all one-way tables are asked
in every PUMA, with simulated noise. With y_g a group's answers as shares and m the public table's shares, both have

    x_state = m + u,            u   ~ N(0, S)
    x_g     = x_state + u_g,    u_g ~ N(0, S_g),     S_g = D^(1/2) (a B + (k + 1 / n_g) C) D^(1/2)

B is the covariance of cells between public groups, C that of one row's cells. The candidate fits a, k and one scale per
column, D, by REML with analytic gradients (the mean of all groups is free; scales are log-normal around 1), the state's
own from the sums of its groups' answers. The posterior under Laplace noise comes from expectation propagation with the
full S_g. Every group is then tilted from the public table itself: no estimate of a parent is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from common import need_data, report, table
from intervals import ACS_STATES, World, acs
from posterior import Job
from prade.estimating.levels.group_fits import GroupAnswers, Method, fitted
from prade.estimating.levels.laplace_posterior import under_laplace_noise
from prade.estimating.posterior_mode import MAP
from prade.privacy.noise_law import GAUSSIAN
from prade.queries.parts import Part
from prade.scoring.distances import Codes, mean_distance

SPREADS = {"state": 1.5, "group": 0.7}  # standard deviations of log D; a state's answers say little about each column
UNSURE = 1.5  # standard deviation of log a and log k around their start
FITTED = 30  # groups that scales are fitted to
STEPS = 25
DAMPING, SWEEPS = 0.7, 4  # of expectation propagation
SMALLEST_SHARE = 0.1  # of the state's, that a posterior mean may have
SHOWN = 16  # groups whose two-way tables are scored


def inverse(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """The inverse of a positive definite matrix, and the logarithm of its determinant."""
    factor, failed = lapack.dpotrf(matrix, lower=1)
    assert not failed
    half = np.tril(lapack.dpotri(factor, lower=1)[0])
    return half + np.tril(half, -1).T, 2 * float(np.log(np.diag(factor)).sum())


class Scales:
    """Maximum a posteriori of log a, log k and the columns' log D, given deviations of groups from a mean."""

    def __init__(self, between: np.ndarray, within: np.ndarray, column: np.ndarray, spread: float, mean: bool) -> None:
        self.between, self.within, self.column, self.spread, self.mean = between, within, column, spread, mean

    def covariance(self, scales: np.ndarray, rate: float) -> np.ndarray:
        d = np.exp(0.5 * scales[2:])[self.column]
        return np.outer(d, d) * (np.exp(scales[0]) * self.between + (np.exp(scales[1]) + rate) * self.within)

    def fit(self, away: np.ndarray, rates: np.ndarray, noise: np.ndarray, start: tuple[float, float]) -> np.ndarray:
        """`noise` has variances [groups, cells], or one matrix for a single group."""
        first, zeros = np.log(start), np.zeros(self.column.max() + 1)
        bounds = [(-16, 8)] * 2 + [(-6, 8)] * len(zeros)
        options = {"maxiter": STEPS}
        given = (away, rates, noise, first)
        found = minimize(self._value, np.append(first, zeros), given, "L-BFGS-B", True, bounds=bounds, options=options)
        return np.asarray(found.x)

    def _value(
        self, scales: np.ndarray, away: np.ndarray, rates: np.ndarray, noise: np.ndarray, first: np.ndarray
    ) -> tuple[float, np.ndarray]:
        d = np.exp(0.5 * scales[2:])[self.column]
        b, c, k = np.exp(scales[0]) * np.outer(d, d) * self.between, np.outer(d, d) * self.within, np.exp(scales[1])
        inverted, value = [], 0.0
        for rate, variance in zip(rates, noise, strict=True):
            each, logarithm = inverse(b + (k + rate) * c + np.diag(variance))
            inverted.append(each)
            value += logarithm
        mean, left = np.zeros(len(self.column)), None
        if self.mean:
            left, logarithm = inverse(sum(inverted))
            value += logarithm
            mean = left @ sum(each @ mine for each, mine in zip(inverted, away, strict=True))
        slope, by_rate = np.zeros_like(b), np.zeros_like(b)
        for each, mine, rate in zip(inverted, away, rates, strict=True):
            pull = each @ (mine - mean)
            value += float((mine - mean) @ pull)
            this = each - np.outer(pull, pull) - (0 if left is None else each @ left @ each)
            slope, by_rate = slope + this, by_rate + rate * this
        of_b, of_c = b * slope, c * (k * slope)
        of_columns = np.bincount(self.column, (of_b + of_c + c * by_rate).sum(axis=1))
        prior = np.append((scales[:2] - first) / UNSURE, scales[2:] / self.spread)
        width = np.append(np.full(2, UNSURE), np.full(len(scales) - 2, self.spread))
        gradient = 0.5 * np.concatenate([[of_b.sum(), of_c.sum()], of_columns]) + prior / width
        return 0.5 * value + 0.5 * float(prior @ prior), gradient


def propagated(covariance: np.ndarray, away: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of u ~ N(0, S), given u + Laplace noise of these variances, by expectation propagation."""
    precision, shift = 1 / noise, away / noise
    for sweep in range(SWEEPS + 1):
        root = np.sqrt(precision)
        inner, _ = inverse(np.eye(len(away)) + root[:, None] * covariance * root)
        half = covariance * root
        posterior = covariance - half @ inner @ half.T
        mean = posterior @ shift
        if sweep < SWEEPS:
            variance, sd = np.diag(posterior), np.sqrt(noise)
            cavity = 1 / np.maximum(1 / variance - precision, 1e-12)
            middle = cavity * (mean / variance - shift)
            told, spread, _ = under_laplace_noise(cavity / noise, middle / sd, away / sd)
            new = np.maximum(1 / (spread * noise) - 1 / cavity, 1e-9 / noise)
            precision = precision + DAMPING * (new - precision)
            shift = shift + DAMPING * (told * sd / (spread * noise) - middle / cavity - shift)
    return mean, posterior


def true_counts(world: World, parts: Sequence[Part], codes: Codes) -> np.ndarray:
    """A group's rows in all cells, which a benchmark on public tables may look at."""
    cells = [(part.cells(world.schema, codes), part.n_cells) for part in parts]
    return np.concatenate([np.bincount(each, minlength=size)[:size] for each, size in cells])


def compared(world: World, epsilon: str, seed: int) -> list[list[str]]:
    """Lines of the table: the present smoothing and the candidate, at the state and at its places."""
    job = Job(world, epsilon)
    present = job.descent(seed, "laplace")
    levels = [present.groups(0, present.top)]
    levels.append(present.groups(1, present.handed_on(0, present.top)))
    state, places = levels
    layout, answers = places.layout, places.answers
    column = np.repeat(np.arange(len(answers.parts)), [part.n_cells for part in answers.parts])
    ((_, variation),) = present.cells.variations(layout, keep=True)
    prior, rows = layout.masses_of(layout.base), places.rows
    shares, noise = places.shares, places.noise**2
    together = rows / rows.sum()
    sums, of_sums = together @ shares, together**2 @ noise
    counts = np.stack([true_counts(world, answers.parts, codes) for codes in job.truth])
    truth = counts / np.maximum(counts[:, column == 0].sum(axis=1), 1)[:, None]
    of_state = counts.sum(axis=0) / counts[:, column == 0].sum()

    model = Scales(variation.between, variation.within, column, SPREADS["state"], mean=False)
    scales = model.fit((sums - prior)[None], np.array([2 / rows.sum()]), of_sums[None], (0.1, 1e-4))
    covariance = model.covariance(scales, 2 / rows.sum())
    gain = covariance @ inverse(covariance + np.diag(of_sums))[0]
    centre, unsure = prior + gain @ (sums - prior), covariance - gain @ covariance
    model = Scales(variation.between, variation.within, column, SPREADS["group"], mean=True)
    some = np.linspace(0, len(rows) - 1, min(FITTED, len(rows))).astype(int)
    scales = model.fit((shares - prior)[some], 1 / rows[some], noise[some], (0.7, 1e-4))
    means, deviations = np.empty_like(shares), np.empty_like(shares)
    for group, number in enumerate(rows):
        spread = model.covariance(scales, 1 / number) + unsure
        mean, posterior = propagated(spread, shares[group] - centre, noise[group])
        means[group] = np.maximum(centre + mean, SMALLEST_SHARE * centre)
        deviations[group] = np.sqrt(np.diag(posterior))

    assert state.smoothed is not None and places.smoothed is not None  # noqa: PT018
    shown = np.unique(np.linspace(0, len(rows) - 1, SHOWN).astype(int))
    method = Method(1, MAP(n0=10.0, tolerance=1e-3, limit=5.0, max_steps=200), GAUSSIAN)
    base = present.foundation.support.public.prior.weights

    def tilted(group: int) -> float:
        asked = GroupAnswers(int(group), float(rows[group]), means[group], deviations[group])
        return mean_distance(job.truth[group], fitted(present.foundation, method, asked, base)[0], job.pairs)

    two_way = {
        "present": [mean_distance(job.truth[g], places.estimate(int(g)).estimate, job.pairs) for g in shown],
        "candidate": [tilted(g) for g in shown],
    }
    lines = []
    for name, at_state, at_places in (
        ("present", (state.smoothed[0][0], state.smoothed[1][0]), places.smoothed),
        ("candidate", (centre, np.sqrt(np.diag(unsure))), (means, deviations)),
    ):
        line = [world.private["STATE"][0].as_py(), epsilon, name]
        for (mean, sd), right in ((at_state, of_state), (at_places, truth)):
            error = np.abs(mean - right)
            line += [
                f"{error.sum() / error.size * len(column) / len(answers.parts):.4f}",
                f"{(error < 1.96 * sd).mean():.1%}",
                f"{np.sqrt((sd**2).mean() / (error**2).mean()):.2f}",
            ]
        lines.append([*line, f"{np.mean(two_way[name]):.4f}"])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", nargs="*", default=["1"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    need_data()
    lines = []
    for world in (each for each in acs(ACS_STATES) if each.name == ACS_STATES):
        for epsilon in options.epsilons:
            lines += compared(world, epsilon, options.seed)
            print(*lines[-2:], sep="\n", flush=True)
    at = [
        f"{where}: {what}" for where in ("state", "places") for what in ("one-way error", "inside 95 %", "sd / error")
    ]
    report("one_model", table(["private state", "eps", "model", *at, "places: two-way error"], lines), {"lines": lines})


if __name__ == "__main__":
    main()
