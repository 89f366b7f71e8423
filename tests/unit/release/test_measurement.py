"""Measurements: noisy answers as checked values."""

import numpy as np
import pytest

from prade import EstimationError, Schema
from prade.privacy.noise_law import LAPLACE
from prade.queries.parts import Marginal
from prade.release.release import Measurement

PART = Marginal.of(Schema.from_mbi({"a": 3, "b": 2}), ["a"])
SEVERAL = Schema.from_mbi({"sex": 2, "age": 3})
PARTS = [Marginal.of(SEVERAL, [name]) for name in ("sex", "age")]


def test_counts_and_scales_are_copied_as_floats():
    counts, scale = np.array([1.0, -2.0, 3.0]), np.array([0.0, 1.0, 2.0])
    measured = Measurement(PART, counts, scale, "gaussian")
    counts[0], scale[0] = np.nan, -1.0
    assert (measured.counts.tolist(), measured.scale.tolist()) == ([1.0, -2.0, 3.0], [0.0, 1.0, 2.0])
    measured = Measurement(PART, [1, -2, 3], 2)
    assert measured.counts.dtype == np.float64
    assert (measured.scale.tolist(), measured.law) == ([2.0, 2.0, 2.0], "laplace")
    with pytest.raises(AttributeError):
        measured.counts = np.zeros(3)


def test_variance_by_law():
    assert Measurement(PART, [0, 0, 0], [0, 1, 3]).variance.tolist() == [0.0, 2.0, 18.0]
    assert Measurement(PART, [0, 0, 0], [0, 1, 3], "gaussian").variance.tolist() == [0.0, 1.0, 9.0]


def test_several_parts_are_measured_as_each_alone():
    counts, scales = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 1.0, 2.0, 2.0, 0.0])
    for each, cells in zip(Measurement.of_parts(PARTS, counts, scales, LAPLACE), ([0, 1], [2, 3, 4]), strict=True):
        alone = Measurement(each.part, counts[cells], scales[cells], "laplace")
        assert np.array_equal(each.counts, alone.counts)
        assert np.array_equal(each.variance, alone.variance)
        assert each.law == alone.law
    assert Measurement.of_parts([], np.zeros(0), np.zeros(0), LAPLACE) == []


SHAPES, NUMBERS = "counts have shape", "every count must be a number, and every scale a number that is not negative"


@pytest.mark.parametrize(
    ("counts", "scale", "law", "words"),
    [
        ([1, 2], 1.0, "laplace", SHAPES),
        ([[1, 2, 3]], 1.0, "laplace", SHAPES),
        (5.0, 1.0, "laplace", SHAPES),
        ([1, 2, 3], [1.0, 1.0], "laplace", SHAPES),
        ([1, np.nan, 3], 1.0, "laplace", NUMBERS),
        ([1, 2, -np.inf], 1.0, "gaussian", NUMBERS),
        ([1, 2, 3], [1.0, 0.0, -1e-9], "laplace", NUMBERS),
        ([1, 2, 3], np.nan, "laplace", NUMBERS),
        ([1, 2, 3], np.inf, "gaussian", NUMBERS),
        ([1, 2, 3], 1.0, "Laplace", "'Laplace'; it is 'laplace' or 'gaussian'"),
    ],
)
def test_what_is_refused(counts, scale, law, words):
    with pytest.raises(EstimationError, match=f"^a: .*{words}"):
        Measurement(PART, counts, scale, law)
    if (np.shape(counts) == (3,) and np.shape(scale) != () and words == NUMBERS) or np.shape(counts) == (2,):
        with pytest.raises(EstimationError, match=words):
            Measurement.of_parts([PART], np.array(counts, float), np.broadcast_to(scale, 3), LAPLACE)
