"""The battery's promises for the baselines that make rows of their own: a histogram and a Bayesian network.

They take the answers that they would have asked for, so they cannot be in `test_estimators.py`, where MWEM and PMW^Pub
are.
"""

import numpy as np
import pytest

from prade import DataError, EstimationError, Schema, Workload
from prade.baselines import MWEM, Baseline, Histogram, PMWPub, PrivBayes
from prade.data.public.joint import Prior
from prade.estimating.base import fit_many
from prade.estimating.estimate import Estimate, Status
from prade.estimating.layout import Layout
from prade.queries.parts import Cells, Marginal
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 3, "b": 2, "c": 2})
TOTAL = 600.0
BASELINES = {"histogram": Histogram(), "privbayes": PrivBayes(seed=4)}
PARTS = {
    "histogram": [Marginal.of(SCHEMA, list("abc"))],
    "privbayes": [Marginal.of(SCHEMA, list(names)) for names in ("b", "ba", "bac")],
}
EACH = pytest.mark.parametrize("name", BASELINES)


@pytest.fixture(scope="module")
def prior() -> Prior:
    generator = np.random.default_rng(1)
    return Prior(SCHEMA, Prior.uniform(SCHEMA).codes, generator.exponential(size=12))


def noisy(name, seed):
    """Answers of a skewed table, some of them negative."""
    generator = np.random.default_rng(seed)
    table = Prior(SCHEMA, Prior.uniform(SCHEMA).codes, generator.exponential(size=12) ** 3)
    answers = zip(PARTS[name], Workload(SCHEMA, PARTS[name]).answer(table), strict=True)
    return [
        Measurement(part, np.rint(TOTAL * share + generator.laplace(scale=9, size=len(share))), 9.0)
        for part, share in answers
    ]


def same(first: Estimate, second: Estimate) -> bool:
    codes = all(first.codes[column].tolist() == second.codes[column].tolist() for column in first.columns)
    return codes and first.weights.tobytes() == second.weights.tobytes() and repr(first.report) == repr(second.report)


@EACH
def test_weights_are_a_distribution(name, prior):
    estimate = BASELINES[name].fit(prior, noisy(name, 5), TOTAL)
    assert len(estimate.weights) == len(estimate)
    assert np.isfinite(estimate.weights).all()
    assert (estimate.weights >= 0).all()
    assert estimate.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert estimate.columns == prior.columns
    assert estimate.schema == prior.schema
    assert len(estimate.sample(1000, seed=1)) == 1000


@EACH
def test_the_answers_are_used_and_the_report_is_right_by_hand(name, prior):
    measured, workload = noisy(name, 5), Workload(SCHEMA, PARTS[name])
    estimate = BASELINES[name].fit(prior, measured, TOTAL)
    report = estimate.report
    assert report.total == TOTAL
    assert report.estimator == type(BASELINES[name]).__name__
    assert report.settings
    assert report.trace
    assert np.isnan(report.gap)
    assert [fit.name for fit in report.parts] == [part.name for part in PARTS[name]]
    before = after = 0.0
    answers = zip(report.parts, measured, workload.answer(prior), workload.answer(estimate), strict=True)
    for fit, m, start, masses in answers:
        residual = np.abs(TOTAL * masses - m.counts).sum()
        assert fit.residual == pytest.approx(residual, rel=1e-9)
        assert fit.noise_units == pytest.approx(residual / m.scale.sum(), rel=1e-9)
        before, after = before + np.abs(TOTAL * start - m.counts).sum(), after + residual
    assert after < 0.5 * before


@EACH
def test_same_result_whoever_asks(name, prior, tmp_path):
    """Twice, with a layout (which has no use), with other weights of the prior, from a file."""
    baseline, measured = BASELINES[name], noisy(name, 5)
    first = baseline.fit(prior, measured, TOTAL)
    layout = Layout(prior, Workload(SCHEMA, PARTS[name]))
    assert same(first, baseline.fit(prior, measured, TOTAL))
    assert same(first, baseline.fit(prior, tuple(measured), int(TOTAL), layout=layout))
    assert same(first, baseline.fit(Prior.uniform(SCHEMA), measured, np.float64(TOTAL)))
    first.save(tmp_path / "estimate.parquet")
    assert same(first, Estimate.load(tmp_path / "estimate.parquet"))


@EACH
@pytest.mark.parametrize("threads", [1, 2])
def test_many_groups_are_the_same_as_one_by_one_in_order(name, threads, prior):
    baseline, layout = BASELINES[name], Layout(prior, Workload(SCHEMA, PARTS[name]))
    groups = [(noisy(name, seed), TOTAL + seed) for seed in range(4)]
    found = list(fit_many(baseline, prior, iter(groups), layout=layout, threads=threads))
    assert [estimate.report.total for estimate in found] == [total for _, total in groups]
    assert all(same(one, baseline.fit(prior, *group)) for one, group in zip(found, groups, strict=True))


@EACH
def test_answers_that_leave_nothing_make_a_uniform_table(name, prior):
    measured = [Measurement(part, np.full(part.n_cells, -3.0), 9.0) for part in PARTS[name]]
    estimate = BASELINES[name].fit(prior, measured, 60_000)
    assert estimate.project(list("abc")) == pytest.approx(1 / 12, abs=0.01)  # 8 standard errors of drawn rows
    assert estimate.status is not Status.CONVERGED


@EACH
@pytest.mark.parametrize("total", [0, -5.0, np.nan, np.inf, -np.inf])
def test_impossible_totals(name, total, prior):
    with pytest.raises(EstimationError, match=r"total is .*positive"):
        BASELINES[name].fit(prior, noisy(name, 5), total)


@EACH
def test_answers_that_it_cannot_take(name, prior):
    baseline, measured = BASELINES[name], noisy(name, 5)
    other = Marginal.of(Schema.from_mbi({"a": 3, "b": 2, "c": 2, "zebra": 2}), ["zebra"])
    for unfit in (
        [],
        measured[:-1],
        [*measured, measured[-1]],
        [*measured, Measurement(other, [1, 2], 1.0)],
        [Measurement(Cells(["a"], [0, 2, 1], 2), [1, 2], 1.0)],
    ):
        with pytest.raises((EstimationError, DataError)):
            baseline.fit(prior, unfit, TOTAL)


def test_a_networks_tables_come_in_order(prior):
    measured = noisy("privbayes", 5)
    with pytest.raises(EstimationError, match="columns of earlier tables and one new column at the end"):
        BASELINES["privbayes"].fit(prior, measured[::-1], TOTAL)


@pytest.mark.parametrize(
    "baseline",
    [MWEM(Workload.all_marginals(SCHEMA, 1)), PMWPub(Workload.all_marginals(SCHEMA, 1)), *BASELINES.values()],
    ids=lambda baseline: type(baseline).__name__,
)
def test_a_baseline_is_an_estimator_that_asks(baseline, prior):
    """Its settings cannot change, it is equal to its like, and its parts are those of the prior's columns."""
    assert all(callable(getattr(baseline, name)) for name in vars(Baseline) if name in ("ask", "fit", "parts"))
    assert {column for part in baseline.parts(prior) for column in part.columns} == set("abc")
    with pytest.raises(AttributeError):
        baseline.total_share = 0.5
    assert baseline.total_share == 0.05
