"""One odd row changes its own counts only, and a release names nothing private.

That nothing else gets out of `measure` but noisy counts is the subject of `tests/property/test_noninterference.py`.
"""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from prade import Unit, Workload
from prade.measuring.run import measure
from prade.planning.questions import Level
from worlds.plans import ONE_ROW, ledger_for, plan_of
from worlds.secret_rows import HONEST, MALFORMED, SCHEMA, SECRET, csv_of


def true_release(private, folder, unit=ONE_ROW):
    """The release of a plan, without noise."""
    everybody = Level((), Workload.all_marginals(SCHEMA, 1), total=1)
    by_place = Level("PLACE", Workload.all_marginals(SCHEMA, 2))
    plan = plan_of(SCHEMA, everybody, by_place, groups={"PLACE": ["a", "b", "empty"]}, unit=unit)
    ledger = ledger_for(plan, folder / "ledger", 1000)
    place = folder / f"release-{len(list(folder.iterdir()))}"
    with patch("prade.measuring.run.add_noise", lambda counts, *_, **__: counts):
        return measure(plan, private, place, ledger, again=True).noisy


def largest_change(first, second):
    """In any part of any question: one row more or less is 1."""
    return max(np.abs(a - b).sum() for x, y in zip(first, second, strict=True) for a, b in zip(x, y, strict=True))


OPEN_QUOTE = b'70,m,"' + SECRET.encode() + b",a,9"


@pytest.mark.parametrize(
    "record",
    [*(record for record in MALFORMED if b"\n" not in record), OPEN_QUOTE],
    ids=lambda record: ascii(record[:30]),
)
def test_a_malformed_record_changes_at_most_one_row(record, tmp_path):
    header, lines = csv_of(HONEST * 50).split(b"\n", 1)
    found = []
    for name, text in (("without", lines), ("first", record + b"\n" + lines), ("last", lines + record + b"\n")):
        (tmp_path / f"{name}.csv").write_bytes(header + b"\n" + text)
        found.append(true_release(tmp_path / f"{name}.csv", tmp_path))
    assert largest_change(found[0], found[1]) <= 1
    assert largest_change(found[0], found[2]) <= 1


@pytest.mark.parametrize("unit", [Unit(1), Unit(1, person_id="ID")], ids=["rows", "persons"])
def test_rows_of_no_listed_place_change_nothing(unit, tmp_path):
    """Not even which rows of a person are counted: those elsewhere do not use up the bound."""
    names = ["AGE", "SEX", "CODE", "PLACE", "ID"]
    rows = [(age, sex, code, place, number) for number, (age, sex, code, place, _) in enumerate(HONEST * 5)]
    elsewhere = [(99, SECRET, "6", place, number) for number in range(20) for place in ("c", SECRET, None, "")]
    found = [true_release(pd.DataFrame(each, columns=names), tmp_path, unit) for each in (rows, rows + elsewhere)]
    assert largest_change(*found) == 0
    assert found[0][0][0].tolist() == [[15]]  # a place that is not listed is in no level


def test_a_place_without_rows_gets_noise_like_any_other(tmp_path):
    groups = {"PLACE": [f"place {number}" for number in range(20)]}
    plan = plan_of(SCHEMA, Level("PLACE", Workload.all_marginals(SCHEMA, 2)), groups=groups, budget="0.1")
    ledger = ledger_for(plan, tmp_path / "ledger")
    nobody = pd.DataFrame(HONEST, columns=["AGE", "SEX", "CODE", "PLACE", "ID"]).iloc[:0]
    for answers in measure(plan, nobody, tmp_path / "release", ledger).noisy:
        for counts in answers:
            assert len(counts) == 20
            assert (counts != 0).any(axis=0).all()  # each count is 0 with probability below 1/40: 40^-20 by chance


def test_a_release_names_neither_its_folder_nor_the_private_file(tmp_path):
    """It can be handed on as it is."""
    private = tmp_path / f"{SECRET}.csv"
    private.write_bytes(csv_of(HONEST))
    true_release(private, tmp_path)
    files = [path for path in tmp_path.rglob("release-*/*") if path.is_file()]
    assert len(files) == 4
    for path in files:
        assert bytes(tmp_path) not in path.read_bytes()
        assert SECRET.encode() not in path.read_bytes()
