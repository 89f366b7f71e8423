"""Invented, census-like tables for demonstrations and tests: a public and a private one.

A small latent-factor model generates them in four steps: places -> persons -> attributes -> tables. Places differ in a
few factors, people in a few lasting traits, and every attribute is a threshold or a logit of these plus noise. So
columns depend on each other, a person's rows resemble each other, and the public table is a useful but imperfect prior
for the private one.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.errors import PradeError
from prade.data.declare.kinds import days
from prade.data.declare.schema import Schema
from prade.data.read.tables import write_table

Relation = Literal["other states", "earlier years"]
Array = NDArray[Any]

OLDEST = 99
MARITAL = ("never married", "married", "separated", "divorced", "widowed")
TENURE = ("mortgaged", "owned", "rented", "rent free")
MARRIED, SEPARATED, DIVORCED, WIDOWED = 1, 2, 3, 4
RENTED, RENT_FREE = 2, 3
EMPLOYED, UNEMPLOYED, INACTIVE = 1, 2, 3
BORN_HERE, BORN_ABROAD_TO_CITIZENS, NATURALISED, NOT_A_CITIZEN = 1, 2, 3, 4
BLACK, ASIAN, ISLANDER, OTHER_RACE = 2, 3, 5, 6
CAMPUS, ISLANDERS = 4, 5  # indices among the factors of a place
# what the private side of `census_like` has changed by
DRIFT = {"older": 0.65, "prices": 0.1, "care": 0.5, "islanders": 3.5, "remote": 0.3, "place_drift": 0.35}
MANAGERS, PROFESSIONALS, CARE, OFFICE, SERVICES = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class CensusLike:
    """A public and a private table with the same schema; no PERSON has more than `max_rows` rows.

    `groups` is the public list of the private table's groups (STATE, PLACE, YEAR); one of them has no rows.
    """

    public: pa.Table
    private: pa.Table
    schema: Schema
    groups: pa.Table
    max_rows: int

    def save(self, folder: str | PathLike[str] = ".") -> Self:
        """Write public.parquet, private.parquet, schema.toml and places.csv, the list of states and places."""
        write_table(self.public, Path(folder, "public.parquet"))
        write_table(self.private, Path(folder, "private.parquet"))
        write_table(self.groups.group_by(["STATE", "PLACE"]).aggregate([]), Path(folder, "places.csv"))
        self.schema.save(Path(folder, "schema.toml"))
        return self


@dataclass(frozen=True)
class Side:
    """How the public and the private side differ: states, years, and the drift of the model's constants."""

    states: tuple[int, ...]
    years: tuple[int, ...]
    first_id: int
    older: float = 0.0  # tilt of the age pyramid
    prices: float = 0.0  # log wages and rents
    care: float = 0.0  # logit of care work, the category that grows
    islanders: float = 0.0  # logit of the race that is rare on the public side
    remote: float = 0.0  # probit of working from home
    place_drift: float = 0.0  # standard deviation of the change in a place's factors since the public side, by step
    steps: int = 1  # of that change, each independent of the others


def census_like(
    *,
    persons: int = 40_000,
    states: int = 2,
    places_per_state: int = 10,
    years: Sequence[int] = (2021, 2022, 2023, 2024),
    relation: Relation = "other states",
    seed: int = 0,
) -> CensusLike:
    """A public and a private table with `persons` people each, drawn from a latent-factor model.

    A place has factors f = 0.25 state + 0.95 place (urban, wealth, older, campus, diverse), and a person i has lasting
    scores z_i. In row t of the person, each attribute is  β·(f, earlier attributes) + ρ z_i + sqrt(1 - ρ²) e_it,  cut
    into categories, or exponentiated and heaped at round numbers. A person has a row in 1 to `len(years)` of the years,
    one per year, always in the same place.

    `relation` says where the public rows come from: ``"other states"`` (same years) or ``"earlier years"`` (same
    places, before the first of `years`). The private side has drifted: people are older, wages and rents are higher,
    care work and work from home are more common, and race 5, which is rare on the public side, is present.

    Some values cannot exist and are missing: jobs of children and of people without work, arrival of people born in
    the country, tenure of group quarters, rent of owners. In addition, 1 to 4 % of ARRIVED, EDUC, OCCUP, INCOME,
    COMMUTE and RENT are missing at random.

    >>> data = census_like(persons=500, seed=1)
    >>> data.private.column_names[:5], data.max_rows
    (['PERSON', 'STATE', 'PLACE', 'YEAR', 'AGE'], 4)
    """
    now = checked_years(years, {"persons": persons, "states": states, "places_per_state": places_per_state})
    if relation not in get_args(Relation):
        raise PradeError(f"relation must be one of {', '.join(map(repr, get_args(Relation)))}; got {relation!r}")
    elsewhere, here = tuple(range(11, 11 + states)), tuple(range(11 + states, 11 + 2 * states))
    before = tuple(year - (now[-1] - now[0] + 1) for year in now)
    public = Side(here, before, 1) if relation == "earlier years" else Side(elsewhere, now, 1)
    private = Side(here, now, 1 + persons, steps=1, **DRIFT)
    places = {name: np.repeat(each, len(now)) for name, each in places_of(private, places_per_state, seed).items()}
    places["YEAR"] = np.tile(now, states * places_per_state)
    return CensusLike(
        public=survey(public, persons, places_per_state, seed),
        private=survey(private, persons, places_per_state, seed),
        schema=schema_of(public.years[0] - OLDEST, now[-1]),
        groups=table_of(places, {}),
        max_rows=len(now),
    )


def checked_years(years: Sequence[int], counts: dict[str, int]) -> tuple[int, ...]:
    if min(counts.values()) < 1:
        raise PradeError(f"persons, states and places_per_state must be at least 1; got {counts}")
    each_once = tuple(sorted(set(years)))
    if len(each_once) < max(2, len(years)):
        raise PradeError(f"years must contain at least two different years, each once; got {tuple(years)}")
    return each_once


@cache
def schema_of(first: int = 1921, last: int = 2024) -> Schema:
    """The schema for people who arrived in the country between two years."""
    schema = Schema.load(Path(__file__).with_suffix(".toml"))
    low, high = days(datetime.date(first, 1, 1)), days(datetime.date(last, 12, 31))
    return Schema([replace(each, min=low, max=high) if each.name == "ARRIVED" else each for each in schema])


def survey(side: Side, persons: int, places_per_state: int, seed: int) -> pa.Table:
    """The table of one side: places -> persons -> attributes, each step based on all steps before it."""
    rng = np.random.default_rng([seed, side.first_id])
    x = _persons(side, places_of(side, places_per_state, seed), persons, rng)
    x.prices, x.care, x.desk = side.prices + 0.03 * (x.YEAR - 2020), side.care, side.remote
    for step in (_family, _work, _money, _home):
        step(x, _Scores(x.index, rng))
    return table_of(vars(x), _missing(x, rng))


def places_of(side: Side, per_state: int, seed: int) -> dict[str, Array]:
    """The factors of each place, f = 0.25 state + 0.95 place; a state has the same places on both sides."""
    factors = []
    for state in side.states:
        rng = np.random.default_rng([seed, 0, state])
        f = 0.25 * rng.standard_normal(6) + 0.95 * rng.standard_normal((per_state, 6))
        for rare in (CAMPUS, ISLANDERS):  # every state has one pronounced college town and one islander community
            f[f[:, rare].argmax(), rare] += 1.2
        factors.append(f + side.place_drift * rng.standard_normal((side.steps, *f.shape)).sum(axis=0))
    urban, wealth, older, diverse, campus, islander = np.concatenate(factors).T
    return {
        "STATE": np.repeat(side.states, per_state),
        "PLACE": np.array([f"{state}-{place:03d}" for state in side.states for place in range(1, 1 + per_state)]),
        "urban": urban,
        "wealth": wealth - 0.2 * urban,
        "older": older - 0.3 * urban + side.older,
        "campus": np.maximum(campus - 1, 0),
        "diverse": 0.5 * urban + 0.8 * diverse,
        "islander": 1.2 * np.clip(islander, 0, 2.5) + side.islanders,
    }


def _ages(places: dict[str, Array], place: Array, rng: np.random.Generator) -> Array:
    """Ages from a common age pyramid, tilted by `older`, with additional students and young urban adults."""
    age = np.arange(OLDEST + 1)
    older, campus, urban = (places[name][:, None] for name in ("older", "campus", "urban"))
    density = np.exp(0.007 * older * (age - 40)) + 2.5 * campus * np.exp(-(((age - 20.5) / 2) ** 2))
    density += 0.3 * np.clip(urban, -1, 2) * np.exp(-(((age - 31) / 8) ** 2))
    density *= _logistic((77 - age) / 6)
    cumulative = np.cumsum(density / density.sum(axis=1, keepdims=True), axis=1)
    cumulative[:, -1] = 1
    # One search for all places: their cumulative distributions are joined, so that place g occupies (g, g + 1].
    joined = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    drawn = np.searchsorted(joined, place + rng.random(len(place)), side="right") - place * len(age)
    return np.asarray(np.minimum(drawn, OLDEST))  # the sum may be rounded up to the next place


def _persons(side: Side, places: dict[str, Array], persons: int, rng: np.random.Generator) -> SimpleNamespace:
    """People with their lasting attributes, one row for each year in which they are surveyed.

    Each person is surveyed in one certain year, for which the age is drawn, and in each other year with probability
    0.35, provided that they are born, have arrived and are at most 99. The last place is not surveyed in the last year.
    """
    years = np.array(side.years)
    size = np.exp(0.4 * places["urban"])
    place = rng.choice(len(size), persons, p=size / size.sum())
    unsurveyed = place == len(size) - 1
    sure = (rng.random(persons) * (len(years) - unsurveyed)).astype(int)
    x = SimpleNamespace(**{name: values[place] for name, values in places.items()})
    x.AGE, x.YEAR = _ages(places, place, rng), years[sure]
    x.female = rng.random(persons) < 0.49 + 0.0016 * np.maximum(x.AGE - 45, 0)
    _origins(x, rng)
    x.schooling = 0.3 * x.wealth + 0.2 * x.urban + 0.4 * x.campus + 0.1 * x.female + 0.5 * (x.RACE == ASIAN)
    x.schooling += 0.012 * (x.YEAR - x.AGE - 1975) - 0.25 * (x.RACE == BLACK) - 0.45 * (x.HISPANIC > 0)
    x.schooling += rng.standard_normal(persons)
    ages = x.AGE[:, None] + years - x.YEAR[:, None]
    there = (x.CITIZEN == BORN_HERE)[:, None] | (years >= x.arrival[:, None])
    seen = (rng.random(ages.shape) < 0.35) & (ages >= 0) & (ages <= OLDEST) & there
    seen[unsurveyed, -1] = False
    seen[np.arange(persons), sure] = True
    index, year = np.nonzero(seen)
    rows = SimpleNamespace(**{name: values[index] for name, values in vars(x).items()})
    rows.index, rows.PERSON, rows.SEX = index, side.first_id + index, 1 + rows.female
    rows.AGE, rows.YEAR = ages[index, year], years[year]
    return rows


def _origins(x: SimpleNamespace, rng: np.random.Generator) -> None:
    """Race, Hispanic origin and birth abroad from logits of the place; naturalisation is likelier after a long stay."""
    n, nothing = len(x.AGE), np.zeros(len(x.AGE))
    white, native, islander = nothing, -5 - 0.4 * x.urban, -9 + x.islander
    black, asian = -2.2 + x.diverse + 0.3 * x.urban, -3.2 + 0.7 * x.diverse + 0.4 * x.wealth
    x.RACE = 1 + _choose([white, black, asian, native, islander, -2.5 + 0.6 * x.diverse], rng.random(n))
    mixed = 2.6 * (x.RACE == OTHER_RACE) - 1.5 * (x.RACE == BLACK) - 2.5 * (x.RACE == ASIAN)
    origins = [nothing, -3.0 + 0.9 * x.diverse + mixed, -3.8 + 0.7 * x.urban + mixed, -3.7 + mixed]
    x.HISPANIC = _choose(origins, rng.random(n))
    abroad = -3.1 + 0.5 * x.diverse + 0.3 * x.urban + 3.2 * (x.RACE == ASIAN) + 1.5 * (x.RACE == ISLANDER)
    abroad = rng.random(n) < _logistic(abroad + 1.9 * (x.HISPANIC > 0) - 1.6 * (x.AGE < 18))
    age_then = np.abs(25 + 11 * rng.standard_normal(n))
    since = x.AGE - np.where(age_then > x.AGE, x.AGE * rng.random(n), age_then).astype(int)
    naturalised = (since >= 5) & (rng.random(n) < _logistic((since - 14) / 6))
    x.CITIZEN = np.where(abroad, np.where(naturalised, NATURALISED, NOT_A_CITIZEN), BORN_HERE)
    x.CITIZEN[abroad & (rng.random(n) < 0.08)] = BORN_ABROAD_TO_CITIZENS
    x.arrival = x.YEAR - since
    x.ARRIVED = (12 * (x.arrival - 1970) + rng.integers(12, size=n)).astype("datetime64[M]")


def _family(x: SimpleNamespace, score: _Scores) -> None:
    """Education as far as possible at that age; marriage from lasting thresholds, so nobody becomes unmarried again."""
    reached = 1 + np.searchsorted([-2.8, -2.1, -1.55, -0.4, 0.5, 1.35], x.schooling)
    in_school = 1 + np.searchsorted([6, 14, 18, 20, 23, 25], x.AGE, side="right")
    x.EDUC = np.minimum(reached, in_school)
    ever = score.uniform(1) < 0.92 * _logistic((x.AGE - 30 + 1.5 * x.female - x.schooling) / 3.2)
    widowed = score.uniform(1) < _logistic((x.AGE - 88 + 7 * x.female) / 7)
    split = score.uniform(1) < 0.24 * _logistic((x.AGE - 38 - 4 * x.wealth) / 8)
    apart = np.where(score.uniform(1) < 0.12, SEPARATED, DIVORCED)
    x.MARITAL = np.where(widowed, WIDOWED, np.where(split, apart, MARRIED)) * (ever & (x.AGE >= 18))
    frailty = 0.03 * np.maximum(x.AGE - 40, -10) - 0.15 * x.wealth - 0.2 * x.schooling
    x.DISABLED = score.normal(0.95) < frailty - 1.5
    student = (x.AGE >= 18) & (x.AGE < 23)
    quarters = -2.3 + student * (0.8 + 0.7 * x.campus) + 0.08 * np.maximum(x.AGE - 78, 0) - 0.4 * (x.AGE < 18)
    x.quarters = score.normal(0.9) < quarters


def _work(x: SimpleNamespace, score: _Scores) -> None:
    """Employment (a probit of age and health), occupation (logits of schooling and sex), hours and commuting."""
    age, s, female = x.AGE, x.schooling, x.female
    active = 1.15 - 0.16 * np.maximum(26 - age, 0) - 0.12 * np.maximum(age - 55, 0) + 0.2 * s - 1.1 * x.DISABLED
    active -= 0.35 * (female & (age > 24) & (age < 45)) + 1.2 * (x.quarters & (age > 22))
    active = (score.normal(0.8) < active) & (age >= 16)
    searching = score.normal(0.5) < -1.75 - 0.2 * s - 0.15 * x.wealth + 0.04 * np.maximum(28 - age, 0)
    x.EMPLOY = np.where(active, np.where(searching, UNEMPLOYED, EMPLOYED), INACTIVE)
    trades = [
        -0.4 + 0.5 * s + 0.02 * (age - 40),  # managers
        0.1 + 1.1 * s + 0.2 * x.urban - 0.2 * female,  # professionals
        -0.9 + 0.4 * s + 1.3 * female + x.care,  # care
        0.1 + 0.5 * female,  # office and sales
        -0.1 - 0.4 * s + 0.3 * female - 0.015 * (age - 40),  # services
        -0.2 - 0.5 * s - 2.4 * female,  # building and repair
        -0.6 * s - 0.9 * female - 0.2 * x.urban,  # production and transport
        -2.8 - 0.5 * s - 0.4 * female - x.urban,  # farming
    ]
    x.OCCUP = 1 + _choose(trades, score.uniform(0.95))
    hours = 42 + 10 * score.normal(0.8) - 4 * female - 13 * (age < 23) - 10 * (age > 66)
    hours += 4 * (x.OCCUP == MANAGERS) - 4 * (x.OCCUP == SERVICES)
    full_time = score.uniform() < 0.8 * np.exp(-(((hours - 40) / 12) ** 2))
    x.HOURS = np.where(full_time, 40, np.clip(_heap(hours, score, {5: 0.75, 1: 1.0}), 1, 99))
    at_desk = 0.9 * np.isin(x.OCCUP, (MANAGERS, PROFESSIONALS)) + 0.5 * (x.OCCUP == OFFICE)
    x.remote = score.normal(0.9) < -2.0 + at_desk + x.desk
    minutes = np.exp(2.95 + 0.15 * x.urban - 0.2 * (age < 20) + 0.05 * s + 0.7 * score.normal(0.8))
    x.COMMUTE = np.clip(_heap(minutes, score, {15: 0.12, 5: 0.85, 1: 1.0}), 1, 180)


def _money(x: SimpleNamespace, score: _Scores) -> None:
    """Wage = exp(hourly score) x hours x weeks; income adds business (sometimes a loss), capital and pensions."""
    hourly = np.array([0.35, 0.25, 0.05, -0.1, -0.35, 0.05, -0.1, -0.4])[x.OCCUP - 1] + 3.05 + x.prices
    hourly += 0.15 * x.schooling + 0.015 * np.minimum(x.AGE - 40, 8) + 0.1 * x.wealth + 0.08 * x.urban
    hourly += 0.45 * score.normal(0.9) - 0.12 * x.female
    earlier = (score.uniform() < np.where(x.EMPLOY == UNEMPLOYED, 0.6, 0.12)) & (x.AGE >= 16) & (x.AGE < 72)
    employed = x.EMPLOY == EMPLOYED
    weeks = np.where(employed & (score.uniform() < 0.88), 51, 51 * score.uniform())
    earned = (employed | earlier) * np.exp(hourly) * x.HOURS * weeks
    own_boss = score.normal(0.95) < -1.7 + 0.01 * (x.AGE - 40)
    business = earned * np.exp(0.8 * score.normal()) * np.where(score.uniform() < 0.07, -0.25, 0.8)
    owns_capital = score.normal(0.9) < -1.5 + 0.025 * (x.AGE - 40) + 0.3 * x.wealth + 0.25 * x.schooling
    capital = np.exp(7.3 + 0.2 * x.wealth + 1.9 * score.normal(0.7)) * np.where(score.uniform() < 0.05, -0.3, 1)
    retired = (score.uniform(1) < _logistic((x.AGE - 64) / 1.5)) & (x.AGE >= 60)
    pension = np.exp(9.75 + 0.12 * x.schooling + x.prices + 0.5 * score.normal(1))
    supported = (score.uniform(0.8) < 0.04 + 0.3 * x.DISABLED) & (x.AGE < 66)
    other = own_boss * business + owns_capital * capital + retired * pension
    other += supported * np.exp(8.8 + 0.5 * score.normal(0.5))
    x.WAGE = np.minimum(_round_money(np.where(own_boss, 0, earned), score), 900_000)
    x.INCOME = np.clip(x.WAGE + _round_money(other, score), -20_000, 2_000_000)


def _home(x: SimpleNamespace, score: _Scores) -> None:
    """Household size by marital status; ownership from a probit of age, family and wealth; rent by place."""
    child, married = x.AGE < 18, x.MARITAL == MARRIED
    with_children = child | (married & (x.AGE >= 30) & (x.AGE < 52))
    others = 0.75 + 0.3 * with_children - 0.55 * ((x.AGE >= 24) & ~married) - 0.014 * np.maximum(x.AGE - 45, 0)
    others = np.exp(others + 0.2 * (x.HISPANIC > 0) + 0.1 * x.diverse + 0.5 * score.normal(0.9))
    x.HHSIZE = np.where(x.quarters, 1, np.minimum(1 + np.maximum(others.astype(int), child | married), 12))
    owns = 0.35 + 0.02 * (np.clip(np.where(child, 38, x.AGE), 30, 75) - 40) + 0.55 * (married | child)
    owns += 0.3 * x.wealth - 0.35 * x.urban + 0.15 * x.schooling - 0.3 * (x.RACE == BLACK)
    owns = score.normal(0.95) < owns - 0.5 * (x.CITIZEN == NOT_A_CITIZEN)
    paid_off = score.uniform(0.95) < 0.12 + 0.75 * _logistic((x.AGE - 64) / 6)
    x.TENURE = np.where(owns, paid_off, np.where(score.uniform(0.9) < 0.04, RENT_FREE, RENTED))
    rent = 6.85 + 0.2 * x.urban + 0.2 * x.wealth + 0.1 * x.schooling + x.prices + 0.4 * score.normal(0.9)
    x.RENT = np.clip(_heap(np.exp(rent), score, {100: 0.35, 50: 0.75, 5: 0.9, 0.25: 1.0}), 50, 6000)


def _missing(x: SimpleNamespace, rng: np.random.Generator) -> dict[str, Array]:
    """Which values are missing: those that cannot exist, and a share of unanswered questions."""
    child, idle = x.AGE < 16, x.EMPLOY != EMPLOYED
    absent = dict.fromkeys(("EMPLOY", "WAGE", "INCOME"), child) | dict.fromkeys(("OCCUP", "HOURS"), idle)
    absent |= {"ARRIVED": x.CITIZEN == BORN_HERE, "EDUC": x.AGE < 3, "COMMUTE": idle | x.remote}
    absent |= {"TENURE": x.quarters, "RENT": x.quarters | (x.TENURE != RENTED)}
    unanswered = {"ARRIVED": 0.04, "EDUC": 0.01, "OCCUP": 0.01, "INCOME": 0.03, "COMMUTE": 0.02, "RENT": 0.03}
    return absent | {name: absent[name] | (rng.random(len(idle)) < share) for name, share in unanswered.items()}


def table_of(columns: dict[str, Array], absent: dict[str, Array]) -> pa.Table:
    """The columns of the schema, in its order; scores and factors are left out."""
    words = {"MARITAL": MARITAL, "TENURE": TENURE}
    types = {"PERSON": "int64", "PLACE": "str", "ARRIVED": "datetime64[D]", "DISABLED": "bool", "RENT": "float64"}
    table = {}
    for name in ("PERSON", *schema_of().names):
        if name in columns:
            values = pa.array(columns[name].astype(types.get(name, "int32")), mask=absent.get(name))
            table[name] = pa.array(words[name]).take(values) if name in words else values
    return pa.table(table)


class _Scores:
    """Normal scores of rows, ρ z_i + sqrt(1 - ρ²) e_it, with new z and e in each call; `lasting` is ρ."""

    def __init__(self, person: Array, rng: np.random.Generator) -> None:
        self._person, self._rng = person, rng

    def normal(self, lasting: float = 0.0) -> Array:
        z = self._rng.standard_normal(self._person[-1] + 1)[self._person] if lasting else 0.0
        e = self._rng.standard_normal(len(self._person)) if lasting < 1 else 0.0
        return np.asarray(lasting * z + np.sqrt(1 - lasting**2) * e)

    def uniform(self, lasting: float = 0.0) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr(self.normal(lasting))) if lasting else self._rng.random(len(self._person))


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _choose(logits: list[Array], uniform: Array) -> Array:
    """A category for each row from P(k) ∝ exp(logit_k), by inverting the cumulative sum at `uniform`."""
    cumulative = np.cumsum(np.exp(logits), axis=0)
    return np.asarray((uniform * cumulative[-1] > cumulative[:-1]).sum(axis=0))


def _heap(x: Array, score: _Scores, grids: dict[float, float]) -> Array:
    """Round answers to multiples of a step; `grids` gives each step its cumulative share of the answers."""
    step = np.array(list(grids))[np.searchsorted(list(grids.values())[:-1], score.uniform())]
    return np.asarray(np.rint(x / step) * step)


def _round_money(x: Array, score: _Scores) -> Array:
    """Round sums of money to thousands or five thousands, small ones to tens or fifties."""
    unit = np.where(np.abs(x) < 10_000, 10, 1000)
    return np.asarray(np.rint(_heap(x / unit, score, {5: 0.35, 1: 0.75, 0.1: 0.93, 0.01: 1.0}) * unit))
