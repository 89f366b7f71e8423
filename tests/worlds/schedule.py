"""Which tests run in one worker together, and in which order, when `make test` runs several workers.

A file stays in one worker, so that what its tests share is made once; but each page of the documentation may run in
another one, and all tests that need Spark run in one, so that one Java machine is started. What takes longest begins
first. By the marks of tests `make check` leaves out what is not quick: `slow` (its unit takes more than five processor
seconds), `engine` (it needs PostgreSQL, Spark or Dask), `browser` (it needs Chromium).
"""

import pytest

PAGES = "tests/docs/test_docs.py::test_code_blocks_run["
SPARK = (
    "tests/conformance/test_engines.py::test_spark",
    f"{PAGES}docs/recipes.md]",
    "tests/integration/test_noninterference_engines.py::test_any_two_tables_of_spark",
    "tests/integration/test_noninterference_engines.py::test_cells_on_which_spark_fails",
    "tests/integration/test_noninterference_engines.py::test_runs_that_break_off_in_spark",
    "tests/integration/test_spark.py",
    "tests/property/test_law_of_the_door.py::test_spark",
)
ENGINES = ("tests/integration/", "tests/conformance/test_engines.py")
# Units of more than five processor seconds, the longest first. An old list costs time, nothing else.
LONGEST_FIRST = """
    property/test_law_of_the_door docs/command-line.md property/test_one_person faults/test_measure_faults
    faults/test_ledger_faults oracle/test_map_oracle browser/test_report_page unit/tuning/test_tune
    faults/test_interrupts unit/estimating/test_estimates_on_workers docs/plan.md unit/sampling/test_group_draws
    architecture/test_plain_install
    statistical/test_audit unit/cli/test_demo property/test_noninterference integration/test_dask
    unit/tuning/test_workers faults/test_synthesize_faults statistical/test_release_noise unit/measuring/test_counts
    statistical/test_error_bars docs/start-here.md unit/reporting/test_report
    unit/test_synthesizer unit/tuning/test_explore unit/cli/test_plan_commands docs/how-to-choose.md unit/cli/test_main
    unit/tuning/test_targets unit/cli/test_worker_options docs/report.md README.md unit/test_pipeline
    conformance/test_engines conformance/test_estimators docs/test_notebooks browser/test_explore_page
    oracle/test_ide_oracle property/test_budget_properties docs/sample.md docs/scoring.md docs/measure.md
"""
LONGEST = (
    "spark",
    *(f"{PAGES}{name}]" if name.endswith(".md") else f"tests/{name}.py" for name in LONGEST_FIRST.split()),
)


def unit_of(nodeid):
    """The name of the unit that a test belongs to: tests of one unit run in one worker, one after the other."""
    if nodeid.startswith(PAGES):
        return "spark" if nodeid in SPARK else nodeid
    file, _, test = nodeid.partition("::")
    return "spark" if not {file, f"{file}::{test.partition('[')[0]}"}.isdisjoint(SPARK) else file


def marks(nodeid):
    """The marks of a test.

    >>> marks("tests/browser/test_report_page.py::test_page")
    ['slow', 'browser']
    """
    unit = unit_of(nodeid)
    where = {"slow": unit in LONGEST, "engine": unit == "spark" or nodeid.startswith(ENGINES)}
    where["browser"] = nodeid.startswith("tests/browser/")
    return [mark for mark, holds in where.items() if holds]


def longest_first(nodeids):
    """The numbers of the tests in the order in which they are given out.

    >>> longest_first(["tests/unit/a.py::x", "tests/integration/test_spark.py::x", "tests/unit/a.py::y"])
    [1, 0, 2]
    """
    rank = {name: place for place, name in enumerate(LONGEST)}
    return sorted(range(len(nodeids)), key=lambda k: rank.get(unit_of(nodeids[k]), len(LONGEST)))


def pytest_collection_modifyitems(config, items):
    """Mark the tests. In a worker, put them into the order of units; without workers, they keep that of their files."""
    for item in items:
        for mark in marks(item.nodeid):
            item.add_marker(mark)
    if hasattr(config, "workerinput"):
        items[:] = [items[k] for k in longest_first([item.nodeid for item in items])]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give out units instead of files, in the order of the tests."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit_of(nodeid)

    config.option.loadscopereorder = False  # it would begin with the files that have most tests
    return ByUnit(config, log)
