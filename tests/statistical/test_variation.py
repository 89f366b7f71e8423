"""How public groups differ, on simulated groups: the variation is found beyond what sampling alone would cause."""

import numpy as np

from prade.estimating.levels.variation import VariationOfCells

CELLS = 6


def variation_of(generator, groups, rows):
    """That of groups whose shares differ in two directions, and the true covariance of those differences."""
    directions = np.array([[3, -1, -1, -1, 0, 0], [0, 1, 1, -1, -0.5, -0.5]]) * 0.01
    shares = np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05]) + generator.normal(size=(groups, 2)) @ directions
    group = np.repeat(np.arange(groups), rows)
    cells = np.concatenate([generator.choice(CELLS, rows, p=each) for each in shares])
    return VariationOfCells([cells], [CELLS], group, groups, np.ones(len(group))).variation, directions.T @ directions


def distance(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def test_between_is_recovered_as_groups_grow():
    """The mean of 20 worlds of 100 groups of 400 rows is within 25 % of the truth, a world of 6,000 of 50 too.

    Sampling alone gives the first cell's share a variance of 0.21 / 50 = 0.0042 (0.0005 with 400 rows), where the truth
    between groups is 0.0009: uncorrected, the estimate would be far too large. Its standard error in a world of G
    groups is 0.0051 sqrt(2 / G) (0.0014), that is 4 % and 10 % of the truth in these two, and as much again for the
    other cells; cutting off negative eigenvalues adds a bias upwards.
    """
    generator = np.random.default_rng(0)
    few = [variation_of(generator, 100, 400)[0] for _ in range(20)]
    many, between = variation_of(generator, 6000, 50)
    assert distance(np.mean([variation.between for variation in few], axis=0), between) < 0.25
    assert distance(many.between, between) < 0.25
    assert distance(np.mean([variation.between + variation.within / 400 for variation in few], axis=0), between) > 0.5
    assert distance(many.between + many.within / 50, between) > 4
