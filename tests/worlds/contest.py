"""The schema of the NIST contest (sprint 2), with the bins of its score, from the contest's parameters.json."""

import json
import math
from pathlib import Path

from prade import Column, Schema

THOUSANDS, TWENTIES = range(0, 105_000, 5_000), range(0, 520, 20)
QUARTER_HOURS = [100 * hour + minute for hour in range(24) for minute in (0, 15, 30, 45)]
# closed on the right: (-inf, e0], (e0, e1], ..., (last, inf)
EDGES = {
    "AGE": range(20, 105, 5),
    **dict.fromkeys(("INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN"), THOUSANDS),
    **dict.fromkeys(("POVERTY", "HHWT", "PERWT"), TWENTIES),
    **dict.fromkeys(("DEPARTS", "ARRIVES"), QUARTER_HOURS),
}


def contest_schema(declared):
    """The schema in the contest's file, or in the entries of its columns."""
    if isinstance(declared, Path):
        declared = json.loads(declared.read_text())["schema"]
    return Schema([_column(name, entry) for name, entry in declared.items()])


def _column(name, entry):
    if "values" in entry:
        return Column(name, "group" if name in ("PUMA", "YEAR") else "categorical", values=entry["values"])
    integer = "float" not in entry["dtype"]
    # x > e means x >= (the next number after e), so a bin closed on the right becomes one closed on the left.
    edges = [edge + 1 if integer else math.nextafter(edge, math.inf) for edge in EDGES[name]]
    return Column(name, "numeric", edges=edges, integer=integer, min=entry.get("min"), max=entry.get("max"))
