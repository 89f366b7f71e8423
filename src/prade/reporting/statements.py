"""What the page says about a release: headline and tiles, questions and noise, provenance, and the methodology."""

from __future__ import annotations

import itertools
import math
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import many
from prade.data.declare.schema import PublishedTotals, Rule, Schema
from prade.data.read.files import copies_in_words
from prade.estimating.levels.added_rows import FALSE_ALARM
from prade.estimating.levels.estimates import Estimates
from prade.planning.invariants import not_protected
from prade.planning.plan import Plan, columns_left_out
from prade.planning.questions import TOTAL, Question
from prade.planning.settings import Expected, Settings
from prade.privacy.noise_law import NoiseLaw
from prade.privacy.protection import meaning
from prade.queries.parts import Marginal, Part
from prade.release.release import LABELS, Release, read_account, read_manifest
from prade.reporting.facts import COMMON, Facts, cells_of

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


# ---------------------------------------------------------------------- what to use a release for
# Each rule looks at one thing that the plan, the estimates or their intervals show.


NARROW = 0.2  # of a count: an interval that reaches further to either side is called wide
MOSTLY = 0.5  # copies of public rows among the synthetic ones that call for a sentence
NAMED = 2  # columns, pairs or values that a sentence names


@dataclass(frozen=True)
class Situation:
    """What the rules look at."""

    plan: Plan
    totals: Floats  # rows of the last level's groups
    labels: Sequence[str]  # their names
    relative: float | None  # `Precision.relative` at the last level
    relative_whole: float | None  # the same for the whole table
    relative_columns: Sequence[float | None]  # the same for each column at the last level
    unseen: Sequence[str] = ()  # values that no public row has, but that the noisy answers show clearly
    copied: float | None = None  # share of synthetic rows that have all values of one public row
    added: int = 0  # rows of no public person that the estimates start from as well
    drifted: Sequence[str] = ()  # columns that the public table is wrong about, and that were not measured below

    @property
    def harmful(self) -> bool:
        """Whether rehearsals expected the release to be worse than the public table."""
        return self.plan.expected is not None and self.plan.expected.harmful

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns that define the groups of the last level; none for one table."""
        return self.plan.levels[-1].by

    def tables(self, *, narrow: bool) -> str | None:
        """The one-way tables that were measured at the last level, with narrow intervals or without, as a subject."""
        last, measured = self.plan.levels[-1].name, measured_columns(self.plan)
        columns = [
            name
            for (name, levels), reach in zip(measured.items(), self.relative_columns, strict=True)
            if last in levels and _narrow(reach) == narrow
        ]
        if not columns:
            return None
        which = f"{len(columns):,} of {many(len(measured), 'column')} ({named(columns)})"
        if len(columns) == len(measured):
            which = f"all {many(len(columns), 'column')}" if len(columns) > 1 else columns[0]
        where = f" {place_of(self.groups)}" if self.groups else ""
        return f"One-way tables{where} of {which}: they were measured there"


def use_and_care(situation: Situation) -> tuple[list[str], list[str]]:
    """The sentences of all rules that apply: what to use the release for, and what to be careful with."""
    return list(_uses(situation)), list(_cares(situation))


def _uses(now: Situation) -> Iterator[str]:
    plan = now.plan
    if not now.harmful:
        if tables := now.tables(narrow=True):
            yield f"{tables}."
        if now.groups and now.relative is not None and _narrow(now.relative):
            yield f"Counts of common values {place_of(now.groups)}: {_reach(now.relative)}"
        if now.relative_whole is not None and _narrow(now.relative_whole):
            whom = "for all groups together" if now.groups else "of common values"
            yield f"Counts {whom}: {_reach(now.relative_whole)}"
        if pairs := _pairs(plan):
            number = f"{many(len(pairs), 'pair')} of columns that {_were(pairs)} measured"
            yield f"How two columns go together, for {number}: {named(pairs)}."
    if rules := [each.rule for each in plan.invariants if isinstance(each, Rule)]:
        yield f"Rows that make sense: every synthetic row obeys {'; '.join(rules)}."
    if published := published_levels(plan):
        yield f"Numbers of rows {published}: they are the published ones, exactly."


def _cares(now: Situation) -> Iterator[str]:
    plan, group, where = now.plan, now.groups[-1] if now.groups else "table", place_of(now.groups)
    columns = plan.schema.coded
    if now.harmful:
        yield "Everything: rehearsals expected the public table alone to be nearer to the truth than this release."
    if left_out := columns_left_out(plan):
        yield (
            f"{len(left_out):,} of {many(len(columns), 'column')}, {named(left_out)}, {_were(left_out)} not measured: "
            f"their shape{f' within a {group}' if now.groups else ''} is inferred from the public table and the other "
            "columns."
        )
    above: dict[str, list[str]] = {}
    for name, levels in measured_columns(plan).items():
        if levels and plan.levels[-1].name not in levels:
            above.setdefault(levels[-1], []).append(name)
    if above:
        by = {level.name: place_of(level.by, whole="in the whole table") for level in plan.levels}
        which = " and ".join(
            f"{many(len(names), 'column')}, {named(names)}, {_were(names)} measured {by[level]}"
            for level, names in above.items()
        )
        yield f"{which}, not {where}: how a {group} differs from others is inferred."
    if now.drifted:
        yield (
            f"{many(len(now.drifted), 'column')}, {named(now.drifted)}: the public table is wrong where "
            f"{'it was' if len(now.drifted) == 1 else 'they were'} measured, and a {group} may differ from it in ways "
            "that nothing has counted."
        )
    questions = [each for each in plan.questions if each.level == len(plan.levels) - 1 and not each.is_total]
    noise = max((once_in_twenty(each.law, each.scale) for each in questions), default=0)
    if now.groups and (below := int((now.totals < noise).sum())):
        smallest = int(np.argmin(now.totals))
        yield (
            f"The smallest groups: {below:,} of {many(len(now.totals), group)} {'has' if below == 1 else 'have'} fewer "
            f"rows than the noise in one count may add ({noise:,}); the smallest is {now.labels[smallest]}, with about "
            f"{many(round(float(now.totals[smallest])), 'row')}."
        )
    if tables := now.tables(narrow=False):
        yield (
            f"{tables}, but half of the 95 % intervals of a column's common values reach more than "
            f"{100 * NARROW:.0f} % of the count to either side, or no value is common enough to tell."
        )
    if now.relative is not None and not _narrow(now.relative):
        advice = "Look at the interval, and add up groups where you can." if now.groups else "Look at the interval."
        yield f"Single counts {where}: {_reach(now.relative)} {advice}"
    every, pairs = len(columns) * (len(columns) - 1) // 2, len(_pairs(plan))
    if every > pairs:
        which = f"{every - pairs:,} of {every:,} pairs were not measured" if pairs else "no pair was measured"
        yield (
            f"How two columns go together: {which}, so dependences are those of the public table unless the counts of "
            "single columns contradict them."
        )
    yield _outside_support(now)
    if exposed := not_protected(plan.invariants):
        yield exposed
    if now.copied is not None and now.copied >= MOSTLY:
        yield f"Single rows: {copies_in_words(now.copied)} A row tells about no person of the private table."


def _outside_support(now: Situation) -> str:
    if now.unseen:
        rows = (
            "so rows that have them are put together from values of different public rows: what else is true of such "
            "people is a guess."
            if now.added
            else "so no synthetic row has them either."
        )
        return (
            f"{named(now.unseen)}: private rows have such values, by the noisy answers (wrong at most once in "
            f"{1 / FALSE_ALARM:.0f} releases), but no public row has them, {rows}"
        )
    if now.added:
        return (
            "Rare combinations: those that no public row has come from rows that are put together from values of "
            "different public rows, so that their number is a guess where it was not measured."
        )
    return "Rare combinations: one that no public row has does not occur among the synthetic rows, whatever is true."


def measured_columns(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The names of the levels at which each column was measured, alone or in a table with others."""
    levels: dict[str, dict[str, None]] = {name: {} for name in plan.schema.coded}
    for question in plan.questions:
        for name in () if question.is_total else {name for part in question.parts for name in part.columns}:
            levels[name][plan.levels[question.level].name] = None
    return {name: tuple(each) for name, each in levels.items()}


def named(names: Sequence[str]) -> str:
    """The first names of a list, as part of a sentence.

    >>> named(["AGE"]), named(["AGE", "SEX"]), named(["AGE", "SEX", "RACE"])
    ('AGE', 'AGE and SEX', 'AGE and SEX among them')
    """
    return " and ".join(names[:NAMED]) + (" among them" if len(names) > NAMED else "")


def _pairs(plan: Plan) -> list[str]:
    """The pairs of columns that were measured, by themselves or in a larger table, each once."""
    order = plan.schema.coded
    tables = [part for question in plan.questions for part in question.parts if isinstance(part, Marginal)]
    sets = (sorted(part.columns, key=order.index) for part in tables)
    pairs = dict.fromkeys(pair for columns in sets for pair in itertools.combinations(columns, 2))
    return [Marginal.of(plan.schema, pair).name for pair in pairs]


def _narrow(reach: float | None) -> bool:
    return reach is not None and reach <= NARROW


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _reach(relative: float) -> str:
    return (
        f"half of the 95 % intervals reach at most {100 * relative:.0f} % of the count to either side (values that at "
        f"least {100 * COMMON:.0f} % of the rows have)."
    )


def unseen_values(estimates: Estimates, facts: Facts) -> list[str]:
    """Measured values that no public row has, but that the answers about the whole table show beyond their noise."""
    answers, plan = facts.views[0].answers, estimates.plan
    absent = []
    for part in answers.parts:
        cells, size = cells_of(part, estimates)
        own = cells[: len(cells) - estimates.public.added]  # an added row is of no public person
        absent.append(np.bincount(own, minlength=size)[:size] == 0)
    looked_at = sum(int(each.sum()) for each in absent)
    texts = []
    for number, part in enumerate(answers.parts):
        if absent[number].any():
            largest = plan.law.bound(float(answers.variance[0, number]), FALSE_ALARM / looked_at)
            shown = np.flatnonzero(absent[number] & (answers.counts[number][0] > largest))
            every = cell_texts(part, plan.schema) if len(shown) else []
            texts += [every[cell] for cell in shown]
    return texts


def cell_texts(part: Part, schema: Schema) -> list[str]:
    """One text for readers per cell of a part: titles and labels instead of names and codes, where there are any."""
    if not isinstance(part, Marginal):
        return part.labels(schema)
    columns = [schema[name] for name in part.columns]
    each = [[f"{column.title or column.name} {text}" for text in column.display_texts()] for column in columns]
    return [", ".join(combination) for combination in itertools.product(*each)]
