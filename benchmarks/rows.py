"""Numbers of rows from all answers of a group, against noisy numbers and sums of tables alone. Public rows only.

One state of the ACS stands in for the private table, and the other is the public one; invented tables have other
states. Noise is simulated with a seed, and both ways get the same noisy counts. For each share of the last level's
budget that goes to the numbers of rows: the root mean square error, how often it is 250 rows or more, and how often a
number is within two of the standard deviations that it is said to have.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from common import need_data, report, table
from jobs import acs
from prade import Ask, Budget, Groups, Level, Plan, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.totals import estimated_totals
from prade.examples import census_like
from prade.tuning.rehearse import Rehearsal

EVERY = {"0.1": 9, "0.3": 4, "1": 2}  # of the columns, one in so many is asked for
FAR = 250  # rows, as the contest has it


def worlds() -> list[tuple[str, Public, Groups, tuple[str, str]]]:
    """Names, public rows, groups like those of the private table, and levels."""
    job, invented = acs(), census_like(persons=50_000, places_per_state=20, seed=3)
    groups = invented.groups.select(["STATE", "PLACE"]).group_by(["STATE", "PLACE"]).aggregate([])
    rows = Public.of(invented.schema, invented.public, ["STATE", "PLACE"])
    return [
        ("ACS, one state from the other", job.rows, job.listed, ("STATE", "PUMA")),
        ("invented places", rows, Groups.of(groups), ("STATE", "PLACE")),
    ]


def errors(rehearsal: Rehearsal, plan: Plan, stand_in: int, seed: int) -> dict[str, np.ndarray]:
    """Errors of the numbers of rows and their standard deviations, both ways: [2, groups]."""
    chosen, release = rehearsal.stand_ins[stand_in], rehearsal.release(plan, stand_in, seed)
    descent = Descent(release, chosen.public, rough=True, execution=Execution(rehearsal.threads), cells=chosen.cells)
    last, parents = descent.parents_of_last()
    found = descent.groups(last, parents)
    truth = np.bincount(chosen.group, minlength=len(found))
    raw, sizes = raw_answers(release, last), found.priors.sizes()
    totals, variance = estimated_totals(raw, sizes)
    return {
        "alone": np.stack([totals - truth, np.sqrt(variance)]),
        "tables": np.stack([found.totals - truth, np.sqrt(found.rows_variance)]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--epsilons", nargs="*", default=list(EVERY))
    parser.add_argument("--shares", nargs="*", default=["1/5", "1/20", "0"])
    options = parser.parse_args()
    need_data()
    lines, figures = [], {}
    for name, rows, groups, (outer, inner) in worlds():
        rehearsal, schema = Rehearsal.of(rows, groups, [outer, (outer, inner)]), rows.prior.schema
        for epsilon in options.epsilons:
            asked = Workload.marginals(schema, schema.coded[:: EVERY[epsilon]])
            for share in map(Fraction, options.shares):
                levels = [Level(outer), Level((outer, inner), Ask(asked, 1 - share), total=share)]
                plan = Plan("rows", schema, Budget.pure(epsilon), Unit(1), levels, groups)
                pairs = [(k, seed) for k in range(len(rehearsal.stand_ins)) for seed in range(options.seeds)]
                found = [errors(rehearsal, plan, *pair) for pair in pairs]
                line: list[str] = [name, epsilon, str(share)]
                for way in ("alone", "tables"):
                    off, sd = np.concatenate([each[way] for each in found], axis=1)
                    figures[f"{name}, {epsilon}, {share}, {way}"] = float(np.sqrt(np.mean(off**2)))
                    line += [f"{np.sqrt(np.mean(off**2)):.1f}", f"{np.mean(np.abs(off) >= FAR):.2%}"]
                    line.append(f"{np.mean(np.abs(off) < 2 * sd):.1%}")
                lines.append(line)
                print(*line, sep=" | ", flush=True)
    head = ["world", "eps", "share for numbers of rows", "noise and sums alone", "off by 250", "within 2 sd"]
    report("rows", table([*head, "all answers", "off by 250 ", "within 2 sd "], lines), figures)


if __name__ == "__main__":
    main()
