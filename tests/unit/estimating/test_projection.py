"""The projection inside Algorithm 1: nearest in L1, and of the nearest the least KL; checked by independent means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from prade.estimating.paper_estimators import nearest_l1, nearest_l2

LP = 1e-6  # the linear programme's own tolerance is 1e-7 a constraint


def smallest_distance(y, covers):
    """min |z - y|_1 over the simplex (or below it), as a linear programme."""
    n = len(y)
    identity = np.eye(n)
    above = np.hstack([identity, -identity])  # z - t <= y
    below = np.hstack([-identity, -identity])  # -z - t <= -y
    total = np.concatenate([np.ones(n), np.zeros(n)])[None, :]
    rules = {"A_eq": total, "b_eq": [1.0]} if covers else {}
    upper, bound = np.vstack([above, below]), np.concatenate([y, -y])
    if not covers:
        upper, bound = np.vstack([upper, total]), np.append(bound, 1.0)
    found = linprog(np.concatenate([np.zeros(n), np.ones(n)]), A_ub=upper, b_ub=bound, bounds=(0, None), **rules)
    assert found.status == 0
    return found.fun


def kl(z, r):
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(z > 0, z * np.log(z / r), 0.0).sum())


def by_root_finding(y, r, covers):
    """min(y+, c r) or max(y+, c r) with c from a root finder instead of a sort."""
    z = np.maximum(y, 0.0)
    if z.sum() > 1.0:
        return np.minimum(z, r * brentq(lambda c: np.minimum(z, c * r).sum() - 1.0, 0.0, 1e6, xtol=1e-15, rtol=1e-15))
    if covers:
        return np.maximum(z, r * brentq(lambda c: np.maximum(z, c * r).sum() - 1.0, 0.0, 1e6, xtol=1e-15, rtol=1e-15))
    return z


def member(z, covers, generator):
    """Another point at the smallest L1 distance: any z' <= y+ (or >= y+) with the right sum."""
    if z.sum() > 1.0:
        share = generator.dirichlet(np.ones(len(z)))
        return np.minimum(z, share * brentq(lambda c: np.minimum(z, c * share).sum() - 1.0, 0.0, 1e9))
    return z + (1.0 - z.sum()) * generator.dirichlet(np.ones(len(z))) if covers else z


answers = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-0.5, 1.5), min_size=n, max_size=n),
        st.lists(st.floats(1e-3, 1.0), min_size=n, max_size=n),
    )
)


@settings(max_examples=40)
@given(answers, st.booleans(), st.integers(0, 2**32 - 1))
def test_l1_projection_is_nearest_and_of_the_nearest_the_least_kl(problem, covers, seed):
    y, r = np.array(problem[0]), np.array(problem[1])
    r /= r.sum()
    z = nearest_l1(y, r, covers=covers)
    assert (z >= 0).all()
    assert z.sum() == pytest.approx(1.0, abs=1e-12) if covers else z.sum() <= 1.0 + 1e-12
    assert np.abs(z - y).sum() == pytest.approx(smallest_distance(y, covers), abs=LP)
    assert z == pytest.approx(by_root_finding(y, r, covers), abs=1e-10)
    generator = np.random.default_rng(seed)
    for _ in range(5):
        other = member(np.maximum(y, 0.0), covers, generator)
        assert kl(z, r) <= kl(other, r) + 1e-7


@settings(max_examples=40)
@given(answers, st.booleans())
def test_l2_projection_is_nearest_in_both_senses(problem, covers):
    y = np.array(problem[0])
    z = nearest_l2(y, np.array(problem[1]), covers=covers)
    assert (z >= 0).all()
    positive = np.maximum(y, 0.0)
    if covers or positive.sum() > 1.0:
        shift = brentq(lambda t: np.maximum(y - t, 0.0).sum() - 1.0, y.min() - 2.0, y.max(), xtol=1e-15)
        assert z == pytest.approx(np.maximum(y - shift, 0.0), abs=1e-10)
    else:
        assert z.tolist() == positive.tolist()
    # a member of the L1-nearest set too, as the docstring says
    assert np.abs(z - y).sum() == pytest.approx(smallest_distance(y, covers), abs=LP)


@pytest.mark.parametrize(
    ("y", "r", "covers", "expected"),
    [
        ([0.7, 0.7], [0.9, 0.1], True, [0.7, 0.3]),
        ([0.7, 0.7], [0.5, 0.5], True, [0.5, 0.5]),
        ([0.7, 0.7], [0.1, 0.9], True, [0.3, 0.7]),
        ([0.7, 0.7], [0.9, 0.1], False, [0.7, 0.3]),
        ([0.1, 0.1], [0.9, 0.1], True, [0.9, 0.1]),
        ([0.1, 0.4], [0.9, 0.1], True, [0.6, 0.4]),
        ([0.1, 0.4], [0.9, 0.1], False, [0.1, 0.4]),
        ([0.0, 0.0], [0.8, 0.2], True, [0.8, 0.2]),
        ([-1.0, -2.0], [0.8, 0.2], True, [0.8, 0.2]),
        ([-1.0, -2.0], [0.8, 0.2], False, [0.0, 0.0]),
        ([5.0], [1.0], True, [1.0]),
        ([-5.0], [0.3], True, [1.0]),
        ([-5.0], [0.3], False, [0.0]),
        # nothing to compare with: the answer's own proportions, or none at all
        ([2.0, 6.0], [0.0, 0.0], True, [0.25, 0.75]),
        ([0.0, 0.0], [0.0, 0.0], True, [0.5, 0.5]),
        ([0.2, 0.0], [0.0, 0.0], True, [0.6, 0.4]),
        # a cell without reference gets as little as the distance allows
        ([0.8, 0.8], [0.0, 1.0], True, [0.2, 0.8]),
        ([0.8, 1.2], [0.0, 1.0], True, [0.0, 1.0]),
        ([0.2, 0.2], [0.0, 1.0], True, [0.2, 0.8]),
    ],
)
def test_hand_worked_cases(y, r, covers, expected):
    assert nearest_l1(np.array(y), np.array(r), covers=covers) == pytest.approx(np.array(expected), abs=1e-15)


def test_a_sum_above_one_by_rounding_alone_changes_nothing():
    # shares that a calculation made: their sum is 1 up to the last digit, the reference is of all magnitudes
    generator = np.random.default_rng(3)
    for _ in range(3000):
        n = int(generator.integers(2, 12))
        y = generator.dirichlet(np.full(n, 0.3)) * (1 + 4e-16 * generator.integers(0, 3))
        y[generator.random(n) < 0.2] *= 1e-19
        y[0] += 1.0 - y.sum()
        r = generator.dirichlet(np.full(n, 0.3)) * 10.0 ** generator.integers(-30, 1, n)
        z = nearest_l1(y, r, covers=True)
        # cells without reference aside, an answer that is a distribution is its own projection
        held = (r > 0) | (y <= 0)
        if held.all() and (y >= 0).all():
            assert z == pytest.approx(y, abs=1e-12)


def test_exact_shares_are_their_own_projection():
    """Counts over their total, the most ordinary answer there is: their sum is 1 give or take the last digit."""
    generator = np.random.default_rng(3)
    for _ in range(2000):
        n = int(generator.integers(5, 40))
        counts = generator.multinomial(10_000, generator.dirichlet(np.full(n, 0.3)))
        y, r = counts / 10_000, generator.dirichlet(np.full(n, 0.3))
        for covers in (True, False):
            assert nearest_l1(y, r, covers=covers) == pytest.approx(y, abs=1e-12)


def test_the_answer_is_not_changed_in_place():
    y, r = np.array([-0.1, 0.9, 0.9]), np.array([0.2, 0.3, 0.5])
    for project in (nearest_l1, nearest_l2):
        project(y, r, covers=True)
        assert y.tolist() == [-0.1, 0.9, 0.9]
        assert r.tolist() == [0.2, 0.3, 0.5]
