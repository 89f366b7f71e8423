"""MAP for all 239 PUMAs of New York and Pennsylvania at eps 1 and 10, gap below 1e-3 of the objective.

The baseline is block ascent in plain numpy (one `bincount` and one multiplication a part), stopped at the same gap,
on some of the PUMAs: it is too slow for all.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from common import acs_groups, acs_prior, need_data, noisy, one_way, report, table
from prade import Workload
from prade.core.execution import several
from prade.data.public.joint import Prior
from prade.estimating.base import check
from prade.estimating.dual import Dual
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP, prior_worth


def numpy_sweeps(prior: Prior, workload: Workload, dual: Dual, bound: float, limit: float) -> tuple[float, float]:
    """Seconds and relative gap of plain cyclic block ascent; the gap is looked at every fifth sweep."""
    codes = [prior.codes[part.columns[0]] for part in workload]
    slices = [dual.layout.part(k) for k in range(len(workload))]
    lam = np.zeros(dual.layout.n_cells)
    weights = prior.weights.copy()
    started = time.perf_counter()
    gap = np.inf
    for sweep in range(1, 100_000):
        for code, at in zip(codes, slices, strict=True):
            y = dual.y[at]
            mass = np.bincount(code, weights=weights, minlength=len(y))
            low, high = mass * np.exp(-lam[at] - bound), mass * np.exp(-lam[at] + bound)
            near, far = low.sum(), high.sum()
            for _ in range(60):
                level = 0.5 * (near + far)
                if np.clip(y * level, low, high).sum() > level:
                    near = level
                else:
                    far = level
            new = np.clip(y * level, low, high)
            ratio = np.divide(new, mass, out=np.ones_like(mass), where=mass > 0)
            lam[at] += np.log(ratio)
            weights *= (ratio / level)[code]
        if sweep % 5 == 0:
            q = weights / weights.sum()
            sizes = [at.stop - at.start for at in slices]
            counted = [np.bincount(c, weights=q, minlength=n) for c, n in zip(codes, sizes, strict=True)]
            masses = np.concatenate(counted)
            r = dual.y - masses
            inside = np.clip(lam, -bound, bound)
            loss = bound * np.abs(r).sum()
            gap = float(loss - inside @ r)
            kl = float(np.sum(q[q > 0] * np.log(q[q > 0] / prior.weights[q > 0])))
            if gap <= 1e-3 * (kl + loss) or time.perf_counter() - started > limit:
                return time.perf_counter() - started, gap / (kl + loss)
    return time.perf_counter() - started, gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--baseline", type=int, default=3, help="PUMAs for the numpy baseline")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a PUMA for the baseline")
    options = parser.parse_args()
    need_data()
    schema, prior = acs_prior()
    groups = acs_groups(schema)
    workload = one_way(schema)
    layout = Layout(prior, workload)
    estimator = MAP(tolerance=1e-3)
    estimator.fit(prior, noisy(workload, groups[0], 1.0, 0), len(groups[0]), layout=layout)  # compile
    rows, figures = [], {}
    for epsilon in (1.0, 10.0):
        work = [(noisy(workload, group, epsilon, seed), float(len(group))) for seed, group in enumerate(groups)]
        started = time.perf_counter()
        gaps, passes, statuses = [], [], []
        for estimate in several(lambda group: estimator.fit(prior, *group, layout=layout), work, options.threads):
            gaps.append(estimate.report.gap / estimate.report.objective)
            passes.append(estimate.report.trace[-1].passes)
            statuses.append(estimate.status.value)
        ours = time.perf_counter() - started
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        # the same PUMAs one after the other, on one thread, for the ratio
        chosen = np.linspace(0, len(groups) - 1, options.baseline + 2).astype(int)[1:-1]
        alone, plain, reached = [], [], []
        for g in chosen:
            started = time.perf_counter()
            estimator.fit(prior, *work[g], layout=layout)
            alone.append(time.perf_counter() - started)
            answers = check(prior, *work[g], layout)
            n0 = prior_worth(answers)
            dual = estimator.problem(answers, n0)
            spent, gap = numpy_sweeps(prior, workload, dual, float(dual.high[0]), options.limit)
            plain.append(spent)
            reached.append(gap)
        ratio = sum(plain) / sum(alone)
        late = sum(gap > 1e-3 for gap in reached)
        rows.append([
            f"{epsilon:g}", f"{ours:.1f} s", f"{ours / len(groups) * 1e3:.0f} ms", f"{np.mean(passes):.1f}",
            f"{max(gaps):.1e}", f"{statuses.count('converged')} of {len(groups)}",
            f"{'more than ' if late else ''}{ratio:.0f}x ({np.mean(plain):.1f} s per PUMA, {late} of {len(chosen)} "
            f"stopped at {options.limit:.0f} s)", f"{memory:.2f} GiB",
        ])  # fmt: skip
        figures[f"eps_{epsilon:g}"] = {"seconds": ours, "ratio": ratio, "memory": memory}
    text = (
        f"MAP with automatic n0 for {len(groups)} PUMAs, {len(prior):,} prior rows, 36 one-way parts, "
        f"{options.threads} threads (target: 5 times faster than numpy sweeps, about 25 s, under 1.5 GiB):\n\n"
        + table(
            [
                "eps",
                "all PUMAs",
                "per PUMA",
                "passes",
                "worst gap / objective",
                "converged",
                "numpy sweeps on one thread, times slower",
                "peak memory",
            ],
            rows,
        )
    )
    report("groups", text, figures)


if __name__ == "__main__":
    main()
