"""The data of a page about rehearsed budgets, with invented numbers: it follows what `prade plan --epsilon` writes."""

import numpy as np

from prade.estimating.levels.cell_counts import interval
from prade.tuning.closer_look import listed

EPSILONS = ("0.1", "0.3", "1", "3", "10")
COLUMNS = {
    "AGE": ("Age", "", "years", [f"{low} to {low + 9}" for low in range(0, 90, 10)] + ["90 and older"]),
    "SEX": ("Sex", "", "", ["male", "female"]),
    "MARITAL": ("Marital status", "", "", ["never married", "married", "widowed", "divorced", "separated"]),
    "RACE": ("Race", "As the person says it", "", ["White", "Black", "Asian", "Native", "other", "two or more"]),
    "EDUC": ("Education", "Highest level completed", "", ["none", "school", "college", "bachelor", "master or higher"]),
    "EMPLOY": ("Employment", "", "", ["employed", "unemployed", "not in the labour force", "under 16"]),
    "HOURS": ("Hours of work", "Usual hours in a week", "hours", ["0", "1 to 19", "20 to 34", "35 to 40", "over 40"]),
    "INCOME": ("Income", "All income of the last year", "dollars", [f"under {top},000" for top in range(10, 130, 10)]),
    "HEALTH": ("Health insurance", "", "", ["yes", "no"]),
    "LANGUAGE": ("", "", "", ["1", "2", "3", "missing"]),
}
LEVELS = [{"name": "STATE", "groups": 2}, {"name": "PLACE", "groups": 36}]


def columns(hostile: str = "") -> list[dict]:
    """The columns; a hostile text takes the place of one name, one title and one label."""
    found = [
        {"name": name, "title": title, "description": about, "unit": unit, "labels": list(labels)}
        for name, (title, about, unit, labels) in COLUMNS.items()
    ]
    if hostile:
        found[0].update(name=hostile, title=hostile, description=hostile, unit=hostile)
        found[0]["labels"][1] = hostile
    return found


def shares(rng: np.random.Generator, given: list[dict], around: np.ndarray | None = None, off: float = 0.0):
    """Shares of each column's cells, one column after the other, which sum to one in each."""
    parts, start = [], 0
    for column in given:
        cells = len(column["labels"])
        if around is None:
            drawn = rng.dirichlet(np.linspace(8, 2, cells))
        else:
            drawn = np.clip(around[start : start + cells] + rng.normal(0, off, cells), 1e-4, None)
        parts.append(drawn / drawn.sum())
        start += cells
    return np.concatenate(parts)


def explored(*, hostile: str = "", dataset: str = "census-like survey", places: int = 3) -> dict:
    """What five budgets buy: the data of `prade.reporting.html.write_explore`."""
    rng = np.random.default_rng(15)
    given = columns(hostile)
    number = len(given)
    column_prior = rng.uniform(0.05, 0.4, number)
    pair_prior = column_prior[:, None] + column_prior[None, :] + 0.05
    np.fill_diagonal(pair_prior, np.nan)
    budgets = [budget(rng, given, epsilon, column_prior, pair_prior) for epsilon in EPSILONS]
    shown = []
    for place in range(places):
        truth = shares(rng, given)
        public = shares(rng, given, truth, 0.05)
        label = f"{hostile} PLACE {1 + place}".strip()
        shown.append({"label": label, "rows": 800 * (place + 1), "truth": listed(truth), "public": listed(public)})
        for number, each in enumerate(budgets):
            each["tables"].append(table(rng, given, truth, number))
    return {
        "dataset": hostile or dataset,
        "symbol": "epsilon",
        "levels": [dict(level) for level in LEVELS],
        "columns": given,
        "public": {"rows": 123_456, "files": ["public-2022.parquet", "public-2023.parquet"]},
        "unit": "One person with all of their rows, of which at most 4 count.",
        "rehearsal": "12 groups of each of 2 public states stood in for private ones, with the noise of a real run.",
        "caveats": [
            "Only two public states stood in: a third one may differ more from them than they do from each other.",
            hostile or "Changes between years were not rehearsed; expect larger errors.",
        ],
        "elbow": "Beyond epsilon = 3 you pay 3.3 times as much for an error that is 5 % smaller.",
        "recommended": 3,
        "budgets": budgets,
        "column_prior": column_prior.tolist(),
        "pair_prior": listed(pair_prior),
        "places": shown,
    }


def left_of(epsilon: str) -> float:
    """The share of the public table's error that a budget leaves."""
    return float(0.22 + 0.8 / (1 + 1.6 * float(epsilon) ** 0.8))


def budget(rng, given: list[dict], epsilon: str, column_prior, pair_prior) -> dict:
    left = left_of(epsilon)
    measured = [column["name"] for column in given[: 2 + 2 * EPSILONS.index(epsilon)]]
    pairs = [f"{measured[0]} x {measured[1]}"]
    pair_errors = pair_prior * np.clip(left + rng.normal(0, 0.05, pair_prior.shape), 0.05, 1.1)
    small = int(20 / (1 + 3 * float(epsilon)))
    return {
        "epsilon": epsilon,
        "amount": float(epsilon),
        "budget": f"epsilon = {epsilon} (pure differential privacy)",
        "meaning": f"No outcome becomes more than {np.exp(float(epsilon)):.3g} times as likely because of one person.",
        "advice": f"Measure: expected error {0.339 * left:.3f} ± 0.020 (public table alone: 0.339).",
        "worthwhile": left < 0.95,
        "expected": {
            "error": 0.339 * left,
            "error_spread": 0.02 * left,
            "prior": 0.339,
            "gain": 0.339 * (1 - left),
            "spread": 0.011,
            "targets": (),
        },
        "by_level": [
            {"level": "STATE", "error": 0.11 * left**1.4, "spread": 0.008, "prior": 0.11},
            {"level": "PLACE", "error": 0.339 * left, "spread": 0.02 * left, "prior": 0.339},
        ],
        "measured": [
            {
                "level": "STATE",
                "parts": [*measured, *pairs],
                "share": 0.3,
                "noise": f"Laplace, {2.0 / float(epsilon):.3g}",
            },
            {"level": "PLACE", "parts": measured, "share": 0.7, "noise": f"Laplace, {9.1 / float(epsilon):.3g}"},
        ],
        "tables": [],
        "table_count": 2 * len(measured) + 1,
        "not_measured": [column["name"] for column in given if column["name"] not in measured],
        "risk": {"groups": 36 * left / 10, "of": 36, "bias": 5},
        "too_small": {"groups": small, "of": 36},
        "column_errors": (column_prior * np.clip(left + rng.normal(0, 0.08, len(given)), 0.05, 1.1)).tolist(),
        "pair_errors": listed(pair_errors),
        "file": f"plan-{epsilon}.toml",
        "plan": f'format = "prade plan 3"\n[task]\nname = "census-like survey"\nepsilon = {epsilon}\n',
        "command": f"prade synthesize --plan plan-{epsilon}.toml private.parquet --output release-{epsilon}",
    }


def table(rng, given: list[dict], truth: np.ndarray, number: int) -> dict:
    """A place's shares at a budget."""
    starts = np.cumsum([0, *(len(column["labels"]) for column in given)])
    off = 0.02 / float(EPSILONS[number]) ** 0.7
    noisy = truth + rng.normal(0, off, truth.size)
    noisy[starts[2 + 2 * number] :] = np.nan
    estimate = shares(rng, given, truth, min(off, 0.04) / 2)
    sd = np.full(truth.size, min(off, 0.04) / 2)
    low, high = interval(estimate, sd, 0.0, 1.0)
    found = {"noisy": noisy, "estimate": estimate, "sd": sd, "low": low, "high": high}
    found["synthetic"] = shares(rng, given, estimate, 0.004)
    return {name: listed(values) for name, values in found.items()}
