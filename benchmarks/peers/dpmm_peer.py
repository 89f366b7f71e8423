"""MST or AIM by dpmm, in its own environment: codes in, codes out. It does not know prade.

    python dpmm_peer.py FOLDER       (see peer_script.py)

The columns are codes already, so dpmm's own binning is off and costs nothing. It takes the number of rows as known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pandas as pd
from dpmm.models.aim import AIM
from dpmm.pipelines import AIMPipeline, MSTPipeline
from peer_script import Codes, progress, run


def fit_and_draw(task: dict[str, Any], codes: Codes, fitted: Callable[[], None]) -> Codes:
    frame = pd.DataFrame(codes)
    pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[task["algorithm"]](
        epsilon=task["epsilon"], delta=task["delta"], disable_processing=True, **task["settings"]
    )
    pipeline.fit(frame, domain=task["sizes"], random_state=task["seed"])
    fitted()
    rows = pipeline.generate(n_records=len(frame), random_state=task["seed"])
    return {name: rows[name].to_numpy() for name in codes}


def rounds_told() -> None:
    """Let AIM say which round it is in, and which share of its budget is spent when the round is over.

    A round begins with the choice of a table; what it does is left as it is.
    """
    choose, spent, rounds = AIM.worst_approximated, 0.0, 0

    def told(self: AIM, candidates: Any, answers: Any, model: Any, eps: float, sigma: float, *more: Any) -> Any:
        nonlocal spent, rounds
        measured = 1 if rounds else 1 + len(self.cliques)  # before the first round, all columns one by one
        spent += eps**2 / 8 + measured * 0.5 / sigma**2
        rounds += 1
        progress(f"in round {rounds}, {spent / self.rho:.1%} of the budget with it, {time.process_time():.0f} s")
        return choose(self, candidates, answers, model, eps, sigma, *more)

    AIM.worst_approximated = told


if __name__ == "__main__":
    rounds_told()
    run(fit_and_draw)
