"""MST or AIM by dpmm, in its own environment: codes in, codes out. It does not know prade.

    python dpmm_peer.py FOLDER       reads FOLDER/task.json and FOLDER/codes.npz, writes FOLDER/synthetic.npz and
                                     FOLDER/done.json

The columns are codes already, so dpmm's own binning is off and costs nothing. It takes the number of rows as known.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline


def main(folder: Path) -> None:
    task = json.loads((folder / "task.json").read_text())
    sizes: dict[str, int] = task["sizes"]
    with np.load(folder / "codes.npz") as codes:
        frame = pd.DataFrame({name: codes[name].astype(np.int64) for name in sizes})
    pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[task["algorithm"]](
        epsilon=task["epsilon"], delta=task["delta"], disable_processing=True, **task["settings"]
    )
    began = time.perf_counter()
    pipeline.fit(frame, domain=sizes, random_state=task["seed"])
    fitted = time.perf_counter()
    rows = pipeline.generate(n_records=len(frame), random_state=task["seed"])
    ended = time.perf_counter()
    np.savez(folder / "synthetic.npz", **{name: rows[name].to_numpy() for name in sizes})
    took = {"fit": fitted - began, "draw": ended - fitted, "GiB": peak_gib()}
    (folder / "done.json").write_text(json.dumps(took))


def peak_gib() -> float:
    """The most memory that this process has had (Linux), not what it was forked from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Exception as error:  # in one line, without paths: it goes into a table
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
