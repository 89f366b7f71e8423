"""The family's chances: ranks among draws, gamma tails, and limits that invert them."""

import numpy as np
import pytest

from prade.diagnosis.null import Moments, Tail, of_the_family, smallest


def test_a_family_of_draws_has_as_many_alarms_as_its_rate():
    """Whatever the law of the statistics: of 2,000 families, 5 % have a chance of 5 % or less (within 3 errors)."""
    generator = np.random.default_rng(0)
    moments = Moments()
    for _ in range(100):
        moments.add([generator.standard_cauchy((5, 3)) ** 2])
    tails = moments.tails()
    drawn = np.array([smallest(tails, [generator.standard_cauchy((5, 3)) ** 2]) for _ in range(2_099)])
    alarms = np.mean([of_the_family(np.array([each]), drawn[2_000:])[0] <= 0.05 for each in drawn[:2_000]])
    assert alarms == pytest.approx(0.05, abs=3 * 0.025)  # the 99 draws are the same for all families


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
