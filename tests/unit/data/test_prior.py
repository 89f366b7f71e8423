"""Priors: distinct rows with weights, from tables, mixtures, estimates and domains."""

import numpy as np
import pytest

from prade import DataError, PradeError, Schema
from prade.core.arrays import distinct_rows
from prade.data.public.joint import Coded, Prior, encode
from prade.estimating.posterior_mode import MAP
from prade.queries.parts import Marginal
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 2, "b": 3})


def as_dict(joint) -> dict[tuple[int, ...], float]:
    """Mass by row, whatever the order of the rows."""
    rows = zip(*(codes.tolist() for codes in joint.codes.values()), strict=True)
    return dict(zip(rows, joint.weights.tolist(), strict=True))


def test_rows_alike_are_one_row_with_their_weights_together():
    prior = Prior.from_table(SCHEMA, {"a": [0, 1, 0, 0], "b": [2, 1, 2, 0]})
    assert as_dict(prior) == {(0, 2): 0.5, (1, 1): 0.25, (0, 0): 0.25}
    assert not prior.complete


def test_survey_weights():
    prior = Prior.from_table(SCHEMA, {"a": [0, 1, 0], "b": [2, 1, 2], "w": [1.0, 5.0, 2.0]}, weight="w")
    assert as_dict(prior) == {(0, 2): 0.375, (1, 1): 0.625}


def test_rows_of_weight_zero_are_not_in_the_support():
    prior = Prior.from_table(SCHEMA, {"a": [0, 1, 0], "b": [2, 1, 0], "w": [1.0, 0.0, 3.0]}, weight="w")
    assert as_dict(prior) == {(0, 2): 0.25, (0, 0): 0.75}


def test_chosen_columns_only():
    prior = Prior.from_table(SCHEMA, {"a": [0, 1, 0], "b": [2, 1, 0]}, columns=["a"])
    assert prior.columns == ("a",)
    assert as_dict(prior) == pytest.approx({(0,): 2 / 3, (1,): 1 / 3})


def test_mixture_weighs_the_sources_not_their_rows():
    small = encode(SCHEMA, {"a": [0], "b": [0]})
    large = encode(SCHEMA, {"a": [0, 1, 1, 1], "b": [0, 1, 1, 2]})
    assert as_dict(Prior.from_joint(small, large)) == pytest.approx({(0, 0): 0.625, (1, 1): 0.25, (1, 2): 0.125})
    mixed = Prior.from_joint(small, large, mixing=[3, 1])
    assert as_dict(mixed) == pytest.approx({(0, 0): 0.75 + 0.0625, (1, 1): 0.125, (1, 2): 0.0625})
    assert as_dict(Prior.from_joint(small, large, mixing=[0, 1])) == pytest.approx(as_dict(Prior.from_joint(large)))


def test_mixture_of_different_code_widths():
    # the same schema may arrive in codes of any unsigned width
    narrow = Coded(SCHEMA, {"a": np.array([0, 1], np.uint8), "b": np.array([0, 2], np.uint8)})
    wide = Prior(SCHEMA, {"a": np.array([1], np.uint64), "b": np.array([2], np.uint32)}, np.array([1.0]))
    assert as_dict(Prior.from_joint(narrow, wide)) == pytest.approx({(0, 0): 0.25, (1, 2): 0.75})


def test_prior_from_an_earlier_estimate():
    prior = Prior.uniform(SCHEMA)
    measured = Measurement(Marginal.of(SCHEMA, ["a"]), [25.0, 75.0], 0.0)
    estimate = MAP(n0=1.0).fit(prior, [measured], 100)
    again = Prior.from_joint(estimate)
    assert again.project(["a"]) == pytest.approx(np.array([0.25, 0.75]))
    assert as_dict(again) == pytest.approx(as_dict(estimate))


def test_uniform_is_the_whole_domain_in_order():
    prior = Prior.uniform(SCHEMA)
    assert prior.complete
    assert prior.codes["a"].tolist() == [0, 0, 0, 1, 1, 1]
    assert prior.codes["b"].tolist() == [0, 1, 2, 0, 1, 2]
    assert prior.weights == pytest.approx(np.full(6, 1 / 6), rel=1e-15)
    assert Prior.uniform(SCHEMA, ["b"]).columns == ("b",)


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


@pytest.mark.parametrize("weights", [[1.0, -0.5], [np.nan, 1.0], [np.inf, 1.0]])
def test_bad_weights_are_refused(weights):
    codes = {"a": np.array([0, 1]), "b": np.array([0, 1])}
    with pytest.raises(DataError, match="finite and not negative"):
        Prior(SCHEMA, codes, np.array(weights))
    with pytest.raises(DataError, match=r"not negative|finite"):
        Prior.from_table(SCHEMA, {"a": [0, 1], "b": [0, 1], "w": weights}, weight="w")


def test_no_mass_is_refused():
    with pytest.raises(DataError, match="weights are all zero"):
        Prior(SCHEMA, {"a": np.array([0]), "b": np.array([0])}, np.array([0.0]))
    with pytest.raises(DataError, match="no rows with a weight above 0"):
        Prior.from_table(SCHEMA, {"a": np.array([], int), "b": np.array([], int)})


def test_weights_of_another_length_are_refused():
    codes = {"a": np.array([0, 1]), "b": np.array([0, 1])}
    with pytest.raises(PradeError):
        Prior(SCHEMA, codes, np.array([1.0, 1.0, 1.0]))


def test_codes_outside_the_domain_are_refused():
    # otherwise the row lands in another cell of the mixed radix, or in an error of numpy's
    with pytest.raises(PradeError):
        Prior(SCHEMA, {"a": np.array([0, 1]), "b": np.array([0, 3])}, np.array([1.0, 1.0]))


@pytest.mark.parametrize("mixing", [[1.0], [1.0, 2.0, 3.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_bad_mixing_is_refused(mixing):
    source = encode(SCHEMA, {"a": [0], "b": [0]})
    with pytest.raises(DataError, match="a weight for each of the 2 sources, not negative"):
        Prior.from_joint(source, source, mixing=mixing)


def test_sources_must_agree():
    with pytest.raises(DataError, match="at least one"):
        Prior.from_joint()
    here = encode(SCHEMA, {"a": [0], "b": [0]})
    other = Schema.from_mbi({"a": 2, "b": 4})
    with pytest.raises(DataError, match="same schema and columns"):
        Prior.from_joint(here, encode(other, {"a": [0], "b": [0]}))
    with pytest.raises(DataError, match="same schema and columns"):
        Prior.from_joint(here, encode(SCHEMA, {"a": [0], "b": [0]}, columns=["a"]))


def test_prior_of_a_large_table_is_exact():
    generator = np.random.default_rng(7)
    codes = {"a": generator.integers(0, 2, 5000), "b": generator.integers(0, 3, 5000)}
    prior = Prior.from_table(SCHEMA, codes)
    first, _ = distinct_rows(list(codes.values()))
    assert len(prior) == len(first) == 6
    counted = np.zeros((2, 3))
    np.add.at(counted, (codes["a"], codes["b"]), 1 / 5000)
    assert prior.project(["a", "b"]) == pytest.approx(counted, abs=1e-14)


def test_repr_says_what_it_is():
    assert "6 rows of the full domain" in repr(Prior.uniform(SCHEMA))
    assert "1 rows of the support" in repr(Prior.from_table(SCHEMA, {"a": [0], "b": [0]}))
