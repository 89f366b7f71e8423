"""The `fit / sample` class: the same release as step by step, paid once, types restored, clear refusals."""

import pickle
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from prade import Budget, BudgetError, Column, DataError, Ledger, Plan, PradeError, Schema, Synthesizer, Unit
from prade.core.execution import Execution
from prade.estimating.levels.estimates import kept_estimates
from prade.synthesizer import NotFittedError
from worlds.survey import PLACE, STATE, THREE_PLACES, YEARS

SCHEMA = Schema(
    [
        STATE,
        PLACE,
        YEARS,
        Column("SEX", "categorical", values=["f", "m"]),
        Column("HOURS", "categorical", values=[10, 20, 40], missing=True),
        Column("SINCE", "numeric", dates=True, edges=[date(1990, 1, 1), date(2010, 1, 1)]),
    ]
)
SECRET = "a value that only one private row has"


def frame(rows=400, seed=0, states=(3, 4)):
    """A pandas table with the types that get lost most easily."""
    generator = np.random.default_rng(seed)
    hours = pd.array(generator.choice([10, 20, 40], rows), dtype="Int64")
    hours[generator.random(rows) < 0.3] = pd.NA
    days = generator.integers(0, 14_000, rows)
    return pd.DataFrame(
        {
            "STATE": generator.choice(states, rows),
            "PLACE": generator.choice(["p", "q"], rows),
            "AGE": generator.integers(0, 90, rows).astype(np.int8),
            "SEX": pd.Categorical(generator.choice(["f", "m"], rows), categories=["m", "f"], ordered=True),
            "HOURS": hours,
            "SINCE": pd.Timestamp("1980-01-01") + pd.to_timedelta(days, unit="D"),
        }
    )


PUBLIC = frame()
PRIVATE = frame(rows=900, seed=1, states=(1, 2))


def synthesizer(place, **changes):
    given = {
        "schema": SCHEMA,
        "epsilon": 5,
        "public": PUBLIC,
        "folder": place / "release",
        "groups": THREE_PLACES,
        "levels": ["STATE", "PLACE"],
        "tune": False,
        "cap": 5,
    }
    return Synthesizer(**{**given, **changes})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return synthesizer(folder, dataset="people", ledger=folder / "ledger").fit(PRIVATE)


def refit(found, data=PRIVATE):
    with pytest.warns(UserWarning, match="was used: nothing was spent, and the private table given now was not read"):
        return found.fit(data)


def test_answers_are_those_of_the_release(fitted):
    found = fitted.answer("AGE >= 65 and SEX == 'f'", by="STATE")
    assert isinstance(found, pd.DataFrame)
    assert found.equals(kept_estimates(fitted.release_).answer("AGE >= 65 and SEX == 'f'", by="STATE").to_pandas())
    expected = kept_estimates(fitted.release_).marginal("HOURS")
    assert fitted.marginal("HOURS", like="pyarrow").equals(expected)
    assert fitted.answer("histogram(AGE)", labels=True, like="pyarrow").column_names[2] == "AGE_label"


def test_everybody_may_be_one_group(tmp_path):
    told = []
    execution = Execution(progress=lambda what, done, number: told.append(what))
    found = synthesizer(tmp_path, groups=None, levels=(), execution=execution)
    rows = found.fit(PRIVATE).sample(20, seed=1)
    assert list(rows.columns) == ["AGE", "SEX", "HOURS", "SINCE"]
    assert {"estimating", "sampling"} <= set(told)
    assert refit(Synthesizer.load(found.folder, PUBLIC)).sample(20, seed=1).equals(rows)


def test_pandas_types_come_back(fitted):
    rows = fitted.sample(50, seed=1)
    for name in ("AGE", "SEX", "HOURS", "SINCE"):
        assert rows[name].dtype == PUBLIC[name].dtype, name
    assert rows["HOURS"].isna().any()
    assert list(rows["SEX"].cat.categories) == ["m", "f"]
    assert rows["STATE"].dtype == PUBLIC["STATE"].dtype


def test_polars_types_come_back(tmp_path, fitted):
    public = pl.from_pandas(PUBLIC).with_columns(pl.col("SEX").cast(pl.Enum(["m", "f"])))
    found = synthesizer(tmp_path, public=public).fit(pl.from_pandas(PRIVATE))
    rows = found.sample(50, seed=1)
    assert isinstance(rows, pl.DataFrame)
    assert {name: rows.schema[name] for name in SCHEMA.coded} == {name: public.schema[name] for name in SCHEMA.coded}
    assert isinstance(found.answer("AGE < 18"), pl.DataFrame)


def test_a_person_id_says_nothing(tmp_path):
    unit = Unit(2, person_id="ID")
    private = PRIVATE.assign(ID=[SECRET, *map(str, range(1, len(PRIVATE)))])
    rows = synthesizer(tmp_path, unit=unit).fit(private).sample(12)
    assert rows["ID"].tolist() == list(range(1, 13))


@pytest.mark.parametrize("number", [1, 1001])
def test_the_number_of_rows_is_exact_and_in_proportion(fitted, number):
    rows = fitted.sample(number, seed=1)
    assert len(rows) == number
    drawn = rows.groupby(["STATE", "PLACE"]).size()
    totals = np.round(fitted.estimates_.totals)
    shares = totals / totals.sum()
    for group, share in zip(fitted.plan_.groupings[-1].values, shares, strict=True):
        assert abs(drawn.get(group, 0) - number * share) < 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": {"PLACE": "qq"}}, "no group has PLACE 'qq'"),
        ({"groups": {"AGE": 3}}, "'AGE' does not tell the groups apart; their columns are STATE, PLACE"),
        ({"groups": {"STATE": 2, "PLACE": "q"}}, "no group has all these values together"),
        ({"num_rows": 0}, r"num_rows is .*; give a whole number, 1 or more"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(fitted, given, message):
    with pytest.raises(PradeError, match=message):
        fitted.sample(**given)


def test_fit_spends_once(tmp_path, custodian):
    found = synthesizer(tmp_path, cap=12)
    assert found.fit(PRIVATE) is found
    assert found.spent_ == Budget.pure(5)
    ledger = Ledger(custodian)
    assert ledger.remaining("private") == Budget.pure(7)
    rows = found.sample(50, seed=2)
    refit(found, data=frame(seed=5))
    assert found.spent_ is None
    assert found.sample(50, seed=2).equals(rows)
    refit(synthesizer(tmp_path, cap=12))
    assert ledger.remaining("private") == Budget.pure(7)


def test_a_tuned_plan_is_kept_so_that_it_is_paid_once(tmp_path, custodian, monkeypatch):
    found = synthesizer(tmp_path, tune=True, effort=0)
    plan = found.plan()
    assert plan.expected is not None
    assert not custodian.exists()

    def no_second_rehearsal(*arguments, **settings):
        raise AssertionError("tuned again")

    monkeypatch.setattr("prade.pipeline.tuned", no_second_rehearsal)
    fresh = synthesizer(tmp_path, tune=True, effort=0).fit(PRIVATE)
    assert fresh.plan_ == plan
    refit(fresh)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": 6}, "epsilon or delta"),
        ({"delta": 1e-6}, "epsilon or delta"),
        ({"unit": Unit(3)}, "unit"),
        ({"groups": {"STATE": [1], "PLACE": ["p"]}}, "groups"),
        ({"schema": SCHEMA.select(["STATE", "PLACE", "AGE"])}, "schema"),
    ],
)
def test_other_parameters_need_another_folder(fitted, change, named):
    changed = synthesizer(Path(fitted.folder).parent, **{"dataset": "people", "ledger": fitted.ledger, **change})
    with pytest.raises(
        DataError, match=f"was made with another {named}: use the one it was made with, or another folder"
    ):
        changed.fit(PRIVATE)
    assert not hasattr(changed, "plan_")


@pytest.mark.parametrize("use", ["sample", "answer", "marginal", "report"])
def test_nothing_is_there_before_fit(tmp_path, use):
    arguments = ["AGE"] if use in ("answer", "marginal") else []
    with pytest.raises(NotFittedError, match=r"has not been fitted: call fit\(data\) first"):
        getattr(synthesizer(tmp_path), use)(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": Budget.pure(1), "delta": 1e-6}, "leave delta out"),
        ({"public": None}, "need a public table"),
        ({"public": "nowhere.parquet"}, "there is no public file"),
        ({"schema": {"columns": {}}}, "a task needs a Schema"),
        ({"levels": ()}, "groups and levels go together"),
        ({"ledger": False}, "ledger is of type bool; give a Ledger or the path of its file"),
        ({"unit": 3}, "unit is of type int; give a Unit"),
        ({"cap": 4}, "In this run nothing was spent"),
        ({"epsilon": 1, "delta": 1e-9, "cap": 2}, r"give cap=Budget\.approx\(epsilon, delta\)"),
    ],
)
def test_wrong_parameters_cost_nothing(tmp_path, custodian, change, message):
    found = synthesizer(tmp_path, **change)
    with pytest.raises(PradeError, match=message):
        found.fit(PRIVATE)
    assert not custodian.exists()
    assert not (tmp_path / "release").exists()


def test_a_fit_that_fails_leaves_the_object_as_it_was(tmp_path, custodian):
    found = synthesizer(tmp_path)
    with pytest.raises(DataError, match="has no column 'AGE'"):
        found.fit(PRIVATE.drop(columns="AGE"))
    assert not [name for name in vars(found) if name.endswith("_")]
    assert not custodian.exists()
    rows = found.fit(PRIVATE).sample(30, seed=1)
    state = dict(vars(found))
    found.folder = tmp_path / "second"
    with pytest.raises(BudgetError):
        found.fit(PRIVATE)
    assert {**state, "folder": found.folder} == vars(found)
    assert found.sample(30, seed=1).equals(rows)


def test_an_estimate_that_fails_is_made_by_the_next_fit_for_nothing(tmp_path, custodian, monkeypatch):
    found = synthesizer(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr("prade.pipeline.estimates_of", lambda *arguments, **settings: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            found.fit(PRIVATE)
    assert Ledger(custodian).remaining("private") == Budget.pure(0)
    with pytest.raises(NotFittedError):
        found.sample()
    assert len(refit(found).sample(10)) == 10


def test_a_schema_is_proposed_from_the_public_table_only(tmp_path):
    public = PUBLIC.assign(ID=range(len(PUBLIC)), WEIGHT=1.5)
    private = PRIVATE.assign(ID=range(len(PRIVATE)), SEX=SECRET)
    unit = Unit(1, person_id="ID")
    found = synthesizer(tmp_path, schema=None, public=public, unit=unit, weight="WEIGHT")
    with pytest.warns(UserWarning, match=r"release\.schema\.toml was drafted from the public table, with 4 columns"):
        found.fit(private)
    assert Schema.load(tmp_path / "release.schema.toml") == found.plan_.schema
    refit(synthesizer(tmp_path, schema=None, public=public, unit=unit, weight="WEIGHT"), private)  # the plan's schema
    assert found.plan_.schema.coded == ("AGE", "SEX", "HOURS", "SINCE")
    assert found.plan_.schema["SEX"].values == ("f", "m")
    assert set(found.sample(30)["SEX"]) <= {"f", "m"}


def test_load_without_the_public_table_answers_but_does_not_draw(fitted):
    found = Synthesizer.load(fitted.folder)
    assert found.answer("AGE < 18", by="STATE").to_pandas().equals(fitted.answer("AGE < 18", by="STATE"))
    with pytest.raises(DataError, match="does not name its public files; give the public table as public="):
        found.sample(10)
    again = Synthesizer.load(fitted.folder, public=PUBLIC, ledger=fitted.ledger)
    assert again.sample(10, seed=1).equals(fitted.sample(10, seed=1))
    assert again.spent_ is None
    refit(again)
    with pytest.raises(DataError, match="made from another release or public table"):
        Synthesizer.load(fitted.folder, public=frame(seed=9))


def test_a_pickle_draws_the_same_and_has_no_private_row(tmp_path):
    private = PRIVATE.assign(ID=[SECRET, *map(str, range(1, len(PRIVATE)))])
    found = synthesizer(tmp_path, unit=Unit(1, person_id="ID")).fit(private)
    stored = pickle.dumps(found)
    assert SECRET.encode() in pickle.dumps(private)
    assert SECRET.encode() not in stored
    assert pickle.loads(stored).sample(20, seed=1).equals(found.sample(20, seed=1))


def test_the_private_table_is_not_kept(tmp_path):
    import gc
    import weakref

    private = PRIVATE.copy()
    gone = weakref.ref(private)
    found = synthesizer(tmp_path).fit(private)
    del private
    gc.collect()
    assert gone() is None
    assert len(found.sample(5)) == 5


def test_two_public_tables_are_refused(tmp_path, custodian):
    """Estimates of one table with values of another would be wrong, and the other could be the private one."""
    with pytest.raises(PradeError, match="has a public table already, and this is another one"):
        synthesizer(tmp_path, public=PRIVATE).fit(PRIVATE, public=PUBLIC)
    assert not custodian.exists()


def test_a_private_table_given_as_public_leaves_no_draft(tmp_path, custodian):
    PRIVATE.to_csv(tmp_path / "private.csv", index=False)
    PUBLIC.to_csv(tmp_path / "public.csv", index=False)
    found = synthesizer(tmp_path, public=None, schema=None)
    with pytest.raises(PradeError, match="public"):
        found.fit(tmp_path / "private.csv", public=tmp_path / "private.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"private.csv", "public.csv"}
    with pytest.warns(UserWarning, match="drafted from the public table"):
        found.fit(tmp_path / "private.csv", public=tmp_path / "public.csv")


def test_a_draft_of_another_table_is_not_used(tmp_path, custodian):
    found = synthesizer(tmp_path, schema=None)
    (tmp_path / "release.schema.toml").write_text(SCHEMA.to_toml())
    with pytest.raises(PradeError, match=r"release\.schema\.toml is not the draft of this public table"):
        found.fit(PRIVATE)


def test_a_plan_for_other_public_files_is_refused_before_anything_is_spent(tmp_path, custodian):
    for name, table in (("one.csv", PUBLIC), ("two.csv", PUBLIC.iloc[:-1])):
        table.to_csv(tmp_path / name, index=False)
    synthesizer(tmp_path, public=tmp_path / "one.csv").plan()
    other = synthesizer(tmp_path, public=tmp_path / "two.csv")
    for use in (other.plan, lambda: other.fit(PRIVATE)):
        with pytest.raises(DataError, match="not one of the public files"):
            use()
    assert not custodian.exists()
    found = synthesizer(tmp_path, public=PUBLIC).fit(PRIVATE)  # a table in memory: the plan stays as it was paid for
    assert found.release_.plan == Plan.load(tmp_path / "release.plan.toml")


def test_a_public_table_that_changes_after_planning_is_read_again(tmp_path, custodian):
    table = PUBLIC.copy()
    found = synthesizer(tmp_path, public=table)
    found.plan()
    since = pd.to_datetime(table["SINCE"])
    table["SINCE"] = since.groupby([since >= "1990-01-01", since >= "2010-01-01"]).transform("max")  # one date a bin
    found.fit(PRIVATE)
    dates = set(table["SINCE"])
    assert len(dates) == 3
    assert set(found.sample(30, seed=1)["SINCE"]) <= dates


@pytest.mark.parametrize("like", ["pandas", "polars", "pyarrow"])
def test_every_result_is_the_kind_of_table_that_is_asked_for(fitted, like):
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[like]
    assert isinstance(fitted.answer("AGE >= 65", like=like), kind)
    assert isinstance(fitted.marginal("SEX", like=like), kind)
    assert isinstance(fitted.sample(10, seed=1, like=like), kind)
    with pytest.raises(DataError, match="like is 'excel'; use 'pyarrow', 'pandas', 'polars'"):
        fitted.sample(5, like="excel")


def test_answers_can_be_joined_with_synthetic_rows(tmp_path):
    """The list of groups has numbers where the public table has texts with leading zeros, and dtypes are its own."""
    public, private = (table.assign(STATE=[f"{state:02}" for state in table["STATE"]]) for table in (PUBLIC, PRIVATE))
    made = synthesizer(tmp_path, public=public).fit(private)
    rows, table = made.sample(300, seed=1), made.marginal(["SEX", "HOURS"], by="STATE")
    shared = ["STATE", "SEX", "HOURS"]
    assert all(table[name].dtype == rows[name].dtype for name in shared)
    assert len(rows.merge(table, on=shared)) == len(rows)
    assert set(made.answer("AGE >= 65", by="STATE")["STATE"]) == {"01", "02"}


def test_its_text_says_what_it_is_for_and_whether_it_is_fitted():
    assert repr(Synthesizer(1)) == "<Synthesizer of epsilon 1 in the folder 'release', not fitted>"


def test_a_private_table_in_the_wrong_place_is_not_shown():
    private = pd.DataFrame({"NAME": ["s3cret"]})
    for arguments in ({"schema": private}, {"schema": SCHEMA, "unit": private}):
        with pytest.raises(PradeError) as error:
            Synthesizer(1, public=pa.table({"AGE": [1]}), **arguments).plan()
        assert "s3cret" not in str(error.value)
