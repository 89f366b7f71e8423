"""What a plan covers: which of its groups have public rows of their own, and which columns it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public import Public
from prade.data.recurring_groups import RecurringGroups
from prade.planning.plan import Plan


def groups_with_public_rows(public: Public, groups: Groups) -> tuple[int, str]:
    """How many of the listed groups occur among the public rows, as a number and in words; no words without groups.

    >>> from prade import Column
    >>> schema = Schema([Column("PLACE", "group"), Column("AGE", "numeric", edges=[18])])
    >>> public = Public.of(schema, {"PLACE": ["a", "b"], "AGE": [1, 20]}, by=["PLACE"])
    >>> groups_with_public_rows(public, Groups.of({"PLACE": ["b", "c", "d"]}))
    (1, '1 of 3 groups occurs among the public rows')
    """
    if not groups.names:
        return 0, ""
    number = int(RecurringGroups.of(public, groups.level(groups.names)).recurs.sum())
    verb = "occurs" if number == 1 else "occur"
    return number, f"{number:,} of {len(groups):,} groups {verb} among the public rows"


def columns_left_out(plan: Plan) -> list[str]:
    """The columns of the schema that no question of a plan is about, without group columns."""
    questions = [question for question in plan.questions if not question.is_total]
    asked = {name for question in questions for part in question.parts for name in part.columns}
    return [name for name in plan.schema.coded if name not in asked]


def unlisted_groups(schema: Schema, groups: Groups) -> list[str]:
    """The group columns of a schema that the list of groups does not have; synthetic rows will lack them."""
    return [name for name in schema.groups if name not in groups.names]


def left_out_in_words(measured_not: Sequence[str], unlisted: Sequence[str]) -> list[str]:
    """A sentence about columns that a plan does not measure, and one about group columns that no row will have.

    >>> left_out_in_words(["AGE", "SEX"], [])
    ['not measured, so that their values follow the public table: AGE, SEX']
    """
    return [
        f"{words}: {', '.join(columns)}"
        for words, columns in (
            ("not measured, so that their values follow the public table", measured_not),
            ("not in the list of groups, so that synthetic rows will lack them", unlisted),
        )
        if columns
    ]
