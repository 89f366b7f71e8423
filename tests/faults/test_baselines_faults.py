"""What a run of a baseline does when its process is killed: nothing is told before it is paid, nothing is paid twice.

A driver (see `worlds/drivers.py`) runs in an interpreter of its own, forks processes that die while they run a
baseline, and looks at the ledger, at the file of answers, and at what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable

Drive = Callable[..., list[int]]

WORLD = """
import json, pickle
import pyarrow as pa
from types import SimpleNamespace
from prade import Budget, Schema, Unit, Workload
from prade.data.public.joint import Prior
from prade.baselines import MWEM, Histogram, PMWPub, PrivBayes
from prade.baselines import run as run_baseline
from prade.measuring.adaptive import session as door_module

schema = Schema.from_mbi({"a": 2, "b": 2, "c": 2})
prior = Prior.uniform(schema)
pairs = Workload.all_marginals(schema, 2)
rows = pa.table({"a": [0, 0, 1, 1, 0] * 9, "b": [0, 1, 1, 1, 0] * 9, "c": [1, 0, 1, 1, 0] * 9})
BASELINES = {
    "MWEM": MWEM(pairs, rounds=1, passes=1),
    "PMWPub": PMWPub(pairs, rounds=1, passes=2),
    "Histogram": Histogram(),
    "PrivBayes": PrivBayes(),
}

class Place(World):
    "A folder with a ledger in it, and a file for the answers of one baseline."

    def __init__(self, name, baseline, cap=3):
        super().__init__(name, cap=cap)
        self.answers = self.home / "answers.json"
        self.baseline = BASELINES[baseline]

    def run(self, **more):
        terms = {"dataset": "people", "budget": Budget.pure(1), "unit": Unit(1), **more}
        return run_baseline(self.baseline, prior, rows, self.answers, self.ledger, **terms)

    def run_and_tell(self, die_at_draw=None):
        "Run, and keep all that is drawn where a kill does not reach it; perhaps die right after a draw. When forked."
        told = []
        def telling(draw):
            def drawn(*arguments):
                assert [entry.drawn for entry in Ledger(self.ledger.path).entries("people")] == [True], "not recorded"
                result = draw(*arguments)
                told.append(result.tolist() if hasattr(result, "tolist") else result)
                self.drawn.write_bytes(pickle.dumps(told))
                if len(told) == die_at_draw:
                    die()
                return result
            return drawn
        door_module.add_noise = telling(door_module.add_noise)
        door_module.select = telling(door_module.select)
        return self.run()

    def told(self):
        return [each for each in super().told() if isinstance(each, list)]

    def kept(self):
        return [each["counts"] for each in json.loads(self.answers.read_text())["record"] if "counts" in each]

    def recover(self):
        "Look at what a kill left, and run again: `free`, `reserved` and not drawn, answers that are `kept`, or `lost`."
        before = self.ledger.entries("people")
        assert len(before) <= 1
        self.entries(len(before))
        if not before or not before[0].drawn:
            assert not self.drawn.exists(), "something was drawn that the ledger does not know of"
            assert not self.answers.exists()
            kind, after = "reserved" if before else "free", 1
            self.run()
            assert len(self.entries(1)[0].resumed) == len(before)
        elif self.answers.exists():
            kind, after = "kept", 1
            assert self.kept() == self.told(), "not the answers that were drawn"
            self.run()
            assert self.kept() == self.told(), "the answers were replaced"
        else:
            refused = said(self.run)
            assert "has already been paid for" in refused and "again=True" in refused, refused
            assert self.ledger.entries("people") == before
            assert not self.answers.exists()
            kind, after = "lost", 2
            self.run(again=True)
        assert self.entries(after)[-1].state == "committed"
        answers = self.answers.read_bytes()
        self.run()
        assert self.answers.read_bytes() == answers
        self.entries(after)
        return kind
"""


def test_killed_at_every_step_and_draw(drive: Drive) -> None:
    """SIGKILL at each announced step of the run and of the ledger within it, and right after each draw."""
    steps, draws = drive(
        WORLD
        + """
reserve, drawing, commit = ([f"ledger.{name}.{step}" for step in ("opened", "begun", "recorded", "durable")]
    for name in ("reserve", "start_drawing", "commit"))
steps = {
    "free": ["adaptive.checked", *reserve[:3]],
    "reserved": [reserve[3], "adaptive.reserved", "adaptive.counted", *drawing[:3]],
    "lost": [drawing[3]],
    "kept": ["adaptive.written", *commit, "adaptive.committed"],
}
for kind, names in steps.items():
    for step in names:
        place = Place(step, "MWEM")
        killed_at(step, place.run_and_tell)
        assert place.recover() == kind, step
draws = 0
while True:
    place = Place(f"draw-{draws}", "PrivBayes")
    code = ended(forked(lambda: place.run_and_tell(die_at_draw=draws + 1)))
    if code == 0:
        break
    assert code == -signal.SIGKILL
    draws += 1
    assert len(pickle.loads(place.drawn.read_bytes())) == draws
    assert place.recover() == "lost", draws
print(sum(map(len, steps.values())), draws)
"""
    )
    assert steps == 17
    assert draws == 1 + 2 + 3  # the total, two choices, three tables


def test_killed_at_every_touch_of_the_file(drive: Drive) -> None:
    """SIGKILL before each opening, renaming and removing of the answers' file, until a run gets through."""
    lost, kept = drive(
        WORLD
        + """
kinds = {"lost": 0, "kept": 0}
fresh = lambda number: Place(f"{number}", "Histogram")
for place, killed in killed_at_touches(fresh, lambda place: place.answers.name, Place.run_and_tell):
    if killed:
        kinds[place.recover()] += 1
print(*kinds.values())
"""
    )
    assert lost >= 4
    assert kept >= 2


def test_a_run_that_finishes_another_is_killed_too(drive: Drive) -> None:
    """The answers are in the file, the ledger does not know their hash: whoever comes next tells it, killed or not."""
    (kills,) = drive(
        WORLD
        + """
kills = 0
for second in [f"ledger.commit.{step}" for step in ("begun", "durable")]:
    place = Place(second, "PMWPub")
    killed_at("adaptive.written", place.run_and_tell)
    assert place.entries(1)[0].state == "drawing"
    killed_at(second, place.run)
    assert place.recover() == "kept", second
    kills += 2
print(kills)
"""
    )
    assert kills == 4


def test_runs_at_once(drive: Drive) -> None:
    """Of three runs of one task one pays and draws, and the others say so; of four that one can afford, one is done."""
    met, done, refused, files = drive(
        WORLD
        + """
REASONS = "has already been paid for", "its noise was drawn, or may have been, so it may not draw noise", "is committed"
for meet in (None, "adaptive.checked", "adaptive.counted"):
    place = Place(str(meet), "Histogram")
    def act():
        return SimpleNamespace(noisy=[[place.run().weights]])
    returned, refused = race(*[act] * 3, meet=meet)
    assert returned and all(each == returned[0] for each in returned), returned
    assert all(any(reason in text for reason in REASONS) for text in refused), refused
    (entry,) = place.entries(1)
    assert (entry.state, entry.failures) == ("committed", ()), entry
    met = len(returned)

place = Place("cap", "Histogram", cap="3/2")
def other(budget, number):
    terms = {"dataset": "people", "budget": Budget.pure(budget), "unit": Unit(1)}
    found = run_baseline(place.baseline, prior, rows, place.home / f"{number}.json", place.ledger, **terms)
    return SimpleNamespace(noisy=[[found.weights]])
acts = [lambda n=n, b=b: other(b, n) for n, b in enumerate(("1", "1.1", "1.2", "1.3"))]
returned, refused = race(*acts, meet="adaptive.checked")
assert all("left of" in text for text in refused), refused
print(met, len(returned), len(refused), len(list(place.home.glob("*.json"))))
"""
    )
    assert met == 1, "all of them met before noise was drawn"
    assert (done, refused, files) == (1, 3, 1)
