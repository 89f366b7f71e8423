"""The data of a page about rehearsed budgets: what five of them buy for an invented survey."""

from functools import cache

from prade import Task, Unit, explore
from prade.core.execution import Execution
from prade.examples import census_like

GROUPS = ["STATE", "PLACE"]
COLUMNS = [*GROUPS, "AGE", "SEX", "MARITAL", "RACE", "EDUC", "EMPLOY"]


@cache
def rehearsed():
    data = census_like(persons=3_000, places_per_state=6, years=(2023, 2024), seed=3)
    groups = data.groups.select(GROUPS).group_by(GROUPS).aggregate([])
    task = Task("census-like survey", data.schema.select(COLUMNS), 1, Unit(4), GROUPS, groups)
    budgets = ["1/10", "3/10", 1, 3, 10]
    return explore(task, data.public.select(COLUMNS), budgets, effort=0, execution=Execution(1))


def explored():
    """The data of `prade.reporting.html.write_explore`; one of the budgets is suggested, whatever comes out."""
    return rehearsed().to_dict() | {"recommended": 3}


def hostile(text):
    """The same with a text in place of the survey's name, a column's words, a caveat, and a place."""
    data = explored()
    data["dataset"] = data["caveats"][1] = data["places"][0]["label"] = text
    data["columns"][0].update(name=text, title=text, description=text, unit=text)
    data["columns"][0]["labels"][1] = text
    for ask in (ask for budget in data["budgets"] for ask in budget["measured"]):
        ask["parts"] = [text if part == "AGE" else part for part in ask["parts"]]
    return data
