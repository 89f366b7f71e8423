"""One pipeline: the command line and `Synthesizer` make the same release, and read a table once.

That the demonstration makes it, too, is in `cli/test_demo.py`.
"""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

import prade
from prade import DataError, Ledger, Plan, Release, Rule, Synthesizer, Task, Unit
from prade.data.read import tables
from prade.data.read.tables import write_table
from prade.examples import census_like
from prade.pipeline import fit, write_sample
from prade.planning.settings import Expected
from prade.release.terms import Terms
from worlds.commands import call
from worlds.releases import content, fixed_noise

BY = ["STATE", "PLACE"]


@pytest.fixture
def fixed(monkeypatch):
    monkeypatch.setattr("prade.measuring.run.add_noise", fixed_noise)


@pytest.fixture
def world(tmp_path):
    """Invented people in files; few of their columns, because no way is told from another by more of them."""
    data = census_like(persons=1_500, places_per_state=2, seed=3)
    data.schema.select([*BY, "AGE", "SEX", "RACE", "EMPLOY", "RENT"]).save(tmp_path / "schema.toml")
    write_table(data.public, tmp_path / "public.csv")
    write_table(data.private, tmp_path / "private.parquet")
    write_table(data.groups.group_by(BY).aggregate([]), tmp_path / "places.csv")
    return tmp_path, data.max_rows


def options(folder, rows):
    return [
        *("--schema", folder / "schema.toml", "--public", folder / "public.csv", "--groups", folder / "places.csv"),
        *("--levels", ",".join(BY), "--epsilon", "4", "--max-rows-per-person", rows, "--person-id", "PERSON"),
        *("--dataset", "census", "--effort", "0"),
    ]


def entered(folder, rows):
    path = folder / "ledger"
    Ledger(path).open_dataset("census", Unit(rows, person_id="PERSON"), cap=prade.Budget.pure(100))
    return path


def test_command_line_synthesizer_and_stages_make_the_same_release(world, fixed):
    folder, rows = world
    ledger = entered(folder, rows)
    call("synthesize", folder / "private.parquet", *options(folder, rows), "-o", folder / "one", "--ledger", ledger)

    object_ = Synthesizer(
        4,
        schema=folder / "schema.toml",
        public=folder / "public.csv",
        folder=folder / "two",
        groups=folder / "places.csv",
        levels=BY,
        unit=Unit(rows, person_id="PERSON"),
        dataset="census",
        ledger=ledger,
        effort=0,
    )
    object_.fit(folder / "private.parquet", again=True).report()

    call("plan", *options(folder, rows), "-o", folder / "plan.toml")
    private, three = folder / "private.parquet", folder / "three"
    call("measure", folder / "plan.toml", private, "-o", three, "--ledger", ledger, "--again")
    for stage in ("estimate", "sample", "report"):
        call(stage, three)

    task = Task("census", folder / "schema.toml", 4, Unit(rows, person_id="PERSON"), BY, folder / "places.csv")
    plan = prade.plan(task, folder / "public.csv", effort=0)
    release = prade.measure(plan, folder / "private.parquet", folder / "four", ledger, again=True)
    estimates = prade.estimate(release)
    write_sample(estimates)
    prade.report(release)

    first = content(folder / "one")
    for other in ("two", "three", "four"):
        assert content(folder / other) == first, other
        assert sorted(path.name for path in (folder / other).iterdir()) == sorted(
            path.name for path in (folder / "one").iterdir()
        )


def test_tables_are_read_once(world, fixed, monkeypatch):
    """The public table, the list of groups and the schema; and the release is not read back from its folder."""
    folder, rows = world
    ledger = entered(folder, rows)
    read: Counter[str] = Counter()
    read_file, load, schema_load = tables._read_file, Release.load.__func__, prade.Schema.load.__func__

    def counted(path, *rest):
        read[path.name] += 1
        return read_file(path, *rest)

    monkeypatch.setattr(tables, "_read_file", counted)
    monkeypatch.setattr(Release, "load", classmethod(lambda cls, path: read.update(["release"]) or load(cls, path)))
    monkeypatch.setattr(
        prade.Schema, "load", classmethod(lambda cls, path: read.update(["schema"]) or schema_load(cls, path))
    )
    call("synthesize", folder / "private.parquet", *options(folder, rows), "-o", folder / "one", "--ledger", ledger)
    # the release is read when it gets its name
    assert [read[name] for name in ("public.csv", "places.csv", "schema", "release")] == [1] * 4


def test_every_way_refuses_a_plan_that_is_worse_than_the_public_table(world, fixed, monkeypatch):
    folder, rows = world
    ledger = entered(folder, rows)
    unit = Unit(rows, person_id="PERSON")
    task = Task("census", folder / "schema.toml", 4, unit, BY, folder / "places.csv")
    plan = Plan.simplest(task).changed(expected=Expected(0.5, 0.01, 0.3, "Do not measure."))
    monkeypatch.setattr("prade.pipeline.tuned", lambda *_, **__: SimpleNamespace(plan=plan))
    arguments = ["synthesize", folder / "private.parquet", *options(folder, rows), "-o", folder / "one"]
    assert "add --against-advice" in call(*arguments, "--ledger", ledger, code=1).stderr
    given = {"schema": folder / "schema.toml", "public": folder / "public.csv", "groups": folder / "places.csv"}
    found = Synthesizer(4, **given, folder=folder / "two", levels=BY, unit=unit, dataset="census", ledger=ledger)
    with pytest.raises(DataError, match=r"the public table alone has 0\.300; .* pass against_advice=True"):
        found.fit(folder / "private.parquet")
    assert Ledger(ledger).entries("census") == []
    found.against_advice = True
    assert found.fit(folder / "private.parquet").spent_ is not None


@pytest.mark.parametrize(
    ("rules", "lost", "words"), [(["AGE < 0"], [], "no public row obeys AGE < 0"), ([], ["SEX"], "no column 'SEX'")]
)
def test_every_way_to_plan_refuses_a_public_table_that_does_not_serve(rules, lost, words):
    data = census_like(persons=200, places_per_state=2)
    schema, public = data.schema.with_invariants([Rule(each) for each in rules]), data.public.drop_columns(lost)
    task = Task("census", schema, 4, levels=BY, groups=data.groups)
    for way in (prade.plan, partial(prade.plan, tune=False), partial(prade.explore, budgets=[1, 4])):
        with pytest.raises(DataError, match=words):
            way(task, public)


def test_a_private_table_that_lacks_a_column_is_refused_before_a_rehearsal(tmp_path):
    data = census_like(persons=200, places_per_state=2)
    asked = Task("census", data.schema, 4, levels=BY, groups=data.groups)
    terms = Terms(tmp_path / "ledger", 4)
    with pytest.raises(DataError, match="AGE"):
        fit(asked, data.private.drop_columns(["AGE"]), data.public, tmp_path / "out", terms, on_stage=pytest.fail)
    assert not (tmp_path / "ledger").exists()
