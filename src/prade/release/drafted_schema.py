"""The schema of a release whose user gave none."""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path

from prade.core.errors import PradeError
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public_table import PublicTable
from prade.planning.plan import Plan
from prade.privacy.unit import Unit
from prade.release.saved_plans import saved_plan


def drafted_schema(folder: str | PathLike[str], table: PublicTable, groups: Groups, unit: Unit) -> Schema:
    """Draft a schema from the public table and keep it beside the folder; a kept plan has its own."""
    if (kept := saved_plan(folder)) is not None:
        plan = Plan.load(kept)
        return plan.schema.with_invariants(plan.invariants)
    path = Path(f"{Path(folder).absolute()}.schema.toml")
    names = table.typed.column_names
    identifiers = [name for name in names if name == unit.person_id]
    drafted = table.draft([name for name in groups.names if name in names], identifiers)
    if path.exists() and Schema.load(path) != drafted:
        raise PradeError(
            f"{path} is not the draft of this public table; if you corrected it, give it as schema=, otherwise "
            "remove it"
        )
    drafted.save(path)
    warnings.warn(
        f"no schema was given, so {path} was drafted from the public table, with {len(drafted.coded)} columns. "
        "Read it, add the values that private rows may have but the public table lacks, and give it as schema=",
        stacklevel=4,
    )
    return drafted
