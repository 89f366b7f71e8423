"""Laws of plans on random schemas, parts, levels and groups: files, hashes, budgets, and files with junk in them."""

import copy
import datetime
import math
import tempfile
import tomllib
from pathlib import Path

import tomli_w
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prade.core.errors import PradeError
from prade.data.declare.groups import Groups
from prade.data.declare.kinds import Numeric
from prade.data.declare.schema import Column, Schema
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit, dataset_name
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import backticked, parse
from prade.queries.workload import Workload

law = settings(max_examples=100)

TEXTS = st.one_of(
    st.sampled_from(
        ["a`b", '"', "it's", "'''", "\\", "\n", "\x01", "größe = [", "]", "# {", "missing", "01", "true", " "]
    ),
    st.text(min_size=1, max_size=5),
)


def is_name(text):
    """Whether a data set may be called so."""
    try:
        return bool(dataset_name(text))
    except PradeError:
        return False


DAYS = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
NUMBERS = st.floats(-1e9, 1e9, allow_subnormal=False).map(lambda number: number + 0.0)  # no -0.0
SHARES = st.fractions(min_value="1/1000", max_value=1000, max_denominator=1000)


def distinct(values, most, least=1):
    return st.lists(values, min_size=least, max_size=most, unique=True)


DECLARED = [
    {"kind": "categorical", "values": ("a`b", '"', "it's", "# {"), "other": '"'},
    {"kind": "categorical", "values": (1, -(2**62)), "missing": True},
    {"kind": "categorical", "values": (0.1, -1e9)},
    {"kind": "categorical", "values": (True, False), "missing": True},
    {"kind": "numeric", "edges": (-5, 7, 50), "integer": True, "min": -60},
    {"kind": "numeric", "edges": (0.5, 3), "missing": True},
    {"kind": "numeric", "edges": (datetime.date(1999, 1, 1), datetime.date(2020, 2, 29))},
    {"kind": "group", "values": ("01", "x")},
]
COLUMNS = st.builds(lambda name, declared: Column(name, **declared), TEXTS, st.sampled_from(DECLARED))


@st.composite
def schemas(draw):
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=4, unique_by=lambda column: column.name))
    longest = max((column.name for column in columns), key=len)
    return Schema([*columns, Column(f"{longest}x", "categorical", values=(1, 2))])  # at least one to estimate


@st.composite
def queries(draw, column):
    name = backticked(column.name)
    if column.missing and draw(st.booleans()):
        return f"{name} is missing"
    if not (column.numeric or column.groups):
        chosen = draw(distinct(st.sampled_from(column.values), 3))
        return f"{name} {draw(st.sampled_from(['in', 'not in']))} {chosen!r}"
    edge = draw(st.sampled_from(column.cuts))
    value = repr(Numeric(column).number_text(edge)) if column.dates else repr(edge)
    return f"{name} {draw(st.sampled_from(['<', '>=']))} {value}"


@st.composite
def parts(draw, schema):
    kind = draw(st.sampled_from(["marginal", "queries", "cells"]))
    chosen = draw(distinct(st.sampled_from(schema.coded), 3))
    if kind == "marginal":
        return Marginal.of(schema, chosen)
    if kind == "queries":
        query = parse(" and ".join(draw(queries(schema[name])) for name in chosen), schema)
        return Predicate(query, parse(f"not ({query.text})", schema)) if draw(st.booleans()) else Predicate(query)
    n_cells, size = draw(st.integers(1, 3)), math.prod(schema.shape(chosen))
    table = draw(st.lists(st.integers(0, n_cells), min_size=size, max_size=size))
    labels = draw(st.just([]) | st.lists(TEXTS, min_size=n_cells, max_size=n_cells))
    return Cells(chosen, table, n_cells, labels)


@st.composite
def group_lists(draw):
    names = draw(distinct(TEXTS, 3, 0))
    if not names:
        return None
    kinds = (st.integers(-(2**62), 2**62), NUMBERS, TEXTS, DAYS, st.booleans())
    rows = draw(distinct(st.tuples(*(draw(st.sampled_from(kinds)) for _ in names)), 4))
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


BUDGETS = st.one_of(
    SHARES.map(Budget.pure),
    SHARES.map(Budget.zcdp),
    st.builds(Budget.approx, st.sampled_from(["1/3", 1, 10]), st.sampled_from(["1e-9", "1/1000"])),
)
UNITS = st.one_of(
    st.builds(Unit, st.integers(1, 9), neighbours=st.sampled_from(["add-remove", "replace"])),
    st.builds(Unit, st.integers(3, 9), TEXTS, st.none() | st.integers(1, 3)),
)


@st.composite
def plans(draw):
    schema, groups = draw(schemas()), draw(group_lists())
    asks = st.builds(
        Ask, st.lists(parts(schema), min_size=1, max_size=3).map(lambda chosen: Workload(schema, chosen)), SHARES
    )
    names = list(groups or {})
    cut = draw(st.integers(0, len(names)))
    levels = [
        Level(by, draw(st.lists(asks, min_size=1, max_size=2)), draw(st.none() | st.just(0) | SHARES))
        for by in ([names[:cut], names[cut:]] if 0 < cut < len(names) else [names])
    ]
    if len(levels) > 1:  # the second level divides some group of the first
        listed = Groups.of(groups)
        assume(len(listed.level(names)) > len(listed.level(names[:cut])))
    return Plan(draw(TEXTS.filter(is_name)), schema, draw(BUDGETS), draw(UNITS), levels, groups)


@law
@given(plans())
def test_a_plan_is_its_file(plan):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"
        plan.save(path)
        found = Plan.load(path)
        text = path.read_text(encoding="utf-8")
    assert (found, found.hash, found.questions) == (plan, plan.hash, plan.questions)
    assert (found.schema, found.groups, found.budget, found.unit) == (plan.schema, plan.groups, plan.budget, plan.unit)
    assert found.to_toml() == text
    assert tomllib.loads(text) == plan.to_dict()


def places(value, path=()):
    """The path of everything in nested tables and lists."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def changed(value):
    """Another value of the same type, near the given one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case datetime.date():
            return value + datetime.timedelta(days=1)
        case str():
            return f"{value}x" if not value[-1:].isdigit() else f"{value}1"
        case list():
            return value[:-1]
    return value  # a table changes by what is in it; to leave out a key may be to say its default


def with_change(draw, plan, change):
    """The content of the plan's file, with one thing in it changed."""
    content = copy.deepcopy(plan.to_dict())
    *path, last = draw(st.sampled_from(list(places(content))))
    inside = content
    for key in path:
        inside = inside[key]
    before = inside[last]
    inside[last] = change(before)
    assume(inside[last] != before or type(inside[last]) is not type(before))
    return content


@law
@given(plans(), st.data())
def test_another_value_anywhere_makes_another_plan_or_none(plan, data):
    content = with_change(data.draw, plan, changed)
    try:
        found = Plan.from_toml(tomli_w.dumps(content))
    except PradeError:
        return
    assert found.hash != plan.hash
