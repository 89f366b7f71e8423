"""The projection inside Algorithm 1: nearest in L1, and of the nearest the least KL; checked by independent means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from prade.estimating.paper_estimators import nearest_l1, nearest_l2
from worlds.reference import PROJECTIONS

LP = 1e-6  # the linear programme's own tolerance is 1e-7 a constraint


def smallest_distance(y, covers):
    """min |z - y|_1 over the simplex (or below it), as a linear programme."""
    n, total = len(y), np.r_[np.ones(len(y)), np.zeros(len(y))][None]
    sides = np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)]])
    rules = {"A_ub": sides, "b_ub": np.r_[y, -y], "A_eq": total, "b_eq": [1.0]}
    if not covers:
        rules = {"A_ub": np.vstack([sides, total]), "b_ub": np.r_[y, -y, 1.0]}
    optimum = linprog(np.r_[np.zeros(n), np.ones(n)], bounds=(0, None), **rules)
    assert optimum.status == 0
    return optimum.fun


def kl(z, r):
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(z > 0, z * np.log(z / r), 0.0).sum())


def member(z, covers, generator):
    """Another point at the smallest L1 distance: any z' <= y+ (or >= y+) with the right sum."""
    share = generator.dirichlet(np.ones(len(z)))
    if z.sum() > 1.0:
        return np.minimum(z, share * brentq(lambda c: np.minimum(z, c * share).sum() - 1.0, 0.0, 1e9))
    return z + (1.0 - z.sum()) * share if covers else z


answers = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-0.5, 1.5), min_size=n, max_size=n),
        st.lists(st.floats(1e-3, 1.0), min_size=n, max_size=n),
    )
)


@settings(max_examples=40)
@given(answers, st.booleans(), st.integers(0, 2**32 - 1))
def test_l1_projection_is_nearest_and_of_the_nearest_the_least_kl(problem, covers, seed):
    y, r = np.array(problem[0]), np.array(problem[1]) / sum(problem[1])
    least, squares = nearest_l1(y, r, covers=covers), nearest_l2(y, r, covers=covers)
    for z, name in ((least, "least-kl"), (squares, "euclidean")):
        assert (z >= 0).all()
        assert z.sum() == pytest.approx(1.0, abs=1e-12) if covers else z.sum() <= 1.0 + 1e-12
        assert np.abs(z - y).sum() == pytest.approx(smallest_distance(y, covers), abs=LP)
        assert z == pytest.approx(PROJECTIONS[name](y, r, covers), abs=1e-9)  # by bisection instead of a sort
    generator = np.random.default_rng(seed)
    for _ in range(5):
        assert kl(least, r) <= kl(member(np.maximum(y, 0.0), covers, generator), r) + 1e-7


@pytest.mark.parametrize(
    ("y", "r", "covers", "expected"),
    [
        ([0.7, 0.7], [0.9, 0.1], True, [0.7, 0.3]),
        ([0.7, 0.7], [0.5, 0.5], True, [0.5, 0.5]),
        ([0.7, 0.7], [0.9, 0.1], False, [0.7, 0.3]),
        ([0.1, 0.4], [0.9, 0.1], True, [0.6, 0.4]),
        ([0.1, 0.4], [0.9, 0.1], False, [0.1, 0.4]),
        ([-1.0, -2.0], [0.8, 0.2], True, [0.8, 0.2]),
        ([-1.0, -2.0], [0.8, 0.2], False, [0.0, 0.0]),
        ([5.0], [1.0], True, [1.0]),
        ([-5.0], [0.3], True, [1.0]),
        # nothing to compare with: the answer's own proportions, or none at all
        ([2.0, 6.0], [0.0, 0.0], True, [0.25, 0.75]),
        ([0.2, 0.0], [0.0, 0.0], True, [0.6, 0.4]),
        # a cell without reference gets as little as the distance allows
        ([0.8, 0.8], [0.0, 1.0], True, [0.2, 0.8]),
        ([0.8, 1.2], [0.0, 1.0], True, [0.0, 1.0]),
        ([0.2, 0.2], [0.0, 1.0], True, [0.2, 0.8]),
    ],
)
def test_hand_worked_cases(y, r, covers, expected):
    given_y, given_r = np.array(y), np.array(r)
    assert nearest_l1(given_y, given_r, covers=covers) == pytest.approx(np.array(expected), abs=1e-15)
    assert (given_y.tolist(), given_r.tolist()) == (y, r)  # not changed in place


def test_shares_are_their_own_projection_though_rounding_moves_their_sum():
    """Counts over their total, the most ordinary answer there is, and a reference of all magnitudes."""
    generator = np.random.default_rng(3)
    for _ in range(3000):
        n = int(generator.integers(2, 40))
        y = generator.multinomial(10_000, generator.dirichlet(np.full(n, 0.3))) / 10_000
        y = y * (1 + 4e-16 * generator.integers(0, 3))
        r = generator.dirichlet(np.full(n, 0.3)) * 10.0 ** generator.integers(-30, 1, n)
        if ((r > 0) | (y <= 0)).all():
            for covers in (True, False):
                assert nearest_l1(y, r, covers=covers) == pytest.approx(y, abs=1e-12)
