"""No private value gets out of a baseline's run but through noisy answers and choices: not by words, files or failing.

As in `tests/unit/measuring/test_secrets.py`: all runs happen twice, in processes of their own, on the same private
files with and without rows that hold secrets. What is written is searched for the secrets, and what is said must be the
same both times.
"""

import pytest

from worlds.secret_rows import run, traces

BASELINES = """
from prade.baselines import MWEM, GEMPub, Histogram, PMWPub, PrivBayes, run
from prade.measuring.adaptive import session as adaptive

draw, choose = adaptive.add_noise, adaptive.select

def broken(values, *rest):
    raise RuntimeError(f"cannot handle {values}")

def attempt(name, private, names=("AGE", "SEX", "CODE"), person="ID", folder=".", kind="Histogram"):
    schema = Schema([columns[each] for each in names])
    workload = Workload.all_marginals(schema, 1)
    baseline = {
        "MWEM": MWEM(workload, rounds=2, passes=2), "PMWPub": PMWPub(workload, rounds=1, passes=1),
        "Histogram": Histogram(), "PrivBayes": PrivBayes(),
        "GEMPub": GEMPub(workload, rounds=2, steps=2, products=9, inputs=4, hidden=4, public_steps=2, draws=9),
    }[kind]
    ledger, unit = Ledger("ledger"), Unit(1, person)
    ledger.open_dataset(name, unit, Budget.pure(1))
    terms = {"dataset": name, "budget": Budget.pure(1), "unit": unit}
    try:
        run(baseline, Prior.uniform(schema), private, f"{folder}/answers-{name}.json", ledger, **terms)
    finally:
        for entry in ledger.entries(name):
            failures = [(each.stage, each.kind) for each in entry.failures]
            print(name, entry.state, failures, "after the draw" if entry.drawn else "before the draw", entry.note)
        print(name, ledger.remaining(name), len(ledger.entries(name)))

def attempts():
    global broken_step
    for kind in ("MWEM", "PMWPub", "GEMPub", "Histogram", "PrivBayes"):
        yield kind, {"private": "rows.parquet", "kind": kind}
        yield f"no rows {kind}", {"private": pandas.read_parquet("rows.parquet")[:0], "kind": kind}
    yield "malformed.csv", {"private": "malformed.csv", "kind": "PrivBayes"}
    yield "pandas", {"private": pandas.read_parquet("rows.parquet").astype(object), "kind": "MWEM"}
    yield "wrong type", {"private": "duckdb://lists.db/lists", "names": ("AGE", "LIST")}
    yield "no person", {"private": "rows.parquet", "person": "IDS"}
    yield "no column", {"private": "malformed.csv", "names": ("AGE", "HEIGHT"), "kind": "MWEM"}
    yield "no folder", {"private": "rows.parquet", "folder": "nowhere"}
    for step in ("counted", "reserved", "written", "committed"):
        broken_step = f"adaptive.{step}"
        yield step, {"private": "rows.parquet"}
    broken_step = None
    adaptive.add_noise = broken
    yield "no noise", {"private": "rows.parquet"}
    adaptive.add_noise, adaptive.select = draw, broken
    for kind in ("MWEM", "PrivBayes"):
        yield f"no choice {kind}", {"private": "rows.parquet", "kind": kind}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    hashes = {"script": BASELINES, "token": rb"\b[0-9a-f]{16,}\b"}  # of the task, too: it has the folder in it
    return [run(folder / name, name == "with", **hashes) for name in ("with", "without")]


def test_secrets_are_in_nothing_that_is_said_or_written(runs):
    _, said, written = runs[0]
    assert traces(said, written) == []
    done = ["MWEM", "PMWPub", "GEMPub", "Histogram", "PrivBayes", "malformed.csv", "pandas"]
    assert {f"answers-{name}.json" for name in (*done, *(f"no rows {kind}" for kind in done[:5]))} <= set(written)
    assert not any(name.startswith("temporary") for name in written)  # the engine's own folder is gone


def test_what_is_said_is_the_same_with_and_without_secrets(runs):
    """So are success and failure, the exit code, what was spent, and the names of all files."""
    (code, said, written), (other_code, other_said, other_written) = runs
    assert code == other_code == 0
    assert said == other_said
    assert set(written) == set(other_written)


def test_all_ways_to_fail_were_tried_and_those_before_the_reservation_cost_nothing(runs):
    lines = runs[0][1][0].decode().splitlines()
    failed = {line.split(" DataError")[0] for line in lines if " DataError" in line}
    free = {"wrong type", "no person", "no column", "no folder"}
    assert free | {"no noise", "no choice MWEM", "no choice PrivBayes"} <= failed
    steps = ("reserved", "counted", "written", "committed")
    spent = {name: f"{name} epsilon = 0 " for name in ("no noise", *steps, "Histogram")}
    spent |= {name: f"{name} epsilon = 1 " for name in free}
    for name, words in spent.items():
        assert any(line.startswith(words) for line in lines), name
    failed = {
        "reserved": "failed [('count', 'OSError')] before the draw",
        "counted": "failed [('count', 'OSError')] before the draw",
        "written": "failed [('write', 'OSError')] after the draw",
        "committed": "committed [('write', 'OSError')] after the draw",
        "no noise": "failed [('draw', 'DataError')] after the draw",
        "no choice MWEM": "failed [('draw', 'DataError')] after the draw",
    }
    for name, words in failed.items():
        assert any(line.startswith(f"{name} {words}") for line in lines), name
