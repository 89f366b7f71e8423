"""Every reader of files and texts, each with valid inputs to start from and mutations that suit it."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import tomllib

sys.path.insert(0, str(Path(__file__).parent))

import mutators  # noqa: E402

from prade import Ask, Budget, Column, Level, Plan, Schema, Unit, Workload, encode, outside  # noqa: E402
from prade.cli import UNFORESEEN, every_command  # noqa: E402
from prade.estimate import Estimate  # noqa: E402
from prade.estimators.map_ import MAP  # noqa: E402
from prade.groups import Groups  # noqa: E402
from prade.kept import KEPT_ESTIMATES, recorded  # noqa: E402
from prade.measurement import Measurement  # noqa: E402
from prade.parts import Cells  # noqa: E402
from prade.plan_files import plan_of_file  # noqa: E402
from prade.prior import Prior  # noqa: E402
from prade.public import Public  # noqa: E402
from prade.public_files import PublicFiles  # noqa: E402
from prade.query import parse  # noqa: E402
from prade.release import EXTRACT, MANIFEST, MEASUREMENTS, PLAN, Release, file_hash, measurement_table, sealed_text  # noqa: E402
from prade.report_map import outlines  # noqa: E402
from prade.report_promise import promise_of  # noqa: E402
from prade.rounding import exact  # noqa: E402
from prade.synthesize import estimates_of  # noqa: E402


class UnforeseenEnd(Exception):
    """The command line ended with words that it keeps for what should not happen."""


@dataclass(frozen=True)
class Reader:
    """A reader: `mutate` makes an input, `read` reads it; what is not a PradeError is a finding."""

    name: str
    mutate: Callable[[random.Random], Any]
    read: Callable[[Any], object]


# ---------------------------------------------------------------------- what is valid

SCHEMA = Schema(
    [
        Column("STATE", "group", values=(1, 2)),
        Column("PLACE", "group", values=("p", "q")),
        Column("AGE", "numeric", edges=[18, 40, 65], integer=True, min=0, max=120, missing=True),
        Column("SEX", "categorical", values=[1, 2]),
        Column("WORK", "categorical", values=["none", "part", "full"], other="none"),
    ]
)
BORN = Column("BORN", "numeric", edges=(0.0, 10_000.0), dates=True)
GROUPS = {"STATE": [1, 1, 2], "PLACE": ["p", "q", "p"]}


def people() -> pa.Table:
    """A public table with columns of several kinds."""
    generator = np.random.default_rng(1)
    return pa.table(
        {
            "STATE": generator.choice([1, 3], 120),
            "PLACE": generator.choice(["p", "q"], 120),
            "AGE": generator.integers(0, 90, 120),
            "SEX": generator.integers(1, 3, 120),
            "WORK": generator.choice(["none", "part", "full"], 120),
            "BORN": pa.array(generator.integers(0, 20_000, 120).astype(np.int32), pa.int32()).cast(pa.date32()),
            "WEIGHT": generator.random(120),
        }
    )


def plan() -> Plan:
    """A plan with every kind of part."""
    ones = Workload.all_marginals(SCHEMA, 1)
    old = Workload(SCHEMA, [Cells(["AGE"], [0, 0, 1, 1, 2], 2, ["young", "old"])])
    asked = Workload.queries(SCHEMA, ["AGE >= 65 and SEX == 2", "WORK in ['part', 'full']"])
    levels = [Level("STATE", ones), Level("PLACE", [Ask(ones, 3), Ask(old), Ask(asked, "1/3")], total="1/7")]
    public = PublicFiles(("public.parquet",), "WEIGHT")
    return Plan("survey", SCHEMA, Budget.pure(3), Unit(2, person_id="ID"), levels, GROUPS, public=public)


class World:
    """A release with its estimates, and files of every kind, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.plan = folder, plan()
        self.release = self._released(folder / "release")
        self.public = Public.of(SCHEMA, people(), ["STATE", "PLACE"])
        estimates_of(self.release, self.public)
        pq.write_table(people(), folder / "public.parquet")
        SCHEMA.save(folder / "schema.toml")
        (folder / "places.csv").write_text("STATE,PLACE\n1,p\n1,q\n2,p\n")

    def _released(self, place: Path) -> Release:
        """As `measure` leaves it, with invented counts."""
        place.mkdir()
        generator = np.random.default_rng(2)
        noisy = tuple(
            tuple(generator.integers(0, 50, (len(self.plan.groupings[q.level]), part.n_cells)) for part in q.parts)
            for q in self.plan.questions
        )
        self.plan.save(place / PLAN)
        pq.write_table(measurement_table(self.plan, noisy), place / MEASUREMENTS)
        (place / EXTRACT).write_text(sealed_text({"account": ["epsilon = 3", "remaining 0"]}))
        seal(place, self.plan.hash)
        return Release.load(place)


def seal(place: Path, plan_hash: str) -> None:
    """A manifest that fits the folder's files."""
    files = {name: file_hash(place / name) for name in (PLAN, MEASUREMENTS)}
    content = {"format": 1, "plan": plan_hash, "dataset": "survey", "entry": 1, "made": "2030-01-31", "files": files}
    (place / MANIFEST).write_text(sealed_text(content))


# ---------------------------------------------------------------------- readers of documents


def _file(world: World, name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def run(data: bytes) -> object:
        (world.folder / name).write_bytes(data)
        return read(world.folder / name)

    return run


def _either(rng: random.Random, *makers: Callable[[], bytes]) -> bytes:
    return rng.choice(makers)()


def schema_toml(world: World) -> Reader:
    texts = [SCHEMA.to_toml(), Schema([BORN, *SCHEMA.columns]).to_toml()]
    seeds, trees = [text.encode() for text in texts], [tomllib.loads(text) for text in texts]

    def read(path: Path) -> object:
        found = Schema.load(path)
        for column in found:
            if column.kind != "group":
                column.labels()
        return found.fingerprint()

    mutate = lambda rng: _either(rng, lambda: mutators.bytes_of(seeds, rng), lambda: mutators.toml_of(trees, rng))  # noqa: E731
    return Reader("schema TOML", mutate, _file(world, "a.toml", read))


def schema_json(world: World) -> Reader:
    contest = {"schema": {"AGE": {"dtype": "uint8", "min": 0, "max": 120}, "SEX": {"dtype": "uint8", "values": [1, 2]}}}
    trees = [{"sex": 2, "race": 5}, {**contest, "runs": [{"epsilon": 1}]}]
    seeds = [json.dumps(each).encode() for each in trees]

    def read(path: Path) -> object:
        found = Schema.load(path)
        return found.fingerprint()

    mutate = lambda rng: _either(rng, lambda: mutators.bytes_of(seeds, rng), lambda: mutators.json_of(trees, rng))  # noqa: E731
    return Reader("schema JSON", mutate, _file(world, "a.json", read))


def plan_toml(world: World) -> Reader:
    text = world.plan.to_toml()
    seeds, trees = [text.encode()], [tomllib.loads(text)]

    def read(path: Path) -> object:
        found = plan_of_file(path)
        return found.hash, found.describe(), found.to_toml()

    mutate = lambda rng: _either(rng, lambda: mutators.bytes_of(seeds, rng), lambda: mutators.toml_of(trees, rng))  # noqa: E731
    return Reader("plan", mutate, _file(world, "plan.toml", read))


def geojson(world: World) -> Reader:
    square = [[0, 0], [0, 1], [1, 1], [0, 0]]
    trees = [
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {"STATE": 1, "NAME": "p"},
                    "geometry": {"type": "Polygon", "coordinates": [square]},
                },
                {
                    "properties": {"STATE": "02", "NAME": "p"},
                    "geometry": {"type": "MultiPolygon", "coordinates": [[square], [square]]},
                },
                {"properties": None, "geometry": {"type": "Point", "coordinates": [1, 2]}},
            ],
        }
    ]
    seeds = [json.dumps(each).encode() for each in trees]
    mutate = lambda rng: _either(rng, lambda: mutators.bytes_of(seeds, rng), lambda: mutators.json_of(trees, rng))  # noqa: E731
    return Reader("GeoJSON", mutate, _file(world, "a.geojson", lambda path: outlines(path, world.plan.groupings)))


# ---------------------------------------------------------------------- readers of a release


def release(world: World) -> Reader:
    """The folder, its files changed by bytes as a disk would, or by structure with the seals made to fit."""
    place = world.folder / "release"
    names = (PLAN, MEASUREMENTS, MANIFEST, EXTRACT)
    sound = {name: (place / name).read_bytes() for name in names}
    table, text = pq.read_table(place / MEASUREMENTS), tomllib.loads(sound[PLAN].decode())
    sealed = {name: json.loads(sound[name]) for name in (MANIFEST, EXTRACT)}

    def mutate(rng: random.Random) -> tuple[str, bytes, bool]:
        name = rng.choice(names)
        if rng.random() < 0.3:
            return name, mutators.bytes_of([sound[name]], rng), rng.random() < 0.5
        if name == PLAN:
            return name, mutators.toml_of([text], rng), True
        if name == MEASUREMENTS:
            return name, mutators.parquet_of([table], rng), True
        content = mutators.tree({key: value for key, value in sealed[name].items() if key != "seal"}, rng)
        if not isinstance(content, dict) or rng.random() < 0.1:
            return name, json.dumps(content, default=str).encode(), False
        try:
            return name, sealed_text(json.loads(json.dumps(content, default=str))).encode("utf-8", "replace"), False
        except (ValueError, RecursionError):
            return name, b"{}", False

    def read(given: tuple[str, bytes, bool]) -> object:
        name, data, fitting = given
        for each in names:
            (place / each).write_bytes(sound[each])
        (place / name).write_bytes(data)
        if fitting and name in (PLAN, MEASUREMENTS):
            seal(place, world.plan.hash)
        found = Release.load(place)
        return found.account(), promise_of(found), [found.totals(level) for level in range(len(found.plan.levels))]

    return Reader("release", mutate, read)


def estimates(world: World) -> Reader:
    """The estimates and their support, with a record that fits: what is left to the structure."""
    place = world.folder / "kept"
    place.mkdir()
    own = Release(place, world.plan, world.release.noisy)
    estimates_of(own, world.public)
    sound = {name: (place / name).read_bytes() for name in KEPT_ESTIMATES.files}
    tables = {name: pq.read_table(place / name) for name in KEPT_ESTIMATES.files}

    def mutate(rng: random.Random) -> tuple[str, bytes]:
        name = rng.choice(KEPT_ESTIMATES.files)
        if rng.random() < 0.3:
            return name, mutators.bytes_of([sound[name]], rng)
        return name, mutators.parquet_of([tables[name]], rng)

    def read(given: tuple[str, bytes]) -> object:
        with recorded(own, KEPT_ESTIMATES):
            for name in KEPT_ESTIMATES.files:
                (place / name).write_bytes(given[1] if name == given[0] else sound[name])
        return own.answer("AGE >= 65 and SEX == 2", by="STATE")

    return Reader("estimates", mutate, read)


def estimate(world: World) -> Reader:
    schema = Schema.from_mbi({"age": 3, "sex": 2})
    answer = Measurement(Workload.marginals(schema, ["sex"])[0], counts=[30, 70], scale=1.0)
    MAP(n0=10).fit(Prior.uniform(schema), [answer], total=100).save(world.folder / "seed.parquet")
    seeds, tables = [(world.folder / "seed.parquet").read_bytes()], [pq.read_table(world.folder / "seed.parquet")]
    mutate = lambda rng: _either(rng, lambda: mutators.bytes_of(seeds, rng), lambda: mutators.parquet_of(tables, rng))  # noqa: E731
    read = lambda path: Estimate.load(path).project(["sex"])  # noqa: E731
    return Reader("estimate", mutate, _file(world, "estimate.parquet", read))


# ---------------------------------------------------------------------- readers of tables


def _table_seeds(table: pa.Table) -> dict[str, list[bytes]]:
    stream, parquet = io.BytesIO(), io.BytesIO()
    pa.csv.write_csv(table, stream)
    pq.write_table(table, parquet)
    csv = stream.getvalue()
    return {".csv": [csv], ".csv.gz": [gzip.compress(csv)], ".parquet": [parquet.getvalue()]}


def _tables(world: World, name: str, table: pa.Table, read: Callable[[Path], object]) -> Reader:
    seeds = _table_seeds(table)

    def mutate(rng: random.Random) -> tuple[str, bytes]:
        suffix = rng.choice(list(seeds))
        if suffix == ".parquet" and rng.random() < 0.7:
            return suffix, mutators.parquet_of([table], rng)
        if suffix == ".csv.gz" and rng.random() < 0.5:
            return suffix, gzip.compress(mutators.bytes_of(seeds[".csv"], rng), 1)
        return suffix, mutators.bytes_of(seeds[suffix], rng)

    def run(given: tuple[str, bytes]) -> object:
        path = world.folder / f"{name.replace(' ', '-')}{given[0]}"
        path.write_bytes(given[1])
        return read(path)

    return Reader(name, mutate, run)


def groups(world: World) -> Reader:
    def read(path: Path) -> object:
        found = Groups.of(path)
        return [found.level(found.names).labels(), SCHEMA.with_groups(path)]

    return _tables(world, "groups", pa.table(GROUPS), read)


def public(world: World) -> Reader:
    def read(path: Path) -> object:
        Public.of(SCHEMA, PublicFiles.at([path]).source(), ["STATE", "PLACE"], weight="WEIGHT")
        return outside(SCHEMA, path)

    return _tables(world, "public table", people(), read)


def infer(world: World) -> Reader:
    return _tables(
        world, "inferring", people().slice(0, 30), lambda path: Schema.infer(path, groups=["STATE"]).fingerprint()
    )


def several_public(world: World) -> Reader:
    seed = world.folder / "public.parquet"
    read = lambda path: encode(SCHEMA, PublicFiles.at([seed, path]).source())  # noqa: E731
    return _tables(world, "several public files", people(), read)


# ---------------------------------------------------------------------- readers of texts

WORDS = [
    *(
        "AGE",
        "SEX",
        "WORK",
        "STATE",
        "BORN",
        "`AGE`",
        "missing",
        "and",
        "or",
        "not",
        "in",
        "is",
        "(",
        ")",
        "[",
        "]",
        ",",
    ),
    *(
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "65",
        "18",
        "1",
        "2",
        "-1",
        "1e999",
        "'part'",
        '"none"',
        "'2020-12-31'",
        "None",
    ),
    *(
        "True",
        "lambda",
        "AGE.x",
        "f(1)",
        "AGE >= 65",
        "SEX == 2",
        "9" * 400,
        "0x" + "f" * 400,
        "1j",
        "b'x'",
        "'''",
        "#",
        "`",
        "\\",
        "~",
    ),
]
QUERIES = [
    "AGE >= 65 and SEX == 2",
    "not ( WORK in [ 'part' , 'full' ] or AGE is missing )",
    "18 <= AGE < 65",
    "`SEX` != 1",
]
DIGITS = [
    *"0123456789",
    ".",
    "-",
    "+",
    "e",
    "E",
    "/",
    "_",
    " ",
    "nan",
    "inf",
    "1/3",
    "1e-9",
    "0x",
    "e9999999",
    "9" * 5000,
    "٣",
    "½",
]
OPTIONS = [
    *(
        "--epsilon",
        "--delta",
        "--rho",
        "--levels",
        "--groups",
        "--schema",
        "--public",
        "--weight",
        "--max-rows-per-person",
    ),
    *(
        "--person-id",
        "--dataset",
        "--no-tune",
        "--json",
        "-o",
        "--by",
        "--pairs",
        "--seed",
        "--skip",
        "--bins",
        "--max-values",
    ),
    *(
        "schema.toml",
        "public.parquet",
        "places.csv",
        "release",
        "STATE",
        "PLACE",
        "STATE,PLACE",
        "AGE",
        "1",
        "0",
        "-1",
        "1/3",
    ),
    *(
        "1e999",
        "nan",
        "all",
        "²",
        "9" * 30,
        "",
        "x",
        "out.toml",
        "out.csv",
        "WEIGHT",
        "none.csv",
        ".",
        "AGE >= 65",
        "--spreadsheet-safe",
    ),
]
COMMANDS = [
    ["schema", "infer", "public.parquet", "-o", "out.toml"],
    ["check", "public.parquet", "--schema", "schema.toml"],
    ["plan", "--schema", "schema.toml", "--public", "public.parquet", "--epsilon", "1", "--no-tune", "-o", "out.toml"],
    ["answer", "release", "AGE >= 65"],
    ["sample", "release", "--public", "public.parquet", "-o", "out.csv"],
    ["score", "public.parquet", "public.parquet", "--schema", "schema.toml", "--by", "STATE", "--pairs", "2"],
]


def query(world: World) -> Reader:
    schema = Schema([BORN, *SCHEMA.columns])
    codes = {name: np.zeros(3, np.uint8) for name in schema.names}

    def read(text: str) -> object:
        found = parse(text, schema)
        assert parse(found.text, schema) == found
        return found.mask(codes), found.possible()

    return Reader("query", lambda rng: mutators.text_of(WORDS, rng, seeds=QUERIES), read)


def numbers(world: World) -> Reader:
    def mutate(rng: random.Random) -> Any:
        if rng.random() < 0.5:
            return mutators.text_of(DIGITS, rng, 6)
        trees = [Budget.approx(1, "1e-9").to_dict(), Budget.pure("1/3").to_dict(), Unit(7, person_id="ID").to_dict()]
        return mutators.tree(rng.choice(trees), rng)

    def read(given: Any) -> object:
        if isinstance(given, str):
            budget = Budget.pure(exact(given, "epsilon"))
            return str(budget), budget.to_dict(), repr(budget)
        if isinstance(given, dict) and "max_rows" in given:
            return Unit.from_dict(given).promise()
        return str(Budget.from_dict(given))

    return Reader("numbers", mutate, read)


def command_line(world: World) -> Reader:
    """Options in any order with any values; an end in words for what was not foreseen is a finding."""
    from click.testing import CliRunner

    commands, runner = every_command(), CliRunner()

    def mutate(rng: random.Random) -> list[str]:
        given = list(rng.choice(COMMANDS))
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            at = rng.randint(1, len(given))
            given[at : at + rng.choice([0, 1, 1])] = [rng.choice(OPTIONS)]
        return given

    def read(given: list[str]) -> object:
        os.chdir(world.folder)
        done = runner.invoke(commands, given)
        if UNFORESEEN in done.output or not isinstance(done.exception, SystemExit | None):
            raise UnforeseenEnd(f"{done.exception!r} {done.output[-300:]}") from done.exception
        if done.exit_code:
            raise msgspec.ValidationError(done.output[:80])  # counted as refused
        return None

    return Reader("command line", mutate, read)


ALL: tuple[Callable[[World], Reader], ...] = (
    *(
        schema_toml,
        schema_json,
        plan_toml,
        geojson,
        release,
        estimates,
        estimate,
        groups,
        public,
        infer,
        several_public,
    ),
    *(query, numbers, command_line),
)
