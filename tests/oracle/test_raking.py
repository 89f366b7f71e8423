"""Exact answers: the I-projection when they can hold, a proof when they cannot."""

import numpy as np
import pytest

from prade import Schema
from prade.data.public.joint import Prior
from prade.estimating.estimate import Status
from prade.estimating.posterior_mode import MAP
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import expect, parse
from prade.release.release import Measurement
from worlds.reference import kl, oracle_map, random_case

SOLVERS = ["newton", "block", "lbfgs"]
MOST_STEPS = 60  # looks at the problem: a handful settles each of these, hundreds would be looping


def raked(prior, answers, solver="newton", total=1000.0, **settings):
    return MAP(n0=1.0, solver=solver, tolerance=1e-8, **settings).fit(prior, answers, total)


@pytest.mark.parametrize("zeros", [False, True], ids=["positive", "zeros"])
def test_consistent_answers_are_matched_with_the_least_kl(zeros):
    for seed in range(40):
        rng = np.random.default_rng([41, seed, zeros])
        case = random_case(rng)
        z = rng.dirichlet(np.full(len(case.p), 0.8))
        if zeros:
            z = np.where(rng.random(len(z)) < 0.5, 0.0, z)
            z = np.eye(len(z))[0] if z.sum() == 0 else z / z.sum()
        case.counts = [case.total * matrix @ z for matrix in case.matrices]
        case.scales, case.laws = [0.0] * len(case.parts), ["laplace"] * len(case.parts)
        got = raked(case.prior, case.measurements(), total=case.total)
        least, _ = oracle_map(case, 1.0)
        assert got.status is Status.CONVERGED, seed
        assert np.abs(case.W @ got.weights - case.y).max() <= 1e-9
        assert kl(got.weights, case.p) == pytest.approx(least, abs=1e-6)
        assert got.report.kl == pytest.approx(kl(got.weights, case.p), abs=1e-8)


SCHEMA = Schema.from_mbi({"a": 2, "b": 2, "c": 2})
UNIFORM = Prior.uniform(SCHEMA)
A, B, C = (Marginal.of(SCHEMA, [name]) for name in "abc")


def exact(part, *counts):
    return Measurement(part, list(counts), 0.0)


def predicate(text):
    return Predicate(parse(text, SCHEMA))


FORCED = {
    # (1, 1) has all that a = 1 has: (1, 0) must be empty
    "subset": ([exact(A, 700, 300), exact(predicate("a == 1 and b == 1"), 300)], "a == 1 and b == 0"),
    # everything lies on a = b: uncovered mass of a partial part must be empty
    "diagonal": ([exact(A, 600, 400), exact(Cells(["a", "b"], [0, 2, 2, 1], 2), 600, 400)], "a != 0 and b == 0"),
    # a = 1 and b = 1 take up everything and do not overlap: (0, 0) and (1, 1) are empty
    "exclusive": (
        [exact(A, 400, 600), exact(B, 600, 400), exact(predicate("a == 1 and b == 1"), 0)],
        "a == 0 and b == 0",
    ),
    # the largest possible overlap of two events: b = 1 without a = 1 is empty
    "extreme": (
        [exact(A, 400, 600), exact(B, 700, 300), exact(predicate("a == 1 and b == 1"), 300)],
        "a == 0 and b == 1",
    ),
    # three two-way tables in a ring: a = b, b = c and therefore a = c
    "ring": (
        [
            exact(Marginal.of(SCHEMA, ["a", "b"]), 500, 0, 0, 500),
            exact(Marginal.of(SCHEMA, ["b", "c"]), 500, 0, 0, 500),
        ],
        "a == 0 and c == 1",
    ),
}


def misses_of(got, answers):
    """The distance of each answer to the estimate, in shares."""
    for answer in answers:
        cells = answer.part.cells(SCHEMA, UNIFORM.codes)
        masses = np.bincount(cells, weights=got.weights, minlength=answer.part.n_cells + 1)
        yield np.abs(masses[: answer.part.n_cells] - answer.counts / 1000).sum()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", FORCED)
def test_zeros_that_follow_from_several_parts(name, solver):
    answers, empty = FORCED[name]
    got = raked(UNIFORM, answers, solver, max_steps=200)
    missed = sum(misses_of(got, answers))
    assert got.report.certificate["misfit"] == pytest.approx(missed, abs=1e-9)
    assert got.status is not Status.UNREACHABLE
    if solver == "block":
        # sweeps approach a forced zero at the speed 1/steps: block ascent need not finish, but must say so
        close = got.report.gap <= max(1e-8 * abs(got.report.objective), 1e-12)  # `raked`'s tolerance, of the objective
        assert (got.status is Status.CONVERGED) == (missed <= 1e-9 and close)
        return
    # L-BFGS-B compares values, which tells slopes apart only to the root of double precision
    assert max(missed, expect(got, empty)) <= (4e-9 if solver == "newton" else 4e-6)
    assert got.status is Status.CONVERGED or (solver == "lbfgs" and got.status is Status.STALLED)


def impossible(by):
    """Exact answers that no distribution has, by a share `by` of the total."""
    x = 1000 * by
    partial = Cells(["a", "b"], [0, 1, 1, 2], 2)
    return {
        "sum over one": [exact(A, 500, 500 + x)],
        "sum under one": [exact(A, 500, 500 - x)],
        "negative": [exact(A, 1000 + x, -x)],
        "partial over one": [exact(partial, 600, 400 + x)],
        "the same part twice": [exact(A, 500, 500), exact(A, 500 + x, 500 - x)],
        "inner and outer": [exact(A, 700, 300), exact(predicate("a == 1 and b == 1"), 300 + x)],
        "three events": [exact(A, 500, 500), exact(B, 500, 500), exact(predicate("a == 0 or b == 0"), 500 - x)],
        "beside noise": [exact(A, 500, 500 + x), Measurement(B, [300.0, 700.0], 20.0)],
    }


@pytest.mark.parametrize(
    ("solver", "by"), [*((solver, by) for solver in ("newton", "lbfgs") for by in (0.3, 1e-3, 1e-5)), ("block", 0.02)]
)
@pytest.mark.parametrize("name", impossible(0.1))
def test_impossible_exact_answers_are_proved_so(name, by, solver):
    got = raked(UNIFORM, impossible(by)[name], solver)
    assert got.status is Status.UNREACHABLE
    assert len(got.report.trace) <= MOST_STEPS


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("by", [0.5, 1e-3, 1e-5])
def test_an_exact_answer_in_a_cell_without_rows(by, solver):
    public = Prior(SCHEMA, {name: np.array([0, 0, 0]) for name in "ab"} | {"c": np.array([0, 1, 1])}, np.ones(3))
    got = raked(public, [exact(A, 1000 * (1 - by), 1000 * by), exact(C, 400, 600)], solver)
    assert got.status is Status.UNREACHABLE
    assert len(got.report.trace) <= MOST_STEPS
    assert got.report.unreachable == pytest.approx(by)


@pytest.mark.parametrize("solver", SOLVERS)
def test_possible_answers_are_never_called_impossible(solver):
    for seed in range(30):
        rng = np.random.default_rng([43, seed])
        case = random_case(rng)
        # a corner of the simplex, or next to one: where the proof has the least room
        z = np.eye(len(case.p))[int(np.argmin(case.p))] * (1 - 10.0 ** -int(rng.integers(3, 16)))
        z = z + (1 - z.sum()) * case.p
        case.counts = [case.total * matrix @ z for matrix in case.matrices]
        case.scales = [0.0] * len(case.parts)
        got = raked(case.prior, case.measurements(), solver, total=case.total)
        assert got.status is not Status.UNREACHABLE, seed
