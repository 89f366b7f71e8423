"""How tests/golden/release-0.9 was made: by version 0.9.0 (commit 12f3de0), from invented people.

In a checkout of that version, in an empty folder:

    PYTHONPATH=src python make_release_0_9.py

The noise takes no seed, so another run makes another release: then copy the folder. Nothing in it is of a real person.
"""

import prade
from prade import Budget, Ledger, Task, Unit
from prade.data.read.tables import write_table
from prade.examples import census_like

COLUMNS = ("STATE", "PLACE", "AGE", "SEX", "TENURE", "EMPLOY", "HOURS")


def main() -> None:
    """Write public.parquet, agency.ledger and the release, with its estimates and rows of seed 1."""
    data = census_like(persons=500, places_per_state=3, seed=5)
    schema = data.schema.select(list(COLUMNS))
    write_table(data.public.select([name for name in data.public.column_names if name in COLUMNS]), "public.parquet")
    places = data.groups.group_by(["STATE", "PLACE"]).aggregate([])
    unit = Unit(data.max_rows, person_id="PERSON")
    task = Task("census", schema, Budget.pure(4), unit, levels=["STATE", "PLACE"], groups=places)
    plan = prade.plan(task, "public.parquet", effort=1)
    ledger = Ledger("agency.ledger")
    ledger.open_dataset("census", unit, Budget.pure(4))
    release = prade.measure(plan, data.private, "release", ledger)
    estimates = prade.estimate(release, "public.parquet")
    write_table(prade.sample(estimates, "public.parquet", seed=1), "release/synthetic.parquet")


if __name__ == "__main__":
    main()
