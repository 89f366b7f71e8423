"""The top of the page: the sentence, the four tiles, and the warnings of the rehearsal."""

from dataclasses import replace

import pytest

from prade import Budget, Level, Plan, Release, Schema, Unit, Workload
from prade.planning.settings import Expected
from prade.reporting.statements import (
    MEASURE,
    account_of,
    budget_tile,
    caveats_of,
    expected_tile,
    headline_of,
    protection_tile,
    tiles_of,
)
from prade.tuning.stand_ins import WORDS
from prade.tuning.tune import ONE_TABLE, SAME_GROUPS
from worlds.survey import AGE, PLACE, SEX, STATE, THREE_PLACES
from worlds.whole_releases import released

SCHEMA = Schema([STATE, PLACE, AGE, SEX])
FOUND = Expected(0.182, 0.011, 0.339, error_spread=0.02)


def plan(**changes):
    level = [Level("STATE", ()), Level("PLACE", Workload.all_marginals(SCHEMA, 1))]
    known = {"unit": Unit(1), "groups": THREE_PLACES, **changes}
    return Plan("survey", SCHEMA, Budget.pure(1), known.pop("unit"), level, **known)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    import numpy as np
    import pyarrow as pa

    def people(seed):
        draw = np.random.default_rng(seed)
        place = draw.integers(0, 3, 200)
        named = {name: [values[k] for k in place] for name, values in THREE_PLACES.items()}
        return pa.table({**named, "AGE": draw.integers(0, 90, 200), "SEX": draw.integers(1, 3, 200)})

    return Release.load(released(tmp_path_factory.mktemp("world"), plan(), people(1), people(2)))


def test_the_sentence_says_how_many_for_whom_and_how_well_protected(release):
    found = headline_of(release, 1234)
    assert found["sentence"] == "1,234 synthetic rows for 3 PLACEs, epsilon = 1"
    assert (found["rows"], found["groups"], found["level"], found["dataset"]) == (1234, 3, "STATE+PLACE", "survey")
    assert len(found["made"]) == 10
    alone = Plan("survey", SCHEMA, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(SCHEMA, 1))])
    assert headline_of(replace(release, plan=alone), 1)["sentence"] == "1 synthetic row, epsilon = 1"
    assert tiles_of(replace(release, plan=alone), 1)[0]["title"] == "Rows and columns"


def test_there_are_four_tiles(release):
    found = tiles_of(release, 1234)
    assert [each["title"] for each in found] == [
        "Rows and groups",
        "Expected error against the public table alone",
        "Unit of protection",
        "Budget left",
    ]
    assert found[0]["note"] == "2 STATEs, 3 PLACEs, 2 columns."
    assert {each["tone"] for each in found} <= {"good", "plain", "bad"}


@pytest.mark.parametrize(
    ("expected", "value", "note", "tone"),
    [
        (FOUND, "46 % smaller", "0.182 ± 0.020, public table alone 0.339", "good"),
        (Expected(0.3, 0.05, 0.339), "12 % smaller", "0.300, public table alone 0.339", "plain"),
        (Expected(0.4, 0.05, 0.3), "33 % larger", "0.400, public table alone 0.300", "bad"),
        (None, "not rehearsed", "without a rehearsal", "plain"),
    ],
)
def test_the_expected_error_is_beside_that_of_the_public_table(expected, value, note, tone):
    tile = expected_tile(expected)
    assert (tile["value"], tile["tone"]) == (value, tone)
    assert note in tile["note"]


def test_the_unit_of_protection_says_what_is_assumed():
    assumed, enforced = plan(unit=Unit(3)), plan(unit=Unit(3, person_id="ID"))
    assert protection_tile(assumed)["value"] == "one person, if nobody has more than 3 rows"
    assert "Assumed, not enforced" in protection_tile(assumed)["note"]
    assert (protection_tile(enforced)["value"], protection_tile(enforced)["tone"]) == ("one person", "good")


def test_what_is_left_is_the_ledgers_account(release):
    assert account_of(release) == {"cap": "epsilon = 1", "spent": "epsilon = 1", "remaining": "epsilon = 0"}
    tile = budget_tile(release)
    assert tile["value"] == "epsilon = 0"
    assert tile["note"].startswith("Of epsilon = 1, after this release cost epsilon = 1. As of 20")


def test_the_rehearsals_warnings_are_kept_sentence_by_sentence():
    """Of the advice as the tuner writes it, only the number that a tile has is left out."""
    for words in WORDS.values():
        advice = f"{MEASURE}{FOUND}. {words} {SAME_GROUPS} {ONE_TABLE}"
        found = caveats_of(plan(expected=replace(FOUND, advice=advice)))
        assert " ".join(found) == f"{words} {SAME_GROUPS} {ONE_TABLE}"
        assert found[-2:] == [SAME_GROUPS, ONE_TABLE]
    against = caveats_of(plan(expected=replace(FOUND, advice=f"Do not touch the private data: {FOUND}. {ONE_TABLE}")))
    assert against[0].startswith("Do not touch")
    (none,) = caveats_of(plan())
    assert "not rehearsed" in none
