"""Fuzz every reader: whatever a file or a text holds, reading it ends in a PradeError, soon, and in little memory.

    make fuzz                                 ten minutes, two processes
    make fuzz FUZZ="--seconds 3600"           an hour
    PYTHONPATH=tests python -m fuzz.run --reader plan --seconds 60 --jobs 1

Inputs that end otherwise are kept in build/fuzz, one for each place in the code, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import pickle
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import click
import msgspec

from fuzz.readers import ALL, Reader, World
from prade.core.errors import PradeError

SLICE = 1.0  # seconds that a reader has before it is another one's turn
SLOW = 20.0  # seconds for one input; the machine may be busy
LARGE = 2**30  # bytes by which one input may raise the most memory that was ever used
ROOM = 6 * 2**30  # of addresses, beyond those in use at the start: a reader that wants more gets a MemoryError
MEMORY = Path("/dev/shm")  # files there cost no time
REFUSED = (PradeError, click.ClickException, msgspec.ValidationError)


def one(reader: Reader, given: Any) -> tuple[str, str]:
    """Read one input: the kind of its end, and for a finding where it arose."""
    before, start = _most_memory(), time.monotonic()
    try:
        reader.read(given)
        kind, where = "accepted", ""
    except REFUSED as error:
        kind, where = type(error).__name__, ""
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in place if "prade" in frame.filename and "fuzz" not in frame.filename] or place
        kind, where = "UNCAUGHT", f"{type(error).__name__} {Path(ours[-1].filename).name}:{ours[-1].lineno}"
    if time.monotonic() - start > SLOW:
        return "UNCAUGHT", f"slow {reader.name}"
    if _most_memory() - before > LARGE:
        return "UNCAUGHT", f"memory {reader.name}"
    return kind, where


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(names: list[str], seed: int, seconds: float, folder: Path, told: Any) -> None:
    """One process: slices of time for each reader in turn, and a count of how inputs end."""
    warnings.simplefilter("ignore")
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    world = World(folder)
    readers = [reader for reader in (make(world) for make in ALL) if reader.name in names]
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    rng, end = random.Random(seed), time.monotonic() + seconds
    current = folder / "current.pickle"
    while time.monotonic() < end:
        for reader in readers:
            counts: Counter[str] = Counter()
            found: dict[str, Any] = {}
            until = min(time.monotonic() + SLICE, end)
            while time.monotonic() < until:
                given = reader.mutate(rng)
                current.write_bytes(pickle.dumps((reader.name, given)))  # what a crash or a hang leaves behind
                kind, where = one(reader, given)
                counts[kind] += 1
                if where:
                    found.setdefault(where, given)
            told.put((reader.name, counts, found))


def main() -> int:
    """The command: fuzz, print the table, keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0, help="with it, the same inputs come in the same order")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reader", action="append", help="only readers of which the name has this in it")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as home:
        (Path(home) / "names").mkdir()
        everyone = [make(world).name for world in [World(Path(home) / "names")] for make in ALL]
        names = [name for name in everyone if not options.reader or any(each in name for each in options.reader)]
        counts, found = fuzz(names, options.seed, options.seconds, options.jobs, Path(home))
    for (name, where), given in found.items():
        options.found.mkdir(parents=True, exist_ok=True)
        mark = hashlib.sha256(f"{name} {where}".encode()).hexdigest()[:8]
        (options.found / f"{name.replace(' ', '-')}-{mark}.pickle").write_bytes(pickle.dumps((name, where, given)))
    print_table(names, counts, options.seconds)
    for name, where in found:
        print(f"{name}: {where}, kept in {options.found}")
    return 1 if found else 0


def fuzz(
    names: list[str], seed: int, seconds: float, jobs: int, home: Path
) -> tuple[dict[str, Counter[str]], dict[tuple[str, str], Any]]:
    """Processes that are watched: one that crashes or hangs is a finding, and another takes its place."""
    context = multiprocessing.get_context("spawn")
    told, end = context.Queue(), time.monotonic() + seconds
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    found: dict[tuple[str, str], Any] = {}
    running: dict[int, tuple[Any, Path]] = {}
    started = 0

    def start() -> None:
        nonlocal started
        folder = home / f"{started}"
        folder.mkdir()
        left = max(end - time.monotonic(), 0.0)
        process = context.Process(target=work, args=(names, seed + started, left, folder, told), daemon=True)
        process.start()
        running[started] = process, folder
        started += 1

    def listen(patience: float) -> None:
        try:
            name, counted, odd = told.get(timeout=patience)
        except Exception:  # of the queue: nothing was said
            return
        counts[name] += counted
        for where, given in odd.items():
            found.setdefault((name, where), given)

    for _ in range(jobs):
        start()
    while running:
        listen(0.5)
        for number, (process, folder) in list(running.items()):
            current = folder / "current.pickle"
            hangs = process.is_alive() and current.exists() and time.time() - current.stat().st_mtime > 3 * SLOW
            if process.is_alive() and not hangs:
                continue
            del running[number]
            if hangs:
                process.kill()
            process.join()
            if process.exitcode:
                name, given = pickle.loads(current.read_bytes()) if current.exists() else ("start", None)
                counts.setdefault(name, Counter())["UNCAUGHT"] += 1
                found.setdefault((name, "hang" if hangs else f"crash {process.exitcode}"), given)
                if time.monotonic() < end:
                    start()
    while not told.empty():
        listen(0.1)
    return counts, found


def print_table(names: list[str], counts: dict[str, Counter[str]], seconds: float) -> None:
    """Reader, inputs, how they ended."""
    print(f"{'reader':22}{'inputs':>10}{'accepted':>10}{'refused':>10}{'uncaught':>10}  errors")
    for name in names:
        every = counts[name]
        refused = every.total() - every["accepted"] - every["UNCAUGHT"]
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in every.most_common() if kind not in ("accepted", "UNCAUGHT"))
        print(f"{name:22}{every.total():>10,}{every['accepted']:>10,}{refused:>10,}{every['UNCAUGHT']:>10,}  {kinds}")
    whole = sum(each.total() for each in counts.values())
    print(f"{whole:,} inputs in {seconds:.0f} s: {whole / seconds * 3600:,.0f} an hour")


if __name__ == "__main__":
    sys.exit(main())
