"""The privacy promise, the questions and their noise, in words for readers who do not know what a noise scale is.

A count with Laplace noise of scale b is off by more than t with probability exp(-t / b), so by more than b log 20 in
one case out of 20. With Gaussian noise of standard deviation sigma, it is off by more than 1.96 sigma in one case out
of 20.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from prade.core.errors import many
from prade.data.read.files import copies_in_words
from prade.planning.questions import TOTAL
from prade.privacy.meaning import meaning
from prade.release.release import read_account, read_manifest

if TYPE_CHECKING:
    from prade.planning.plan import Plan
    from prade.planning.questions import Question
    from prade.privacy.budget import Law
    from prade.release.release import Release

NORMAL_95 = 1.959964  # a normal variable is further from its mean than this many standard deviations once in 20 times


def promise_of(release: Release, copied: float | None = None) -> dict[str, Any]:
    """Data set, date, promise, cost, and the questions of each level; `copied` is the share of copied public rows."""
    plan = release.plan
    return {
        "dataset": plan.dataset,
        "made": str(read_manifest(release.path)["made"])[:10],
        "plan": plan.hash,
        "budget": str(plan.budget),
        "meaning": meaning(plan.budget, plan.unit.neighbours),
        "promise": plan.promise(),
        "account": read_account(release.path),
        "groups": len(plan.groups),
        "expected": None if plan.expected is None else str(plan.expected),
        "targets": [] if plan.expected is None else [asdict(each) for each in plan.expected.targets],
        "copies": copies_in_words(copied),
        "levels": [_level(plan, level) for level in range(len(plan.levels))],
    }


def once_in_twenty(law: Law, scale: Fraction) -> int:
    """The smallest whole t such that a count is off by more than t rows at most once in 20 times.

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
    start = "The number of rows" if question.is_total else f"Each count in {asked(question)}"
    return {
        "kind": _kind(question),
        "what": asked(question),
        "parts": question.names(),
        "cells": question.cells,
        "share": float(question.share.amounts[0] / plan.noise_budget.amounts[0]),
        "price": str(question.share).partition(" (")[0],
        "law": question.law.capitalize(),
        "scale": f"{float(question.scale):,.4g}",
        "words": f"{start} is off by more than {many(off, 'row')} at most once in 20 times.",
    }


def _kind(question: Question) -> str:
    """Which of the kinds that the page's legend distinguishes (page/budget.js)."""
    if question.is_total:
        return TOTAL
    return f"{question.noun}s" if question.noun in ("one-way table", "two-way table") else "other questions"


def asked(question: Question) -> str:
    """The subject of a question in a few words: "the number of rows", "9 one-way tables", "the table of AGE x SEX"."""
    if question.is_total:
        return f"the {TOTAL}"
    if question.noun == "part":
        return f"{many(len(question.parts), 'set')} of queries"
    return (
        many(len(question.parts), question.noun) if len(question.parts) > 1 else f"the table of {question.names()[0]}"
    )
