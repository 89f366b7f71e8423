"""What holds for all metrics: perfect for the same rows, worse for others, indifferent to order, never NaN."""

import json

import numpy as np
import pyarrow as pa
import pytest

from prade import Column, DataError, Schema, score
from prade.data.public.public import Public
from prade.scoring.evaluation import Evaluation, PublicScore, evaluate
from prade.scoring.metrics.measures import INSTALL, OTHERS, Choices, all_metrics
from prade.scoring.metrics.regressions import Formula, usual_linear, usual_logistic
from prade.scoring.sides import Side
from worlds.workers import SCHEMA, workers

TRUE, DRAWN, PUBLIC = workers(700, 1), workers(600, 2, tilt=0.2), workers(500, 3, tilt=0.8)
FEW = Choices(trees=4)
TRUTH, SYNTHETIC, PUBLISHED = (Side.of(SCHEMA, each) for each in (TRUE, DRAWN, PUBLIC))


def lines(found, table="synthetic"):
    return {line["metric"]: line[table] for line in found["summary"]}


@pytest.fixture(scope="module")
def found():
    return all_metrics(TRUTH, SYNTHETIC, PUBLISHED)


def test_json_has_no_nan_and_every_metric_a_line(found):
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    assert {line["why"] for line in found["summary"]} == {""}
    assert len(found["summary"]) == 10
    assert all(line["synthetic"] is not None for line in found["summary"])
    assert found["rows"] == {"truth": 700, "synthetic": 600, "public": 500, "sample": 10_000, "seed": 0}


def test_the_same_rows_are_perfect():
    found = all_metrics(TRUTH, Side.of(SCHEMA, TRUE))
    best = {line["metric"]: line["best"] for line in found["summary"] if line["metric"] not in ("unique", "pmse-ratio")}
    assert {name: lines(found)[name] for name in best} == pytest.approx(best)
    assert found["propensity"]["synthetic"]["pmse"] == 0.0
    assert lines(found)["unique"] == 1.0
    assert {line["public"] for line in found["summary"]} == {None}


def test_rows_that_are_further_away_are_worse(found):
    """The public rows are tilted four times as much as the synthetic ones."""
    mine, theirs = lines(found), lines(found, "public")
    for name in ("1-marginal", "2-marginal", "3-marginal"):
        assert mine[name] > theirs[name]
    for name in ("pmse-ratio", "auc"):
        assert mine[name] < theirs[name]


def test_order_of_rows_and_categories_does_not_matter(found):
    """Of the public rows, which are the fewest: of other tables, another order is another sample."""
    order, race = np.random.default_rng(5).permutation(500), Column("RACE", "categorical", values=("c", "a", "b"))
    turned = Schema([race if column.name == "RACE" else column for column in SCHEMA.columns])
    again = all_metrics(*(Side.of(turned, each) for each in (TRUE, DRAWN, PUBLIC.take(order))))
    for table in ("synthetic", "public"):
        mine, theirs = lines(again, table), lines(found, table)
        assert mine.pop("auc") == pytest.approx(theirs.pop("auc"), abs=0.05)  # trees cut codes in their order
        del mine["pmse-ratio"], theirs["pmse-ratio"]
        assert mine == pytest.approx(theirs)


def test_a_seed_decides_everything():
    few = Choices(sample=150, seed=3, trees=4)
    first, again, other = (all_metrics(TRUTH, SYNTHETIC, choices=each) for each in (few, few, Choices(150, 4, trees=4)))
    assert first == again
    assert first["propensity"]["rows"] == 150
    assert first["propensity"] != other["propensity"]
    assert first["correlations"] == other["correlations"]  # of all rows


def test_weights_count():
    """Public rows with weights: whole tables by their weights, samples drawn in proportion."""
    old = np.array(PUBLIC["AGE"]) >= 45
    weighted = PUBLIC.append_column("W", [np.where(old, 1.0, 0.0)])
    public = Public.of(SCHEMA, weighted, weight="W")
    only = Side.of(SCHEMA, PUBLIC.filter(old))
    one, other = (all_metrics(TRUTH, SYNTHETIC, side, FEW) for side in (Side(public.prior, public.numbers), only))
    assert lines(one, "public") == pytest.approx(lines(other, "public"))
    drawn = Side(public.prior, public.numbers).drawn(100, 0)
    assert len(drawn) == 100
    assert drawn.numbers["AGE"].min() >= 45
    assert np.ptp(drawn.weights) == 0.0


def test_without_sklearn_tables_are_still_compared(monkeypatch, found):
    monkeypatch.setattr("prade.scoring.metrics.measures.find_spec", lambda name: None)
    without = all_metrics(TRUTH, SYNTHETIC, PUBLISHED)
    assert without["kmarginal"] == found["kmarginal"]
    assert all(without[name] == {"not_available": INSTALL} for name in OTHERS)
    assert "prade[metrics]" in INSTALL
    assert len({line["metric"] for line in without["summary"] if not line["why"]}) == 3


def whys(found):
    return {line["metric"]: line["why"] for line in found["summary"]}


@pytest.mark.parametrize("empty", ["synthetic", "truth", "public"])
def test_an_empty_table(empty):
    sides = {
        name: Side.of(SCHEMA, TRUE.slice(0, 0)) if name == empty else TRUTH for name in ("truth", "synthetic", "public")
    }
    assert set(whys(all_metrics(**sides)).values()) == {f"the {empty} table has no rows"}


@pytest.mark.parametrize("rows", [1, 30])
def test_tiny_tables(rows):
    found = all_metrics(Side.of(SCHEMA, TRUE.slice(0, rows)), Side.of(SCHEMA, DRAWN.slice(0, rows)))
    json.dumps(found, allow_nan=False)
    assert lines(found)["1-marginal"] is not None
    assert whys(found)["auc"] == f"each table needs 50 rows or more, one has {rows}"
    assert whys(found)["linear"]


def test_columns_of_one_value():
    flat = pa.table({name: [TRUE[name][20].as_py()] * 100 for name in TRUE.column_names})
    found = all_metrics(Side.of(SCHEMA, flat), Side.of(SCHEMA, flat))
    json.dumps(found, allow_nan=False)
    assert whys(found) == {
        **dict.fromkeys(whys(found), ""),
        "unique": "no row is unique in the truth",
        "pmse-ratio": "no column has more than one value",
        "auc": "no column has more than one value",
        "linear": "no predictor has two values that are frequent enough in every table",
        "logistic": "no predictor has two values that are frequent enough in every table",
        "correlations": "no pair of columns has two values or more in both tables",
        "consistency": "no two numeric columns are ordered in nearly all true rows",
    }


def test_a_single_column():
    schema = Schema([Column("SEX", "categorical", values=(1, 2))])
    sides = [Side.of(schema, {"SEX": [1, 2] * 40}), Side.of(schema, {"SEX": [1, 1, 2] * 40})]
    found = all_metrics(*sides, choices=FEW)
    json.dumps(found, allow_nan=False)
    assert lines(found)["1-marginal"] == pytest.approx(1000 * (1 - 1 / 6))
    assert whys(found)["2-marginal"] == "there are fewer than 2 columns"
    assert whys(found)["correlations"]
    assert whys(found)["linear"] == "no column is numeric, so none can be the outcome"
    assert whys(found)["logistic"] == "no other column can serve as a predictor"


def test_predictors_that_follow_from_each_other_and_outcomes_that_are_certain():
    schema = Schema([*SCHEMA.columns, Column("SAME", "numeric", edges=(18,))])
    sides = [Side.of(schema, each.append_column("SAME", each["AGE"])) for each in (TRUE, DRAWN)]
    twice, certain = Formula("INCOME", ("AGE", "SAME")), Formula("AGE < 18", ("WORKS", "SAME"))
    found = whys(all_metrics(*sides, choices=Choices(linear=twice, logistic=certain, trees=4)))
    assert found["linear"] == "one predictor follows from the others; name others"
    assert "for certain" in found["logistic"]


def test_usual_regressions():
    """Wages and incomes may be missing: they do not explain others, because rows without them would be left out."""
    assert usual_linear(SCHEMA, SCHEMA.coded) == Formula("WAGE", ("AGE", "SEX", "RACE", "WORKS"))
    assert usual_logistic(SCHEMA, SCHEMA.coded) == Formula("WORKS == 'no'", ("AGE", "SEX", "RACE"))


@pytest.mark.parametrize(
    ("linear", "message"),
    [
        ("INCOME", "write the outcome and its predictors"),
        ("INCOM ~ AGE", "did you mean 'INCOME'"),
        ("INCOME ~ TOWN", "the table has no column 'TOWN' to use in a regression"),
        ("SEX ~ AGE", "is not numeric"),
        ("INCOME ~ AGE + AGE", "a column twice"),
    ],
)
def test_regressions_that_are_refused(linear, message):
    with pytest.raises(DataError, match=message):
        all_metrics(TRUTH, SYNTHETIC, choices=Choices(linear=Formula.read(linear)))
    for wrong, words in (({"sample": 0}, "rows; give a number"), ({"seed": -1}, "0 or more")):
        with pytest.raises(DataError, match=words):
            Choices(**wrong)


def test_an_evaluation_is_the_score_and_more():
    found = evaluate(TRUE, DRAWN, SCHEMA, ["TOWN"], public=PUBLIC, choices=Choices(sample=100, trees=4)).to_dict()
    json.dumps(found, allow_nan=False)
    assert found["metrics"]["rows"]["truth"] == 700
    assert 0 < found["public"]["ratio"] < 1
    scores = [place["score"] for place in found["worst_places"]]
    assert (len(scores), scores) == (3, sorted(scores, reverse=True))
    assert all(place["public"] > 0 for place in found["worst_places"])
    assert found["worst_pairs"][0]["distance"] == pytest.approx(max(pair["distance"] for pair in found["pairs"]))
    assert len({(pair["first"], pair["second"]) for pair in found["worst_pairs"]}) == 10


def test_rows_in_no_listed_group_and_group_columns_do_not_count():
    listed = {"TOWN": ["p", "q"]}
    kept = DRAWN.filter(np.array(DRAWN["TOWN"].to_pylist()) != "r")
    found = evaluate(TRUE, kept, SCHEMA, ["TOWN"], groups=listed, choices=Choices(sample=100, trees=4))
    assert found.metrics["rows"]["truth"] == sum(town != "r" for town in TRUE["TOWN"].to_pylist())
    by_sex = evaluate(TRUE, DRAWN, SCHEMA, ["SEX"], choices=Choices(sample=100, trees=4))
    assert by_sex.metrics["kmarginal"][0]["of"] == len(SCHEMA.coded) - 1


def test_a_pair_that_was_drawn_twice_is_named_once():
    scored = score(TRUE, DRAWN, SCHEMA, "TOWN", pairs=[("SEX", "AGE"), ("AGE", "SEX"), ("WAGE", "RACE")])
    public = PublicScore(np.array([[0.1, 0.1, 0.2]]), np.array([0.1]))
    found = Evaluation(scored, public, None).worst_pairs()
    assert [tuple(each.values()) for each in found] == [
        ("WAGE", "RACE", scored.pairs[2], 0.2),
        ("SEX", "AGE", scored.pairs[0], 0.1),
    ]
