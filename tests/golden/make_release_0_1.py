"""How tests/golden/release-0.1 was made: by version 0.1, whose modules had other homes, from invented people.

It does not run with this version. In a checkout of version 0.1, in an empty folder:

    PYTHONPATH=src python make_release_0_1.py

The noise takes no seed, so another run makes another release: then copy the folder, and the plan's hash into
`test_release_of_version_0_1.py`. Nothing in it is of a real person.
"""

from prade import Budget, Ledger, Settings, Unit, Workload
from prade.data.public.table import PublicFiles
from prade.data.read.tables import write_table
from prade.examples.census import census_like
from prade.measure import measure
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.synthesize import synthesize

COLUMNS = ("STATE", "PLACE", "AGE", "SEX", "TENURE", "EMPLOY", "HOURS")


def main() -> None:
    """Write public.parquet, agency.ledger and the release, with its estimates and rows of seed 1."""
    data = census_like(persons=500, places_per_state=3, seed=5)
    schema = data.schema.select(list(COLUMNS))
    write_table(data.public.select([name for name in data.public.column_names if name in COLUMNS]), "public.parquet")
    places = data.groups.group_by(["STATE", "PLACE"]).aggregate([])
    unit = Unit(data.max_rows, person_id="PERSON")
    ones = Workload.all_marginals(schema, 1)
    levels = [Level("STATE", Ask(ones, 1)), Level("PLACE", Ask(ones, 3))]
    plan = Plan("census", schema, Budget.pure(4), unit, levels, places, settings=Settings())
    ledger = Ledger("agency.ledger")
    ledger.open_dataset("census", unit, Budget.pure(4))
    release = measure(plan.with_public(PublicFiles.at(["public.parquet"])), data.private, "release", ledger)
    write_table(synthesize(release, "public.parquet", seed=1), "release/synthetic.parquet")
    print(release.plan.hash)


if __name__ == "__main__":
    main()
