"""Expected errors: unknown where a group may have no rows, and never above what a distance can be."""

import math

import numpy as np
import pytest

from prade.estimating.levels.cell_counts import NINETY_FIVE
from prade.reporting.facts import Precision, View


def precision(totals, total_sd, sd, shares):
    """Two columns, of two cells and of three."""
    totals, groups = np.array(totals), len(totals)
    series = {"estimate": np.array(shares)}
    labels = [f"group {g}" for g in range(groups)]
    view = View(*("PLACE", ("PLACE",), labels, np.arange(groups), None, totals, np.array(total_sd), series))
    return Precision(view, (0, 2, 5), np.array(sd))


def of_totals(totals, total_sd):
    groups = len(totals)
    return precision(totals, total_sd, [[0.01] * 2 + [0.02] * 3] * groups, [[0.5, 0.5, 0.5, 0.46, 0.04]] * groups)


def test_groups_that_may_have_no_rows_have_no_expected_error():
    """No rows at all, and fewer than two standard deviations of their number."""
    found = of_totals([0.0, 0.0, 19.9, 20.0, 5.0], [0.0, 10.0, 10.0, 10.0, 0.0])
    assert np.isnan(found.errors).all(axis=1).tolist() == [True, True, True, False, False]
    assert found.error(0) == pytest.approx(0.02 * math.sqrt(2 / math.pi))
    assert of_totals([0.0], [0.0]).error(0) is None


def test_a_columns_reach_is_that_of_its_common_values():
    """Shares of 0.5 with a deviation of 0.01 reach z * 0.01 / 0.5; the value of 4 % of the rows does not count."""
    found = of_totals([1000.0], [0.0])
    assert found.relative(0) == pytest.approx(NINETY_FIVE * 0.01 / 0.5, rel=1e-3)
    assert found.relative(1) == pytest.approx(NINETY_FIVE * (0.02 / 0.5 + 0.02 / 0.46) / 2, rel=1e-3)
    assert of_totals([0.0], [0.0]).relative(0) is None
