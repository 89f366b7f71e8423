"""What `score` takes, what it refuses, and what its results can be asked."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Column, DataError, Schema
from prade.data.public.joint import Coded, encode
from prade.data.read.tables import write_table
from prade.scoring.distances import distances_of, pair_errors
from prade.scoring.score import chosen_pairs, score
from worlds.reference import pair_distances

SCHEMA = Schema(
    [
        Column("PUMA", "group"),
        Column("SEX", "categorical", values=(1, 2)),
        Column("AGE", "numeric", edges=(18, 65), missing=True),
        Column("RACE", "categorical", values=("a", "b", "c")),
    ]
)


def rows(number, seed, places=(100, 200, 300)):
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "STATE": [17] * number,
            "PUMA": generator.choice(places, number),
            "SEX": generator.integers(1, 3, number),
            "AGE": pa.array(generator.integers(0, 90, number), mask=generator.random(number) < 0.1),
            "RACE": generator.choice(["a", "b", "c"], number),
        }
    )


TRUTH, SYNTHETIC = rows(300, 1), rows(280, 2)


@pytest.fixture(scope="module")
def expected():
    return score(TRUTH, SYNTHETIC, SCHEMA, "PUMA", pairs="all")


def same(found, expected):
    return np.array_equal(found.detail, expected.detail) and found.why == expected.why


def texts(table):
    return table.set_column(1, "PUMA", [[f"{value:05}" for value in table["PUMA"].to_pylist()]])


def categories(table):
    frame = table.to_pandas()
    return frame.assign(PUMA=pd.Categorical(frame["PUMA"].astype(float)))


@pytest.mark.parametrize("forms", [
    (pl.from_arrow, pl.from_arrow), (pa.Table.to_pydict, pa.Table.to_pydict), (categories, pa.table), (texts, pa.table),
    (texts, texts),
])  # fmt: skip
def test_every_form_of_a_table_names_the_same_groups(expected, forms):
    """Also the text "00100" is the number 100, as when measuring."""
    assert 0.0 < expected.mean < 2.0
    truth, synthetic = (form(table) for form, table in zip(forms, (TRUTH, SYNTHETIC), strict=True))
    assert same(score(truth, synthetic, SCHEMA, "PUMA", pairs="all"), expected)


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz", "csv"])
def test_files(expected, tmp_path, suffix):
    """The type of a CSV column is guessed, a parquet file's is declared."""
    path = tmp_path / f"rows.{suffix}"
    write_table(SYNTHETIC, path)
    assert same(score(texts(TRUTH), path, SCHEMA, "PUMA", pairs="all"), expected)
    assert same(score(TRUTH, str(path), SCHEMA, ["PUMA"], groups={"PUMA": [100, 200, 300]}, pairs="all"), expected)


def test_coded_tables_with_group_numbers(expected):
    sides = [(encode(SCHEMA, each), each["PUMA"].to_numpy() // 100 - 1) for each in (TRUTH, SYNTHETIC)]
    found = score(*sides, SCHEMA, "PUMA", groups={"PUMA": [100, 200, 300]}, pairs="all")
    assert same(found, expected)
    assert found.table() == expected.table()


def test_order_of_rows_groups_and_threads_does_not_matter(expected):
    shuffled = TRUTH.take(np.random.default_rng(0).permutation(len(TRUTH)))
    listed = {"PUMA": [300, 100, 200]}
    found = score(shuffled, SYNTHETIC, SCHEMA, "PUMA", groups=listed, pairs="all", threads=1)
    assert np.array_equal(found.detail, expected.detail[[2, 0, 1]])
    assert found.table()["PUMA"].to_pylist() == [300, 100, 200]


def test_true_rows_in_no_listed_group_are_left_out(expected):
    listed = {"PUMA": [100, 300]}
    kept = SYNTHETIC.filter(np.isin(SYNTHETIC["PUMA"].to_numpy(), [100, 300]))
    found = score(TRUTH, kept, SCHEMA, "PUMA", groups=listed, pairs="all")
    assert np.array_equal(found.detail, expected.detail[[0, 2]])
    assert found.true_rows.tolist() == expected.true_rows[[0, 2]].tolist()


def test_rows_without_a_group_value_make_no_group_and_group_columns_are_not_scored():
    holed = TRUTH.set_column(1, "PUMA", pa.array([None, *TRUTH["PUMA"].to_pylist()[1:]]))
    found = score(holed, SYNTHETIC, SCHEMA, "PUMA")
    assert found.table()["PUMA"].to_pylist() == [100, 200, 300]
    assert found.true_rows.sum() == len(TRUTH) - 1
    assert score(TRUTH, SYNTHETIC, SCHEMA, "SEX", pairs="all").pair_names == (("AGE", "RACE"),)


@pytest.mark.parametrize("times", [1, 3, 7, 11])
def test_the_table_against_itself_is_exactly_zero(times):
    found = score(TRUTH, pa.concat_tables([TRUTH] * times), SCHEMA, "PUMA", pairs="all", bias=None)
    assert (found.detail.max(), found.nist) == (0.0, 1000.0)


def test_the_penalty_for_bias_can_be_switched_off():
    many = pa.concat_tables([SYNTHETIC] * 10)
    for synthetic, bias, why in ((SYNTHETIC, 250, ""), (many, 250, "bias"), (many, None, "")):
        assert set(score(TRUTH, synthetic, SCHEMA, "PUMA", bias=bias).why) == {why}
    gone = score(TRUTH, SYNTHETIC.slice(0, 0), SCHEMA, "PUMA")
    assert (set(gone.why), gone.nist) == ({"missing"}, 0.0)


def test_pairs_are_drawn_by_seed():
    names = ["a", "b", "c", "d", "e"]
    assert chosen_pairs(names, 20, seed=1) == chosen_pairs(names[::-1], 20, seed=1)
    assert chosen_pairs(names, 20, seed=1) != chosen_pairs(names, 20, seed=2)
    assert chosen_pairs(names, 20, seed=1) == chosen_pairs(names, 40, seed=1)[:20]
    assert all(a != b for a, b in chosen_pairs(names, 200))
    found = score(TRUTH, SYNTHETIC, SCHEMA, "PUMA", pairs=7, seed=3)
    assert found.pair_names == chosen_pairs(["SEX", "AGE", "RACE"], 7, seed=3)
    assert found.detail.shape == (3, 7)


def test_what_a_score_says(expected):
    text = str(score(TRUTH, rows(100, 3, (100,)), SCHEMA, "PUMA", groups={"PUMA": [100, 200, 300, 400]}, pairs="all"))
    for part in (
        "NIST score", "3 groups, 3 pairs", "2 groups without synthetic rows, scored 2",
        "1 group without rows on either side, not counted", "worst group: PUMA 200 (2.0000)",
    ):  # fmt: skip
        assert part in text
    assert "bias" not in text
    worst = expected.pair_table().to_pylist()[0]
    assert worst["distance"] == expected.pairs.max()
    assert f"worst pair: {worst['first']}, {worst['second']}" in str(expected)


def test_json(expected):
    found = score(TRUTH, SYNTHETIC, SCHEMA, "PUMA", groups={"PUMA": [100, 200, 300, 400]}, pairs="all")
    back = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (back["mean"], back["nist"]) == (expected.mean, expected.nist)
    numbers = [int(each[0]) for each in (expected.true_rows, expected.synthetic_rows)]
    first = dict(zip(("PUMA", "true_rows", "synthetic_rows"), (100, *numbers), strict=True))
    assert back["groups"][0] == {**first, "score": expected.groups[0], "why": ""}
    assert back["groups"][3] == {"PUMA": 400, "true_rows": 0, "synthetic_rows": 0, "score": None, "why": "empty"}
    assert sorted(pair["distance"] for pair in back["pairs"]) == sorted(expected.pairs.tolist())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": 0}, "draw 1 or more"),
        ({"pairs": [("SEX", "SEX")]}, "is not a pair"),
        ({"pairs": [("SEX", "AGEP")]}, "no column 'AGEP' to score; did you mean 'AGE'"),
        ({"by": "PUMAS"}, "did you mean 'PUMA'"),
        ({"schema": SCHEMA.select(["PUMA", "SEX"]), "by": ["PUMA", "SEX"]}, "needs a column besides the group columns"),
        ({"groups": {"PUMA": [100, 200]}}, "synthetic rows are in no listed group"),
        ({"groups": {"PUMA": [1, 2]}}, "no row of the truth is in a listed group"),
        ({"groups": {"STATE": [17]}}, "the list of groups has no column 'PUMA'"),
        ({"synthetic": SYNTHETIC.drop_columns("SEX")}, "no column 'SEX'"),
        ({"synthetic": (encode(SCHEMA, SYNTHETIC), np.zeros(280, int))}, "give it as `groups`"),
        ({"truth": (TRUTH, np.zeros(300, int)), "groups": {"PUMA": [100]}}, "the truth is a tuple"),
        ({"truth": (encode(SCHEMA, TRUTH), np.ones(300, int)), "groups": {"PUMA": [100]}}, "one group number, 0 to 0"),
        ({"truth": TRUTH.slice(0, 0), "synthetic": SYNTHETIC.slice(0, 0)}, "at least one group"),
        ({"synthetic": SYNTHETIC.set_column(1, "PUMA", [["x"] * 280])}, r"write PUMA in different types"),
        ({"synthetic": SCHEMA, "schema": SYNTHETIC}, "give truth, synthetic rows, schema"),
    ],
)
def test_refusals(change, message):
    arguments = {"truth": TRUTH, "synthetic": SYNTHETIC, "schema": SCHEMA, "by": "PUMA", **change}
    with pytest.raises(DataError, match=message):
        score(**arguments)


SMALL = Schema.from_mbi({"x": 2, "y": 3, "z": 300})
ALL = (("x", "y"), ("x", "z"), ("z", "y"))


@st.composite
def coded_rows(draw):
    number = draw(st.integers(1, 12))
    codes = {
        column.name: np.array(draw(st.lists(st.integers(0, column.size - 1), min_size=number, max_size=number)))
        for column in SMALL
    }
    weights = draw(st.lists(st.integers(1, 5), min_size=number, max_size=number))
    return Coded(SMALL, codes, np.array(weights, float))


@given(coded_rows(), coded_rows())
def test_distances_are_those_of_the_marginals(p, q):
    p = Coded(SMALL, p.codes)
    found = distances_of(p.codes, q, ALL)
    assert np.allclose(found, pair_distances(p, q, ALL), rtol=0, atol=1e-14)
    assert np.array_equal(found, distances_of(p.codes, q, [pair[::-1] for pair in ALL]))


@given(coded_rows(), st.data())
def test_weights_are_repeated_rows(p, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(p), max_size=len(p))))
    group = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(p), max_size=len(p))))
    again = np.repeat(np.arange(len(p)), counts)
    repeated = {name: code[again] for name, code in p.codes.items()}
    truth = (p.codes, group)
    by_weight = pair_errors(SMALL, *truth, p.codes, group, 3, ALL, weights=counts.astype(float))
    by_row = pair_errors(SMALL, *truth, repeated, group[again], 3, ALL)
    assert np.array_equal(by_weight, by_row, equal_nan=True)
