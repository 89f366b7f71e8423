"""The contest's score on tables small enough to score by hand, and its bins."""

import numpy as np
import pytest

from prade import Column, Schema
from prade.scoring.score import score
from worlds.contest import contest_schema

SCHEMA = Schema(
    [
        Column("SEX", "categorical", values=(1, 2)),
        Column("AGE", "numeric", edges=(18, 65), missing=True),
        Column("RACE", "categorical", values=(1, 2)),
    ]
)
TOWNS = {"TOWN": ["a", "b", "c", "d", "e", "f"]}


def table(*blocks):
    """A table from (town, sex, age, race, times) entries."""
    rows = [(town, sex, age, race) for town, sex, age, race, times in blocks for _ in range(times)]
    return dict(zip(("TOWN", "SEX", "AGE", "RACE"), map(list, zip(*rows, strict=True)), strict=True))


TRUTH = table(
    ("a", 1, 3, 1, 1),
    ("a", 1, 70, 1, 1),
    ("a", 2, 70, 2, 1),
    ("a", 2, None, 2, 1),
    ("b", 1, 20, 1, 1),
    ("c", 1, 20, 1, 1),
    ("d", 1, 20, 1, 3),
)
SYNTHETIC = table(
    ("a", 1, 80, 1, 1), ("a", 2, 90, 1, 1), ("b", 1, 30, 1, 251), ("c", 1, 30, 1, 250), ("e", 1, 30, 1, 5)
)


@pytest.fixture(scope="module")
def worked():
    return score(TRUTH, SYNTHETIC, SCHEMA, "TOWN", groups=TOWNS, pairs="all")


def test_distances_by_hand(worked):
    # Town a, shares of the truth against those of the synthetic rows (its two rows are both 65 or older):
    #   SEX AGE    1 young 1/4 : 0    1 old 1/4 : 1/2    2 old 1/4 : 1/2    2 missing 1/4 : 0      1
    #   SEX RACE   1 1     1/2 : 1/2  2 1   0   : 1/2    2 2   1/2 : 0                             1
    #   AGE RACE   young 1 1/4 : 0    old 1 1/4 : 1      old 2 1/4 : 0      missing 2 1/4 : 0      3/2
    assert worked.pair_names == (("SEX", "AGE"), ("SEX", "RACE"), ("AGE", "RACE"))
    assert worked.detail[0].tolist() == [1.0, 1.0, 1.5]
    # Towns b and c have the same one kind of person on both sides (20 and 30 share a bin), d and e only on one.
    assert worked.detail[1:5].tolist() == [[0.0] * 3, [0.0] * 3, [2.0] * 3, [2.0] * 3]
    assert np.isnan(worked.detail[5]).all()


def test_groups_by_hand(worked):
    # b is off by 251 - 1 = 250 rows, c by 249; d has no synthetic rows, e no true ones, f neither.
    assert worked.why == ("", "bias", "", "missing", "extra", "empty")
    assert worked.groups[:5].tolist() == [3.5 / 3, 2.0, 0.0, 2.0, 2.0]
    assert np.isnan(worked.groups[5])
    assert worked.true_rows.tolist() == [4, 1, 1, 3, 0, 0]
    assert worked.synthetic_rows.tolist() == [2, 251, 250, 0, 5, 0]


def test_totals_by_hand(worked):
    # (7/6 + 2 + 0 + 2 + 2) / 5 = 43/30, and 1000 (1 - 43/60) = 17000/60
    assert worked.mean == pytest.approx(43 / 30, abs=1e-15)
    assert worked.nist == pytest.approx(17000 / 60, abs=1e-12)
    # before the penalty for bias: (1 + 0 + 0 + 2 + 2) / 5 twice, (3/2 + 0 + 0 + 2 + 2) / 5
    assert worked.pairs.tolist() == [1.0, 1.0, 1.1]


@pytest.mark.parametrize(
    ("column", "value", "other", "distance"),
    [
        # bins are closed above: (-inf, 20], (20, 25], ... for AGE, (-inf, 0], (0, 5000], ... for incomes
        ("AGE", 20, 0, 0.0),
        ("AGE", 20, 21, 2.0),
        ("INCTOT", -5, 0, 0.0),
        ("INCTOT", 0, 1, 2.0),
        ("POVERTY", 20, 21, 2.0),
        ("HHWT", 20.0, 20.5, 2.0),
        # clock times: (700, 715], (715, 730], (730, 745], (745, 800]
        ("DEPARTS", 730, 731, 2.0),
        ("ARRIVES", 759, 800, 0.0),
    ],
)
def test_the_contests_bins(shared_data, column, value, other, distance):
    schema = contest_schema(shared_data / "contest_sprint2_parameters.json")
    place = {"PUMA": ["17-1001"], "YEAR": [2012], "SEX": [1]}
    found = score(
        {**place, column: [value]}, {**place, column: [other]}, schema, ["PUMA", "YEAR"], pairs=[("SEX", column)]
    )
    assert found.mean == distance
    assert found.nist == 1000 * (1 - distance / 2)
