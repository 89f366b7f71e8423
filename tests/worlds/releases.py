"""Releases that nobody measured: invented counts, counts of a table with seeded noise, and folders of them."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from prade import Release
from prade.data.public.joint import encode
from prade.data.read.tables import write_table
from prade.release.derived_files import SYNTHETIC, keep_rows_as
from prade.release.release import (
    EXTRACT,
    MANIFEST,
    MEASUREMENTS,
    PLAN,
    file_hash,
    measurement_table,
    read_manifest,
    sealed_text,
)

NOWHERE = Path("nowhere")


def write_rows(table, release):
    """Synthetic rows in a release's folder, with their record."""
    with keep_rows_as(release, SYNTHETIC):
        write_table(table, release.path / SYNTHETIC)


def answered(plan, answer, path=NOWHERE):
    """A release whose noisy counts are `answer(question, part, groups)` for each part of each question."""
    noisy = (
        tuple(answer(question, part, len(plan.groupings[question.level])) for part in question.parts)
        for question in plan.questions
    )
    return Release(path, plan, tuple(noisy))


def invented(plan, seed=0, rows=(400, 900), path=NOWHERE):
    """Counts that no table has: each part shares a random number of rows out evenly among its cells, and has noise."""
    generator = np.random.default_rng(seed)

    def answer(question, part, groups):
        even = generator.integers(*rows, (groups, 1)) // part.n_cells
        return even + np.rint(generator.laplace(0, float(question.scale), (groups, part.n_cells))).astype(np.int64)

    return answered(plan, answer, path)


def counted(plan, table, generator):
    """Counts of a table, with rounded noise of the plan's laws and scales."""
    codes = encode(plan.schema, table).codes
    keys = pa.table({name: table[name] for name in plan.groups.names})

    def answer(question, part, groups):
        level = plan.groupings[question.level]
        group = plan.groups.keyed(plan.groups.names, level.number).numbers(keys)
        cells, width = part.cells(plan.schema, codes).astype(np.int64), part.n_cells + 1
        flat = np.bincount((group * width + cells)[group >= 0], minlength=groups * width)
        counts = flat.reshape(-1, width)[:, : part.n_cells]
        drawn = generator.laplace if question.law == "laplace" else generator.normal
        return counts + np.rint(drawn(0, float(question.scale), counts.shape)).astype(np.int64)

    return answered(plan, answer)


def write_folder(place, plan, noisy):
    """A folder with these noisy counts, as `measure` leaves it."""
    place.mkdir(exist_ok=True)
    plan.save(place / PLAN)
    pq.write_table(measurement_table(plan, noisy), place / MEASUREMENTS)
    (place / EXTRACT).write_text(sealed_text({"account": ["all is well"]}))
    write_manifest(place, plan)
    return place


def write_manifest(place, plan):
    """A manifest that fits the folder's files."""
    files = {name: file_hash(place / name) for name in (PLAN, MEASUREMENTS)}
    content = {"format": 1, "plan": plan.hash, "dataset": plan.dataset, "entry": 1, "made": "2030-01-31"}
    head = {"ledger": "00", "number": 2, "hash": "00"}
    (place / MANIFEST).write_text(sealed_text({**content, "files": files, "head": head}))


MADE = ("plan.toml", "measurements.parquet", "estimates.parquet", "support.parquet", "synthetic.parquet")
RECORDS = ("estimates.json", "synthetic.json")


def fixed_noise(counts, law, scale, **_):
    """The same noise for the same counts: a test may fix what the product never does."""
    noise = np.random.default_rng(7).laplace(scale=float(scale), size=counts.shape)
    return counts + np.rint(noise).astype(np.int64)


def content(folder):
    """What a release's folder holds, without the times and the ledger's entries."""
    manifest = read_manifest(folder)
    facts = {name: getattr(manifest, name) for name in ("plan", "dataset", "files")}
    return {name: (folder / name).read_bytes() for name in (*MADE, *RECORDS)} | {"release": json.dumps(facts).encode()}
