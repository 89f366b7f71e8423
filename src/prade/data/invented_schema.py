"""The schema of the invented tables, with titles and labels. It is public, so nothing in it is taken from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prade.data.schema import Schema

OLDEST = 99
MARITAL = ("never married", "married", "separated", "divorced", "widowed")
TENURE = ("mortgaged", "owned", "rented", "rent free")
NAMES = (
    *("STATE", "PLACE", "YEAR", "AGE", "SEX", "RACE", "HISPANIC", "CITIZEN", "ARRIVED", "EDUC", "MARITAL", "DISABLED"),
    *("EMPLOY", "OCCUP", "HOURS", "WAGE", "INCOME", "COMMUTE", "HHSIZE", "TENURE", "RENT"),
)


def schema_between(first: int, last: int) -> Schema:
    """The schema for people who arrived in the country between two years."""
    from prade.data.schema import Schema

    return Schema.from_toml(_SCHEMA.replace("FIRST", str(first)).replace("LAST", str(last)))


_SCHEMA = f"""
version = 1

[[column]]
name = "STATE"
kind = "group"
title = "State"
labels = {{11 = "Westmark", 12 = "Eastmark", 13 = "Northmark", 14 = "Southmark"}}

[[column]]
name = "PLACE"
kind = "group"
title = "Place"

[[column]]
name = "YEAR"
kind = "group"
title = "Year of the survey"

[[column]]
name = "AGE"
kind = "numeric"
title = "Age"
unit = "years"
integer = true
min = 0
max = {OLDEST}
edges = [3, 5, 10, 16, 18, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85]

[[column]]
name = "SEX"
kind = "categorical"
title = "Sex"
values = [1, 2]
labels = {{1 = "male", 2 = "female"}}

[[column]]
name = "RACE"
kind = "categorical"
title = "Race"
values = [1, 2, 3, 4, 5, 6]

[column.labels]
1 = "white"
2 = "Black"
3 = "Asian"
4 = "Native American"
5 = "Pacific Islander"
6 = "other or several races"

[[column]]
name = "HISPANIC"
kind = "categorical"
title = "Hispanic origin"
values = [0, 1, 2, 3]
labels = {{0 = "not Hispanic", 1 = "Mexican", 2 = "Puerto Rican", 3 = "other Hispanic"}}

[[column]]
name = "CITIZEN"
kind = "categorical"
title = "Citizenship"
values = [1, 2, 3, 4]
labels = {{1 = "born in the country", 2 = "born abroad to citizens", 3 = "naturalised", 4 = "not a citizen"}}

[[column]]
name = "ARRIVED"
kind = "numeric"
title = "Arrival in the country"
missing = true
min = FIRST-01-01
max = LAST-12-31
edges = [1960-01-01, 1970-01-01, 1980-01-01, 1990-01-01, 1995-01-01, 2000-01-01, 2005-01-01, 2012-01-01]
labels = {{missing = "born in the country, or not known"}}

[[column]]
name = "EDUC"
kind = "categorical"
title = "Education"
description = "Highest level completed"
missing = true
values = [1, 2, 3, 4, 5, 6, 7]

[column.labels]
1 = "no school"
2 = "primary school"
3 = "some secondary school"
4 = "secondary school"
5 = "some college"
6 = "bachelor's degree"
7 = "higher degree"
missing = "under 3 years old, or not known"

[[column]]
name = "MARITAL"
kind = "categorical"
title = "Marital status"
values = {list(MARITAL)}

[[column]]
name = "DISABLED"
kind = "categorical"
title = "Disability"
values = [false, true]
labels = {{false = "without a disability", true = "with a disability"}}

[[column]]
name = "EMPLOY"
kind = "categorical"
title = "Employment"
missing = true
values = [1, 2, 3]
labels = {{1 = "employed", 2 = "unemployed", 3 = "not in the labour force", missing = "under 16 years old"}}

[[column]]
name = "OCCUP"
kind = "categorical"
title = "Occupation"
missing = true
values = [1, 2, 3, 4, 5, 6, 7, 8]

[column.labels]
1 = "managers"
2 = "professionals"
3 = "care"
4 = "office and sales"
5 = "services"
6 = "building and repair"
7 = "production and transport"
8 = "farming"
missing = "not employed, or not known"

[[column]]
name = "HOURS"
kind = "numeric"
title = "Usual working time"
unit = "hours a week"
integer = true
missing = true
min = 1
max = 99
edges = [10, 20, 30, 35, 40, 41, 50, 60]
labels = {{missing = "not employed"}}

[[column]]
name = "WAGE"
kind = "numeric"
title = "Wages"
description = "Wages and salaries before taxes"
unit = "dollars a year"
integer = true
missing = true
min = 0
max = 900000
edges = [0.5, 5000, 10000, 15000, 20000, 25000, 30000, 40000, 50000, 60000, 75000, 100000, 150000, 200000]
labels = {{missing = "under 16 years old"}}

[[column]]
name = "INCOME"
kind = "numeric"
title = "Income"
description = "Income from all sources; losses of a business are below 0"
unit = "dollars a year"
integer = true
missing = true
min = -20000
max = 2000000
edges = [0, 0.5, 5000, 10000, 15000, 20000, 25000, 30000, 40000, 50000, 60000, 75000, 100000, 150000, 200000]
labels = {{missing = "under 16 years old, or not known"}}

[[column]]
name = "COMMUTE"
kind = "numeric"
title = "Way to work"
unit = "minutes"
integer = true
missing = true
min = 1
max = 180
edges = [10, 15, 20, 30, 45, 60, 90]
labels = {{missing = "no way to work, or not known"}}

[[column]]
name = "HHSIZE"
kind = "numeric"
title = "Size of the household"
unit = "people"
integer = true
min = 1
max = 12
edges = [2, 3, 4, 5, 6, 7]

[[column]]
name = "TENURE"
kind = "categorical"
title = "Tenure of the home"
missing = true
values = {list(TENURE)}
labels = {{missing = "in group quarters"}}

[[column]]
name = "RENT"
kind = "numeric"
title = "Rent"
unit = "dollars a month"
missing = true
min = 50
max = 6000
edges = [400, 600, 800, 1000, 1250, 1500, 2000, 2500]
labels = {{missing = "not rented, or not known"}}
"""
