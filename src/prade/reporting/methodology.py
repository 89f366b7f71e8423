"""How a release was made, in plain words: a paragraph made from its plan, ready to paste into a publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.errors import many
from prade.data.invariants import Rule
from prade.planning.invariants import not_protected
from prade.planning.questions import TOTAL
from prade.reporting.promise import asked
from prade.reporting.use_and_care import published_levels

if TYPE_CHECKING:
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan
    from prade.planning.questions import Question
    from prade.planning.settings import Settings
    from prade.privacy.unit import Unit

NOISE = {"laplace": "discrete Laplace", "gaussian": "discrete Gaussian"}


def methodology_of(estimates: Estimates, rows: int, seed: int | None) -> str:
    """The whole paragraph."""
    plan, grouped = estimates.plan, bool(estimates.plan.levels[-1].by)
    sentences = [
        f"The {many(rows, 'synthetic row')} of {plan.dataset} protect the people in the private table by differential "
        f"privacy with a budget of {plan.budget}.",
        neighbours(plan.unit),
        measured(plan),
        prior(plan, len(estimates.public.observed)),
        estimation(estimates.settings, len(plan.levels), grouped=grouped),
        sampling(seed),
        *invariants(plan),
        intervals(grouped=grouped),
    ]
    return " ".join(sentences)


def neighbours(unit: Unit) -> str:
    """What one person can change, and whether that is enforced."""
    change = "adding or removing" if unit.neighbours == "add-remove" else "exchanging"
    start = f"Neighbouring tables differ by {change} all rows of one person"
    most = many(unit.max_rows, "row")
    if not unit.enforced:
        return f"{start}; that nobody has more than {most} was assumed, not enforced."
    within = "" if unit.per_group is None else f", and at most {unit.per_group} of them in any one group"
    return f"{start}, of which at most {most} were counted{within}, chosen at random."


def measured(plan: Plan) -> str:
    """What was counted at each level, and the noise."""
    said = [
        f"{_asked(question)} of {_groups(plan, question.level)}, with {NOISE[question.law]} noise of scale "
        f"{float(question.scale):,.4g} in every count"
        for question in plan.questions
    ]
    return f"Measured were {'; '.join(said)}. {read_besides(plan)}"


def read_besides(plan: Plan) -> str:
    """What was read from the private table besides the counts."""
    person, exact = plan.unit.person_id, [str(each) for each in plan.invariants if each.source == "private"]
    said = [] if person is None else [f"the column {person!r}, to limit the rows of each person"]
    said += [f"{'; '.join(exact)}, without noise"] if exact else []
    if not said:
        return "Nothing else was read from the private table."
    return f"Besides, only this was read from the private table: {'; and '.join(said)}."


def _asked(question: Question) -> str:
    return f"the {TOTAL}" if question.is_total else f"{asked(question)} ({many(question.cells, 'count')})"


def _groups(plan: Plan, level: int) -> str:
    grouping = plan.groupings[level]
    return f"each of {many(len(grouping), grouping.by[-1])}" if grouping.by else "the whole table"


def prior(plan: Plan, rows: int) -> str:
    """What the estimates start from."""
    files = plan.public and len(plan.public.files)
    where = f" in {many(files, 'file')}" if files else ""
    return f"Estimates start from a public table of {many(rows, 'row')}{where}, and give weights to these rows only."


def estimation(settings: Settings, levels: int, *, grouped: bool = True) -> str:
    """How answers and public rows are brought together."""
    weights = "Each group's weights" if grouped else "Weights"
    down = " level by level, each group starting from its parent's estimate," if levels > 1 else ""
    if settings.estimator != "map":
        name = {"two-stage": "the two-stage estimator", "ide": "iterative density estimation"}[settings.estimator]
        return f"{weights} were estimated{down} from the raw answers, by {name}."
    answers = "raw answers"
    if settings.smooth:
        between = "public groups" if grouped else "public rows"
        answers = f"answers (smoothed, by how cells vary together between {between})"
    return (
        f"{weights} were estimated{down} as the least change of the public rows' weights, by relative "
        f"entropy, that fits the {answers} as closely as their noise warrants."
    )


def sampling(seed: int | None) -> str:
    """How rows were drawn."""
    seeded = "" if seed is None else f" (seed {seed})"
    return (
        f"Synthetic rows were drawn systematically from the weighted public rows{seeded}, and exchanged to bring their "
        "one- and two-way tables nearer to the estimates; their values are those of public rows."
    )


def intervals(*, grouped: bool = True) -> str:
    """What the intervals cover, and what they do not."""
    source, limit = "chance differences between tables of this size", "far more than chance, where it was not measured"
    if grouped:
        source = "differences between groups of the public table"
        limit = "a way in which public groups do not differ from each other"
    return (
        f"The 95 % intervals come from a model of three sources of error: the noise, {source}, and the distance of the "
        "release's own answers from the estimates. They do not cover a private table that differs from the public one "
        f"{'in' if grouped else 'by'} {limit}."
    )


def invariants(plan: Plan) -> list[str]:
    """Facts that are met exactly, and which of them are not protected."""
    rules = [each.rule for each in plan.invariants if isinstance(each, Rule)]
    totals = published_levels(plan)
    said = [f"All rows obey: {'; '.join(rules)}."] if rules else []
    said += [f"Numbers of rows {totals} were set to published ones."] if totals else []
    return [*said, *filter(None, [not_protected(plan.invariants)])]
