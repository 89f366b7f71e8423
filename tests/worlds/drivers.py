"""What the drivers of the tests of `measure` have in common: a small world to measure, and processes that die in it.

Not imported by tests: drivers do, in interpreters of their own, which get the folder to work in as their argument.
"""

import atexit
import gc
import pickle
import sys
import tempfile
from pathlib import Path

from prade import Budget
from prade.core.execution import Execution
from prade.measuring import run
from prade.measuring.run import measure
from prade.release.release import Release
from worlds.plans import IN_TOWNS, TOWN_PLAN, ledger_for
from worlds.processes import said

__all__ = ["COUNTED", "HERE", "World", "kept", "nothing_spent", "numbers", "reserved", "spent"]

HERE = Path(sys.argv[1])
tempfile.tempdir = str(HERE)  # killed processes leave their engine's folders
FILES = {"plan.toml", "measurements.parquet", "release.json", "ledger.json"}
COUNTED = [[[[1, 0, 0], [0, 1, 1]]]]  # of IN_TOWNS, by hand: one question, one part, two towns, three ages


class World:
    """A folder with a ledger in it, and a place for a release."""

    def __init__(self, name, *, cap=3, within=HERE):
        self.home = within / name
        self.home.mkdir()
        self.place = self.home / "release"
        self.drawn = within / f"{name}.drawn"
        self.cap = Budget.pure(cap)
        self.ledger = ledger_for(TOWN_PLAN, self.home / "budget.ledger", self.cap)

    def measure(self, **more):
        return measure(TOWN_PLAN, IN_TOWNS, self.place, self.ledger, execution=Execution(1), **more)

    def measure_and_tell(self, **more):
        """Measure, and keep what was drawn where a kill does not reach it."""
        draw = run._draw

        def told(plan, counts, *arguments):
            assert self.ledger.entries("people")[-1].drawn, "drawn before the ledger knows"
            assert numbers(counts) == COUNTED, "not the rows of the table"
            noisy = draw(plan, counts, *arguments)
            with open(self.drawn, "ab") as file:
                file.write(pickle.dumps(numbers(noisy)))
            return noisy

        run._draw = told
        try:
            return self.measure(**more)
        finally:
            run._draw = draw

    def told(self):
        """What was drawn, which was once."""
        with open(self.drawn, "rb") as file:
            only = pickle.load(file)
            assert not file.read(1), "noise was drawn twice"
        return only

    def entries(self, number):
        """The ledger is sound and has so many entries; more were never paid."""
        entries = self.ledger.entries("people")
        assert len(entries) == number, entries
        assert self.ledger.remaining("people") == self.cap - Budget.pure(1) * number
        return entries

    def clean(self):
        """There is nothing but the ledger and a whole release."""
        assert {path.name for path in self.home.iterdir()} == {"budget.ledger", "release"}, list(self.home.iterdir())
        assert {path.name for path in self.place.iterdir()} == FILES, list(self.place.iterdir())
        assert self.ledger.entries("people")[-1].state == "committed"

    def sealed(self):
        return [path.parent for path in self.home.glob(".release.*.unfinished/release.json")]

    def recover(self):
        """Look at what a kill left, and run again.

        It was "free"; it is "reserved" and no noise is drawn; the noisy counts are "kept"; or they are "lost".
        """
        paid = len(self.ledger.entries("people"))
        assert paid <= 1
        before = self.entries(paid)
        if self.place.exists():
            Release.load(self.place)  # whole, before anybody mends it
        if not paid or not before[0].drawn:
            assert not self.drawn.exists(), "noise was drawn that the ledger does not know of"
            assert not self.place.exists()
            assert not self.sealed()
            assert not list(self.home.glob(".release.*.unfinished/*measurements*")), "noisy counts are on the disk"
            kind, release, after = "reserved" if paid else "free", self.measure_and_tell(), 1
            assert numbers(release.noisy) == self.told(), "not the numbers that were drawn"
            (entry,) = self.entries(1)
            assert len(entry.resumed) == (len(before[0].resumed) + 1 if paid else 0), entry
            assert entry.failures == (before[0].failures if paid else ()), entry
        elif self.place.exists() or self.sealed():
            kind, release, after = "kept", self.measure(), 1
            assert numbers(release.noisy) == self.told(), "not the numbers that were drawn"
        else:
            refused = said(self.measure)
            assert "has already been paid for" in refused, refused
            assert "pass again=True" in refused, refused
            assert self.entries(1) == before
            assert not self.place.exists()
            kind, release, after = "lost", self.measure(again=True), 2
        self.entries(after)
        self.clean()
        assert numbers(self.measure().noisy) == numbers(release.noisy)
        self.entries(after)
        return kind


def numbers(noisy):
    return [[part.tolist() for part in parts] for parts in noisy]


def nothing_spent(world, message, words):
    assert words in message, message
    world.entries(0)
    assert [path.name for path in world.home.iterdir()] == ["budget.ledger"], "something is left"


def reserved(world, message, words="", *, failure=None):
    """Nothing was drawn: the amount is reserved, the failure is on record if it could be, and the message says so."""
    for expected in (words, "was reserved in", "as entry 1, and nothing was released", "without paying again"):
        assert expected in message, message
    (entry,) = world.entries(1)
    assert not entry.drawn
    assert (entry.state, [(each.stage, each.kind) for each in entry.failures]) == (
        ("reserved", []) if failure is None else ("failed", [failure])
    ), entry
    assert [path.name for path in world.home.iterdir()] == ["budget.ledger"], "something is left"


def spent(world, message):
    for words in ("was spent; it is in", "as entry 1, and no noisy counts", "to spend epsilon = 1", "pass again=True"):
        assert words in message, message
    world.entries(1)
    assert [path.name for path in world.home.iterdir()] == ["budget.ledger"], "something is left"


def kept(world, message):
    assert "are paid for, but could not be moved to" in message, message
    assert "measure again, which spends nothing" in message, message
    assert f"was spent; it is in {world.sealed()[0]}" in message, message
    world.entries(1)
    assert not world.place.exists()
    assert world.sealed()


World("warm").measure()  # engines are loaded once, here, and not by every process again
gc.freeze()  # nor does every process look for garbage in all that
atexit.register(gc.unfreeze)
