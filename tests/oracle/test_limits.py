"""Where MAP must end: at the prior when noise grows, at the exact two-stage optimum when it vanishes."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from prade.estimating.estimate import Status
from prade.estimating.paper_estimators import TwoStage
from prade.estimating.posterior_mode import MAP
from worlds.reference import add_noise, kl, map_objective, oracle_two_stage, random_case

# a seed does not get simpler by being smaller: no shrinking
law = settings(derandomize=True, deadline=None, database=None, max_examples=20, phases=[Phase.explicit, Phase.generate])
seeds = st.integers(0, 10**6)
kinds = st.sampled_from(["laplace", "gaussian"])


def noisy_case(seed, laws=("laplace",)):
    rng = np.random.default_rng([51, seed])
    case = random_case(rng)
    add_noise(rng, case, case.total * rng.choice([0.003, 0.03, 0.3]))
    case.laws = [str(rng.choice(laws)) for _ in case.parts]
    return case


def estimate(case, n0, scale, tolerance=1e-8):
    case.scales = [scale] * len(case.parts)
    return MAP(n0=n0, tolerance=tolerance).fit(case.prior, case.measurements(), case.total)


@law
@given(seed=seeds, n0=st.floats(1.0, 500.0), power=st.floats(0.0, 8.0), kind=kinds)
def test_growing_noise_leads_to_the_prior(seed, n0, power, kind):
    """n0 KL(q||p) <= objective(q) <= objective(p), which falls as 1/b (1/sigma^2): q can only be that far from p."""
    case = noisy_case(seed, (kind,))
    got = estimate(case, n0, case.total * 10.0**power)
    bound = map_objective(case, case.p, n0)
    assert got.status in (Status.CONVERGED, Status.HOPELESS)
    assert map_objective(case, got.weights, n0) <= bound * (1 + 1e-7) + 1e-9
    assert n0 * kl(got.weights, case.p) <= bound + 1e-9
    # Pinsker: the L1 distance follows, and is nothing to speak of once the noise is
    distance = np.abs(got.weights - case.p).sum()
    assert distance <= min(np.sqrt(2 * bound / n0) + 1e-7, 1e-2 if power >= 7 else 2)


@law
@given(seed=seeds, price=st.sampled_from([1e2, 1e3, 1e4, 1e6]))
def test_vanishing_noise_leads_to_the_two_stage_optimum(seed, price):
    """With equal scales the objective is KL + C |Wq - y|_1, and KL(q2) + C r* is its value at the two-stage q2.

    Hence KL(q) <= KL(q2) and |Wq - y|_1 <= r* + KL(q2) / C.
    """
    case = noisy_case(seed)
    got = estimate(case, case.total / price, 1.0, 1e-9)
    radius, least, _ = oracle_two_stage(case)
    distance = np.abs(case.W @ got.weights - case.y).sum()
    # at a price of 1e6 double precision may leave a gap a little above the tolerance asked for
    settled = got.status in (Status.CONVERGED, Status.HOPELESS)
    assert settled or (price == 1e6 and got.report.gap <= 1e-7 * got.report.objective)
    assert distance <= radius + least / price + 1e-7
    assert kl(got.weights, case.p) <= least + 1e-6 + 1e-8 * price * radius
    if price == 1e4:
        # by then the penalty is exact, but for rows on their way to zero
        two = TwoStage().fit(case.prior, case.measurements(), case.total)
        assert kl(got.weights, case.p) == pytest.approx(two.report.kl, abs=1e-3)
        assert np.abs(got.weights - two.weights).sum() <= 0.05
