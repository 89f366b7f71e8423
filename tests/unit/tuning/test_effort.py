"""The work of a rehearsal is a count: it grows with what is done, and nothing else changes it."""

from prade import Budget, Plan, Unit
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.planning.questions import Ask, Level
from prade.planning.settings import Settings
from prade.queries.workload import Workload
from prade.tuning.effort import Effort, work_of

SCHEMA = Schema.from_mbi({"a": 40, "b": 40, "c": 40, "d": 2, "e": 30})
GROUPS = Groups.of({"STATE": [1, 1, 2, 2], "PLACE": [1, 2, 3, 4]})
RAW = Settings(smooth=False)


def work(*parts, above=(), settings=None, groups=GROUPS, rows=50_000, scored=4, pairs=10):
    """The work of a plan that asks for these parts in places, and for others in the states above."""
    last = Ask(Workload.marginals(SCHEMA, [tuple(part) for part in parts]), "9/10")
    first = Ask(Workload.marginals(SCHEMA, [tuple(part) for part in above]), "1/10") if above else ()
    levels = [Level("STATE", first, 0), Level(["STATE", "PLACE"], last, 0 if above else "1/10")]
    plan = Plan("x", SCHEMA, Budget.pure(1), Unit(1), levels, GROUPS)
    return work_of(plan, settings or Settings(), groups, rows, scored, pairs)


def test_more_of_anything_is_more_work():
    few, eight = work("a", "b"), Groups.of({"STATE": list(range(8)), "PLACE": list(range(8))})
    assert few > 0
    for more in ({"rows": 100_000}, {"scored": 8}, {"pairs": 20}, {"groups": eight}, {"above": ["c"]}):
        assert work("a", "b", **more) > 1.05 * few
    assert work("a", "b", "c") > 1.05 * few


def test_the_cube_of_smoothed_cells_counts_and_raw_cells_by_the_pass():
    """Eigenvectors of 420 cells take more than passes over few rows; raw cells need none."""
    pairs = "ed", "ad", "bd", "cd", "a", "b", "c"
    assert work(*pairs, rows=1_000) > 1.3 * work(*pairs, settings=RAW, rows=1_000)
    few, many = (work("ab", "ac", "bc", settings=RAW, rows=rows) for rows in (10_000, 20_000))
    assert few < many < 2 * few  # 4,800 cells, too many for Newton's matrices


def test_the_safety_net_grows_with_the_effort():
    assert [Effort.of(effort).seconds for effort in (0, 120, 1_000)] == [600, 600, 5_000]
    assert Effort.of(120, 7).seconds == 7
