"""MST or AIM by OpenDP, in its own environment: codes in, codes out. It does not know prade.

    python opendp_peer.py FOLDER     (see peer_script.py)

Every column is a set of known categories: 0 ... size - 1. OpenDP adds a category for what is in no list, so the last
code is left out of the list and is that category; the domain is then the same as everybody's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import opendp.extras.mbi._mst as opendp_mst
import opendp.prelude as dp
import polars as pl
from mbi import MarkovRandomField, junction_tree, marginal_oracles
from peer_script import Codes, run


def fit_and_draw(task: dict[str, Any], codes: Codes, fitted: Callable[[], None]) -> Codes:
    sizes: dict[str, int] = task["sizes"]
    dp.enable_features("contrib")
    # OpenDP 0.16 leaves room for one rounding error in the sum of MST's selections, of which there is one a column:
    # from ten columns or so it refuses its own sum. A trillionth of the budget is room enough.
    opendp_mst.prior = lambda budget: budget * (1 - 1e-12)
    if task["algorithm"] == "mst":
        algorithm = dp.mbi.MST(**task["settings"])
    else:
        algorithm = dp.mbi.AIM(queries=scored(list(sizes), task["group"]), **task["settings"])
    spent = {"epsilon": task["epsilon"]}
    context = dp.Context.compositor(
        data=pl.DataFrame(codes).lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(**spent)
    )
    table = (
        context.query(**spent)
        .contingency_table(
            keys={name: list(range(size - 1)) for name, size in sizes.items()},
            algorithm=algorithm,
        )
        .release()
    )
    fitted()
    rows = drawn(table.model, np.random.default_rng(task["seed"]))
    return {name: table.keys[name].fill_null(size - 1).to_numpy()[rows[name]] for name, size in sizes.items()}


def scored(columns: list[str], group: str | None) -> list[dp.mbi.Count]:
    """The tables that the comparison scores: of all pairs of columns, within each group where there are groups."""
    own = [name for name in columns if name != group]
    within = () if group is None else (group,)
    return [dp.mbi.Count((*pair, *within)) for pair in combinations(own, 2)]


def drawn(model: MarkovRandomField, random: np.random.Generator) -> Codes:
    """Rows of a fitted model: as near to its tables as whole rows come, and otherwise at random.

    The cliques of the junction tree in turn, each given the columns that it shares with those before. Of the rows with
    equal shared values, in random order, row r of m takes the cell in which (r + u) / m falls, u uniform: each cell
    gets its share of the m, rounded up or down.

    mbi 1.1 has two ways of its own, and both lose what the model knows. "sample" draws rows one by one, and adds the
    noise of that. "round" leaves the m rows in their order, so that columns with a common parent depend on each other
    as they should not. And both go by the measured cliques: in a loop of those, a column forgets the one that it meets
    over the chord.
    """
    tree, _ = junction_tree.make_junction_tree(model.domain, model.cliques)
    tables = marginal_oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)))
    number = max(1, round(float(model.total)))
    rows: Codes = {}
    for clique in junction_tree.maximal_cliques(tree):  # depth first: what is known of a clique is what its parent has
        known = [name for name in clique if name in rows]
        new = [name for name in clique if name not in rows]
        shape, new_shape = ([model.domain[name] for name in names] for names in (known, new))
        table = np.asarray(tables[clique].transpose([*known, *new]).values, np.float64).reshape(prod(shape), -1)
        value = np.ravel_multi_index([rows[name] for name in known], shape) if known else np.zeros(number, np.int64)
        values, parent, many = np.unique(value, return_inverse=True, return_counts=True)
        order = np.lexsort((random.random(number), parent))
        rank = np.empty(number, np.int64)
        rank[order] = np.arange(number) - np.repeat(np.cumsum(many) - many, many)
        shares = np.maximum(table[values], np.finfo(np.float64).tiny).cumsum(axis=1)
        edges = shares / shares[:, -1:] + np.arange(len(values))[:, None]
        place = parent + (rank + random.random(len(values))[parent]) / many[parent]
        cell = np.searchsorted(edges.ravel(), place, side="right") - parent * table.shape[1]
        cell = np.clip(cell, 0, table.shape[1] - 1)  # for rounding errors at the ends
        rows |= dict(zip(new, np.unravel_index(cell, new_shape), strict=True))
    return rows


if __name__ == "__main__":
    run(fit_and_draw)
