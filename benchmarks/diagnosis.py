"""Is the diagnosis of the public table right? False and missed alarms where it is known what is wrong.

    python benchmarks/diagnosis.py                  invented places
    python benchmarks/diagnosis.py --acs            also the rows of Illinois and Ohio, divided at random

*Invented places*: 40 places of two states, five columns of 2 to 15 values; public rows are of the same places or of
others, private ones from the same populations, or, with planted drift, from others in three places. A *family* is one
release with all its columns, groups and levels. *ACS halves*: one half of the rows of every PUMA is public, the other
private, 36 columns. Persons are divided, so people of one household do not stay together, and nothing has changed; in
31 PUMAs, renters who moved to their own homes are planted.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np
import pyarrow as pa

from common import DATA, need_data, report, table
from prade import Budget, Column, Plan, Schema, Task
from prade.data.public.joint import Coded
from prade.data.public.public import Public, kept
from prade.diagnosis.diagnose import Diagnosis, diagnosed

SIZES = {"TEN": 4, "SEX": 2, "AGE": 8, "RARE": 6, "BIG": 15}
SCHEMA = Schema(
    [
        Column("STATE", "group"),
        Column("PLACE", "group"),
        *(Column(name, "categorical", values=tuple(range(size))) for name, size in SIZES.items()),
    ]
)
PLACES, DRIFTED = 40, (3, 11, 25)
GROUPS = {"STATE": [g // 20 + 1 for g in range(PLACES)], "PLACE": list(range(PLACES))}
MOVED = 31  # PUMAs with planted drift


def noisy(plan: Plan, group: np.ndarray, codes: dict[str, np.ndarray], generator: np.random.Generator) -> list:
    """Noisy counts of rows with these codes in these groups of the last level."""
    found = []
    for question in plan.questions:
        grouping = plan.groupings[question.level]
        number = plan.groupings[-1].above(grouping)[group]
        answers = []
        for part in question.parts:
            cells = part.cells(plan.schema, codes).astype(np.int64)
            counts = np.bincount(number * part.n_cells + cells, minlength=len(grouping) * part.n_cells)
            counts = counts.reshape(len(grouping), -1)
            answers.append(counts + question.law.simulated(float(question.scale), counts.shape, generator))
        found.append(answers)
    return found


# ---------------------------------------------------------------------- invented places


def invented(seed: int, budget: Budget, recurring: bool, alike: bool, drift: float = 0.0) -> Diagnosis:
    """One release of invented places, diagnosed; places are of one size (`alike`) or of 5 to 3,000 rows."""
    rng = np.random.default_rng(seed)
    base = {name: rng.dirichlet(np.full(k, 0.15 if name == "RARE" else 0.7)) for name, k in SIZES.items()}
    places = [
        {name: rng.dirichlet(np.maximum(60 * p, 0.02)) if recurring else p for name, p in base.items()}
        for _ in range(PLACES)
    ]
    expected = np.full(PLACES, 1000) if alike else rng.integers(5, 3000, PLACES)
    public = rows(rng, places, rng.poisson(expected * rng.choice([0.3, 1, 3])) + 1)
    away = 0 if recurring else 100
    listed = {**public, "STATE": public["STATE"] + away, "PLACE": public["PLACE"] + away}
    changed = [{**p, "TEN": moved(p["TEN"], drift)} if g in DRIFTED else p for g, p in enumerate(places)]
    private = rows(rng, changed, rng.poisson(expected) + 1)
    plan = Plan.simplest(Task("invented", SCHEMA, budget, levels=["STATE", "PLACE"], groups=GROUPS))
    counts = noisy(plan, private["PLACE"], {name: private[name] for name in SIZES}, rng)
    return diagnosed(plan, counts, Public.of(SCHEMA, listed, ["STATE", "PLACE"]))


def rows(rng: np.random.Generator, places: list[dict[str, np.ndarray]], sizes: np.ndarray) -> dict[str, np.ndarray]:
    place = np.repeat(np.arange(PLACES), sizes)
    drawn = {
        name: np.concatenate([rng.choice(len(p[name]), n, p=p[name]) for p, n in zip(places, sizes, strict=True)])
        for name in SIZES
    }
    return {"STATE": place // 20 + 1, "PLACE": place, **drawn}


def moved(shares: np.ndarray, distance: float) -> np.ndarray:
    """Shares at this total-variation distance, or as near to it as the largest cell allows."""
    other, size = shares.copy(), min(distance, 0.95 * shares.max())
    other[np.argmax(shares)] -= size
    other[np.argmin(shares)] += size
    return other


def false_alarms(runs: int) -> list[list[str]]:
    lines = []
    for budget in (Budget.pure(1), Budget.pure(10), Budget.pure(100), Budget.zcdp(1), Budget.zcdp(10)):
        for recurring in (True, False):
            for alike in (True, False):
                found = [invented(seed, budget, recurring, alike) for seed in range(runs)]
                false = sum(any(level.wrong.any() for level in each.levels) for each in found)
                sizes = "1,000 rows" if alike else "5 to 3,000 rows"
                public = "the same places" if recurring else "other places"
                lines.append([str(budget).partition(" (")[0], public, sizes, f"{false} of {runs}"])
                print(lines[-1], flush=True)
    return lines


def missed_alarms(runs: int) -> list[list[str]]:
    lines = []
    for budget in (Budget.pure(1), Budget.pure(10), Budget.zcdp(1)):
        for distance in (0.05, 0.1, 0.2, 0.3):
            found = [invented(1000 + seed, budget, True, True, distance).levels[-1] for seed in range(runs)]
            hit = sum(int(each.wrong[list(DRIFTED), 0].sum()) for each in found)
            clear = np.ones(found[0].wrong.shape, bool)
            clear[list(DRIFTED), 0] = False
            false = sum(bool((each.wrong & clear).any()) for each in found)
            above = sum(bool((each.at_least[list(DRIFTED), 0] > distance + 0.08).any()) for each in found)
            lines.append(
                [
                    str(budget).partition(" (")[0],
                    f"{distance}",
                    f"{hit} of {3 * runs}",
                    f"{false} of {runs}",
                    f"{above}",
                ]
            )
            print(lines[-1], flush=True)
    return lines


# ---------------------------------------------------------------------- halves of the ACS


def halves() -> list[list[str]]:
    """Alarms of one half of the public rows against the other, with and without planted drift."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    every = Public.of(schema, DATA / "acs2024_il_oh.parquet", ["STATE", "PUMA"])
    by = every.groups.by
    groups = pa.table({name: [row[k] for row in every.groups.values] for k, name in enumerate(by)})
    rng = np.random.default_rng(0)
    private = rng.random(len(every)) < 0.5
    public = kept(every, np.flatnonzero(~private))
    group, codes = every.group[private], {name: code[private] for name, code in every.prior.codes.items()}
    drifted = np.sort(rng.permutation(len(every.groups))[:MOVED])
    tenure = codes["TEN"].astype(np.int64)
    renters = np.isin(group, drifted) & (tenure == 2) & (rng.random(len(group)) < 0.9)
    changed = {**codes, "TEN": np.where(renters, 0, tenure)}
    lines = []
    for epsilon in (1, 10, 100):
        plan = Plan.simplest(Task("halves", schema, epsilon, levels=list(by), groups=groups))
        for what, rows_of in (("nothing", codes), (f"TEN in {MOVED} PUMAs", changed)):
            counts = noisy(plan, group, Coded(schema, rows_of).codes, rng)
            started = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            found = diagnosed(plan, counts, public)
            took = resource.getrusage(resource.RUSAGE_SELF).ru_utime - started
            last = found.levels[-1]
            ten = last.columns.index("TEN")
            hit = int(last.wrong[drifted, ten].sum())
            rest = int(last.wrong.sum()) - (hit if what != "nothing" else 0)
            upper = "; ".join(f"{level.name} {int(level.wrong.sum())}" for level in found.levels[:-1])
            planted = f"{hit} of {MOVED}" if what != "nothing" else ""
            lines.append([str(epsilon), what, planted, f"{rest} of {last.wrong.size:,}", upper, f"{took:.1f}"])
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="families of each kind of world")
    parser.add_argument("--acs", action="store_true", help="also divide the public ACS rows")
    parser.add_argument("--only-acs", action="store_true", help="only divide the public ACS rows")
    options = parser.parse_args()
    text, data = [], {}
    if options.acs or options.only_acs:
        need_data()
        data["halves"] = halves()
        heads = ["epsilon", "planted", "found", "false alarms by PUMA", "alarms above", "processor seconds"]
        text.append(table(heads, data["halves"]))
    if not options.only_acs:
        data["false"], data["missed"] = false_alarms(options.runs), missed_alarms(max(options.runs // 4, 1))
        text.append(table(["budget", "public rows of", "places of", "families with a false alarm"], data["false"]))
        heads = ["budget", "planted distance", "found", "families with a false alarm", "bounds above the truth"]
        text.append(table(heads, data["missed"]))
    report("diagnosis", "\n\n".join(text), data)


if __name__ == "__main__":
    main()
