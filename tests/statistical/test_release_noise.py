"""What `measure` writes minus what is true has the law and the scale that the file declares, at every level.

The file is read with pyarrow alone and the truth is counted with numpy from the raw cells, so that neither prade's
reader nor its counting stands behind both sides. Noise takes no seed: all checks of this file together fail by chance
once in 10,000 runs (`FALSE_ALARM`, shared out by Bonferroni's inequality). A broken copy with nine tenths of the noise
goes unnoticed in a question once in 10^9 runs, by the chi-square statistic's law for that copy.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget, Column, Schema, Unit, Workload
from prade.measuring.noise import add_noise
from prade.measuring.run import measure
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from worlds.chance import largest_correlation, p_value_of_uniform
from worlds.plans import ledger_for

FALSE_ALARM = 1e-4
ENOUGH = 18_000  # counts from which on a question is tested by itself: fewer do not tell nine tenths from ten
BUDGETS = {"pure": Budget.pure(2), "zcdp": Budget.zcdp("1/8"), "approx": Budget.approx(2, 1e-6)}
LAWS = {"pure": "laplace", "zcdp": "gaussian", "approx": "gaussian"}
SPENT = [*LAWS.items(), ("approx", "laplace")]  # the usual laws, and a plan that chose the other one
CHECKS = len(SPENT) * (3 + 3 + 2 + 1 + 1)  # the questions of both plans, each plan as a whole, correlation, totals
ALPHA = FALSE_ALARM / CHECKS
FAR = 6  # standard errors of a mean square: squares are skewed, and a normal's tail at ALPHA would be left too often

STATES, TOWNS, ROWS = 180, 100, 30_000  # towns of a state
SCHEMA = Schema([Column("AGE", "numeric", edges=tuple(range(1, 100))), Column("JOB", "categorical", values=range(180))])


def of(*parts):
    return Workload(SCHEMA, parts)


YOUNG = Predicate(parse("AGE < 18", SCHEMA))
JOBS = Predicate(parse("JOB == 0", SCHEMA), parse("JOB == 1", SCHEMA))
HALVES = Cells(["AGE"], np.arange(100) // 50, 2, ["low", "high"])
PLANS = {
    # many places and few cells, so that the totals are many, too
    "wide": [Level(["STATE", "TOWN"], [Ask(of(HALVES), 3), Ask(of(YOUNG, JOBS), "0.7")], total="1.3")],
    # every level, few places and many cells
    "deep": [
        Level((), [Ask(of(Marginal.of(SCHEMA, ["AGE", "JOB"])), "0.5")], total="0.25"),
        Level("STATE", [Ask(of(Marginal.of(SCHEMA, ["AGE"]), YOUNG), 2)], total=1),
        Level("BLOCK", [Ask(of(Marginal.of(SCHEMA, ["JOB"])), 3)], total=0),
    ],
}
GROUPS = {
    "wide": {"STATE": np.repeat(np.arange(STATES), TOWNS), "TOWN": np.tile(np.arange(TOWNS), STATES)},
    "deep": {"STATE": np.arange(STATES), "BLOCK": np.arange(STATES)},
}
LARGE = {"wide": 3, "deep": 3}  # questions with ENOUGH counts


def people():
    """Rows of which some are of no listed state."""
    generator = np.random.default_rng(11)
    ends = {"AGE": 100, "JOB": 180, "STATE": STATES + 5, "TOWN": TOWNS}
    columns = {name: generator.integers(0, end, ROWS) for name, end in ends.items()}
    return {**columns, "BLOCK": columns["STATE"]}


def truth(name):
    """The true counts in the order of the file: question, part, group, cell."""
    rows = people()
    age, job, state, town, _ = (column[rows["STATE"] < STATES] for column in rows.values())
    everybody, place = np.zeros_like(age), state * TOWNS + town

    def counted(group, groups, cell, cells):
        inside = cell < cells
        return np.bincount((group * cells + cell)[inside], minlength=groups * cells)

    young = np.where(age < 18, 0, 1)
    if name == "wide":
        cells = [(everybody, 1), (age // 50, 2), (young, 1), (job, 2)]
        return np.concatenate([counted(place, STATES * TOWNS, *each) for each in cells])
    return np.concatenate(
        [
            counted(everybody, 1, everybody, 1),
            counted(everybody, 1, age * 180 + job, 100 * 180),
            counted(state, STATES, everybody, 1),
            counted(state, STATES, age, 100),
            counted(state, STATES, young, 1),
            counted(state, STATES, job, 180),
        ]
    )


def released(folder, name, kind, law=None):
    """Measure into a folder; the release, and its file as pyarrow reads it."""
    plan = Plan("people", SCHEMA, BUDGETS[kind], Unit(2), PLANS[name], GROUPS[name], noise=law)
    pq.write_table(pa.table(people()), folder / "people.parquet")
    release = measure(plan, folder / "people.parquet", folder / "release", ledger_for(plan, folder / "ledger"))
    return release, pq.read_table(folder / "release" / "measurements.parquet")


def uniform(noise, law, scale, generator):
    """Noise as numbers between 0 and 1, uniform if it has the law: F(z - 1) + V P(z) with V uniform."""
    bound = max(int(40 * scale), int(np.abs(noise).max())) + 1
    values = np.arange(-bound, bound + 1)
    weight = np.exp(-np.abs(values) / scale if law == "laplace" else -(values**2) / (2 * scale**2))
    mass = weight / weight.sum()
    below = np.concatenate([[0.0], np.cumsum(mass)])
    place = noise + bound
    return below[place] + generator.random(len(noise)) * mass[place]


def p_values(table, true):
    """A p-value for every scale that has ENOUGH counts, and one for all counts together."""
    generator = np.random.default_rng(5)
    noise = table["noisy"].to_numpy() - true
    scale, law = table["scale"].to_numpy(), np.array(table["law"].to_pylist())
    numbers = np.full(len(noise), np.nan)
    found = {}
    for each in np.unique(scale):
        own = scale == each
        (name,) = set(law[own])
        numbers[own] = uniform(noise[own], name, each, generator)
        if own.sum() >= ENOUGH:
            found[float(each)] = p_value_of_uniform(numbers[own])
    found["all"] = p_value_of_uniform(numbers)
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Each plan measured once under each budget."""
    return cache(lambda name, *spent: released(tmp_path_factory.mktemp("release"), name, *spent))


@pytest.mark.parametrize("spent", SPENT, ids=" ".join)
@pytest.mark.parametrize("name", PLANS)
def test_the_noise_has_the_law_and_scale_of_the_file(name, spent, measured):
    release, table = measured(name, *spent)
    assert set(table["law"].to_pylist()) == {spent[1]}
    assert {float(question.scale) for question in release.plan.questions} == set(table["scale"].to_pylist())
    found = p_values(table, truth(name))
    assert len(found) == LARGE[name] + 1
    assert min(found.values()) > ALPHA, found


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
@pytest.mark.parametrize("name", PLANS)
def test_a_tenth_less_noise_would_be_noticed(name, kind, tmp_path, monkeypatch):
    """In every large question by itself: the check above can fail."""

    def less(counts, law, scale, *, threads=None):
        return add_noise(counts, law, Fraction(float(scale * Fraction(9, 10))), threads=threads)

    monkeypatch.setattr("prade.measuring.run.add_noise", less)
    found = p_values(released(tmp_path, name, kind)[1], truth(name))
    assert len(found) == LARGE[name] + 1
    assert max(found.values()) < ALPHA, found


def columns_of_noise(release, table):
    """The noise of the wide plan, one column a cell: total, low, high, young, two jobs."""
    noise, columns = table["noisy"].to_numpy() - truth("wide"), []
    for question in release.plan.questions:
        for part in question.parts:
            piece, noise = np.split(noise, [STATES * TOWNS * part.n_cells])
            columns += list(piece.reshape(-1, part.n_cells).T)
    assert len(columns) == 1 + 2 + 1 + 2
    return columns


@pytest.mark.parametrize("spent", SPENT, ids=" ".join)
def test_totals_parts_and_cells_have_noise_of_their_own(spent, measured):
    assert np.less(*largest_correlation(columns_of_noise(*measured("wide", *spent)), ALPHA))


@pytest.mark.parametrize("spent", SPENT, ids=" ".join)
def test_totals_have_the_standard_deviation_that_they_declare(spent, measured):
    """Of the mean of the total that was asked for and the sum of the halves; the other parts say nothing of it."""
    release, _ = measured("wide", *spent)
    totals, deviation = release.totals(0)
    errors = totals - truth("wide")[: STATES * TOWNS]
    assert off(errors, deviation) < FAR
    assert off(errors, deviation / 0.9) > FAR  # it would notice
    total, halves = release.plan.questions[:2]
    assert deviation == pytest.approx((1 / total.variance + 1 / (2 * halves.variance)) ** -0.5)


def off(errors, deviation):
    """How many standard errors the mean squared error is away from what is declared."""
    squares = errors**2
    return abs(squares.mean() - deviation**2) / squares.std() * np.sqrt(len(squares))
