"""Tables and plots of the comparison, and the page that they are on."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from common import ROOT, machine, table
from compare_box import Limits
from compare_jobs import TITLES
from compare_list import NOTHING, SYSTEMS

Results = dict[tuple[str, str, str], list[dict[str, Any]]]

PAGE = ROOT / "docs" / "comparison.md"
BEGIN, END = "<!-- written by hand: begin -->", "<!-- written by hand: end -->"
HEAD = """# Beside other systems

Made by `make compare`: the same tables, the same schema and bins, the same epsilon, the same score for everybody. The
score is the contest's over all pairs of columns: for each group the L1 distance (0 to 2) between the two-way tables of
true and of synthetic rows, 2 for a group whose number of rows is off by 250 or more; the mean over groups. Smaller is
better.

Every run has a process of its own, {minutes:g} minutes and {gib:g} GiB; what takes more has failed, and it says so.
Three seeds where they fit into the time of one run; ± is the standard deviation between them. Where a system promises
(eps, 1e-9) and not pure eps, it promises less, and it says so. "Public table" says who starts from it: MST, AIM,
PrivBayes and a histogram know the private table only, and that is the difference which the comparison is about. Systems
that know no groups get the group as one more column. Machine: {machine}.
"""
UNREAD = "Nothing has been read into these figures yet."


def mean_error(found: Sequence[dict[str, Any]]) -> float:
    """Of all runs and groups."""
    return statistics.mean(statistics.mean(each["errors"]) for each in found)


def finished(found: Sequence[dict[str, Any]]) -> bool:
    return bool(found) and "failed" not in found[0]


def good(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs that came to an end."""
    return [each for each in found if "failed" not in each]


def shown_error(found: Sequence[dict[str, Any]], groups: int) -> str:
    """Mean and spread; "1)" where not all groups were done."""
    if not finished(found):
        return "failed"
    runs = good(found)
    errors = [statistics.mean(each["errors"]) for each in runs]
    spread = f" ± {statistics.stdev(errors):.4f}" if len(errors) > 1 else ""
    return f"{statistics.mean(errors):.4f}{spread}" + ("" if len(runs[0]["groups"]) == groups else " <sup>1</sup>")


def shown_time(found: Sequence[dict[str, Any]]) -> str:
    """Mean seconds; of a failure, how long it was given."""
    if not finished(found):
        return f"> {found[0]['seconds']:.0f}" if "not done" in found[0]["failed"] else "-"
    return f"{statistics.mean(each['seconds'] for each in good(found)):.1f}"


def jobs_of(results: Results) -> list[str]:
    return list(dict.fromkeys(job for job, _, _ in results))


def lines_of(results: Results, job: str) -> tuple[list[str], list[str], int]:
    """Systems, best first, epsilons, and how many groups there are."""
    epsilons = list(dict.fromkeys(epsilon for each, _, epsilon in results if each == job))
    names = list(dict.fromkeys(name for each, name, _ in results if each == job))
    runs = [found for key, found in results.items() if key[0] == job and finished(found)]
    groups = max((len(found[0]["groups"]) for found in runs), default=0)
    middle = epsilons[len(epsilons) // 2]

    def rank(name: str) -> tuple[bool, float]:
        found = results[job, name, middle]
        return not finished(found), mean_error(good(found)) if finished(found) else 0.0

    return sorted(names, key=rank), epsilons, groups


def job_tables(results: Results, job: str) -> str:
    """Errors, costs, failures and partial runs of one job."""
    names, epsilons, groups = lines_of(results, job)
    errors, costs, failures = [], [], []
    for name in names:
        system = SYSTEMS[name]
        found = [results[job, name, epsilon] for epsilon in epsilons]
        errors.append(
            [
                system.title,
                system.promise,
                "yes" if system.public else "no",
                *(shown_error(each, groups) for each in found),
            ]
        )
        if system.promise != NOTHING:
            memory = max((run["GiB"] for each in found for run in each), default=0.0)
            costs.append([system.title, *(shown_time(each) for each in found), f"{memory:.2f}"])
        whys = {epsilon: each[0]["failed"] for epsilon, each in zip(epsilons, found, strict=True) if not finished(each)}
        for why in dict.fromkeys(whys.values()):
            at = ", ".join(epsilon for epsilon, each in whys.items() if each == why)
            failures.append(f"* {system.title}, eps {at}: {why}")
    head = [f"eps {epsilon}" for epsilon in epsilons]
    text = [
        "Error:", table(["system", "promise", "public table", *head], errors),
        "Seconds (fitting and drawing rows), and the most memory of any run, in GiB:",
        table(["system", *head, "GiB"], costs),
    ]  # fmt: skip
    partial = partial_runs(results, job, names, epsilons, groups)
    if partial:
        text += ["<sup>1</sup> Not all groups in the time given; their seconds are multiplied up to all:", partial]
    if failures:
        text += ["What failed, and why:", "\n".join(failures)]
    return "\n\n".join(text)


def partial_runs(results: Results, job: str, names: Sequence[str], epsilons: Sequence[str], groups: int) -> str:
    """What was done of some groups only, beside prade's error in the very same groups."""
    rows = []
    for name in names:
        for epsilon in epsilons:
            found, ours = results[job, name, epsilon], results.get((job, "prade", epsilon), [])
            if not finished(found) or len(found[0]["groups"]) == groups:
                continue
            same = "-"
            if finished(ours):
                theirs = found[0]["groups"]
                same = f"{statistics.mean(run['errors'][group] for run in good(ours) for group in theirs):.4f}"
            done = f"{len(found[0]['groups'])} of {groups}"
            rows.append([SYSTEMS[name].title, epsilon, done, f"{mean_error(good(found)):.4f}", same])
    return table(["system", "eps", "groups", "error", "prade in the same groups"], rows) if rows else ""


def tables(results: Results, limits: Limits) -> str:
    """All jobs' tables."""
    return "\n\n".join(f"## {TITLES[job]}\n\n{job_tables(results, job)}" for job in jobs_of(results))


# ---------------------------------------------------------------------- plots


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a mark for each system, the same in all panels; ours stands out."""
    colours, marks = plt.get_cmap("tab10").colors, "osD^vP*Xdp<>h8"
    found = {name: {"color": colours[k % 10], "marker": marks[k % len(marks)]} for k, name in enumerate(names)}
    if "prade" in found:
        found["prade"] = {"color": "black", "marker": "o", "linewidth": 2.5, "zorder": 9}
    return found


@contextmanager
def panels(results: Results, against: str) -> Iterator[list[tuple[Any, str, str, Sequence[str]]]]:
    """A panel a job, to be filled: (axes, job, system, epsilons) of all; then docs/comparison-AGAINST.svg is made."""
    jobs = jobs_of(results)
    figure, row = plt.subplots(1, len(jobs), figsize=(4.2 * len(jobs), 4.6), layout="constrained", squeeze=False)
    every = []
    for axes, job in zip(row[0], jobs, strict=True):
        names, epsilons, _ = lines_of(results, job)
        every += [(axes, job, name, epsilons) for name in names]
    yield every
    for axes, job in zip(row[0], jobs, strict=True):
        axes.set(xscale="log", yscale="log", xlabel=against, title=job)
    row[0][0].set_ylabel("error")
    _legend(figure, row[0])
    figure.savefig(ROOT / "docs" / f"comparison-{against}.svg", metadata={"Date": None})


def plot_epsilon(results: Results) -> None:
    """docs/comparison-epsilon.svg: error against epsilon."""
    look = looks(list(SYSTEMS))
    with panels(results, "epsilon") as every:
        for axes, job, name, epsilons in every:
            points = [
                (float(epsilon), mean_error(good(results[job, name, epsilon])))
                for epsilon in epsilons
                if finished(results[job, name, epsilon])
            ]
            if points:
                axes.plot(*zip(*points, strict=True), label=SYSTEMS[name].title, **look[name])


def plot_time(results: Results) -> None:
    """docs/comparison-seconds.svg: error against seconds, a point an epsilon, larger for larger ones."""
    look = looks(list(SYSTEMS))
    with panels(results, "seconds") as every:
        for axes, job, name, epsilons in every:
            runs = [results[job, name, epsilon] for epsilon in epsilons if SYSTEMS[name].promise != NOTHING]
            points = [
                (
                    max(statistics.mean(each["seconds"] for each in good(found)), 0.01),
                    mean_error(good(found)),
                    25 * (k + 1),
                )
                for k, found in enumerate(runs)
                if finished(found)
            ]
            if points:
                x, y, size = zip(*points, strict=True)
                style = {key: value for key, value in look[name].items() if key != "linewidth"}
                axes.scatter(x, y, s=size, label=SYSTEMS[name].title, **style)


def _legend(figure: Any, panels: Sequence[Any]) -> None:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=4, fontsize="small")


# ---------------------------------------------------------------------- the page


def settings() -> str:
    """What each system was told."""
    return table(
        ["system", "promise", "settings"], [[each.title, each.promise, each.settings] for each in SYSTEMS.values()]
    )


def by_hand() -> str:
    """What a person has written into the page, which stays."""
    text = PAGE.read_text() if PAGE.exists() else ""
    if BEGIN in text and END in text:
        return text.split(BEGIN, 1)[1].split(END, 1)[0].strip("\n")
    return UNREAD


def write_page(results: Results, limits: Limits) -> None:
    """docs/comparison.md, all but what was written by hand."""
    figures = ""
    if results:
        plot_epsilon(results)
        plot_time(results)
        figures = (
            "## At a glance\n\n![Error against epsilon](comparison-epsilon.svg)\n\n"
            "Error against seconds; a mark for each epsilon, the larger the larger:\n\n"
            "![Error against time](comparison-seconds.svg)\n\n"
        )
    head = HEAD.format(minutes=limits.seconds / 60, gib=limits.gib, machine=machine())
    reading = f"## Reading\n\n{BEGIN}\n\n{by_hand()}\n\n{END}\n\n"
    found = tables(results, limits) or "## Results\n\nNo run has been made yet: `make compare` takes some hours."
    PAGE.write_text(f"{head}\n{reading}{figures}{found}\n\n## Settings\n\n{settings()}\n")
