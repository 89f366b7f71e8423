"""An attacker's view of `measure`: how surely does a release tell whether one person is in the table?

The attacker knows everything but that one person: all other rows, the plan, the law of the noise. A release of many
worlds, which share no row, is as many independent releases; in half of them the person is there. For an event S let
p = P(S | with) and q = P(S | without). Differential privacy says p <= exp(epsilon) q + delta, so that

    log((p_low - delta) / q_high)    with Clopper and Pearson's exact bounds p_low on p and q_high on q

is a lower confidence bound on epsilon. It has to stay below the claim, and to exceed it for copies of the code that
were broken on purpose. Noise takes no seed: the bounds of all audits of this file together are wrong less than once in
10,000 runs (`FALSE_ALARM`). Broken copies go uncaught less often: their bounds are more than five of their own standard
deviations above the claim (25 simulations each, when the shares and the number of worlds were chosen).
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget, Schema, Unit, Workload
from prade.measuring.noise import add_noise
from prade.measuring.run import measure
from prade.planning.questions import Ask, Level
from prade.queries.parts import Marginal, Predicate
from prade.queries.query import parse
from worlds.chance import largest_correlation, proved_epsilon
from worlds.plans import ledger_for, plan_of

FALSE_ALARM = 1e-4
AUDITS = 2 * (2 + 1)  # under both laws: by likelihood ratio and by contrasts, and that separate releases differ
ALPHA = FALSE_ALARM / AUDITS
WORLDS, INNER, CALLS = 12_000, 120, 20  # worlds in all; how they are numbered; calls of measure that share them
DELTA = Fraction(1, 20)
BUDGETS = {"laplace": Budget.pure(3), "gaussian": Budget.zcdp("1/2")}

SCHEMA = Schema.from_mbi({"X": 2, "Y": 2})
X, Y = Marginal.of(SCHEMA, ["X"]), Marginal.of(SCHEMA, ["Y"])
BOTH = Predicate(parse("X == 0 and Y == 1", SCHEMA))
OTHERS = [(0, 0), (1, 1), (1, 1)]
PERSON = [(0, 1), (0, 1)]  # two rows alike move each count as far as two rows can


def audited_plan(budget, worlds):
    """Two levels, two parts that cover and one that does not, uneven shares, a total; by world."""
    levels = [
        Level(["OUTER", "INNER"], [Ask(Workload(SCHEMA, [X, Y]), 6)], total=1),
        Level("PLACE", [Ask(Workload(SCHEMA, [Y, BOTH]), 1)], total=0),
    ]
    groups = {**places(worlds), "PLACE": np.arange(worlds)}
    return plan_of(SCHEMA, *levels, groups=groups, budget=budget, unit=Unit(2), dataset="worlds")


def places(worlds):
    return {"OUTER": np.arange(worlds) // INNER, "INNER": np.arange(worlds) % INNER}


def present(worlds):
    return np.arange(worlds) % 2 == 1


def rows_of(worlds):
    each = [(world, *row) for world in range(worlds) for row in OTHERS + PERSON * (world % 2)]
    world, x, y = (np.array(column) for column in zip(*each, strict=True))
    named = {name: values[world] for name, values in places(worlds).items()}
    return pa.table({**named, "PLACE": world, "X": x, "Y": y})


def true_counts(rows):
    """Of one world, in the order of the file, counted by hand."""
    x, y = np.array(rows).T
    one = [len(rows), *np.bincount(x, minlength=2), *np.bincount(y, minlength=2)]
    return np.array([*one, *np.bincount(y, minlength=2), sum((x == 0) & (y == 1))])


WITHOUT, WITH = true_counts(OTHERS), true_counts(OTHERS + PERSON)


def release(folder, plan, worlds, number):
    """Noisy counts [worlds, counts of a world], their scales and their law, as the file has them."""
    ledger = ledger_for(plan, folder / "ledger", plan.budget * 10_000)
    measure(plan, rows_of(worlds), folder / f"release-{number}", ledger, again=True)
    table = pq.read_table(folder / f"release-{number}" / "measurements.parquet")
    pieces, start = [], 0
    for cells in (1, 2, 2, 2, 1):
        piece = table.slice(start, worlds * cells)
        pieces.append([np.reshape(piece[name].to_numpy(), (worlds, cells)) for name in ("noisy", "scale")])
        start += worlds * cells
    assert start == table.num_rows
    (law,) = set(table["law"].to_pylist())
    return *(np.concatenate(each, axis=1) for each in zip(*pieces, strict=True)), law


def likelihood_ratio(noisy, scale, law):
    """log P(release | with) / P(release | without): no statistic tells the two apart better, if the law is true."""
    if law == "laplace":
        return ((np.abs(noisy - WITHOUT) - np.abs(noisy - WITH)) / scale).sum(axis=1)
    return (((noisy - WITHOUT) ** 2 - (noisy - WITH) ** 2) / (2 * scale**2)).sum(axis=1)


def contrasts(noisy):
    """Whether two counts of a world have the same noise, assuming that the person is there: one column a pair."""
    noise = noisy - WITH
    first, second = np.triu_indices(noise.shape[1], 1)
    return noise[:, first] == noise[:, second]


def claim_of(budget):
    return (budget, 0) if budget.kind == "pure" else (budget.as_approx(DELTA), float(DELTA))


def audited(noisy, scale, law, budget):
    """What two attacks prove about epsilon, and what is claimed."""
    claim, delta = claim_of(budget)
    there = present(len(noisy))
    thresholds = float(claim.epsilon) * np.arange(0.1, 2.5, 0.1)
    ratios = likelihood_ratio(noisy, scale, law)[:, None] >= thresholds - 1e-9
    proved = (proved_epsilon(events, there, delta, ALPHA) for events in (ratios, contrasts(noisy)))
    return *proved, float(claim.epsilon)


@pytest.mark.parametrize("law", BUDGETS)
def test_separate_releases_prove_no_more_than_is_claimed(law, tmp_path):
    """By separate calls of `measure`; what is drawn in one says nothing about the others."""
    worlds = WORLDS // CALLS
    plan = audited_plan(BUDGETS[law], worlds)
    found = [release(tmp_path, plan, worlds, number) for number in range(CALLS)]
    noisy, scale = (np.concatenate([each[place] for each in found]) for place in (0, 1))
    by_ratio, by_contrast, claim = audited(noisy, scale, law, plan.budget)
    assert max(by_ratio, by_contrast) <= claim
    assert by_ratio > claim / 5  # it does learn something

    noise = (noisy - np.where(present(len(noisy))[:, None], WITH, WITHOUT)) / scale
    # in units of its own scale; of variances v, a correlation would vary mean(v^2) / mean(v)^2 times as much
    assert np.less(*largest_correlation(noise.reshape(CALLS, -1), ALPHA))


def test_noise_that_two_calls_share_would_be_noticed():
    """All calls have noise of their own, but for one that has a tenth of another one's."""
    calls = np.random.default_rng(4).laplace(size=(CALLS, 8 * WORLDS // CALLS))
    assert np.less(*largest_correlation(calls, ALPHA))
    calls[0, : calls.shape[1] // 10] = calls[1, : calls.shape[1] // 10]
    assert np.greater(*largest_correlation(calls, ALPHA))


def half_the_noise(monkeypatch):
    def less(counts, law, scale, *, threads=None):
        return add_noise(counts, law, scale / 2, threads=threads)

    monkeypatch.setattr("prade.measuring.run.add_noise", less)


def forgets_the_number_of_parts(monkeypatch):
    monkeypatch.setattr(Workload, "per_row", 1)


def forgets_max_rows(monkeypatch):
    monkeypatch.setattr(Unit, "rows", 1)


def uses_noise_twice(monkeypatch):
    """Parts of one shape and scale get the same noise."""
    kept = {}

    def again(counts, law, scale, *, threads=None):
        key = (counts.shape, scale)
        if key not in kept:
            kept[key] = add_noise(np.zeros_like(counts), law, scale, threads=threads)
        return counts + kept[key]

    monkeypatch.setattr("prade.measuring.run.add_noise", again)


@pytest.mark.parametrize(
    ("law", "fault"),
    [
        ("laplace", half_the_noise),
        ("laplace", forgets_the_number_of_parts),
        ("laplace", forgets_max_rows),
        ("laplace", uses_noise_twice),
        ("gaussian", half_the_noise),
        ("gaussian", forgets_max_rows),
        ("gaussian", uses_noise_twice),
    ],
)
def test_broken_copies_are_caught(law, fault, tmp_path, monkeypatch):
    fault(monkeypatch)
    plan = audited_plan(BUDGETS[law], WORLDS)
    noisy, scale, declared = release(tmp_path, plan, WORLDS, 0)
    assert declared == law
    by_ratio, by_contrast, claim = audited(noisy, scale, law, plan.budget)
    assert (by_contrast if fault is uses_noise_twice else by_ratio) > claim
