"""MST or AIM by OpenDP, in its own environment: codes in, codes out. It does not know prade.

    python opendp_peer.py FOLDER     reads FOLDER/task.json and FOLDER/codes.npz, writes FOLDER/synthetic.npz and
                                     FOLDER/done.json

Every column is a set of known categories: 0 ... size - 1. OpenDP adds a category for what is in no list, so the last
code is left out of the list and is that category; the domain is then the same as everybody's.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import opendp.extras.mbi._mst as opendp_mst
import opendp.prelude as dp
import polars as pl


def main(folder: Path) -> None:
    task = json.loads((folder / "task.json").read_text())
    sizes: dict[str, int] = task["sizes"]
    with np.load(folder / "codes.npz") as codes:
        frame = pl.DataFrame({name: codes[name].astype(np.int64) for name in sizes})
    dp.enable_features("contrib")
    # OpenDP 0.16 leaves room for one rounding error in the sum of MST's selections, of which there is one a column:
    # from ten columns or so it refuses its own sum. A trillionth of the budget is room enough.
    opendp_mst.prior = lambda budget: budget * (1 - 1e-12)
    algorithms = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}
    began = time.perf_counter()
    spent = {"rho": task["rho"]} if task["rho"] is not None else {"epsilon": task["epsilon"]}
    context = dp.Context.compositor(
        data=frame.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(**spent)
    )
    table = (
        context.query(**spent)
        .contingency_table(
            keys={name: list(range(size - 1)) for name, size in sizes.items()},
            algorithm=algorithms[task["algorithm"]](**task["settings"]),
        )
        .release()
    )
    fitted = time.perf_counter()
    # mbi 1.1's other method, "round", gives the rows of one parent value to each column in the same order, so that
    # columns with that parent depend on each other as they should not; mbi 2.0 shuffles.
    rows = table.synthesize(method="sample")
    ended = time.perf_counter()
    drawn = {name: rows[name].fill_null(size - 1).to_numpy() for name, size in sizes.items()}
    np.savez(folder / "synthetic.npz", **drawn)
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
