"""The laws of what the baselines draw: private selection, the noise of the histogram, and what an attacker learns.

Nothing takes a seed, so these tests fail by chance now and then: the laws all together once in 10,000 runs
(`FALSE_ALARM`, shared out among the checks by Bonferroni's inequality), the audits once in 2,500 (22 bounds, each wrong
once in 60,000).
"""

import itertools
import math
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from prade import Budget, Ledger, Schema, Unit, Workload
from prade.baselines import MWEM, Histogram, PrivBayes
from prade.data.public.joint import Prior
from prade.measuring.adaptive.selection import select, selection_scale
from prade.measuring.adaptive.session import Dependence, Misfit, adaptive
from prade.measuring.noise import add_noise
from worlds.chance import p_value_of_choices, p_value_of_noise, proved_epsilon

FALSE_ALARM = 1e-4
CASES = [
    ([0, 2, 4], 1, Fraction(1)),
    ([5, 5, 5, 5], 1, Fraction(3)),
    ([0, 100, 90, -40, 95], 10, Fraction(2)),
    ([0, 1, 2, 3, 4, 5], 2, Fraction(1, 10)),
]
ALPHA = FALSE_ALARM / (len(CASES) + 4)  # and the door's two choices, the histogram's mean and its law
AUDIT_ALPHA = 1 / 60_000  # of each bound
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


@pytest.mark.parametrize(("scores", "sensitivity", "epsilon"), CASES, ids=str)
def test_the_selection_has_the_declared_law(scores, sensitivity, epsilon):
    chosen = [select(scores, sensitivity, epsilon) for _ in range(DRAWS)]
    assert p_value_of_choices(chosen, law(scores, 2 * sensitivity / float(epsilon))) > ALPHA


@pytest.mark.parametrize(("scores", "sensitivity", "epsilon"), [CASES[0], CASES[2]], ids=str)
def test_the_check_would_notice_the_sensitivity_halved(scores, sensitivity, epsilon):
    generator = np.random.default_rng(7)
    careless, right = (law(scores, sensitivity * factor / float(epsilon)) for factor in (1, 2))
    assert p_value_of_choices(list(generator.choice(len(scores), DRAWS, p=careless)), right) < ALPHA
    assert p_value_of_choices(list(generator.choice(len(scores), DRAWS, p=right)), right) > ALPHA


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
    with adaptive(
        rows, schema, workload.parts, tmp_path / "answers.json", ledger, weak_protection=True, **terms
    ) as door:
        yield door, workload


def test_the_door_chooses_with_that_law_and_the_units_sensitivity(opened):
    door, (a, b, both) = opened
    scores = [Misfit(a, [0, 0]), Misfit(b, [1, 2, 2]), Misfit(both, [9, 0, 0, 0, 0, 0], penalty=3)]
    by_hand = [5, 0, (8 + 2 + 1 + 0 + 0 + 1) - 3]
    chosen = [door.choose(scores, 1) for _ in range(DRAWS)]
    assert p_value_of_choices(chosen, law(by_hand, scale=4.0)) > ALPHA  # two rows a person, epsilon 1


def test_the_door_chooses_by_dependence_with_the_declared_sensitivity(opened):
    """Two rows move a score by 4 rows, 256 steps, and rounding by 2 more; half of that would be noticed."""
    door, (a, _, both) = opened
    scores = [Dependence(a), Dependence(both)]
    by_hand = [score.of(np.array(counts)) for score, counts in zip(scores, ([4, 1], [1, 2, 1, 0, 0, 1]), strict=True)]
    right, careless = (law(by_hand, scale=factor * 258 / 5.0) for factor in (2, 1))
    generator = np.random.default_rng(11)
    assert p_value_of_choices(list(generator.choice(2, DRAWS // 2, p=careless)), right) < ALPHA
    assert p_value_of_choices([door.choose(scores, 5) for _ in range(DRAWS // 2)], right) > ALPHA


def test_the_noisy_table_is_unbiased_before_negatives_go(opened):
    """2,000 answers of six cells have the mean and the law of Laplace noise of scale 2 / epsilon."""
    door, (_, _, both) = opened
    noise = np.array([door.answer(both, 1).counts for _ in range(2000)]) - [1, 2, 1, 0, 0, 1]
    ratio = math.exp(-1 / 2)
    variance = 2 * ratio / (1 - ratio) ** 2  # of the discrete law
    assert abs(noise.mean()) / math.sqrt(variance / noise.size) < stats.norm.isf(ALPHA / 2)
    assert p_value_of_noise(noise.ravel(), "laplace", Fraction(2)) > ALPHA


# ------------------------------------------------------------------ an attacker, who knows all but one person

TRIO = Schema.from_mbi({"X": 2, "Y": 2, "Z": 2})
OTHERS, PERSON = [(0, 0, 0)] * 2000, [(1, 0, 1)] * 2
# X falls behind and Y gains by the person's rows, as far as two rows can move them; Z comes to depend on X
RUNS = {
    "mwem": (MWEM(Workload.all_marginals(Schema.from_mbi({"X": 2, "Y": 2}), 1), rounds=1, total_share=0.02), 3, 1400),
    "histogram": (Histogram(total_share=0.02), 1, 600),
    "privbayes": (PrivBayes(structure_share=0.9, most_parents=1, theta=1e-9, total_share=0.02), 3, 250),
}


class Told(Exception):
    """All epsilon is used: what a baseline makes of the answers tells nothing more."""


class Purse:
    """One run's part of a door that stays open for many, and what was told for it."""

    def __init__(self, door, epsilon):
        self.door, self.left, self.unit, self.told = door, Fraction(epsilon), door.unit, []

    def choose(self, scores, epsilon):
        place = self.door.choose(scores, epsilon)
        self._pay(epsilon, ([(score, score.part) for score in scores], place))
        return place

    def answer(self, part, epsilon):
        measurement = self.door.answer(part, epsilon)
        self._pay(epsilon, measurement)
        return measurement

    @property
    def measurements(self):
        return tuple(told for _, told in self.told if not isinstance(told, tuple))

    def _pay(self, epsilon, told):
        self.left -= epsilon
        self.told.append((epsilon, told))
        if not self.left:
            raise Told


def transcripts(name, rows, folder):
    """What so many runs of a baseline tell of a table: for each run, what each step cost and what came out."""
    baseline, epsilon, runs = RUNS[name]
    prior = Prior.uniform(TRIO)
    folder.mkdir()
    ledger = Ledger(folder / "ledger")
    ledger.open_dataset("people", Unit(2), Budget.pure(epsilon * runs))
    terms = {"dataset": "people", "task": "1", "budget": Budget.pure(epsilon * runs), "unit": Unit(2)}
    terms["weak_protection"] = True  # the door is open for all runs, of which each is looked at by itself
    table = pa.table(dict(zip("XYZ", np.array(rows).T, strict=True)))
    found = []
    with adaptive(table, TRIO, baseline.parts(prior), folder / "answers.json", ledger, **terms) as door:
        for _ in range(runs):
            purse = Purse(door, epsilon)
            with suppress(Told):
                baseline.ask(prior, purse)
            assert purse.left == 0
            found.append(purse.told)
    return found


@lru_cache
def true_counts(part, there):
    codes = dict(zip("XYZ", np.array(OTHERS + PERSON * there).T, strict=True))
    return np.bincount(part.cells(TRIO, codes), minlength=part.n_cells + 1)[: part.n_cells]


def log_ratio(epsilon, told):
    """log P(what one step told | with) / P(. | without), if it has the law that is declared for its epsilon."""
    if isinstance(told, tuple):
        scores, place = told
        scale = 2 * scores[0][0].sensitivity(2) / float(epsilon)
        here, gone = (law([score.of(true_counts(part, w)) for score, part in scores], scale) for w in (True, False))
        return float(np.log(here[place] / gone[place]))
    distance = [np.abs(told.counts - true_counts(told.part, there)).sum() for there in (False, True)]
    return (distance[0] - distance[1]) * float(epsilon) / 2


def proved(name, folder):
    """After each step: what the steps so far prove about epsilon, as lower confidence bound, and what they cost."""
    found = [transcripts(name, OTHERS + PERSON * there, folder / str(there)) for there in (True, False)]
    ratios = np.array([[log_ratio(*step) for step in run] for runs in found for run in runs]).cumsum(axis=1)
    there = np.arange(len(ratios)) < len(found[0])
    claims = np.cumsum([float(epsilon) for epsilon, _ in found[0][0]])
    bounds = []
    for ratio, claim in zip(ratios.T, claims, strict=True):
        grid = claim * np.array([0.25, 0.5, 0.75, 0.9])
        either_way = (ratio[:, None] >= grid - 1e-9, there), (ratio[:, None] <= 1e-9 - grid, ~there)
        bounds.append(max(proved_epsilon(*events, 0.0, AUDIT_ALPHA) for events in either_way))
    return np.array(bounds), claims


@pytest.mark.parametrize("name", RUNS)
def test_a_run_proves_no_more_than_it_pays(name, tmp_path):
    bounds, claims = proved(name, tmp_path)
    assert claims[-1] == pytest.approx(RUNS[name][1])
    assert (bounds <= claims).all()


def half_the_noise(monkeypatch):
    monkeypatch.setattr(
        "prade.measuring.adaptive.session.add_noise", lambda counts, law, b: add_noise(counts, law, b / 2)
    )


def half_the_selection_scale(monkeypatch):
    monkeypatch.setattr(
        "prade.measuring.adaptive.session.select", lambda scores, most, cost: select(scores, most, 2 * cost)
    )


def takes_steps_for_rows(monkeypatch):
    monkeypatch.setattr(Dependence, "sensitivity", staticmethod(lambda rows: 2 * rows))


@pytest.mark.parametrize(
    ("name", "fault"),
    [("mwem", half_the_selection_scale), ("histogram", half_the_noise), ("privbayes", takes_steps_for_rows)],
)
def test_broken_copies_are_caught(name, fault, tmp_path, monkeypatch):
    """The best bound exceeds the claim by 4.8 of its own standard deviations or more (4 to 15 simulations each)."""
    fault(monkeypatch)
    bounds, claims = proved(name, tmp_path)
    assert (bounds > claims).any()
