"""With the noise held fixed, whatever a run writes or says is the same for any two private tables.

All runs of a kind are compared with that on an empty table; what is equal to the same thing is equal to each other.
"""

import logging
import os
import sys
import warnings
from pathlib import Path

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given, settings

from prade import Budget, Column, Schema, Synthesizer, Unit
from prade.core.execution import Execution
from prade.data.read.tables import write_table
from worlds.observation import differences, observing, run_command
from worlds.plans import ledger_for
from worlds.private_tables import (
    ALL,
    EMPTY,
    GROUPS,
    LEDGER,
    NAMES,
    OTHER_TYPES,
    PERSONS,
    PLAN,
    SCHEMA,
    TABLES,
    Runs,
    csv,
    many,
    pandas,
    pandas_objects,
    parquet,
    parquet_files,
    plan_for,
    polars,
    pyarrow_table,
    succeeded,
    typed,
)
from worlds.secret_rows import MALFORMED


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_kind_of_source(kind, runs):
    nobody = succeeded(runs.measured(kind, EMPTY))
    for name in ("thousands", "wild"):
        assert differences(runs.measured(kind, TABLES[name]), nobody) == [], name


@pytest.mark.parametrize(
    ("unit", "budget"),
    [
        (PERSONS, Budget.pure(1)),
        (Unit(1), Budget.zcdp("1/8")),
        (Unit(3, neighbours="replace"), Budget.approx(1, "1e-9")),
    ],
    ids=["pure", "zcdp", "approx"],
)
def test_every_kind_of_promise(unit, budget, runs):
    names = ("empty", "one row", "all missing", "all elsewhere")
    nobody, *others = (runs.measured(parquet, TABLES[name], plan_for(unit, budget)) for name in names)
    for other in others:
        assert differences(other, succeeded(nobody)) == []


@pytest.mark.parametrize(
    "kind", [parquet, parquet_files, pandas, polars, pyarrow_table], ids=lambda kind: kind.__name__
)
def test_tables_with_other_types(kind, runs):
    nobody = succeeded(runs.measured(kind, EMPTY))
    for table in OTHER_TYPES:
        assert differences(runs.measured(kind, table), nobody) == [], table.schema


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["f", "m", "a", "b", "70", "20.0", 3, 20.0]),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.decimals(),
)
OBJECTS = st.lists(st.tuples(*[CELLS] * len(NAMES)), max_size=8)
LONGS, TEXTS = st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.text(max_size=5)
PLACES = st.none() | st.sampled_from(["a", "b", "c", ""])
TYPED = st.lists(st.tuples(LONGS, TEXTS, st.none() | st.floats(), PLACES, LONGS), max_size=8)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A place for all examples, and the run without rows of each kind of source."""
    runs = Runs(tmp_path_factory.mktemp("examples"))
    return runs, {kind: succeeded(runs.measured(kind, EMPTY)) for kind in (pandas_objects, parquet, csv)}


@settings(max_examples=8)
@given(rows=OBJECTS)
def test_any_python_objects(rows, seen):
    runs, nobody = seen
    frame = pd.DataFrame(rows, columns=NAMES, dtype=object)
    assert differences(runs.measured(lambda *_: frame, EMPTY), nobody[pandas_objects]) == []


@settings(max_examples=6)
@given(rows=TYPED, kind=st.sampled_from([parquet, csv]))
def test_any_cells_in_files(rows, kind, seen):
    runs, nobody = seen
    assert differences(runs.measured(kind, typed(rows)), nobody[kind]) == []


def test_malformed_records_of_a_csv_file(runs):
    def with_records(table, folder):
        place = csv(table, folder)
        place.write_bytes(b"\n".join([place.read_bytes().rstrip(), *MALFORMED, b""]))
        return place

    nobody = succeeded(runs.measured(csv, EMPTY))
    assert differences(runs.measured(with_records, TABLES["one row"]), nobody) == []


STEPS = [f"measure.{step}" for step in ("counted", "prepared", "drawn", "written", "sealed", "extracted")]


@pytest.mark.parametrize("step", [*STEPS, "ledger.reserve.durable", "ledger.commit.durable"])
def test_a_run_that_breaks_off(step, runs):
    """Where it ended, what it said, and what it left."""
    nobody, everybody = (runs.measured(parquet, TABLES[name], broken=step) for name in ("empty", "thousands"))
    assert [each for each in nobody["steps"] if not each.startswith("ledger.fail")][-1] == step
    assert nobody["outcome"] != "returned"
    assert nobody["ledger budget.ledger"]  # its events are compared as well
    assert differences(everybody, nobody) == []


def test_the_columns_are_missing(runs):
    tables = (TABLES[name].select(["AGE", "PLACE", "ID"]) for name in ("empty", "thousands"))
    found = [runs.measured(parquet, table) for table in tables]
    assert "has no column" in found[0]["outcome"][0]
    assert differences(*found) == []


def test_the_noise_fails(runs, monkeypatch):
    """The library's error may quote what it was given, the run's may not."""

    def failing(*_, scale):
        def fail(counts):
            if len(counts) == 1:  # tried on a zero, before anything is spent
                return [0]
            raise RuntimeError(f"cannot handle {counts}")

        return fail

    monkeypatch.setattr("worlds.observation.FixedNoise.noise", failing)
    found = [runs.measured(parquet, TABLES[name]) for name in ("empty", "thousands")]
    assert any("was spent; it is in" in words for words in found[0]["outcome"])
    assert differences(*found) == []


PUBLIC = typed([*many(300), (40, "m", 38.0, "b", 7)]).drop_columns(["ID"])


@pytest.fixture(scope="module")
def public_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    write_table(PUBLIC, folder / "public.parquet")
    write_table(GROUPS, folder / "groups.csv")
    Schema([*SCHEMA, Column("PLACE", "group")]).save(folder / "schema.toml")
    PLAN.save(folder / "plan.toml")
    return folder


def commands(runs, table, *lines, unit=PERSONS):
    """Commands one after the other; the exit code of each is observed as well."""
    with runs.given(parquet, table) as private, observing(runs.home) as found:
        ledger_for(plan_for(unit), LEDGER)
        found["codes"] = []
        for line in lines:
            try:
                run_command(*(private if word is parquet else word for word in line))
            except SystemExit as end:
                found["codes"].append(end.code or 0)
    return found


def compared(found, *files):
    """All commands succeeded and wrote the files, and nothing differs."""
    for other in found[1:]:
        assert differences(other, found[0]) == []
    assert set(found[0]["codes"]) == {0}, found[0]["stderr"]
    assert all(found[0][f"file {name}"][1] > 0 for name in files)


def test_measure_estimate_sample_and_report(public_files, runs):
    public = ["--public", public_files / "public.parquet"]
    lines = [
        ["measure", public_files / "plan.toml", parquet, "-o", "release", "--ledger", "budget.ledger"],
        ["measure", public_files / "plan.toml", parquet, "-o", "release", "--ledger", "budget.ledger", "--json"],
        ["estimate", "release", *public],
        ["sample", "release", *public, "--seed", "1"],
        ["answer", "release", "AGE >= 65", "--by", "PLACE", "--json"],
        ["report", "release"],
        ["ledger", "show", "--ledger", "budget.ledger", "--json"],
    ]
    found = [commands(runs, TABLES[name], *lines) for name in ("empty", "thousands", "all missing")]
    compared(
        found, "release/ledger.json", "release/estimates.parquet", "release/synthetic.parquet", "release/report.html"
    )


def test_synthesize(public_files, runs):
    line = ["synthesize", parquet, "--schema", public_files / "schema.toml", "--no-tune"]
    line += ["--public", public_files / "public.parquet", "--groups", public_files / "groups.csv", "--levels", "PLACE"]
    line += ["--max-rows-per-person", 2, "--person-id", "ID", "--epsilon", 1]
    line += ["-o", "release", "--dataset", "people", "--ledger", "budget.ledger"]
    unit = Unit(2, person_id="ID")
    found = [commands(runs, TABLES[name], line, unit=unit) for name in ("empty", "thousands", "wild")]
    compared(found, "release/synthetic.parquet", "release/report.html", "release.plan.toml")


def test_the_synthesizer(runs):
    def fitted(table):
        with observing(runs.home) as found:
            terms = {"groups": GROUPS, "levels": ["PLACE"], "unit": PERSONS, "dataset": "people", "tune": False}
            ledger = ledger_for(PLAN, LEDGER)
            synthesizer = Synthesizer(
                1,
                schema=SCHEMA,
                public=PUBLIC,
                folder="release",
                ledger=ledger,
                execution=Execution(progress=runs.told(found)),
                **terms,
            )
            synthesizer.fit(table)
            found["object"] = [repr(synthesizer.release_), synthesizer.plan_.advice, str(synthesizer.spent_)]
            found["rows"] = synthesizer.sample(seed=1).to_pylist()
            found["answer"] = synthesizer.answer("AGE >= 65", by="PLACE").to_pylist()
        return succeeded(found)

    nobody, *others = (fitted(TABLES[name]) for name in ("empty", "thousands", "all missing"))
    for other in others:
        assert differences(other, nobody) == []


def test_a_leak_would_be_seen(runs):
    """Each way out, one at a time."""

    def leaks(number):
        return [
            lambda: Path("notes").write_bytes(bytes(number)),
            lambda: Path(f"notes-{number}").touch(),
            lambda: Path("notes").chmod(0o600 + number),
            lambda: ledger_for(PLAN, LEDGER).raise_cap("people", Budget.pure(3), f"{number} rows"),
            lambda: Path("temporary", "spilled").write_text(str(number)),
            lambda: print(number),
            lambda: os.write(2, bytes([number])),
            lambda: logging.getLogger("engine").debug("%d rows", number),
            lambda: warnings.warn(f"{number} cells are missing", stacklevel=1),
            lambda: sys.audit("prade.step", f"measure.{number}"),
            lambda: sys.exit(number),
            lambda: {}[number],
            lambda: int("x" * number),
        ]

    for first, second in zip(leaks(4), leaks(0), strict=True):
        found = []
        for leak in (first, second):
            with observing(runs.home) as each:
                Path("notes").touch()
                leak()
            found.append(each)
        assert differences(*found) != []
