"""Readers of documents, of a release's folder, and of tables, each with mutations that suit it."""

import gzip
import io
import json
import random
import tomllib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import tomli_w

from fuzz import mutators
from fuzz.world import BORN, GROUPS, LABELLED, SCHEMA, Reader, people
from prade import Schema
from prade.data.declare.groups import Groups
from prade.data.public.decode import Decoder
from prade.data.public.joint import outside
from prade.data.public.public import Public
from prade.data.public.table import PublicFiles
from prade.data.read.coding import code_cells
from prade.data.read.csv import CsvFormat
from prade.estimating.levels.estimates import estimates_of, kept_estimates
from prade.measuring.streams import file_stream
from prade.planning.plan import Plan
from prade.planning.task import checked_targets, wanted_of
from prade.release.derived_files import KEPT_ESTIMATES, recorded
from prade.release.release import EXTRACT, MANIFEST, MEASUREMENTS, PLAN, Release, sealed_text
from prade.reporting.outlines import outlines
from prade.reporting.statements import budget_of, promise_of
from worlds.releases import write_manifest

Mutate = Callable[[random.Random], bytes]


def _file(world, label, name, mutate, read):
    def run(data):
        (world.folder / name).write_bytes(data)
        return read(world.folder / name)

    return Reader(label, mutate, run)


def _mixed(seeds, by_structure):
    return lambda rng: mutators.bytes_of(seeds, rng) if rng.random() < 0.5 else by_structure(rng)


def _toml(texts):
    trees = [tomllib.loads(text) for text in texts]
    return _mixed([text.encode() for text in texts], lambda rng: mutators.toml_of(trees, rng))


def _schema(path):
    schema = Schema.load(path)
    texts = [[*column.cell_texts(), *column.display_texts()] for column in schema if not column.groups]
    return schema.fingerprint(), texts


def schema_toml(world):
    texts = [SCHEMA.to_toml(), Schema([BORN, *SCHEMA.columns]).to_toml(), LABELLED.to_toml()]
    return _file(world, "schema TOML", "a.toml", _toml(texts), _schema)


def plan_toml(world):
    def read(path):
        plan = Plan.load(path)
        return plan.hash, plan.describe(), plan.to_toml()

    return _file(world, "plan", "plan.toml", _toml([world.plan.to_toml()]), read)


def targets_toml(world):
    tables, by = ["AGE x SEX", "WORK"], ["STATE", "PLACE"]
    targets = [{"tables": tables, "by": by, "weight": 3}, {"predicates": ["SEX == 1"], "by": "all"}]
    asked = [{"statistics": ["mean(AGE)", "median(AGE) where SEX == 2"], "weight": "1/3"}]
    texts = [tomli_w.dumps({"version": 1, "target": each}) for each in (targets, asked)]

    def read(path):
        found = checked_targets(path, world.plan.schema, world.plan.task.levels)
        return repr(found), [each.to_dict() for each in found], wanted_of(found, world.plan.schema)

    return _file(world, "targets", "targets.toml", _toml(texts), read)


def geojson(world):
    square = [[0, 0], [0, 1], [1, 1], [0, 0]]
    shapes = {"Polygon": [square], "MultiPolygon": [[square], [square]], "Point": [1, 2]}
    about = [{"STATE": 1, "NAME": "p"}, {"STATE": "02", "NAME": "p"}, None]
    features = [
        {"type": "Feature", "properties": each, "geometry": {"type": kind, "coordinates": places}}
        for each, (kind, places) in zip(about, shapes.items(), strict=True)
    ]
    shapes = [{"type": "FeatureCollection", "features": features}]
    mutate = _mixed([json.dumps(each).encode() for each in shapes], lambda rng: mutators.json_of(shapes, rng))
    return _file(world, "GeoJSON", "a.geojson", mutate, lambda path: outlines(path, world.plan.groupings))


def release(world):
    """The folder, its files changed by bytes as a disk would, or by structure with the seals made to fit."""
    place = world.folder / "release"
    names = (PLAN, MEASUREMENTS, MANIFEST, EXTRACT)
    sound = {name: (place / name).read_bytes() for name in names}
    table, text = pq.read_table(place / MEASUREMENTS), tomllib.loads(sound[PLAN].decode())
    sealed = {name: json.loads(sound[name]) for name in (MANIFEST, EXTRACT)}

    def mutate(rng):
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

    def read(given):
        name, data, fitting = given
        for each in names:
            (place / each).write_bytes(sound[each])
        (place / name).write_bytes(data)
        if fitting and name in (PLAN, MEASUREMENTS):
            write_manifest(place, world.plan)
        found = Release.load(place)
        totals = [found.totals(level) for level in range(len(found.plan.levels))]
        return found.account(), promise_of(found), budget_of(found.plan), totals

    return Reader("release", mutate, read)


def estimates(world):
    """The estimates and their support, with a record that fits: what is left to the structure."""
    place = world.folder / "kept"
    place.mkdir()
    own = Release(place, world.plan, world.release.noisy)
    estimates_of(own, world.public)
    sound = {name: (place / name).read_bytes() for name in KEPT_ESTIMATES.files}
    tables = {name: pq.read_table(place / name) for name in KEPT_ESTIMATES.files}

    def mutate(rng):
        name = rng.choice(KEPT_ESTIMATES.files)
        if rng.random() < 0.3:
            return name, mutators.bytes_of([sound[name]], rng)
        return name, mutators.parquet_of([tables[name]], rng)

    def read(given):
        with recorded(own, KEPT_ESTIMATES):
            for name in KEPT_ESTIMATES.files:
                (place / name).write_bytes(given[1] if name == given[0] else sound[name])
        return kept_estimates(own).answer("AGE >= 65 and SEX == 2", by="STATE")

    return Reader("estimates", mutate, read)


def _table_seeds(table):
    stream, parquet = io.BytesIO(), io.BytesIO()
    pa.csv.write_csv(table, stream)
    pq.write_table(table, parquet)
    csv = stream.getvalue()
    return {".csv": [csv], ".csv.gz": [gzip.compress(csv)], ".parquet": [parquet.getvalue()]}


def _tables(world, name, table, read):
    seeds = _table_seeds(table)

    def mutate(rng):
        suffix = rng.choice(list(seeds))
        if suffix == ".parquet" and rng.random() < 0.7:
            return suffix, mutators.parquet_of([table], rng)
        if suffix == ".csv.gz" and rng.random() < 0.5:
            return suffix, gzip.compress(mutators.bytes_of(seeds[".csv"], rng), 1)
        return suffix, mutators.bytes_of(seeds[suffix], rng)

    def run(given):
        path = world.folder / f"{name.replace(' ', '-')}{given[0]}"
        path.write_bytes(given[1])
        return read(path)

    return Reader(name, mutate, run)


def groups(world):
    def read(path):
        found = Groups.of(path)
        return [found.level(found.names).labels(), SCHEMA.with_groups(path)]

    return _tables(world, "groups", pa.table(GROUPS), read)


def public(world):
    def read(path):
        Public.of(SCHEMA, PublicFiles.at([path]).source(), ["STATE", "PLACE"], weight="WEIGHT")
        Decoder.fit(SCHEMA, path, weight="WEIGHT")
        return outside(SCHEMA, path)

    return _tables(world, "public table", people(), read)


def infer(world):
    rows = people().slice(0, 30)
    return _tables(world, "inferring", rows, lambda path: Schema.infer(path, groups=["STATE"]).fingerprint())


def private_csv(world):
    """Whatever bytes come after the header, every line is a row, and every row is coded."""
    (seed,) = _table_seeds(people())[".csv"]
    path = world.folder / "private.csv"

    def read(given):
        path.write_bytes(given[1])
        stream = file_stream([str(path)], given[0])
        batches = list(stream.read(stream.columns))
        lines = [line.removesuffix(b"\r") for line in given[1].split(b"\n")[1:]]
        expected = sum(map(bool, lines)) if len(stream.columns) > 1 else len(lines) - (lines[-1:] == [b""])
        found = sum(len(next(iter(batch.values()))) for batch in batches)
        assert found == expected, f"{found} rows of {expected} lines"
        coded = [(SCHEMA[name], batch[name]) for batch in batches for name in batch if name in SCHEMA.coded]
        return [code_cells(column, cells, refuse=False) for column, cells in coded]

    def mutate(rng):
        encoding, delimiter = rng.choice(["utf-8", "latin-1", "shift_jis"]), rng.choice(",,,;")
        return CsvFormat(encoding, delimiter), mutators.bytes_of([seed], rng)

    return Reader("private CSV", mutate, read)
