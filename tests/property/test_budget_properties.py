"""Laws of budgets: nothing is lost or gained by arithmetic, and every rounding errs on the side of privacy.

The claims are compared with two witnesses that share no code with them: the probabilities themselves, and OpenDP's
privacy maps. (`test_release_sensitivity.py` asks the accountants of dp-accounting about whole plans.)
"""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prade.core.errors import PradeError
from prade.core.numbers import float_above, root_above
from prade.privacy.budget import Budget

law = settings(max_examples=100)
slow_law = settings(max_examples=25)

amounts = st.fractions(min_value=0, max_value=100, max_denominator=10**9)
positive = st.builds(
    lambda digits, exponent: Fraction(digits) * Fraction(10) ** exponent, st.integers(1, 999), st.integers(-8, 2)
)
deltas = st.builds(lambda digits, e: Fraction(digits) * Fraction(10) ** e, st.integers(1, 9), st.integers(-30, -2))
sizes = st.integers(1, 10**6)


KINDS = {
    "pure": st.builds(Budget.pure, amounts),
    "zcdp": st.builds(Budget.zcdp, amounts),
    "approx": st.builds(Budget.approx, amounts, deltas | st.just(Fraction(0))),
}
budgets = st.one_of(*KINDS.values())
spendable = st.one_of(
    st.builds(Budget.pure, positive), st.builds(Budget.zcdp, positive), st.builds(Budget.approx, positive, deltas)
)
triples = st.sampled_from(sorted(KINDS)).flatmap(lambda kind: st.tuples(*[KINDS[kind]] * 3))


def cost_of(budget, scale, l1, l2_squared):
    """The cost, as a budget of the same kind, of noise of the kind's usual law and this scale."""
    if l1 == 0:
        return budget * 0
    if budget.kind == "pure":
        return Budget.pure(l1 / Fraction(scale))
    rho = Budget.zcdp(l2_squared / (2 * Fraction(scale) ** 2))
    return rho if budget.kind == "zcdp" else rho.as_approx(budget.delta)


@law
@given(budgets, st.lists(amounts, min_size=1, max_size=12).filter(any))
def test_shares_add_up_to_the_whole_exactly(budget, weights):
    assert sum(budget * (weight / sum(weights)) for weight in weights) == budget


@law
@given(triples)
def test_sums_and_differences_undo_each_other_and_the_order_is_a_partial_one(three):
    first, second, third = three
    assert first + second - second == first
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first * 3 / 3 == first <= first + second
    assert (first <= second and second <= first) == (first == second)
    assert (first < second) == (first <= second and first != second)
    assert first <= third or not first <= second <= third
    assert first.kind == "approx" or first <= second or second <= first
    if second <= first:
        assert (first - second) + second == first
    else:
        with pytest.raises(PradeError, match="never negative"):
            first - second


@law
@given(budgets)
def test_budgets_survive_being_written_down(budget):
    assert Budget.from_dict(budget.to_dict()) == budget
    assert all(isinstance(value, str) for value in budget.to_dict().values())
    assert eval(repr(budget)) == budget
    assert hash(eval(repr(budget))) == hash(budget)


@law
@given(spendable, sizes, sizes)
def test_the_scale_never_costs_more_than_the_budget_and_hardly_less(budget, l1, l2_squared):
    scale = budget.noise_scale(l1, l2_squared)
    assert Fraction(float(scale)) == scale
    assert cost_of(budget, scale, l1, l2_squared) <= budget
    assert not cost_of(budget, scale * (1 - Fraction(1, 10**14)), l1, l2_squared) <= budget


@law
@given(positive, deltas)
def test_rho_and_epsilon_are_inverse_and_on_the_safe_side(epsilon, delta):
    budget = Budget.approx(epsilon, delta)
    rho = budget.zcdp_within()
    assert rho.as_approx(delta).epsilon <= epsilon * (1 + Fraction(1, 10**19))
    assert not (rho * (1 + Fraction(1, 10**12))).as_approx(delta) <= budget


@law
@given(positive, positive)
def test_roots_and_floats_are_never_too_small(value, other):
    number = value / other
    root, close = root_above(number), float_above(number)
    assert number <= root**2 <= number * (1 + Fraction(1, 2**100))
    assert root_above(number**2) >= number
    assert number <= close == Fraction(float(close))
    assert Fraction(math.nextafter(float(close), 0)) < number


@slow_law
@given(positive, deltas)
def test_epsilon_is_that_of_eighty_digits_rounded_up(rho, delta):
    with localcontext(Context(prec=80)):
        slope = Decimal(rho.numerator) / rho.denominator
        log_inverse = (Decimal(delta.denominator) / delta.numerator).ln()
        low, high = Decimal(0), 1 / Decimal(delta.numerator) * delta.denominator
        for _ in range(250):
            t = (low + high) / 2
            low, high = (low, t) if slope * t * t + (1 + t).ln() > log_inverse else (t, high)
        best = max((1 + t) * slope + (log_inverse - (1 + t).ln()) / t - (1 + 1 / t).ln(), Decimal(0))
    ours = Budget.zcdp(rho).as_approx(delta).epsilon
    assert Fraction(best) <= ours <= Fraction(best) * (1 + Fraction(2, 10**19))


@pytest.mark.parametrize("delta", ["1e-900", "1e-300", "1e-12", "0.5", "0.999999"])
@pytest.mark.parametrize("epsilon", ["1e-40", "1e-12", "1", "1e9", "1e300"])
def test_extreme_budgets_are_spent_safely_too(epsilon, delta):
    budget = Budget.approx(epsilon, delta)
    assert cost_of(budget, budget.noise_scale(1, 1), 1, 1) <= budget


def test_delta_alone_pays_for_noise_unless_it_is_next_to_nothing():
    budget = Budget.approx(0, 1e-6)
    assert cost_of(budget, budget.noise_scale(1, 1), 1, 1) <= budget
    with pytest.raises(PradeError, match="too small for any amount of noise"):
        Budget.approx(0, "1e-300").noise_scale(1, 1)
    with pytest.raises(PradeError, match="practically 0"):
        (Budget.approx(1, "1e-900") / "1e900" / "1e900").noise_scale(1, 1)


def log_discrete_gaussian(sigma, points, shift):
    return -((points + shift) ** 2) / (2 * sigma**2) - np.logaddexp.reduce(-(points**2) / (2 * sigma**2))


def delta_of_discrete_gaussian(sigma, shift, epsilon):
    """sum over z of max(0, P(z) - e^epsilon P(z + shift)): the exact delta of one noisy count."""
    reach = int(40 * sigma + 10 * shift + 40)
    points = np.arange(-reach, reach + 1, dtype=float)
    here, there = (log_discrete_gaussian(sigma, points, moved) for moved in (0, shift))
    return np.exp(here[here > epsilon + there]).sum() - math.exp(epsilon) * np.exp(there[here > epsilon + there]).sum()


@pytest.mark.parametrize("shift", [1, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_gaussian_noise_keeps_epsilon_and_delta(shift, epsilon, delta):
    scale = float(Budget.approx(epsilon, delta).noise_scale(shift, shift**2))
    assert delta_of_discrete_gaussian(scale, shift, epsilon) <= delta
    assert delta_of_discrete_gaussian(scale / 2, shift, epsilon) > delta


@pytest.mark.parametrize("rho", [0.01, 0.5])
@pytest.mark.parametrize("shift", [1, 3])
def test_gaussian_noise_keeps_rho(rho, shift):
    scale = float(Budget.zcdp(rho).noise_scale(shift, shift**2))

    def worst(sigma):
        reach = int(60 * sigma + 40 * shift)
        points = np.arange(-reach, reach + 1, dtype=float)
        here, there = (log_discrete_gaussian(sigma, points, moved) for moved in (0, shift))
        return max(np.logaddexp.reduce(a * here + (1 - a) * there) / (a - 1) / a for a in (1.1, 1.5, 2, 4, 8))

    assert worst(scale) <= rho * (1 + 1e-9)
    assert worst(scale / 1.01) > rho


@pytest.mark.parametrize("rho", ["0.01", "0.5", "3"])
@pytest.mark.parametrize("shifts", [(1,), (3, -2), (1, 1, 1, 4)])
def test_laplace_noise_keeps_rho(rho, shifts):
    """By the divergences of the shifted laws, summed over the counts; only a little less noise would not do."""
    budget = Budget.zcdp(rho).noise_budget("laplace")
    scale = float(budget.noise_scale(sum(map(abs, shifts)), sum(shift**2 for shift in shifts)))

    def worst(b):
        points = np.arange(-int(400 * b) - 40, int(400 * b) + 41, dtype=float)
        whole = np.logaddexp.reduce(-np.abs(points) / b)
        orders = 1 + np.geomspace(1e-6, 30, 60)
        return max(
            sum(np.logaddexp.reduce((-a * np.abs(points) + (a - 1) * np.abs(points + d)) / b) - whole for d in shifts)
            / (a - 1)
            / a
            for a in orders
        )

    assert 0.35 * float(rho) < worst(scale) <= float(rho) * (1 + 1e-9)
    assert worst(scale / 2) > float(rho)


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, Fraction(7, 3)])
@pytest.mark.parametrize("shifts", [(1,), (3, -2), (1, 1, 1, 4)])
def test_laplace_noise_keeps_epsilon(epsilon, shifts, delta):
    """Alone or within (epsilon, delta), of which it needs no delta."""
    budget = Budget.pure(epsilon) if delta is None else Budget.approx(epsilon, delta).noise_budget("laplace")
    scale = budget.noise_scale(sum(map(abs, shifts)), sum(shift**2 for shift in shifts))
    # ln P(z) - ln P(z + shift) = (|z + shift| - |z|) / b, exactly; the counts' worst cases add up
    points = range(-20, 21)
    loss = sum(max(Fraction(abs(z + shift) - abs(z)) / scale for z in points) for shift in shifts)
    assert loss <= epsilon
    assert loss > epsilon * (1 - Fraction(1, 10**15))


dp.enable_features("contrib")


def laplace(scale):
    return dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=float(scale))


def gaussian(scale):
    return dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=float(scale))


@law
@given(st.sampled_from([Budget.pure, Budget.zcdp]), positive, sizes)
def test_opendp_agrees_on_the_cost_of_noise(kind, amount, moved):
    pure = kind == Budget.pure
    scale = kind(amount).noise_scale(*((moved, 1) if pure else (1, moved**2)))
    ours = moved / scale if pure else moved**2 / (2 * scale**2)
    noise, distance = (laplace, moved) if pure else (gaussian, float(moved))
    assert ours <= Fraction(noise(scale).map(distance)) <= ours * (1 + Fraction(1, 10**12))  # a float, rounded up
    assert not noise(scale / 2).check(distance, float(amount) * (1 + 1e-12))
