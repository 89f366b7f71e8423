"""Extreme cells of every declared type, extreme schemas, and the questions by which the law of the door is tried.

A table has one row per world: `WORLD` numbers the rows, and `ONE` is 1. Of each declared type it has several columns
alike, one for each schema by which they are coded at once. Counted by world, the codes of every row can be read off, so
that what one row changes for the others is seen to the last unit.
"""

import datetime
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prade import Column, Schema, Unit
from prade.core.errors import DataError
from prade.queries.parts import Marginal
from worlds.counting import count

DAY = datetime.date
WORLDS = 32  # rows of a table
EVERY = tuple(range(WORLDS))
SUBSETS = [EVERY, (), EVERY[::2], EVERY[1::2]]  # of the rows; for each there is a table

NUMBERS = [
    *("100000000000000001", "100000000000000002", "0", "1", "-1", "2", "37.5", "127", "-128", "255", "32767"),
    *("-32768", "65535", "2147483647", "-2147483648", "4294967295", "9007199254740992", "9007199254740993"),
    *("9223372036854775807", "-9223372036854775808", "18446744073709551615", "1" + "0" * 38, "9" * 38, "-" + "9" * 38),
    *("170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"),
    *("340282366920938463463374607431768211455", "0.1", "-7.25", "1e300", "1.7976931348623157e308", "5e-324"),
    *("-1.7976931348623157e308", "3.4028235e38", "1e-45", "NaN", "Infinity", "-Infinity", "9" * 400, "1e-400", "0.01"),
]
MOMENTS = [
    *("2020-01-01", "2020-01-01 08:30:00", "2020-01-01 08:30:00.000001", "2020-01-01 08:30:00.000000001"),
    *("2020-01-01 08:30:00.000000002", "1000-01-01", "0001-01-01", "9999-12-31", "9999-12-31 23:59:59.999999"),
    *("1677-09-22", "2262-04-11", "1582-10-10", "infinity", "-infinity", "4713-01-01 BC", "0044-03-15 (BC)"),
    *("294247-01-10 04:00:54", "290000-01-01", "294276-12-31 23:59:59", "5874897-12-31", "5881580-07-10"),
    *("290308-12-21 (BC) 00:00:00", "+290000-01-01", "-4712-01-01", "2020-01-01 08:30:00+09", "2020-01-01 00:00:00+00"),
    *("294247-01-10 04:00:54+00", "290308-12-22 (BC) 00:00:00+00", "infinity+00", "1969-12-31 23:59:59.999999999"),
]
TIMES = [
    *("00:00:00", "24:00:00", "23:59:59.999999", "12:00:00+15:59", "12:00:00-15:59", "12:00:00.000000001", "1 month"),
    *("29 days", "178956970 years", "-178956970 years", "1 microsecond", "00:00:01", "2562047788 hours"),
]
TEXTS = [
    *("", " ", "a", "A", "b", "B", "é", "e\u0301", "Ω", "x" * 5000, 'q"', "a\nb", "1 ", " 1", "'", "null", "NULL"),
    *("00100", "true", "false", "t", "no", "\\xff00", "\\xFF\\x00", "%s", "a\\b", "\u2028", "\U0001f600", "v50"),
]
OTHERS = [
    *("010101", "1" * 200, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    *("{}", "[1, 2]", '{"a": 1}', '"1"', "[]", "[1, NULL]", "[1, 2, 3]", "{'a': 1}", "{a=1}", "{1,2}", "{NULL}"),
    *("(1,2)", "(1)", "(,)", "[1,5)", "{[1,5)}", "empty", "[2020-01-01,infinity)", "{}", "(1,)", "('a')", "row(1)"),
    *("POINT (1 2)", "POINT EMPTY", "[(0,0),(1,1)]", "<(0,0),1>", "{1,2,3}", "((0,0),(1,1))", "(0,0),(1,1)"),
    *("127.0.0.1", "::1", "10.0.0.0/8", "08:00:2b:01:02:03", "08:00:2b:01:02:03:04:05", "$1.00", "16/B374D848"),
    *("92233720368547758.07", "-92233720368547758.08", "<a/>", "'a':1 'b'", "a & b", "$.a", "pg_class", "int4"),
    *("10:20:10,14", "(0,1)", "english", "sum", "=", "prade", "1:1:", "@", "{{1,2},{3,4}}"),
]
CELLS = list(dict.fromkeys([*NUMBERS, *MOMENTS, *TIMES, *TEXTS, *OTHERS]))


def chosen(name, texts):
    """Some of the literals that an engine can cast to a type, each with the engine's text of it: no text twice.

    Always the first ones, which doubles cannot tell apart.
    """
    different = {}
    for literal, text in texts:
        different.setdefault(text, literal)
    found = list(different.values())
    most = WORLDS - 2
    return found if len(found) <= most else found[:2] + random.Random(name).sample(found[2:], most - 2)


LOST = {"missing": True, "unknown": "missing"}
LONG = [*(f"v{number}" for number in range(98)), "a", "b", "1", "2020-01-01", "true", "[1, 2]"]


def _numeric(**declared):
    return lambda name: Column(name, "numeric", **declared)


def _listed(*values, **declared):
    return lambda name: Column(name, "categorical", values=values, **declared)


SCHEMAS = {
    "numbers": {
        "far edges": _numeric(edges=(-1e300, 1e300)),
        "near edges": _numeric(edges=(-5e-324, 0, 5e-324), missing=True),
        "edges at 2**53 and 2**63": _numeric(edges=(2**53, 2**53 + 2, 2**63, 2**64), missing=True),
        "whole numbers of a range": _numeric(edges=(5, 18, 65), integer=True, min=0, max=96, **LOST),
        "far range": _numeric(edges=(0,), min=-1e300, max=1e300, **LOST),
        "two numbers": _listed(0, 1, missing=True),
        "one number": _listed(1),
        "numbers beyond 2**53": _listed(2**53 + 1, 100000000000000001, 2**63 - 1, missing=True),
        "fractions": _listed(0.1, 1e300, 5e-324, -7.25, other=0.1),
        "truths": _listed(True, False, **LOST),
        "always missing": _listed(missing=True),
    },
    "dates": {
        "far edges": _numeric(edges=(DAY(1000, 1, 1), DAY(9999, 12, 31)), missing=True),
        "far range": _numeric(edges=(DAY(2020, 1, 1),), min=DAY(1, 1, 1), max=DAY(9999, 12, 31)),
        "first day": _numeric(edges=(DAY(1, 1, 2),), missing=True),
        "short range": _numeric(edges=(DAY(2020, 1, 1),), min=DAY(1900, 1, 1), max=DAY(2020, 7, 1), **LOST),
    },
    "texts": {
        "numerals": _listed("0", "-0", "1", "37.5", "0100", "inf", "NaN", "1e300", missing=True),
        "codes of one width": _listed("001", "002", missing=True),
        "dates": _listed("2020-01-01", "2020-01-01 08:30:00", "infinity", "9999-12-31", missing=True),
        "truths": _listed("true", "False", "t", "null", missing=True),
        "a long list": _listed(*LONG, missing=True),
        "a long list without missing": _listed(*LONG),
        "one text": _listed("a"),
        "odd texts": _listed("", " ", "é", "e\u0301", "a\nb", "\\xff00", "%s", "'", missing=True, other=""),
    },
}


MOST_SCHEMAS = max(map(len, SCHEMAS.values()))
ONE = Schema([Column("ONE", "categorical", values=(1,))])
FOR_GROUPS = {"numbers": [0, 1, 2], "texts": LONG}


def copies(column):
    """The names of a type's columns, which are all alike."""
    return [f"{column}_{number}" for number in range(MOST_SCHEMAS)]


def type_of(name):
    """The column of `types` that a table's column is a copy of."""
    return name.partition("_")[0]


@dataclass(frozen=True)
class Question:
    """What is asked of a source about columns of some types."""

    words: str
    names: tuple[str, ...]
    ask: Callable[[Any], list[Any]]

    def outcome(self, source):
        """The counts, or the words of the refusal; all other errors are failures of the test."""
        try:
            counts = [np.asarray(each).reshape(WORLDS, -1) for each in self.ask(source)]
        except DataError as error:
            return str(error)
        return dict(zip(self.names, counts, strict=True))


def codes(columns):
    """The codes of all cells of these columns."""
    schema, names = Schema(columns), tuple(column.name for column in columns)
    parts = [Marginal.of(schema, [name]) for name in names]
    return Question("codes", names, lambda source: count(source, schema, parts, {"WORLD": list(EVERY)}))


def in_groups(name, kind):
    """Which worlds are in which listed group of a column."""
    values = FOR_GROUPS[kind]
    groups = {"WORLD": [world for world in EVERY for _ in values], name: values * WORLDS}
    parts = [Marginal.of(ONE, ["ONE"])]
    return Question(f"groups of {kind}", (name,), lambda source: count(source, ONE, parts, groups))


def persons(name, most=1):
    """Which worlds count if a column has the person id, and so many rows of a person count."""
    parts, unit = [Marginal.of(ONE, ["ONE"])], Unit(most, person_id=name)
    return Question("persons", (name,), lambda source: count(source, ONE, parts, {"WORLD": list(EVERY)}, unit))


def check_law(types, opened, unnamed="", few=()):
    """The outcomes of all questions, for the same rows in several tables, are those of the whole table.

    `opened(worlds)` opens the table that has the rows of these worlds; `unnamed` is what messages call it. `types` maps
    columns to their types; a table has `copies` of each. `few` are the columns of an engine that takes its time: it is
    asked about the codes of the others alone, and of one half of the rows.
    """

    def outcomes(worlds, questions):
        with opened(worlds) as source:
            found = [question.outcome(source) for question in questions]
        return [re.sub(unnamed, "", each) if isinstance(each, str) else each for each in found]

    with opened(()) as source:
        questions = [question for family in SCHEMAS for question in _codes_asked(source, list(types), family)]
    thorough = list(few or types)
    questions += [in_groups(f"{name}_0", kind) for kind in (["texts"] if few else FOR_GROUPS) for name in thorough]
    questions += [persons(f"{name}_0") for name in thorough]
    whole = outcomes(EVERY, questions)
    broken = [each for question, outcome in zip(questions, whole, strict=True) for each in _alone(question, outcome)]
    bounded = {each.names: own for each, own in zip(questions, whole, strict=True) if each.words == "persons"}
    unbounded = [persons(f"{name}_0", WORLDS) for name in thorough]  # all rows with an id, though ids be taken for one
    for question, outcome in zip(unbounded, outcomes(EVERY, unbounded), strict=True):
        broken += _differences(question, EVERY, bounded[question.names], outcome)
    for worlds in SUBSETS[1 : 3 if few else 4]:
        asked = [k for k, each in enumerate(questions) if each.words == "codes" or worlds != SUBSETS[-1]]
        for k, outcome in zip(asked, outcomes(worlds, [questions[k] for k in asked]), strict=True):
            broken += _differences(questions[k], worlds, whole[k], outcome)
    told = dict.fromkeys(f"{types[type_of(name)]} ({words}): {what}" for words, name, what in broken)
    assert not told, "\n".join(told)


def _codes_asked(source, types, family):
    """Questions about the codes of all columns by the schemas of a family, as a table without rows allows them.

    A type that one schema cannot fit is asked about by that one alone; a schema may also be refused whatever the type.
    """
    makes = list(SCHEMAS[family].values())
    columns = {name: make(name) for each in types for name, make in zip(copies(each), makes, strict=False)}
    while columns and isinstance(outcome := codes(list(columns.values())).outcome(source), str):
        named = [name for name in re.findall(r"'(\w+)'", outcome) if name in columns]
        assert named, f"a refusal that names no column: {outcome}"
        yield from (codes([columns[name]]) for name in named)
        refused = named if "beyond 2**53" in outcome else [own for name in named for own in copies(type_of(name))]
        columns = {name: column for name, column in columns.items() if name not in refused}
    if columns:
        yield codes(list(columns.values()))


def _alone(question, outcome):
    """What must hold in the whole table: each row has one code in each column, and counts as one at most."""
    if isinstance(outcome, str):
        if "failed in" in outcome or not any(f"'{name}'" in outcome for name in question.names):
            yield question.words, question.names[0], f"fails, or is refused and not named: {outcome[:160]}"
        return
    for name, counts in outcome.items():
        sums = counts.sum(axis=1)
        if (sums > 1).any() or (question.words == "codes" and (sums < 1).any()):
            yield question.words, name, "a row has no code, or two, or counts twice"


def _differences(question, worlds, expected, outcome):
    if isinstance(outcome, str) or isinstance(expected, str):
        if str(outcome) != str(expected):
            what = f"{str(expected)[:160]} with all rows, {str(outcome)[:160]} with {len(worlds)}"
            yield question.words, question.names[0], what
        return
    inside = np.isin(EVERY, worlds)[:, None]
    for name, counts in outcome.items():
        if wrong := int((counts != np.where(inside, expected[name], 0)).sum()):
            yield question.words, name, f"{wrong} counts are others with {len(worlds)} rows"
