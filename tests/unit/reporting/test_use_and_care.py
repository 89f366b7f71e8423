"""What to use a release for, and what to be careful with: rules speak where they apply, and only there."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from prade import Ask, Budget, Column, Level, Plan, PublishedTotals, Rule, Schema, Unit, Workload
from prade.data.public.public import Public
from prade.estimating.levels.answers import RawAnswers
from prade.planning.settings import Expected
from prade.queries.parts import Marginal
from prade.reporting.statements import Situation, cell_texts, unseen_values, use_and_care
from worlds.survey import AGE, PLACE, SEX, STATE, THREE_PLACES, WORK

SCHEMA = Schema([STATE, PLACE, AGE, SEX, WORK])
LABELS = ["STATE 1, PLACE p", "STATE 1, PLACE q", "STATE 2, PLACE p"]


def tables(*columns):
    return Workload.marginals(SCHEMA, columns)


def situation(*levels, **changes):
    """Three places of two states; by default all one-way tables were measured by place."""
    known = {name: changes.pop(name) for name in ("expected", "invariants") if name in changes}
    levels = levels or (Level("STATE", tables("AGE")), Level("PLACE", tables("AGE", "SEX", "WORK")))
    plan = Plan("survey", SCHEMA, Budget.pure(1), Unit(1), list(levels), THREE_PLACES, **known)
    return replace(Situation(plan, np.array([900.0, 800.0, 700.0]), LABELS, 0.1, 0.05, [0.1] * 3), **changes)


PAIRED = Level("PLACE", [Ask(tables("AGE", "SEX", "WORK"), 1), Ask(tables(("AGE", "SEX")), 1)])
LEVELS = [Level("STATE", ()), PAIRED]
AGES, HARMFUL = Level("PLACE", tables("AGE")), Expected(0.5, 0.1, 0.3)
OBEYED = [Rule("AGE < 18 -> WORK == 'none'")]
PRIVATE = [Rule("AGE < 18 -> WORK == 'none'", source="private")]
TOTALS = [PublishedTotals.of({"STATE": [1, 2], "rows": [1700, 700]}, "STATE", "rows")]

USUAL, ABOVE = situation(), situation(Level("STATE", tables("AGE")), Level("PLACE", (), total=1))
FEW_ROWS = "1 of 3 PLACEs has fewer rows than the noise in one count may add (18); the smallest is STATE 2, PLACE p,"
WIDE = "One-way tables by PLACE of 2 of 3 columns (SEX and WORK): they were measured there, but half of the 95 %"
RULES = [
    (USUAL, "One-way tables by PLACE of all 3 columns: they were measured there.", ABOVE),
    (USUAL, "by PLACE: half of the 95 % intervals reach at most 10 % of the count", situation(relative=0.3)),
    (situation(PAIRED), "1 pair of columns that was measured: AGE x SEX.", USUAL),
    (situation(invariants=OBEYED), "obeys AGE < 18 -> WORK == 'none'.", USUAL),
    (situation(invariants=TOTALS), "Numbers of rows by STATE: they are", USUAL),
    (situation(expected=HARMFUL), "the public table alone to be nearer", situation(expected=Expected(0.35, 0.1, 0.3))),
    (situation(drifted=["SEX"]), "1 column, SEX: the public table is wrong where it was measured, and a PLACE", USUAL),
    (situation(AGES), "2 of 3 columns, SEX and WORK, were not measured: their shape within a PLACE is inferred", USUAL),
    (situation(totals=np.array([900.0, 800.0, 3.0])), f"{FEW_ROWS} with about 3 rows.", USUAL),
    (
        situation(relative_columns=[0.1, 6.76, None]),
        f"{WIDE} intervals of a column's common values reach more than 20 %",
        USUAL,
    ),
    (situation(relative=0.3), "Single counts by PLACE: half", situation(relative=0.2)),
    (USUAL, "one that no public row has does not occur", situation(added=200)),
    (situation(unseen=["WORK full"]), "WORK full: private rows have such values, by the noisy answers (wrong", USUAL),
    (situation(unseen=["WORK full"], added=200), "such people is a guess", situation(unseen=["WORK full"])),
    (situation(added=200), "Rare combinations: those that no public row has come from rows that", USUAL),
    (situation(invariants=PRIVATE), "Not protected", situation(invariants=OBEYED)),
    (situation(copied=0.999), "Single rows: 99.9 % of the rows have", situation(copied=0.2)),
]


@pytest.mark.parametrize(("on", "words", "off"), RULES)
def test_each_rule_speaks_where_it_applies_and_only_there(on, words, off):
    spoken, silent = ([*itertools.chain(*use_and_care(each))] for each in (on, off))
    assert [words in each for each in spoken].count(True) == 1
    assert not any(words in each for each in silent)


def test_a_release_that_does_harm_is_to_be_used_for_exact_facts_only():
    use, careful = use_and_care(situation(*LEVELS, expected=HARMFUL, invariants=TOTALS))
    assert use == ["Numbers of rows by STATE: they are the published ones, exactly."]
    assert careful[0].startswith("Everything")
    assert len(use_and_care(situation(*LEVELS, invariants=TOTALS))[0]) == 5


def test_columns_measured_above_are_named_with_their_own_level():
    levels = Level((), tables("WORK")), Level("STATE", tables("SEX")), Level("PLACE", tables("AGE"))
    words = "1 column, SEX, was measured by STATE and 1 column, WORK, was measured in the whole table, not by PLACE:"
    assert f"{words} how a PLACE differs from others is inferred." in use_and_care(situation(*levels))[1]


def test_pairs_within_larger_tables_count_once():
    """Whatever the order of the columns, and however often a pair was measured."""
    use, careful = use_and_care(situation(Level("PLACE", tables(("WORK", "AGE", "SEX")))))
    assert "3 pairs of columns that were measured: AGE x SEX and AGE x WORK among them" in use[-1]
    assert not any("How two columns" in each for each in careful)
    turned = situation(Level("STATE", tables(("SEX", "AGE"))), Level("PLACE", tables(("AGE", "SEX"), "WORK")))
    use, careful = use_and_care(turned)
    assert "1 pair of columns that was measured: AGE x SEX." in use[-1]
    assert any("2 of 3 pairs were not measured" in each for each in careful)


def test_a_table_without_groups_is_not_called_a_place():
    """Sentences about groups stay away, and others speak of the whole table."""
    plan = Plan("survey", SCHEMA, Budget.pure(1), Unit(1), [Level((), tables("AGE"))])
    use, careful = use_and_care(Situation(plan, np.array([3.0]), ["all"], 0.3, 0.15, [0.1, None, 0.9]))
    assert use[0] == "One-way tables of 1 of 3 columns (AGE): they were measured there."
    assert use[1].startswith("Counts of common values: half of the 95 % intervals")
    assert not any("group" in each for each in (*use, *careful))
    assert "not measured: their shape is inferred from the public table" in careful[0]
    assert [each.partition(":")[0] for each in careful] == [
        "2 of 3 columns, SEX and WORK, were not measured",
        "Single counts of the whole table",
        "How two columns go together",
        "Rare combinations",
    ]


KIND = Column("KIND", "categorical", values=list(range(600)), title="Kind", labels={7: "rare"})
KINDS = Schema([KIND, Column("SEX", "categorical", values=[1, 2], labels={1: "men", 2: "women"})])


def looked_at(counts, scale):
    """What is found with these answers about KIND; the public rows have its first value only."""
    asked = Workload.marginals(KINDS, ["KIND"])
    plan = Plan("survey", KINDS, Budget.pure(1), Unit(1), [Level((), asked)])
    public = Public.of(KINDS, pa.table({"KIND": [0, 0], "SEX": [1, 2]}))
    q = math.exp(-1 / scale)
    answers = RawAnswers(tuple(asked), [counts[None]], np.array([[2 * q / (1 - q) ** 2]]), np.ones(1), np.ones(1))
    facts = SimpleNamespace(views=[SimpleNamespace(answers=answers)])
    return unseen_values(SimpleNamespace(plan=plan, public=public), facts)


def discrete_laplace(generator, scale, size):
    p = 1 - math.exp(-1 / scale)
    return generator.geometric(p, size) - generator.geometric(p, size)


def test_noise_alone_is_hardly_ever_taken_for_rows():
    """400 pages of 599 absent cells: at most 1 % of pages, so more than 13 by chance less than once in 10,000."""
    generator = np.random.default_rng(5)
    wrong = sum(bool(looked_at(discrete_laplace(generator, 8.0, 600), 8.0)) for _ in range(400))
    assert wrong <= 13
    four = 4 * 8.0 * math.sqrt(2)  # the limit of four standard deviations would be exceeded on most pages
    assert np.mean([(discrete_laplace(generator, 8.0, 599) > four).any() for _ in range(100)]) > 0.5


def test_what_the_answers_show_is_named_by_its_label():
    counts = np.zeros(600)
    counts[0], counts[7] = 5000, 200
    assert looked_at(counts, 8.0) == ["Kind rare"]
    assert cell_texts(Marginal.of(KINDS, ["SEX", "KIND"]), KINDS)[7] == "SEX men, Kind rare"
