"""Units of privacy and budgets: what they accept, what they say, and known numbers."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from prade.core.errors import BudgetError, PradeError
from prade.data.declare.schema import Schema
from prade.privacy.budget import Budget
from prade.privacy.ledger import Ledger
from prade.privacy.protection import Unit
from prade.queries.workload import Workload

# ------------------------------------------------------------------ Unit


def test_a_unit_is_one_row_added_or_removed_unless_said_otherwise():
    unit = Unit()
    assert (unit.max_rows, unit.person_id, unit.per_group, unit.neighbours) == (1, None, None, "add-remove")
    assert unit.rows == 1
    assert not unit.enforced


def test_replacing_a_person_takes_rows_away_and_adds_as_many():
    assert Unit(4, neighbours="replace").rows == 8
    workload = Workload.all_marginals(Schema.from_mbi({"a": 2, "b": 3, "c": 2}), 2)
    assert workload.sensitivity(Unit(4)) == 12
    assert workload.sensitivity(Unit(4, neighbours="replace")) == 24
    assert workload.sensitivity(Unit(4, neighbours="replace"), norm=2) == pytest.approx(8 * math.sqrt(3))


def test_the_bound_is_enforced_exactly_when_the_person_is_known():
    assert Unit(3, person_id="ID").enforced
    assert not Unit(3).enforced


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_rows": 0}, "max_rows is 0, but must be a whole number, 1 or more"),
        ({"max_rows": -2}, "1 or more"),
        ({"max_rows": 1.0}, "whole number"),
        ({"max_rows": True}, "whole number"),
        ({"max_rows": "3"}, "whole number"),
        ({"person_id": ""}, "person_id is ''; give the name of the column"),
        ({"person_id": 7}, "give the name of the column"),
        ({"neighbours": "change-one"}, "give 'add-remove' or 'replace'"),
        ({"max_rows": 3, "person_id": "ID", "per_group": 4}, r"from 1 to max_rows \(3\)"),
        ({"max_rows": 3, "person_id": "ID", "per_group": 0}, "per_group is 0"),
        ({"max_rows": 3, "person_id": "ID", "per_group": True}, "per_group is True"),
        ({"max_rows": 3, "per_group": 2}, "give person_id as well"),
    ],
)
def test_units_that_make_no_sense_are_refused(given, message):
    with pytest.raises(PradeError, match=message):
        Unit(**given)


def test_whole_numbers_of_numpy_become_plain_ones():
    unit = Unit(np.int8(100), person_id="ID", per_group=np.int64(2), neighbours="replace")
    assert type(unit.max_rows) is int
    assert type(unit.per_group) is int
    assert unit.rows == 200  # an int8 would have wrapped around


def test_the_promise_says_assumed_exactly_when_nothing_enforces_it():
    believed, imposed = Unit(3).promise(), Unit(3, person_id="ID").promise()
    assert "Assumed, not enforced: nobody has more than 3 rows" in believed
    assert "protected less" in believed
    assert "ssumed" not in imposed
    assert "Enforced: at most 3 rows per person are counted" in imposed
    assert "'ID'" in imposed


def test_the_promise_names_the_neighbours_and_the_bound_in_a_group():
    assert "added or removed" in Unit().promise()
    assert "more than 1 row." in Unit().promise()
    other = Unit(5, person_id="ID", per_group=2, neighbours="replace").promise()
    assert "exchanged for another person" in other
    assert "at most 2 of them in any one group" in other


@pytest.mark.parametrize("unit", [Unit(), Unit(7, neighbours="replace"), Unit(7, person_id="ID", per_group=2)])
def test_units_survive_being_written_down(unit):
    assert Unit.from_dict(json.loads(json.dumps(unit.to_dict()))) == unit


@pytest.mark.parametrize(
    ("values", "message"),
    [({"max_rows": 1, "rows": 2}, "unknown: rows"), ({"person_id": "ID"}, "has no max_rows")],
)
def test_a_unit_is_not_read_from_something_else(values, message):
    with pytest.raises(PradeError, match=message):
        Unit.from_dict(values)


# ------------------------------------------------------------------ Budget: the value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-9", Fraction(1, 10**9)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(2**62), Fraction(2**62)),
        (0, Fraction(0)),
    ],
)
def test_numbers_are_taken_exactly(given, expected):
    assert Budget.pure(given).epsilon == expected
    assert Budget.zcdp(given).rho == expected


def test_whole_numbers_of_numpy_do_not_overflow():
    assert (Budget.pure(np.int64(2**62)) * 4).epsilon == 2**64


@pytest.mark.parametrize(
    "given", ["", "one", "1/0", "1e9999999", Decimal("NaN"), math.inf, math.nan, None, True, 1j, []]
)
def test_what_is_no_number_is_refused(given):
    with pytest.raises(PradeError, match=r"epsilon is .*give a number such as"):
        Budget.pure(given)


def test_no_budget_is_negative():
    with pytest.raises(PradeError, match="epsilon would be -1/3, but a budget is never negative"):
        Budget.pure("-1/3")
    with pytest.raises(PradeError, match=r"rho would be -0.1"):
        Budget.zcdp(0.1) - Budget.zcdp(0.2)
    with pytest.raises(PradeError, match="delta would be -1e-9"):
        Budget.approx(1, "1e-9") - Budget.approx(0.5, "2e-9")
    with pytest.raises(PradeError, match="never negative"):
        Budget.pure(1) * -1


@pytest.mark.parametrize("delta", [1, 1.5])
def test_a_delta_of_one_promises_nothing(delta):
    with pytest.raises(PradeError, match="promises nothing"):
        Budget.approx(1, delta)


def test_the_raw_constructor_checks_as_well():
    with pytest.raises(PradeError, match="kind is 'renyi'"):
        Budget("renyi", (Fraction(1),))
    with pytest.raises(PradeError, match="needs epsilon and delta; the number of amounts given is 1"):
        Budget("approx", (Fraction(1),))
    assert Budget("pure", (0.1,)) == Budget.pure(0.1)


def test_each_kind_has_its_numbers_and_its_noise():
    pure, zcdp, approx = Budget.pure(1), Budget.zcdp(2), Budget.approx(3, 1e-6)
    assert (pure.kind, pure.epsilon, pure.delta, pure.law) == ("pure", 1, 0, "laplace")
    assert (zcdp.kind, zcdp.rho, zcdp.law) == ("zcdp", 2, "gaussian")
    assert (approx.kind, approx.epsilon, approx.delta, approx.law) == ("approx", 3, Fraction(1, 10**6), "gaussian")
    for read, advice in [
        (lambda: pure.rho, r"as_zcdp\(\)"),
        (lambda: approx.rho, r"zcdp_within\(\)"),
        (lambda: zcdp.epsilon, r"as_approx\(delta\)"),
        (lambda: zcdp.delta, r"as_approx\(delta\)"),
    ]:
        with pytest.raises(PradeError, match=advice):
            read()


def test_kinds_do_not_mix():
    for combine in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a <= b, lambda a, b: a > b):
        with pytest.raises(PradeError, match="budgets of the kinds 'pure' and 'zcdp' cannot be added or compared"):
            combine(Budget.pure(1), Budget.zcdp(1))
        with pytest.raises(PradeError, match=r"expected a Budget.pure\(...\), got 1"):
            combine(Budget.pure(1), 1)
    with pytest.raises(PradeError, match="the factor is"):
        Budget.pure(1) * Budget.pure(1)
    assert Budget.pure(1) != Budget.zcdp(1)


def test_arithmetic():
    assert Budget.pure(0.1) + Budget.pure(0.2) == Budget.pure(0.3)
    assert Budget.approx(1, 1e-6) - Budget.approx(0.5, 1e-6) == Budget.approx(0.5, 0)
    assert Budget.zcdp(1) * "1/3" == Fraction(1, 3) * Budget.zcdp(1) == Budget.zcdp(1) / 3 == Budget.zcdp("1/3")
    assert sum([Budget.pure(0.1)] * 10) == Budget.pure(1)
    with pytest.raises(PradeError, match="divided by 0"):
        Budget.pure(1) / 0
    with pytest.raises(TypeError):
        1 + Budget.pure(1)


def test_two_numbers_are_ordered_only_together():
    small, wide = Budget.approx(1, 1e-6), Budget.approx(2, 1e-9)
    assert not small <= wide
    assert not wide <= small
    assert small < Budget.approx(1, 2e-6)
    assert Budget.approx(1, 2e-6) > small
    assert small <= small
    assert small >= small
    assert not small < small
    assert not small > small


def test_shares_follow_the_weights():
    assert Budget.approx(1, 1e-6).split([1, 3]) == [Budget.approx("1/4", "2.5e-7"), Budget.approx("3/4", "7.5e-7")]
    assert Budget.pure(1).split([0.1, 0]) == [Budget.pure(1), Budget.pure(0)]


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [2, -1]])
def test_weights_that_split_nothing_are_refused(weights):
    with pytest.raises(PradeError, match="split by weights"):
        Budget.pure(1).split(weights)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget.pure(0.1), "epsilon = 0.1 (pure differential privacy)"),
        (Budget.pure(100), "epsilon = 100 (pure differential privacy)"),
        (Budget.pure("1/3"), "epsilon = 1/3 (pure differential privacy)"),
        (Budget.zcdp("2000/3"), "rho = about 666.667 (zero-concentrated differential privacy)"),
        (Budget.approx(1, "1e-9"), "epsilon = 1 and delta = 1e-9 (approximate differential privacy)"),
        (Budget.pure(0), "epsilon = 0 (pure differential privacy)"),
    ],
)
def test_budgets_in_words(budget, text):
    assert str(budget) == text


def test_a_shortened_number_is_rounded_up():
    assert "about 0.123457 " in str(Budget.pure("0.12345600000000001"))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kind": "pure"},
        {"kind": "pure", "rho": "1"},
        {"kind": "approx", "epsilon": "1"},
        {"kind": "zcdp", "rho": "1", "delta": "0"},
        {"kind": ["pure"], "epsilon": "1"},
    ],
)
def test_a_budget_is_not_read_from_something_else(values):
    with pytest.raises(PradeError, match="a budget is one of: kind 'pure' with epsilon"):
        Budget.from_dict(values)


# ------------------------------------------------------------------ Budget: noise


def test_scales_by_hand():
    assert Budget.pure("1/3").noise_scale(7, 7) == 21
    assert Budget.zcdp("1/8").noise_scale(100, 9) == 6  # sqrt(9 / (2/8))
    assert Budget.pure(3).noise_scale(1, 1) == Fraction(math.nextafter(1 / 3, 1))  # 1/3 as a float is too small
    assert Budget.pure(1).cost_of(21, 7, 7) == Budget.pure("1/3")


def test_approx_noise_is_that_of_the_best_rho():
    budget = Budget.approx(1, 1e-6)
    # the value of two independent implementations at 10 digits
    assert float(budget.zcdp_within().rho) == pytest.approx(0.02435597036, rel=1e-9)
    assert float(budget.noise_scale(1, 1)) == pytest.approx(1 / math.sqrt(2 * 0.02435597036), rel=1e-9)


def test_the_conversion_is_better_than_the_textbook_one():
    for rho in (1e-4, 0.01, 1, 50):
        textbook = rho + 2 * math.sqrt(rho * math.log(1e9))
        assert float(Budget.zcdp(rho).as_approx(1e-9).epsilon) < 0.999 * textbook


def test_a_float_scale_counts_with_its_binary_value():
    assert Budget.pure(1).cost_of(0.1, 1, 1).epsilon == 1 / Fraction(0.1)
    assert Budget.pure(1).cost_of(np.float64(0.1), 1, 1).epsilon == 1 / Fraction(0.1)


def test_counts_that_nobody_can_move_need_no_noise():
    for budget in (Budget.pure(1), Budget.zcdp(1), Budget.approx(1, 1e-6), Budget.pure(0)):
        assert budget.noise_scale(0, 0) == 0
        assert budget.cost_of(0, 0, 0) == budget * 0


def test_nothing_pays_for_nothing():
    for budget in (Budget.pure(0), Budget.zcdp(0), Budget.approx(0, 0)):
        with pytest.raises(PradeError, match="this share of the budget is 0"):
            budget.noise_scale(1, 1)
    for budget in (Budget.pure(1), Budget.zcdp(1), Budget.approx(1, 1e-6)):
        with pytest.raises(PradeError, match="cost more than any budget"):
            budget.cost_of(0, 1, 1)
    with pytest.raises(PradeError, match="Gaussian noise needs a delta between 0 and 1"):
        Budget.approx(1, 0).noise_scale(1, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget.approx(1, 1),
        lambda: Budget("approx", (Fraction(1), Fraction(1))),
        lambda: Budget.from_dict({"kind": "approx", "epsilon": "1", "delta": "2"}),
        lambda: Budget.approx(1, "0.5") + Budget.approx(1, "0.5"),
        lambda: sum([Budget.approx(1, "0.4")] * 3),
        lambda: Budget.approx(1, "0.5") * 4,
        lambda: 2 * Budget.approx(1, "0.5"),
        lambda: Budget.approx(1, "0.5") / "1/2",
        lambda: Budget.zcdp(1).as_approx(1),
    ],
)
def test_no_delta_reaches_one_however_a_budget_is_made(make):
    with pytest.raises(PradeError, match=r"delta is (1|1.2|2); .*promises nothing: give a number far below 1"):
        make()


def test_a_delta_just_below_one_is_kept_by_all_arithmetic():
    most = 1 - Fraction(1, 10**30)
    budget = Budget.approx(1, most)
    assert sum(budget.split([1, 2, 3])) == budget
    assert (budget / 2) * 2 == budget - budget * 0 == Budget.from_dict(budget.to_dict()) == budget


def test_a_ledger_whose_deltas_would_reach_one_says_what_is_left(tmp_path):
    """It subtracts from the cap and never adds up past it: the refusal is about the budget, as for any other cost."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("d", Unit(1), Budget.approx(10, "0.9"))
    ledger.reserve("d", "first", Budget.approx(1, "0.6"))
    with pytest.raises(BudgetError, match=r"delta = 0.3 .* left of .* was requested; request less"):
        ledger.reserve("d", "second", Budget.approx(1, "0.6"))
    ledger.reserve("d", "second", Budget.approx(9, "0.3"))
    assert ledger.remaining("d") == Budget.approx(0, 0)
    assert "delta = 0.9" in ledger.account("d")


def test_a_scale_that_no_float_holds_is_an_error():
    with pytest.raises(PradeError, match="too large for a float"):
        Budget.pure("1e-400").noise_scale(1, 1)


@pytest.mark.parametrize("wrong", [-1, 1.0, math.sqrt(2), True, "1", None])
def test_sensitivities_are_exact_numbers(wrong):
    with pytest.raises(PradeError, match=r"l1 is .*give an int or Fraction"):
        Budget.zcdp(1).noise_scale(wrong, 1)
    with pytest.raises(PradeError, match=r"l2_squared is .*the square"):
        Budget.pure(1).cost_of(1, 1, wrong)


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan, True, "1", None, Fraction(-1, 2)])
def test_scales_are_finite_numbers(wrong):
    with pytest.raises(PradeError, match="scale is"):
        Budget.pure(1).cost_of(wrong, 1, 1)


def test_conversions_go_only_where_one_promise_implies_the_other():
    assert Budget.pure(2).as_zcdp() == Budget.zcdp(2)
    assert Budget.zcdp(1).as_zcdp() == Budget.zcdp(1)
    assert Budget.pure(2).as_approx(1e-6) == Budget.approx(2, 0)
    assert Budget.zcdp(0).as_approx(1e-6) == Budget.approx(0, 0)
    with pytest.raises(PradeError, match="does not imply a rho"):
        Budget.approx(1, 1e-6).as_zcdp()
    with pytest.raises(PradeError, match="approx already"):
        Budget.approx(1, 1e-6).as_approx(1e-9)
    with pytest.raises(PradeError, match="for approx budgets only"):
        Budget.pure(1).zcdp_within()
    for delta in (0, 1):
        with pytest.raises(PradeError, match="delta"):
            Budget.zcdp(1).as_approx(delta)


def test_what_is_split_depends_on_the_law_of_the_noise():
    approx = Budget.approx(1, 1e-6)
    assert approx.noise_budget() == approx.noise_budget("gaussian") == approx.zcdp_within()
    assert approx.noise_budget("laplace") == Budget.approx(1, 0).noise_budget("laplace") == Budget.pure(1)
    assert Budget.pure(2).noise_budget() == Budget.pure(2).noise_budget("laplace") == Budget.pure(2)
    assert [Budget.zcdp(1).noise_budget(law) for law in (None, "laplace", "gaussian")] == [Budget.zcdp(1)] * 3


def test_laws_that_do_not_keep_the_promise_are_refused():
    with pytest.raises(PradeError, match="Gaussian noise keeps no pure budget"):
        Budget.pure(1).noise_budget("gaussian")
    with pytest.raises(PradeError, match="delta is 0, but Gaussian noise needs a delta"):
        Budget.approx(1, 0).noise_budget()
    for wrong in ("normal", "", 0, ["laplace"]):
        with pytest.raises(PradeError, match="it is 'laplace' or 'gaussian'"):
            Budget.zcdp(1).noise_budget(wrong)


def test_budgets_are_light_to_import():
    heavy = "('scipy', 'numpy', 'pyarrow', 'opendp')"
    code = f"import sys, prade.privacy.budget; print([m for m in {heavy} if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
