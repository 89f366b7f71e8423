"""Priors: distinct rows with weights, from tables, estimates and domains."""

import numpy as np
import pytest

from prade import DataError, Schema
from prade.data.public.joint import Prior

SCHEMA = Schema.from_mbi({"a": 2, "b": 3})


def as_dict(joint):
    """Mass by row, whatever the order of the rows."""
    rows = zip(*(codes.tolist() for codes in joint.codes.values()), strict=True)
    return dict(zip(rows, joint.weights.tolist(), strict=True))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {(0, 2): 0.5, (1, 1): 0.25, (0, 0): 0.25}),
        ({"w": [1.0, 5.0, 2.0, 0.0]}, {(0, 2): 0.375, (1, 1): 0.625}),  # a row of weight 0 is not in the support
    ],
)
def test_rows_alike_are_one_row_with_their_weights_together(more, expected):
    table = {"a": [0, 1, 0, 0], "b": [2, 1, 2, 0], **more}
    prior = Prior.from_table(SCHEMA, table, weight="w" if more else None)
    assert as_dict(prior) == expected
    assert not prior.complete
    assert as_dict(Prior.from_table(SCHEMA, table, columns=["a"])) == pytest.approx({(0,): 0.75, (1,): 0.25})


def test_full_domain_keeps_the_distribution():
    prior = Prior.from_table(SCHEMA, {"a": [1, 1, 0], "b": [2, 1, 0], "w": [1.0, 2.0, 5.0]}, weight="w")
    full = prior.on_full_domain()
    assert full.complete
    assert len(full) == 6
    assert full.weights.tolist() == [0.625, 0.0, 0.0, 0.0, 0.25, 0.125]
    assert full.project(["b", "a"]).tolist() == prior.project(["b", "a"]).tolist()


def test_a_domain_too_large_is_refused_before_it_is_made():
    large = Schema.from_mbi({f"c{i}": 100 for i in range(20)})
    table = {f"c{i}": [0] for i in range(20)}
    for make in (lambda: Prior.uniform(large), Prior.from_table(large, table).on_full_domain):
        with pytest.raises(DataError, match=r"full domain.*fewer columns, coarser bins"):
            make()


@pytest.mark.parametrize("weights", [[1.0, -0.5], [np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [1.0, 1.0, 1.0]])
def test_bad_weights_are_refused(weights):
    codes = {"a": np.array([0, 1]), "b": np.array([0, 1])}
    with pytest.raises(DataError, match=r"not negative and not all zero|2 rows need 2 weights"):
        Prior(SCHEMA, codes, np.array(weights))


def test_no_rows_and_codes_outside_the_domain_are_refused():
    with pytest.raises(DataError, match="no rows with a weight above 0"):
        Prior.from_table(SCHEMA, {"a": np.array([], int), "b": np.array([], int)})
    with pytest.raises(DataError, match="in the range from 0 to 2"):  # or the row would land in another cell
        Prior(SCHEMA, {"a": np.array([0, 1]), "b": np.array([0, 3])}, np.array([1.0, 1.0]))
