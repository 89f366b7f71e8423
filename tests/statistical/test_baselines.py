"""The laws of what the baselines draw: private selection, and the noise of the histogram.

Neither takes a seed, so these tests fail by chance now and then: all together once in 10,000 runs (`FALSE_ALARM`,
shared out among the checks by Bonferroni's inequality).
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from prade import Budget, Ledger, Schema, Unit, Workload
from prade.measure.adaptive import Misfit, adaptive
from prade.measure.selection import select, selection_scale

FALSE_ALARM = 1e-4
CASES = [
    ([0, 2, 4], 1, Fraction(1)),
    ([5, 5, 5, 5], 1, Fraction(3)),
    ([0, 100, 90, -40, 95], 10, Fraction(2)),
    ([0, 1, 2, 3, 4, 5], 2, Fraction(1, 10)),
]
ALPHA = FALSE_ALARM / (len(CASES) + 3)  # and the door's choice, the histogram's mean and its spread
DRAWS = 4000


def law(scores: list[int], scale: float) -> np.ndarray:
    """Permute-and-flip: candidate i is reached before it or any other is accepted, summed over all orders."""
    accept = np.exp((np.array(scores) - max(scores)) / scale)
    result = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        still = 1.0
        for place in order:
            result[place] += still * accept[place]
            still *= 1 - accept[place]
    return result / math.factorial(len(scores))


def p_value(chosen: list[int], probability: np.ndarray) -> float:
    observed = np.bincount(chosen, minlength=len(probability))
    likely = probability * len(chosen) >= 5
    if not likely.all():  # rare ones share a bin
        observed = np.append(observed[likely], observed[~likely].sum())
        probability = np.append(probability[likely], probability[~likely].sum())
    return float(stats.chisquare(observed, probability * len(chosen)).pvalue)


@pytest.mark.parametrize(("scores", "sensitivity", "epsilon"), CASES, ids=str)
def test_the_selection_has_the_declared_law(scores, sensitivity, epsilon):
    chosen = [select(scores, sensitivity, epsilon) for _ in range(DRAWS)]
    assert p_value(chosen, law(scores, 2 * sensitivity / float(epsilon))) > ALPHA


@pytest.mark.parametrize(("scores", "sensitivity", "epsilon"), [CASES[0], CASES[2]], ids=str)
def test_the_check_would_notice_the_sensitivity_halved(scores, sensitivity, epsilon):
    generator = np.random.default_rng(7)
    careless, right = (law(scores, sensitivity * factor / float(epsilon)) for factor in (1, 2))
    assert p_value(list(generator.choice(len(scores), DRAWS, p=careless)), right) < ALPHA
    assert p_value(list(generator.choice(len(scores), DRAWS, p=right)), right) > ALPHA


@pytest.mark.parametrize(("scores", "sensitivity", "epsilon"), CASES, ids=str)
def test_the_law_is_private(scores, sensitivity, epsilon):
    """Every way to move every score by the sensitivity at most: no probability changes by more than e^epsilon."""
    scale = float(selection_scale(sensitivity, epsilon))
    assert Fraction(2 * sensitivity) / selection_scale(sensitivity, epsilon) <= epsilon
    before, worst = law(scores, scale), 0.0
    for moves in itertools.product([-sensitivity, 0, sensitivity], repeat=min(len(scores), 4)):
        moved = law([s + m for s, m in itertools.zip_longest(scores, moves, fillvalue=0)], scale)
        worst = max(worst, float(np.abs(np.log(moved / before)).max()))
    assert 0.3 * float(epsilon) < worst <= float(epsilon) * (1 + 1e-9)


@pytest.fixture
def opened(tmp_path):
    """A door to five rows of two columns."""
    schema = Schema.from_mbi({"a": 2, "b": 3})
    rows = pa.table({"a": [0, 0, 0, 0, 1], "b": [0, 1, 1, 2, 2]})
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("people", Unit(2), Budget.pure(10**5))
    workload = Workload.marginals(schema, ["a", "b", ("a", "b")])
    terms = {"dataset": "people", "task": "1", "budget": Budget.pure(10**5), "unit": Unit(2)}
    with adaptive(rows, schema, workload.parts, tmp_path / "answers.json", ledger, **terms) as door:
        yield door, workload


def test_the_door_chooses_with_that_law_and_the_units_sensitivity(opened):
    door, (a, b, both) = opened
    scores = [Misfit(a, [0, 0]), Misfit(b, [1, 2, 2]), Misfit(both, [9, 0, 0, 0, 0, 0], penalty=3)]
    by_hand = [5, 0, (8 + 2 + 1 + 0 + 0 + 1) - 3]
    chosen = [door.choose(scores, 1) for _ in range(DRAWS)]
    assert p_value(chosen, law(by_hand, scale=4.0)) > ALPHA  # two rows a person, epsilon 1


def test_the_noisy_table_is_unbiased_before_negatives_go(opened):
    """Means and variances of 2,000 answers of six cells: Laplace noise of scale 2 / epsilon."""
    door, (_, _, both) = opened
    noise = np.array([door.answer(both, 1).counts for _ in range(2000)]) - [1, 2, 1, 0, 0, 1]
    ratio = math.exp(-1 / 2)
    variance = 2 * ratio / (1 - ratio) ** 2  # of the discrete law
    fourth = stats.dlaplace(1 / 2).moment(4)
    assert abs(noise.mean()) / math.sqrt(variance / noise.size) < stats.norm.isf(ALPHA / 2)
    spread = abs((noise**2).mean() - variance) / math.sqrt((fourth - variance**2) / noise.size)
    assert spread < stats.norm.isf(ALPHA / 2)
