"""Diagnosis of worlds small enough to see what it should say."""

import numpy as np
import pytest

from prade import Budget, Level, PradeError, Release
from prade.diagnosis.diagnose import NOTHING, diagnosed
from worlds.drift import PLACES, SCHEMA, SIZES, World, moved
from worlds.plans import plan_of


@pytest.fixture(scope="module")
def world():
    return World(3, Budget.pure(8))


@pytest.fixture(scope="module")
def answers(world):
    return world.answers({place: {"TEN": moved(world.places[place]["TEN"], 0.25)} for place in range(PLACES)})


@pytest.fixture(scope="module")
def found(world, answers):
    return diagnosed(world.plan, answers, world.public)


def test_a_column_that_moved_everywhere_is_wrong_at_every_level(found):
    assert [level.name for level in found.levels] == ["all", "STATE", "STATE+PLACE"]
    whole, states, places = found.levels
    assert [level.wrong.sum(axis=0).tolist() for level in (whole, states)] == [[1, 0, 0, 0], [2, 0, 0, 0]]
    assert places.wrong[:, 0].sum() > PLACES / 2
    assert not places.wrong[:, 1:].any()
    assert found.wrong_somewhere() == ["TEN"]
    assert places.column_distance[0] == pytest.approx(0.25, abs=0.05)
    assert (places.at_least[:, 0] <= 0.25 + 0.1).all()
    assert 0.1 < whole.at_least[0, 0] < 0.3


def test_it_says_so_in_words_tables_and_plain_values(found):
    wrong = found.levels[-1].wrong[:, 0].sum()
    assert found.headlines()[2].endswith(
        f"wrong about 1 of 4 columns by PLACE; most about TEN, in {wrong} of 12 PLACEs."
    )
    assert found.headlines()[0] == "The public table is wrong about 1 of 4 columns in the whole table; most about TEN."
    assert found.columns().num_rows == 3 * len(SIZES)
    assert found.groups().num_rows == (1 + 2 + PLACES) * len(SIZES)
    first = found.to_dict()["columns"][0]
    assert (first["level"], first["column"], first["wrong"]) == ("all", "TEN", 1)


def test_it_is_the_same_for_any_number_of_threads_and_another_for_another_seed(world, answers, found):
    again = diagnosed(world.plan, answers, world.public, threads=3)
    other = diagnosed(world.plan, answers, world.public, seed=1)
    for one, two, three in zip(found.levels, again.levels, other.levels, strict=True):
        np.testing.assert_array_equal(one.chance, two.chance)
        np.testing.assert_array_equal(one.at_least, two.at_least)
        assert (one.at_least != three.at_least).any()


def test_a_design_effect_explains_more(world):
    """Shares that differ by a few standard errors of independent rows."""
    exact = World(5, Budget.pure(200))
    changed = {g: {"SEX": moved(exact.places[g]["SEX"], 0.08)} for g in range(PLACES)}
    counts = exact.answers(changed)
    plain, clustered = (diagnosed(exact.plan, counts, exact.public, design_effect=d) for d in (1, 30))
    assert plain.levels[-1].wrong.sum() > clustered.levels[-1].wrong.sum() == 0
    with pytest.raises(PradeError, match=r"design_effect is 0\.5; give 1 for independent rows, or a larger number"):
        diagnosed(world.plan, world.answers(), world.public, design_effect=0.5)


def test_numbers_of_rows_alone_say_nothing(world):
    plan = plan_of(SCHEMA, Level(["STATE", "PLACE"], (), total=1), groups=world.plan.groups)
    found = diagnosed(plan, [[np.full((PLACES, 1), 500)]], world.public)
    assert found.headlines() == [NOTHING]
    assert (found.columns().num_rows, found.columns().column_names[:2]) == (0, ["level", "column"])


def test_a_release_reads_the_public_table_itself(tmp_path, world, answers, found):
    release = Release(tmp_path, world.plan, tuple(tuple(each) for each in answers))
    codes = world.public.prior.codes
    state, place = (np.array([row[k] for row in world.public.groups.values])[world.public.group] for k in range(2))
    table = {"STATE": state, "PLACE": place, **{name: codes[name] for name in SIZES}}
    mine = release.diagnosis(table, threads=1)
    np.testing.assert_array_equal(mine.levels[-1].chance, found.levels[-1].chance)
    with pytest.raises(PradeError, match="the release does not name its public files"):
        release.diagnosis()
