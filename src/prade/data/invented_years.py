"""Invented tables of the same places, year after year, that drift: for chains of releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prade.core.errors import PradeError
from prade.data.invented import DRIFT, Side, places_of, survey, table_of
from prade.data.invented_schema import OLDEST, schema_between

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.schema import Schema

WALK, RARE = "place_drift", "islanders"  # what does not grow steadily, and people of whom the first year has hardly any


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
    """Tables like those of `census_like`, one row for each of `persons` people a year, that drift from year to year.

    In a year, everything changes by a quarter of what the private side of `census_like` has changed by, except that no
    race is new (unless `rare_race`), and a place takes a step of a random walk: after four years, the two are alike.
    `drift` multiplies all of it.

    >>> made = census_years(persons=200, years=(2023, 2024))
    >>> {year: table.num_rows for year, table in made.tables.items()}
    {2023: 200, 2024: 200}
    """
    when = tuple(sorted(set(years)))
    if len(when) < max(2, len(years)):
        raise PradeError(f"years must contain at least two different years, each once; got {tuple(years)}")
    here, since = tuple(range(11, 11 + states)), [year - when[0] for year in when]
    steady = {name: change for name, change in DRIFT.items() if name != WALK and (rare_race or name != RARE)}
    sides = [
        Side(
            here,
            (year,),
            1 + number * persons,
            **{name: drift * change * later / 4 for name, change in steady.items()},
            place_drift=drift * DRIFT[WALK] / 2,
            steps=later,
        )
        for number, (year, later) in enumerate(zip(when, since, strict=True))
    ]
    places = places_of(sides[0], places_per_state, seed)
    return CensusYears(
        {year: survey(side, persons, places_per_state, seed) for year, side in zip(when, sides, strict=True)},
        schema_between(when[0] - OLDEST, when[-1]),
        table_of({name: places[name] for name in ("STATE", "PLACE")}, {}),
    )
