"""The result of `prade score` in words: the score, the metrics as a table, the worst pairs and places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from prade.cli.main import text_table

if TYPE_CHECKING:
    from prade.scoring.evaluation import Evaluation

SHOWN = 5  # worst pairs and places


def evaluation_in_words(found: Evaluation) -> str:
    """The score; below it, where they were computed, the public table's and the metrics."""
    blocks = [str(found.score)]
    if found.public is not None:
        blocks[0] += f"\n{found.public}"
    if found.metrics is not None:
        blocks += [_metrics(found.metrics), _pairs(found), _places(found)]
    return "\n\n".join(filter(None, blocks))


def whys(metrics: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason why metrics are not available, with the metrics that it holds for."""
    reasons: dict[str, list[str]] = {}
    for line in metrics["summary"]:
        if line["why"]:
            reasons.setdefault(line["why"], []).append(line["title"])
    return [f"Not available: {', '.join(titles)}: {why}." for why, titles in reasons.items()]


def _metrics(metrics: Mapping[str, Any]) -> str:
    public = metrics["rows"]["public"] is not None
    rows = []
    for line in metrics["summary"]:
        numbers = {"synthetic": _number(line, "synthetic"), **({"public": _number(line, "public")} if public else {})}
        rows.append({"metric": line["title"], **numbers, "how to read it": line["read"]})
    return text_table(rows)


def _number(line: Mapping[str, Any], table: str) -> str:
    value = line[table]
    return "-" if value is None else f"{value:.{line['digits']}f}"


def _pairs(found: Evaluation) -> str:
    rows = [
        {"worst pairs": f"{pair['first']}, {pair['second']}", "distance": pair["distance"], **_public(pair, found)}
        for pair in found.worst_pairs()[:SHOWN]
    ]
    return text_table(rows)


def _places(found: Evaluation) -> str:
    rows = [
        {"worst places": place["label"], "score": place["score"], **_public(place, found)}
        for place in found.worst_places()[:SHOWN]
    ]
    return text_table(rows)


def _public(entry: Mapping[str, Any], found: Evaluation) -> dict[str, Any]:
    return {} if found.public is None else {"public": entry["public"]}
