"""The demonstration's page: one HTML file with its pictures inside, no script, no request to anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

# Okabe and Ito's colours, told apart with any kind of colour vision; every mark is named or shaped as well.
COLOUR = {"prior": "#8a8a8a", "IDE": "#e69f00", "TwoStage": "#56b4e9", "MAP": "#0072b2"}
WIDTH = 360  # of the pictures, in their own units: about a phone's width, so that letters need no zooming

HEADINGS = ("eps", "estimator", "error", "vs prior", "KL", "seconds", "status")

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 44rem; margin: 0 auto;
       padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.banner { border-left: 6px solid #d55e00; background: #fff4ec; padding: .7rem 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; width: 100%; }
th, td { padding: .25rem .5rem; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid #1a1a1a; font-weight: 600; }
.name { text-align: left; } .first td { border-top: 1px solid #c8c8c8; } .best :nth-child(3) { font-weight: 700; }
svg { display: block; width: 100%; max-width: 460px; height: auto; margin: .5rem 0 1rem; }
.key { white-space: nowrap; } .key svg { display: inline; width: 14px; margin: 0; vertical-align: -3px; }
@media (max-width: 36rem) { table { font-size: .74rem; } th, td { padding: .2rem; }
  tr > :nth-child(4) { display: none; } }
.note { color: #555; font-size: .9rem; }
"""


@dataclass(frozen=True)
class Outcome:
    """One estimator at one budget; the prior is listed like an estimator, without a status."""

    epsilon: float
    estimator: str
    error: float
    status: str
    kl: float
    seconds: float

    def cells(self, prior_error: float) -> tuple[str, ...]:
        """The row of the table: eps, estimator, error, error over the prior's, KL, seconds, status."""
        start = (f"{self.epsilon:g}", self.estimator, f"{self.error:.4f}", f"{self.error / prior_error:.0%}")
        if self.estimator == "prior":
            return (*start, "", "", "")
        return (*start, f"{self.kl:.3f}", f"{self.seconds:.2f}", self.status)


@dataclass(frozen=True)
class Comparison:
    """One column's marginal three times."""

    column: str
    labels: Sequence[str]
    truth: Sequence[float]
    prior: Sequence[float]
    estimate: Sequence[float]


def page(
    outcomes: Sequence[Outcome], shown: Sequence[Comparison], epsilon: float, warning: str, facts: str, drawn: str
) -> str:
    """The whole page."""
    columns = "".join(f"<h3>{escape(each.column)}</h3>{marginals(each)}" for each in shown)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>prade: a demonstration</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Estimating a private table from noisy marginals and a public prior</h1>
<p class="banner"><strong>This page contains the truth of invented data.</strong> {escape(warning)}</p>
<p>{escape(facts)}</p>
<h2>Error against privacy</h2>
<p>Mean L1 distance (0 to 2, small is good) between the two-way marginals of an estimate and of the private table, over
all pairs of columns. A small eps is strong privacy and much noise. One draw of the
noise for each eps: another draw gives somewhat other numbers.</p>
{bars(outcomes)}
<div class="wide">{errors_table(outcomes)}</div>
<p class="note">KL: how far the estimate has moved from the prior, in nats. Status "cycling" says that the noisy parts
contradict each other and Algorithm 1 goes round in circles; "exhausted", that its fixed number of steps came first.</p>
<h2>Three columns, seen three ways</h2>
<p>The columns in which the prior is furthest off. Shares in percent, one line a value:
{key(f"MAP, eps {epsilon:g}")}</p>
{columns}
<h2>Synthetic rows</h2>
<p>{escape(drawn)} They are in <code>synthetic.parquet</code>, beside this page.</p>
</body>
</html>
"""


def picture(outcomes: Sequence[Outcome]) -> str:
    """The chart of errors as a file of its own."""
    return bars(outcomes).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def errors_table(outcomes: Sequence[Outcome]) -> str:
    """All outcomes; the least error of each budget in bold."""
    names = (1, 6)  # columns of words, set left
    head = "".join(f'<th class="name">{h}</th>' if i in names else f"<th>{h}</th>" for i, h in enumerate(HEADINGS))
    prior_error = next(o.error for o in outcomes if o.estimator == "prior")
    rows = []
    for _, group in groupby(outcomes, key=lambda o: o.epsilon):
        members = list(group)
        least = min(f"{o.error:.4f}" for o in members)  # as printed: what looks equal is equally bold
        for place, outcome in enumerate(members):
            kinds = " ".join(k for k, on in (("first", place == 0), ("best", f"{outcome.error:.4f}" == least)) if on)
            cells = "".join(
                f'<td class="name">{escape(text)}</td>' if i in names else f"<td>{escape(text)}</td>"
                for i, text in enumerate(outcome.cells(prior_error))
            )
            rows.append(f'<tr class="{kinds}">{cells}</tr>' if kinds else f"<tr>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def bars(outcomes: Sequence[Outcome]) -> str:
    """Horizontal bars of the errors, a group for each budget."""
    left, room, height, gap = 66, WIDTH - 66 - 52, 16, 26
    largest = max(o.error for o in outcomes)
    marks, y = [], 4
    for epsilon, group in groupby(outcomes, key=lambda o: o.epsilon):
        marks.append(f'<text x="0" y="{y + 13}" font-weight="700">eps {epsilon:g}</text>')
        y += 20
        for outcome in group:
            long = room * outcome.error / largest
            label = f'x="{left - 6}" y="{y + 12}" text-anchor="end"'
            marks.append(
                f"<text {label}>{outcome.estimator}</text>"
                f'<rect x="{left}" y="{y}" width="{long:.1f}" height="13" fill="{COLOUR[outcome.estimator]}"/>'
                f'<text x="{left + long + 5:.1f}" y="{y + 12}">{outcome.error:.3f}</text>'
            )
            y += height
        y += gap - height
    return _svg(y - gap + height + 4, "Bars: mean L1 error of the prior and of each estimator at each eps", marks)


def marginals(shown: Comparison) -> str:
    """A line for each value with three marks: truth, prior, estimate."""
    left, room, step = 104, WIDTH - 104 - 14, 18
    largest = max(*shown.truth, *shown.prior, *shown.estimate)
    tick = next(t for t in (0.02, 0.05, 0.1, 0.2, 0.5) if largest / t <= 5 or t == 0.5)
    bottom = step * len(shown.labels) + 4
    lines = []
    for number in range(int(largest / tick) + 1):
        x = left + room * number * tick / largest
        lines.append(
            f'<path d="M{x:.1f} 0V{bottom}" stroke="#dcdcdc"/>'
            f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" fill="#555">{number * tick:.0%}</text>'
        )
    for row, label in enumerate(shown.labels):
        y = step * row + 11
        truth, prior, estimate = (left + room * s[row] / largest for s in (shown.truth, shown.prior, shown.estimate))
        lines.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(_short(label))}</text>')
        lines.append(f'<path d="M{prior:.1f} {y}H{truth:.1f}" stroke="#b5b5b5"/>')
        lines.append(mark("prior", prior, y) + mark("MAP", estimate, y) + mark("truth", truth, y))
    return _svg(bottom + 20, f"Marginal of {shown.column}: truth, prior and MAP for each value", lines)


def mark(kind: str, x: float, y: float) -> str:
    """A diamond for the prior, a disc for MAP, an upright stroke for the truth."""
    if kind == "truth":
        return f'<path d="M{x:.1f} {y - 7}v14" stroke="#000" stroke-width="2"/>'
    if kind == "prior":
        return f'<path d="M{x:.1f} {y - 5}l5 5l-5 5l-5 -5z" fill="#fff" stroke="{COLOUR["prior"]}" stroke-width="1.5"/>'
    return f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{COLOUR["MAP"]}"/>'


def key(estimate: str) -> str:
    """What the marks mean, in the running text."""
    names = {"truth": "private truth", "prior": "public prior", "MAP": estimate}
    size = 'width="14" height="16" viewBox="-7 -8 14 16"'
    return ", ".join(
        f'<span class="key"><svg {size} aria-hidden="true">{mark(kind, 0, 0)}</svg> {escape(name)}</span>'
        for kind, name in names.items()
    )


def _short(label: str) -> str:
    """Thousands as k: "[25000, 30000)" is long for a phone."""
    return label.replace("000,", "k,").replace("000)", "k)").replace("000]", "k]")


def _svg(height: float, title: str, marks: Sequence[str]) -> str:
    name = escape(title)
    attributes = f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}" font-size="12"'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    return f'<svg {attributes} font-family="system-ui, sans-serif">{ground}{"".join(marks)}</svg>'
