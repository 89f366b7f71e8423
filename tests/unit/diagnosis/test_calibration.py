"""The family's chances: ranks among draws, gamma tails, and limits that invert them."""

import numpy as np
import pytest

from prade.diagnosis.null import Moments, Tail


def test_gamma_variables_have_their_own_tails():
    generator = np.random.default_rng(1)
    moments = Moments()
    for _ in range(4_000):
        moments.add([generator.gamma([[2.0, 9.0]], 3.0)])
    (tail,) = moments.tails()
    assert tail.mean[0] == pytest.approx([6, 27], rel=0.05)
    assert tail.chances(np.array([[18.0, 60.0]]))[0] == pytest.approx([2 * 0.01735, 2 * 0.00209], rel=0.3)


def test_limits_are_the_statistics_of_a_chance():
    tail = Tail(np.array([[2.0, 5.0], [1.0, 30.0]]), np.array([[3.0, 1.0], [2.0, 7.0]]))
    assert tail.chances(tail.limits(0.01)) == pytest.approx(np.full((2, 2), 0.01))
    without_noise = Tail.of(np.zeros((2, 2)), np.zeros((2, 2)), 2)
    assert (without_noise.chances(np.zeros((2, 2))) >= 1).all()
