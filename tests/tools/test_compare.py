"""The comparison's machinery: boxes that end what takes too much, kept results, tables that say what failed."""

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import jobs
import results as kept_results
from compare import box, comparison, entrants, page
from compare.run import scored
from compare.systems import MOST_GROUPS, Drawn
from prade import Column, Schema, Unit
from prade.data.public.joint import Coded


def python(code):
    return [sys.executable, "-c", code]


def writing(**made):
    """A command that writes this result."""
    given = {"seconds": 1.0, "GiB": 0.5, "errors": [0.25], "groups": [0], **made}
    return python(f"import json, sys; json.dump({given}, open(sys.argv[1], 'w'))")


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """Results and plots in a folder of the test's own."""
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(kept_results, "RESULTS", tmp_path / "results")
    return tmp_path


def test_a_box_ends_what_takes_too_long_with_all_that_it_started(tmp_path):
    child = f"import time, pathlib; time.sleep(2); pathlib.Path({str(tmp_path / 'late')!r}).touch()"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    found = box.boxed(python(code), box.Limits(1.0, 1))
    assert found["failed"] == "not done in 1 s"
    assert 1.0 <= found["seconds"] < 10
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time is read from /proc")
BUSY = "import time\nwhile time.process_time() < {}: pass\n"


@linux
def test_a_box_ends_what_takes_too_much_processor_time_also_of_children_that_have_ended():
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY.format(0.3)!r}])\n"
    found = box.boxed(python(2 * child + BUSY.format(60)), box.Limits(60, 1, processor=0.8))
    assert found["failed"] == "not done in 0.8 s of processor time"
    assert 0.8 < found["processor seconds"] < 4


def test_a_box_ends_what_takes_too_much_memory():
    found = box.boxed(python("import time; held = bytearray(400 * 2**20); time.sleep(60)"), box.Limits(30, 0.2))
    assert found["failed"] == "more than 0.2 GiB"
    assert found["GiB"] > 0.2
    assert found["seconds"] < 30


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ValueError('no such thing')", "ValueError: no such thing"),
        ("pass", "without a result"),
        ("import sys; open(sys.argv[1], 'w').write('{')", "without a result"),
    ],
)
def test_a_box_tells_why_a_command_failed(code, why):
    assert why in box.boxed(python(code), box.Limits(60, 1))["failed"]


def test_what_is_done_is_not_done_again(tmp_path):
    file, limits = tmp_path / "kept.jsonl", box.Limits(60, 1)
    first = box.Kept(file).run("job system 1 0", "code", writing(), limits)
    file.write_text(file.read_text() + '{"key": "torn off, sta')
    again, other = (
        box.Kept(file).run("job system 1 0", code, python("raise SystemExit('run again')"), limits)
        for code in ("code", "new code")
    )
    assert first == again
    assert other["failed"] == "run again"
    closed = box.Kept(file, closed=True)
    assert set(closed.found) == {("job system 1 0", "code"), ("job system 1 0", "new code")}
    assert closed.run("job system 1 0", "new code", writing(), box.Limits(90, 1))["failed"] == "run again"
    assert closed.run("other", "code", writing(), limits) is None


CUT = {"of": 3, "late": True}  # a part was done for want of time, or as many groups as are taken


@pytest.mark.parametrize(
    ("command", "limits", "enough", "more", "again"),
    [
        (python("raise SystemExit('no')"), {}, [{"seconds": 30}], [{"seconds": 90}, {"gib": 2}], True),
        (python("raise SystemExit('no')"), {"processor": 30}, [{}], [{"processor": 40}, {"processor": math.inf}], True),
        (writing(**CUT), {"groups": 4}, [{}], [{"groups": 5}, {"seconds": 90}], True),
        (writing(**CUT), {}, [{"gib": 2}], [{"seconds": 90}], True),
        (writing(**{**CUT, "late": False}), {}, [{"seconds": 90}], [], False),
    ],
)
def test_what_failed_or_did_a_part_is_tried_again_only_with_more_to_spend(
    tmp_path, command, limits, enough, more, again
):
    def limited(**other):
        return box.Limits(**{"seconds": 60, "gib": 1, **limits, **other})

    file = tmp_path / "kept.jsonl"
    box.Kept(file).run("key", "code", command, limited())
    kept = box.Kept(file)
    assert all(kept.get("key", "code", limited(**each)) is not None for each in enough)
    assert not any(kept.get("key", "code", limited(**each)) for each in more)
    assert (box.Kept(file, again=True).get("key", "code", limited()) is None) == again


def run(errors, groups=None, of=3, **more):
    groups = list(range(len(errors))) if groups is None else groups
    result = {"seconds": 2.0, "GiB": 0.5, "errors": errors, "raw": errors, "biased": 0, "groups": groups, "of": of}
    return {**result, **more}


@pytest.fixture
def results():
    """Five systems on one job with three groups: one did all, one some, one none, one was not tried, one not run."""
    return {
        ("acs", "mwem", "1"): [
            run([0.6], [2], **{"own seconds": 0.7, "rehearsal seconds": 33.3, "settings": "rounds 5"}),
            run([0.8, 0.4], [1, 2], raw=[0.7, 0.1], biased=1),
        ],
        ("acs", "prade", "1"): [
            run([0.1, 0.2, 0.3], **{"rehearsal seconds": None}),
            run([0.1, 0.2, 0.5], raw=[0.1, 0.2, 0.1], biased=1),
            {"failed": "more than 12 GiB", "seconds": 9.0, "GiB": 12.1},
        ],
        ("acs", "aim-dpmm", "1"): [{"failed": "not done in 600 s", "seconds": 600.4, "GiB": 3.0}],
        ("acs", "mst-dpmm", "1"): [{"failed": "not tried: eps 0.1 took too long", "seconds": 0.0, "GiB": 0.0}],
        ("acs", "privbayes", "1"): [],
    }


@pytest.mark.parametrize(
    "said",
    [
        "0.2333 ± 0.0471 (2 of 3 runs) |",
        "0.6000 ± 0.0000 <sup>1</sup>",
        "* AIM (dpmm), eps 1: not done in 600 s",
        "| AIM (dpmm) | > 600 | - | 3.00 |",
        "| MST (dpmm) | (eps, 1e-9) | no | not tried |",
        "* MST (dpmm), eps 1: not tried: eps 0.1 took too long",
        "| PrivBayes | eps | no | not run |",
        "* prade, eps 1 (seed 2): more than 12 GiB",
        "| prade | 0.1667 (0.5) |",  # without the rule on numbers of rows: the mean of 0.6 / 3 and 0.4 / 3
        "| MWEM | 0.5000 (0.5) <sup>1</sup> |",
        # prade: (0.3 + 0.5) / 2 where the first run was, (0.25 + 0.35) / 2 where the second was; without the rule 0.2
        "| MWEM | 1 | 1 to 2 of 3 | 0.6000 | 0.3500 | 0.5000 | 0.2000 |",
        f"takes at most {page.MOST_GROUPS} groups",
        "| MWEM | 2.0 | 33 | 0.50 |",  # what was done beforehand
        "| prade | 2.0 | - | 12.10 |",  # the plan is older than the record of its time
        "* MWEM, eps 1 (seed 0): rounds 5",
    ],
)
def test_tables_tell_the_best_and_failed_from_not_tried_from_not_run(results, said):
    assert said in page.tables(results)


def test_results_are_kept_and_the_page_takes_them_without_losing_a_word(results, docs):
    page.keep_results(results)
    (kept,) = json.loads((docs / "results" / "compare-acs.json").read_text())
    assert kept["command"] == "make compare COMPARE=acs"
    assert kept["rows"][0][:4] == ["prade", "eps", "yes", "0.2333 ± 0.0471 (2 of 3 runs)"]
    filled = kept_results.filled("By hand.\n<!-- results: compare-acs -->\n<!-- /results -->\nAnd below.")
    assert "| MWEM | eps | yes | 0.6000 ± 0.0000* | 2.0 | 0.50 |" in filled
    assert filled.startswith("By hand.")
    assert filled.endswith("And below.")
    for name in ("comparison-epsilon.svg", "comparison-seconds.svg"):
        assert (docs / "docs" / name).stat().st_size > 1000


def test_results_are_made_of_what_was_done_and_nothing_is_run(docs, tmp_path, monkeypatch):
    kept = [
        {"key": "few prade 1 0", **run([0.1], of=1, limits=[600, 12])},
        {"key": "few prade 1 1", **run([0.3], of=1, limits=[600, 12])},
        {"key": "few prade 10 0", **run([0.5], of=1), "stamp": "older code"},
        {"key": "few mwem 0.1 0", "failed": "not done in 600 s", "seconds": 600.1, "GiB": 1.0, "limits": [600, 12]},
    ]
    lines = [{"stamp": comparison.SYSTEMS[each["key"].split()[1]].stamp, **each} for each in kept]
    file = tmp_path / "compare.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = file.read_text()
    monkeypatch.setattr(comparison, "OUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["compare", "--kept"])
    for module in (comparison, box):
        monkeypatch.setattr(module, "boxed", lambda *_: pytest.fail("something was run"))
    comparison.main()
    assert {each.name for each in (docs / "results").iterdir()} == {f"compare-{job}.json" for job in comparison.MAIN}
    (few,) = json.loads((docs / "results" / "compare-few.json").read_text())
    rows = {row[0]: row[1:6] for row in few["rows"]}
    assert rows["prade"] == ["eps", "yes", "not run", "0.2000 ± 0.1414", "not run"]
    assert rows["MWEM"] == ["eps", "yes", "failed", "not tried", "not tried"]
    assert rows["PrivBayes"] == ["eps", "no", "not run", "not run", "not run"]
    assert file.read_text() == before


def test_a_run_is_scored_with_the_rule_and_without_group_by_group():
    schema = Schema([Column(name, "categorical", values=[0, 1]) for name in "AB"])
    zeros = {name: np.zeros(600, np.int64) for name in "AB"}
    place, groups = np.repeat([0, 1], 300), MOST_GROUPS + 1
    job = jobs.Job("job", schema, None, None, {"PLACE": list(range(groups))}, ("PLACE",), Unit(1))
    vars(job)["truth"] = Coded(schema, zeros), place
    few = Coded(schema, {"A": np.zeros(310, np.int64), "B": np.arange(310) // 10 % 2}), np.repeat([0, 1], [300, 10])
    found = scored(job, Drawn(few, 1.0, done=[0, 1]))
    assert found["errors"] == [1.0, 2.0]  # 290 rows are missing in the second place
    assert found["raw"] == [1.0, 0.0]
    assert (found["biased"], found["of"], found["late"]) == (1, groups, True)
    some = scored(job, Drawn(None, 1.0, done=list(range(MOST_GROUPS)), errors=np.arange(groups) / 100))
    assert some["raw"] == some["errors"] == (np.arange(MOST_GROUPS) / 100).tolist()
    assert (some["biased"], some["late"]) == (0, False)


def test_stamps_follow_what_decides_a_result_and_nothing_else(monkeypatch):
    ours, peer = comparison.SYSTEMS["prade"], comparison.SYSTEMS["mst-opendp"]
    before = ours.stamp, peer.stamp

    def changed():
        return ours.stamp != before[0], peer.stamp != before[1]

    plain = Path.read_bytes

    expected = {"compare/run.py": (True, True), "compare/jobs.py": (True, True)}
    expected |= dict.fromkeys(("compare/gem.py", "baselines/algorithm_2.py"), (True, False))
    expected |= dict.fromkeys(("scoring/score.py", "read/coding.py", "opendp_peer.py"), (False, True))
    expected |= dict.fromkeys(("compare/page.py", "reporting/outlines.py", "dpmm_peer.py"), (False, False))
    for file, both in expected.items():  # prade's own code is in jobs.code(), which is made once
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda each, file=file: plain(each) + b"#" * each.match(file))
            entrants._hash.cache_clear()
            assert (file, *changed()) == (file, *both)
    entrants._hash.cache_clear()
    assert changed() == (False, False)
