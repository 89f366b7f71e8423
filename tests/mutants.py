"""Break one privacy-critical line at a time, and see that the tests notice.

    .venv/bin/python tests/mutants.py [--only TEXT] [--jobs N]

`mutants.toml` names the mutants: a file of the package, text that stands in it exactly once, what to put there instead,
and the tests that must fail then. Each runs in a copy of the project in a temporary folder, the project itself is never
touched. First the named tests run on an unchanged copy and must pass. A mutant is

    killed      its tests failed
    survived    they passed: a test is missing
    equivalent  they passed, and `equivalent` says why no test can tell it from the original

The table is written for the documentation, in Markdown. The exit code is 1 when a mutant survives, when its text is not
found exactly once or its tests cannot run, and when a mutant that is said to be equivalent is killed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "pyproject.toml")
PASSED, FAILED = 0, 1  # exit codes of pytest; all others mean that the tests could not run
PATIENCE = 900  # seconds, after which a mutant that hangs is taken for noticed
FINE = ("killed", "equivalent")


@dataclass(frozen=True)
class Mutant:
    """One change of one file, and who is to notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def apply(self, root: Path) -> str:
        """Make the change in a copy of the project; what is wrong with it, if anything."""
        path = root / "src" / "prade" / self.file
        text = path.read_text() if path.is_file() else ""
        if (found := text.count(self.old)) != 1:
            return f"its text stands {found} times in {self.file}, expected once"
        if self.old == self.new:
            return "it changes nothing"
        path.write_text(text.replace(self.old, self.new))
        return ""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    verdict: str
    remark: str
    seconds: float

    def line(self) -> str:
        """A row of the table."""
        cells = (self.mutant.name, f"`{self.mutant.file}`", self.verdict, self.remark, f"{self.seconds:.0f}")
        return f"| {' | '.join(cells)} |"


def read_mutants(path: Path) -> list[Mutant]:
    """The mutants of a file; their names differ."""
    found = [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in tomllib.loads(path.read_text())["mutant"]]
    names = [mutant.name for mutant in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"two mutants have the name {twice[0]!r}")
    return found


def copy_to(folder: Path) -> Path:
    """A copy of the project, with what was compiled for it: only the changed file is compiled anew."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run_tests(root: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests of a copy until one fails; the exit code of pytest, and the test that failed or the last words."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", *tests]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return FAILED, f"hung for {PATIENCE} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    failed = [line.split()[1] for line in lines if line.startswith("FAILED ")]
    return done.returncode, failed[0].partition("::")[2].partition("[")[0] if failed else "; ".join(lines[-3:])


def judge(mutant: Mutant) -> Outcome:
    """Make the mutant in a copy, and run its tests."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = copy_to(Path(folder))
        if wrong := mutant.apply(root):
            return Outcome(mutant, "NOT MADE", wrong, 0)
        code, words = run_tests(root, mutant.tests)
    seconds = time.monotonic() - start
    if code == PASSED:
        verdict = "equivalent" if mutant.equivalent else "SURVIVED"
        return Outcome(mutant, verdict, mutant.equivalent, seconds)
    if code != FAILED:
        return Outcome(mutant, "NOT RUN", words, seconds)
    return Outcome(mutant, "NOT EQUIVALENT" if mutant.equivalent else "killed", f"`{words}`", seconds)


def main() -> int:
    """Judge all mutants, or some; 0 if the tests notice them all."""
    parser = argparse.ArgumentParser(description="Break one privacy-critical line at a time, and run its tests.")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants with this text in their name or file")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many at a time (default 1)")
    given = parser.parse_args()
    everything = read_mutants(Path(__file__).with_suffix(".toml"))
    mutants = [mutant for mutant in everything if given.only in mutant.name or given.only in mutant.file]
    if not mutants:
        raise SystemExit(f"no mutant has {given.only!r} in its name or file")
    with tempfile.TemporaryDirectory(prefix="original-") as folder:
        code, words = run_tests(copy_to(Path(folder)), list(dict.fromkeys(t for each in mutants for t in each.tests)))
    if code != PASSED:
        raise SystemExit(f"the tests do not pass without any mutant: {words}")
    print("| what is broken | where | outcome | by | s |\n|---|---|---|---|---|", flush=True)
    outcomes = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for outcome in pool.map(judge, mutants):
            print(outcome.line(), flush=True)
            outcomes.append(outcome)
    bad = [outcome.mutant.name for outcome in outcomes if outcome.verdict not in FINE]
    print(f"\n{len(outcomes)} mutants, {len(outcomes) - len(bad)} killed or equivalent", *bad, sep="\n- ")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
