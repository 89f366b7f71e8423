"""The metrics against other libraries, and against formulas written a second time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats.contingency import association
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from prade.scoring.evaluation import evaluate
from prade.scoring.metrics.measures import Choices, all_metrics, correlations, features, propensity
from prade.scoring.metrics.regressions import Fit, Formula, logistic, overlap, regression
from prade.scoring.sides import Side, k_marginal
from worlds.workers import SCHEMA, workers

TRUE, DRAWN = workers(900, 1), workers(800, 2, tilt=0.3)
TRUTH, SYNTHETIC = Side.of(SCHEMA, TRUE), Side.of(SCHEMA, DRAWN)
CUTS = {"AGE": [18, 30, 45, 65], "WAGE": [10, 20, 40, 60, 80], "INCOME": [10, 20, 40, 60, 80]}


def binned(table):
    """Cells as pandas cuts them; NaN is a cell of its own."""
    frame = table.to_pandas().drop(columns="TOWN")
    for name, cuts in CUTS.items():
        frame[name] = pd.cut(frame[name], [-np.inf, *cuts, np.inf], right=False).cat.codes
    return frame


@pytest.mark.parametrize("k", [1, 2, 3])
def test_k_marginals_as_pandas_counts_them(k):
    one, other = binned(TRUE), binned(DRAWN)
    distances = []
    for columns in combinations(one.columns, k):
        p, q = (each.value_counts(list(columns), normalize=True, dropna=False) for each in (one, other))
        distances.append(p.subtract(q, fill_value=0).abs().sum())
    found = k_marginal(TRUTH, {"synthetic": SYNTHETIC, "public": None}, k, 0)
    assert found["tables"] == found["of"] == len(distances)
    assert found["synthetic"]["distance"] == pytest.approx(np.mean(distances), abs=1e-12)
    assert found["synthetic"]["score"] == pytest.approx(500 * (2 - np.mean(distances)))
    assert found["public"] is None


def test_correlations_as_scipy_has_them():
    found, frame, cells = correlations(TRUTH), TRUE.to_pandas(), binned(TRUE)
    found = dict(zip(combinations(TRUTH.columns, 2), found, strict=True))
    both = frame[["WAGE", "INCOME"]].dropna()
    assert found["WAGE", "INCOME"] == pytest.approx(stats.pearsonr(both.WAGE, both.INCOME).statistic)
    for pair in (("SEX", "RACE"), ("AGE", "WORKS"), ("RACE", "WAGE")):
        counts = pd.crosstab(cells[pair[0]], cells[pair[1]].fillna("missing"))
        assert found[pair] == pytest.approx(association(counts.to_numpy(), "cramer"))


def test_logistic_as_sklearn_fits_it_and_as_log_odds_have_it():
    generator = np.random.default_rng(1)
    x = generator.normal(size=(500, 2))
    y = (generator.random(500) < 1 / (1 + np.exp(-x @ [1.0, -0.5]))).astype(float)
    fit = logistic(np.column_stack([np.ones(500), x]), y, np.ones(500))
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(fit.estimate, [*other.intercept_, *other.coef_[0]], atol=1e-5)
    # one two-valued predictor: the coefficient is the log odds ratio of a 2 x 2 table, with its known error
    a, b, c, d = 30, 70, 55, 45
    flag, outcome = np.repeat([1, 1, 0, 0], [a, b, c, d]), np.repeat([1.0, 0, 1, 0], [a, b, c, d])
    fit = logistic(np.column_stack([np.ones(200), flag]), outcome, np.ones(200))
    assert fit.estimate[1] == pytest.approx(np.log(a * d / (b * c)))
    assert fit.error[1] == pytest.approx(np.sqrt(1 / a + 1 / b + 1 / c + 1 / d))


def test_regressions_on_both_tables():
    sides = {"truth": TRUTH, "synthetic": SYNTHETIC, "public": None}
    found = regression(sides, Formula("INCOME", ("AGE", "RACE")), numeric=True)
    mean, deviation = (f(TRUE.to_pandas().dropna(subset="INCOME").AGE) for f in (np.mean, np.std))
    for name, table in (("truth", TRUE), ("synthetic", DRAWN)):
        rows = table.to_pandas().dropna(subset="INCOME")
        x = np.column_stack([(rows.AGE - mean) / deviation, rows.RACE == "b", rows.RACE == "c"])
        other = LinearRegression().fit(x, rows.INCOME)
        assert [each["term"] for each in found[name]["coefficients"]] == ["intercept", "AGE", "RACE b", "RACE c"]
        estimates = [each["estimate"] for each in found[name]["coefficients"]]
        np.testing.assert_allclose(estimates, [other.intercept_, *other.coef_], rtol=1e-9)
        assert found[name]["rows"] == len(rows)
    assert found["public"] is None
    chance = regression(sides, Formula("WORKS == 'yes'", ("SEX",)), numeric=False)
    rows = TRUE.to_pandas()
    odds = [
        np.log((rows.WORKS[rows["SEX"] == s] == "yes").mean() / (rows.WORKS[rows["SEX"] == s] != "yes").mean())
        for s in (1, 2)
    ]
    # the reference is the more frequent of the two
    common = int((rows.SEX == 2).sum() > (rows.SEX == 1).sum())
    expected = [odds[common], odds[1 - common] - odds[common]]
    np.testing.assert_allclose([each["estimate"] for each in chance["truth"]["coefficients"]], expected, rtol=1e-6)


def test_overlap_by_hand():
    """Intervals 0 to 4 and 2 to 4: two units in common, a half of one and all of the other."""
    half = 1.959963984540054

    def fit(low, high):
        return Fit(np.array([(low + high) / 2]), np.array([(high - low) / 2 / half]))

    assert overlap(fit(0, 4), fit(2, 4)) == pytest.approx([0.75])
    assert overlap(fit(0, 1), fit(2, 4)) == pytest.approx([0.0])
    assert overlap(fit(1, 3), fit(1, 3)) == pytest.approx([1.0])
    assert overlap(fit(2, 2), fit(1, 3)).tolist() == [1.0]
    assert overlap(fit(2, 2), fit(3, 4)).tolist() == [0.0]


def test_pmse_by_hand_and_auc_of_what_is_known():
    cells = features(TRUTH, SYNTHETIC)
    label = np.repeat([0, 1], [900, 800])
    chance = DecisionTreeClassifier(max_depth=5, random_state=7).fit(cells, label).predict_proba(cells)[:, 1]
    found = propensity(TRUTH, SYNTHETIC, seed=7)
    assert found["pmse"] == pytest.approx(np.mean((chance - 800 / 1700) ** 2))
    assert found["ratio"] == pytest.approx(found["pmse"] / found["expected"])
    assert 0.5 < found["auc"] < roc_auc_score(label, chance) + 0.2  # it also learns, but has not seen the rows


def test_matches_and_consistency_by_pandas():
    true, drawn = (table.drop_columns("TOWN").to_pandas() for table in (TRUE, DRAWN))
    drawn = pd.concat([drawn, true.iloc[:40]])  # 40 rows are those of true people
    found = all_metrics(TRUTH, Side.of(SCHEMA, drawn.assign(TOWN="p")), choices=Choices(sample=200, trees=4))
    unique = true[~true.duplicated(keep=False)]
    both = unique.merge(drawn.drop_duplicates(), how="inner")
    assert found["unique"] == {
        "unique": len(unique),
        "of": 900,
        "synthetic": {"matched": len(both), "share": pytest.approx(len(both) / len(unique))},
        "public": None,
    }
    assert len(both) >= 40
    assert found["consistency"]["rules"] == [
        {"low": "WAGE", "high": "INCOME", "rows": int(true.WAGE.notna().sum()), "truth": 0.0, "synthetic": 0.0}
        | {"public": None}
    ]
    broken = DRAWN.set_column(4, "WAGE", DRAWN["WAGE"].combine_chunks().fill_null(0).take(np.arange(800)[::-1]))
    mixed = broken.to_pandas()
    found = all_metrics(TRUTH, Side.of(SCHEMA, broken), choices=Choices(sample=200, trees=4))
    known = mixed.dropna(subset=["WAGE", "INCOME"])
    assert found["consistency"]["rules"][0]["synthetic"] == pytest.approx((known.WAGE > known.INCOME).mean())


def test_the_public_baseline_is_that_of_the_public_rows():
    """Towns p and q recur and are compared with their own public rows; r does not, and is compared with everybody's."""
    public = workers(700, 3, tilt=0.5)
    towns = np.array(public["TOWN"].to_pylist())
    public = public.set_column(0, "TOWN", [np.where(towns == "r", "z", towns)])
    found = evaluate(TRUE, DRAWN, SCHEMA, ["TOWN"], pairs="all", public=public, choices=None)
    true, other = (
        binned(TRUE).assign(TOWN=TRUE["TOWN"].to_pylist()),
        binned(public).assign(TOWN=public["TOWN"].to_pylist()),
    )
    errors = []
    for town in ("p", "q", "r"):
        mine = true[true["TOWN"] == town]
        theirs = other[other["TOWN"] == town] if town != "r" else other
        distances = []
        for pair in combinations(SCHEMA.coded, 2):
            p, q = (each.value_counts(list(pair), normalize=True, dropna=False) for each in (mine, theirs))
            distances.append(p.subtract(q, fill_value=0).abs().sum())
        errors.append(np.mean(distances))
    np.testing.assert_allclose(found.public.groups, errors, atol=1e-12)
    assert found.public.error == pytest.approx(np.mean(errors))
    assert found.public.ratio == pytest.approx(found.score.detail.mean() / np.mean(errors))
