"""Fuzz every reader: whatever a file or a text holds, reading it ends in a PradeError, soon, and in little memory.

    make fuzz                                 ten minutes, two processes
    make fuzz FUZZ="--seconds 3600"           an hour
    PYTHONPATH=tests python -m fuzz.run --reader plan --seconds 60 --jobs 1

Inputs that end otherwise are kept in build/fuzz, one for each place in the code, and the exit code is 1.
"""

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
from itertools import count
from pathlib import Path
from typing import Any

import click
import msgspec

from fuzz import file_readers as files
from fuzz import text_readers as texts
from fuzz.world import World
from prade.core.errors import PradeError
from prade.core.files import replace_file

DOCUMENTS = (files.schema_toml, files.plan_toml, files.targets_toml, files.geojson)
TABLES = (files.groups, files.public, files.infer, files.private_csv)
ALL = (*DOCUMENTS, files.release, files.estimates, *TABLES, texts.query, texts.numbers, texts.command_line)

SLICE = 1.0  # seconds that a reader has before it is another one's turn
SLOW = 20.0  # seconds for one input; the machine may be busy
LARGE = 2**30  # bytes by which one input may raise the most memory that was ever used
ROOM = 6 * 2**30  # of addresses, beyond those in use at the start: a reader that wants more gets a MemoryError
MEMORY = Path("/dev/shm")  # files there cost no time
REFUSED = (PradeError, click.ClickException, msgspec.ValidationError)


def one(reader, given, slow=SLOW, large=LARGE):
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
    if time.monotonic() - start > slow:
        return "UNCAUGHT", f"slow {reader.name}"
    if _most_memory() - before > large:
        return "UNCAUGHT", f"memory {reader.name}"
    return kind, where


def _most_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(names, seed, end, folder):
    """One process: slices of time for each reader in turn, and a count of how inputs end, kept after every slice."""
    warnings.simplefilter("ignore")
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    world = World(folder)
    readers = [reader for reader in (make(world) for make in ALL) if reader.name in names]
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    rng, counts, findings = random.Random(seed), Counter[tuple[str, str]](), dict[tuple[str, str], Any]()
    while time.time() < end:
        for reader in readers:
            until = min(time.time() + SLICE, end)
            while time.time() < until:
                given = reader.mutate(rng)
                # what a crash or a hang leaves behind
                (folder / "current.pickle").write_bytes(pickle.dumps((reader.name, given)))
                kind, where = one(reader, given)
                counts[reader.name, kind] += 1
                if where:
                    findings.setdefault((reader.name, where), given)
            with replace_file(folder / "ends.pickle") as temporary:
                temporary.write_bytes(pickle.dumps((counts, findings)))


def main():
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
        print(f"{name}: {where}, kept in {options.found}")
    print_table(names, counts)
    return 1 if found else 0


def fuzz(names, seed, seconds, jobs, home):
    """Processes that are watched: one that crashes or hangs is a finding, and another takes its place."""
    context, end = multiprocessing.get_context("spawn"), time.time() + seconds
    counts, findings = Counter[tuple[str, str]](), dict[tuple[str, str], Any]()
    started, running = count(), dict[Path, Any]()
    while time.time() < end or running:
        while time.time() < end and len(running) < jobs:
            number = next(started)
            (folder := home / f"{number}").mkdir()
            running[folder] = context.Process(target=work, args=(names, seed + number, end, folder), daemon=True)
            running[folder].start()
        time.sleep(0.5)
        for folder, process in list(running.items()):
            current, ends = folder / "current.pickle", folder / "ends.pickle"
            hangs = process.is_alive() and current.exists() and time.time() - current.stat().st_mtime > 3 * SLOW
            if process.is_alive() and not hangs:
                continue
            del running[folder]
            process.kill()
            process.join()
            if ends.exists():
                counted, odd = pickle.loads(ends.read_bytes())
                counts += counted
                findings = odd | findings
            if process.exitcode:
                name, given = pickle.loads(current.read_bytes()) if current.exists() else ("start", None)
                counts[name, "UNCAUGHT"] += 1
                findings.setdefault((name, "hang" if hangs else f"crash {process.exitcode}"), given)
    return counts, findings


def print_table(names, counts):
    """How the inputs of each reader ended."""
    for name in names:
        ends = ", ".join(f"{kind} {number:,}" for (reader, kind), number in counts.most_common() if reader == name)
        print(f"{name:22}{ends}")
    print(f"{counts.total():,} inputs")


if __name__ == "__main__":
    sys.exit(main())
