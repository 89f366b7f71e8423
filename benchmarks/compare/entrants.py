"""Who is compared: names, what each promises, with which settings, and what a kept result of it depends on."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jobs
from compare import peers, systems
from compare.jam import Jam
from compare.rehearsal import REHEARSED
from compare.systems import Drawn, Task

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parent
PURE, APPROXIMATE, NOTHING = "eps", f"(eps, {systems.DELTA})", "no private data"
RUNS = HERE / "run.py", HERE / "jobs.py"
OURS = (
    *RUNS,
    *(HERE / f"{name}.py" for name in ("asking", "box", "gem", "jam", "methods", "peers", "rehearsal", "systems")),
)
SHARED = tuple(BENCHMARKS / f"{name}.py" for name in ("accuracy", "jobs", "common"))
ALGORITHM_2 = tuple(jobs.sources(jobs.ALGORITHM_2))
SCORE = tuple(jobs.sources("data", "examples", "scoring"))  # how tables are read and coded, and how far they are apart
GIVEN = (  # what a peer is given and how its rows come back
    jobs.acs, jobs.nist, jobs.Job.truth.func, jobs.Job.scored, peers.with_group_column, peers.peer, peers.peer_rows,
    peers.peer_each_place, peers.kept_rows, peers.asked_of, peers.by_group,
)  # fmt: skip


@dataclass(frozen=True)
class System:
    """One line of the tables."""

    title: str
    promise: str
    run: Callable[[Task], Drawn]
    settings: str
    peer: tuple[str, str] | None = None  # package and algorithm, in an environment of its own
    beforehand: Callable[[Task], dict[str, Any]] | None = None  # what it chooses on public data, in time of its own
    public: bool = False  # it starts from the public table
    each_place: bool = False  # it is another system with a model for each place: of no use to jobs without places

    @property
    def stamp(self) -> str:
        """Changes when a result would.

        Ours: with prade's code, the comparison's, and mbi. A peer's: with its own script and packages, and with what
        decides the data and the score; not with how prade estimates or draws, for peers take hours.
        """
        if self.peer is None:
            return f"{jobs.code()} {_hash(*OURS, *SHARED, *ALGORITHM_2, _version('mbi'))}"
        package, _ = self.peer
        files = (BENCHMARKS / "peers" / name for name in (f"{package}.txt", f"{package}_peer.py", "peer_script.py"))
        told = json.dumps(peers.PEERS[self.peer]), systems.DELTA
        return _hash(*files, *RUNS, *SCORE, *map(inspect.getsource, GIVEN), *told)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


@cache
def _hash(*given: Path | str) -> str:
    """Of files and of words."""
    texts = [each.read_bytes() if isinstance(each, Path) else each.encode() for each in given]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def _peer(title: str, package: str, algorithm: str, pure: bool, settings: str) -> System:
    run = partial(peers.peer, package, algorithm)
    return System(title, PURE if pure else APPROXIMATE, run, settings, peer=(package, algorithm))


def _each_place(system: System, run: Callable[[Task], Drawn]) -> System:
    """The same system, with one model per place."""
    words = f"as {system.title}, but one model per place with the whole epsilon"
    if system.promise == APPROXIMATE:
        words += " and delta"
    return replace(system, title=f"{system.title}, each place", run=run, settings=words, each_place=True)


GROUPWISE = (
    "each group separately with the whole epsilon; chooses among all one- and two-way tables; rate 1/2; a rehearsal on "
    f"{REHEARSED} public groups sets the number of rounds (1 to 40, and more while that helps), the passes (1, 5, 20), "
    "the share for the number of rows (5, 20, 40 %) and the weight of the group's own public rows against all public "
    "rows (1, 0.8); rows drawn by prade's method"
)


def _learner(title: str, name: str, settings_of: str, settings: str = GROUPWISE) -> System:
    run, beforehand = partial(systems.learn, name, settings_of), REHEARSALS[settings_of]
    return System(title, PURE, run, settings, beforehand=beforehand, public=True)


REHEARSALS = {name: partial(systems.rehearse, name) for name in ("pmw-average", "pmw-last")}
OPENDP = (
    "opendp 0.16.0 with mbi 1.1, its defaults (half for one-way tables, 10 % of the rest for choosing); our script "
    "draws the rows from its model, along the junction tree, rounded and shuffled, because mbi 1.1 draws them one by "
    "one or ties columns with a common parent to each other, and loses dependences in loops"
)
OPENDP_MST = (
    f"{OPENDP}; tolerance for rounding errors widened to a trillionth of the budget, because from about ten columns on "
    "it refuses its own sum; it scores a pair by the largest column sum of the differences, where the paper uses the "
    "sum of all, and we left that unchanged"
)
OPENDP_AIM = (
    "chooses among the tables that are scored (all pairs of columns, within the group if there are groups) and their "
    f"margins; {OPENDP}; 80 MB"
)
ON_COLUMNS = "the group as one more column"
GEM = (
    "each group separately with the whole epsilon; chooses among all one- and two-way tables, two thirds of a round's "
    "epsilon for the choice; the rounds, the share for the number of rows and the public rows of PMW^Pub, last; a "
    "network with 128 inputs and twice 256 units makes 1,000 products; 1,000 steps on public tables, then up to 100 "
    "steps in each round; the last weights; 100 rows of each product, from which rows are drawn by prade's method; our "
    "own program, from the paper"
)
JAM = (
    f"each group separately with the whole epsilon; {Jam.rounds} rounds, in each of which the model takes a noisy or a "
    "public table among all one- and two-way ones; 20 % of a round's epsilon for the choice, 5 % of all for the number "
    f"of rows; 80 MB; mbi 2.0, MirrorDescent, {peers.JAM_STEPS} steps in each round; our own program, from the paper, "
    "with Laplace noise"
)
SYSTEMS: dict[str, System] = {
    "prade": System(
        "prade", PURE, systems.prade, "the tuner's plan and settings, from the public table alone; the time does "
        "not include tuning", beforehand=systems.tuned, public=True,
    ),
    "prade-approximate": System(
        f"prade, {APPROXIMATE}", APPROXIMATE, systems.prade_approximate, "the same under the promise of MST and AIM "
        "(dpmm); the tuner also chooses between Laplace and Gaussian noise", beforehand=systems.tuned_approximate,
        public=True,
    ),
    "published": System(
        "Algorithm 2 as published", PURE, systems.published, "40 pairs by state, 8 one-way parts by PUMA; Euclidean "
        "projection", public=True,
    ),
    "prior": System(
        "public baseline", NOTHING, systems.prior, "the public rows of the same group if there are any, else "
        "all public rows", public=True,
    ),
    "mwem": _learner(
        "MWEM", "mwem", "pmw-average", f"{GROUPWISE} (the settings of PMW^Pub, average); all distinct public rows "
        "start with equal weights",
    ),
    "pmw-average": _learner("PMW^Pub, average", "pmw-average", "pmw-average"),
    "pmw-last": _learner("PMW^Pub, last", "pmw-last", "pmw-last"),
    "gem-pub": _learner("GEM^Pub", "gem-pub", "pmw-last", GEM),
    "jam-pgm": System("JAM-PGM", PURE, peers.jam, JAM, public=True),
    "histogram": System("Laplace histogram", PURE, systems.histogram, f"{ON_COLUMNS}; at most 2^20 cells"),
    "privbayes": System(
        "PrivBayes", PURE, systems.privbayes, f"{ON_COLUMNS}; theta 4, 30 % for the network, at most 2 parents"
    ),
    "mbi-model": System(
        "mbi 2.0, graphical model", PURE, peers.graphical, f"prade's measurements, {ON_COLUMNS}; MirrorDescent, "
        f"{peers.MIRROR_STEPS} steps; no public rows", beforehand=systems.tuned,
    ),
    "mbi-reweighted": System(
        "mbi 2.0, reweighted rows", PURE, peers.reweighted, "prade's measurements of each group and the public rows; "
        f"ReweightedDatasetEstimator, adam({peers.ADAM_RATE}), {peers.ADAM_STEPS} steps; rows drawn by prade's "
        "method", beforehand=systems.tuned, public=True,
    ),
    "mst-opendp": _peer("MST (OpenDP)", "opendp", "mst", True, f"{ON_COLUMNS}; {OPENDP_MST}"),
    "aim-opendp": _peer("AIM (OpenDP)", "opendp", "aim", True, f"{ON_COLUMNS}; {OPENDP_AIM}"),
    "mst-dpmm": _peer(
        "MST (dpmm)", "dpmm", "mst", False, f"{ON_COLUMNS}; dpmm 0.1.9, defaults, binning off; number of rows known"
    ),
    "aim-dpmm": _peer(
        "AIM (dpmm)", "dpmm", "aim", False, f"{ON_COLUMNS}; dpmm 0.1.9, binning off, 80 MB; number of rows known"
    ),
}  # fmt: skip
SYSTEMS |= {
    f"{name}-each-place": _each_place(system, run)
    for name, system, run in (
        ("privbayes", SYSTEMS["privbayes"], systems.privbayes_each_place),
        *(
            (name, system, partial(peers.peer_each_place, *system.peer))
            for name, system in SYSTEMS.items()
            if system.peer
        ),
    )
}
