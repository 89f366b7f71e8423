"""All estimates of a release: worked out again from their multipliers, asked, kept in a file."""

import json
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Ask, DataError, Level, Release, Schema, Workload
from prade.data.public.public import Public
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.estimates import Estimates, estimates_of, kept_estimates
from prade.planning.settings import Settings
from prade.release.derived_files import ESTIMATES
from worlds.plans import plan_of
from worlds.releases import answered, counted
from worlds.survey import FIVE_PLACES, SCHEMA, THREE_PLACES, people

ONES, PAIR = Workload.all_marginals(SCHEMA, 1), Workload.marginals(SCHEMA, [("AGE", "WORK")])


def public_of(seed=0, states=(1, 3)):
    """State 1 has the plan's name, with places p, q and one that the plan does not have."""
    weights = np.random.default_rng([seed, 1]).uniform(0.2, 2.0, 400)
    table = people(seed, states, 400, places=("p", "q", "z")).append_column("W", [weights])
    return Public.of(SCHEMA, table, ["STATE", "PLACE"], weight="W")


PUBLIC = public_of()
LEVELS = {
    "three": [Level((), PAIR), Level("STATE", ONES), Level("PLACE", [Ask(ONES, 2), Ask(PAIR)])],
    "two": [Level("STATE"), Level("PLACE", ONES)],
    "one": [Level((), ONES)],
    "states": [Level("STATE", PAIR)],
    "places": [Level("PLACE", ONES)],
}


def survey(levels="three", groups=None, epsilon=2):
    listed = groups or (FIVE_PLACES if levels != "places" else {"STATE": [1, 1, 2], "PLACE": ["p", "q", "s"]})
    return plan_of(SCHEMA, *LEVELS[levels], groups=listed, budget=epsilon)


def released(plan, seed=0):
    """Noisy counts of people who are somewhat younger than the public ones, and work more."""
    generator = np.random.default_rng(seed + 50)
    place = generator.choice(5, 3000, p=[0.3, 0.2, 0.1, 0.25, 0.15])
    mine = {name: np.array(values)[place] for name, values in FIVE_PLACES.items()}
    mine |= {"AGE": generator.integers(0, 80, 3000), "SEX": generator.integers(1, 3, 3000)}
    mine["WORK"] = generator.choice(["none", "part", "full"], 3000, p=[0.4, 0.2, 0.4])
    return counted(plan, mine, generator)


RELEASE = released(survey())
OTHER = Settings(own=0.5)
PAPERS = [Settings(estimator="ide"), Settings(estimator="two-stage")]  # which leave rows without mass


@pytest.fixture(scope="module")
def estimates():
    return Estimates.of(RELEASE, PUBLIC, OTHER)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("settings", [Settings(), OTHER, Settings(own=1.0), Settings(own=0.0, smooth=False), *PAPERS])
def test_weights_are_those_that_were_estimated(levels, settings):
    """From multipliers alone, and those of a group above are the sum of the last level's groups."""
    release = released(survey(levels), 3)
    found = Estimates.of(release, PUBLIC, settings)
    descent = Descent(release, PUBLIC, settings)
    every = list(descent.map(lambda each: each))
    for each, made in zip(every, found.made, strict=True):
        np.testing.assert_allclose(found.weights(each.group), each.estimate.weights, atol=1e-15)
        assert found.totals[each.group] == each.total
        assert made.status == each.estimate.status.value
    last = release.plan.groupings[-1]
    for level, grouping in enumerate(release.plan.groupings):
        above, rows = last.above(grouping), np.maximum(found.totals, 1e-9)
        for group in range(len(grouping)):
            mine = np.flatnonzero(above == group)
            mean = rows[mine] @ np.stack([every[each].estimate.weights for each in mine]) / rows[mine].sum()
            np.testing.assert_allclose(found.joint(group, level).weights, mean, atol=1e-14)


def test_answers_that_cannot_be_used_leave_the_prior():
    """All public rows in one cell, and the noisy answer says that it is empty."""
    schema = Schema.from_mbi({"a": 2, "b": 2})
    public = Public.of(schema, {"a": [0, 0, 0], "b": [0, 1, 1]})
    plan = plan_of(schema, Level((), Workload.marginals(schema, ["a"]), total=0))
    release = answered(plan, lambda *_: np.array([[-5, 12]]))
    found = Estimates.of(release, public, Settings(smooth=False, unseen=False))
    assert found.made[0].status == "hopeless"
    np.testing.assert_allclose(found.weights(0), 1 / 3)
    np.testing.assert_allclose(Estimates.of(release, public, Settings(unseen=False)).weights(0), 1 / 3)


def brute(estimates, by, value):
    """Sum over the last level's groups of total * value(joint), for each combination of `by`."""
    rows, counts = {}, {}
    for number, values in enumerate(estimates.plan.groupings[-1].values):
        named = dict(zip(estimates.plan.groupings[-1].by, values, strict=True))
        key = tuple(named[name] for name in by)
        rows[key] = rows.get(key, 0.0) + estimates.totals[number]
        counts[key] = counts.get(key, 0.0) + estimates.totals[number] * value(estimates.joint(number))
    return rows, counts


def described(column):
    """The columns that tell the codes of a column apart in a marginal."""
    if not (column.numeric or column.groups):
        return [{column.name: value} for value in [*column.values, *[None] * column.missing]]
    bounds = [column.min, *column.edges, column.max]
    return [{f"{column.name}_from": low, f"{column.name}_to": high} for low, high in pairwise(bounds)]


@pytest.mark.parametrize("by", [(), "STATE", ("STATE", "PLACE")])
@pytest.mark.parametrize("columns", ["WORK", ("SEX", "WORK"), ("WORK", "AGE")])
def test_marginals_are_those_of_the_joints(estimates, by, columns):
    names = (by,) if isinstance(by, str) else by
    wanted = (columns,) if isinstance(columns, str) else columns
    rows, counts = brute(estimates, names, lambda joint: joint.project(wanted).ravel())
    table = estimates.marginal(columns, by=by)
    cells = list(product(*(described(SCHEMA[name]) for name in wanted)))
    assert table.num_rows == len(counts) * len(cells)
    for number, row in enumerate(table.to_pylist()):
        key, cell = tuple(row[name] for name in names), number % len(cells)
        for expected in cells[cell]:
            assert {name: row[name] for name in expected} == expected
        assert row["count"] == pytest.approx(counts[key][cell], rel=1e-7)
        assert row["share"] == pytest.approx(counts[key][cell] / rows[key], rel=1e-7)


def test_an_only_child_has_its_parents_counts_and_intervals():
    found = Estimates.of(released(survey("two", THREE_PLACES)), PUBLIC)
    place, state = (found.marginal("WORK", by).to_pylist()[-3:] for by in (("STATE", "PLACE"), "STATE"))
    for name in ("count", "sd", "low", "high"):
        assert [each[name] for each in place] == pytest.approx([each[name] for each in state], rel=1e-6)


def test_by_a_column_that_does_not_follow_is_refused():
    found = Estimates.of(released(survey("states")), PUBLIC)
    with pytest.raises(DataError, match=r"'PLACE' is not a column of the release's levels \(STATE\)"):
        found.answer("SEX == 1", by="PLACE")
    with pytest.raises(DataError, match="no column 'PLACES'"):
        found.answer("SEX == 1", by="PLACES")


@pytest.mark.parametrize(("levels", "settings"), list(product(["three", "one"], [Settings(), OTHER, *PAPERS])))
def test_a_file_brings_everything_back(tmp_path, levels, settings):
    release = released(survey(levels))
    estimates = Estimates.of(release, PUBLIC, settings)
    estimates.save(tmp_path / "kept.parquet")
    again = Estimates.load(tmp_path / "kept.parquet", release, PUBLIC)
    assert again.settings == settings
    for one, other in zip(estimates.levels, again.levels, strict=True):
        models = [{own: (kind.scales, kind.told) for own, kind in each.kinds.items()} for each in (one, other)]
        assert models[0] == models[1]
        for name in ("totals", "rows_variance", "scale"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for group, (one, other) in enumerate(zip(estimates.made, again.made, strict=True)):
        np.testing.assert_array_equal([one.kl, one.gap], [other.kl, other.gap])  # a gap may be unknown
        assert one.status == other.status
        assert np.array_equal(estimates.weights(group), again.weights(group))
    for query in ("SEX == 1", "AGE >= 65 and WORK == 'full'"):
        assert again.answer(query).equals(estimates.answer(query))


@pytest.fixture
def kept(tmp_path, estimates):
    path = tmp_path / "kept.parquet"
    estimates.save(path)
    return path


@pytest.mark.parametrize(
    "other",
    [
        (released(survey(epsilon=3)), PUBLIC),
        (released(survey(), seed=1), PUBLIC),  # the same plan, measured again
        (RELEASE, public_of(1)),
        (RELEASE, public_of(states=(1, 4))),  # the same rows from a state of another name
    ],
    ids=["plan", "noise", "rows", "names"],
)
def test_another_release_or_public_table_is_refused(kept, other):
    with pytest.raises(DataError, match="was made from another release or public table; remove it"):
        Estimates.load(kept, *other)


def rewritten(path, table, metadata=None):
    pq.write_table(table.replace_schema_metadata(metadata or pq.read_table(path).schema.metadata), path)


def with_column(name, change):
    def changed(table):
        return table.set_column(table.column_names.index(name), name, pa.array(change(table[name].to_pylist())))

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.slice(0, 7),
        lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        with_column("multipliers", lambda cells: [each and each[:-1] for each in cells]),
        with_column("multipliers", lambda cells: [*cells[:-1], None]),
        with_column("total", lambda cells: [float("nan"), *cells[1:]]),
        with_column("rows_variance", lambda cells: [*cells[:-1], -1.0]),
        with_column("scale", lambda cells: [0.0, *cells[1:]]),
        with_column("status", lambda cells: [*cells[:-1], "splendid"]),
        with_column("kl", lambda cells: [*cells[:-1], None]),
        with_column("group", lambda cells: cells[::-1]),
    ],
)
def test_a_table_that_does_not_fit_is_noticed_before_it_is_used(kept, change):
    rewritten(kept, change(pq.read_table(kept)))
    with pytest.raises(DataError, match="saved estimates, or is damaged"):
        Estimates.load(kept, RELEASE, PUBLIC).answer("SEX == 1", by="STATE")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"format": 6', b'"format": 7', "has file format 7, and this prade reads up to 6; update prade"),
        (b'"format": 6', b'"format": 5', "made by an earlier version of prade: run `prade estimate` again"),
        (b'"n0"', b'"n1"', "some settings are missing"),
        (b'"own"', b'"mixture": 0.3, "own"', r"mixture is 0\.3: version 0\.10 has no priors .* estimate anew"),
    ],
)
def test_other_headers_are_refused(kept, old, new, message):
    table = pq.read_table(kept)
    rewritten(kept, table, {"prade": table.schema.metadata[b"prade"].replace(old, new)})
    with pytest.raises(DataError, match=message):
        Estimates.load(kept, RELEASE, PUBLIC)


def each_model(change):
    def changed(models):
        for kind in (kind for model in models for kind in model.values() if kind is not None):
            change(kind)

    return changed


@pytest.mark.parametrize(
    "change",
    [
        each_model(lambda kind: kind["scales"][0].update(a=-0.5)),
        each_model(lambda kind: kind["scales"][0]["columns"].pop()),
        each_model(lambda kind: kind["scales"][0].update(columns=[1e4] * 3)),
        each_model(lambda kind: kind["scales"].clear()),
        each_model(lambda kind: kind.update(told=[-1.0])),
        lambda models: models.pop(),
    ],
)
def test_models_that_do_not_fit_are_noticed(kept, change):
    table = pq.read_table(kept)
    header = json.loads(table.schema.metadata[b"prade"])
    change(header["models"])
    rewritten(kept, table, {"prade": json.dumps(header).encode()})
    with pytest.raises(DataError, match="saved estimates, or is damaged"):
        Estimates.load(kept, RELEASE, PUBLIC)


def test_a_release_s_folder_keeps_the_estimates_that_were_made_last(tmp_path):
    release = Release(tmp_path, RELEASE.plan, RELEASE.noisy)
    with pytest.raises(DataError, match=r"has no estimates\.parquet yet: run `prade estimate"):
        kept_estimates(release)
    for settings in (Settings(), OTHER):
        estimates_of(release, PUBLIC, settings)
        first = kept_estimates(release)
        assert first.settings == settings
        again = kept_estimates(release)
        assert again.answer("SEX == 1", by="STATE").equals(first.answer("SEX == 1", by="STATE"))
    (tmp_path / ESTIMATES).unlink()
    with pytest.raises(DataError, match=r"has no estimates\.parquet yet: run `prade estimate"):
        kept_estimates(release)
