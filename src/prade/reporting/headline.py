"""The top of the page: one sentence, four tiles, and what the rehearsal warned of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prade.core.errors import many
from prade.planning.invariants import not_protected
from prade.release.release import read_account, read_manifest

if TYPE_CHECKING:
    from prade.planning.expected import Expected
    from prade.planning.plan import Plan
    from prade.release.release import Release

MEASURE = "Measure: "  # the advice that the tiles give in numbers
NOT_REHEARSED = (
    "This plan was not rehearsed on public rows: how much nearer to the truth than the public table its result is was "
    "not foretold. The errors on this page come from the model of the intervals alone."
)


def headline_of(release: Release, rows: int) -> dict[str, Any]:
    """What was made, in one sentence and as values."""
    plan = release.plan
    groups, level = len(plan.groupings[-1]), plan.levels[-1]
    whom = f" for {many(groups, level.by[-1])}" if level.by else ""
    return {
        "dataset": plan.dataset,
        "rows": rows,
        "groups": groups,
        "level": level.name,
        "budget": str(plan.budget),
        "made": made_on(release),
        "sentence": f"{many(rows, 'synthetic row')}{whom}, {short(plan.budget)}",
    }


def tiles_of(release: Release, rows: int) -> list[dict[str, str]]:
    """Rows and groups, the expected error, the unit of protection, and what is left of the budget."""
    plan = release.plan
    levels = [many(len(grouping), grouping.by[-1]) for grouping in plan.groupings if grouping.by]
    made_of = [*levels, many(len(plan.schema.coded), "column")]
    return [
        _tile(
            "Rows and groups" if levels else "Rows and columns", many(rows, "synthetic row"), f"{', '.join(made_of)}."
        ),
        expected_tile(plan.expected),
        protection_tile(plan),
        budget_tile(release),
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


def protection_tile(plan: Plan) -> dict[str, str]:
    """Who is protected, and what that rests on."""
    unit = plan.unit
    whole = "one person" if unit.enforced else f"one person, if nobody has more than {many(unit.max_rows, 'row')}"
    exposed = not_protected(plan.invariants) is not None
    return _tile(
        "Unit of protection", whole, plan.promise(), "bad" if exposed else "good" if unit.enforced else "plain"
    )


def budget_tile(release: Release) -> dict[str, str]:
    """What was left of the budget when the release was measured, by the ledger's account in its folder."""
    account = account_of(release)
    left, cap = account.get("remaining", "not recorded"), account.get("cap", "an unknown cap")
    cost = short(release.plan.budget)
    note = f"Of {cap}, after this release cost {cost}. As of {made_on(release)}; the ledger knows what is left today."
    return _tile("Budget left", left, note)


def account_of(release: Release) -> dict[str, str]:
    """The cap, what was spent and what remained, in short, from the account in the release's folder."""
    lines = [line.strip().split(maxsplit=1) for line in read_account(release.path)]
    return {line[0]: short(line[1]) for line in lines if len(line) == 2 and line[0] in ("cap", "spent", "remaining")}


def caveats_of(plan: Plan) -> list[str]:
    """What the rehearsal warned of, sentence by sentence; without a rehearsal, that there was none."""
    if plan.expected is None:
        return [NOT_REHEARSED]
    sentences = re.split(r"(?<=[.!?]) +(?=[A-Z])", plan.expected.advice.strip())
    return [each for each in sentences if each and not each.startswith(MEASURE)]


def made_on(release: Release) -> str:
    """The day of the measurement."""
    return str(read_manifest(release.path)["made"])[:10]


def short(budget: object) -> str:
    """A budget without the name of its kind.

    >>> short("epsilon = 1 (pure differential privacy)")
    'epsilon = 1'
    """
    return str(budget).partition(" (")[0]


def _tile(title: str, value: str, note: str, tone: str = "plain") -> dict[str, str]:
    return {"title": title, "value": value, "note": note, "tone": tone}
