"""Answers that are more than counts: means, sums, quantiles, histograms, ratios, queries over groups' columns."""

import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from prade import Ask, Column, Level, Release, Schema, Settings, Workload, WorkloadError
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.estimating.levels.distributions import kept_weights
from prade.estimating.levels.estimates import Estimates, estimates_of, kept_estimates
from prade.queries.query import parse
from prade.release.derived_files import WEIGHTS
from worlds.plans import plan_of
from worlds.releases import invented, write_folder
from worlds.survey import FIVE_PLACES, PLACE, SEX, STATE, WORK, YEARS, people

WAGE = Column("WAGE", "numeric", edges=[10, 20, 50], min=0, max=1000, missing=True)
SCHEMA = Schema([STATE, PLACE, YEARS, SEX, WORK, WAGE])
ONES, PAIR = Workload.all_marginals(SCHEMA, 1), Workload.marginals(SCHEMA, [("AGE", "WORK")])


def table(seed=0, rows=600):
    found = people(seed, [1, 3], rows, places=("p", "q", "z"))
    wage = np.random.default_rng([seed, 1]).lognormal(3, 0.8, rows).clip(0, 1000)
    return found.append_column("WAGE", [np.where(np.array(found["WORK"]) == "none", np.nan, wage)])


PUBLIC = Public.of(SCHEMA, table(), ["STATE", "PLACE"])
PLAN = plan_of(SCHEMA, Level("STATE", ONES), Level("PLACE", [Ask(ONES, 2), Ask(PAIR)]), groups=FIVE_PLACES, budget=4)
RELEASE = invented(PLAN)
SHAPE = len(PUBLIC), 5


@pytest.fixture(scope="module")
def estimates():
    return Estimates.of(RELEASE, PUBLIC)


def rows_of(estimates, by=()):
    """For each combination of `by`: the estimated number of times that each public row occurs in it."""
    last, found = estimates.plan.groupings[-1], {}
    for number, values in enumerate(last.values):
        named = dict(zip(last.by, values, strict=True))
        key = tuple(named[name] for name in by)
        found[key] = found.get(key, 0.0) + estimates.totals[number] * estimates.weights(number)
    return found


def by_key(table, by):
    return {tuple(row[name] for name in by): row for row in table.to_pylist()}


@pytest.mark.parametrize("by", [(), ("STATE",), ("STATE", "PLACE"), ("PLACE", "STATE"), ("PLACE",)])
@pytest.mark.parametrize(
    "text",
    [
        "AGE >= 40 and WORK == 'full'",
        "STATE == 1 and AGE >= 65",
        "STATE == 1 or AGE >= 65",
        "not (STATE == 1 and PLACE in ('p', 'q')) and SEX == 2",
        "PLACE == 'p' and AGE >= 65 or PLACE == 'q' and WORK == 'full' or STATE == 2 and not SEX == 1",
        "STATE == 1",
        "STATE == 1 and STATE == 2",
    ],
)
def test_counts_are_those_of_the_weighted_rows(estimates, text, by):
    """The same as a person by person look at what the estimates say, with each person's group written on them."""
    last, expected, rows = estimates.plan.groupings[-1], {}, Counter()
    schema = Schema([*[column for column in SCHEMA if not column.groups], *PLAN.groups.columns])
    query = parse(text, schema)
    for number, values in enumerate(last.values):
        named = dict(zip(last.by, values, strict=True))
        codes = {
            column.name: np.full(len(PUBLIC), column.values.index(named[column.name])) for column in PLAN.groups.columns
        }
        inside = query.mask({**PUBLIC.prior.codes, **codes})
        key = tuple(named[name] for name in by)
        count = estimates.totals[number] * estimates.weights(number)[inside].sum()
        expected[key] = expected.get(key, 0.0) + count
        rows[key] += estimates.totals[number]
    table = estimates.answer(text, by=by)
    assert table.column_names == [*by, "count", "share", "sd", "low", "high", "basis"]
    assert table.equals(estimates.answer(text, by=by, execution=Execution(2)))
    found = by_key(table, by)
    assert {key: row["share"] * rows[key] for key, row in found.items()} == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert {key: row["count"] for key, row in found.items()} == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert all(row["low"] <= row["count"] <= row["high"] for row in found.values())


def test_a_sum_over_chosen_groups_has_their_error(estimates):
    chosen = estimates.answer("STATE == 1 and AGE >= 65").to_pylist()[0]
    states = by_key(estimates.answer("AGE >= 65", by="STATE"), ["STATE"])
    assert (chosen["low"], chosen["high"]) == pytest.approx((states[1,]["low"], states[1,]["high"]))
    places = by_key(estimates.answer("AGE >= 65", by=["STATE", "PLACE"]), ["STATE", "PLACE"])
    some = by_key(estimates.answer("PLACE == 'p' and AGE >= 65", by=["STATE", "PLACE"]), ["STATE", "PLACE"])
    assert some[1, "p"]["high"] == pytest.approx(places[1, "p"]["high"])
    assert (some[1, "q"]["count"], some[1, "q"]["sd"]) == (0, 0)


@pytest.mark.parametrize("by", [(), ("STATE",), ("STATE", "PLACE")])
def test_means_and_sums_are_those_of_the_weighted_rows(estimates, by):
    numbers, sex = PUBLIC.numbers["WAGE"], PUBLIC.prior.codes["SEX"]
    inside = ~np.isnan(numbers) & (sex == 1)
    means = by_key(estimates.answer("mean(WAGE) where SEX == 2", by=by), by)
    sums = by_key(estimates.answer("sum(WAGE) where SEX == 2", by=by), by)
    for key, times in rows_of(estimates, by).items():
        amount = (times * np.nan_to_num(numbers))[inside].sum()
        assert sums[key]["value"] == pytest.approx(amount, rel=1e-6)
        assert means[key]["value"] == pytest.approx(amount / times[inside].sum(), rel=1e-6)
        for row in (means[key], sums[key]):
            assert 0 <= row["low"] < row["value"] < row["high"]
            assert row["sd"] > 0
            assert row["basis"] == "model"


@pytest.mark.parametrize("at", [0.1, 0.5, 0.93])
def test_quantiles_are_those_of_the_weighted_rows(estimates, at):
    ages = PUBLIC.numbers["AGE"]
    order = np.argsort(ages, kind="stable")
    found = by_key(estimates.answer(f"quantile(AGE, {at})", by="STATE"), ["STATE"])
    for key, times in rows_of(estimates, ["STATE"]).items():
        reached = np.cumsum(times[order]) / times.sum()
        assert found[key]["value"] == ages[order][np.searchsorted(reached, at)]
        assert found[key]["low"] <= found[key]["value"] <= found[key]["high"]
        assert found[key]["high"] - found[key]["low"] < 40


def test_a_median_of_dates_is_a_date():
    import datetime

    days = np.datetime64("1990-01-01") + np.arange(300).astype("timedelta64[D]")
    since = Column("SINCE", "numeric", dates=True, edges=[datetime.date(1990, 3, 1), datetime.date(1990, 6, 1)])
    schema = Schema([since])
    public = Public.of(schema, pa.table({"SINCE": days}))
    plan = plan_of(schema, Level((), Workload.all_marginals(schema, 1)))
    row = Estimates.of(invented(plan), public).answer("median(SINCE)").to_pylist()[0]
    assert datetime.date(1990, 3, 1) <= row["low"] <= row["value"] <= row["high"] <= datetime.date(1990, 6, 1)


def test_histograms_are_marginals_of_the_rows_that_are_asked_for(estimates):
    whole, men = (estimates.answer(text, by="STATE") for text in ("histogram(WAGE)", "histogram(WAGE) where SEX == 1"))
    assert whole.column_names == ["STATE", "WAGE_from", "WAGE_to", "count", "share", "sd", "low", "high", "basis"]
    assert whole["WAGE_from"].to_pylist() == [0, 10, 20, 50] * 2
    assert whole["WAGE_to"].to_pylist() == [10, 20, 50, 1000] * 2
    marginal = estimates.marginal("WAGE", by="STATE").to_pandas().dropna(subset=["WAGE_from"])
    np.testing.assert_allclose(whole["count"].to_numpy(), marginal["count"])
    joint = estimates.marginal(["SEX", "WAGE"], by="STATE").to_pandas().dropna(subset=["WAGE_from"])
    np.testing.assert_allclose(men["count"].to_numpy(), joint[joint["SEX"] == 1]["count"])


def test_a_ratio_is_that_of_the_counts_and_at_most_one_for_a_part(estimates):
    of = "AGE >= 65"
    for query, inside in (("AGE >= 65 and SEX == 2", True), ("SEX == 2", False)):
        counts, wholes = (by_key(estimates.answer(text, by="STATE"), ["STATE"]) for text in (query, of))
        for key, row in by_key(estimates.answer(query, by="STATE", of=of), ["STATE"]).items():
            assert row["value"] == pytest.approx(counts[key]["count"] / wholes[key]["count"], rel=1e-6)
            assert 0 <= row["low"] < row["value"] < row["high"]
            assert row["high"] <= 1 if inside else row["high"] > 1
    same = estimates.answer(of, of=of).to_pylist()[0]
    assert (same["value"], same["sd"]) == pytest.approx((1, 0), abs=1e-5)


def test_where_nobody_is_left_there_is_no_value(estimates):
    """Never a NaN: a null."""
    nobody = "SEX == 1 and SEX == 2"
    for text in (f"mean(WAGE) where {nobody}", f"median(WAGE) where {nobody}"):
        row = estimates.answer(text).to_pylist()[0]
        assert [row[name] for name in ("value", "sd", "low", "high")] == [None] * 4
    row = estimates.answer("SEX == 1", of=nobody).to_pylist()[0]
    assert [row[name] for name in ("value", "sd", "low", "high")] == [None] * 4
    assert estimates.answer(f"sum(WAGE) where {nobody}").to_pylist()[0]["value"] == 0


def test_a_number_inside_a_bin_gets_the_answers_at_the_edges(estimates):
    with pytest.raises(WorkloadError) as refused:
        estimates.answer("AGE >= 50 and SEX == 1", by="STATE")
    said = str(refused.value)
    assert "the nearest edges are 40 and 65" in said
    for text in ("AGE >= 65 and SEX == 1", "AGE >= 40 and SEX == 1"):
        count = estimates.answer(text).to_pylist()[0]["count"]
        assert f"{text}: {count:,.0f} rows in all" in said


@pytest.mark.parametrize(
    ("text", "by", "expected"),
    [
        ("AGE >= 65", "STATE", "measured"),
        ("AGE >= 65", (), "summed"),
        ("AGE >= 65 and WORK == 'full'", ("STATE", "PLACE"), "measured"),
        ("AGE >= 65 or WORK == 'full'", ("PLACE", "STATE"), "measured"),
        ("AGE >= 65 and WORK == 'full'", "STATE", "summed"),
        ("AGE >= 65 and SEX == 1", "STATE", "model"),
        ("STATE == 1 and AGE >= 65", (), "summed"),
        ("STATE == 1 or SEX == 1 and WORK == 'full'", (), "model"),
        ("STATE == 1", (), "summed"),
        ("histogram(AGE)", "STATE", "measured"),
        ("mean(AGE)", "STATE", "model"),
    ],
)
def test_the_basis_of_an_answer(estimates, text, by, expected):
    assert set(estimates.answer(text, by=by)["basis"].to_pylist()) == {expected}


@pytest.fixture
def kept(tmp_path):
    noisy = [list(answers) for answers in RELEASE.noisy]
    release = Release.load(write_folder(tmp_path / "release", PLAN, noisy))
    made = estimates_of(release, PUBLIC)
    assert not (release.path / WEIGHTS).exists()
    made.answer("SEX == 1")  # the first answer writes them
    return release


QUESTIONS = ("AGE >= 65 and SEX == 2", "mean(WAGE) where SEX == 1", "median(AGE)", "STATE == 1 and SEX == 1")


@pytest.mark.parametrize("threads", [1, 2])
def test_kept_weights_answer_the_same_to_the_last_bit(kept, threads):
    quick, slow = kept_estimates(kept), kept_estimates(kept)
    slow.weights_when_asked = None
    assert kept_weights(kept, SHAPE) is not None
    for text in QUESTIONS:
        one = quick.answer(text, by="STATE", execution=Execution(threads))
        assert one.equals(slow.answer(text, by="STATE"))
    assert quick.kept_weights is not None


@pytest.mark.parametrize("damage", ["changed", "removed", "other estimates"])
def test_weights_that_do_not_belong_to_the_estimates_are_not_used(kept, damage, tmp_path):
    expected = [kept_estimates(kept).answer(text) for text in QUESTIONS]
    path = kept.path / WEIGHTS
    content = path.read_bytes()
    if damage == "changed":
        path.write_bytes(content[:-4] + bytes([content[-4] ^ 1]) + content[-3:])
    elif damage == "removed":
        path.unlink()
    else:
        old = shutil.copytree(kept.path, tmp_path / "old")
        estimates_of(kept, PUBLIC, Settings(own=0.5), anew=True)
        assert kept_weights(kept, SHAPE) is None
        expected = [kept_estimates(kept).answer(text) for text in QUESTIONS]
        for name in (WEIGHTS, "weights.json"):
            shutil.copy(old / name, kept.path / name)
    assert kept_weights(kept, SHAPE) is None
    assert [kept_estimates(kept).answer(text) for text in QUESTIONS] == expected


@pytest.mark.parametrize("asked_between", [False, True])
def test_estimates_that_were_replaced_neither_use_nor_write_the_weights_of_the_others(kept, asked_between):
    before = kept_estimates(kept)
    alone = Estimates.of(kept, PUBLIC).answer(QUESTIONS[0])
    other = estimates_of(kept, PUBLIC, Settings(own=0.5), anew=True)
    if asked_between:
        other.answer(QUESTIONS[0])
    assert before.answer(QUESTIONS[0]) == alone
    assert (kept_weights(kept, SHAPE) is not None) == asked_between
    assert other.answer(QUESTIONS[0]) == kept_estimates(kept).answer(QUESTIONS[0]) != alone
