"""The baselines: what they learn when noise is next to none, what they spend, and what they never tell."""

import copy
import json
import pickle
import re
import sys
import traceback
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from prade import Budget, BudgetError, DataError, EstimationError, Ledger, PradeError, Schema, Unit, Workload, score
from prade.baselines import MWEM, GEMPub, Histogram, PMWPub, PrivBayes, run
from prade.data.public.joint import Prior
from prade.estimating.estimate import Status
from prade.measuring.adaptive.session import Dependence, Misfit, adaptive, answered
from prade.measuring.noise import add_noise
from prade.queries.parts import Marginal
from prade.queries.query import expect, parse
from prade.queries.workload import Predicate, RowCells
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 2, "b": 3, "c": 3, "town": 2})
HUGE = Budget.pure(10**6)
PAIRS = Workload.all_marginals(SCHEMA, 2)
BASELINES = {
    "mwem": MWEM(PAIRS, rounds=4),
    "pmw-pub": PMWPub(PAIRS, rounds=3, iterate="last"),
    "gem-pub": GEMPub(PAIRS, rounds=2, steps=3, products=20, inputs=4, hidden=8, public_steps=5, draws=50),
    "histogram": Histogram(),
    "privbayes": PrivBayes(seed=3),
}
STEPS: list[str] = []
sys.addaudithook(lambda event, given: STEPS.append(given[0]) if event == "prade.step" else None)


def chain(rows: int, seed: int) -> dict[str, np.ndarray]:
    """town -> a -> b -> c, each mostly what the one before it says."""
    generator = np.random.default_rng(seed)
    town = generator.integers(0, 2, rows)
    a = np.where(generator.random(rows) < 0.8, town, 1 - town)
    b = np.where(generator.random(rows) < 0.7, 2 * a, generator.integers(0, 3, rows))
    c = np.where(generator.random(rows) < 0.9, b, generator.integers(0, 3, rows))
    return {"a": a, "b": b, "c": c, "town": town}


@pytest.fixture(scope="module")
def truth() -> dict[str, np.ndarray]:
    return chain(5000, seed=1)


@pytest.fixture(scope="module")
def prior() -> Prior:
    """Public rows from elsewhere: every cell occurs, in other proportions."""
    generator = np.random.default_rng(2)
    domain = Prior.uniform(SCHEMA)
    return Prior(SCHEMA, domain.codes, generator.exponential(size=len(domain)) + 0.2)


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    found = Ledger(tmp_path / "ledger")
    found.open_dataset("people", Unit(1), HUGE * 2)
    return found


@pytest.fixture
def terms(tmp_path, ledger):
    given = {"path": tmp_path / "answers.json", "ledger": ledger, "dataset": "people", "budget": HUGE, "unit": Unit(1)}
    return given | {"weak_protection": True}


def exact_joint(truth) -> Prior:
    return Prior.from_table(SCHEMA, pa.table(truth))


# ------------------------------------------------------------------ with next to no noise


@pytest.mark.parametrize("kind", [MWEM, PMWPub])
@pytest.mark.parametrize("iterate", ["average", "last"])
def test_with_a_huge_budget_multiplicative_weights_reach_the_true_marginals(kind, iterate, truth, prior, terms):
    baseline = kind(PAIRS, rounds=12, passes=300, rate=2.0, iterate=iterate)
    found = run(baseline, prior, pa.table(truth), **terms)
    wanted = PAIRS.answer(exact_joint(truth))
    before = max(np.abs(y - p).sum() for y, p in zip(wanted, PAIRS.answer(prior), strict=True))
    worst = max(np.abs(y - q).sum() for y, q in zip(wanted, PAIRS.answer(found), strict=True))
    assert before > 0.3
    assert worst < (0.01 if iterate == "last" else before / 2)  # the first rounds are in the average
    assert found.report.total == 5000


def test_single_queries_are_learnt_as_in_the_paper(truth, terms):
    """Parts of one query each, from uniform weights: MWEM word for word."""
    queries = ["a == 1 and b == 2", "b == 0", "c == 1 or a == 0"]
    singles = Workload(SCHEMA, [Predicate(parse(query, SCHEMA)) for query in queries])
    found = run(MWEM(singles, rounds=9, passes=400, iterate="last"), Prior.uniform(SCHEMA), pa.table(truth), **terms)
    for query in queries:
        assert expect(found, query) == pytest.approx(expect(exact_joint(truth), query), abs=2e-3)


def test_one_update_by_hand():
    schema = Schema.from_mbi({"a": 2, "b": 2})
    prior = Prior(schema, Prior.uniform(schema).codes, np.array([0.4, 0.1, 0.3, 0.2]))
    answer = Measurement(Marginal.of(schema, ["a"]), [90, 10], 1.0)
    public = PMWPub(Workload.all_marginals(schema, 1), passes=1).fit(prior, [answer], 100.0)
    by_hand = prior.weights * np.exp(0.5 * (np.array([0.9, 0.9, 0.1, 0.1]) - 0.5))
    assert public.weights == pytest.approx(by_hand / by_hand.sum())
    uniform = MWEM(Workload.all_marginals(schema, 1), passes=1).fit(prior, [answer], 100.0)
    by_hand = np.exp(0.5 * (np.array([0.9, 0.9, 0.1, 0.1]) - 0.5))
    assert uniform.weights == pytest.approx(by_hand / by_hand.sum())


def test_the_average_is_that_of_the_rounds():
    schema = Schema.from_mbi({"a": 2, "b": 2})
    parts, prior = Workload.all_marginals(schema, 1), Prior.uniform(schema)
    answers = [Measurement(parts[0], [70, 30], 1.0), Measurement(parts[1], [20, 80], 1.0)]
    last = MWEM(parts, passes=3, iterate="last")
    one, two = (last.fit(prior, answers[:number], 100.0).weights for number in (1, 2))
    assert MWEM(parts, passes=3).fit(prior, answers, 100.0).weights == pytest.approx((one + two) / 2)


def test_privbayes_finds_the_chain_and_reproduces_it(truth, prior, terms):
    found = run(PrivBayes(most_parents=1, seed=5), prior, pa.table(truth), **terms)
    record = json.loads(terms["path"].read_text())["record"]
    tables = [set(each["columns"]) for each in record[1:] if "counts" in each and len(each["columns"]) == 2]
    assert {frozenset(table) for table in tables} == {frozenset(x) for x in ({"town", "a"}, {"a", "b"}, {"b", "c"})}
    wanted = exact_joint(truth)
    for columns in (["town", "a"], ["a", "b"], ["b", "c"], ["town", "c"]):
        # the rows are drawn one by one: 5,000 draws over at most 9 cells are off by about sqrt(2 * 9 / (pi * 5000))
        assert np.abs(found.project(columns) - wanted.project(columns)).sum() < 0.12


def test_privbayes_takes_fewer_parents_when_noise_is_large(prior):
    free, noisy = PrivBayes(most_parents=3), PrivBayes(most_parents=3, theta=4.0)
    assert list(free.parent_sets(SCHEMA, ["a", "b", "town"], "c", signal=1e9)) == [("a", "b", "town")]
    assert list(noisy.parent_sets(SCHEMA, ["a", "b", "town"], "c", signal=4 * 12)) == [("a", "town"), ("b",)]
    assert list(noisy.parent_sets(SCHEMA, ["a", "b", "town"], "c", signal=0.0)) == [()]


def test_privbayes_where_noise_has_left_nothing():
    schema = Schema.from_mbi({"a": 2, "b": 2})
    answers = [
        Measurement(Marginal.of(schema, ["b"]), [-1, -1], 5.0),
        Measurement(Marginal.of(schema, ["b", "a"]), [-2, -1, 30, 10], 5.0),
    ]
    found = PrivBayes().fit(Prior.uniform(schema), answers, total=40_000)
    assert found.project(["b"]) == pytest.approx([0.5, 0.5], abs=0.02)  # 4 standard errors are 0.01
    assert found.project(["b", "a"])[0] == pytest.approx([0.375, 0.125], abs=0.02)  # as where b is not looked at


def test_the_histogram_is_the_noisy_table(truth, prior, terms):
    found = run(Histogram(), prior, pa.table(truth), **terms)
    assert found.project(SCHEMA.coded) == pytest.approx(exact_joint(truth).project(SCHEMA.coded), abs=1e-12)
    assert found.status is Status.CONVERGED


def test_a_histogram_of_too_many_cells_is_refused_before_anything_is_spent(truth, prior, terms, ledger):
    with pytest.raises(EstimationError, match=r"has 36 cells, but a histogram may have at most 35"):
        run(Histogram(most_cells=35), prior, pa.table(truth), **terms)
    assert ledger.entries("people") == []


# ------------------------------------------------------------------ one protocol


@pytest.mark.parametrize("name", BASELINES)
def test_the_saved_answers_give_the_same_estimate_for_nothing(name, truth, prior, terms, ledger):
    first = run(BASELINES[name], prior, pa.table(truth), **(terms | {"budget": Budget.pure(3)}))
    spent = ledger.remaining("people")
    second = run(BASELINES[name], prior, "no such table", **(terms | {"budget": Budget.pure(3)}))
    assert ledger.remaining("people") == spent == HUGE * 2 - Budget.pure(3)
    assert np.array_equal(first.weights, second.weights)
    assert repr(first.report) == repr(second.report)
    assert {each: code.tolist() for each, code in first.codes.items()} == {
        each: code.tolist() for each, code in second.codes.items()
    }


@pytest.mark.parametrize("name", BASELINES)
def test_estimates_are_distributions_that_the_contest_can_score(name, truth, prior, terms):
    found = run(BASELINES[name], prior, pa.table(truth), **(terms | {"budget": Budget.pure(1)}))
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1.0)
    rows = found.sample(round(found.report.total), seed=1)
    judged = score(
        pa.table(truth), (rows, rows.codes["town"].astype(int)), SCHEMA, "town", groups={"town": [0, 1]}, pairs="all"
    )
    assert len(judged.groups) == 2
    assert judged.mean < 1.5


@pytest.mark.parametrize("name", BASELINES)
def test_what_no_estimator_can_use_is_refused(name, prior):
    with pytest.raises(PradeError):
        BASELINES[name].fit(prior, [], 100.0)
    ones = [Marginal.of(SCHEMA, [column]) for column in SCHEMA.coded]
    parts = ones if name in ("privbayes", "gem-pub") else [Marginal.of(SCHEMA, SCHEMA.coded)]
    answers = [Measurement(part, np.ones(part.n_cells), 1.0) for part in parts]
    assert BASELINES[name].fit(prior, answers, 36.0).report.total == 36
    for total in (0.0, -3.0, np.nan):
        with pytest.raises(EstimationError, match="total is"):
            BASELINES[name].fit(prior, answers, total)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MWEM(PAIRS, rounds=0), "rounds is 0"),
        (lambda: MWEM(PAIRS, passes=1.5), "passes is 1.5"),
        (lambda: MWEM(PAIRS, rate=0.0), "rate is 0.0"),
        (lambda: MWEM(PAIRS, iterate="best"), "iterate is 'best'"),
        (lambda: MWEM(Workload(SCHEMA, [])), "no parts"),
        (lambda: Histogram(total_share=1.0), "total_share is 1.0"),
        (lambda: PrivBayes(theta=0), "theta is 0"),
        (lambda: PrivBayes(structure_share=0), "structure_share is 0"),
        (lambda: PrivBayes(most_parents=0), "most_parents is 0"),
    ],
)
def test_settings_that_cannot_be(make, words):
    with pytest.raises(EstimationError, match=words):
        make()


# ------------------------------------------------------------------ what is spent


@pytest.mark.parametrize("name", BASELINES)
def test_the_epsilons_add_up_to_what_the_ledger_has(name, truth, prior, terms, ledger):
    STEPS.clear()
    run(BASELINES[name], prior, pa.table(truth), **(terms | {"budget": Budget.pure("7/3")}))
    (entry,) = ledger.entries("people")
    record = json.loads(terms["path"].read_text())["record"]
    assert sum(Fraction(each["epsilon"]) for each in record) == entry.cost.epsilon == Fraction(7, 3)
    for each in record:
        if "scale" in each:
            assert Fraction(1) / Fraction(each["scale"]) <= Fraction(each["epsilon"])
    assert entry.state == "committed"
    expected = ["checked", "reserved", "counted", "written", "committed"]
    assert [step for step in STEPS if step.startswith("adaptive")] == [f"adaptive.{step}" for step in expected]


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("name", BASELINES)
def test_a_person_with_a_thousand_rows_counts_no_further_than_the_unit_says(name, most, prior, tmp_path):
    """Noise is next to none: every number that comes out has forty people with a row each, and `most` of the one."""
    rows = {column: np.concatenate([values, np.full(1000, 1)]) for column, values in chain(40, seed=4).items()}
    rows["id"] = np.append(np.arange(40), np.full(1000, 99))
    unit, ledger = Unit(most, person_id="id"), Ledger(tmp_path / "ledger")
    ledger.open_dataset("people", unit, HUGE)
    terms = {"dataset": "people", "budget": HUGE, "unit": unit, "weak_protection": True}
    found = run(BASELINES[name], prior, pa.table(rows), tmp_path / "answers.json", ledger, **terms)
    answers = [each for each in json.loads((tmp_path / "answers.json").read_text())["record"] if "counts" in each]
    assert [sum(each["counts"]) for each in answers] == [40 + most] * len(answers)
    assert found.report.total == pytest.approx(40 + most)


def test_the_choice_is_by_bounded_rows_too(truth, tmp_path):
    """By all rows `a` is the furthest from what was expected, by one row a person it is `town`."""
    a, town = Marginal.of(SCHEMA, ["a"]), Marginal.of(SCHEMA, ["town"])
    rows = {"id": [7] * 1000 + list(range(100, 150)), "a": [1] * 1000 + [0] * 50, "town": [0] * 1000 + [1] * 50}
    unit, ledger = Unit(1, person_id="id"), Ledger(tmp_path / "ledger")
    ledger.open_dataset("people", unit, HUGE)
    terms = {"dataset": "people", "task": "1", "budget": HUGE, "unit": unit, "weak_protection": True}
    scores = [Misfit(a, [50, 1]), Misfit(town, [20, 30])]
    with adaptive(pa.table(rows), SCHEMA, [a], tmp_path / "answers.json", ledger, **terms) as door:
        assert door.choose(scores, HUGE.epsilon) == 1


TIED = Schema.from_mbi(dict.fromkeys("abcdefgh", 2))


@pytest.mark.parametrize("expected", [{"a"}, {"a", "b"}], ids=["one", "two"])
def test_of_parts_that_are_equally_wrong_the_smallest_is_chosen(expected, tmp_path):
    """A larger part costs more noise; it is chosen when what it has wrong besides is worth that."""
    codes = {name: code.astype(int) for name, code in Prior.uniform(TIED).codes.items()}
    rows = {name: np.repeat(code, np.where(codes["a"] == 0, 6, 2)) for name, code in codes.items()}
    if "b" in expected:
        rows["b"][rows["a"] == 0] = 1
    pairs, trios = [("a", other) for other in "bcdefgh"], [("a", "b", other) for other in "cdefgh"]
    workload = Workload.marginals(TIED, ["a", *pairs, *trios])
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("people", Unit(1), HUGE * 4)
    for attempt in range(4):  # of the seven equals or more the smallest is chosen by chance once in 2,401 times
        path = tmp_path / f"{attempt}.json"
        terms = {"dataset": "people", "budget": HUGE, "unit": Unit(1), "again": True, "weak_protection": True}
        run(MWEM(workload, rounds=1), Prior.uniform(TIED), pa.table(rows), path, ledger, **terms)
        answers = [each for each in json.loads(path.read_text())["record"] if "counts" in each]
        assert set(answers[1]["columns"]) == expected


def test_a_second_run_does_not_spend_unnoticed(truth, prior, terms, ledger, tmp_path):
    rows, baseline = pa.table(truth), Histogram()
    run(baseline, prior, rows, **terms)
    elsewhere = terms | {"path": tmp_path / "elsewhere.json"}
    with pytest.raises(BudgetError, match="already been paid for"):
        run(baseline, prior, rows, **elsewhere)
    with pytest.raises(DataError, match="holds the answers of another run"):
        run(PrivBayes(), prior, rows, **terms)
    with pytest.raises(DataError, match="exists and is kept"):
        run(baseline, prior, rows, **terms, again=True)
    assert len(ledger.entries("people")) == 1
    run(baseline, prior, rows, **elsewhere, again=True)
    assert ledger.remaining("people") == Budget.pure(0)


def test_answers_that_another_ledger_paid_for_are_refused(truth, prior, terms, tmp_path):
    run(Histogram(), prior, pa.table(truth), **terms)
    other = Ledger(tmp_path / "other")
    other.open_dataset("people", Unit(1), HUGE)
    with pytest.raises(DataError, match="did not pay"):
        run(Histogram(), prior, pa.table(truth), **(terms | {"ledger": other}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": Budget.zcdp(1)}, "pure epsilon"),
        ({"unit": Unit(2)}, "for one unit only"),
        ({"budget": HUGE * 3}, "left of"),
        ({"dataset": "persons"}, "no data set"),
    ],
)
def test_refusals_cost_nothing(change, words, truth, prior, terms, ledger):
    with pytest.raises(PradeError, match=words):
        run(Histogram(), prior, pa.table(truth), **(terms | change))
    with pytest.raises(DataError, match="has no column 'town'"):
        run(Histogram(), prior, pa.table({name: truth[name] for name in "abc"}), **terms)
    assert ledger.entries("people") == []


# ------------------------------------------------------------------ the door


@pytest.fixture
def open_door(truth, terms):
    def opened(**change):
        given = {**terms, "task": "3f2a", "budget": Budget.pure(1), **change}
        path, ledger = given.pop("path"), given.pop("ledger")
        return adaptive(pa.table(truth), SCHEMA, PAIRS.parts, path, ledger, **given)

    return opened


def test_nothing_is_told_beyond_the_budget(open_door, ledger):
    with open_door() as door:
        assert ledger.entries("people")[0].cost == Budget.pure(1)  # reserved before anything is told
        door.answer(PAIRS[0], "1/3")
        with pytest.raises(BudgetError, match="only 2/3 of the reserved epsilon is left"):
            door.answer(PAIRS[0], "0.67")
        with pytest.raises(BudgetError, match="Nothing was revealed"):
            door.choose([Misfit(PAIRS[0], np.zeros(6, int))], Fraction(2, 3) + Fraction(1, 10**30))
        assert door.left == Fraction(2, 3)
        door.choose([Misfit(PAIRS[0], np.zeros(6, int))], "2/3")
        assert door.left == 0
        for nothing in (0, -1):
            with pytest.raises(PradeError):
                door.answer(PAIRS[0], nothing)
    with pytest.raises(BudgetError):
        door.answer(PAIRS[0], "1/3")


def test_a_door_takes_only_scores_whose_sensitivity_is_known(open_door):
    class Mine(Misfit):
        def of(self, counts):
            return 1000 * super().of(counts)

    with open_door() as door:
        for scores in ([], [Mine(PAIRS[0], np.zeros(6, int))], [lambda counts: counts.sum()]):
            with pytest.raises(PradeError, match="sensitivity of others is not known"):
                door.choose(scores, "1/2")
        with pytest.raises(PradeError, match="sensitivity of others is not known"):
            door.choose([Misfit(PAIRS[0], np.zeros(6, int)), Dependence(PAIRS[0])], "1/2")
        with pytest.raises(PradeError, match="bound to the rows of one support"):
            door.answer(RowCells([0, 1], 2), "1/2")
        assert door.left == 1


def test_a_table_beyond_the_proofs_is_refused_before_anything_is_drawn(truth, terms, ledger, monkeypatch):
    """Its number of rows is private: the refusal is on record, and can be given back."""
    given = terms | {"budget": Budget.pure(1)}
    for rows, most in ((10, 10), (11, 10)):
        monkeypatch.setattr("prade.measuring.adaptive.session.MOST_ROWS", most)
        table = pa.table({name: values[:rows] for name, values in truth.items()})
        if rows > most:
            with pytest.raises(DataError, match=r"more than 2\*\*33 rows, beyond what the sensitivity proofs cover"):
                run(PrivBayes(), exact_joint(truth), table, **given)
        else:
            run(Histogram(), exact_joint(truth), table, **(given | {"path": terms["path"].with_name("other.json")}))
    done, refused = ledger.entries("people")
    assert done.state == "committed"
    assert [(each.stage, each.kind) for each in refused.failures] == [("count", "DataError")]
    assert not terms["path"].exists()
    before = ledger.remaining("people")
    assert ledger.give_back(refused.id, "it has too many rows").state == "returned"
    assert ledger.remaining("people") == before + Budget.pure(1)


@pytest.mark.parametrize(("rows", "refused"), [(2**33, False), (2**33 + 1, True)])
def test_the_proofs_reach_to_two_to_the_33_rows(rows, refused, open_door, monkeypatch):
    """Such a table does not fit in here, so its counts are made up."""

    def huge(source, schema, parts, *rest):
        return [np.eye(1, part.n_cells, dtype=np.int64) * rows for part in parts]

    monkeypatch.setattr("prade.measuring.adaptive.session.count", huge)
    if refused:
        with pytest.raises(DataError, match="more than 2"), open_door():
            pass
    else:
        with open_door() as door:
            assert door.answer(PAIRS[0], 1).counts.sum() == pytest.approx(2**33, abs=1000)


def test_what_is_beyond_the_proofs_is_refused_again_and_again(truth, terms, monkeypatch):
    """A door that was opened with a part of few rows."""
    few = Workload(SCHEMA, [Predicate(parse("a == 0 and b == 1 and c == 0", SCHEMA))]).parts
    monkeypatch.setattr("prade.measuring.adaptive.session.MOST_ROWS", 4000)
    given = {**terms, "task": "3f2a"}
    path, ledger = given.pop("path"), given.pop("ledger")
    with adaptive(pa.table(truth), SCHEMA, few, path, ledger, **given) as door:
        for _ in range(2):
            with pytest.raises(DataError, match="beyond what the sensitivity proofs cover"):
                door.choose([Dependence(PAIRS[0])], 1)


def test_a_run_that_was_taken_for_dead_replaces_no_answers(truth, prior, terms, monkeypatch):
    kept = []

    def slow(*given):
        """The first run stands still at its first draw, while the second one is done."""
        monkeypatch.undo()
        run(Histogram(), prior, pa.table(truth), **terms, again=True)
        kept.append(terms["path"].read_text())
        return add_noise(*given)

    monkeypatch.setattr("prade.measuring.adaptive.session.add_noise", slow)
    with suppress(DataError):
        run(Histogram(), prior, pa.table(truth), **terms)
    assert terms["path"].read_text() == kept[0]


@pytest.mark.parametrize("estimate", [np.zeros(5, int), np.zeros(6), np.full(6, 2**62)])
def test_a_misfit_is_against_whole_counts(estimate):
    with pytest.raises(PradeError):
        Misfit(PAIRS[0], estimate)


def test_a_run_that_breaks_off_has_spent_and_keeps_what_is_whole(open_door, ledger, terms, tmp_path):
    def break_off(epsilon, again):
        with open_door(again=again) as door:
            door.answer(PAIRS[0], epsilon)
            raise KeyError

    with pytest.raises(KeyError):
        break_off("1/2", again=False)
    assert not terms["path"].exists()
    (entry,) = ledger.entries("people")
    assert (entry.state, entry.drawn) == ("failed", True)
    assert [(each.stage, each.kind) for each in entry.failures] == [("draw", "KeyError")]
    with pytest.raises(KeyError):
        break_off(1, again=True)
    found = answered(terms["path"], SCHEMA, PAIRS.parts, ledger, dataset="people", task="3f2a")
    assert [each.part for each in found] == [PAIRS[0]]
    assert ledger.entries("people")[1].state == "committed"


# ------------------------------------------------------------------ what is never told

SECRET = 73_939  # rows in one cell: a prime that no scale or epsilon of these tests is made of
SHOWN = re.compile(rf"\b{SECRET}\b")  # by itself: five digits occur within long numbers and hashes by chance


@pytest.fixture(scope="module")
def planted() -> pa.Table:
    return pa.table({name: np.full(SECRET, code) for name, code in zip(SCHEMA.coded, (1, 2, 0, 1), strict=True)})


def told(error: BaseException) -> str:
    """Everything that an error carries: its words, causes, and what a debugger shows of its frames' variables."""
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()) + repr(error.args)


def test_no_true_count_gets_out(planted, terms, tmp_path, monkeypatch):
    """The noise is so large that a noisy count is the planted one with a chance below one in a million million."""
    path, ledger = terms["path"], terms["ledger"]
    given = {"dataset": "people", "unit": Unit(1), "budget": Budget.pure("1e-12")}
    seen, errors = [], []
    with adaptive(planted, SCHEMA, PAIRS.parts, path, ledger, task="1", **given) as door:
        seen += [repr(door), str(door), door.left, [getattr(door, name, None) for name in dir(door) if name[0] != "_"]]
        for leak in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(PradeError, match="cannot be copied or pickled"):
                leak(door)
        assert not hasattr(door, "__dict__")
        attempts = [
            lambda: door.answer(PAIRS[0], 1),
            lambda: door.answer(RowCells([0, 1], 2), "1e-13"),
            lambda: door.choose([Misfit(PAIRS[0], np.zeros(6, int))], "1"),
            lambda: door.choose([], "1e-13"),
        ]
        for attempt in attempts:
            with pytest.raises(PradeError) as caught:
                attempt()
            errors.append(told(caught.value))

        def broken(values, *rest, **more):
            raise RuntimeError(f"cannot handle {values}")

        for name, attempt in {
            "add_noise": lambda: door.answer(PAIRS[0], "1e-13"),
            "select": lambda: door.choose([Misfit(part, np.zeros(part.n_cells, int)) for part in PAIRS], "1e-13"),
        }.items():
            with monkeypatch.context() as patched:
                patched.setattr(f"prade.measuring.adaptive.session.{name}", broken)
                with pytest.raises(DataError, match="RuntimeError") as caught:
                    attempt()
                errors.append(told(caught.value))
        seen.append(door.answer(PAIRS[0], "1e-13"))
    seen += [repr(door), path.read_text(), ledger.account("people")]
    held = [getattr(door, name) for name in door.__slots__]
    assert not any(SHOWN.search(repr(each)) for each in [*seen, *errors, held])
    assert any("cannot handle" not in each and "RuntimeError" in each for each in errors)


def test_the_search_for_the_planted_count_would_find_it(planted):
    def careless():
        counts = np.array([planted.num_rows])
        raise ValueError(f"{len(counts)} counts")

    with pytest.raises(ValueError, match="1 counts") as caught:
        careless()
    assert SHOWN.search(told(caught.value))
    for leak in (
        planted.num_rows,
        f"all {planted.num_rows} rows",
        np.array([0, planted.num_rows]),
        {"n": SECRET * 1.0},
    ):
        assert SHOWN.search(repr(leak))
