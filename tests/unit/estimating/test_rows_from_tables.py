"""Numbers of rows from all answers: against dense least squares, and in simulated groups with a right and a wrong S.

Simulations have fixed seeds, and their limits are at least four standard errors from what is expected.
"""

import numpy as np
import pytest

from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.level_smoothing import LevelSmoothing, RowsFromTables, joined_with_counted
from prade.estimating.levels.smoothing import Smoother

SHARES = np.array([0.9, 0.06, 0.04])  # of one table: nearly everybody is in its first cell
ROWS = 1_000.0


def covariance(spread):
    """S of shares that add up to one."""
    away = np.eye(3) - SHARES[:, None]
    return spread**2 * away @ np.diag(SHARES) @ away.T


def smoothing_of(s, shares, noise):
    """As fitted, with this S."""
    root = np.exp(np.mean(np.log(noise), axis=0))
    values, directions = np.linalg.eigh(s / np.outer(root, root))
    smoother = Smoother(root, directions, np.maximum(values, 0.0), 1.0, 1.0, 0.0, np.zeros(3), 1.0, 1.0)
    recurs, prior = np.zeros(len(shares), np.bool_), np.tile(SHARES, (len(shares), 1))
    return LevelSmoothing(shares, prior, noise, recurs, {False: [(slice(0, 3), smoother)]})


def drawn(groups, spread, seed, *, counted=60.0, noise=40.0):
    """Groups of 1,000 rows: their noisy counts of one table, and noisy numbers of rows with this deviation."""
    generator = np.random.default_rng(seed)
    away = generator.multivariate_normal(np.zeros(3), covariance(spread), groups, method="svd")
    counts = ROWS * (SHARES + away) + generator.laplace(scale=noise / np.sqrt(2), size=(groups, 3))
    sums, of_sums = counts.sum(axis=1), np.full(groups, 3 * noise**2)
    if counted is None:
        return RawAnswers((), [counts], np.full((groups, 1), noise**2), sums, of_sums)
    t = ROWS + generator.laplace(scale=counted / np.sqrt(2), size=groups)
    both = 1 / of_sums + 1 / counted**2
    totals = (sums / of_sums + t / counted**2) / both
    variance = np.full((groups, 1), noise**2)
    return RawAnswers((), [counts], variance, totals, 1 / both, None, t, np.full(groups, counted**2), True)


def found(answers, spread):
    """With the S of this spread."""
    counts = answers.counts[0]
    noise = np.full(counts.shape, np.sqrt(answers.variance[0, 0]) / ROWS)
    rows = np.full(len(counts), ROWS)
    return RowsFromTables.of(answers, smoothing_of(covariance(spread), counts / ROWS, noise), rows)


@pytest.mark.parametrize("true_spread", [0.05, 0.15, 0.6])
def test_errors_are_as_large_as_they_are_said_to_be_even_if_s_is_wrong(true_spread):
    """S says 0.05 in every case. The true spread moves numbers back to the sums, and widens the error bars."""
    answers = drawn(4_000, true_spread, 3)
    joined = found(answers, 0.05).joined(answers)
    off = joined.totals - ROWS
    assert np.mean(off**2) == pytest.approx(joined.total_variance.mean(), rel=0.12)
    assert np.mean(np.abs(off) < 1.96 * np.sqrt(joined.total_variance)) == pytest.approx(0.95, abs=0.02)
    assert np.mean(off**2) < 1.02 * np.mean((answers.totals - ROWS) ** 2)  # never worse than noise alone


def test_laplace_noise_is_believed_less_the_further_it_is_away():
    """Against the posterior mean on a grid."""
    tables, counted, variance, noise = 100.0, np.array([90.0, 104.0, 160.0]), 15.0**2, 20.0**2
    rows, left = joined_with_counted(np.full(3, tables), np.full(3, variance), counted, np.full(3, noise), laplace=True)
    grid = np.linspace(-300, 500, 400_001)
    for k, y in enumerate(counted):
        density = np.exp(-((grid - tables) ** 2) / (2 * variance) - np.abs(grid - y) / np.sqrt(noise / 2))
        mean = np.average(grid, weights=density)
        assert rows[k] == pytest.approx(mean, abs=1e-4)
        assert left[k] == pytest.approx(np.average((grid - mean) ** 2, weights=density), rel=1e-4)


@pytest.mark.parametrize("counted", [60.0, None])
def test_what_all_groups_differ_by_does_not_move_their_sum(counted):
    """Five hundredths of all rows are in the second cell instead of the first: the prior is wrong everywhere alike."""
    answers = drawn(2_000, 0.05, 7, counted=counted)
    answers.counts[0][:] += ROWS * np.array([-0.05, 0.05, 0.0])
    joined = found(answers, 0.05).joined(answers)
    assert abs(np.mean(joined.totals) - ROWS) < 4 * 40 * np.sqrt(3 / 2_000)  # as precise as sums of tables
    off = joined.totals - ROWS
    assert np.mean(off**2) == pytest.approx(joined.total_variance.mean(), rel=0.15)
    assert np.mean(off**2) < 1.02 * np.mean((answers.totals - ROWS) ** 2)
