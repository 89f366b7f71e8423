"""What the page says about a release: headline and tiles, questions and noise, provenance, and the methodology."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prade.core.errors import many
from prade.data.declare.schema import PublishedTotals, Rule
from prade.data.read.files import copies_in_words
from prade.estimating.levels.estimates import Estimates
from prade.planning.invariants import not_protected
from prade.planning.plan import Plan
from prade.planning.questions import TOTAL, Question
from prade.planning.settings import Expected, Settings
from prade.privacy.noise_law import NoiseLaw
from prade.privacy.protection import meaning
from prade.release.release import LABELS, Release, read_account, read_manifest

KINDS = (TOTAL, "one-way tables", "two-way tables")  # of questions, in the legend of page/report_budget.js
LIBRARIES = ("prade", "numpy", "scipy", "numba", "pyarrow")
MEASURE = "Measure: "  # the advice that the tiles give in numbers
NOT_REHEARSED = (
    "This plan was not rehearsed on public rows: how much nearer to the truth than the public table its result is was "
    "not foretold. The errors on this page come from the model of the intervals alone."
)


def headline_of(release: Release, rows: int) -> dict[str, Any]:
    """What was made, in one sentence and as values."""
    plan = release.plan
    groups, by = len(plan.groupings[-1]), plan.levels[-1].by
    whom = f" for {many(groups, by[-1])}" if by else ""
    sentence = f"{many(rows, 'synthetic row')}{whom}, {short(plan.budget)}"
    return {"dataset": plan.dataset, "rows": rows, "groups": groups, "sentence": sentence}


def tiles_of(release: Release, rows: int) -> list[dict[str, str]]:
    """Rows and groups, the expected error, the unit of protection, and what is left of the budget."""
    plan = release.plan
    unit, exposed = plan.unit, not_protected(plan.invariants) is not None
    levels = [many(len(grouping), grouping.by[-1]) for grouping in plan.groupings if grouping.by]
    lines = [line.strip().split(maxsplit=1) for line in read_account(release.path)]
    account = {line[0]: short(line[1]) for line in lines if len(line) == 2}
    return [
        _tile(
            "Rows and groups" if levels else "Rows and columns",
            many(rows, "synthetic row"),
            f"{', '.join([*levels, many(len(plan.schema.coded), 'column')])}.",
        ),
        expected_tile(plan.expected),
        _tile(
            "Unit of protection",
            "one person" if unit.enforced else f"one person, if nobody has more than {many(unit.max_rows, 'row')}",
            plan.promise(),
            "bad" if exposed else "good" if unit.enforced else "plain",
        ),
        _tile(
            "Budget left",
            account.get("remaining", "not recorded"),
            f"Of {account.get('cap', 'an unknown cap')}, after this release cost {short(plan.budget)}. As of "
            f"{made_on(release)}; the ledger knows what is left today.",
        ),
    ]


def expected_tile(expected: Expected | None) -> dict[str, str]:
    """How much nearer to the truth than the public table the release is expected to be."""
    title = "Expected error against the public table alone"
    if expected is None:
        return _tile(title, "not rehearsed", "The plan was made without a rehearsal on public rows.")
    ratio = expected.error / expected.prior if expected.prior else 1.0
    words = f"{abs(1 - ratio):.0%} {'smaller' if ratio <= 1 else 'larger'}"
    spread = f" ± {expected.error_spread:.3f}" if expected.error_spread else ""
    note = (
        f"{expected.error:.3f}{spread}, public table alone {expected.prior:.3f}: mean distance of two-way tables from "
        "the truth (0 to 2), in rehearsals on public rows."
    )
    clear = expected.prior - expected.error > expected.spread
    return _tile(title, words.replace("%", " %"), note, "bad" if expected.harmful else "good" if clear else "plain")


def caveats_of(plan: Plan) -> list[str]:
    """What the rehearsal warned of, sentence by sentence; without a rehearsal, that there was none."""
    if plan.expected is None:
        return [NOT_REHEARSED]
    sentences = re.split(r"(?<=[.!?]) +(?=[A-Z])", plan.expected.advice.strip())
    return [each for each in sentences if each and not each.startswith(MEASURE)]


def made_on(release: Release) -> str:
    """The day of the measurement."""
    return read_manifest(release.path).made[:10]


def short(budget: object) -> str:
    """A budget without the name of its kind.

    >>> short("epsilon = 1 (pure differential privacy)")
    'epsilon = 1'
    """
    return str(budget).partition(" (")[0]


def _tile(title: str, value: str, note: str, tone: str = "plain") -> dict[str, str]:
    return {"title": title, "value": value, "note": note, "tone": tone}


def promise_of(release: Release, copied: float | None = None) -> dict[str, Any]:
    """The promise and the ledger's account of it; `copied` is the share of synthetic rows that are public rows."""
    plan = release.plan
    return {
        "meaning": meaning(plan.budget, plan.unit.neighbours),
        "promise": plan.promise(),
        "account": read_account(release.path),
        "targets": [] if plan.expected is None else [asdict(each) for each in plan.expected.targets],
        "copies": copies_in_words(copied),
    }


def budget_of(plan: Plan) -> list[dict[str, Any]]:
    """For each level its questions, their cost and their noise."""
    return [
        {
            "name": level.name,
            "groups": len(plan.groupings[number]),
            "asks": [_ask(plan, question) for question in plan.questions if question.level == number],
        }
        for number, level in enumerate(plan.levels)
    ]


def once_in_twenty(law: NoiseLaw, scale: Fraction) -> int:
    """The smallest whole t such that a count is off by more than t rows at most once in 20 times.

    >>> from prade.privacy.noise_law import GAUSSIAN, LAPLACE
    >>> once_in_twenty(LAPLACE, Fraction(10)), once_in_twenty(GAUSSIAN, Fraction(10))
    (30, 20)
    """
    return math.ceil(float(scale) * law.exceeded(0.05))


def _ask(plan: Plan, question: Question) -> dict[str, Any]:
    off = once_in_twenty(question.law, question.scale)
    start = "The number of rows" if question.is_total else f"Each count in {asked(question)}"
    kind = TOTAL if question.is_total else f"{question.noun}s"
    return {
        "kind": kind if kind in KINDS else "other questions",
        "what": asked(question),
        "parts": question.names(),
        "cells": question.cells,
        "share": float(question.share.amounts[0] / plan.noise_budget.amounts[0]),
        "price": short(question.share),
        "law": question.law.capitalize(),
        "scale": f"{float(question.scale):,.4g}",
        "words": f"{start} is off by more than {many(off, 'row')} at most once in 20 times.",
    }


def asked(question: Question) -> str:
    """The subject of a question in a few words: "the number of rows", "9 one-way tables", "the table of AGE x SEX"."""
    if question.is_total:
        return f"the {TOTAL}"
    if question.noun == "part":
        return f"{many(len(question.parts), 'set')} of queries"
    one = f"the table of {question.names()[0]}"
    return one if len(question.parts) == 1 else many(len(question.parts), question.noun)


def provenance_of(estimates: Estimates, seed: int | None, rows: int) -> dict[str, Any]:
    """Everything that is needed to make the release's estimates and rows again, and to cite them."""
    release, plan = estimates.release, estimates.plan
    manifest = read_manifest(release.path)
    claim, who = manifest.claim, manifest.claim.origin
    return {
        "versions": {
            "measured": manifest.versions,
            "page": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        },
        "public": public_files(plan),
        "publicRows": len(estimates.public.observed),
        "plan": plan.hash,
        "labels": None if release.labels is None else {"file": LABELS, "hash": release.labels},
        "seed": seed,
        "ledger": {"entry": who.entry, "ledger": who.ledger, "hash": who.hash, "measurements": claim.measurements_hash},
        "cite": f"{plan.dataset}: synthetic rows with differential privacy ({made_on(release)}). "
        f"{many(rows, 'row')}, {short(plan.budget)}, plan {plan.hash[:16]}, made with prade {version('prade')}.",
    }


def public_files(plan: Plan) -> list[dict[str, str | None]]:
    """The public files by name, without their folders, with the hashes that the plan recorded."""
    if plan.public is None:
        return []
    hashes = plan.public.sha256 or (None,) * len(plan.public.files)
    return [{"file": Path(file).name, "hash": digest} for file, digest in zip(plan.public.files, hashes, strict=True)]


def methodology_of(estimates: Estimates, rows: int, seed: int | None) -> str:
    """The paragraph that a publication may take."""
    plan, unit = estimates.plan, estimates.plan.unit
    grouped = bool(plan.levels[-1].by)
    change = "adding or removing" if unit.neighbours == "add-remove" else "exchanging"
    most = many(unit.max_rows, "row")
    within = "" if unit.per_group is None else f", and at most {unit.per_group} of them in any one group"
    bound = f", of which at most {most} were counted{within}, chosen at random"
    where = f" in {many(len(plan.public.files), 'file')}" if plan.public else ""
    source = "chance differences between tables of this size"
    limit = "by far more than chance, where it was not measured"
    if grouped:
        source = "differences between groups of the public table"
        limit = "in a way in which public groups do not differ from each other"
    rules = [each.rule for each in plan.invariants if isinstance(each, Rule)]
    published = published_levels(plan)
    sentences = [
        f"The {many(rows, 'synthetic row')} of {plan.dataset} protect the people in the private table by differential "
        f"privacy with a budget of {plan.budget}.",
        f"Neighbouring tables differ by {change} all rows of one person"
        f"{bound if unit.enforced else f'; that nobody has more than {most} was assumed, not enforced'}.",
        _measured(plan),
        f"Estimates start from a public table of {many(len(estimates.public.observed), 'row')}{where}, and give "
        "weights to these rows only.",
        _estimated(estimates.settings, len(plan.levels), grouped),
        f"Synthetic rows were drawn systematically from the weighted public rows"
        f"{'' if seed is None else f' (seed {seed})'}, and exchanged to bring their one- and two-way tables nearer to "
        "the estimates; their values are those of public rows.",
        f"All rows obey: {'; '.join(rules)}." if rules else None,
        f"Numbers of rows {published} were set to published ones." if published else None,
        not_protected(plan.invariants),
        f"The 95 % intervals come from a model of three sources of error: the noise, {source}, and the distance of the "
        "release's own answers from the estimates. They do not cover a private table that differs from the public one "
        f"{limit}.",
    ]
    return " ".join(filter(None, sentences))


def _measured(plan: Plan) -> str:
    """What was counted at each level, and the noise; and what else was read from the private table."""
    counted = []
    for question in plan.questions:
        grouping = plan.groupings[question.level]
        groups = f"each of {many(len(grouping), grouping.by[-1])}" if grouping.by else "the whole table"
        cells = "" if question.is_total else f" ({many(question.cells, 'count')})"
        counted.append(
            f"{asked(question)}{cells} of {groups}, with discrete {question.law.words} of scale "
            f"{float(question.scale):,.4g} in every count"
        )
    person, exact = plan.unit.person_id, [str(each) for each in plan.invariants if each.source == "private"]
    besides = [] if person is None else [f"the column {person!r}, to limit the rows of each person"]
    besides += [f"{'; '.join(exact)}, without noise"] if exact else []
    last = f"Besides, only this was read from the private table: {'; and '.join(besides)}."
    return f"Measured were {'; '.join(counted)}. {last if besides else 'Nothing else was read from the private table.'}"


def _estimated(settings: Settings, levels: int, grouped: bool) -> str:
    """How answers and public rows are brought together."""
    weights = "Each group's weights" if grouped else "Weights"
    down = " level by level, each group starting from its parent's estimate," if levels > 1 else ""
    if settings.estimator != "map":
        name = {"two-stage": "the two-stage estimator", "ide": "iterative density estimation"}[settings.estimator]
        return f"{weights} were estimated{down} from the raw answers, by {name}."
    between = "public groups" if grouped else "public rows"
    answers = f"answers (smoothed, by how cells vary together between {between})" if settings.smooth else "raw answers"
    return (
        f"{weights} were estimated{down} as the least change of the public rows' weights, by relative "
        f"entropy, that fits the {answers} as closely as their noise warrants."
    )


def published_levels(plan: Plan) -> str:
    """The levels whose numbers of rows are published, as part of a sentence; empty if there are none."""
    return " and ".join(place_of(each.level) for each in plan.invariants if isinstance(each, PublishedTotals))


def place_of(by: Sequence[str], whole: str = "of the whole table") -> str:
    """The groups of a level as part of a sentence."""
    return f"by {by[-1]}" if by else whole
