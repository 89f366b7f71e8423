"""Rows of no public person: which are added, with which weights, and that all stages agree on them."""

from dataclasses import replace

import numpy as np
import pytest

from prade import Level, Release, Rule, Schema, Workload
from prade.data.public.public import Public
from prade.estimating.levels.added_rows import ShownCell, shown_cells, with_extra, with_shown
from prade.estimating.levels.estimates import Estimates, estimates_of, kept_estimates
from prade.estimating.levels.public_cells import PublicCells
from prade.planning.invariants import rules_of
from prade.planning.settings import Settings
from prade.queries.parts import Marginal
from prade.sampling.table import sample_groups
from worlds.plans import plan_of
from worlds.releases import answered, counted, write_folder
from worlds.survey import FIVE_PLACES, SCHEMA

ONES = Workload.all_marginals(SCHEMA, 1)
RULE = Rule("AGE < 18 -> WORK == 'none'")
RULES = rules_of([RULE], SCHEMA)


def people(seed, rows=3_000, *, places=("u", "v"), sexes=(1,), full=True):
    """Nobody under 18 works; `sexes` and `full` (whether anybody works full time) make kinds of people."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 90, rows)
    work = np.where((age < 18) | (generator.random(rows) < 0.4), "none", "part")
    work = np.where((work == "part") & (generator.random(rows) < 0.6 * full), "full", work)
    place = {"STATE": generator.choice([7, 8], rows), "PLACE": generator.choice(places, rows)}
    return {**place, "AGE": age, "SEX": generator.choice(sexes, rows), "WORK": work}


TABLE = people(0, full=False)
PUBLIC = Public.of(SCHEMA, TABLE, ["STATE", "PLACE"])


def private(seed=1, rows=4_000):
    """A tenth are of SEX 2 and two in ten work full time: public rows are neither."""
    generator = np.random.default_rng([seed, 5])
    found, place = people(seed, rows), generator.integers(0, 5, rows)
    found["SEX"] = np.where(generator.random(rows) < 0.1, 2, 1)
    return found | {name: np.array(FIVE_PLACES[name])[place] for name in ("STATE", "PLACE")}


def release_of(seed=1, *, budget=5, workload=ONES, **how):
    plan = plan_of(SCHEMA, Level("STATE"), Level("PLACE", workload), groups=FIVE_PLACES, budget=budget)
    return counted(plan, private(seed, **how), np.random.default_rng(seed))


def rows_of(public):
    return list(zip(*(public.prior.codes[name].tolist() for name in SCHEMA.coded), strict=True))


def test_the_rest_of_a_small_domain_is_added_once_unless_a_rule_forbids_it():
    found = with_extra(PUBLIC, 0.02, RULES)
    own, new = rows_of(found)[: len(PUBLIC)], rows_of(found)[len(PUBLIC) :]
    assert own == rows_of(PUBLIC)
    every = {(a, s, w) for a in range(4) for s in range(2) for w in range(3) if a or w == 0}
    assert len(new) == len(set(new)) == found.added
    assert set(new) == every - set(own)
    assert found.prior.weights[len(PUBLIC) :].sum() == pytest.approx(0.02)
    assert found.prior.weights[len(PUBLIC) :].min() > 0
    np.testing.assert_allclose(found.prior.weights[: len(PUBLIC)], 0.98 / len(PUBLIC))
    low = np.array([-np.inf, 18, 40, 65])[found.prior.codes["AGE"]]
    high = np.array([18, 40, 65, np.inf])[found.prior.codes["AGE"]]
    assert ((low <= found.numbers["AGE"]) & (found.numbers["AGE"] <= high)).all()


WIDE = Schema.from_mbi(dict.fromkeys("abcdef", 16))  # 2^24 cells


def chain(rows=2_000, seed=0):
    """Each column is the one before it, or up to three more."""
    generator = np.random.default_rng(seed)
    codes = [generator.integers(0, 16, rows)]
    for _ in "bcdef":
        codes.append((codes[-1] + generator.integers(0, 4, rows)) % 16)
    return Public.of(WIDE, dict(zip("abcdef", codes, strict=True)))


def test_crossings_are_new_rows_whose_linked_columns_fit():
    public = chain()
    found = with_extra(public, 0.05, rules_of([Rule("a != 3")], WIDE))
    codes = found.prior.codes
    rows = np.stack([codes[name] for name in "abcdef"], axis=1).astype(int)
    own, new = {tuple(row) for row in rows[: len(public)].tolist()}, rows[len(public) :]
    assert found.added == len(new) > 500
    assert not own & {tuple(row) for row in new.tolist()}
    assert (new[:, 0] != 3).all()
    assert np.isin(np.diff(new, axis=1) % 16, range(4)).all()  # linked as public columns are
    again = with_extra(chain(), 0.05, rules_of([Rule("a != 3")], WIDE))
    assert all(np.array_equal(code, again.prior.codes[name]) for name, code in codes.items())
    assert np.array_equal(found.prior.weights, again.prior.weights)


def test_rows_of_a_shown_cell_have_its_values_and_come_from_rows_that_have_others():
    """Whoever works full time is 18 or over, by the rule; SEX 2 goes to anybody."""
    shown = [ShownCell(Marginal.of(SCHEMA, ["WORK"]), 2, 3), ShownCell(Marginal.of(SCHEMA, ["SEX", "AGE"]), 4, 5)]
    found = with_shown(PUBLIC, shown, RULES)
    codes = {name: code[len(PUBLIC) :] for name, code in found.prior.codes.items()}
    weights, full = found.prior.weights[len(PUBLIC) :], codes["WORK"] == 2
    assert weights.sum() == pytest.approx(1 / 8)
    assert weights[full].sum() == pytest.approx(1 / 8 * 4 / 5)  # the cells' shares are 1/8 and 1/32
    assert (codes["AGE"][full] > 0).all()
    assert set(codes["SEX"][full].tolist()) == {0}
    assert set(zip(codes["SEX"][~full].tolist(), codes["AGE"][~full].tolist(), strict=True)) == {(1, 0)}
    assert set(codes["WORK"][~full].tolist()) == {0}
    assert len(set(found.group[len(PUBLIC) :].tolist())) == 4  # groups of the rows that they come from


def test_noise_alone_shows_hardly_anything():
    """1,000 releases with two absent cells in each of five places: 10 by chance at most; over 24 once in 10,000."""
    plan = plan_of(SCHEMA, Level("PLACE", ONES, total=0), groups={"PLACE": list("pqrst")})
    cells, generator, wrong = PublicCells(PUBLIC), np.random.default_rng(2), 0

    def answer(question, part, groups):
        p = 1 - np.exp(-1 / float(question.scale))
        noise = generator.geometric(p, (groups, part.n_cells)) - generator.geometric(p, (groups, part.n_cells))
        return noise + np.where(cells.absent(part), 0, 100)

    for _ in range(1_000):
        wrong += bool(shown_cells(answered(plan, answer), cells.absent))
    assert wrong <= 24


def test_answers_show_what_is_there_in_all_places_or_in_one():
    cells = PublicCells(PUBLIC)
    found = {(each.part.name, each.cell): each.share for each in shown_cells(release_of(), cells.absent)}
    assert set(found) == {("SEX", 1), ("WORK", 2)}
    assert 0.05 < found["SEX", 1] < 0.2

    def only_in_one(question, part, groups):
        counts = np.where(cells.absent(part), 0, 300) + np.zeros((groups, 1), np.int64)
        counts[2] += np.where(cells.absent(part), 80, 0)
        return counts

    plan = plan_of(SCHEMA, Level("PLACE", ONES, total=0), groups={"PLACE": [f"p{k}" for k in range(200)]})
    assert len(shown_cells(answered(plan, only_in_one), cells.absent)) == 2


def test_estimates_reach_people_whom_no_public_row_is_like():
    """A tenth of all private rows has SEX 2: the estimates find them, as far as the noise allows."""
    release = release_of()
    for unseen, least, most in ((False, 0.0, 0.0), (True, 0.08, 0.12)):
        found = Estimates.of(release, PUBLIC, Settings(unseen=unseen))
        count = found.answer("SEX == 2")["count"][0].as_py()
        assert least * 4_000 <= count <= most * 4_000
    assert found.public.added == 2_250  # two for each public row that would have 1/8 and 1/4
    assert found.public.observed.added == 0
    assert rows_of(found.public.observed) == rows_of(PUBLIC)
    mean = found.answer("mean(AGE)")["value"][0].as_py()
    assert abs(mean - private()["AGE"].mean()) < 3


def test_nothing_is_added_where_nothing_is_shown_or_wanted():
    table = people(5, places=("p",), full=False) | {"STATE": np.ones(3_000, int)}
    same = counted(release_of().plan, table, np.random.default_rng(0))
    for release, settings in ((same, Settings()), (release_of(), Settings(unseen=False))):
        found = Estimates.of(release, PUBLIC, settings)
        plain = Estimates.of(release, PUBLIC, replace(settings, unseen=False))
        assert found.public is PUBLIC
        assert np.array_equal(found.weights(0), plain.weights(0))


@pytest.mark.parametrize("settings", [Settings(), Settings(extra=0.03), Settings(support=600)])
def test_kept_estimates_and_rows_are_those_that_were_made(tmp_path, settings):
    other = release_of()
    plan = other.plan.changed(settings=settings)
    release = Release.load(write_folder(tmp_path / "release", plan, other.noisy))
    made = estimates_of(release, PUBLIC)
    assert made.public.added > 0
    kept, from_rows = kept_estimates(release), Estimates.load(release.path / "estimates.parquet", release, PUBLIC)
    for other in (kept, from_rows):
        assert other.public.added == made.public.added
        assert rows_of(other.public) == rows_of(made.public)
        assert np.array_equal(other.weights(3), made.weights(3))
        for one, two in zip(sample_groups(made, 7), sample_groups(other, 7), strict=True):
            codes = (one.codes, two.codes) if hasattr(one, "codes") else ({"": one}, {"": two})
            assert all(np.array_equal(code, codes[1][name]) for name, code in codes[0].items())
