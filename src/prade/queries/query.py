"""Predicate queries written as text: ``"AGEP >= 65 and SEX == 2"``.

A query is a 0/1 function of one row. Each comparison is a Boolean table over the codes of one column.
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError, SchemaError, WorkloadError
from prade.data.declare.kinds import some_of
from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import Joint


def backticked(name: str) -> str:
    """A column's name as it is written in a query: in backticks unless it is a plain word.

    >>> backticked("AGEP"), backticked("marital status")
    ('AGEP', '`marital status`')
    """
    # Names that NFKC changes get backticks, because two of them may look alike.
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return name if plain else "`" + name.replace("`", "``") + "`"


def shorten(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 3 :]}"


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """One comparison: a row satisfies it if `table[code of column]` is true."""

    column: str
    text: str
    table: tuple[bool, ...]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Combination:
    """Terms joined by one operator; "not" has a single term."""

    operator: Literal["and", "or", "not"]
    terms: tuple[Expression, ...]

    def __str__(self) -> str:
        nested = [isinstance(term, Combination) and term.operator != "not" for term in self.terms]
        texts = [f"({term})" if within else str(term) for term, within in zip(self.terms, nested, strict=True)]
        return f"not {texts[0]}" if self.operator == "not" else f" {self.operator} ".join(texts)


Expression = Condition | Combination


def join(operator: Literal["and", "or"], terms: Sequence[Expression]) -> Expression:
    """Terms joined by one operator; nested uses of the same operator are flattened, which keeps the meaning."""
    flat: list[Expression] = []
    for term in terms:
        flat += term.terms if isinstance(term, Combination) and term.operator == operator else [term]
    return flat[0] if len(flat) == 1 else Combination(operator, tuple(flat))


def conditions(expression: Expression) -> Iterator[Condition]:
    if isinstance(expression, Condition):
        yield expression
    else:
        for term in expression.terms:
            yield from conditions(term)


def evaluate(expression: Expression, look_up: Callable[[Condition], Mask]) -> Mask:
    """Evaluate the expression; `look_up` gives the result of each comparison, as arrays that broadcast together."""
    if isinstance(expression, Condition):
        return look_up(expression)
    masks = (evaluate(term, look_up) for term in expression.terms)
    if expression.operator == "not":
        return ~next(masks)
    combined: Mask = reduce(np.logical_and if expression.operator == "and" else np.logical_or, masks)
    return combined


def simplified(expression: Expression, known: Mapping[str, int]) -> Expression | bool:
    """What is left of the expression for rows whose codes in some columns are known.

    >>> sex, age = Condition("SEX", "SEX == 2", (False, True)), Condition("AGE", "AGE >= 65", (False, True))
    >>> str(simplified(join("and", [sex, age]), {"SEX": 1})), simplified(join("and", [sex, age]), {"SEX": 0})
    ('AGE >= 65', False)
    """
    if isinstance(expression, Condition):
        return expression if expression.column not in known else expression.table[known[expression.column]]
    terms = [simplified(term, known) for term in expression.terms]
    if expression.operator == "not":
        return not terms[0] if isinstance(terms[0], bool) else Combination("not", (terms[0],))
    decisive = expression.operator == "or"  # one such term decides, the others do not matter
    if decisive in terms:
        return decisive
    left = [term for term in terms if not isinstance(term, bool)]
    return join(expression.operator, left) if left else not decisive


def possible(expression: Expression, negated: bool = False) -> dict[str, Mask]:
    """For some columns, the codes that a satisfying row can have: none is left out, but some may be impossible."""
    if isinstance(expression, Condition):
        return {expression.column: np.array(expression.table) != negated}
    if expression.operator == "not":
        return possible(expression.terms[0], not negated)
    terms = [possible(term, negated) for term in expression.terms]
    # De Morgan: under a "not", the two operators are swapped.
    if (expression.operator == "and") != negated:
        return {
            name: reduce(np.logical_and, [term[name] for term in terms if name in term])
            for name in dict.fromkeys(name for term in terms for name in term)
        }
    live = [term for term in terms if all(codes.any() for codes in term.values())] or terms[:1]
    # A column that some alternative does not use is not limited at all.
    common = [name for name in live[0] if all(name in term for term in live)]
    return {name: reduce(np.logical_or, [term[name] for term in live]) for name in common}


@dataclass(frozen=True, repr=False)
class Query:
    """A 0/1 function of one row's codes; made by `parse`.

    Queries with the same comparisons in the same order are equal; `text` is the canonical form of all of them.

    >>> from prade.data.declare.schema import Schema
    >>> query = parse("1 <= age and not(sex==0)", Schema.from_mbi({"age": 3, "sex": 2}))
    >>> query
    Query('age >= 1 and not sex == 0')
    >>> query.mask({"age": np.array([0, 1, 2]), "sex": np.array([1, 1, 0])})
    array([False,  True, False])
    """

    expression: Expression

    def __repr__(self) -> str:
        return f"Query({self.text!r})"

    @property
    def text(self) -> str:
        return str(self.expression)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        return {condition.column: len(condition.table) for condition in conditions(self.expression)}

    def mask(self, codes: Mapping[str, NDArray[Any]]) -> Mask:
        """Which rows satisfy the query; `codes` holds one array of codes per column."""
        if absent := [name for name in self.columns if name not in codes]:
            raise DataError(
                f"query {shorten(self.text)!r} uses column {absent[0]!r}, which is not among the coded columns "
                f"({', '.join(codes)}); encode it or leave the query out"
            )
        try:
            return evaluate(self.expression, lambda each: np.array(each.table).take(codes[each.column]))
        except IndexError:  # numpy's message would reveal a row's code
            raise DataError(
                f"some codes are too large for the columns of query {shorten(self.text)!r}: the rows were encoded with "
                "another schema than the query; parse the query with the schema of the rows"
            ) from None

    def over(self, columns: Sequence[str]) -> Mask:
        """The query as an array that broadcasts over the product of `columns`, which must include the query's own."""

        def along_axis(condition: Condition) -> Mask:
            shape = [1] * len(columns)
            shape[columns.index(condition.column)] = -1
            return np.array(condition.table).reshape(shape)

        return evaluate(self.expression, along_axis)

    def check(self, schema: Schema) -> None:
        """Refuse a schema whose columns have other sizes than those the query was parsed with."""
        for name, size in self.sizes.items():
            if (now := column_of(schema, name).size) != size:
                raise WorkloadError(
                    f"query {shorten(self.text)!r} was parsed for {size} codes in column {name!r}, but this schema "
                    f"has {now}; parse the query again with this schema"
                )


def expect(joint: Joint, query: str | Query) -> float:
    """The total weight of a distribution's rows that satisfy a query such as ``"AGEP >= 65 and SEX == 2"``."""
    parsed = parse(query, joint.schema) if isinstance(query, str) else query
    return float(joint.weights[parsed.mask(joint.codes)].sum())


def column_of(schema: Schema, name: str) -> Column:
    """The schema's column; a WorkloadError if there is none or its codes are not known yet."""
    try:
        schema.size(name)  # a group column has no size until the list of groups is given
    except SchemaError as error:
        raise WorkloadError(str(error)) from None
    return schema[name]


ALLOWED = (
    "a query compares columns with values (AGEP >= 65, 20 <= AGEP < 65, AGEP between 20 and 64, SEX == 2, "
    "SEX in (1, 2), SEX not in (1, 2), SEX is missing, SEX is not missing) and joins them with and, or, not and "
    "parentheses; put text in quotes (TENURE == 'owned'), and a column name in backticks if it is not a plain word "
    "(`marital status` == 1)"
)
MAX_LENGTH = 10_000  # characters
MAX_DEPTH = 50  # nested and / or / not; functions that walk an expression recurse at most this deep
LARGEST_NUMBER = 1e300  # comparisons of larger numbers with float edges could overflow

Value = bool | int | float | str
# Which codes satisfy a comparison that a query makes, and the comparison itself: column, symbol, value, and whether the
# query negates it.
Compare = Callable[["Column", str, Value, bool], tuple[str, Value, Mask]]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|`(?P<quoted>(?:[^`]|``)+)`"""
    r"""|(?P<number>[+-]?\s*(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?!\w))|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<sign><>|[<>=!]=|[^\s]))""",
    re.DOTALL,
)
_SYMBOLS = {"==": "==", "=": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def exactly(column: Column, symbol: str, value: Value, negated: bool) -> tuple[str, Value, Mask]:
    """The comparison as it is written; a WorkloadError if codes cannot decide it."""
    return symbol, value, column.satisfying(symbol, value)


def parse(text: str, schema: Schema, compare: Compare = exactly) -> Query:
    """Read a query against a schema.

    A query compares columns with values, also in chains or with `between`, `in`, `not in`, `is missing` and `is not
    missing`, and joins the comparisons with and / or / not and parentheses. A comparison is false for a row whose value
    is missing, even `!=`, `not in` and `not between`; `not` in front of a comparison negates whatever follows it.
    Other spellings mean the same: AND, `&`, `|`, a single `=`, `<>`, `is null`. `compare` decides single comparisons.
    """
    if not isinstance(text, str) or not text.strip():
        raise WorkloadError(f"expected the text of a query, got {shorten(repr(text))}; {ALLOWED}")
    if len(text) > MAX_LENGTH:
        raise WorkloadError(f"the query has {len(text):,} characters, but the limit is {MAX_LENGTH:,}; split it up")
    return Query(_Parser(text, schema, compare).query())


class _Name(NamedTuple):
    """A word or a name in backticks where a column or a value is expected, and the number of its token."""

    name: str
    start: int


class _Parser:
    """Recursive descent: `either` is `both` joined by or, `both` is `negation` joined by and.

    A `negation` is "not" and another one, an `either` in parentheses, or a comparison.
    """

    def __init__(self, text: str, schema: Schema, compare: Compare) -> None:
        self.text, self.schema, self.compare = text, schema, compare
        self.tokens = [*_TOKEN.finditer(text.rstrip())]
        self.at = self.depth = 0

    def query(self) -> Expression:
        expression = self.either(negated=False)
        if self.at < len(self.tokens):
            raise self.refuse("is not expected")
        if _levels(expression) > MAX_DEPTH:
            raise self.too_deep()
        return expression

    def either(self, negated: bool) -> Expression:
        return self.joined("or", "|", self.both, negated)

    def both(self, negated: bool) -> Expression:
        return self.joined("and", "&", self.negation, negated)

    def joined(
        self, operator: Literal["and", "or"], sign: str, term: Callable[[bool], Expression], negated: bool
    ) -> Expression:
        terms = [term(negated)]
        while self.take(operator, sign):
            terms.append(term(negated))
        return join(operator, terms)

    def negation(self, negated: bool) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH + 1:
            raise self.too_deep()
        expression: Expression
        if not self.is_column() and self.take("not"):
            expression = Combination("not", (self.negation(not negated),))
        elif self.take("("):
            expression = self.either(negated)
            if not self.take(")"):
                raise self.refuse("is where a closing parenthesis is expected")
        else:
            expression = self.comparison(negated)
        self.depth -= 1
        return expression

    def comparison(self, negated: bool) -> Expression:
        start = self.at
        left = self.operand()
        if self.take("is"):
            return self.missing_test(left, wanted=not self.take("not"))
        inside = not self.take("not")
        if self.take("in"):
            return self.membership(left, inside, negated)
        if self.take("between"):
            name, low = self.column(left), self.value(self.operand(), left)
            if not self.take("and"):
                raise self.refuse("is where between expects `and` and a second value")
            high = self.value(self.operand(), left)
            symbols = (">=", "<=") if inside else ("<", ">")
            both = [self.condition(name, *each, negated) for each in zip(symbols, (low, high), strict=True)]
            return join("and" if inside else "or", both)
        links = []
        while inside and (symbol := _SYMBOLS.get(self.peek())):
            self.at += 1
            links.append((left, symbol, left := self.operand()))
        if not links:
            self.at, alone = start, self.at == start + 1 and isinstance(left, _Name)
            raise self.refuse(
                f"is compared with nothing (write {self.peek(raw=True)} == ...)" if alone else "is not a query"
            )
        return join("and", [self.link(*link, negated) for link in links])

    def link(self, left: _Name | Value, symbol: str, right: _Name | Value, negated: bool) -> Condition:
        if not isinstance(left, _Name):
            if not isinstance(right, _Name):
                raise self.refuse(f"compares two values, {left!r} and {right!r}, without a column", 0)
            left, symbol, right = right, _MIRRORED[symbol], left
        elif isinstance(right, _Name) and left.name not in self.schema and right.name in self.schema:
            left, right = right, left
        return self.condition(self.column(left), symbol, self.value(right, left), negated)

    def condition(self, name: str, symbol: str, value: Value, negated: bool) -> Condition:
        symbol, value, table = self.compare(column_of(self.schema, name), symbol, value, negated)
        return Condition(name, f"{backticked(name)} {symbol} {value!r}", tuple(table.tolist()))

    def membership(self, left: _Name | Value, inside: bool, negated: bool) -> Condition:
        name, closing = self.column(left), _CLOSING.get(self.peek())
        self.at += 1
        values: list[Value] = []
        while closing is not None and not self.take(closing):
            values.append(self.value(self.operand(), left))
            if self.peek() != closing and not self.take(","):
                raise self.refuse("is in the middle of a list")
        if not values:
            raise self.refuse("is where `in` expects a list of values (write SEX in (1, 2))", self.at - 1)
        # "not in" is a conjunction of "!=", so that a missing value satisfies neither "in" nor "not in".
        column, symbol = column_of(self.schema, name), "==" if inside else "!="
        tables = [self.compare(column, symbol, value, negated)[2] for value in values]
        table = reduce(np.logical_or if inside else np.logical_and, tables)
        text = f"{backticked(name)} {'in' if inside else 'not in'} [{', '.join(map(repr, values))}]"
        return Condition(name, text, tuple(table.tolist()))

    def missing_test(self, left: _Name | Value, wanted: bool) -> Condition:
        if not self.take("missing", "null"):
            raise self.refuse("follows `is` (write SEX is missing, or SEX == 1)")
        name = self.column(left)
        column = column_of(self.schema, name)
        if not column.missing:
            raise WorkloadError(
                f"query {shorten(self.text)!r} asks whether column {name!r} is missing, but the schema "
                "does not allow missing values in it; set missing = true in the schema, or drop the test"
            )
        table = [not wanted] * (column.size - 1) + [wanted]
        return Condition(name, f"{backticked(name)} is {'' if wanted else 'not '}missing", tuple(table))

    def peek(self, *, raw: bool = False) -> str:
        """The next token, words in lower case; nothing at the end and for names and text in quotes."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if raw:
            return token[0].strip() if token else ""
        return (token["word"] or token["sign"] or "").lower() if token else ""

    def take(self, *words: str) -> bool:
        """Whether the next token is one of these; if so, go on behind it."""
        taken = self.peek() in words
        self.at += taken
        return taken

    def is_column(self) -> bool:
        """Whether the next word is the name of a column, though it is one of ours in capitals, such as NOT."""
        word = self.peek(raw=True)
        return word in self.schema and not keyword.iskeyword(word)

    def operand(self) -> _Name | Value:
        if self.at == len(self.tokens):
            raise self.refuse("ends where a column or a value is expected")
        token = self.tokens[self.at]
        word, quoted = token["word"], token["quoted"]
        if quoted is None and word in ("True", "False") and word not in self.schema:
            self.at += 1
            return word == "True"
        if quoted is not None or (word is not None and not keyword.iskeyword(word)):
            self.at += 1
            return _Name(word or quoted.replace("``", "`"), self.at - 1)
        if token["sign"] or word:
            raise self.refuse("is where a column or a value is expected")
        try:
            value: Value = ast.literal_eval(re.sub(r"\s", "", token[0]) if token["number"] else token[0].strip())
        except (ValueError, SyntaxError):  # a number such as 007, a lone surrogate
            raise self.refuse("cannot be read") from None
        if not isinstance(value, str) and abs(value) > LARGEST_NUMBER:
            raise self.refuse("is a number too large to compare with")
        self.at += 1
        return value

    def column(self, operand: _Name | Value) -> str:
        if not isinstance(operand, _Name):
            raise self.refuse(f"has {operand!r} before it, where a column name is expected")
        return operand.name

    def value(self, operand: _Name | Value, column: _Name | Value) -> Value:
        """The value that the column is compared with; a word is text that lacks its quotes, or another column."""
        if not isinstance(operand, _Name):
            return operand
        name, word = self.column(column), operand.name
        of = column_of(self.schema, name)
        if word in self.schema:
            raise self.refuse("is a second column (compare each with a value)", operand.start)
        alike = {str(value).lower(): value for value in of.values}
        if word.lower() in alike:
            hint = f"did you mean {alike[word.lower()]!r}?"
        else:
            values = some_of(of.values) if of.values else "dates" if of.dates else "numbers"
            hint = f"the values of {name} are {values}"
        raise self.refuse(f"is a word without quotes, which is not a column ({hint})", operand.start)

    def refuse(self, what: str, at: int | None = None) -> WorkloadError:
        at = self.at if at is None else at
        rest = self.text[self.tokens[at].start() :].strip() if at < len(self.tokens) else ""
        return WorkloadError(f"in query {shorten(self.text)!r}, {shorten(rest)!r} {what}; {ALLOWED}")

    def too_deep(self) -> WorkloadError:
        return WorkloadError(f"query {shorten(self.text)!r} has more than {MAX_DEPTH} levels of and, or and not")


def _levels(expression: Expression) -> int:
    return 0 if isinstance(expression, Condition) else 1 + max(map(_levels, expression.terms))
