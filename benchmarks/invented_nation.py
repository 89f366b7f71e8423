"""A nation invented from the public table of Illinois and Ohio: regions, states and places, each with its own people.

Half of the states have published their rows, the others have not. The rows of a place are drawn from those of one real
PUMA and from all others, tilted by effects of its region, its state and its own, and some of their columns are taken
from another row of the place. Published and private places are drawn from different halves of the real households, so
the people of one half of the nation are not those of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from common import DATA, OUT
from prade import Schema
from prade.core.arrays import Floats, Ints
from prade.data.declare.column import Column
from prade.data.public.joint import encode
from prade.data.read.tables import read_table, write_table

LEVELS = ("REGION", "STATE", "PLACE")
REGIONS = 4
TILTED = ("AGEP", "RAC1P", "HISP", "SCHL", "ESR", "PINCP", "TEN", "VALP", "RNTP", "NP", "BLD", "JWTRNS")
# Sizes that make a place as far from the public table as real PUMAs are: mean L1 distance of one- and two-way tables
# 0.20 and 0.34, where those of New York and Pennsylvania have 0.23 and 0.40 from Illinois and Ohio, and those of
# Illinois and Ohio 0.18 and 0.31 from their own two states.
REGION_EFFECT, STATE_EFFECT, PLACE_EFFECT = 0.2, 0.3, 0.5  # standard deviations of the logarithm of a cell's weight
AT_HOME = 0.7  # of a place's rows are drawn from one PUMA
CROSSED = 0.3  # of the rows have columns of another row
COLUMNS_CROSSED = 3
SPREAD_OF_SIZES = 0.5  # standard deviation of the logarithm of a place's number of rows


@dataclass(frozen=True)
class Nation:
    """The files of an invented nation: published rows, private rows, the list of private places, the schema."""

    public: Path
    private: Path
    places: Path
    schema: Path


def nation(places: int = 2_400, rows: int = 3_000_000, states: int = 48, seed: int = 0) -> Nation:
    """The files of a nation, which are made once and kept."""
    folder = OUT / f"nation-{places}-{rows}-{states}-{seed}"
    found = Nation(*(folder / name for name in ("public.parquet", "private.parquet", "places.csv", "schema.toml")))
    if not found.schema.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write(found, places, rows, states, seed)
    return found


def _write(files: Nation, places: int, rows: int, states: int, seed: int) -> None:
    real = Schema.load(DATA / "acs2024.schema.toml")
    columns = [column for column in real if column.name in real.coded]
    people = _People(real, seed)
    generator = np.random.default_rng([seed, 1])
    sizes = np.exp(SPREAD_OF_SIZES * generator.standard_normal(places))
    sizes = np.maximum(np.rint(sizes * rows / sizes.sum()), 1).astype(np.int64)
    state_of = np.sort(np.arange(places) % states)
    region_of = state_of * REGIONS // states
    published = state_of % 2 == 0
    effects = people.effects(generator, REGIONS, REGION_EFFECT)[region_of]
    effects += people.effects(generator, states, STATE_EFFECT)[state_of]
    for half, path in ((published, files.public), (~published, files.private)):
        drawn = [
            people.place(generator, int(sizes[place]), effects[place], bool(published[place]))
            for place in np.flatnonzero(half)
        ]
        number = np.repeat(np.flatnonzero(half), sizes[half])
        listed = {
            "REGION": pa.array(region_of[number] + 1),
            "STATE": pa.array(state_of[number] + 1),
            "PLACE": pa.array([f"{place:05d}" for place in range(places)]).take(pa.array(number)),
        }
        table = pa.table(listed | people.values(np.concatenate(drawn, axis=1)))
        write_table(table, path)
        if path == files.private:
            write_table(table.select(LEVELS).group_by(list(LEVELS)).aggregate([]), files.places)
    Schema([*(Column(name, "group") for name in LEVELS), *columns]).save(files.schema)


class _People:
    """The real public rows that an invented nation is drawn from."""

    def __init__(self, schema: Schema, seed: int) -> None:
        table = read_table(DATA / "acs2024_il_oh.parquet")
        self.table = table.select(list(schema.coded))
        coded = encode(schema, table)
        sizes = [schema[name].size for name in TILTED]
        start = np.cumsum([0, *sizes])
        self.cells = np.stack([coded.codes[name] + start[k] for k, name in enumerate(TILTED)]).astype(np.int64)
        self.n_cells = int(start[-1])
        household = np.unique(np.asarray(table["SERIALNO"].to_pylist()), return_inverse=True)[1]
        self.side = np.random.default_rng([seed, 0]).integers(2, size=household.max() + 1)[household]
        pumas = np.asarray(
            [f"{s}-{p}" for s, p in zip(*(table[n].to_pylist() for n in ("STATE", "PUMA")), strict=True)]
        )
        self.puma = np.unique(pumas, return_inverse=True)[1]

    def effects(self, generator: np.random.Generator, number: int, size: float) -> Floats:
        """The logarithms of what the weights of cells are multiplied by: [number, cells]."""
        return size * generator.standard_normal((number, self.n_cells))

    def place(self, generator: np.random.Generator, rows: int, effects: Floats, published: bool) -> Ints:
        """A place's rows: for every column, the real row that its value comes from, [columns, rows]."""
        own = effects + PLACE_EFFECT * generator.standard_normal(self.n_cells)
        weights = np.exp(own[self.cells].sum(axis=0) / np.sqrt(len(TILTED)))
        weights *= self.side == published
        home = self.puma == generator.integers(self.puma.max() + 1)
        weights = AT_HOME * weights * home / (weights * home).sum() + (1 - AT_HOME) * weights / weights.sum()
        drawn = generator.choice(len(weights), size=rows, p=weights / weights.sum())
        sources = np.tile(drawn, (self.table.num_columns, 1))
        crossed = np.flatnonzero(generator.random(rows) < CROSSED)
        for _ in range(COLUMNS_CROSSED):
            sources[generator.integers(len(sources), size=len(crossed)), crossed] = generator.choice(
                drawn, len(crossed)
            )
        return sources.astype(np.int32)

    def values(self, sources: Ints) -> dict[str, pa.ChunkedArray]:
        """The values of the rows that `place` has drawn."""
        return {
            name: self.table[name].take(pa.array(rows))
            for name, rows in zip(self.table.column_names, sources, strict=True)
        }
