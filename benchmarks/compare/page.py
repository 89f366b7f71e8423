"""Tables and plots of the comparison, and what is kept of them in benchmarks/results for the page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from common import ROOT, table
from compare.entrants import NOTHING, SYSTEMS
from compare.jobs import TITLES
from compare.systems import MOST_GROUPS
from results import keep

Results = dict[tuple[str, str, str], list[dict[str, Any]]]

ONE = " <sup>1</sup>"


def good(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs that came to an end."""
    return [each for each in found if "failed" not in each]


def partial(found: Sequence[dict[str, Any]]) -> bool:
    """Whether a run did not do all groups."""
    return any(len(each["groups"]) < each["of"] for each in good(found))


def mean_error(found: Sequence[dict[str, Any]], what: str = "errors") -> float:
    """Of all runs and groups."""
    return statistics.mean(statistics.mean(each[what]) for each in good(found))


def mean_seconds(found: Sequence[dict[str, Any]]) -> float:
    return statistics.mean(each["seconds"] for each in good(found))


def without(found: Sequence[dict[str, Any]]) -> str:
    """What a table says where there is no figure."""
    if not found:
        return "not run"
    return "not tried" if found[0]["failed"].startswith("not tried") else "failed"


def shown_error(found: Sequence[dict[str, Any]]) -> str:
    """Mean and standard deviation, how many runs did not fail, and a mark if not all groups were done."""
    runs = good(found)
    if not runs:
        return without(found)
    errors = [statistics.mean(each["errors"]) for each in runs]
    spread = f" ± {statistics.stdev(errors):.4f}" if len(errors) > 1 else ""
    some = f" ({len(runs)} of {len(found)} runs)" if len(runs) < len(found) else ""
    return f"{statistics.mean(errors):.4f}{spread}{some}{ONE * partial(found)}"


def shown_raw(found: Sequence[dict[str, Any]]) -> str:
    """The error without the rule on numbers of rows, and the number of groups that it applies to in a run."""
    if not good(found):
        return without(found)
    hit = f"{statistics.mean(each['biased'] for each in good(found)):.1f}".removesuffix(".0")
    return f"{mean_error(found, 'raw'):.4f} ({hit}){ONE * partial(found)}"


def shown_time(found: Sequence[dict[str, Any]]) -> str:
    """Mean seconds; of a failure, how long it was given."""
    if good(found):
        return f"{mean_seconds(found):.1f}"
    return f"> {found[0]['seconds']:.0f}" if found and "not done" in found[0]["failed"] else "-"


def shown_beforehand(found: Sequence[dict[str, Any]]) -> str:
    """Seconds of tuning or rehearsing, the longest; "none" for systems without either."""
    told = [each["rehearsal seconds"] for each in good(found) if "rehearsal seconds" in each]
    known = [each for each in told if each is not None]
    return f"{max(known):.0f}" if known else "-" if told or not good(found) else "none"


def jobs_of(results: Results) -> list[str]:
    return list(dict.fromkeys(job for job, _, _ in results))


def lines_of(results: Results, job: str) -> tuple[list[str], list[str]]:
    """Systems, best first, and epsilons."""
    epsilons = list(dict.fromkeys(epsilon for each, _, epsilon in results if each == job))
    names = list(dict.fromkeys(name for each, name, _ in results if each == job))
    middle = epsilons[len(epsilons) // 2]

    def rank(name: str) -> tuple[bool, float]:
        found = results[job, name, middle]
        return not good(found), mean_error(found) if good(found) else 0.0

    return sorted(names, key=rank), epsilons


def job_tables(results: Results, job: str) -> str:
    """Errors, costs, failures and partial runs of one job."""
    names, epsilons = lines_of(results, job)
    errors, alone, costs, failures, chosen = [], [], [], [], []
    for name in names:
        title, promise, public = SYSTEMS[name].title, SYSTEMS[name].promise, SYSTEMS[name].public
        found = [results[job, name, epsilon] for epsilon in epsilons]
        runs = [run for each in found for run in each]
        errors.append([title, promise, "yes" if public else "no", *map(shown_error, found)])
        alone.append([title, *map(shown_raw, found)])
        if promise != NOTHING:
            memory = f"{max(run['GiB'] for run in runs):.2f}" if runs else "-"
            costs.append([title, *map(shown_time, found), shown_beforehand(runs), memory])
        failures += noted(title, epsilons, found, "failed")
        chosen += noted(title, epsilons, found, "settings")
    head = [f"eps {epsilon}" for epsilon in epsilons]
    text = ["Error:", table(["system", "promise", "public table", *head], errors)]
    every = [run for key, found in results.items() if key[0] == job for run in good(found)]
    if any(run["of"] > 1 or run["biased"] for run in every):
        text += [
            "Error of the two-way tables alone (without the rule on numbers of rows), and in brackets the number of "
            "groups to which the rule applied:",
            table(["system", *head], alone),
        ]
    text += [
        "Seconds (fitting and drawing rows), seconds beforehand, and the largest memory of any run, in GiB:",
        table(["system", *head, "beforehand", "GiB"], costs),
    ]
    some = partial_runs(results, job, names, epsilons)
    if some:
        text += [
            f"<sup>1</sup> Not all groups: a system that treats each group separately takes at most {MOST_GROUPS} "
            "groups, the same ones for all systems, and starts no new group after three quarters of its time. "
            "Seconds are extrapolated to all groups:",
            some,
        ]
    if chosen:
        text += ["Settings that the rehearsals chose:", "\n".join(chosen)]
    if failures:
        text += ["What failed or was not tried, and why:", "\n".join(failures)]
    return "\n\n".join(text)


def noted(title: str, epsilons: Sequence[str], found: Sequence[Sequence[dict[str, Any]]], what: str) -> list[str]:
    """A line for each thing that runs of a system say of themselves, with the epsilons and, of several, the seeds."""
    where: dict[str, list[str]] = {}
    for epsilon, runs in zip(epsilons, found, strict=True):
        for text in dict.fromkeys(run[what] for run in runs if what in run):
            seeds = [str(seed) for seed, run in enumerate(runs) if run.get(what) == text]
            where.setdefault(text, []).append(epsilon + f" (seed {', '.join(seeds)})" * (len(seeds) < len(runs)))
    return [f"* {title}, eps {', '.join(at)}: {text}" for text, at in where.items()]


def partial_runs(results: Results, job: str, names: Sequence[str], epsilons: Sequence[str]) -> str:
    """What was done of some groups only, beside prade's error in the very same groups, with the rule and without."""
    rows = []
    for name in names:
        for epsilon in epsilons:
            found, ours = results[job, name, epsilon], good(results.get((job, "prade", epsilon), []))
            if not partial(found):
                continue
            groups = [run["groups"] for run in good(found)]
            done = " to ".join(map(str, sorted({min(map(len, groups)), max(map(len, groups))})))
            figures = []
            for what in ("errors", "raw"):
                figures += [f"{mean_error(found, what):.4f}", same_groups(ours, groups, what)]
            rows.append([SYSTEMS[name].title, epsilon, f"{done} of {good(found)[0]['of']}", *figures])
    head = ["system", "eps", "groups", "error", "prade in the same groups", "error alone", "prade's alone"]
    return table(head, rows) if rows else ""


def same_groups(ours: Sequence[dict[str, Any]], groups: Sequence[Sequence[int]], what: str) -> str:
    """Our mean error in the groups of each of their runs."""
    by_group = [dict(zip(run["groups"], run[what], strict=True)) for run in ours]
    if not by_group or any(group not in run for run in by_group for each in groups for group in each):
        return "-"
    return (
        f"{statistics.mean(statistics.mean(run[group] for group in each) for run in by_group for each in groups):.4f}"
    )


def tables(results: Results) -> str:
    """All jobs' tables."""
    return "\n\n".join(f"## {TITLES[job]}\n\n{job_tables(results, job)}" for job in jobs_of(results))


# ---------------------------------------------------------------------- plots


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a mark for each system, the same in all panels; ours stands out."""
    colours, marks = plt.get_cmap("tab20").colors, "osD^vP*Xdp<>h8"
    found = {name: {"color": colours[k % 20], "marker": marks[k % len(marks)]} for k, name in enumerate(names)}
    return found | {
        "prade": {"color": "black", "marker": "o", "linewidth": 2.5, "zorder": 9},
        "prior": {"color": "grey", "marker": "", "linestyle": "dashed"},
    }


@contextmanager
def panels(results: Results, against: str) -> Iterator[list[tuple[Any, str, str, Sequence[str]]]]:
    """One panel per job, to be filled: (axes, job, system, epsilons) of all; makes docs/comparison-AGAINST.svg."""
    jobs = jobs_of(results)
    wide = min(len(jobs), 2)
    high = -(-len(jobs) // wide)
    figure, grid = plt.subplots(high, wide, figsize=(4.8 * wide, 3.6 * high + 1.2), layout="constrained", squeeze=False)
    every = []
    for axes, job in zip(grid.flat, jobs, strict=False):
        names, epsilons = lines_of(results, job)
        every += [(axes, job, name, epsilons) for name in names]
    yield every
    for axes, job in zip(grid.flat, jobs, strict=False):
        axes.set(xscale="log", yscale="log", xlabel=against, ylabel="error", title=job)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
    for axes in grid.flat[len(jobs) :]:
        axes.set_axis_off()
    _legend(figure, grid.flat)
    figure.savefig(ROOT / "docs" / f"comparison-{against}.svg", metadata={"Date": None})
    plt.close(figure)


def plot_epsilon(results: Results) -> None:
    """docs/comparison-epsilon.svg: error against epsilon."""
    look = looks(list(SYSTEMS))
    with panels(results, "epsilon") as every:
        for axes, job, name, epsilons in every:
            runs = {float(epsilon): results[job, name, epsilon] for epsilon in epsilons}
            points = {x: mean_error(found) for x, found in runs.items() if good(found)}
            if points:
                axes.plot(points.keys(), points.values(), label=SYSTEMS[name].title, **look[name])
            if some := {x: error for x, error in points.items() if partial(runs[x])}:
                open_marks = {**look[name], "linestyle": "none", "markerfacecolor": "white", "zorder": 10}
                axes.plot(some.keys(), some.values(), **open_marks)


def plot_time(results: Results) -> None:
    """docs/comparison-seconds.svg: error against seconds, one point per epsilon, larger for larger ones."""
    look = looks(list(SYSTEMS))
    with panels(results, "seconds") as every:
        for axes, job, name, epsilons in every:
            runs = [results[job, name, epsilon] for epsilon in epsilons if SYSTEMS[name].promise != NOTHING]
            sized = [(found, 25 * (k + 1)) for k, found in enumerate(runs) if good(found)]
            if sized:
                colour = look[name]["color"]
                axes.scatter(
                    [max(mean_seconds(found), 0.01) for found, _ in sized],
                    [mean_error(found) for found, _ in sized],
                    s=[size for _, size in sized],
                    facecolors=["white" if partial(found) else colour for found, _ in sized],
                    edgecolors=colour,
                    marker=look[name]["marker"],
                    zorder=look[name].get("zorder", 2),
                    label=SYSTEMS[name].title,
                )


def _legend(figure: Any, panels: Sequence[Any]) -> None:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=4, fontsize="small")


# ---------------------------------------------------------------------- what is kept


def summary(results: Results, job: str) -> str:
    """One table of a job: errors, seconds at the middle epsilon, memory; a star where some groups only were done."""
    names, epsilons = lines_of(results, job)
    middle, rows = epsilons[len(epsilons) // 2], []
    for name in names:
        system, found = SYSTEMS[name], [results[job, name, epsilon] for epsilon in epsilons]
        memory = [run["GiB"] for each in found for run in each]
        costs = [shown_time(results[job, name, middle]), f"{max(memory):.2f}" if memory else "-"]
        errors = [shown_error(each).replace(ONE, "*") for each in found]
        costs = ["", ""] if system.promise == NOTHING else costs
        rows.append([system.title, system.promise, "yes" if system.public else "no", *errors, *costs])
    columns = [f"eps {epsilon}" for epsilon in epsilons]
    head = ["system", "promise", "public table", *columns, f"seconds at eps {middle}", "GiB"]
    return f"{TITLES[job]}:\n\n{table(head, rows)}\n"


def keep_results(results: Results) -> None:
    """Write benchmarks/results/compare-JOB.json for each job, from which pages take their tables, and the plots."""
    for job in jobs_of(results):
        keep(f"compare-{job}", summary(results, job), f"make compare COMPARE={job}")
    begun = {job for (job, _, _), found in results.items() if good(found)}
    if drawn := {key: found for key, found in results.items() if key[0] in begun}:
        plot_epsilon(drawn)
        plot_time(drawn)
