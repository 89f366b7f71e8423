"""Releases that nobody measured: invented counts, counts of a table with seeded noise, and folders of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from prade import Plan, Release
from prade.data.public.joint import encode
from prade.data.read.tables import write_table
from prade.release.derived_files import SYNTHETIC, keep_rows_as
from prade.release.release import EXTRACT, MANIFEST, MEASUREMENTS, PLAN, file_hash, measurement_table, sealed_text

NOWHERE = Path("nowhere")


def write_rows(table: pa.Table, release: Release) -> None:
    """Synthetic rows in a release's folder, with their record."""
    with keep_rows_as(release, SYNTHETIC):
        write_table(table, release.path / SYNTHETIC)


def answered(plan: Plan, answer: Callable[..., np.ndarray], path: Path = NOWHERE) -> Release:
    """A release whose noisy counts are `answer(question, part, groups)` for each part of each question."""
    noisy = (
        tuple(answer(question, part, len(plan.groupings[question.level])) for part in question.parts)
        for question in plan.questions
    )
    return Release(path, plan, tuple(noisy))


def invented(plan: Plan, seed: int = 0, rows: tuple[int, int] = (400, 900), path: Path = NOWHERE) -> Release:
    """Counts that no table has: each part shares a random number of rows out evenly among its cells, and has noise."""
    generator = np.random.default_rng(seed)

    def answer(question: Any, part: Any, groups: int) -> np.ndarray:
        even = generator.integers(*rows, (groups, 1)) // part.n_cells
        return even + np.rint(generator.laplace(0, float(question.scale), (groups, part.n_cells))).astype(np.int64)

    return answered(plan, answer, path)


def counted(plan: Plan, table: Mapping[str, Any] | pa.Table, generator: np.random.Generator) -> Release:
    """Counts of a table, with rounded noise of the plan's laws and scales."""
    codes = encode(plan.schema, table).codes
    keys = pa.table({name: table[name] for name in plan.groups.names})

    def answer(question: Any, part: Any, groups: int) -> np.ndarray:
        level = plan.groupings[question.level]
        group = plan.groups.keyed(plan.groups.names, level.number).numbers(keys)
        cells, width = part.cells(plan.schema, codes).astype(np.int64), part.n_cells + 1
        flat = np.bincount((group * width + cells)[group >= 0], minlength=groups * width)
        counts = flat.reshape(-1, width)[:, : part.n_cells]
        drawn = generator.laplace if question.law == "laplace" else generator.normal
        return counts + np.rint(drawn(0, float(question.scale), counts.shape)).astype(np.int64)

    return answered(plan, answer)


def write_folder(place: Path, plan: Plan, noisy: Sequence[Sequence[np.ndarray]]) -> Path:
    """A folder with these noisy counts, as `measure` leaves it."""
    place.mkdir(exist_ok=True)
    plan.save(place / PLAN)
    pq.write_table(measurement_table(plan, noisy), place / MEASUREMENTS)
    (place / EXTRACT).write_text(sealed_text({"account": ["all is well"]}))
    write_manifest(place, plan)
    return place


def write_manifest(place: Path, plan: Plan) -> None:
    """A manifest that fits the folder's files."""
    files = {name: file_hash(place / name) for name in (PLAN, MEASUREMENTS)}
    content = {"format": 1, "plan": plan.hash, "dataset": plan.dataset, "entry": 1, "made": "2030-01-31"}
    head = {"ledger": "00", "number": 2, "hash": "00"}
    (place / MANIFEST).write_text(sealed_text({**content, "files": files, "head": head}))
