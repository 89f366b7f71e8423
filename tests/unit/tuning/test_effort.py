"""The work of a rehearsal is a count: it grows with what is done, and nothing else changes it."""

from dataclasses import replace

import pytest

from prade import Budget, Plan, Task, Unit
from prade.core.execution import Execution
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.planning.questions import Ask, Level
from prade.planning.settings import Settings
from prade.queries.workload import Workload
from prade.tuning.effort import Effort, work_of
from prade.tuning.tune import Tuner

SCHEMA = Schema.from_mbi({"a": 40, "b": 40, "c": 40, "d": 2, "e": 30})
GROUPS = Groups.of({"STATE": [1, 1, 2, 2], "PLACE": [1, 2, 3, 4]})
RAW = Settings(smooth=False)


def plan(*parts, above=()):
    last = Ask(Workload.marginals(SCHEMA, [tuple(part) for part in parts]), "9/10")
    first = Ask(Workload.marginals(SCHEMA, [tuple(part) for part in above]), "1/10") if above else ()
    levels = [Level("STATE", first, 0), Level(["STATE", "PLACE"], last, 0 if above else "1/10")]
    return Plan("x", SCHEMA, Budget.pure(1), Unit(1), levels, GROUPS)


def work(asked, settings=None, *, groups=GROUPS, rows=50_000, scored=4, pairs=10):
    return work_of(asked, settings or Settings(), groups, rows, scored, pairs)


def test_more_of_anything_is_more_work():
    few = work(plan("a", "b"))
    assert few > 0
    more_groups = Groups.of({"STATE": list(range(8)), "PLACE": list(range(8))})
    for more in (
        work(plan("a", "b"), rows=100_000),
        work(plan("a", "b"), scored=8),
        work(plan("a", "b"), pairs=20),
        work(plan("a", "b"), groups=more_groups),
        work(plan("a", "b", "c")),
        work(plan("a", "b", above=["c"])),
    ):
        assert more > 1.05 * few


def test_the_cube_of_smoothed_cells_counts_and_raw_cells_by_the_pass():
    """Eigenvectors of 420 cells take more than passes over few rows; raw cells need none."""
    pairs = plan("ed", "ad", "bd", "cd", "a", "b", "c")
    assert work(pairs, rows=1_000) > 1.3 * work(pairs, RAW, rows=1_000)
    many = plan("ab", "ac", "bc")  # 4,800 cells, too many for Newton's matrices
    assert work(many, RAW, rows=10_000) < work(many, RAW, rows=20_000) < 2 * work(many, RAW, rows=10_000)


def test_groups_that_are_not_scored_count_where_answers_are_smoothed():
    """How groups differ is fitted to all of them, and of raw answers only scored groups are estimated."""
    many = Groups.of({"STATE": [1, 2] * 100, "PLACE": list(range(200))})
    asked = plan("a", "b", "c")
    assert work(asked, groups=many, scored=4) > 1.1 * work(asked, scored=4)
    assert work(asked, RAW, groups=many, scored=4) == work(asked, RAW, scored=4)


def test_a_large_table_is_thinned_where_answers_are_smoothed():
    thin, whole = (work(plan("a", "b"), Settings(support=support), rows=1_000_000, pairs=0) for support in (10_000, 0))
    assert whole > 5 * thin
    assert work(plan("a", "b"), replace(RAW, support=10_000), rows=1_000_000, pairs=0) > 5 * thin


def test_it_is_the_same_for_any_number_of_threads(data):
    task = Task("people", data.schema, 5, Unit(1), ["STATE", "PLACE"], data.groups)
    found = set()
    for threads in (1, 4):
        found.add(Tuner(task, data.public, execution=Execution(threads)).tune(task.budget, Effort.of(0.5)).effort)
    assert len(found) == 1
    assert 0 < found.pop() <= 0.5


@pytest.mark.parametrize(("effort", "seconds"), [(0, 600), (120, 600), (1_000, 5_000)])
def test_the_safety_net_grows_with_the_effort(effort, seconds):
    assert Effort.of(effort).seconds == seconds
    assert Effort.of(effort, 7).seconds == 7
