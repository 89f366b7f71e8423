"""Who is compared: names, what each promises, with which settings, and what a kept result of it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import compare_peers as peers
import compare_systems as systems
from compare_systems import Drawn, Task
from jobs import code

HERE = Path(__file__).resolve().parent
PURE, APPROXIMATE, NOTHING = "eps", f"(eps, {systems.DELTA})", "no private data"


@dataclass(frozen=True)
class System:
    """One line of the tables."""

    title: str
    promise: str
    run: Callable[[Task], Drawn]
    settings: str
    peer: tuple[str, str] | None = None  # package and algorithm, in an environment of its own
    planned: bool = False  # it needs the plan that prade's tuner makes
    public: bool = False  # it starts from the public table

    @property
    def stamp(self) -> str:
        """Changes when a result would: with prade's code and the comparison's, or with a peer's own script."""
        if self.peer is None:
            return f"{code()} {_hash('compare_systems.py', 'compare_peers.py')}"
        package, _ = self.peer
        files = f"peers/{package}.txt", f"peers/{package}_peer.py", "peers/peer_script.py"
        return _hash(*files, json.dumps(peers.PEERS[self.peer]))


@cache
def _hash(*given: str) -> str:
    """Of files, and of words that name none."""
    texts = [(HERE / each).read_bytes() if (HERE / each).exists() else each.encode() for each in given]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def _peer(title: str, package: str, algorithm: str, pure: bool, settings: str) -> System:
    run = partial(peers.peer, package, algorithm, pure=pure)
    return System(title, PURE if pure else APPROXIMATE, run, settings, peer=(package, algorithm))


GROUPWISE = (
    "each group by itself with the whole epsilon, from the public rows of the same group or else all, all one- and "
    f"two-way marginals to choose from, rounds among {', '.join(map(str, systems.ROUNDS))} by a rehearsal on public "
    "rows, 20 passes, rate 1/2, 5 % for the number of rows; rows drawn as prade draws them"
)
OPENDP = (
    "opendp 0.16.0 with mbi 1.1, its defaults (half for one-way marginals, 10 % of the rest to choose); MST's room for "
    "rounding errors widened to a trillionth of the budget, for it refuses its own sum from some ten columns on; rows "
    'drawn by method "sample", for "round" of mbi 1.1 ties columns with a common parent to each other'
)
ON_COLUMNS = "the group as one more column"
SYSTEMS: dict[str, System] = {
    "prade": System(
        "prade", PURE, systems.prade, "the tuner's plan and settings, from the public table alone; tuning is not in "
        "the time", planned=True, public=True,
    ),
    "published": System(
        "Algorithm 2 as published", PURE, systems.published, "40 pairs by state, 8 one-way parts by PUMA; Euclidean "
        "projection", public=True,
    ),
    "prior": System(
        "prior as it is", NOTHING, systems.prior, "the public rows of the same group where there are any, else all",
        public=True,
    ),
    "mwem": System(
        "MWEM", PURE, systems.mwem, f"{GROUPWISE}; uniform weights on the public rows to begin with", public=True
    ),
    "pmw-average": System("PMW^Pub, average", PURE, systems.pmw_average, GROUPWISE, public=True),
    "pmw-last": System("PMW^Pub, last", PURE, systems.pmw_last, GROUPWISE, public=True),
    "histogram": System("Laplace histogram", PURE, systems.histogram, f"{ON_COLUMNS}; at most 2^20 cells"),
    "privbayes": System(
        "PrivBayes", PURE, systems.privbayes, f"{ON_COLUMNS}; theta 4, 30 % for the network, at most 2 parents"
    ),
    "mbi-model": System(
        "mbi 2.0, graphical model", PURE, peers.graphical, f"prade's measurements, {ON_COLUMNS}; MirrorDescent, "
        f"{peers.MIRROR_STEPS} steps; no public rows", planned=True,
    ),
    "mbi-reweighted": System(
        "mbi 2.0, reweighted rows", PURE, peers.reweighted, "prade's measurements of each group and the public rows; "
        f"ReweightedDatasetEstimator, adam({peers.ADAM_RATE}), {peers.ADAM_STEPS} steps; rows drawn as prade draws "
        "them", planned=True, public=True,
    ),
    "mst-pure": _peer("MST (OpenDP)", "opendp", "mst", True, f"{ON_COLUMNS}; {OPENDP}"),
    "mst-zcdp": _peer("MST (OpenDP, zCDP)", "opendp", "mst", False, f"{ON_COLUMNS}; {OPENDP}"),
    "aim-pure": _peer("AIM (OpenDP)", "opendp", "aim", True, f"{ON_COLUMNS}; all pairs of columns; {OPENDP}; 80 MB"),
    "aim-zcdp": _peer(
        "AIM (OpenDP, zCDP)", "opendp", "aim", False, f"{ON_COLUMNS}; all pairs of columns; {OPENDP}; 80 MB"
    ),
    "mst-dpmm": _peer(
        "MST (dpmm)", "dpmm", "mst", False, f"{ON_COLUMNS}; dpmm 0.1.9, defaults, binning off; number of rows known"
    ),
    "aim-dpmm": _peer(
        "AIM (dpmm)", "dpmm", "aim", False, f"{ON_COLUMNS}; dpmm 0.1.9, binning off, 80 MB; number of rows known"
    ),
}  # fmt: skip
