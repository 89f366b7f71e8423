"""What `synthesize` does when its process is killed: the next run gives the same table, and no file is half-written.

A driver runs in an interpreter of its own, forks processes that die while they estimate, keep estimates or draw rows,
and looks at what they left in the release's folder. The release is a real one, made by `measure`.
"""

WORLD = """
from prade import Ask, Level, Workload
from prade.estimating.levels.estimates import Estimates, kept_estimates
from prade.core.execution import Execution
from prade.release.derived_files import ESTIMATES, KEPT_ESTIMATES, is_kept
from prade.data.public.public import Public
from prade.pipeline import sample
from worlds.plans import ledger_for, plan_of
from worlds.survey import SCHEMA as schema, people

public = people(0, [3, 4], 600, places=("p", "q", "r"))
ones = Workload.all_marginals(schema, 1)
groups = {"STATE": [1, 1, 1, 2, 2, 2], "PLACE": ["p", "q", "r"] * 2}
plan = plan_of(schema, Level("STATE", ones), Level("PLACE", Ask(ones, 3)), groups=groups, budget=2)
ledger = ledger_for(plan, HERE / "synthesis.ledger")
release = measure(plan, people(1, [1, 2], 900, places=("p", "q", "r")), HERE / "first", ledger, execution=Execution(1))
FILES = {path.name for path in release.path.iterdir()}

def fresh(name):
    shutil.copytree(HERE / "first", HERE / name)
    return Release.load(HERE / name)

def make(where):
    return sample(where, public, seed=7, execution=Execution(1))

whole = make(fresh("whole"))

def recovered(where):
    "Estimates are whole or absent; the next run, with other threads, makes the same table. Whether they were there."
    again = Release.load(where.path)
    kept = is_kept(again, KEPT_ESTIMATES)
    if kept:
        Estimates.load(where.path / ESTIMATES, again, Public.of(schema, public, ["STATE", "PLACE"]))
        kept_estimates(again).answer("AGE >= 65", by="STATE")
    assert sample(again, public, seed=7, execution=Execution(2)).equals(whole), "another table"
    shutil.rmtree(where.path)
    return kept
"""


def test_killed_at_every_touch_of_the_disk(drive):
    """SIGKILL before each opening, renaming and removing of a file in the folder, until a run gets through."""
    kills, kept = drive(
        WORLD
        + """
TOUCHES = "open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "tempfile.mkstemp", "sqlite3.connect"

def work(where, most):
    touched = 0
    def listen(event, values):
        nonlocal touched
        if event in TOUCHES:
            touched += any(str(where.path) in str(value) for value in values)
            if touched > most:
                die()
    sys.addaudithook(listen)
    make(where)

kills = kept = 0
while True:
    where = fresh(f"touch-{kills}")
    code = ended(forked(lambda: work(where, kills)))
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
    kept += recovered(where)
    kills += 1
print(kills, kept)
"""
    )
    assert kills >= 6
    assert kept < kills
