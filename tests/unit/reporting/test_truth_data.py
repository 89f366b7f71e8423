"""The truth's part of the report's data: what it must contain, and that its numbers are those of the score."""

import json
from itertools import combinations

import numpy as np
import pytest

from prade import Ask, Level, Release, Workload, score
from prade.data.public.joint import encode
from prade.data.read.tables import write_table
from prade.estimating.levels.estimates import kept_estimates
from prade.measuring.run import measure
from prade.pipeline import sample
from prade.reporting.html import unpacked
from prade.reporting.truth import coded_rows, truth_data, truth_of
from worlds.plans import ledger_for, plan_of
from worlds.reference import pair_distances
from worlds.releases import write_rows
from worlds.workers import SCHEMA, workers

ONES = Workload.all_marginals(SCHEMA, 1)
TRUE, PUBLIC = workers(500, 1), workers(400, 2, tilt=0.5)
TOWNS = {"TOWN": ["p", "q", "r", "empty"]}
COLUMNS = SCHEMA.coded


@pytest.fixture(scope="module")
def estimates(tmp_path_factory):
    home = tmp_path_factory.mktemp("truth")
    write_table(TRUE, home / "private.parquet")
    plan = plan_of(SCHEMA, Level("TOWN", Ask(ONES, 1), total=1), groups=TOWNS, budget=5)
    release = measure(plan, home / "private.parquet", home / "release", ledger_for(plan, home / "prade.ledger"))
    write_rows(sample(release, PUBLIC), release)
    return kept_estimates(Release.load(home / "release"))


@pytest.fixture(scope="module")
def data(estimates):
    drawn = coded_rows(estimates.plan, estimates.release.path / "synthetic.parquet")
    return truth_data(estimates, truth_of(estimates, TRUE, drawn))


def test_it_is_json_with_the_promised_keys(data):
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {
        *("score", "nist", "pairs", "synthetic", "prior", "ratio", "priorError", "syntheticError", "sentence"),
        *("worst_pairs", "worst_places", "heat", "metrics"),
    }
    assert data["metrics"]["rows"]["public"] == 400


def test_the_score_and_its_ratio(data, estimates):
    again = score(TRUE, estimates.release.path / "synthetic.parquet", SCHEMA, "TOWN", groups=TOWNS)
    assert data["score"] == pytest.approx(again.mean)
    assert data["nist"] == pytest.approx(again.nist)
    assert data["ratio"] == pytest.approx(data["synthetic"] / data["prior"])
    assert data["sentence"] == f"The synthetic rows have {100 * data['ratio']:.0f} % of the public table's error."
    assert data["priorError"][3] is None  # nobody lives there
    assert data["prior"] == pytest.approx(np.mean(data["priorError"][:3]))
    assert data["synthetic"] == pytest.approx(np.mean(data["syntheticError"][:3]))


def test_the_heat_has_every_pair_and_every_column(data, estimates):
    heat = {name: unpacked(data["heat"][name]) for name in ("places", "whole", "public")}
    for each in heat.values():
        assert each.shape == (len(COLUMNS), len(COLUMNS))
        np.testing.assert_array_equal(each, each.T)
    path = estimates.release.path / "synthetic.parquet"
    scored = score(TRUE, path, SCHEMA, "TOWN", groups=TOWNS, pairs="all")
    pairs = list(combinations(range(len(COLUMNS)), 2))
    places = scored.detail[:3].mean(axis=0)
    np.testing.assert_allclose([heat["places"][pair] for pair in pairs], places, atol=3e-5)
    whole = pair_distances(encode(SCHEMA, TRUE), encode(SCHEMA, path))
    np.testing.assert_allclose([heat["whole"][pair] for pair in pairs], whole, atol=3e-5)
    public = pair_distances(encode(SCHEMA, TRUE), encode(SCHEMA, PUBLIC))
    np.testing.assert_allclose([heat["public"][pair] for pair in pairs], public, atol=3e-5)
    sex = np.array(TRUE["SEX"]), np.array(PUBLIC["SEX"])
    assert heat["public"][1, 1] == pytest.approx(2 * abs((sex[0] == 1).mean() - (sex[1] == 1).mean()), abs=3e-5)


def test_worst_pairs_and_places_are_the_worst(data):
    places = unpacked(data["heat"]["places"])
    index = {name: k for k, name in enumerate(COLUMNS)}
    found = [pair["places"] for pair in data["worst_pairs"]]
    largest = sorted((places[pair] for pair in combinations(range(len(COLUMNS)), 2)), reverse=True)[:10]
    np.testing.assert_allclose(found, largest, atol=3e-5)
    first = data["worst_pairs"][0]
    assert places[index[first["first"]], index[first["second"]]] == pytest.approx(first["places"], abs=3e-5)
    assert set(first) == {"first", "second", "places", "whole", "public"}
    worst = data["worst_places"]
    assert [place["score"] for place in worst] == sorted((place["score"] for place in worst), reverse=True)
    for place in worst:
        if place["true_rows"]:
            assert place["distance"] == pytest.approx(data["syntheticError"][place["group"]])
            assert place["public"] == pytest.approx(data["priorError"][place["group"]])
        assert place["view"] == 1
