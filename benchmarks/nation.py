"""An invented nation from file to file: what each stage uses, with one worker and with several, and how that grows.

Half of the states of an invented nation have published their rows (`invented_nation`), and stand in for a census: the
rows of the others are private. Every stage is a command of its own, in processes of its own, so that its memory is its
own. Finished stages are kept in benchmarks/out, so that an interrupted benchmark goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from common import OUT, need_data, report, table
from costs_on_paper import Size, cost_table, exponents
from invented_nation import LEVELS, Nation, nation
from jobs import Job, kept
from prade import Plan, Schema, Unit
from prade.core.execution import cores
from prade.data.public.joint import encode
from prade.data.read.tables import read_table, write_table
from prade.release.derived_files import SUPPORT
from results import machine
from used import Used, measured

PRADE = [sys.executable, "-m", "prade"]
STAGES = ("plan", "measure", "estimate", "sample", "report")
NATION = Size(groups=240_000, rows=3_400_000, parts=36)  # block groups, and the rows of one year of the public survey
PEOPLE = 330_000_000
SMALLER = 400, 500_000, 16  # places, rows and states of the nation whose runs tell how things grow
TINY = 16, 8_000, 4  # of one that shows what every job needs


@dataclass(frozen=True)
class Run:
    """One job: the files of a nation, perhaps with fewer places, public rows or columns, and a folder for its own."""

    name: str
    files: Nation
    folder: Path
    epsilon: str = "1"
    effort: float = 0.0  # of tuning; without any, the plan is the simplest one

    def key(self, stage: str, workers: int) -> str:
        """What a finished stage is kept under."""
        return f"{self.name} eps {self.epsilon} tuned {self.effort:g}: {stage}, {workers} workers"

    def used(self, stage: str, workers: int) -> Used:
        """What a stage uses; it is run unless that was done before."""
        found = kept("nation", self.key(stage, workers), lambda: asdict(self._run(stage, workers)))
        return Used(found["seconds"], found["processor"], found["gib"])

    def plan(self, workers: int) -> Path:
        """The file of the plan that this many workers have found."""
        return self.folder / f"plan-{workers}.toml"

    def release(self, workers: int) -> Path:
        """The folder of the release that this many workers estimate."""
        return self.folder / f"release-{workers}"

    def _run(self, stage: str, workers: int) -> Used:
        self.folder.mkdir(parents=True, exist_ok=True)
        release = self.release(workers)
        if stage == "estimate":  # from the same measured answers for any number of workers
            shutil.rmtree(release, ignore_errors=True)
            shutil.copytree(self.folder / "measured", release)
        commands = {
            "plan": ["plan", *self._task(), *self._tuning(), "-o", str(self.plan(workers)), "--force"],
            "measure": ["measure", str(self.plan(workers)), str(self.files.private), "-o", *self._paid()],
            "estimate": ["estimate", str(release)],
            "sample": ["sample", str(release)],
            "report": ["report", str(release)],
        }
        known = takes_workers(stage)
        command = [*PRADE, *commands[stage], *(["--workers", str(workers)] if known else [])]
        if stage == "measure":
            self._open_ledger()
        # without the option, as many threads as cores
        return measured(command, self.folder / f"{stage}-{workers}.log", None if known else workers)

    def _task(self) -> list[str]:
        named = {"schema": self.files.schema, "public": self.files.public, "groups": self.files.places}
        options = [text for name, file in named.items() for text in (f"--{name}", str(file))]
        return [*options, "--levels", ",".join(LEVELS), "--epsilon", self.epsilon, "--dataset", "nation"]

    def _tuning(self) -> list[str]:
        return ["--effort", f"{self.effort:g}"] if self.effort else ["--no-tune"]

    def _paid(self) -> list[str]:
        return [str(self.folder / "measured"), "--ledger", str(self.folder / "ledger")]

    def _open_ledger(self) -> None:
        shutil.rmtree(self.folder / "measured", ignore_errors=True)
        for file in self.folder.glob("ledger*"):
            file.unlink()
        opened = [*PRADE, "ledger", "open", "nation", "--cap", self.epsilon, "--ledger", str(self.folder / "ledger")]
        subprocess.run(opened, check=True, capture_output=True)


@cache
def takes_workers(stage: str) -> bool:
    """Whether a command has the option --workers."""
    shown = subprocess.run([*PRADE, stage, "--help"], capture_output=True, text=True, check=True).stdout
    return "--workers" in shown


# ---------------------------------------------------------------------- the table of stages


def stages(run: Run, workers: Sequence[int]) -> tuple[str, dict[str, dict[int, Used]]]:
    """What every stage uses with these numbers of workers. All estimate the answers that were measured first."""
    first = workers[0]
    found: dict[str, dict[int, Used]] = {stage: {} for stage in STAGES}
    for stage in STAGES:
        for number in workers if stage != "measure" else workers[:1]:
            found[stage][number] = run.used(stage, number)
    lines = []
    for stage, by_number in found.items():
        for number, used in by_number.items():
            alone = by_number[first]
            efficiency = alone.seconds * first / (number * used.seconds)
            told = "" if stage == "plan" or number == first else f"{efficiency:.0%}"
            lines.append(
                [stage, number, f"{used.seconds:.0f}", f"{used.processor:.0f}", f"{used.gib:.2f}",
                 f"{number * used.seconds:.0f}", told]
            )  # fmt: skip
    head = ["stage", "workers", "seconds", "processor seconds", "GiB", "workers x seconds", "efficiency"]
    return table(head, lines), found


def same_everywhere(run: Run, workers: Sequence[int]) -> str:
    """Whether all numbers of workers gave the same estimates and the same rows, to the last bit."""
    alike = {}
    for name in ("estimates.parquet", "synthetic.parquet"):
        files = [run.release(number) / name for number in workers]
        alike[name] = len({hashlib.sha256(file.read_bytes()).hexdigest() for file in files}) == 1
    words = ", ".join(f"{name} {'the same' if same else 'NOT THE SAME'}" for name, same in alike.items())
    return f"With {' and '.join(map(str, workers))} workers: {words}."


def errors(run: Run, workers: int) -> dict[str, Any]:
    """The mean two-way error of the synthetic rows, beside that to expect and that of the public table alone."""

    def scored() -> dict[str, Any]:
        schema = Schema.load(run.files.schema)
        job = Job("nation", schema, run.files.public, run.files.private, run.files.places, LEVELS, Unit(1))
        rows = read_table(run.release(workers) / "synthetic.parquet")
        number = job.listed.keyed(LEVELS, job.listed.level(job.listed.names).number).numbers(rows)
        expected = Plan.load(run.plan(workers)).expected
        told = {} if expected is None else {"expected": expected.error, "spread": expected.error_spread}
        return {**job.score(encode(schema, rows), number), **told, "public": job.prior_error()}

    return kept("nation", run.key("score", workers), scored)


def bytes_of(folder: Path) -> dict[str, int]:
    """Sizes of the files of a release."""
    return {str(file.relative_to(folder)): file.stat().st_size for file in sorted(folder.rglob("*")) if file.is_file()}


# ---------------------------------------------------------------------- smaller runs: how it grows


def variants(places: int, rows: int, states: int) -> Iterator[tuple[Size, Run]]:
    """A nation, and the same with a quarter of the places, of the public rows, of the columns."""
    files = nation(places, rows, states)
    for change in ((1, 1, 1), (4, 1, 1), (1, 4, 1), (1, 1, 4)):
        yield _smaller(files, *change)


def _smaller(files: Nation, fewer_places: int, fewer_rows: int, fewer_columns: int) -> tuple[Size, Run]:
    name = f"{files.public.parent.name}-{fewer_places}-{fewer_rows}-{fewer_columns}"
    folder = OUT / name
    made = Nation(*(folder / file.name for file in asdict(files).values()))
    schema = Schema.load(files.schema)
    columns = schema.coded[::fewer_columns]
    if not made.schema.exists():
        folder.mkdir(parents=True, exist_ok=True)
        places = read_table(files.places, guess=False)
        listed = np.arange(places.num_rows) % fewer_places == 0
        write_table(places.filter(listed), made.places)
        wanted = set(places.filter(listed)["PLACE"].to_pylist())
        private = read_table(files.private)
        mine = np.array([place in wanted for place in private["PLACE"].to_pylist()])
        write_table(private.filter(mine).select([*LEVELS, *columns]), made.private)
        public = read_table(files.public)
        # whole places, so that places stay as large as they are
        number = np.unique(public["PLACE"].to_pylist(), return_inverse=True)[1]
        write_table(public.filter(number % fewer_rows == 0).select([*LEVELS, *columns]), made.public)
        schema.select([*LEVELS, *columns]).save(made.schema)
    groups, rows = read_table(made.places).num_rows, read_table(made.public, ["PLACE"]).num_rows
    return Size(groups, rows, len(columns)), Run(name, made, folder / "run")


def growth(of: Sequence[str]) -> tuple[str, dict[str, Any], dict[str, tuple[float, float]]]:
    """Exponents of processor seconds and memory in groups, public rows and parts, and what every job needs."""
    tiny = Run("tiny", nation(*TINY), OUT / "nation-tiny" / "run")
    fixed, runs = {}, list(variants(*SMALLER))
    used: dict[str, list[tuple[Size, Used]]] = {}
    for stage in ("plan", *of):
        for run in (tiny, *(run for _, run in runs)):
            run.used(stage, 1)
    for stage in of:
        alone = tiny.used(stage, 1)
        fixed[stage] = alone.processor, alone.gib
        used[stage] = [(size, run.used(stage, 1)) for size, run in runs]
    grows, lines = {}, []
    for stage, found in used.items():
        seconds = exponents([(size, each.processor) for size, each in found], fixed[stage][0])
        gib = exponents([(size, each.gib) for size, each in found], fixed[stage][1])
        grows[stage] = seconds, gib
        lines.append([stage, *(f"{seconds[name]:.2f}" for name in seconds), *(f"{gib[name]:.2f}" for name in gib)])
    seconds_of = [[f"{each.processor:.1f}" for _, each in used[stage]] for stage in used]
    size, _ = runs[0]
    head = ["stage", *(f"seconds in {name}" for name in ("groups", "rows", "parts"))]
    head += [f"GiB in {name}" for name in ("groups", "rows", "parts")]
    sizes = [f"{each.groups:,.0f} x {each.rows / 1e3:,.0f}k x {each.parts:.0f}" for each, _ in runs]
    text = [
        f"Exponents of processor seconds and of memory, from {size.groups:,.0f} groups, {size.rows:,.0f} public rows "
        f"and {size.parts:.0f} columns, and a quarter of each; one worker, plans without tuning; what a job of "
        f"{TINY[0] // 2} groups and {TINY[1] // 2:,} rows uses is taken off first:",
        table(head, lines),
        "Processor seconds of these runs (groups x public rows x columns):",
        table(["stage", "tiny", *sizes], [
            [stage, f"{fixed[stage][0]:.1f}", *each] for stage, each in zip(used, seconds_of, strict=True)
        ]),
    ]  # fmt: skip
    return "\n\n".join(text), grows, fixed


def paper(found: dict[str, dict[int, Used]], run: Run, grows: Any, fixed: Any) -> str:
    """The cost of a whole country, from the measured run and the exponents."""
    groups, rows = read_table(run.files.places).num_rows, read_table(run.files.public, ["PLACE"]).num_rows
    here = Size(groups, rows, len(Schema.load(run.files.schema).coded))
    first = min(found["estimate"])
    used = {stage: (found[stage][first].processor, found[stage][first].gib) for stage in grows}
    wanted = [replace(NATION, rows=rows), NATION]
    # few groups share work that does not depend on them, which makes their exponent look smaller than it becomes
    linear = {
        stage: ({**seconds, "groups": max(seconds["groups"], 1.0)}, gib) for stage, (seconds, gib) in grows.items()
    }
    disk = bytes_of(run.release(first))
    lines = [
        [
            name,
            f"{size / 2**20:,.1f} MiB",
            f"{size * (1 if name == SUPPORT else NATION.groups / groups) / 2**30:,.2f} GiB",
        ]
        for name, size in disk.items()
        if size > 2**19
    ]
    return "\n\n".join(
        [
            f"On paper: {PEOPLE:,} private rows in {NATION.groups:,} block groups (rows per group as measured), "
            f"{NATION.parts} columns, epsilon {run.epsilon}. Assumptions: the exponents hold beyond what was measured, "
            "and that of seconds in groups is at least 1; "
            "the public table is as large as here, or has the 3.4 million rows of one year of the public survey; "
            "memory is that of one process that does all of it.",
            cost_table(used, fixed, linear, here, wanted),
            f"Disk, in proportion to the groups, except for {SUPPORT} (the public rows, as many as here):",
            table(["file", "here", f"{NATION.groups:,} groups"], lines),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=2_400)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--states", type=int, default=48)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--effort", type=float, default=60, help="of tuning")
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of workers [default: 1, 2, and 16 on 16 cores]")
    parser.add_argument("--no-growth", action="store_true", help="leave out the smaller runs and the cost on paper")
    parser.add_argument("--growth-of", nargs="+", choices=STAGES[1:], default=STAGES[1:], help="stages of smaller runs")
    options = parser.parse_args()
    need_data()
    workers = options.workers or [1, 2, *([16] if cores() >= 16 else [])]
    files = nation(options.places, options.rows, options.states)
    name = files.public.parent.name
    run = Run(name, files, OUT / f"{name}-run", options.epsilon, options.effort)
    shown, found = stages(run, workers)
    scored = errors(run, workers[0])
    expected = f"{scored['expected']:.4f} ± {scored['spread']:.4f}" if "expected" in scored else "unknown"
    text = [
        f"{machine()}. {options.places:,} places and {options.rows:,} rows in {options.states} states; half of them "
        f"are public. Levels {', '.join(LEVELS)}, 36 columns, epsilon {options.epsilon}, effort {options.effort:g} of "
        "tuning.",
        shown,
        same_everywhere(run, workers),
        f"Mean two-way error {scored['raw']:.4f} (with numbers of rows {scored['error']:.4f}), expected {expected}, "
        f"public table alone {scored['public']:.4f}.",
    ]
    if not options.no_growth:
        grown, grows, fixed = growth(options.growth_of)
        text += [grown, paper(found, run, grows, fixed)]
    figures = {stage: {str(n): asdict(used) for n, used in each.items()} for stage, each in found.items()}
    report("nation", "\n\n".join(text), {"stages": figures, **json.loads(json.dumps(scored))})


if __name__ == "__main__":
    main()
