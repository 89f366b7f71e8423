"""Hostile and damaged files: every reader ends in a PradeError, soon and in little memory.

Most of these were found by `make fuzz` (tests/fuzz) or by a review; each is here in its smallest form.
"""

import json
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget, Column, DataError, Level, Plan, PradeError, Release, Schema, Unit, Workload
from prade.core.numbers import exact
from prade.data.declare.groups import Groups
from prade.data.public.joint import outside as outside_of
from prade.data.public.public import Public
from prade.planning.settings import Settings
from prade.release.release import sealed_text
from prade.reporting.outlines import outlines
from prade.reporting.statements import meaning
from worlds.releases import write_folder

SCHEMA = Schema.from_mbi({"a": 2, "b": 3})
ONE = Workload.marginals(SCHEMA, ["a"])
SEX = 'version = 1\n[[column]]\nname = "SEX"\nkind = "categorical"\nvalues = [1, 2]\n'
DEEP = 100_000
SQUARE = [[0, 0], [0, 1], [1, 1], [0, 0]]


def case(value):
    """A name for a test; the values are too long for one, or cannot be written."""
    return "case"


def plan_with(budget=None, unit=None, levels=None, schema=SCHEMA, groups=None):
    given = levels or [Level((), Workload.marginals(schema, ["a"]))]
    return Plan("survey", schema, budget or Budget.pure(1), unit or Unit(1), given, groups)


PLAN = plan_with(levels=[Level((), ONE, total=0)]).to_toml()


def edited(old, new):
    assert old in PLAN
    return PLAN.replace(old, new)


def collection(*features):
    return json.dumps({"features": list(features)})


def feature(coordinates, kind="Polygon", **properties):
    return {"properties": properties or {"g": 0}, "geometry": {"type": kind, "coordinates": coordinates}}


TEXTS = {
    ".toml": [
        f"x = {'[' * DEEP}{']' * DEEP}",
        f"{'a.' * 30_000}a = 1",  # the parser's time grows with the square of that
        "'a'. " * 30_000 + "b = 1",
        SEX.replace("2]", "1" * 5000 + "]"),
        SEX.replace("[1, 2]", "[9999-99-99]"),
        SEX.replace("[1, 2]", "[2020-01-01T00:00:00+99:99]"),
        SEX.replace("categorical", "numeric").replace("values", "edges").replace("2]", f"0x{'f' * 900}]"),
        SEX + f"other = {'[' * 60}{']' * 60}",
        "version = 1\n[column]\nname = 3",
    ],
    ".plan": [
        edited('epsilon = "1"', f'epsilon = "1/{"7" * 4000}"'),
        edited("max_rows = 1", f"max_rows = 0x{'f' * 4000}"),
        edited('total = "0"', f'total = "1/{"7" * 4000}"'),
        edited('parts = ["a"]', f"parts = {'[' * 2000}{']' * 2000}"),
        edited('parts = ["a"]', 'parts = [{columns = ["a"], cells = [0, 99999999999999999999], labels = ["x", "y"]}]'),
        edited("[budget]", f"{'a.' * 30_000}a = 1\n[budget]"),
        edited("by = []", "by = [[]]"),
    ],
    ".geojson": [
        '{"features": ' + "[" * DEEP,
        collection({"properties": [0], "geometry": {"type": "Polygon", "coordinates": [SQUARE]}}),
        collection(feature([SQUARE], ["Polygon"])),
        collection(feature(SQUARE)),
        collection(feature([[[1e308, 1], [-1e308, 1], [0, 1e308]]])),
        collection(feature([SQUARE], g="\ud800")),
        '{"features": [{"geometry": {"type": "Polygon", "coordinates": [[[NaN, 1]]]}, "properties": {"g": 0}}]}',
    ],
}
READERS = {
    ".toml": lambda path: Schema.load(path),
    ".plan": lambda path: Plan.from_toml(path.read_text()).describe(),
    ".geojson": lambda path: outlines(path, [Groups.of({"g": [0, 1]}).level(["g"])]),
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in TEXTS.items() for text in texts], ids=case)
def test_a_hostile_text_is_refused_soon(tmp_path, kind, text):
    (tmp_path / f"a{kind}").write_text(text)
    start = time.monotonic()
    with pytest.raises(PradeError):
        READERS[kind](tmp_path / f"a{kind}")
    assert time.monotonic() - start < 2


def test_a_group_without_points_has_no_outline(tmp_path):
    (tmp_path / "a.json").write_text(collection(feature([SQUARE], g=0), feature([], g=1), feature([[], SQUARE], g=2)))
    found = outlines(tmp_path / "a.json", [Groups.of({"g": [0, 1, 2]}).level(["g"])])
    assert sorted(found.paths) == [0, 2]


def column(kind, **given):
    return lambda: Schema([Column("A", kind, **given)]).fingerprint()


@pytest.mark.parametrize(
    "act",
    [
        column("numeric", edges=[1, 10**400]),
        column("numeric", edges=[1e9], dates=True),
        column("numeric", edges=[1], min=-(10**10), dates=True),
        column("categorical", values=[0.5, 10**400]),
        column("categorical", values=["a", "\ud800"]),
        lambda: Schema([Column("\udc80", "categorical", values=["a"])]).fingerprint(),
        *(
            partial(exact, value, "epsilon")
            for value in ("9" * 4250, "1/" + "9" * 4250, 10**5000, "1." + "1" * 4250, "9" * 5000, "1/0", "²")
        ),
        *(partial(kind.from_dict, values) for kind in (Budget, Unit) for values in ("pure", None, [1], 3)),
        lambda: Settings(n0=float("inf")),
    ],
    ids=case,
)
def test_values_that_no_file_holds_are_refused(act):
    with pytest.raises(PradeError):
        act()


@pytest.mark.parametrize(
    "given",
    [
        {"budget": Budget.pure("1e-200")},
        {"budget": Budget.pure("1e-300")},
        {"budget": Budget.zcdp("1e-320")},
        {"unit": Unit(10**300)},
        {"unit": Unit(10**5000)},
        {"levels": [Level((), ONE, total="1e-400")]},
    ],
    ids=["little", "less", "rho", "rows", "more rows", "total"],
)
def test_noise_beyond_all_numbers(given):
    with pytest.raises(PradeError, match=r"too small: its noise would drown|too large for a float|digits"):
        plan_with(**given).describe()


def test_an_epsilon_beyond_all_numbers_has_a_meaning():
    assert "by at most a factor of 10^435" in meaning(Budget.pure(1000))


@pytest.fixture
def folder(tmp_path):
    """A release with invented counts, as `measure` leaves it."""
    plan = plan_with()
    noisy = [[np.zeros((1, part.n_cells), np.int64) for part in question.parts] for question in plan.questions]
    return write_folder(tmp_path, plan, noisy)


SEALED = {  # files with a seal but without sense
    "release.json": [{}, {"format": "1"}, {"format": None}, {"format": 1}, {"format": 1, "files": []}],
    "ledger.json": [{}, {"account": 3}, {"account": [1, 2]}, {"account": {"a": 1}}],
}
HARDLY_JSON = ["[" * DEEP, '{"seal": ' + "1" * 5000 + "}", '{"seal": {"a": []}}', "\ud83d"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, sealed_text(content)) for name, contents in SEALED.items() for content in contents),
        *(("release.json", text) for text in HARDLY_JSON),
    ],
    ids=case,
)
def test_a_manifest_or_an_account_without_sense(folder, name, text):
    (folder / name).write_text(text, errors="surrogatepass")
    with pytest.raises(DataError, match=rf"{name} .*is damaged"):
        Release.load(folder).account()


@pytest.mark.parametrize("text", ['"a","p","p"\n1,2,3\n', "a,a\n", "a,a\n1,2\n"])
def test_a_csv_file_that_names_a_column_twice(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match="two columns named"):
        Groups.of(tmp_path / "a.csv")


def test_a_parquet_file_that_names_a_column_twice(tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "a.parquet")
    for read in (Groups.of, Schema.infer, lambda path: outside_of(SCHEMA, path)):
        with pytest.raises(DataError, match="two columns named 'a'"):
            read(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([b"x"]),
        pa.array([1], pa.duration("s")),
        pa.array([1], pa.time64("us")),
    ],
    ids=lambda cells: str(cells.type),
)
def test_cells_that_are_no_single_values(cells):
    table = pa.table({"g": cells, "a": [1], "b": [1]})
    for read in (Groups.of, Schema.infer, lambda table: Public.of(SCHEMA, table, ["g"])):
        with pytest.raises(DataError, match="'g': cells of type"):
            read(table)


@pytest.mark.parametrize(
    "change", [lambda cells: cells, lambda cells: cells.dictionary_encode()], ids=["plain", "coded"]
)
def test_text_that_is_not_unicode_is_replaced_cell_by_cell(tmp_path, change):
    """As in a CSV file: it is a value like any other that is not listed."""
    odd = "\ufffdff37"
    texts = change(pa.array([b"\xff7", b"p", b"7"]).cast(pa.string(), safe=False))
    pq.write_table(pa.table({"g": texts, "a": [1, 1, 0], "b": [1, 1, 2]}), tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", pa.table({"g": texts, "a": [1, 1, 0], "b": [1, 1, 2]})):
        assert Groups.of(pa.table({"g": texts})).columns[0].values == (odd, "p", "7")
        assert Schema.infer(source)["g"].values == ("7", "p", odd)
        assert len(Public.of(SCHEMA, source, ["g"]).groups) == 3
        listed = Schema([Column("g", "categorical", values=["p"])])
        assert outside_of(listed, source) == {"g": {odd: 1, "7": 1}}
        number = Schema([Column("g", "numeric", edges=[5])])
        assert outside_of(number, source) == {"g": {odd: 1, "p": 1}}
