"""Units of privacy and budgets: what they accept, what they say, and known numbers."""

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from prade import Budget, PradeError, Schema, Unit, Workload
from prade.privacy.budget import _log

PURE, ZCDP, APPROX = Budget.pure(1), Budget.zcdp(2), Budget.approx(3, 1e-6)


def test_replacing_a_person_takes_rows_away_and_adds_as_many():
    assert Unit(4, neighbours="replace").rows == 8
    workload = Workload.all_marginals(Schema.from_mbi({"a": 2, "b": 3, "c": 2}), 2)
    assert workload.sensitivity(Unit(4)) == 12
    assert workload.sensitivity(Unit(4, neighbours="replace")) == 24
    assert workload.sensitivity(Unit(4, neighbours="replace"), norm=2) == pytest.approx(8 * math.sqrt(3))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_rows": 0}, "max_rows is 0, but must be a whole number, 1 or more"),
        ({"max_rows": 1.0}, "whole number"),
        ({"max_rows": True}, "whole number"),
        ({"max_rows": 1, "person_id": ""}, "person_id is ''; give the column"),
        ({"max_rows": 1, "neighbours": "change-one"}, "give 'add-remove' or 'replace'"),
        ({"max_rows": 3, "person_id": "ID", "per_group": 4}, r"from 1 to max_rows \(3\)"),
        ({"max_rows": 3, "person_id": "ID", "per_group": 0}, "per_group is 0"),
        ({"max_rows": 3, "per_group": 2}, "give person_id"),
        ({"max_rows": 1, "rows": 2}, "a unit has max_rows, and perhaps person_id, per_group, neighbours; got"),
        ({"person_id": "ID"}, "a unit has max_rows"),
        ("1", "a unit has max_rows"),
    ],
)
def test_units_that_make_no_sense_are_refused(values, message):
    with pytest.raises(PradeError, match=message):
        Unit.from_dict(values)


def test_whole_numbers_of_numpy_become_plain_ones():
    unit = Unit(np.int8(100), person_id="ID", per_group=np.int64(2), neighbours="replace")
    assert unit.rows == 200  # an int8 would have wrapped around
    assert Unit.from_dict(json.loads(json.dumps(unit.to_dict()))) == unit


def test_the_promise_names_the_bound_and_what_enforces_it():
    assumed, enforced = Unit(3).promise(), Unit(5, person_id="ID", per_group=2, neighbours="replace").promise()
    assert "added or removed. Assumed, not enforced: nobody has more than 3 rows." in assumed
    assert "exchanged for another person. Enforced: at most 5 rows per person are counted" in enforced
    assert "at most 2 of them in any one group" in enforced
    assert "'ID'" in enforced
    assert "more than 1 row." in Unit().promise()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.1, Fraction(1, 10)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
        (" 1/3 ", Fraction(1, 3)),
        (Decimal("0.25"), Fraction(1, 4)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(2**62), Fraction(2**62)),
    ],
)
def test_numbers_are_taken_exactly(number, expected):
    assert Budget.pure(number).epsilon == Budget.zcdp(number).rho == expected
    assert (Budget.pure(number) * 4).epsilon == 4 * expected


def test_each_kind_has_its_numbers_and_its_noise():
    assert (PURE.kind, PURE.epsilon, PURE.delta, PURE.law) == ("pure", 1, 0, "laplace")
    assert (ZCDP.kind, ZCDP.rho, ZCDP.law) == ("zcdp", 2, "gaussian")
    assert (APPROX.kind, APPROX.epsilon, APPROX.delta, APPROX.law) == ("approx", 3, Fraction(1, 10**6), "gaussian")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget.pure("-1/3"), "epsilon would be -1/3, but a budget is never negative"),
        (lambda: Budget.zcdp(0.1) - Budget.zcdp(0.2), "rho would be -0.1"),
        (lambda: APPROX - Budget.approx(0.5, "2e-6"), "delta would be -"),
        (lambda: PURE * -1, "never negative"),
        (lambda: Budget.pure("1e400"), "promises nothing: give a few dozen"),
        (lambda: Budget.approx(1, 1), "delta is 1, which promises nothing: give a number far below 1"),
        (lambda: Budget.from_dict({"kind": "approx", "epsilon": "1", "delta": "2"}), "delta is 2, .*promises nothing"),
        (lambda: sum([Budget.approx(1, "0.4")] * 3), r"delta is 1\.2, .*promises nothing"),
        (lambda: ZCDP.as_approx(1), "delta is 1, .*promises nothing"),
        (lambda: ZCDP.as_approx(0), "delta is 0"),
        (lambda: PURE.rho, r"pure and has no rho .*as_approx\(delta\)"),
        (lambda: APPROX.rho, r"zcdp_within\(\)"),
        (lambda: ZCDP.epsilon, r"as_approx\(delta\)"),
        (lambda: ZCDP.delta, r"as_approx\(delta\)"),
        (lambda: PURE + ZCDP, "budgets of the kinds 'pure' and 'zcdp' cannot be added or compared"),
        (lambda: PURE <= ZCDP, "kinds 'pure' and 'zcdp'"),
        (lambda: PURE > ZCDP, "kinds 'zcdp' and 'pure'"),
        (lambda: PURE - 1, r"expected a Budget.pure\(...\), got 1"),
        (lambda: PURE * PURE, "the factor is"),
        (lambda: APPROX.as_approx(1e-9), "approx already"),
        (lambda: PURE.zcdp_within(), "for approx budgets only"),
        (lambda: PURE.noise_budget("gaussian"), "Gaussian noise keeps no pure budget"),
        (lambda: Budget.approx(1, 0).noise_budget(), "delta is 0, but Gaussian noise needs a delta between 0 and 1"),
        (lambda: ZCDP.noise_budget("normal"), "it is 'laplace' or 'gaussian'"),
        (lambda: Budget.pure(0).noise_scale(1, 1), "this share of the budget is 0"),
        (lambda: Budget.approx(0, 0).noise_scale(1, 1), "this share of the budget is 0"),
        (lambda: Budget.pure("1e-400").noise_scale(1, 1), "too large for a float"),
        *((lambda number=number: Budget.pure(number), "give a number such as") for number in ("one", "1/0", math.nan)),
        *((lambda number=number: Budget.pure(number), "give a number such as") for number in ("1e9999999", None, True)),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(PradeError, match=message):
        make()


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget.pure(0.1), "epsilon = 0.1 (pure differential privacy)"),
        (Budget.pure("1/3"), "epsilon = 1/3 (pure differential privacy)"),
        (Budget.zcdp("2000/3"), "rho = about 666.667 (zero-concentrated differential privacy)"),
        (Budget.approx(1, "1e-9"), "epsilon = 1 and delta = 1e-9 (approximate differential privacy)"),
        (Budget.pure("0.12345600000000001"), "epsilon = about 0.123457 (pure differential privacy)"),  # rounded up
    ],
)
def test_budgets_in_words(budget, text):
    assert str(budget) == text


def test_a_budget_is_not_read_from_something_else():
    for values in ({"kind": "pure"}, {"kind": "pure", "rho": "1"}, {"kind": ["pure"], "epsilon": "1"}, "pure"):
        with pytest.raises(PradeError, match="a budget is one of: kind 'pure' with epsilon"):
            Budget.from_dict(values)


def test_scales_by_hand():
    assert Budget.pure("1/3").noise_scale(7, 7) == 21
    assert Budget.zcdp("1/8").noise_scale(100, 9) == 6  # sqrt(9 / (2/8))
    assert Budget.pure(3).noise_scale(1, 1) == Fraction(math.nextafter(1 / 3, 1))  # 1/3 as a float is too small
    # counts that nobody can move need no noise
    assert PURE.noise_scale(0, 0) == ZCDP.noise_scale(0, 0) == Budget.pure(0).noise_scale(0, 0) == 0


def test_approx_noise_is_that_of_the_best_rho():
    budget = Budget.approx(1, 1e-6)
    # the value of two independent implementations at 10 digits
    assert float(budget.zcdp_within().rho) == pytest.approx(0.02435597036, rel=1e-9)
    assert float(budget.noise_scale(1, 1)) == pytest.approx(1 / math.sqrt(2 * 0.02435597036), rel=1e-9)


def test_the_conversion_is_better_than_the_textbook_one():
    for rho in (1e-4, 0.01, 1, 50):
        textbook = rho + 2 * math.sqrt(rho * math.log(1e9))
        assert float(Budget.zcdp(rho).as_approx(1e-9).epsilon) < 0.999 * textbook
    assert Budget.pure(2).as_approx(1e-6) == Budget.approx(2, 0)
    assert Budget.zcdp(0).as_approx(1e-6) == Budget.approx(0, 0)


@pytest.mark.parametrize("value", [Fraction(1), Fraction(2), Fraction(10**9), Fraction(4, 3), 1 + Fraction(1, 10**30)])
@pytest.mark.parametrize("digits", [3, 20, 80])
def test_logarithms_are_on_the_declared_side_of_the_true_one(value, digits):
    precise = Context(prec=digits + 60)
    true = Fraction(precise.ln(precise.divide(Decimal(value.numerator), Decimal(value.denominator))))
    below, above = (_log(value, digits, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    assert below < true < above
    assert above - below <= 4 * Fraction(10) ** -(digits - 1) * max(abs(true), Fraction(1))


def test_what_is_divided_depends_on_the_law_of_the_noise():
    assert APPROX.noise_budget() == APPROX.noise_budget("gaussian") == APPROX.zcdp_within()
    assert APPROX.noise_budget("laplace") == Budget.approx(3, 0).noise_budget("laplace") == Budget.pure(3)
    assert PURE.noise_budget() == PURE.noise_budget("laplace") == PURE
    assert [ZCDP.noise_budget(law) for law in (None, "laplace", "gaussian")] == [ZCDP] * 3
