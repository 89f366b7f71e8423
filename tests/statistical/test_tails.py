"""The noise reaches as far as its law says: noise that is cut off anywhere breaks pure differential privacy.

Two kinds of evidence. How often noise falls beyond some scales is counted, with a false alarm once in a million runs of
this file (`FALSE_ALARM`, shared out among the checks); noise cut off at that many scales, by clipping or by drawing
again, never falls beyond them and is noticed for certain, because none beyond them is never within the bounds.

    law        beyond          expected, at least
    Laplace    6 scales        23
    Laplace    8 scales        31
    Gaussian   3 deviations    21
    Gaussian   3.5 deviations  22

Beyond 12 scales are 6 of a million draws, and beyond 20 two of a billion: too rare to be counted here. So the second
kind: whatever OpenDP's exact sampler returns is what comes out, also at 12, 20 and 40 scales and at the ends of 64
bits, and OpenDP is asked for the declared law at the declared scale and nothing else.
"""

import math
from fractions import Fraction

import numpy as np
import opendp.measurements
import opendp.prelude as dp
import pyarrow as pa
import pytest
from scipy import stats

from prade import Column, Schema, Workload
from prade.measuring.noise import add_noise
from prade.measuring.run import measure
from prade.planning.questions import Level
from prade.release.release import Release
from worlds.chance import masses
from worlds.plans import ledger_for, plan_of

FALSE_ALARM = 1e-6
CASES = [
    ("laplace", Fraction(1, 2), [6], 40_000),
    ("laplace", Fraction(7), [6, 8], 100_000),
    ("laplace", Fraction(5000), [6], 40_000),
    ("gaussian", Fraction(3, 4), [3], 60_000),
    ("gaussian", Fraction(40), [3, Fraction(7, 2)], 50_000),
]
ALPHA = FALSE_ALARM / sum(len(case[2]) for case in CASES)


def bounds(chance, draws):
    """Between which the number of draws beyond lies, but for a false alarm."""
    number = stats.binom(draws, chance)
    return int(number.ppf(ALPHA / 2)), int(number.isf(ALPHA / 2))


@pytest.mark.parametrize(("law", "scale", "scales", "draws"), CASES, ids=str)
def test_noise_falls_beyond_as_often_as_it_should(law, scale, scales, draws):
    noise = np.abs(add_noise(np.zeros(draws, int), law, scale))
    values, mass = masses(law, scale)
    for number in scales:
        least = math.floor(number * scale) + 1  # noise that is cut off at this many scales is never there
        low, high = bounds(float(mass[np.abs(values) >= least].sum()), draws)
        assert low >= 1, "too few draws: noise that is cut off would pass"
        assert low <= (noise >= least).sum() <= high, number


ENDS = [2**63 - 1, -(2**63), 2**62, -(2**62) - 1]


def far_out(scale):
    """Values that the exact law has, 6 to 40 scales out and at the ends of 64 bits."""
    out = [math.ceil(number * scale) + step for number in (6, 12, 20, 40) for step in (0, 1)]
    return [0, *out, *(-each for each in out), *ENDS]


class Sampler:
    """In OpenDP's place: it keeps what it was asked and returns what it was told to."""

    def __init__(self, answers, kind, asked):
        self.answers, self.kind, self.asked = answers, kind, asked

    def __call__(self, domain, metric, *more, scale):
        self.asked.append((self.kind, str(domain), str(metric), scale))
        return lambda counts: [self.answers[place % len(self.answers)] for place, _ in enumerate(counts)]


@pytest.fixture
def samplers(monkeypatch):
    """Put samplers with these answers into OpenDP's place; the list of what they are asked for."""

    def replace(answers):
        asked = []
        for kind in ("laplace", "gaussian"):
            monkeypatch.setattr(opendp.measurements, f"make_{kind}", Sampler(answers, kind, asked))
        return asked

    return replace


@pytest.mark.parametrize(("law", "metric"), [("laplace", "L1"), ("gaussian", "L2")])
@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(7), Fraction(2**40 + 1), Fraction(2**53)], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_the_sampler_returns_is_what_comes_out(law, metric, scale, threads, samplers):
    """No value is cut off, moved or dropped, and OpenDP is asked once, for this law at this scale."""
    answers = far_out(scale)
    asked = samplers(answers)
    counts = np.arange(2 * len(answers)).reshape(2, -1)
    noisy = add_noise(counts, law, scale, threads=threads, cells_per_task=len(answers))  # in two pieces
    assert noisy.tolist() == [answers, answers]
    ((kind, domain, measured_by, given),) = asked
    assert (kind, Fraction(given)) == (law, scale)
    assert "i64" in domain
    assert measured_by.startswith(metric)


def test_what_the_sampler_returns_is_what_is_released(samplers, tmp_path):
    """From the sampler to the file, and back from the file."""
    schema = Schema([Column("AGE", "numeric", edges=list(range(1, 40)))])
    ages = Level("TOWN", Workload.all_marginals(schema, 1), total=0)
    plan = plan_of(schema, ages, groups={"TOWN": ["a", "b"]})
    (question,) = plan.questions
    answers = far_out(question.scale)
    asked = samplers(answers)
    rows = pa.table({"AGE": [3, 7], "TOWN": ["a", "b"]})
    release = measure(plan, rows, tmp_path / "release", ledger_for(plan, tmp_path / "ledger"))
    expected = [answers[place % len(answers)] for place in range(release.noisy[0][0].size)]
    assert len(expected) > len(answers)
    assert release.noisy[0][0].ravel().tolist() == expected
    assert Release.load(tmp_path / "release").noisy[0][0].ravel().tolist() == expected
    assert {(kind, Fraction(scale)) for kind, *_, scale in asked} == {("laplace", question.scale)}


def test_the_library_promises_pure_privacy_at_the_declared_scale():
    """By OpenDP's own map: what it samples has no cut-off tail, for which no finite epsilon could be promised."""
    dp.enable_features("contrib")
    from prade.measuring.noise import _mechanism

    for scale in (0.25, 7.0, 5000.0):
        assert _mechanism("laplace", scale).map(1) == pytest.approx(1 / scale, rel=1e-12)
        assert _mechanism("gaussian", scale).map(1) == pytest.approx(1 / (2 * scale**2), rel=1e-12)
