"""The paper's system: shares and scales by hand, estimates against Algorithm 2 written out, independent draws."""

import json
from contextlib import chdir
from fractions import Fraction

import numpy as np
import pytest

import prade.pipeline
from prade import Budget, Ledger, Release, Schema, Task, Unit, Workload
from prade.baselines.algorithm_2 import Algorithm2
from prade.core.errors import DataError, PradeError
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.data.read.files import schema_of
from prade.data.read.tables import read_table, write_table
from prade.examples import census_like
from prade.planning.task import Target
from prade.release.terms import Terms
from prade.sampling.table import method_of
from worlds.commands import call
from worlds.releases import answered

SCHEMA = Schema.from_mbi({"a": 3, "b": 3, "c": 2})
GROUPS = {"STATE": [17, 39, 17, 39], "PUMA": [1, 1, 2, 2]}
UPPER = Workload.marginals(SCHEMA, [("a", "b"), "c", "b"])
LOWER = Workload.marginals(SCHEMA, ["a", "c"])


@pytest.fixture(scope="module")
def public():
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, 400)
    return Public.of(SCHEMA, {"a": a, "b": (a + (rng.random(400) < 0.2)) % 3, "c": rng.integers(0, 2, 400)})


def make(public, epsilon=2, unit=None, groups=GROUPS):
    levels = ["STATE", "PUMA"]
    return Algorithm2().plan(Task("survey", SCHEMA, epsilon, unit, levels, groups), public, (UPPER, LOWER))


def noisy(plan, seed, totals=None):
    """A release with invented answers: about 1,000 rows a state, 500 a PUMA; `totals` by (level, group) replaced."""
    rng = np.random.default_rng(seed)

    def answer(question, part, groups):
        rows = 1000 if question.level == 0 else 500
        counts = np.rint(rows / part.n_cells * rng.uniform(0.3, 1.7, (groups, part.n_cells))).astype(np.int64)
        counts -= (rng.random(counts.shape) < 0.1) * rows  # some are far below zero, as noise may make them
        for (level, group), total in (totals or {}).items():
            if question.is_total and question.level == level:
                counts[group] = total
        return counts

    return answered(plan, answer)


def test_a_quarter_of_epsilon_for_each_question(public):
    plan = make(public, epsilon=10, unit=Unit(7))
    assert [level.by for level in plan.levels] == [("STATE",), ("STATE", "PUMA")]
    assert [(q.level, q.is_total, len(q.parts)) for q in plan.questions] == [(0, 1, 1), (0, 0, 3), (1, 1, 1), (1, 0, 2)]
    assert [q.share for q in plan.questions] == [Budget.pure(Fraction(5, 2))] * 4
    # 7 rows a person, 4 questions, epsilon 10: b = 4 * 7 / 10 = 2.8, times the number of parts
    assert [float(q.scale) for q in plan.questions] == pytest.approx([2.8, 3 * 2.8, 2.8, 2 * 2.8])
    assert {q.law for q in plan.questions} == {"laplace"}


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"budget": Budget.zcdp(1)}, "pure budget"),
        ({"levels": (), "groups": None}, "two levels, got 1"),
        ({"targets": [Target(["a x b"])]}, "neither targets nor invariants"),
    ],
)
def test_what_it_does_not_know_is_refused(public, terms, words):
    usual = {"budget": 1, "levels": ["STATE", "PUMA"], "groups": GROUPS}
    with pytest.raises(PradeError, match=words):
        Algorithm2().plan(Task("survey", SCHEMA, **{**usual, **terms}), public)


def projected(y):
    """The Euclidean-nearest distribution, by bisection of the shift."""
    low, high = y.min() - 1, y.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(y - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(y - low, 0)


def algorithm_1(q, cells, answers, total, seed):
    """T = 2 x number of parts steps from q, each on a part taken at random."""
    for k in np.random.default_rng(seed).integers(0, len(cells), 2 * len(cells)):
        mass = np.bincount(cells[k], q, len(answers[k]))
        goal = np.zeros(len(mass))
        goal[mass > 0] = projected(answers[k][mass > 0] / total)
        q = q * (goal / np.where(mass > 0, mass, 1))[cells[k]]
    return q / q.sum()


def algorithm_2(release, public, seed):
    """Weights of the last level's groups."""
    prior = public.prior
    told = dict(zip([(q.level, q.is_total) for q in release.plan.questions], release.noisy, strict=True))

    def level(number, workload, start):
        cells = [part.cells(SCHEMA, prior.codes).astype(int) for part in workload]
        for group, q in enumerate(start):
            own = np.random.SeedSequence([seed, number, group]).generate_state(1)[0]
            total = max(told[number, True][0][group, 0], 1)
            yield algorithm_1(q, cells, [counts[group] for counts in told[number, False]], total, own)

    states = list(level(0, UPPER, [prior.weights] * 2))
    return list(level(1, LOWER, [states[STATES.index(state)] for state in GROUPS["STATE"]]))


STATES = [17, 39]


@pytest.mark.parametrize("seed", range(3))
def test_the_estimates_are_those_of_algorithm_2(public, seed):
    release = noisy(make(public), seed)
    assert [values[0] for values in release.plan.groupings[0].values] == STATES
    expected = algorithm_2(release, public, seed)
    found = list(Algorithm2().estimates(release, public, seed))
    assert [each.group for each in found] == [0, 1, 2, 3]
    for each, weights in zip(found, expected, strict=True):
        np.testing.assert_allclose(each.estimate.weights, weights, rtol=1e-9, atol=1e-13)
        assert each.estimate.report.settings["steps"] == 2 * len(LOWER)


def test_a_total_that_is_not_positive_gives_no_rows_and_stops_nothing(public):
    release = noisy(make(public), 6, {(0, 0): -20, (1, 0): 0, (1, 1): -7, (1, 2): 1, (1, 3): 40})
    found = list(Algorithm2().estimates(release, public, 0))
    assert [each.total for each in found] == [0, -7, 1, 40]
    assert [each.estimate.report.total for each in found] == [1, 1, 1, 40]
    for each, weights in zip(found, algorithm_2(release, public, 0), strict=True):
        np.testing.assert_allclose(each.estimate.weights, weights, rtol=1e-9, atol=1e-13)
    assert np.bincount(Algorithm2().rows(release, public, 0)[1]).tolist() == [0, 0, 1, 40]


def test_rows_are_drawn_independently():
    """Among 400 groups the number of rows with c = 0 varies as n q (1 - q); a systematic draw's varies by 1/4."""
    rows, n = 100, 400
    public = Public.of(SCHEMA, {"a": [0, 0], "b": [0, 0], "c": [0, 1]})
    plan = make(public, groups={"STATE": [1] * n, "PUMA": list(range(n))})
    exact = {1: [rows], 2: [rows // 2] * 2, 3: [rows, 0, 0], 9: [rows] + [0] * 8}
    release = answered(plan, lambda _, part, groups: np.tile(exact[part.n_cells], (groups, 1)))
    coded, group = Algorithm2().rows(release, public, seed=3)
    zeros = np.bincount(group, coded.codes["c"] == 0, n)
    assert abs(zeros.mean() - 50) < 5 * 5 / np.sqrt(n)
    assert 0.7 < zeros.var() / 25 < 1.3  # five standard errors are 0.35


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = census_like(persons=1_500, places_per_state=2, years=(2023, 2024), seed=3)
    for name, table in (("public", data.public), ("private", data.private), ("groups", data.groups)):
        write_table(table, folder / f"{name}.parquet")
    data.schema.save(folder / "schema.toml")
    return folder


def synthesized(files, folder, *more, code=0):
    given = ["synthesize", "private.parquet", "--schema", "schema.toml", "--public", "public.parquet"]
    given += ["--groups", "groups.parquet", "--levels", "STATE,PLACE+YEAR", "--max-rows-per-person", "2"]
    given += ["--person-id", "PERSON", "-o", str(folder / "release"), "--ledger", str(folder / "ledger")]
    with chdir(files):
        return call(*given, *more, code=code)


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    """One run by the command line, and what it says as JSON."""
    folder = tmp_path_factory.mktemp("run")
    Ledger(folder / "ledger").open_dataset("private", Unit(2, person_id="PERSON"), Budget.pure(5))
    done = synthesized(files, folder, "--epsilon", "4", "--method", "algorithm-2", "--seed", "7", "--json")
    return folder, json.loads(done.stdout)


def test_the_command_line_makes_the_same_rows_through_the_same_door(run, files):
    folder, said = run
    release, schema = Release.load(folder / "release"), Schema.load(files / "schema.toml")
    public = Public.of(schema, files / "public.parquet", ["STATE", "PLACE", "YEAR"])
    method = Algorithm2()
    assert release.plan.questions == method.plan(release.plan.task, public).questions
    coded, group = method.rows(release, public, seed=7)
    rows = read_table(folder / "release" / "synthetic.parquet")
    assert {name: code.tolist() for name, code in encode(schema, rows).codes.items()} == {
        name: code.tolist() for name, code in coded.codes.items()
    }
    values = [release.plan.groupings[-1].values[each] for each in group]
    written = zip(*(rows[name].to_pylist() for name in ("STATE", "PLACE", "YEAR")), strict=True)
    assert [tuple(map(str, each)) for each in written] == [tuple(map(str, each)) for each in values]
    (entry,) = Ledger(folder / "ledger").entries("private")
    assert (entry.cost, entry.state) == (Budget.pure(4), "committed")
    assert said["synthetic"]["rows"] == rows.num_rows


def test_a_release_says_by_whom_its_rows_were_drawn(run, files):
    folder, said = run
    assert (said["method"], said["report"]) == ("algorithm-2", None)
    assert method_of(schema_of(folder / "release" / "synthetic.parquet")) == "Algorithm 2"
    assert {each.name for each in (folder / "release").iterdir()}.isdisjoint({"estimates.parquet", "report.html"})
    again = synthesized(files, folder, "--epsilon", "4", "--method", "algorithm-2", "--seed", "7")
    assert "nothing was spent" in again.stdout
    assert again.stdout.endswith("by Algorithm 2 of the paper, not by prade's own method, so there is no report\n")
    with pytest.raises(DataError, match="were drawn by Algorithm 2, and the report is about prade's own"):
        prade.report(folder / "release")


def test_a_plan_of_another_method_is_not_measured(files, tmp_path):
    Ledger(tmp_path / "ledger").open_dataset("private", Unit(2, person_id="PERSON"), Budget.pure(9))
    synthesized(files, tmp_path, "--epsilon", "4", "--no-tune")
    paper = ["--epsilon", "4", "--method", "algorithm-2"]
    assert "is not Algorithm 2's: choose another folder" in synthesized(files, tmp_path, *paper, code=1).output
    assert "is for prade's own method" in synthesized(files, tmp_path, *paper, "--effort", "3", code=2).output
    task = Task("survey", SCHEMA, 1, None, ["STATE", "PUMA"], GROUPS)
    with pytest.raises(PradeError, match="keeps no estimates"):
        prade.pipeline.fit(task, None, None, tmp_path, Terms(method="algorithm-2"))
