"""MST or AIM by dpmm, in its own environment: codes in, codes out. It does not know prade.

    python dpmm_peer.py FOLDER       (see peer_script.py)

The columns are codes already, so dpmm's own binning is off and costs nothing. It takes the number of rows as known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline
from peer_script import Codes, run


def fit_and_draw(task: dict[str, Any], codes: Codes, fitted: Callable[[], None]) -> Codes:
    frame = pd.DataFrame(codes)
    pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[task["algorithm"]](
        epsilon=task["epsilon"], delta=task["delta"], disable_processing=True, **task["settings"]
    )
    pipeline.fit(frame, domain=task["sizes"], random_state=task["seed"])
    fitted()
    rows = pipeline.generate(n_records=len(frame), random_state=task["seed"])
    return {name: rows[name].to_numpy() for name in codes}


if __name__ == "__main__":
    run(fit_and_draw)
