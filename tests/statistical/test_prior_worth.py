"""The worth of the prior on simulated answers: how well it is found, and how often it is doubted without reason.

Twenty columns of ten values, 2,000 rows; deviations drawn from the very model, so that n0 has a true value.
"""

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Coded, Prior
from prade.estimating.base import check
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import DOUBT, LARGEST, last_likely, prior_worth
from prade.release.release import Measurement

TOTAL = 2000.0
SCHEMA = Schema.from_mbi({f"c{i}": 10 for i in range(20)})


@pytest.fixture(scope="module")
def layout():
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.full(10, 0.7), size=20)
    codes = {name: generator.choice(10, 500, p=shares[i]) for i, name in enumerate(SCHEMA.names)}
    return Layout(Prior.from_joint(Coded(SCHEMA, codes)), Workload.marginals(SCHEMA, SCHEMA.names))


def measured(layout, generator, law, scale, n0=None):
    """Noisy answers around the prior's, with deviations of variance s (1 - s) / n0 (none at all when n0 is None)."""
    s = layout.start.masses
    y = s if n0 is None else s + generator.laplace(size=len(s)) * np.sqrt(s * (1 - s) / 2 / n0)
    noise = generator.laplace(size=len(s)) if law == "laplace" else generator.normal(size=len(s))
    counts = TOTAL * y + scale * noise
    return [Measurement(part, counts[layout.part(k)], scale, law) for k, part in enumerate(layout.workload)]


def worth(layout, measurements):
    return prior_worth(check(layout.prior, measurements, TOTAL, layout))


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("n0", [10.0, 100.0, 1000.0])
def test_it_is_recovered_within_a_factor_of_three_and_on_the_careful_side(layout, law, n0):
    """20 runs, noise smaller than the deviations: all within [0.7, 3] of the truth, the median not below it.

    Some 190 informative cells put the standard error of log n0 near 0.15, and three nats of doubt add
    sqrt(2 * 3) = 2.4 of those upwards: about a factor of 1.4, which is what the median shows.
    """
    generator = np.random.default_rng(int(n0))
    found = np.array([worth(layout, measured(layout, generator, law, 2.0, n0)) for _ in range(20)]) / n0
    assert found.min() >= 0.7
    assert found.max() <= 3.0
    assert 1.0 <= np.median(found) <= 2.0


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_false_alarms_are_rare(layout, law):
    """100 runs with a prior that is exactly right: at most 3 say anything else.

    On the boundary twice the log-likelihood ratio is 0 or chi-squared with one degree of freedom, half and half: it
    exceeds 2 * 3 with chance 0.5 * 0.014 = 0.7 %. Four or more of 100 then have a chance of 0.5 %.
    """
    generator = np.random.default_rng(77)
    found = np.array([worth(layout, measured(layout, generator, law, 5.0)) for _ in range(100)])
    assert np.count_nonzero(found < 0.99 * LARGEST) <= 3


def test_a_few_looks_find_what_looking_at_all_finds():
    """Hills of all widths, with their top anywhere, at the ends too."""
    generator = np.random.default_rng(4)
    for _ in range(200):
        top, steep = generator.uniform(-20, 250), 10.0 ** generator.uniform(-4, 2, 2)
        away = np.arange(231) - top
        hill = -np.where(away < 0, steep[0], steep[1]) * np.abs(away) ** generator.uniform(1, 2)
        looked = set()
        last = last_likely(lambda k, hill=hill, looked=looked: looked.add(k) or float(hill[k]), 231)
        assert last == np.flatnonzero(hill >= hill.max() - DOUBT)[-1]
        assert len(looked) < 60
