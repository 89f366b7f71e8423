"""Random numbers of rows: uniform, apart from each other, and the same whatever else is drawn."""

import numpy as np
from scipy import stats

from prade.core.arrays import Chances

FALSE_ALARM = 1e-6  # of each test below; seeds are fixed, so they fail always or never


def test_a_row_has_its_numbers_whichever_groups_are_drawn_with_it():
    together = Chances.of_groups(5, [0, 3, 4], [10, 20, 30])
    alone = Chances.of_groups(5, [3], [20])
    rows = np.arange(20)
    assert np.array_equal(together.uniform("x", 10 + rows), alone.uniform("x", rows))
    some = np.array([17, 2, 9])
    assert np.array_equal(alone.uniform("x", some), alone.uniform("x", rows)[some])


def test_other_seeds_groups_and_purposes_have_other_numbers():
    rows = np.arange(1000)
    numbers = [
        Chances.of_groups(seed, [group], [1000]).uniform(what, rows)
        for seed in (0, 1, 2**40)
        for group in (0, 1)
        for what in ("a", "b")
    ]
    for k, one in enumerate(numbers):
        for other in numbers[:k]:
            assert abs(np.corrcoef(one, other)[0, 1]) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(1000)


def test_numbers_are_uniform_and_do_not_follow_each_other():
    numbers = Chances.of_groups(0, [0], [50_000]).uniform("x", np.arange(50_000))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers, "uniform").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(50_000)
