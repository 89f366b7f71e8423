"""Progress: bars on a terminal, lines elsewhere. `measure` reports what the plan says, and nothing else."""

from time import sleep

import numpy as np
import pytest

from prade import Ask, Column, Execution, Level, Schema, Workload
from prade.core.execution import progress_bar
from prade.measuring.run import measure
from worlds.plans import ledger_for, plan_of

SCHEMA = Schema([Column("AGE", "numeric", edges=[18, 65]), Column("SEX", "categorical", values=[1, 2])])
ONES = Workload.all_marginals(SCHEMA, 1)
TWOS = Workload.all_marginals(SCHEMA, 2)
PLAN = plan_of(SCHEMA, Level((), ONES), Level("TOWN", [Ask(ONES, 1), Ask(TWOS, 1)]), groups={"TOWN": ["a", "b"]})
REPORTS = [
    ("counting", 1, 1),
    ("adding noise", 1, 3),
    ("adding noise", 2, 3),
    ("adding noise", 3, 3),
    ("writing", 1, 1),
]


def people(rows, towns, seed):
    generator = np.random.default_rng(seed)
    return {
        "AGE": generator.integers(0, 90, rows),
        "SEX": generator.integers(1, 3, rows),
        "TOWN": generator.choice(towns, rows),
    }


def measured(tmp_path, private, progress):
    ledger = ledger_for(PLAN, tmp_path / "ledger")
    return measure(PLAN, private, tmp_path / "release", ledger, execution=Execution(progress=progress))


@pytest.mark.parametrize(("rows", "towns"), [(1, ["a"]), (5000, ["a", "b"]), (300, ["elsewhere"])])
def test_measuring_reports_the_same_of_any_table(tmp_path, rows, towns):
    reports = []
    measured(tmp_path, people(rows, towns, 0), lambda *news: reports.append(news))
    assert reports == REPORTS


def test_a_bar_that_fails_neither_stops_measuring_nor_costs_the_budget(tmp_path):
    def fail(*news):
        reports.append(news)
        raise RuntimeError("no terminal")

    reports = []
    release = measured(tmp_path, people(50, ["a", "b"], 3), fail)
    assert reports == REPORTS
    assert len(release.noisy) == 3


@pytest.mark.parametrize(("heartbeat", "lines"), [(10, []), (0, ["  estimating 50%", "  estimating 100%"])])
def test_where_there_is_no_terminal_a_line_is_written_now_and_then(capsys, heartbeat, lines):
    with progress_bar(heartbeat) as progress:
        for done in (3, 5, 11):
            progress("estimating", done, 10)
    assert [line for line in capsys.readouterr().err.splitlines() if line.strip()] == lines


def test_no_line_tells_how_long_private_rows_took_to_count(tmp_path, capsys):
    """However long that is: not even the next task's first report writes a line."""

    def slowly(task, done, total):
        if task == "counting":
            sleep(1.2)
        progress(task, done, total)

    with progress_bar(1) as progress:
        measured(tmp_path, people(50, ["a", "b"], 3), slowly)
    assert capsys.readouterr().err.strip() == ""
