"""No private value gets out of `measure` but through noisy counts: not by words, files, names, exit codes or failing.

Each run happens twice, in processes of their own: with rows that hold secrets, and without them. Everything that is
written is searched for the secrets, and everything that is said must be the same both times.
"""

import re
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column, Schema, Unit, Workload
from prade.measuring.run import measure
from prade.planning.questions import Level
from worlds.plans import ONE_ROW, ledger_for, plan_of
from worlds.secret_rows import HONEST, HUGE, MALFORMED, SECRET, csv_of, run, traces

MEASURE = """
import duckdb
from prade.measuring.run import measure
from prade.planning.plan import Level, Plan

def attempt(name, private, names=("AGE", "SEX", "CODE"), person="ID", folder="."):
    schema = Schema([columns[each] for each in names])
    everybody, by_place = Level((), Workload.all_marginals(schema, 1), total=1), Level("PLACE", Workload.all_marginals(
        schema, 2 if len(names) > 1 else 1))
    plan = Plan(name, schema, Budget.pure(1), Unit(1, person), [everybody, by_place], {"PLACE": ["a", "b", "empty"]})
    ledger = Ledger("ledger")
    ledger.open_dataset(name, plan.unit, Budget.pure(1))
    try:
        print(name, measure(plan, private, f"{folder}/release-{name}", ledger), ledger.remaining(name))
    finally:
        for entry in ledger.entries(name):
            print(name, "is", entry.state, [(each.stage, each.kind) for each in entry.failures])

LISTS = "duckdb://lists.db/lists"

def attempts():
    global broken_step
    for name in ("rows.parquet", "rows.csv", "malformed.csv", "rows.csv.gz", "lists.parquet"):
        yield name, {"private": name}
    yield "pandas", {"private": pandas.read_parquet("rows.parquet").astype(object)}
    yield "arrow", {"private": pyarrow.parquet.read_table("rows.parquet")}
    yield "wrong type", {"private": LISTS, "names": ("AGE", "LIST")}
    yield "no person", {"private": "rows.parquet", "person": "IDS"}
    yield "no column", {"private": "malformed.csv", "names": ("AGE", "HEIGHT")}
    yield "no folder", {"private": "rows.parquet", "folder": "nowhere"}
    yield "engine", {"private": "duckdb://lists.db/broken"}
    for step in ("counted", "prepared", "reserved", "drawn", "written", "sealed", "committed", "extracted"):
        broken_step = f"measure.{step}"
        yield step, {"private": "rows.parquet"}
    broken_step = None

if sys.argv[1] == "crash":
    attempt("crash", LISTS, ("AGE", "LIST"))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [run(folder / name, name == "with", MEASURE) for name in ("with", "without")]


def test_secrets_are_in_nothing_that_is_said_or_written(runs):
    _, said, written = runs[0]
    assert traces(said, written) == []
    names = [name for name in written if name.endswith("measurements.parquet")]
    kept = ["rows.parquet", "rows.csv", "malformed.csv", "rows.csv.gz", "lists.parquet", "pandas", "arrow"]
    assert {f"release-{name}/measurements.parquet" for name in kept} <= set(names)
    assert b"ledger" in b"".join(map(str.encode, written))
    assert not any(name.startswith("temporary") for name in written)  # the engine's own folder is gone


def test_what_is_said_is_the_same_with_and_without_secrets(runs):
    """So are success and failure, the exit code and the names of all files."""
    (code, said, written), (other_code, other_said, other_written) = runs
    assert code == other_code == 0
    assert said == other_said
    unfinished = re.compile(r"\.[0-9a-f]{16}\.unfinished")
    assert {unfinished.sub("", name) for name in written} == {unfinished.sub("", name) for name in other_written}


def test_all_ways_to_fail_were_tried(runs):
    """Else the tests above would say little."""
    text = runs[0][1][0].decode()
    failed = set(re.findall("^(.+?) (?:Data|Engine)Error ", text, re.MULTILINE))
    assert {"wrong type", "no person", "no column", "no folder", "engine", "drawn", "written", "committed"} <= failed
    for name in ("wrong type", "no person", "no column", "no folder", "prepared"):
        assert f"{name} is" not in text  # nothing was reserved
    assert "engine is failed [('count', 'ConversionException')]" in text
    assert "counted is failed [('count', 'OSError')]" in text
    assert "drawn is failed [('draw', 'OSError')]" in text


def test_an_error_that_nobody_catches_has_the_same_exit_code(tmp_path):
    found = [run(tmp_path / name, name == "with", MEASURE, "crash") for name in ("with", "without")]
    assert found[0][0] == found[1][0] == 1
    assert found[0][1] == found[1][1]
    assert b"DataError" in found[0][1][1]
    assert traces(*found[0][1:]) == []


def test_a_secret_that_gets_out_would_be_found(tmp_path):
    pq.write_table(pa.table({"x": [HUGE]}), tmp_path / "x.parquet")
    found = {"x.parquet": str(pq.read_table(tmp_path / "x.parquet").to_pylist()).encode()}
    assert traces([b"", b""], found) == [("x.parquet", b"8675309")]
    assert traces([b"", SECRET.encode()], {}) == [("stderr", b"hush"), ("stderr", b"zulu")]
    assert traces([b"", b""], {f"{SECRET}.txt": b""}) == [("names", b"hush"), ("names", b"zulu")]
    assert traces([b"", b""], {"bytes": HUGE.to_bytes(8, "little")}) != []


# ---------------------------------------------------------------------- one odd row changes its own counts only

SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=(18, 65), missing=True),
        Column("SEX", "categorical", values=("f", "m"), missing=True),
        Column("CODE", "categorical", values=(1, 2, 6)),
    ]
)


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


# ---------------------------------------------------------------------- places


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
