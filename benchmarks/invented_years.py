"""Invented, census-like tables of several years that drift from year to year."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from prade import Schema
from prade.examples.census import DRIFT, OLDEST, Side, checked_years, places_of, schema_of, survey, table_of


@dataclass(frozen=True)
class CensusYears:
    """One table for each of several years, of the same places and other people; `groups` are the places."""

    tables: dict[int, pa.Table]
    schema: Schema
    groups: pa.Table


def census_years(
    *,
    persons: int = 20_000,
    states: int = 2,
    places_per_state: int = 10,
    years: Sequence[int] = (2019, 2020, 2021, 2022, 2023, 2024),
    drift: float = 1.0,
    rare_race: bool = False,
    seed: int = 0,
) -> CensusYears:
    """Tables like those of `census_like`, one row for each of `persons` people per year, that drift from year to year.

    In a year, everything changes by a quarter of the drift of the private side of `census_like`, except that no race is
    new (unless `rare_race`), and a place takes a step of a random walk: after four years, the two drifts are alike.
    `drift` multiplies all of it.

    """
    when = checked_years(years, {"persons": persons, "states": states, "places_per_state": places_per_state})
    here = tuple(range(11, 11 + states))
    walk = drift * DRIFT["place_drift"] / 2
    steady = {name: drift * change for name, change in DRIFT.items() if name != "place_drift"}
    if not rare_race:
        del steady["islanders"]
    sides = []
    for number, year in enumerate(when):
        since = year - when[0]
        changes = {name: change * since / 4 for name, change in steady.items()}
        sides.append(Side(here, (year,), 1 + number * persons, **changes, place_drift=walk, steps=since))
    places = places_of(sides[0], places_per_state, seed)
    return CensusYears(
        {year: survey(side, persons, places_per_state, seed) for year, side in zip(when, sides, strict=True)},
        schema_of(when[0] - OLDEST, when[-1]),
        table_of({name: places[name] for name in ("STATE", "PLACE")}, {}),
    )
