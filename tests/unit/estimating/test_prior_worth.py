"""The worth of the prior: a number that grows when the answers say nothing."""

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.base import check
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import DOUBT, LARGEST, MAP, last_likely, prior_worth
from prade.queries.parts import Marginal
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({f"c{i}": 5 for i in range(8)})


@pytest.fixture(scope="module")
def layout() -> Layout:
    generator = np.random.default_rng(0)
    table = {name: generator.choice(5, 200, p=[0.5, 0.2, 0.15, 0.1, 0.05]) for name in SCHEMA.names}
    return Layout(Prior.from_table(SCHEMA, table), Workload.marginals(SCHEMA, SCHEMA.names))


def measured(layout, counts, scale, law):
    return [Measurement(part, counts[layout.part(k)], scale, law) for k, part in enumerate(layout.workload)]


def worth(layout, counts, scale, law, total):
    return prior_worth(check(layout.prior, measured(layout, counts, scale, law), total, layout))


def test_nothing_to_learn_from():
    schema = Schema.from_mbi({"a": 2})
    prior = Prior.from_table(schema, {"a": [0, 0]})  # masses 1 and 0: neither can tell how wrong the prior is
    answers = [Measurement(Marginal.of(schema, ["a"]), [80, 20], 1.0)]
    assert prior_worth(check(prior, answers, 100.0, None)) == pytest.approx(LARGEST)


def test_map_says_which_n0_it_took(layout):
    counts = 1000 * np.roll(layout.start.masses, 1)
    estimate = MAP().fit(layout.prior, measured(layout, counts, 5.0, "laplace"), 1000.0, layout=layout)
    assert estimate.report.settings["n0"] == worth(layout, counts, 5.0, "laplace", 1000.0)


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
