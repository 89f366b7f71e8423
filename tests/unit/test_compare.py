"""The comparison's machinery: boxes that end what takes too much, kept results, tables that say what failed."""

import json
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITE = (
    "import json, sys; json.dump({'seconds': 1.0, 'GiB': 0.5, 'errors': [0.25], 'groups': [0]}, open(sys.argv[1], 'w'))"
)


@pytest.fixture
def box(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import compare_box

    return compare_box


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import compare_page

    return compare_page


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_box_hands_on_what_was_written(box):
    assert box.boxed(python(WRITE), box.Limits(60, 1))["errors"] == [0.25]


def test_a_box_ends_what_takes_too_long_with_all_that_it_started(box, tmp_path):
    child = f"import time, pathlib; time.sleep(3); pathlib.Path({str(tmp_path / 'late')!r}).touch()"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    found = box.boxed(python(code), box.Limits(1.0, 1))
    assert found["failed"] == "not done in 1 s"
    assert 1.0 <= found["seconds"] < 10
    time.sleep(3.5)
    assert not (tmp_path / "late").exists()


def test_a_box_ends_what_takes_too_much_memory(box):
    found = box.boxed(python("import time; held = bytearray(400 * 2**20); time.sleep(60)"), box.Limits(30, 0.2))
    assert found["failed"] == "more than 0.2 GiB"
    assert found["GiB"] > 0.2
    assert found["seconds"] < 30


def test_a_box_tells_why_a_command_failed(box):
    assert box.boxed(python("raise ValueError('no such thing')"), box.Limits(60, 1))["failed"] == (
        "ValueError: no such thing"
    )


def test_what_is_done_is_not_done_again(box, tmp_path):
    file = tmp_path / "kept.jsonl"
    limits = box.Limits(60, 1)
    first = box.Kept(file).run("job system 1 0", "code", python(WRITE), limits)
    again = box.Kept(file).run("job system 1 0", "code", python("raise SystemExit('run again')"), limits)
    other = box.Kept(file).run("job system 1 0", "new code", python("raise SystemExit('run again')"), limits)
    assert first == again
    assert other["failed"] == "run again"
    assert len(file.read_text().splitlines()) == 2


def test_a_failure_is_tried_again_only_with_more_to_spend(box, tmp_path):
    kept = box.Kept(tmp_path / "kept.jsonl")
    kept.run("key", "code", python("raise SystemExit('no')"), box.Limits(60, 1))
    assert kept.get("key", "code", box.Limits(60, 1))["failed"] == "no"
    assert kept.get("key", "code", box.Limits(30, 1)) is not None
    assert kept.get("key", "code", box.Limits(90, 1)) is None
    assert kept.get("key", "code", box.Limits(60, 2)) is None
    assert box.Kept(kept.file, again=True).get("key", "code", box.Limits(60, 1)) is None


def run(errors: list[float], groups: list[int] | None = None, **more: object) -> dict[str, object]:
    return {"seconds": 2.0, "GiB": 0.5, "errors": errors, "groups": groups or list(range(len(errors))), **more}


@pytest.fixture
def results():
    """Three systems on one job with three groups: one did all, one some, one none."""
    return {
        ("acs", "mwem", "1"): [run([0.6], [2], **{"own seconds": 0.7})],
        ("acs", "prade", "1"): [run([0.1, 0.2, 0.3]), run([0.1, 0.2, 0.5])],
        ("acs", "aim-dpmm", "1"): [{"failed": "not done in 600 s", "seconds": 600.4, "GiB": 3.0}],
    }


def test_tables_say_who_was_best_who_did_some_and_who_failed(page, box, results):
    text = page.tables(results, box.Limits())
    ours, theirs, failed = (text.index(word) for word in ("| prade", "| MWEM", "| AIM (dpmm)"))
    assert ours < theirs < failed
    assert "0.2333 ± 0.0471" in text
    assert "0.6000 <sup>1</sup>" in text
    assert "| MWEM | 1 | 1 of 3 | 0.6000 | 0.4000 |" in text  # prade in the same group: the mean of 0.3 and 0.5
    assert "* AIM (dpmm), eps 1: not done in 600 s" in text
    assert "| AIM (dpmm) | > 600 | 3.00 |" in text
    assert "| AIM (dpmm) | (eps, 1e-9) | no | failed |" in text


def test_the_page_keeps_what_was_written_by_hand(page, box, results, tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(page, "ROOT", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "docs" / "comparison.md")
    page.write_page({}, box.Limits())
    assert page.UNREAD in page.PAGE.read_text()
    page.PAGE.write_text(page.PAGE.read_text().replace(page.UNREAD, "AIM wins on nothing."))
    page.write_page(results, box.Limits())
    text = page.PAGE.read_text()
    assert "AIM wins on nothing." in text
    assert "0.2333 ± 0.0471" in text
    for name in ("comparison-epsilon.svg", "comparison-seconds.svg"):
        assert name in text
        assert (tmp_path / "docs" / name).stat().st_size > 1000


def test_seeds_go_on_as_long_as_one_run_s_time_holds_them(box, monkeypatch, tmp_path):
    import compare

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
        compare.seeds(kept, "small", "prade", "1", 3, box.Limits(100, 1))
        assert kept.runs == runs
