"""Plans: shares, scales and totals worked by hand, nesting, hashes, what describe() says, and every refusal."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from prade import Ask, Budget, Column, Level, Plan, PradeError, Schema, Unit, Workload
from prade.planning.questions import TOTAL, shared_asks, total_part, total_variance
from prade.planning.settings import Expected
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse

SCHEMA = Schema.from_mbi({"age": 10, "sex": 2, "town": 5, "size": 4})
PLACES = {"STATE": [17, 17, 39], "PUMA": [1, 2, 1]}
ONE, PERSON = Budget.pure(1), Unit(2, "ID", 1)


def marginals(*columns):
    return Workload.marginals(SCHEMA, columns)


def make(*levels, budget=None, unit=None, groups=PLACES, schema=SCHEMA, dataset="survey", noise=None):
    return Plan(dataset, schema, budget or Budget.pure(1), unit or Unit(), list(levels), groups, noise=noise)


@pytest.fixture
def uneven():
    """Shares 1 (totals), 1 (two parts) and 3 (one part) of five by state, 5 of five by PUMA."""
    return Level("STATE", [Ask(marginals("age", "sex"), 1), Ask(marginals("town"), 3)], 1), Level(
        "PUMA", Ask(marginals(("age", "sex")), 5), 0
    )


def test_scales_by_hand(uneven):
    plan = make(*uneven, unit=Unit(2))
    total, two, one, joint = plan.questions
    tenths = [Fraction(share, 10) for share in (1, 1, 3, 5)]
    assert [question.share.epsilon for question in plan.questions] == tenths
    assert (total.scale, two.scale, joint.scale) == (20, 40, 4)  # b = rows * m / epsilon
    assert Fraction(20, 3) <= one.scale < 6.667
    assert two.variance == pytest.approx(2 * 40**2 - 1 / 6)
    assert [(question.level, question.is_total) for question in plan.questions] == [(0, 1), (0, 0), (0, 0), (1, 0)]
    assert [question.names() for question in plan.questions] == [[TOTAL], ["age", "sex"], ["town"], ["age x sex"]]
    zcdp = make(*uneven, budget=Budget.zcdp("1/2"), unit=Unit(2))
    assert [question.share.rho for question in zcdp.questions] == [share / 2 for share in tenths]
    expected = [4 / 0.1, 4 * 2 / 0.1, 4 / 0.3, 4 / 0.5]  # sigma^2 = rows^2 * m / (2 rho)
    assert [question.variance for question in zcdp.questions] == pytest.approx(expected)
    assert [{question.law for question in each.questions} for each in (plan, zcdp)] == [{"laplace"}, {"gaussian"}]


def test_approx_is_split_as_the_zcdp_within_it(uneven):
    budget = Budget.approx(1, "1e-9")
    plan, same = make(*uneven, budget=budget), make(*uneven, budget=budget.zcdp_within())
    assert plan.noise_budget == budget.zcdp_within()
    assert [question.scale for question in plan.questions] == [question.scale for question in same.questions]
    assert sum(question.share for question in plan.questions).as_approx("1e-9") <= budget


def test_laplace_noise_within_approx_is_that_of_the_pure_budget(uneven):
    plan = make(*uneven, budget=Budget.approx(1, "1e-9"), unit=Unit(2), noise="laplace")
    same = make(*uneven, unit=Unit(2))
    assert plan.questions == same.questions
    assert (plan.noise_budget, plan.budget) == (Budget.pure(1), Budget.approx(1, "1e-9"))
    lines = plan.describe().splitlines()
    assert lines[0].endswith("epsilon = 1 and delta = 1e-9 (approximate differential privacy)")
    assert lines[1:] == same.describe().splitlines()[1:]


def test_laplace_noise_within_rho_has_the_scale_of_gaussian_noise_and_twice_its_variance(uneven):
    plan, usual = (make(*uneven, budget=Budget.zcdp("1/200"), noise=noise) for noise in ("laplace", None))
    for one, other in zip(plan.questions, usual.questions, strict=True):
        assert (one.law, other.law) == ("laplace", "gaussian")
        assert (one.share, one.scale) == (other.share, other.scale)
        assert one.variance == pytest.approx(2 * other.variance, rel=0.01)


def test_the_usual_law_may_be_named_and_changes_nothing(uneven):
    for budget, noise in ((ONE, "laplace"), (Budget.zcdp(1), "gaussian"), (Budget.approx(1, "1e-9"), "gaussian")):
        named, plain = make(*uneven, budget=budget, noise=noise), make(*uneven, budget=budget)
        assert (named, named.questions, named.to_toml()) == (plain, plain.questions, plain.to_toml())


def test_parts_that_no_row_is_in_together_cost_once():
    apart = Workload(SCHEMA, [Cells(["sex"], [0, 1], 1), Cells(["sex"], [1, 0], 1)])
    together = Workload(SCHEMA, [Cells(["sex"], [0, 1], 1), Cells(["age"], [0] + 9 * [1], 1)])
    plan = make(Level((), apart, 0), Level("STATE", together, 0))
    assert [question.scale for question in plan.questions] == [2, 4]


def test_shares_are_in_proportion():
    shares = ((1, 3), (5, 15), (0.1, "0.3"))
    levels = [Level("STATE", [Ask(marginals("age"), a), Ask(marginals("sex"), b)], 0) for a, b in shares]
    plans = [make(level) for level in levels]
    assert plans[0].questions == plans[1].questions == plans[2].questions


@pytest.mark.parametrize(
    ("budget", "columns", "asked"),
    [
        # one part of c cells, pure: own 2 * 2^2 = 8 against c * 2 * 1^2
        (Budget.pure(1), ["sex"], False),  # 8 against 4
        (Budget.pure(1), ["size"], False),  # 8 against 8: not smaller
        (Budget.pure(1), ["town"], True),  # 8 against 10
        # two parts of c cells, pure: own 2 * 3^2 = 18 against (1 / 2) * c * 2 * 2^2
        (Budget.pure(1), [("sex",), ("size",)], False),  # 18 against 1 / (1/16 + 1/32) = 10.7
        (Budget.pure(1), ["town", "age"], True),  # 18 against 1 / (1/40 + 1/80) = 26.7
        # one part of c cells, rho = 1: own 1 / (2 / 2) = 1 against c / 2
        (Budget.zcdp(1), ["size"], True),  # 1 against 2
        # two parts, rho = 1: own 3 / 2 against 1 / (1/c + 1/c') with sigma^2 = 1
        (Budget.zcdp(1), ["sex", "age"], True),  # 1.5 against 1 / (1/2 + 1/10) = 1.67
        (Budget.zcdp(1), ["sex", "size"], False),  # 1.5 against 1 / (1/2 + 1/4) = 1.33
    ],
)
def test_a_total_is_asked_when_that_is_more_precise(budget, columns, asked):
    level = make(Level("STATE", marginals(*columns)), budget=budget).levels[0]
    assert level.total == (Fraction(1, len(columns) + 1) if asked else 0)
    assert level.share == 1  # the level costs what it did


def test_an_asked_total_takes_from_every_ask_alike():
    level = Level("STATE", [Ask(marginals("age"), 1), Ask(marginals(("sex", "town")), 3)])
    plan = make(level, Level("PUMA", marginals("sex")))
    settled = plan.levels[0]
    # own: 2 * 3^2 = 18; derived: 1 / (1 / (10 * 2 * 4^2) + 1 / (10 * 2 * (4/3)^2)) = 32
    assert settled.total == Fraction(4, 3)
    assert [ask.share for ask in settled.asks] == [Fraction(2, 3), 2]
    assert (settled.share, plan.levels[1].share) == (4, 1)
    assert sum(question.share.epsilon for question in plan.questions if question.level == 0) == Fraction(4, 5)


def test_a_total_that_no_part_gives_is_asked():
    partial = Workload(SCHEMA, [Cells(["sex"], [0, 1], 1)])
    assert make(Level("STATE", partial)).levels[0].total == Fraction(1, 2)
    assert total_variance(make(Level("STATE", partial, 0)).questions) == np.inf


def test_every_row_is_in_the_one_cell_of_the_total():
    schema = Schema([Column("G", "group"), Column("x", "categorical", values=("a", "b"), missing=True)])
    part = total_part(schema, Level((), [], total=1))
    assert (part.columns, part.n_cells, part.covers, part.labels(schema)) == (("x",), 1, True, [TOTAL])
    assert part.cells(schema, {"x": np.array([0, 1, 2], np.uint8)}).tolist() == [0, 0, 0]


def test_levels_nest():
    plan = make(Level((), marginals("age")), Level("STATE", marginals("age")), Level(["PUMA"], marginals("age")))
    assert [level.by for level in plan.levels] == [(), ("STATE",), ("STATE", "PUMA")]
    assert [level.name for level in plan.levels] == ["all", "STATE", "STATE+PUMA"]
    assert [each.values for each in plan.groupings] == [((),), ((17,), (39,)), ((17, 1), (17, 2), (39, 1))]
    # said in full, or once more, it is the same plan
    for by in (["STATE", "PUMA"], ["PUMA", "STATE"]):
        assert make(Level([], marginals("age")), Level("STATE", marginals("age")), Level(by, marginals("age"))) == plan


def test_everybody_is_one_group():
    for asked in (marginals("age"), Ask(marginals("age")), [Ask(marginals("age"))]):
        plan = make(Level((), asked), groups=None)
        assert (len(plan.groups), plan.groupings[0].labels()) == (1, ["all"])
        assert plan == make(Level((), marginals("age")), groups=None)


def differing():
    """Plans that differ in an order, a kind or a type, which no change of one value in a file does."""
    columns = [Column("AGE", "numeric", edges=(18, 65), missing=True), Column("SEX", "categorical", values=("m", "f"))]

    def plan(columns=columns, budget=ONE, unit=PERSON, groups=PLACES, by=("STATE", "PUMA"), noise=None, order=1):
        schema = Schema(columns)
        parts = [Marginal.of(schema, ["AGE", "SEX"][::order]), Predicate(parse("AGE >= 65", schema))]
        levels = [Level(by[0], Workload(schema, parts[::order]), 1), Level(by[1], Workload(schema, parts[1:]), 0)]
        return Plan("survey", schema, budget, unit, levels, groups, noise=noise)

    yield plan()
    yield from (plan(budget=budget) for budget in (Budget.zcdp(1), Budget.approx(1, "1e-9")))
    yield from (plan(budget=budget, noise="laplace") for budget in (Budget.zcdp(1), Budget.approx(1, "1e-9")))
    yield from (plan(unit=unit) for unit in (Unit(2, "ID"), Unit(2), Unit(2, "ID", 1, "replace")))
    yield plan(groups={"STATE": [17, 17, 39], "PUMA": ["1", "2", "1"]})
    yield plan(groups={"STATE": [39, 17, 17], "PUMA": [1, 1, 2]})
    yield from (plan(by=by) for by in ((["PUMA"], ["STATE"]), ([], ["STATE", "PUMA"])))
    yield plan(order=-1)
    yield plan(columns[::-1])
    yield plan([columns[0], replace(columns[1], values=("f", "m"))])
    yield plan([replace(columns[0], unknown="missing"), columns[1]])


def test_the_hash_tells_what_is_measured():
    plans = list(differing())
    assert [plan.hash for plan in plans] == [plan.hash for plan in differing()]
    assert len({plan.hash for plan in plans}) == len(set(plans)) == len(plans)


def test_describe_says_what_is_asked_of_whom_at_which_price(uneven):
    pure = make(uneven[0], replace(uneven[1], total=Fraction(1)), unit=Unit(2))
    assert pure.describe().splitlines() == [
        "3 groups, 2 levels, epsilon = 1 (pure differential privacy)",
        "STATE (2 groups)",
        "  number of rows: epsilon = 1/11, Laplace noise of scale 22",
        "  2 one-way tables (age, sex), 12 counts in each of 2 groups: epsilon = 1/11, Laplace noise of scale 44",
        "  1 one-way table (town), 5 counts in each of 2 groups: epsilon = 3/11, Laplace noise of scale 7.33333",
        "STATE+PUMA (3 groups)",
        "  number of rows: epsilon = 1/11, Laplace noise of scale 22",
        "  1 two-way table (age x sex), 20 counts in each of 3 groups: epsilon = 5/11, Laplace noise of scale 4.4",
    ]
    everybody = make(Level((), marginals(("age", "town", "sex", "size")), 0), budget=Budget.zcdp("1/8"), groups=None)
    assert everybody.describe().splitlines() == [
        "1 group, 1 level, rho = 0.125 (zero-concentrated differential privacy)",
        "all (1 group)",
        "  1 table (age x town x sex x size), 400 counts: rho = 0.125, Gaussian noise of scale 2",
    ]
    approx = make(Level((), marginals("age"), 0), budget=Budget.approx(1, "1e-9"), groups=None).describe().splitlines()
    assert approx[0] == "1 group, 1 level, epsilon = 1 and delta = 1e-9 (approximate differential privacy)"
    assert approx[2].startswith("  1 one-way table (age), 10 counts: rho = about 0.0")
    assert repr(everybody) == "Plan('survey', 1 groups, 1 levels, Budget.zcdp('1/8'))"


FOREIGN = Schema.from_mbi({"age": 11})
GROUPS_ONLY = Schema([Column("G", "group", values=(1, 2))])
WIDE = Schema.from_mbi(dict.fromkeys("abcd", 2**10))
THREE_WIDE = Workload.marginals(WIDE, [tuple("abc"), tuple("abd"), tuple("acd")])
AGES = Level((), marginals("age"))
MINUS = "0 or more"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda w=w: Ask(w), "at least one part") for w in (None, "age", [marginals("age")], Workload(SCHEMA, []))),
        *((lambda share=share: Ask(marginals("age"), share), MINUS) for share in (-1, "-1/2")),
        *((lambda s=s: Ask(marginals("age"), s), "the share of an Ask is") for s in (None, "much", True, float("nan"))),
        *((lambda asks=asks: Level("STATE", asks), "needs Asks") for asks in ([marginals("age")], None, "age", [None])),
        *((lambda by=by: Level(by, marginals("age")), "the names of columns") for by in (5, None, [5], {"STATE"})),
        (lambda: Level("STATE", marginals("age"), total=-1), "the share of the totals is -1"),
        *((lambda level=level: make(level), "asks no question") for level in (Level("STATE"), Level("STATE", [], 0))),
        *((lambda name=name: make(AGES, dataset=name), "the name of a data set") for name in ("", None)),
        (lambda: make(AGES, unit=5), "unit is of type int; give a Unit"),
        *((lambda zero=zero: make(AGES, budget=zero), "is zero") for zero in (Budget.pure(0), Budget.zcdp(0))),
        (lambda: make(Level((), marginals("age"), 0), budget=Budget.approx(1, 0)), "delta is 0"),
        (lambda: make(Level((), marginals("age"), 0), budget=Budget.pure("1e-400")), "use a larger budget"),
        (lambda: make(AGES, noise="gaussian"), "Gaussian noise keeps no pure budget"),
        (lambda: make(), "a list of at least one Level"),
        (lambda: Plan("d", SCHEMA, ONE, Unit(), AGES, PLACES), "a list of at least one Level"),
        (lambda: make(Level((), Ask(marginals("age"), 0), 1)), "the share 0"),
        (lambda: make(Level("STAT", marginals("age"))), "did you mean 'STATE'"),
        (lambda: make(Level("STATE", marginals("age")), groups=None), "groups and levels go together"),
        (lambda: make(Level("STATE", marginals("age")), AGES), "level all adds no new column"),
        (lambda: make(AGES, schema=FOREIGN), "a schema other than the plan's"),
        (lambda: make(AGES, schema={"age": 10}), "needs a Schema"),
        (lambda: make(Level((), THREE_WIDE, 0), schema=WIDE), "more than fit in memory"),
        (lambda: make(Level((), Workload.marginals(GROUPS_ONLY, ["G"])), schema=GROUPS_ONLY), "not a group column"),
        (lambda: make(AGES, groups=5), "not a table"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(PradeError, match=message):
        call()


def test_a_name_that_no_file_can_hold_is_noticed_by_the_hash_which_is_needed_before_anything_is_spent():
    unit = Unit(1, person_id="\ud800")
    with pytest.raises(PradeError, match=r"half a character \('\\ud800'\)"):
        make(Level((), marginals("age")), unit=unit).hash


def test_more_than_the_precision_makes_a_plan_harmful():
    assert Expected(0.111, 0.01, 0.1).harmful
    assert not Expected(0.109, 0.01, 0.1).harmful


UNEVEN = Schema.from_mbi({"a": 2, "b": 20, "c": 2, "d": 5})


def test_shares_add_up_exactly_and_every_table_is_asked_once():
    workload = Workload.all_marginals(UNEVEN, 1) + Workload.marginals(UNEVEN, [("a", "b")])
    asks = shared_asks(workload, share="3/7")
    assert sum(ask.share for ask in asks) == Fraction(3, 7)
    assert [part for ask in asks for part in ask.workload] == sorted(workload, key=lambda part: part.n_cells)
    assert [len(ask.workload) for ask in asks] == [2, 1, 1, 1]
