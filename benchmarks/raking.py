"""Raking 251,022 ACS rows to the 36 one-way marginals of one New York PUMA, beside mbi and ipfn.

Every system gets the same exact answers. For each level of L1 error (summed over the 36 marginals, as shares), the
time at which each first got there; mbi and ipfn are stopped after a time limit. mbi runs in double precision.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import warnings

import numpy as np

from common import acs_groups, acs_prior, need_data, noisy, one_way, report, table
from prade import Workload
from prade.data.public.joint import Coded, Prior
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP

LEVELS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)


def l1(workload: Workload, answers: list[np.ndarray], codes: list[np.ndarray], weights: np.ndarray) -> float:
    weights = weights / weights.sum()
    return float(
        sum(
            np.abs(np.bincount(code, weights=weights, minlength=len(a)) - a).sum()
            for code, a in zip(codes, answers, strict=True)
        )
    )


def kl(prior: Prior, weights: np.ndarray) -> float:
    q = weights / weights.sum()
    some = q > 0
    return float(np.sum(q[some] * np.log(q[some] / prior.weights[some])))


def with_mbi(prior: Prior, workload: Workload, answers: list[np.ndarray], limit: float) -> list[tuple[float, ...]]:
    """(seconds, L1, KL) at every report of ReweightedDatasetEstimator with adam(0.1)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi
    import optax
    from mbi.extensions.reweighted_dataset import ReweightedDatasetEstimator

    names = [part.columns[0] for part in workload]
    codes = [prior.codes[name] for name in names]
    domain = mbi.Domain(names, [part.n_cells for part in workload])
    # one record a public row: the estimator starts from uniform weights, so repeated rows are written out
    times = np.round(prior.weights / prior.weights.min()).astype(int)
    row = np.repeat(np.arange(len(prior)), times)
    data = mbi.Dataset({name: code[row].astype(np.int64) for name, code in zip(names, codes, strict=True)}, domain)
    measurements = [mbi.LinearMeasurement(a, (n,), stddev=1e-3) for n, a in zip(names, answers, strict=True)]
    seen: list[tuple[float, ...]] = []
    spent_here = 0.0
    started = time.perf_counter()

    class Enough(Exception):
        pass

    def watch(model: object) -> None:
        nonlocal spent_here
        jax.block_until_ready(model.weights)  # the work is done when it is asked for
        arrived = time.perf_counter()
        weights = np.bincount(row, weights=np.asarray(model.weights), minlength=len(prior))
        seen.append((arrived - started - spent_here, l1(workload, answers, codes, weights), kl(prior, weights)))
        spent_here += time.perf_counter() - arrived
        if seen[-1][0] > limit or seen[-1][1] < LEVELS[-1]:
            raise Enough

    estimator = ReweightedDatasetEstimator(seed_data=data, optimizer=optax.adam(0.1))
    with contextlib.suppress(Enough):
        estimator.estimate(domain, measurements, known_total=1.0, iters=1_000_000, callback_fn=watch)
    return seen


def with_ipfn(prior: Prior, workload: Workload, answers: list[np.ndarray], limit: float) -> list[tuple[float, ...]]:
    """(seconds, L1, KL) after each iteration of ipfn on a data frame."""
    import pandas as pd
    from ipfn import ipfn

    names = [part.columns[0] for part in workload]
    codes = [prior.codes[name] for name in names]
    frame = pd.DataFrame({name: code.astype(np.int64) for name, code in zip(names, codes, strict=True)})
    frame["total"] = prior.weights
    aggregates = []
    for name, a in zip(names, answers, strict=True):
        series = pd.Series(a, index=pd.Index(range(len(a)), name=name))
        aggregates.append(series[series.index.isin(frame[name].unique())])
    seen: list[tuple[float, ...]] = []
    spent = 0.0
    while spent < limit:
        started = time.perf_counter()
        frame = ipfn.ipfn(
            frame, aggregates, [[n] for n in names], weight_col="total", max_iteration=1, convergence_rate=0
        ).iteration()
        spent += time.perf_counter() - started
        weights = frame["total"].to_numpy()
        seen.append((spent, l1(workload, answers, codes, weights), kl(prior, weights)))
        if seen[-1][1] < LEVELS[-1]:
            break
    return seen


def with_prade(prior: Prior, workload: Workload, group: Coded) -> tuple[list[tuple[float, ...]], float]:
    """(seconds, L1, KL) after each step, from an untouched prior: laying out the rows is in the time."""
    exact = noisy(workload, group, None, 0)
    MAP(n0=1.0, max_steps=4).fit(prior, exact, len(group))  # compile
    started = time.perf_counter()
    layout = Layout(prior, workload)
    set_up = time.perf_counter() - started
    steps = []
    for limit in (1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
        started = time.perf_counter()
        estimate = MAP(n0=1.0, tolerance=1e9, misfit=limit).fit(prior, exact, len(group), layout=layout)
        spent = time.perf_counter() - started
        answers = workload.answer(group)
        codes = [prior.codes[part.columns[0]] for part in workload]
        steps.append((set_up + spent, l1(workload, answers, codes, estimate.weights), estimate.report.kl))
    return steps, set_up


def every_sixth(prior: Prior, workload: Workload, groups: list[Coded]) -> str:
    """How raking to 1e-6 ends, and when, over many PUMAs."""
    layout = Layout(prior, workload)
    times: dict[str, list[float]] = {}
    for group in groups[::6]:
        exact = noisy(workload, group, None, 0)
        started = time.perf_counter()
        estimate = MAP(n0=1.0, tolerance=1e9, misfit=1e-6).fit(prior, exact, len(group), layout=layout)
        times.setdefault(estimate.status.value, []).append(time.perf_counter() - started)
    rows = [[s, len(t), f"{np.median(t):.2f} s", f"{max(t):.2f} s"] for s, t in sorted(times.items())]
    return "Every sixth PUMA, to 1e-6:\n\n" + table(["ended", "PUMAs", "median", "slowest"], rows)


def first(seen: list[tuple[float, ...]], level: float) -> tuple[float, ...] | None:
    return next((entry for entry in seen if entry[1] <= level), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--puma", type=int, default=10, help="which PUMA of the public list")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for mbi and for ipfn")
    options = parser.parse_args()
    need_data()
    schema, prior = acs_prior()
    workload = one_way(schema)
    groups = acs_groups(schema)
    group = groups[options.puma]
    answers = workload.answer(group)
    systems: dict[str, list[tuple[float, ...]]] = {}
    systems["prade"], set_up = with_prade(prior, workload, group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, run in (("mbi 2.0, adam(0.1)", with_mbi), ("ipfn", with_ipfn)):
            try:
                systems[name] = run(prior, workload, answers, options.limit)
            except ImportError as absent:
                print(f"{name} is left out: {absent}; install the bench extra", file=sys.stderr)
    rows = []
    for level in LEVELS:
        cells: list[str] = [f"{level:g}"]
        ours = first(systems["prade"], level)
        for name, seen in systems.items():
            entry = first(seen, level)
            if entry is None:
                cells.append(f"not in {seen[-1][0]:.0f} s")
            else:
                times = "" if name == "prade" or ours is None else f", {entry[0] / ours[0]:.0f}x"
                cells.append(f"{entry[0]:.2f} s{times}, KL {entry[2]:.4f}")
        rows.append(cells)
    ends = "; ".join(f"{n}: L1 {s[-1][1]:.1e}, KL {s[-1][2]:.4f} after {s[-1][0]:.1f} s" for n, s in systems.items())
    text = (
        f"Raking {len(prior):,} distinct rows to 36 one-way tables of PUMA number {options.puma} "
        f"({len(group):,} persons). prade's times include {set_up:.2f} s for the layout of the rows, "
        "which later groups share. Time to reach an L1 error (summed over the 36 tables):\n\n"
        + table(["L1 error", *systems], rows)
        + f"\n\nWhere each ended: {ends}.\n\n"
        + every_sixth(prior, workload, groups)
    )
    report("raking", text, {name: seen[-1] for name, seen in systems.items()})


if __name__ == "__main__":
    main()
