"""The expected error beside what comes out, on invented tables with a private side of the same kind."""

import numpy as np
import pyarrow.compute as pc
import pytest

from prade.data.declare.groups import Groups
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.examples import census_like
from prade.planning.plan import Plan
from prade.planning.questions import Level
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.queries.workload import Workload
from prade.tuning.expectation import expected_in_another
from prade.tuning.rehearse import Rehearsal
from prade.tuning.stand_ins import StandIn

COLUMNS = ["STATE", "PLACE", "YEAR", "AGE", "SEX", "EMPLOY", "TENURE"]
SEEDS = range(8)
LARGEST_T = 4.79  # with 7 degrees of freedom, a larger one has the probability 0.001


def with_truth(rehearsal, public, private, groups):
    """A rehearsal in which the private table stands in for itself: its errors are those of the release."""
    listed = groups.level(("STATE", "PLACE"))
    number = groups.keyed(groups.names, listed.number).numbers(private.select(list(groups.names)))
    codes = encode(public.prior.schema, private).codes
    rows = np.bincount(number, minlength=len(listed)).astype(float)
    return Rehearsal(rehearsal.kind, [StandIn(public, codes, number, groups, rows)], rehearsal.pairs, bias=None)


def world(seed, relation):
    """A schema, groups, and a public and a private table that differ as stand-ins differ from what stays public."""
    made = census_like(persons=3_000, places_per_state=4, relation=relation, seed=seed)
    schema, groups = made.schema.select(COLUMNS), Groups.of(made.groups.group_by(["STATE", "PLACE"]).aggregate([]))
    if relation == "other states":
        return schema, groups, Public.of(schema, made.public, ["STATE", "PLACE"]), made.private
    last = pc.equal(made.public["YEAR"], pc.max(made.public["YEAR"]))
    before = Public.of(schema, made.public.filter(pc.invert(last)), ["STATE", "PLACE", "YEAR"])
    rows = made.public.filter(last)
    return schema, Groups.of(rows.group_by(["STATE", "PLACE"]).aggregate([])), before, rows


@pytest.mark.parametrize("relation", ["other states", "earlier years"])
def test_expected_errors_are_not_optimistic(relation):
    """Mean of (actual - expected) over eight worlds: not positive beyond chance, with a false alarm once in 1,000.

    Three public years with a third of a private year's noise gave expected errors that were a seventh too small.
    """
    off, within = [], []
    for seed in SEEDS:
        schema, groups, public, private = world(seed, relation)
        plan = Plan("x", schema, Budget.pure(1), Unit(1), [Level("PLACE", Workload.all_marginals(schema, 1))], groups)
        rehearsal = Rehearsal.of(public, groups, [("STATE", "PLACE")], bias=None)
        errors = [rehearsal.errors(plan, stand_in=k, fresh=True)[None] for k in range(len(rehearsal.stand_ins))]
        expected, precision = expected_in_another(errors, len(groups))
        actual = with_truth(rehearsal, public, private, groups).errors(plan, seed=1).mean()
        off.append(actual - expected)
        within.append(abs(actual - expected) <= precision)
    assert np.mean(off) / (np.std(off, ddof=1) / len(off) ** 0.5) < LARGEST_T
    assert sum(within) >= 1  # with two in three, none of eight has the probability 0.0002
