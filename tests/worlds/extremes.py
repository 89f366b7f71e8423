"""Extreme cells of every declared type, extreme schemas, and the questions by which the law of the door is tried.

A table has one column per declared type, and one row per world: `WORLD` numbers the rows, and `ONE` is 1. Counted by
world, the codes of every row can be read off, so that what one row changes for the others is seen to the last unit.
"""

from __future__ import annotations

import datetime
import itertools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from prade import Column, Schema, Unit
from prade.core.errors import DataError
from prade.measuring.source import count
from prade.queries.parts import Marginal

DAY = datetime.date
WORLDS = 32  # rows of a table
EVERY = range(WORLDS)
# Halves by each binary digit of a world's number: any two worlds are apart in one of them.
HALVES = [
    tuple(world for world in EVERY if world >> digit & 1 == side)
    for digit in range((WORLDS - 1).bit_length())
    for side in range(2)
]
SUBSETS = [tuple(EVERY), (), *HALVES]  # of the rows; for each there is a table
FEW = SUBSETS[:4]  # enough for codes

# ---------------------------------------------------------------------- cells, as texts that an engine may cast

NUMBERS = [
    *("0", "1", "-1", "2", "37.5", "127", "-128", "255", "32767", "-32768", "65535", "2147483647", "-2147483648"),
    *("4294967295", "9007199254740992", "9007199254740993", "100000000000000001", "100000000000000002"),
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


def chosen(name: str, texts: Iterable[tuple[str, str]]) -> list[str]:
    """Some of the literals that an engine can cast to a type, each with the engine's text of it: no text twice."""
    different: dict[str, str] = {}
    for literal, text in texts:
        different.setdefault(text, literal)
    found = list(different.values())
    most = WORLDS - 2
    return found if len(found) <= most else random.Random(name).sample(found, most)


# ---------------------------------------------------------------------- schemas

Make = Callable[[str], Column]
LOST: dict[str, Any] = {"missing": True, "unknown": "missing"}
LONG = [*(f"v{number}" for number in range(98)), "a", "b", "1", "2020-01-01", "true", "[1, 2]"]


def _numeric(**declared: Any) -> Make:
    return lambda name: Column(name, "numeric", **declared)


def _listed(*values: Any, **declared: Any) -> Make:
    return lambda name: Column(name, "categorical", values=values, **declared)


SCHEMAS: dict[str, dict[str, Make]] = {
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
        "numerals": _listed("1", "37.5", "0100", "inf", "NaN", "1e300", missing=True),
        "codes of one width": _listed("001", "002", missing=True),
        "dates": _listed("2020-01-01", "2020-01-01 08:30:00", "infinity", "9999-12-31", missing=True),
        "truths": _listed("true", "False", "t", "null", missing=True),
        "a long list": _listed(*LONG, missing=True),
        "a long list without missing": _listed(*LONG),
        "one text": _listed("a"),
        "odd texts": _listed("", " ", "é", "e\u0301", "a\nb", "\\xff00", "%s", "'", missing=True, other=""),
    },
}


# ---------------------------------------------------------------------- questions

Outcome = Any  # an array [world, count], or the words of a refusal
ONE = Schema([Column("ONE", "categorical", values=(1,))])
FOR_GROUPS: dict[str, list[Any]] = {"numbers": [0, 1, 2], "texts": LONG}


class Question:
    """What is asked of a source about columns of some types, in the tables of the first few subsets of rows."""

    words, tables = "", len(FEW)

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    def ask(self, source: Any) -> Any:
        """An array [world, count]."""
        raise NotImplementedError

    def outcome(self, source: Any) -> Outcome:
        """The counts, or the words of the refusal; all other errors are failures of the test."""
        try:
            return np.concatenate([np.asarray(each).reshape(WORLDS, -1) for each in self.ask(source)], axis=1)
        except DataError as error:
            return str(error)


class Codes(Question):
    """The codes of all cells of some columns; a table may have a type's column once for every schema."""

    def __init__(self, makes: dict[str, tuple[str, Make]]) -> None:
        super().__init__(*makes)
        self.makes = makes
        schemas = dict.fromkeys(words for words, _ in makes.values())
        self.words = f"codes, {', '.join(schemas) if len(schemas) < 3 else 'all schemas'}"

    def ask(self, source: Any) -> Any:
        if not self.columns:  # all are refused
            return [np.zeros((WORLDS, 0), int)]
        schema = Schema([make(name) for name, (_, make) in self.makes.items()])
        return count(source, schema, [Marginal.of(schema, [name]) for name in self.columns], {"WORLD": list(EVERY)})

    def some(self, names: Iterable[str]) -> Codes:
        return Codes({name: self.makes[name] for name in names})

    def family(self, name: str) -> str:
        """Numbers, dates or texts."""
        return self.makes[name][0].partition(":")[0]

    def differing(self, wrong: Any) -> list[str]:
        """The columns to which these counts belong."""
        ends = np.cumsum([make(name).size for name, (_, make) in self.makes.items()])
        return [self.columns[place] for place in np.unique(np.searchsorted(ends, np.flatnonzero(wrong), side="right"))]

    def failing(self, source: Any) -> list[str]:
        """The columns on which the question alone fails."""
        if not isinstance(self.outcome(source), str):
            return []
        if len(self.columns) == 1:
            return list(self.columns)
        middle = len(self.columns) // 2
        halves = self.some(self.columns[:middle]), self.some(self.columns[middle:])
        return [name for half in halves for name in half.failing(source)]


class InGroups(Question):
    """Which worlds are in which listed group of a column of some type."""

    tables = 3

    def __init__(self, column: str, kind: str) -> None:
        super().__init__(column)
        self.words, self.values = f"groups of {kind}", FOR_GROUPS[kind]

    def ask(self, source: Any) -> Any:
        worlds = [world for world in EVERY for _ in self.values]
        listed = {"WORLD": worlds, self.columns[0]: self.values * WORLDS}
        return count(source, ONE, [Marginal.of(ONE, ["ONE"])], listed)


class Persons(Question):
    """Which worlds count if a column of some type has the person id, and one row of a person counts."""

    words, tables = "persons", len(SUBSETS)

    def ask(self, source: Any) -> Any:
        unit = Unit(1, person_id=self.columns[0])
        return count(source, ONE, [Marginal.of(ONE, ["ONE"])], {"WORLD": list(EVERY)}, unit)


def copies(column: str) -> dict[str, str]:
    """The names of a type's column in a table that has it once for every schema, and those schemas."""
    return {f"{column}_{number}": words for number, words in enumerate(_schemas())}


def _schemas() -> dict[str, Make]:
    return {f"{family}: {words}": make for family, each in SCHEMAS.items() for words, make in each.items()}


# ---------------------------------------------------------------------- the law


class Law:
    """The outcomes of all questions, for the same rows in several tables, compared with those of the whole table.

    `opened(worlds)` opens the table that has the rows of these worlds; `unnamed` is what messages call it. `types` maps
    the names of columns to their types. `few` are the columns of an engine that takes its time: it is asked less about
    the others, and about all schemas at once: the table that `wide(worlds)` opens has `copies` of each column.
    """

    def __init__(
        self,
        types: dict[str, str],
        opened: Callable[[tuple[int, ...]], Any],
        unnamed: str = "",
        few: Sequence[str] | None = None,
        wide: Callable[[tuple[int, ...]], Any] | None = None,
    ) -> None:
        self.types, self.opened, self.unnamed, self.few, self.wide = types, opened, unnamed, few, wide or opened
        self.broken: list[str] = []

    def check(self) -> None:
        """Try the law on all tables."""
        questions = self._questions()
        whole = self._answers(tuple(EVERY), questions)
        for question, found in zip(questions, whole, strict=True):
            self._alone(question, found)
        for number, worlds in enumerate(SUBSETS):
            inside = np.isin(np.arange(WORLDS), worlds)
            asked = [k for k, each in enumerate(questions) if number and self._needed(each, number, whole[k])]
            for k, found in zip(asked, self._answers(worlds, [questions[k] for k in asked]), strict=True):
                self._compare(questions[k], worlds, inside, whole[k], found)
        assert self.broken == [], "\n".join(dict.fromkeys(self.broken))

    def _needed(self, question: Question, number: int, whole: Outcome) -> bool:
        """Whether a table tells anything new: persons are told apart only where one of them is alone."""
        if self.few is None:
            return number < question.tables
        if isinstance(question, Codes):
            return number < 3
        return number < 4 and (question.columns[0] in self.few or isinstance(whole, str))

    def _questions(self) -> list[Question]:
        """All questions; those about codes as the table without rows allows them."""
        asked: list[Question] = []
        with self.wide(()) as source:
            if self.few is None:
                for family, schemas in SCHEMAS.items():
                    left = tuple(self.types)
                    for words, make in schemas.items():
                        allowed, *refused = _allowed(source, Codes(dict.fromkeys(left, (f"{family}: {words}", make))))
                        asked += [allowed, *refused]
                        left = allowed.columns  # a type that is refused once is not asked about again
            else:
                makes = _schemas()
                every = {own: (words, makes[words]) for name in self.types for own, words in copies(name).items()}
                asked += _allowed(source, Codes(every))
        kinds = list(FOR_GROUPS) if self.few is None else ["texts"]
        asked += [InGroups(column, kind) for kind in kinds for column in self.few or self.types]
        return [*asked, *map(Persons, self.types)]

    def _answers(self, worlds: tuple[int, ...], questions: Sequence[Question]) -> list[Outcome]:
        found: list[Outcome] = []
        for about_codes, alike in itertools.groupby(questions, lambda question: isinstance(question, Codes)):
            with (self.wide if about_codes else self.opened)(worlds) as source:
                found += [question.outcome(source) for question in alike]
        return [re.sub(self.unnamed, "", each) if isinstance(each, str) and self.unnamed else each for each in found]

    def _alone(self, question: Question, found: Outcome) -> None:
        """What must hold in the whole table: each row has one code in each column, and counts as one at most."""
        if isinstance(found, str):
            if "failed in" in found or not any(f"'{column}'" in found for column in question.columns):
                self._tell(question, f"fails, or is refused without naming its column: {found[:160]}")
        elif isinstance(question, Codes):
            if (found.sum(axis=1) != len(question.columns)).any():
                self._tell(question, "a row has no code, or two")
        elif (found.sum(axis=1) > 1).any():
            self._tell(question, "a row counts twice")

    def _compare(
        self, question: Question, worlds: tuple[int, ...], inside: Any, all_of_them: Outcome, found: Outcome
    ) -> None:
        if isinstance(found, str) or isinstance(all_of_them, str):
            if str(found) != str(all_of_them):
                self._tell(question, f"{_short(all_of_them)} with all rows, {_short(found)} with {len(worlds)}")
            return
        wrong = np.where(inside[:, None], found != all_of_them, found != 0)
        if wrong.any():
            names = question.differing(wrong.any(axis=0)) if isinstance(question, Codes) else question.columns
            self._tell(question, f"{int(wrong.sum())} counts are others with {len(worlds)} rows", names)

    def _tell(self, question: Question, words: str, names: Sequence[str] = ()) -> None:
        """Keep what is broken, and which types break it."""
        if not names and isinstance(question, Codes):
            with self.wide(tuple(EVERY)) as whole:
                names = question.failing(whole)
        for name in names or question.columns[:1]:
            asked = question.some([name]).words if isinstance(question, Codes) else question.words
            kind = self.types.get(name) or self.types[_bare(name)]
            self.broken.append(f"{kind} ({asked}): {words}")


def _allowed(source: Any, question: Codes) -> list[Codes]:
    """The question about those columns that the table allows, and, one by one, about those that it refuses.

    A column that is refused takes its copies for schemas of the same family along.
    """
    refused: list[Codes] = []
    while question.columns and isinstance(found := question.outcome(source), str):
        named = [name for name in re.findall(r"'(\w+)'", found) if name in question.columns]
        assert named, f"a refusal that names no column: {found}"
        refused += [question.some([name]) for name in named]
        alike = {(_bare(name), question.family(name)) for name in named}
        question = question.some(
            [name for name in question.columns if (_bare(name), question.family(name)) not in alike]
        )
    return [question, *refused]


def _bare(name: str) -> str:
    return name.partition("_")[0]


def _short(found: Outcome) -> str:
    return found[:160] if isinstance(found, str) else "counted"
