"""The comparison's machinery: boxes that end what takes too much, kept results, tables that say what failed."""

import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import compare.jobs
import jobs
from compare import box, comparison, entrants, page, peers
from compare.run import scored
from compare.systems import MOST_GROUPS, Drawn, Task
from prade import Column, Schema, Unit
from prade.data.public.joint import Coded

WRITE = (
    "import json, sys; json.dump({'seconds': 1.0, 'GiB': 0.5, 'errors': [0.25], 'groups': [0]}, open(sys.argv[1], 'w'))"
)


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """The page and its plots in a folder of the test's own."""
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "docs" / "comparison.md")
    return tmp_path / "docs"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_box_hands_on_what_was_written():
    assert box.boxed(python(WRITE), box.Limits(60, 1))["errors"] == [0.25]


def test_a_box_ends_what_takes_too_long_with_all_that_it_started(tmp_path):
    child = f"import time, pathlib; time.sleep(3); pathlib.Path({str(tmp_path / 'late')!r}).touch()"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    found = box.boxed(python(code), box.Limits(1.0, 1))
    assert found["failed"] == "not done in 1 s"
    assert 1.0 <= found["seconds"] < 10
    time.sleep(3.5)
    assert not (tmp_path / "late").exists()


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time is read from /proc")
BUSY = "import time\nwhile time.process_time() < {}: pass\n"


@linux
def test_a_box_ends_what_takes_too_much_processor_time_also_of_children_that_have_ended():
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY.format(0.6)!r}])\n"
    found = box.boxed(python(2 * child + BUSY.format(60)), box.Limits(60, 1, processor=1.5))
    assert found["failed"] == "not done in 1.5 s of processor time"
    assert 1.5 < found["processor seconds"] < 4


@linux
def test_waiting_takes_no_processor_time():
    found = box.boxed(python(f"import time; time.sleep(1.5)\n{WRITE}"), box.Limits(60, 1, processor=1.0))
    assert found["errors"] == [0.25]
    assert found["processor seconds"] < 1.0


def test_a_box_tells_how_far_a_command_got():
    say = f"import os, sys; open(os.environ[{box.PROGRESS!r}], 'a').write('round 1\\nround 2\\n')\n"
    assert box.boxed(python(f"{say}sys.exit('too hard')"), box.Limits(60, 1))["progress"] == "round 2"
    assert box.boxed(python(say + WRITE), box.Limits(60, 1))["progress"] == "round 2"
    assert "progress" not in box.boxed(python(WRITE), box.Limits(60, 1))


def test_a_box_ends_what_takes_too_much_memory():
    found = box.boxed(python("import time; held = bytearray(400 * 2**20); time.sleep(60)"), box.Limits(30, 0.2))
    assert found["failed"] == "more than 0.2 GiB"
    assert found["GiB"] > 0.2
    assert found["seconds"] < 30


def test_a_box_tells_why_a_command_failed():
    assert box.boxed(python("raise ValueError('no such thing')"), box.Limits(60, 1))["failed"] == (
        "ValueError: no such thing"
    )


@pytest.mark.parametrize("code", ["pass", "import sys; open(sys.argv[1], 'w').write('{')"])
def test_a_box_is_told_when_there_is_no_result(code):
    assert "without a result" in box.boxed(python(code), box.Limits(60, 1))["failed"]


def test_what_is_done_is_not_done_again(tmp_path):
    file = tmp_path / "kept.jsonl"
    limits = box.Limits(60, 1)
    first = box.Kept(file).run("job system 1 0", "code", python(WRITE), limits)
    again = box.Kept(file).run("job system 1 0", "code", python("raise SystemExit('run again')"), limits)
    other = box.Kept(file).run("job system 1 0", "new code", python("raise SystemExit('run again')"), limits)
    assert first == again
    assert other["failed"] == "run again"
    assert len(file.read_text().splitlines()) == 2


def test_a_failure_is_tried_again_only_with_more_to_spend(tmp_path):
    kept = box.Kept(tmp_path / "kept.jsonl")
    kept.run("key", "code", python("raise SystemExit('no')"), box.Limits(60, 1))
    assert kept.get("key", "code", box.Limits(60, 1))["failed"] == "no"
    assert kept.get("key", "code", box.Limits(30, 1)) is not None
    assert kept.get("key", "code", box.Limits(90, 1)) is None
    assert kept.get("key", "code", box.Limits(60, 2)) is None
    assert box.Kept(kept.file, again=True).get("key", "code", box.Limits(60, 1)) is None


def test_a_failure_in_little_processor_time_is_tried_again_with_more(tmp_path):
    kept = box.Kept(tmp_path / "kept.jsonl")
    kept.run("key", "code", python("raise SystemExit('no')"), box.Limits(60, 1, processor=30))
    kept = box.Kept(kept.file)
    assert kept.get("key", "code", box.Limits(60, 1, processor=30)) is not None
    assert kept.get("key", "code", box.Limits(60, 1, processor=40)) is None
    assert kept.get("key", "code", box.Limits(60, 1)) is None


def test_what_was_allowed_few_groups_is_tried_again_when_more_are(tmp_path):
    kept = box.Kept(tmp_path / "kept.jsonl")
    made = {"seconds": 1.0, "GiB": 0.5, "errors": [0.25], "groups": [0], "of": 20, "late": True}
    few = box.Limits(60, 1, groups=4)
    kept.run("key", "code", python(f"import json, sys; json.dump({made}, open(sys.argv[1], 'w'))"), few)
    assert box.Kept(kept.file).get("key", "code", few) is not None
    assert box.Kept(kept.file).get("key", "code", box.Limits(60, 1, groups=5)) is None


def job_of_places(places: int) -> jobs.Job:
    """A job with so many places, of three rows each, in memory."""
    schema = Schema([Column(name, "categorical", values=[0, 1]) for name in "AB"])
    return jobs.Job("job", schema, None, None, {"PLACE": list(range(places))}, ("PLACE",), Unit(1))


def test_a_system_takes_the_first_groups_of_an_order_that_does_not_depend_on_how_many():
    many, few = (list(Task(job_of_places(20), "1", 0, 60.0, most).in_turn()) for most in (MOST_GROUPS, 4))
    assert len(many) == MOST_GROUPS == 12
    assert few == many[:4]


def test_a_place_that_a_peer_has_done_is_kept(tmp_path, monkeypatch):
    job, made = job_of_places(2), []

    def peer_rows(package, algorithm, schema, coded, task):
        made.append((package, algorithm, task.epsilon, len(coded)))
        return coded.codes, {"fit": 1.5, "draw": 0.5, "GiB": 0.25, "processor": 1.0}

    monkeypatch.setattr(peers, "OUT", tmp_path)
    monkeypatch.setattr(peers, "peer_rows", peer_rows)
    codes = {name: np.array([0, 1, 1]) for name in "AB"}
    first, other = Coded(job.schema, codes), Coded(job.schema, {**codes, "B": np.array([0, 0, 1])})
    for coded, algorithm, epsilon in (
        (first, "mst", "1"), (first, "mst", "1"), (other, "mst", "1"), (first, "aim", "1"), (first, "mst", "10"),
    ):  # fmt: skip
        rows, took = peers.kept_rows("dpmm", algorithm, job.schema, coded, Task(job, epsilon, 0, 60.0))
        assert {name: code.tolist() for name, code in rows.items()} == {
            name: code.tolist() for name, code in coded.codes.items()
        }
        assert took["draw"] == 0.5
    assert made == [("dpmm", *rest, 3) for rest in (("mst", "1"), ("mst", "1"), ("aim", "1"), ("mst", "10"))]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], box.Limits(600, 12)),
        (["--minutes", "20"], box.Limits(1200, 12)),
        (["--processor-minutes", "60"], box.Limits(5 * 3600, 12, 3600)),
        (["--processor-minutes", "60", "--minutes", "90", "--gib", "4"], box.Limits(5400, 4, 3600)),
        (["--groups", "4"], box.Limits(600, 12, groups=4)),
    ],
)
def test_limits_of_a_run_are_given_on_the_command_line(given, expected, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(comparison, "OUT", tmp_path)
    monkeypatch.setattr(comparison, "compared", lambda *all_given: seen.append(all_given[5]) or {})
    monkeypatch.setattr(comparison.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["compare", "small", "--systems", "histogram", *given])
    comparison.main()
    assert seen == [expected]


def test_a_line_about_a_result_says_how_far_it_got_and_on_how_much_processor_time():
    failed = {"failed": "not done in 60 s", "seconds": 60.4, "GiB": 1.25, "processor seconds": 41.2}
    assert comparison.told(failed) == "not done in 60 s: 60.4 s, 1.25 GiB, 41 s of processor time"
    assert comparison.told({**failed, "progress": "in round 6"}).endswith(", 41 s of processor time, in round 6")
    assert comparison.told(run([0.1, 0.3])) == "error 0.2000 of 2, 2.0 s, 0.50 GiB"


def test_what_did_a_part_for_want_of_time_is_tried_again_with_more_of_it(tmp_path):
    kept = box.Kept(tmp_path / "kept.jsonl")
    for key, late in (("cut", True), ("as many as are taken", False)):
        made = {"seconds": 1.0, "GiB": 0.5, "errors": [0.25], "groups": [0], "of": 3, "late": late}
        kept.run(key, "code", python(f"import json, sys; json.dump({made}, open(sys.argv[1], 'w'))"), box.Limits(60, 1))
    assert kept.get("cut", "code", box.Limits(60, 2)) is not None
    assert kept.get("cut", "code", box.Limits(90, 1)) is None
    assert kept.get("as many as are taken", "code", box.Limits(90, 1)) is not None
    again = box.Kept(kept.file, again=True)
    assert again.get("cut", "code", box.Limits(60, 1)) is None
    assert again.get("as many as are taken", "code", box.Limits(60, 1)) is not None


def test_a_line_that_was_torn_off_is_skipped_and_spoils_no_other(tmp_path):
    file, limits = tmp_path / "kept.jsonl", box.Limits(60, 1)
    box.Kept(file).run("whole", "code", python(WRITE), limits)
    file.write_text(file.read_text() + '{"key": "torn", "sta')
    box.Kept(file).run("next", "code", python(WRITE), limits)
    assert set(box.Kept(file).found) == {("whole", "code"), ("next", "code")}


def test_a_closed_store_runs_nothing_and_takes_what_is_there(tmp_path):
    file = tmp_path / "kept.jsonl"
    box.Kept(file).run("key", "code", python("raise SystemExit('no')"), box.Limits(60, 1))
    closed = box.Kept(file, closed=True)
    assert closed.run("key", "code", python(WRITE), box.Limits(90, 1))["failed"] == "no"
    assert closed.run("other", "code", python(WRITE), box.Limits(90, 1)) is None


def run(errors: list[float], groups: list[int] | None = None, of: int = 3, **more: object) -> dict[str, object]:
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


def test_tables_say_who_was_best_who_did_some_and_who_failed(results):
    text = page.tables(results)
    ours, theirs, failed = (text.index(word) for word in ("| prade", "| MWEM", "| AIM (dpmm)"))
    assert ours < theirs < failed
    assert "0.2333 ± 0.0471" in text
    assert "0.6000 ± 0.0000 <sup>1</sup>" in text
    assert "* AIM (dpmm), eps 1: not done in 600 s" in text
    assert "| AIM (dpmm) | > 600 | - | 3.00 |" in text
    assert "| AIM (dpmm) | (eps, 1e-9) | no | failed |" in text


def test_tables_tell_failed_from_not_tried_from_not_run(results):
    text = page.tables(results)
    assert "| MST (dpmm) | (eps, 1e-9) | no | not tried |" in text
    assert "| MST (dpmm) | - | - | 0.00 |" in text
    assert "* MST (dpmm), eps 1: not tried: eps 0.1 took too long" in text
    assert "| PrivBayes | eps | no | not run |" in text
    assert "| PrivBayes | - | - | - |" in text


def test_a_failure_of_a_later_seed_is_told(results):
    text = page.tables(results)
    assert "0.2333 ± 0.0471 (2 of 3 runs) |" in text
    assert "* prade, eps 1 (seed 2): more than 12 GiB" in text


def test_tables_have_the_error_without_the_rule_on_numbers_of_rows(results):
    text = page.tables(results)
    assert "| prade | 0.1667 (0.5) |" in text  # the mean of 0.6 / 3 and 0.4 / 3
    assert "| MWEM | 0.5000 (0.5) <sup>1</sup> |" in text
    assert "| AIM (dpmm) | failed |" in text
    ungrouped = {("adult", "prade", "1"): [run([0.1], of=1)]}
    assert "without the rule" not in page.tables(ungrouped)
    ungrouped["adult", "prade", "1"] = [run([2.0], of=1, raw=[0.1], biased=1)]
    assert "| prade | 0.1000 (1) |" in page.tables(ungrouped)


def test_who_did_some_groups_stands_beside_prade_in_the_groups_of_each_of_its_runs(results):
    text = page.tables(results)
    # prade: (0.3 + 0.5) / 2 where the first run was, (0.25 + 0.35) / 2 where the second was; without the rule 0.2, 0.2
    assert "| MWEM | 1 | 1 to 2 of 3 | 0.6000 | 0.3500 | 0.5000 | 0.2000 |" in text
    assert f"takes at most {page.MOST_GROUPS} groups" in text
    assert "three quarters of its time" in text
    del results["acs", "prade", "1"]
    assert "| MWEM | 1 | 1 to 2 of 3 | 0.6000 | - | 0.5000 | - |" in page.tables(results)


def test_tables_say_what_was_done_beforehand(results):
    text = page.tables(results)
    assert "| MWEM | 2.0 | 33 | 0.50 |" in text
    assert "| prade | 2.0 | - | 12.10 |" in text  # the plan is older than the record of its time
    assert "| prade | 2.0 | none | 0.50 |" in page.tables({("acs", "prade", "1"): [run([0.1])]})
    assert "* MWEM, eps 1 (seed 0): rounds 5" in text


def test_the_page_states_the_limits_that_its_results_were_made_under(results):
    assert page.allowed({}) == page.allowed(results) == "with limits on time and memory"
    made = {
        ("acs", "prade", "1"): [run([0.1], limits=[600, 12])],
        ("nist", "prade", "1"): [run([0.1], limits=[600, 12])],
    }
    assert page.allowed(made) == "10 min and 12 GiB"
    made["acs", "mwem", "1"] = [run([0.1], limits=[1800, 12]), run([0.1], limits=[900, 12])]
    assert page.allowed(made) == "10 to 30 min and 12 GiB (acs); 10 min and 12 GiB (nist)"


def test_the_page_keeps_what_was_written_by_hand(results, docs):
    page.write_page({})
    assert page.UNREAD in page.PAGE.read_text()
    page.PAGE.write_text(page.PAGE.read_text().replace(page.UNREAD, "AIM wins on nothing."))
    page.write_page(results)
    text = page.PAGE.read_text()
    assert "AIM wins on nothing." in text
    assert "0.2333 ± 0.0471" in text
    assert "one core of its own" in text
    assert "was not tried at larger ones" in text
    for name in ("comparison-epsilon.svg", "comparison-seconds.svg"):
        assert name in text
        assert (docs / name).stat().st_size > 1000


def test_the_page_in_the_documentation_has_the_generator_s_words():
    text = page.PAGE.read_text()
    for sentence in re.split(r"\{\w+\}", page.HEAD):
        assert sentence.strip() in text
    assert text.endswith(f"## Settings\n\n{page.settings()}\n")
    assert all(page.TITLES[job] in text for job in ("acs", "nist", "adult", "few"))


def test_plots_have_open_marks_where_not_all_groups_were_done(results, docs, monkeypatch):
    seen = []
    monkeypatch.setattr(page, "_legend", lambda figure, panels: seen.extend(panels))
    page.write_page(results)
    lines, scatters = ({each.get_label(): each for each in found} for found in (seen[0].lines, seen[1].collections))
    hollow = [line for line in seen[0].lines if line.get_markerfacecolor() == "white"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in hollow] == [([1.0], [pytest.approx(0.6)])]
    assert hollow[0].get_color() == lines["MWEM"].get_color()
    assert scatters["MWEM"].get_facecolors().tolist() == [[1, 1, 1, 1]]
    assert scatters["prade"].get_facecolors().tolist() == [[0, 0, 0, 1]]
    assert "Open marks" in page.PAGE.read_text()


def test_the_page_is_made_of_what_is_kept_and_nothing_is_run(docs, tmp_path, monkeypatch):
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
    monkeypatch.setattr(sys, "argv", ["compare", "--page"])
    for module in (comparison, box):
        monkeypatch.setattr(module, "boxed", lambda *_: pytest.fail("something was run"))
    comparison.main()
    text = page.PAGE.read_text()
    assert "| prade | eps | yes | not run | 0.2000 ± 0.1414 | not run |" in text
    assert "| MWEM | eps | yes | failed | not tried | not tried |" in text
    assert "| PrivBayes | eps | no | not run | not run | not run |" in text
    assert "10 min and 12 GiB" in text
    tasks = [
        (job, each) for job in comparison.MAIN for each in comparison.SYSTEMS.values()
        if job in comparison.PLACED or not each.each_place
    ]  # fmt: skip
    cells = len(tasks) * len(comparison.EPSILONS)
    assert f'"Not run", {cells - 4} of {cells} cells' in text
    assert all(page.TITLES[job] in text for job in comparison.MAIN)
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


def test_the_histogram_has_a_job_that_it_can_do(tmp_path, monkeypatch):
    monkeypatch.setattr(compare.jobs, "OUT", tmp_path)
    monkeypatch.setattr(compare.jobs, "PERSONS", 500)
    few, adult = comparison.JOBS["few"](), comparison.JOBS["adult"]()
    assert "few" in comparison.MAIN
    assert few.private == adult.private
    assert np.prod(few.schema.shape(few.schema.coded)) <= 20_000


def test_stamps_follow_what_decides_a_result_and_nothing_else(monkeypatch):
    ours, peer = comparison.SYSTEMS["prade"], comparison.SYSTEMS["mst-opendp"]
    before = ours.stamp, peer.stamp

    def changed() -> tuple[bool, bool]:
        return ours.stamp != before[0], peer.stamp != before[1]

    plain = Path.read_bytes

    names = ("asking", "gem", "methods", "systems", "rehearsal", "peers", "jam", "box")
    own = [*(f"compare/{name}.py" for name in names), "baselines/algorithm_2.py"]
    expected = {
        **dict.fromkeys(("compare/run.py", "compare/jobs.py"), (True, True)),
        **dict.fromkeys((*own, "benchmarks/jobs.py", "benchmarks/common.py"), (True, False)),
        **dict.fromkeys(
            ("scoring/score.py", "examples/census.py", "data/encoding.py", "opendp_peer.py"), (False, True)
        ),
        **dict.fromkeys(
            ("compare/page.py", "compare/entrants.py", "reporting/outlines.py", "dpmm_peer.py"), (False, False)
        ),
    }
    for file, both in expected.items():  # prade's own code is in jobs.code(), which is made once
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda each, file=file: plain(each) + b"#" * each.match(file))
            entrants._hash.cache_clear()
            assert (file, *changed()) == (file, *both)
    entrants._hash.cache_clear()
    assert changed() == (False, False)
    for module, name, both in (
        (jobs, "code", (True, False)),  # prade
        (entrants, "version", (True, False)),  # mbi
        (entrants.inspect, "getsource", (False, True)),  # what a peer is given
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *_: "new")
            assert changed() == both


def test_prade_s_results_depend_on_all_rooms_but_those_that_show_them_and_other_methods(monkeypatch):
    assert all(jobs.sources(room) for room in (jobs.ALGORITHM_2, *jobs.ONLY_SHOW, "data", "scoring"))
    before, plain = jobs.code(), Path.read_bytes
    expected = {
        **dict.fromkeys(("measuring/run.py", "core/numbers.py", "tuning/tune.py", "prade/synthesizer.py"), True),
        **dict.fromkeys(("cli/main.py", "reporting/report.py", "baselines/algorithm_2.py"), False),
    }
    for file, changed in expected.items():
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda each, file=file: plain(each) + b"#" * each.match(file))
            assert (jobs.code.__wrapped__() != before) == changed, file


def test_a_plan_s_time_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "OUT", tmp_path)
    made = jobs.kept("job", "plan 1", lambda: time.sleep(0.05) or {"plan": "x"})
    assert made["took"] >= 0.05
    assert jobs.kept("job", "plan 1", lambda: pytest.fail("made again")) == made


def test_seeds_go_on_as_long_as_one_run_s_time_holds_them():
    class Counted:
        def __init__(self, seconds: float) -> None:
            self.seconds, self.runs = seconds, 0

        def get(self, *_: object) -> None:
            return None

        def run(self, *_: object) -> dict[str, object]:
            self.runs += 1
            return json.loads(json.dumps({**run([0.1]), "seconds": self.seconds}))

    for seconds, runs in ((10.0, 3), (40.0, 2), (90.0, 1)):
        kept = Counted(seconds)
        comparison.seeds(kept, "small", "prade", "1", 3, box.Limits(100, 1), None)
        assert kept.runs == runs
