"""The score against a slow one in pandas, written from the contest's rules, on generated tables."""

import numpy as np
import pandas as pd
import pytest

from prade.scoring.score import score
from worlds.contest import EDGES, contest_schema


def slow_score(truth, synthetic, by, pairs, bias=250):
    """Mean over groups of the mean distance; cells are whatever values occur, NaN among them."""
    groups = pd.concat([truth[by], synthetic[by]]).drop_duplicates()
    scores = []
    for _, place in groups.iterrows():
        one, other = (t[(t[by] == place).all(axis=1)] for t in (truth, synthetic))
        if not len(one) or not len(other) or abs(len(one) - len(other)) >= bias:
            scores.append(2.0)
            continue
        distances = []
        for pair in pairs:
            p, q = (t.value_counts(subset=list(pair), normalize=True, dropna=False) for t in (one, other))
            cells = set(p.index) | set(q.index)
            distances.append(sum(abs(p.get(cell, 0.0) - q.get(cell, 0.0)) for cell in cells))
        scores.append(np.mean(distances))
    return np.mean(scores)


def contest_like(rows, seed):
    """Invented rows in some of the contest's columns, with its numeric ranges."""
    generator = np.random.default_rng(seed)
    clock = 100 * generator.integers(0, 24, rows) + generator.integers(0, 60, rows)
    return pd.DataFrame(
        {
            "PUMA": generator.choice(["17-1001", "17-104", "39-100"], rows, p=[0.5, 0.4, 0.1]),
            "YEAR": generator.choice([2012, 2013], rows),
            "SEX": generator.integers(1, 3, rows),
            "AGE": generator.integers(0, 130, rows),
            "INCTOT": generator.integers(-5, 25, rows) * 5000,
            "HHWT": generator.integers(0, 60, rows) * 10.0,
            "DEPARTS": clock,
        }
    )


PARAMETERS = {
    "PUMA": {"dtype": "str", "values": ["17-1001", "17-104", "39-100"]},
    "YEAR": {"dtype": "uint32", "values": [2012, 2013]},
    "SEX": {"dtype": "uint8", "values": [1, 2]},
    "AGE": {"dtype": "uint8", "min": 0, "max": 135},
    "INCTOT": {"dtype": "int32"},
    "HHWT": {"dtype": "float"},
    "DEPARTS": {"dtype": "uint32", "min": 0, "max": 2359},
}


@pytest.mark.parametrize("bias", [250, 20])
def test_the_contests_schema_and_draw(bias):
    schema = contest_schema(PARAMETERS)
    truth, synthetic = contest_like(900, 1), contest_like(850, 2)
    # one group without synthetic rows, one without true ones
    synthetic = synthetic[~((synthetic.PUMA == "17-104") & (synthetic.YEAR == 2013))]
    truth = truth[~((truth.PUMA == "39-100") & (truth.YEAR == 2012))]
    found = score(truth, synthetic, schema, ["PUMA", "YEAR"], bias=bias)
    binned = [table.copy() for table in (truth, synthetic)]
    for table in binned:
        for name in ("AGE", "INCTOT", "HHWT", "DEPARTS"):
            table[name] = pd.cut(table[name], np.r_[-np.inf, list(EDGES[name]), np.inf]).cat.codes
    generator = np.random.RandomState(123456)
    columns = sorted(["SEX", "AGE", "INCTOT", "HHWT", "DEPARTS"])
    pairs = [generator.choice(columns, size=2, replace=False).tolist() for _ in range(50)]
    assert found.mean == pytest.approx(slow_score(*binned, ["PUMA", "YEAR"], pairs, bias), abs=1e-12)
    assert {"missing", "extra", ""} <= set(found.why)
    assert ("bias" in found.why) == (bias == 20)
