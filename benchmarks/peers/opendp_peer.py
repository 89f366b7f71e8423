"""MST or AIM by OpenDP, in its own environment: codes in, codes out. It does not know prade.

    python opendp_peer.py FOLDER     (see peer_script.py)

Every column is a set of known categories: 0 ... size - 1. OpenDP adds a category for what is in no list, so the last
code is left out of the list and is that category; the domain is then the same as everybody's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opendp.extras.mbi._mst as opendp_mst
import opendp.prelude as dp
import polars as pl
from peer_script import Codes, run


def fit_and_draw(task: dict[str, Any], codes: Codes, fitted: Callable[[], None]) -> Codes:
    sizes: dict[str, int] = task["sizes"]
    dp.enable_features("contrib")
    # OpenDP 0.16 leaves room for one rounding error in the sum of MST's selections, of which there is one a column:
    # from ten columns or so it refuses its own sum. A trillionth of the budget is room enough.
    opendp_mst.prior = lambda budget: budget * (1 - 1e-12)
    algorithms = {"mst": dp.mbi.MST, "aim": dp.mbi.AIM}
    spent = {"rho": task["rho"]} if task["rho"] is not None else {"epsilon": task["epsilon"]}
    context = dp.Context.compositor(
        data=pl.DataFrame(codes).lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(**spent)
    )
    table = (
        context.query(**spent)
        .contingency_table(
            keys={name: list(range(size - 1)) for name, size in sizes.items()},
            algorithm=algorithms[task["algorithm"]](**task["settings"]),
        )
        .release()
    )
    fitted()
    # mbi 1.1's other method, "round", gives the rows of one parent value to each column in the same order, so that
    # columns with that parent depend on each other as they should not; mbi 2.0 shuffles.
    rows = table.synthesize(method="sample")
    return {name: rows[name].fill_null(size - 1).to_numpy() for name, size in sizes.items()}


if __name__ == "__main__":
    run(fit_and_draw)
