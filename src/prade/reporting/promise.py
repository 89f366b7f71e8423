"""What was released under which promise, in words for people who have never heard of noise scales.

a count with Laplace noise of scale b is off by more than t with probability exp(-t / b): t = b log 20 once in 20
with Gaussian noise of standard deviation sigma that is t = 1.96 sigma
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from prade.core.numbers import readable
from prade.queries.parts import Marginal, Part
from prade.release.release import read_account, read_manifest

if TYPE_CHECKING:
    from prade.planning.plan import Plan
    from prade.planning.questions import Question
    from prade.privacy.budget import Budget, Law
    from prade.release.release import Release

NORMAL_95 = 1.959964  # a normal variable is further from its mean than this many deviations once in 20
# Of 100 cells those whose truth lay within the 95 % interval, in benchmarks on public tables: fewest and most.
COVERAGE = {"group": (88, 99), "sum": (80, 96), "sum_from_last_year": (50, 67)}
LARGE_EPSILON = 700  # e to a larger power is beyond floats
KINDS = ("number of rows", "tables of one column", "tables of two columns", "other questions")


def promise_of(release: Release) -> dict[str, Any]:
    """The head of the page: data set, date, promise, price, and what was asked at each level."""
    plan = release.plan
    return {
        "dataset": plan.dataset,
        "made": str(read_manifest(release.path)["made"])[:10],
        "plan": plan.hash,
        "budget": str(plan.budget),
        "meaning": meaning(plan.budget),
        "promise": plan.unit.promise(),
        "account": read_account(release.path),
        "groups": len(plan.groups),
        "expected": None if plan.expected is None else str(plan.expected),
        "coverage": COVERAGE,
        "levels": [_level(plan, level) for level in range(len(plan.levels))],
    }


def meaning(budget: Budget) -> str:
    """A budget as a sentence.

    >>> from prade import Budget
    >>> print(meaning(Budget.pure(1)))
    Whatever anybody reads out of this release would have been at most 2.72 times as likely, and at least 1/2.72 times \
as likely, without any one person's rows.
    """
    if budget.kind == "zcdp":
        return (
            f"Without any one person's rows, whatever anybody reads out of this release would have been about as "
            f"likely: the two chances differ as little as zero-concentrated differential privacy with rho = "
            f"{readable(budget.rho)} demands."
        )
    epsilon = float(budget.epsilon)
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < LARGE_EPSILON else f"10^{math.ceil(epsilon / math.log(10)):,}"
    sentence = (
        f"Whatever anybody reads out of this release would have been at most {factor} times as likely, and at least "
        f"1/{factor} times as likely, without any one person's rows"
    )
    return f"{sentence}, but for a chance of {float(budget.delta):.2g}." if budget.delta else f"{sentence}."


def once_in_twenty(law: Law, scale: Fraction) -> int:
    """The whole number of rows by which a count is off by more than, at most once in 20 times.

    >>> once_in_twenty("laplace", Fraction(10)), once_in_twenty("gaussian", Fraction(10))
    (30, 20)
    """
    return math.ceil(float(scale) * (math.log(20) if law == "laplace" else NORMAL_95))


def _level(plan: Plan, level: int) -> dict[str, Any]:
    return {
        "name": plan.levels[level].name,
        "groups": len(plan.groupings[level]),
        "asks": [_ask(plan, question) for question in plan.questions if question.level == level],
    }


def _ask(plan: Plan, question: Question) -> dict[str, Any]:
    off = once_in_twenty(question.law, question.scale)
    start = "The number of rows" if question.is_total else f"Each count of {asked(question)}"
    return {
        "kind": KINDS[0] if question.is_total else _kind(question.parts),
        "what": asked(question),
        "parts": question.names(),
        "cells": sum(part.n_cells for part in question.parts),
        "share": float(question.share.amounts[0] / plan.noise_budget.amounts[0]),
        "price": str(question.share).partition(" (")[0],
        "law": question.law.capitalize(),
        "scale": f"{float(question.scale):,.4g}",
        "words": f"{start} is off by more than {off:,} {'row' if off == 1 else 'rows'} at most once in 20 times.",
    }


def _kind(parts: tuple[Part, ...]) -> str:
    widths = {len(part.columns) if isinstance(part, Marginal) else 0 for part in parts}
    return KINDS[widths.pop()] if widths in ({1}, {2}) else KINDS[3]


def asked(question: Question) -> str:
    """What a question asks about, shortly: "the number of rows", "9 tables of one column"."""
    if question.is_total:
        return "the number of rows"
    number, kind = len(question.parts), _kind(question.parts)
    if kind == KINDS[3]:
        return f"{number:,} {'set' if number == 1 else 'sets'} of questions"
    return f"the table of {question.parts[0].name}" if number == 1 else f"{number:,} {kind}"
