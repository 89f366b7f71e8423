"""Weak protection: the exact borders, the words, and who has to say that they know."""

from fractions import Fraction

import pyarrow as pa
import pytest

from prade import Budget, Ledger, Level, Plan, PradeError, Schema, Synthesizer, Unit, Workload
from prade.measuring.run import measure
from prade.privacy.budget import epsilon_of, rho_within
from prade.privacy.protection import LEAST_WEAK_DELTA, MOST_EPSILON, USUAL_DELTA, refuse_weak, weakness

TINY = Fraction(1, 10**30)
SCHEMA = Schema.from_mbi({"a": 2, "b": 3})
ROWS = pa.table({"a": [0, 0, 1] * 30, "b": [2, 2, 0] * 30})
WORKLOAD = Workload.all_marginals(SCHEMA, 1)
WEAK = Budget.pure(20 + TINY)
PUBLIC = pa.table({"a": [0, 1], "b": [1, 2]})


def test_the_borders_are_the_documented_ones():
    assert (20, Fraction(1, 1000), Fraction(1, 10**6)) == (MOST_EPSILON, LEAST_WEAK_DELTA, USUAL_DELTA)


@pytest.mark.parametrize(
    ("budget", "weak"),
    [
        (Budget.pure(0), False),
        (Budget.pure(20), False),
        (Budget.pure(20 + TINY), True),
        (Budget.pure(10**6), True),
        (Budget.approx(20, LEAST_WEAK_DELTA - TINY), False),
        (Budget.approx(20 + TINY, 0), True),
        (Budget.approx(0, LEAST_WEAK_DELTA), True),
        (Budget.approx(0, 1 - TINY), True),
        (Budget.zcdp(0), False),
        (Budget.zcdp("1e300"), True),
    ],
    ids=str,
)
def test_weak_is_what_lies_beyond_a_border(budget, weak):
    assert (weakness(budget) is not None) == weak


def test_a_rho_is_judged_by_its_epsilon_at_one_in_a_million():
    """The border is found by halving, with the conversion that the whole package uses."""
    low, high = Fraction(1), Fraction(10)
    while high - low > Fraction(1, 10**12):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(middle, USUAL_DELTA) <= MOST_EPSILON else (low, middle)
    assert weakness(Budget.zcdp(low)) is None
    assert weakness(Budget.zcdp(high)) is not None
    assert abs(low - rho_within(MOST_EPSILON, USUAL_DELTA)) < Fraction(1, 10**11)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget.pure(10**6), r"by a factor of e\^1000000; someone who thought .* more than 99.9999997 % sure"),
        (Budget.zcdp(10), r"by a factor of e\^32.2217 \(at delta = 1e-6\)"),
        (Budget.approx(1, "0.3"), "a delta of 0.3 allows a mechanism to publish all rows of one person in 3"),
        (Budget.approx(30, "1/400"), r"e\^30; .*; a delta of 0.0025 allows .* one person in 400"),
    ],
)
def test_the_refusal_says_in_numbers_what_such_a_budget_means(budget, words):
    with pytest.raises(PradeError, match=words) as refused:
        refuse_weak(budget, accepted=False)
    assert "Nothing was read or spent" in str(refused.value)
    refuse_weak(budget, accepted=True)


@pytest.fixture
def ledger(tmp_path):
    found = Ledger(tmp_path / "ledger")
    found.open_dataset("people", Unit(1), WEAK * 3)
    return found


def unread(tmp_path):
    """A source that would fail otherwise if it were looked at."""
    return tmp_path / "there is no such table.parquet"


def test_measure_refuses_before_anything_is_read_or_spent(tmp_path, ledger):
    plan = Plan("people", SCHEMA, WEAK, Unit(1), [Level((), WORKLOAD)])
    with pytest.raises(PradeError, match="weak protection"):
        measure(plan, unread(tmp_path), tmp_path / "release", ledger)
    assert ledger.entries("people") == []
    assert not (tmp_path / "release").exists()
    release = measure(plan, ROWS, tmp_path / "release", ledger, weak_protection=True)
    again = measure(plan, unread(tmp_path), tmp_path / "release", ledger)  # what is paid for needs no second word
    assert again.noisy[0][0].tolist() == release.noisy[0][0].tolist()
    given = {"public": PUBLIC, "folder": tmp_path / "r", "dataset": "people", "ledger": ledger, "tune": False}
    with pytest.raises(PradeError, match="weak protection"):
        Synthesizer(WEAK, schema=SCHEMA, **given).fit(unread(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"ledger", "release"}
    accepted = Synthesizer(Budget.pure(21), schema=SCHEMA, weak_protection=True, **given)
    assert accepted.fit(ROWS).spent_ == Budget.pure(21)
