"""The projection inside Algorithm 1: nearest in L1, and of the nearest the least KL; checked by independent means."""

import numpy as np
import pytest

from prade.estimating.paper_estimators import nearest_l1


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
