"""Measurements: noisy answers as checked values."""

import numpy as np
import pytest

from prade import EstimationError, Schema
from prade.privacy.noise_law import LAPLACE
from prade.queries.parts import Marginal
from prade.release.release import Measurement

PART = Marginal.of(Schema.from_mbi({"a": 3, "b": 2}), ["a"])


def test_counts_and_scale_are_kept_as_floats():
    measured = Measurement(PART, [1, -2, 3], 2)
    assert measured.counts.tolist() == [1.0, -2.0, 3.0]
    assert measured.counts.dtype == np.float64
    assert measured.scale.tolist() == [2.0, 2.0, 2.0]
    assert measured.law == "laplace"


def test_one_scale_a_cell():
    assert Measurement(PART, [1, 2, 3], [0.0, 1.0, 2.0], "gaussian").scale.tolist() == [0.0, 1.0, 2.0]


def test_variance_by_law():
    assert Measurement(PART, [0, 0, 0], [0, 1, 3]).variance.tolist() == [0.0, 2.0, 18.0]
    assert Measurement(PART, [0, 0, 0], [0, 1, 3], "gaussian").variance.tolist() == [0.0, 1.0, 9.0]


def test_later_changes_of_the_given_arrays_do_not_reach_the_measurement():
    counts, scale = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0])
    measured = Measurement(PART, counts, scale)
    counts[0], scale[0] = np.nan, -1.0
    assert measured.counts[0] == 1.0
    assert measured.scale[0] == 1.0


def test_it_does_not_change():
    with pytest.raises(AttributeError):
        Measurement(PART, [1, 2, 3], 1.0).counts = np.zeros(3)


@pytest.mark.parametrize(
    ("counts", "scale", "law", "words"),
    [
        ([1, 2], 1.0, "laplace", ["3 counts", "shape (2,)"]),
        ([[1, 2, 3]], 1.0, "laplace", ["3 counts", "(1, 3)"]),
        (5.0, 1.0, "laplace", ["3 counts"]),
        ([1, np.nan, 3], 1.0, "laplace", ["NaN or infinity"]),
        ([1, np.inf, 3], 1.0, "laplace", ["NaN or infinity"]),
        ([1, 2, -np.inf], 1.0, "gaussian", ["NaN or infinity"]),
        ([1, 2, 3], [1.0, 1.0], "laplace", ["scale", "one number or one", "(2,)"]),
        ([1, 2, 3], -1.0, "laplace", ["scale", "not negative"]),
        ([1, 2, 3], [1.0, 0.0, -1e-9], "laplace", ["scale", "not negative"]),
        ([1, 2, 3], np.nan, "laplace", ["scale", "finite"]),
        ([1, 2, 3], np.inf, "gaussian", ["scale", "finite"]),
        ([1, 2, 3], 1.0, "normal", ["'normal'", "'laplace' or 'gaussian'"]),
        ([1, 2, 3], 1.0, "Laplace", ["'Laplace'", "'laplace' or 'gaussian'"]),
    ],
)
def test_refusals_name_the_part_and_say_what_was_expected(counts, scale, law, words):
    with pytest.raises(EstimationError) as refused:
        Measurement(PART, counts, scale, law)
    for word in ["a:", *words]:
        assert word in str(refused.value)


# ---------------------------------------------------------------------- several parts at once

SEVERAL = Schema.from_mbi({"sex": 2, "age": 3})
PARTS = [Marginal.of(SEVERAL, [name]) for name in ("sex", "age")]


def test_several_parts_are_measured_as_each_alone():
    counts, scales = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 1.0, 2.0, 2.0, 0.0])
    for made, cells in zip(Measurement.of_parts(PARTS, counts, scales, LAPLACE), ([0, 1], [2, 3, 4]), strict=True):
        alone = Measurement(made.part, counts[cells], scales[cells], "laplace")
        assert np.array_equal(made.counts, alone.counts)
        assert np.array_equal(made.variance, alone.variance)
        assert made.law == alone.law
    assert Measurement.of_parts([], np.zeros(0), np.zeros(0), LAPLACE) == []


@pytest.mark.parametrize(
    ("counts", "scales", "words"),
    [
        (np.zeros(4), np.ones(5), r"expected 5 counts and scales.*shape \(4,\)"),
        (np.zeros(5), np.ones(1), r"scales of shape \(1,\)"),
        (np.array([0, 0, 0, 0, np.nan]), np.ones(5), "every count must be a number"),
        (np.zeros(5), np.array([1, 1, 1, 1, np.inf]), "every scale a number"),
        (np.zeros(5), np.array([1, 1, 1, 1, -1.0]), "not negative"),
    ],
)
def test_what_does_not_fit_all_parts_is_refused(counts, scales, words):
    with pytest.raises(EstimationError, match=words):
        Measurement.of_parts(PARTS, counts, scales, LAPLACE)
