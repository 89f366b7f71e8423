"""Break one privacy-critical line at a time, and see that the tests notice.

    .venv/bin/python tests/mutants.py [--only TEXT] [--jobs N] [--check]

`mutants.toml` names the mutants, by area: a file of the package, text that stands in it exactly once, what to put there
instead, and the tests that must fail then. `--check` only looks whether all of them can be made and have their tests;
`tests/tools/test_mutants.py` does that too, so that the list keeps up with the code.

Each runs in a copy of the project in a temporary folder, the project itself is never touched. First the named tests run
on an unchanged copy and must pass. A mutant is

    killed      its tests failed
    survived    they passed: a test is missing
    equivalent  they passed, and `equivalent` says why no test can tell it from the original

One row per mutant, and then one per area for the documentation, are written in Markdown. The exit code is 1 when a
mutant survives, when its text is not found exactly once or its tests cannot run, and when a mutant that is said to be
equivalent is killed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")
PASSED, FAILED = 0, 1  # exit codes of pytest; all others mean that the tests could not run
PATIENCE = 900  # seconds, after which a mutant that hangs is taken for noticed
FINE = ("killed", "equivalent")


@dataclass(frozen=True)
class Mutant:
    """One change of one file, and who is to notice it."""

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def fault(self, root):
        """Why it cannot be made, or its tests not be run, in this copy of the project; nothing if it can."""
        path = root / "src" / "prade" / self.file
        text = path.read_text() if path.is_file() else ""
        if (found := text.count(self.old)) != 1:
            return f"its text stands {found} times in {self.file}, expected once"
        if self.old == self.new:
            return "it changes nothing"
        for test in self.tests:
            file, _, name = test.partition("::")
            known = (root / file).read_text() if (root / file).is_file() else ""
            if not known or (name and not re.search(rf"^ *def {re.escape(name)}\(", known, re.MULTILINE)):
                return f"there is no test {test}"
        return "" if self.tests else "it names no test"

    def apply(self, root):
        """Make the change in a copy of the project."""
        path = root / "src" / "prade" / self.file
        path.write_text(path.read_text().replace(self.old, self.new))


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    verdict: str
    remark: str
    seconds: float

    def line(self):
        """A row of the table."""
        cells = (self.mutant.name, f"`{self.mutant.file}`", self.verdict, self.remark, f"{self.seconds:.0f}")
        return f"| {' | '.join(cells)} |"


def read_mutants(path):
    """The mutants of a file; their names differ."""
    areas = tomllib.loads(path.read_text())
    found = [
        Mutant(**{**entry, "area": area, "tests": tuple(entry["tests"])}) for area in areas for entry in areas[area]
    ]
    names = [mutant.name for mutant in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"two mutants have the name {twice[0]!r}")
    return found


def faults(mutants, root=ROOT):
    """What is wrong with mutants as they are written, one line for each."""
    return [f"{mutant.name}: {fault}" for mutant in mutants if (fault := mutant.fault(root))]


def summary(outcomes):
    """A table with one row per area: how many mutants, and what became of them."""
    lines = ["| area | mutants | killed | equivalent | survivors |", "|---|---|---|---|---|"]
    areas = list(dict.fromkeys(outcome.mutant.area for outcome in outcomes))
    for area in [*areas, "all"]:
        verdicts = [outcome.verdict for outcome in outcomes if area in (outcome.mutant.area, "all")]
        counts = [len(verdicts), *(verdicts.count(each) for each in FINE)]
        lines.append(f"| {area} | {' | '.join(map(str, [*counts, counts[0] - sum(counts[1:])]))} |")
    return "\n".join(lines)


def copy_to(folder):
    """A copy of the project, with what was compiled for it: only the changed file is compiled anew."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run_tests(root, tests):
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


def judge(mutant):
    """Make the mutant in a copy, and run its tests."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = copy_to(Path(folder))
        mutant.apply(root)
        code, words = run_tests(root, mutant.tests)
    seconds = time.monotonic() - start
    if code == PASSED:
        verdict = "equivalent" if mutant.equivalent else "SURVIVED"
        return Outcome(mutant, verdict, mutant.equivalent, seconds)
    if code != FAILED:
        return Outcome(mutant, "NOT RUN", words, seconds)
    return Outcome(mutant, "NOT EQUIVALENT" if mutant.equivalent else "killed", f"`{words}`", seconds)


def main():
    """Judge all mutants, or some; 0 if the tests notice them all."""
    parser = argparse.ArgumentParser(description="Break one privacy-critical line at a time, and run its tests.")
    parser.add_argument("--only", default="", metavar="TEXT", help="only those with this text in area, name or file")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many at a time (default 1)")
    parser.add_argument("--check", action="store_true", help="run nothing, only see that all mutants can be made")
    given = parser.parse_args()
    everything = read_mutants(Path(__file__).with_suffix(".toml"))
    mutants = [each for each in everything if any(given.only in text for text in (each.area, each.name, each.file))]
    if not mutants:
        raise SystemExit(f"no mutant has {given.only!r} in its area, name or file")
    if wrong := faults(mutants):
        raise SystemExit("\n".join(wrong))
    if given.check:
        print(f"{len(mutants)} mutants can be made")
        return 0
    start = time.monotonic()
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
    minutes = (time.monotonic() - start) / 60
    print(f"\n{summary(outcomes)}\n\n{minutes:.0f} minutes; survivors: {len(bad)}", *bad, sep="\n- ")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
