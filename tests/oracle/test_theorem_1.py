"""Theorem 1: the update is the distribution of least KL with W_s q = y_s, and brings q nearer to every such one."""

import numpy as np
import pytest

from prade.estimating.paper_estimators import IDE
from worlds.reference import kl, oracle_map, random_case


def one_consistent_part(seed):
    """A random problem with answers that a distribution on the support has, sometimes with zeros; and one part."""
    print("problem number", seed)  # said where it fails
    rng = np.random.default_rng([11, seed])
    case = random_case(rng)
    z = rng.dirichlet(np.full(len(case.p), 0.6))
    if seed % 3 == 0:
        z = np.where(rng.random(len(z)) < 0.4, 0.0, z) + 1e-300
    z = z / z.sum()
    z[z < 1e-200] = 0.0
    case.counts = [case.total * matrix @ z for matrix in case.matrices]
    return case, z, rng, int(rng.integers(len(case.parts)))


def updated(case, k):
    return IDE(steps=1, order=[k]).fit(case.prior, case.measurements(), case.total).weights


def test_the_update_is_the_least_kl_distribution_with_that_answer():
    for seed in range(30):
        case, _, _, k = one_consistent_part(seed)
        q = updated(case, k)
        np.testing.assert_allclose(case.matrices[k] @ q, case.counts[k] / case.total, atol=1e-12)
        for kept in ("parts", "matrices", "counts"):
            setattr(case, kept, [getattr(case, kept)[k]])
        case.scales, case.laws = [0.0], ["laplace"]
        least, optimum = oracle_map(case, 1.0)
        assert kl(q, case.p) == pytest.approx(least, abs=1e-7)
        np.testing.assert_allclose(q, optimum, atol=1e-4)


def test_pythagoras():
    """So every step brings q nearer to any distribution that has all answers."""
    for seed in range(30):
        case, _, rng, k = one_consistent_part(seed)
        q, matrix, y = updated(case, k), case.matrices[k], case.counts[k] / case.total
        covered = matrix.sum(axis=0) > 0
        # any distribution with that answer: random weights, brought to y cell by cell
        z = rng.dirichlet(np.ones(len(q)))
        z[covered] *= ((y / np.where(matrix @ z > 0, matrix @ z, 1.0)) @ matrix)[covered]
        if not covered.all():
            z[~covered] *= max(1 - y.sum(), 0.0) / z[~covered].sum()
        np.testing.assert_allclose(matrix @ z, y, atol=1e-12)
        assert kl(z, case.p) == pytest.approx(kl(z, q) + kl(q, case.p), rel=1e-9, abs=1e-10)
