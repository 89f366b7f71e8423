"""The accelerator gives the processor's estimates, to within their certificates, and the same bits each time."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from prade import EstimationError, Schema, Workload
from prade.core.workers import Workers
from prade.data.prior import Prior
from prade.estimating import cuda
from prade.estimating.base import check
from prade.estimating.layout import Layout
from prade.estimating.levels import device_fits
from prade.estimating.levels.estimates import Estimates
from prade.estimating.posterior_mode import MAP
from prade.estimating.solvers import Newton, Tolerance, climb
from prade.release.release import Measurement
from worlds import many_places
from worlds.commands import call

accelerated = pytest.mark.skipif(bool(cuda.why_not()), reason=f"no accelerator: {cuda.why_not()}")
SIZES = (2, 3, 4, 5, 7, 12, 20)
TOTAL = 1_000.0


@pytest.fixture(scope="module")
def layout():
    generator = np.random.default_rng(0)
    hidden, rows = generator.random(100_000), 100_000
    schema = Schema.from_mbi({f"c{k}": size for k, size in enumerate(SIZES)})
    mixed = [np.where(generator.random(rows) < 0.5, hidden, generator.random(rows)) for _ in SIZES]
    codes = {f"c{k}": (mixed[k] * size).astype(np.uint8) for k, size in enumerate(SIZES)}
    prior = Prior(schema, codes, generator.exponential(size=rows))
    return Layout(prior, Workload.marginals(schema, schema.coded), collapse=False)


@pytest.fixture(scope="module")
def problems(layout):
    """The duals of forty groups, and their priors."""
    duals, bases, generator = [], [], np.random.default_rng(1)
    estimator = MAP(n0=100.0, limit=5.0)
    for _ in range(40):
        answers = []
        for part, share in zip(layout.workload, layout.workload.answer(layout.prior), strict=True):
            wanted = share * np.exp(0.3 * generator.standard_normal(len(share)))
            answers.append(Measurement(part, TOTAL * wanted / wanted.sum(), TOTAL * 0.1 * np.sqrt(share), "gaussian"))
        duals.append(estimator.problem(check(layout.prior, answers, TOTAL, layout), 100.0))
        base = layout.base * generator.exponential(size=layout.rows)
        bases.append(base / base.sum())
    return duals, bases


def with_base(dual, base):
    """The dual as the processor has it."""
    prior = dual.layout.prior
    moved = dual.layout.reweighted(Prior(prior.schema, prior.codes, base))
    return type(dual)(moved, dual.y, dual.variance, dual.low, dual.high)


@accelerated
def test_a_pass_gives_the_masses_of_the_processor_and_the_same_bits_again(layout, problems):
    duals, bases = problems
    device = cuda.Device(layout)
    multipliers = np.random.default_rng(2).normal(0, 0.5, (len(duals), layout.n_cells))
    logs = device.log_bases(bases, len(bases))
    found, again = device.evaluate(logs, multipliers), device.evaluate(logs, multipliers)
    for dual, base, lam, one, two in zip(duals, bases, multipliers, found, again, strict=True):
        expected = with_base(dual, base).layout.evaluate(lam)
        assert one.masses == pytest.approx(expected.masses, rel=2e-5)
        assert one.log_z == pytest.approx(expected.log_z, abs=2e-6)
        assert one.top <= expected.top + 1e-5
        assert np.array_equal(one.masses, two.masses)


@accelerated
def test_climbs_end_where_the_processors_do(problems):
    duals, bases = problems
    tolerance = Tolerance(relative=1e-3)
    reached = list(cuda.climb_together(duals, bases, tolerance))
    assert sum(each is not None for each in reached) >= 0.9 * len(duals)
    for dual, base, each in zip(duals, bases, reached, strict=True):
        if each is None:
            continue
        own = with_base(dual, base)
        best, why = climb(own, Newton(), Tolerance(relative=1e-8), max_steps=200)
        assert why == "converged"
        certified = own.certify(each.multipliers, own.layout.evaluate(each.multipliers))  # by the processor, in double
        assert tolerance.met(certified) or certified.gap == pytest.approx(each.certificate.gap, rel=0.05)
        assert certified.gap == pytest.approx(each.certificate.gap, rel=0.05, abs=1e-6)
        assert best.certificate.value - certified.value <= certified.gap + 1e-9


@accelerated
def test_too_many_cells_are_left_to_the_processor(problems, monkeypatch):
    duals, bases = problems
    monkeypatch.setattr(cuda, "MOST_CELLS_FOR_NEWTON", 10)
    assert list(cuda.climb_together(duals, bases, Tolerance())) == [None] * len(duals)


@accelerated
def test_estimates_of_a_release_are_the_same_to_within_their_certificates(monkeypatch):
    monkeypatch.setattr(device_fits, "FEWEST", 1)
    release, public = many_places.release(), many_places.public()
    kinds = (Workers(2), Workers(2, accelerator=True), Workers(1, accelerator=True))
    here, there, again = (Estimates.of(release, public, workers=each) for each in kinds)
    assert np.array_equal(here.totals, there.totals)
    for mine, theirs in zip(here.levels, there.levels, strict=True):
        assert mine.status == theirs.status
        assert np.abs(mine.kl - theirs.kl).max() < 0.01 * mine.kl.max()
    last = len(here.levels) - 1
    for group in range(len(here.totals)):
        assert np.abs(here.weights(last, group) - there.weights(last, group)).sum() < 0.05
        assert np.array_equal(there.levels[last].multipliers[group], again.levels[last].multipliers[group])


def test_without_an_accelerator_the_command_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    with pytest.raises(EstimationError, match=r"CuPy is not installed \(prade\[cuda\] has it\); leave out cuda=True"):
        cuda.need_accelerator()
    (tmp_path / "public.csv").write_text("not read before")
    named = ["--public", tmp_path / "public.csv"]
    done = call("estimate", many_places.release(tmp_path / "release").path, *named, "--cuda", code=1)
    assert "leave out --cuda" in done.stderr


@pytest.mark.parametrize(("gib", "expected"), [(2, 1), (12, 4), (139, 16)])
def test_processes_have_enough_of_the_memory_each(gib, expected, monkeypatch):
    """A stand-in for CuPy says how much is free."""
    device = SimpleNamespace(mem_info=(gib * 2**30, 139 * 2**30))
    fake = SimpleNamespace(Device=lambda: device, runtime=SimpleNamespace(getDeviceCount=lambda: 1))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=fake))
    assert cuda.most_processes() == expected
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert cuda.most_processes() == 1
