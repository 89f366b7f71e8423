"""Predicate queries written as text: ``"AGEP >= 65 and SEX == 2"``.

A query is a 0/1 function of one row. SQL's spellings (AND, IN, IS in any case, & and |, a single =, <>, BETWEEN) are
first rewritten as Python's; a word that is the name of a column stays that column. Python's own parser reads the text,
and a reader then accepts a short list of forms; nothing is ever evaluated as code. Each comparison becomes a Boolean
table over the codes of one column, so a query is answered by table lookups joined by and, or and not.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError, SchemaError, WorkloadError, closest
from prade.data.declare.kinds import some_of

if TYPE_CHECKING:
    from prade.data.declare.schema import Column, Schema
    from prade.data.public.joint import Joint

ALLOWED = (
    "a query compares columns with values (AGEP >= 65, 20 <= AGEP < 65, AGEP between 20 and 64, SEX == 2, "
    "SEX in (1, 2), SEX not in (1, 2), SEX is missing, SEX is not missing) and joins them with and, or, not and "
    "parentheses; put text in quotes (TENURE == 'owned'), and a column name in backticks if it is not a plain word "
    "(`marital status` == 1)"
)

_PIECES = re.compile(
    r"""(?P<triple>'{3}|"{3})|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<comment>\#)"""
    r"""|`(?P<name>(?:[^`]|``)+)`|(?P<space>\s+)"""
    r"""|(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?\w*)|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<operator><>|:=|[<>=!]=|.)""",
    re.DOTALL,
)
_OPERATORS = {"=": "==", "<>": "!=", "&": " and ", "|": " or "}
_WORDS = ("and", "or", "not", "in", "is", "between")


@dataclass(frozen=True)
class PlainText:
    """A query as Python text, with placeholders for backticked names, and the name for each placeholder."""

    text: str
    quoted: dict[str, str]


def plain_text(text: str, columns: Collection[str]) -> PlainText:
    """Rewrite the text of a query; `columns` are the names that the schema has.

    >>> plain_text("SEX = 2 AND AGE BETWEEN 20 AND 64", ["SEX", "AGE"]).text
    'SEX == 2 and 20 <= AGE <= 64'
    """
    stem = "column"
    while stem in text:  # a placeholder must not be a name that the text uses itself
        stem += "_"
    quoted: dict[str, str] = {}
    tokens: list[str] = []
    for piece in _PIECES.finditer(text):
        if piece["triple"] or piece["comment"]:
            what = "a triple quote" if piece["triple"] else "a comment"
            raise WorkloadError(f"query {shorten(text)!r} contains {what}; {ALLOWED}")
        if piece["name"] is not None:
            placeholder = f"{stem}{len(quoted)}_"
            quoted[placeholder] = piece["name"].replace("``", "`")
            tokens.append(placeholder)
        elif piece["word"] and piece[0] not in columns and piece[0].lower() in _WORDS:
            tokens.append(piece[0].lower())
        else:
            tokens.append(" " if piece["space"] else _OPERATORS.get(piece[0], piece[0]))
    return PlainText("".join(_without_sql(tokens, columns)).strip(), quoted)


def _without_sql(tokens: list[str], columns: Collection[str]) -> Iterator[str]:
    """The tokens with `x between a and b` as two comparisons, and `in (a)` as a list of one value."""
    at = 0
    while at < len(tokens):
        if tokens[at] == "in" and (value := _alone_in_parentheses(tokens, at + 1)) is not None:
            yield f"in [{value[0]}]"
            at = value[1]
        elif (found := None if "between" in columns else _between(tokens, at)) is not None:
            yield found[0]
            at = found[1]
        else:
            yield tokens[at]
            at += 1


def _between(tokens: list[str], at: int) -> tuple[str, int] | None:
    """The comparisons that `x [not] between a and b` at this place stands for, and where it ends."""
    name, here = tokens[at], _after_space(tokens, at + 1)
    negated = here < len(tokens) and tokens[here] == "not"
    here = _after_space(tokens, here + 1) if negated else here
    if not name.isidentifier() or here >= len(tokens) or tokens[here] != "between":
        return None
    low = _value(tokens, here + 1)
    if low is None or low[1] >= len(tokens) or tokens[low[1]].strip() != "and":
        return None
    high = _value(tokens, low[1] + 1)
    if high is None:
        return None
    text = f"({name} < {low[0]} or {name} > {high[0]})" if negated else f"{low[0]} <= {name} <= {high[0]}"
    return text + " ", high[1]


def _alone_in_parentheses(tokens: list[str], at: int) -> tuple[str, int] | None:
    """The single value in parentheses at this place, and where they end: Python reads (1) as 1, SQL as a list."""
    at = _after_space(tokens, at)
    if at >= len(tokens) or tokens[at] != "(":
        return None
    value = _value(tokens, at + 1)
    closed = value is not None and value[1] < len(tokens) and tokens[value[1]] == ")"
    return (value[0], value[1] + 1) if value is not None and closed else None


def _value(tokens: list[str], at: int) -> tuple[str, int] | None:
    """The number or text at this place, with its sign, and the next token that is not a space."""
    at = _after_space(tokens, at)
    sign = tokens[at] if at < len(tokens) and tokens[at] in "+-" else ""
    at = _after_space(tokens, at + 1) if sign else at
    if at >= len(tokens) or not re.match(r"""['"\w.]""", tokens[at]):
        return None
    return sign + tokens[at], _after_space(tokens, at + 1)


def _after_space(tokens: list[str], at: int) -> int:
    while at < len(tokens) and tokens[at] == " ":
        at += 1
    return at


def backticked(name: str) -> str:
    """A column's name as it is written in a query: in backticks unless it is a plain word.

    >>> backticked("AGEP"), backticked("marital status")
    ('AGEP', '`marital status`')
    """
    # Python's parser converts names to NFKC, so only names already in that form can go without backticks.
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return name if plain else "`" + name.replace("`", "``") + "`"


def shorten(text: str, limit: int = 80) -> str:
    """The text, shortened in the middle if it is longer than `limit`."""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 3 :]}"


# ---------------------------------------------------------------------- expressions


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
        texts = [
            f"({term})" if isinstance(term, Combination) and term.operator != "not" else str(term)
            for term in self.terms
        ]
        return f"not {texts[0]}" if self.operator == "not" else f" {self.operator} ".join(texts)


Expression = Condition | Combination


def join(operator: Literal["and", "or"], terms: Sequence[Expression]) -> Expression:
    """Terms joined by one operator; nested uses of the same operator are flattened, which keeps the meaning."""
    flat: list[Expression] = []
    for term in terms:
        if isinstance(term, Combination) and term.operator == operator:
            flat.extend(term.terms)
        else:
            flat.append(term)
    return flat[0] if len(flat) == 1 else Combination(operator, tuple(flat))


def conditions(expression: Expression) -> Iterator[Condition]:
    """The comparisons of an expression, from left to right."""
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


# ---------------------------------------------------------------------- queries


Value = bool | int | float | str
# Which codes satisfy a comparison that a query makes, and the comparison itself: column, symbol, value, and whether the
# query negates it.
Compare = Callable[["Column", str, Value, bool], tuple[str, Value, Mask]]

MAX_LENGTH = 10_000  # characters; short enough that Python's parser refuses deep nesting itself instead of crashing
MAX_DEPTH = 50  # nested and / or / not; functions that walk an expression recurse at most this deep
MAX_TABLE = 2**20  # cells of a query's table over the joint domain of its columns


@dataclass(frozen=True, repr=False)
class Query:
    """A 0/1 function of one row's codes; made by `parse`.

    Two queries are equal if they have the same comparisons in the same order, whatever the spacing. `text` is the
    canonical form, and parsing it gives an equal query. `expression` is the tree behind it, for code that translates
    queries to other languages.

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
        """The canonical text of the query."""
        return str(self.expression)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the query uses, in order of appearance."""
        return tuple(self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of codes of each column that the query uses."""
        return {condition.column: len(condition.table) for condition in conditions(self.expression)}

    def mask(self, codes: Mapping[str, NDArray[Any]]) -> Mask:
        """Which rows satisfy the query; `codes` holds one array of codes per column."""
        absent = [name for name in self.columns if name not in codes]
        if absent:
            raise DataError(
                f"query {shorten(self.text)!r} uses column {absent[0]!r}, which is not among the "
                f"coded columns ({', '.join(codes)}); encode it or leave the query out"
            )

        def rows(condition: Condition) -> Mask:
            satisfied: Mask = np.array(condition.table).take(codes[condition.column])
            return satisfied

        try:
            return evaluate(self.expression, rows)
        except IndexError:  # numpy's message would reveal a row's code
            raise DataError(
                f"some codes are too large for the columns of query {shorten(self.text)!r}: the rows were encoded with "
                "another schema than the query; parse the query with the schema of the rows"
            ) from None

    def table(self, schema: Schema) -> Mask:
        """The query's value in every cell of the product of its columns, with one axis per column."""
        self.check(schema)
        cells = math.prod(self.sizes.values())
        if cells > MAX_TABLE:
            raise WorkloadError(
                f"query {shorten(self.text)!r} has {cells:,} cells over {', '.join(self.columns)}, but a table "
                f"may have at most {MAX_TABLE:,}; use mask(codes) on the rows instead"
            )
        return np.ascontiguousarray(np.broadcast_to(self.over(self.columns), tuple(self.sizes.values())))

    def over(self, columns: Sequence[str]) -> Mask:
        """The query as an array that broadcasts over the product of `columns`, which must include the query's own."""

        def along_axis(condition: Condition) -> Mask:
            shape = [1] * len(columns)
            shape[columns.index(condition.column)] = -1
            return np.array(condition.table).reshape(shape)

        return evaluate(self.expression, along_axis)

    def possible(self) -> dict[str, Mask]:
        """For some columns, the codes that a satisfying row can have: none is left out, but some may be impossible.

        For comparisons joined by "and", the query is exactly the product of these sets. Two queries whose sets are
        disjoint in some common column have no row in common.
        """
        return possible(self.expression)

    def check(self, schema: Schema) -> None:
        """Refuse a schema whose columns have other sizes than those the query was parsed with."""
        for name, size in self.sizes.items():
            if (now := column_of(schema, name).size) != size:
                raise WorkloadError(
                    f"query {shorten(self.text)!r} was parsed for {size} codes in column {name!r}, but this schema "
                    f"has {now}; parse the query again with this schema"
                )


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
    plain = plain_text(text, schema.names)
    try:
        tree = ast.parse(plain.text, mode="eval")
    except (RecursionError, MemoryError):
        raise _too_deep(text) from None
    except ValueError as error:  # also SyntaxError's relatives: null bytes, lone surrogates
        raise WorkloadError(f"cannot read query {shorten(text)!r}: {error}; {ALLOWED}") from None
    except SyntaxError as error:
        raise WorkloadError(f"cannot read query {shorten(text)!r}: {error.msg}; {ALLOWED}") from None
    return Query(_Reader(text, plain, schema, compare).expression(tree.body, 0, negated=False))


def expect(joint: Joint, query: str | Query) -> float:
    """The total weight of a distribution's rows that satisfy a query such as ``"AGEP >= 65 and SEX == 2"``."""
    parsed = parse(query, joint.schema) if isinstance(query, str) else query
    return float(joint.weights[parsed.mask(joint.codes)].sum())


class _Reader:
    """Converts the syntax tree of one query, and refuses every form that is not on the list."""

    def __init__(self, text: str, plain: PlainText, schema: Schema, compare: Compare) -> None:
        self.text, self.plain, self.quoted = text, plain.text, plain.quoted
        self.schema, self.compare = schema, compare

    def expression(self, node: ast.expr, depth: int, *, negated: bool) -> Expression:
        chained = isinstance(node, ast.Compare) and len(node.ops) > 1  # the same as comparisons under an "and"
        if depth + chained > MAX_DEPTH:
            raise _too_deep(self.text)
        match node:
            case ast.BoolOp(op=operator, values=values):
                terms = [self.expression(value, depth + 1, negated=negated) for value in values]
                return join("and" if isinstance(operator, ast.And) else "or", terms)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Combination("not", (self.expression(operand, depth + 1, negated=not negated),))
            case ast.Compare(left=left, ops=operators, comparators=comparators):
                sides = [left, *comparators]
                links = zip(sides, operators, comparators, strict=False)
                return join("and", [self.comparison(*link, whole=node, negated=negated) for link in links])
            case ast.Name():
                raise self.refuse(node, f"a column by itself (compare it: {self.source(node)} == ...)")
        raise self.refuse(node)

    def comparison(
        self, left: ast.expr, operator: ast.cmpop, right: ast.expr, whole: ast.expr, negated: bool
    ) -> Condition:
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self.missing_test(left, isinstance(operator, ast.Is), right)
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self.membership(left, isinstance(operator, ast.In), right, negated)
        symbol = _SYMBOLS[type(operator)]
        if isinstance(left, ast.Name) and isinstance(right, ast.Name):
            raise self.two_names(left, right, whole)
        if isinstance(left, ast.Name):
            name, value = self.column(left), self.value(right)
        elif isinstance(right, ast.Name):
            name, value, symbol = self.column(right), self.value(left), _MIRRORED[symbol]
        else:
            values = self.value(left), self.value(right)
            raise self.refuse(whole, f"a comparison of two values, {values[0]!r} and {values[1]!r}, without a column")
        symbol, value, table = self.compare(column_of(self.schema, name), symbol, value, negated)
        return Condition(name, f"{backticked(name)} {symbol} {value!r}", tuple(table.tolist()))

    def two_names(self, left: ast.Name, right: ast.Name, whole: ast.expr) -> WorkloadError:
        """Refuse a comparison of two names: of two columns, or of a column with text that lacks its quotes."""
        known = [name in self.schema for name in (self.column(left), self.column(right))]
        if all(known):
            return self.refuse(whole, "a comparison of two columns (compare each with a value)")
        if not any(known):
            column_of(self.schema, self.column(left))  # raises an error with the closest name
        column, word = (left, right) if known[0] else (right, left)
        return self.unquoted(self.column(column), word)

    def unquoted(self, name: str, word: ast.Name) -> WorkloadError:
        """Refuse a word where a value of a column is expected, and guess which value is meant."""
        column, text = column_of(self.schema, name), self.source(word)
        if column.value_type == "bool" and text.lower() in ("true", "false"):
            hint = f"did you mean {text.capitalize()}?"
        elif text in column.values:
            hint = f"did you mean {text!r} in quotes?"
        elif (value := column.value_labelled(text)) is not None:
            hint = f"it is the label of {value!r}: write {value!r} instead"
        elif column.value_type == "str":
            alike = {value.lower(): value for value in map(str, column.values)}
            hint = closest(text.lower(), alike).removeprefix("; ")
            hint = f"did you mean {alike[text.lower()]!r}?" if text.lower() in alike else hint
            hint = hint or f"the values of {name} are {some_of(column.values)}"
        else:
            values = f"numbers: {some_of(column.values)}" if column.values else "dates" if column.dates else "numbers"
            hint = f"the values of {name} are {values}"
        return self.refuse(word, f"a word without quotes, which is not a column ({hint})")

    def membership(self, left: ast.expr, inside: bool, right: ast.expr, negated: bool) -> Condition:
        if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not right.elts:
            raise self.refuse(right, "`in` without a list of values after it (write SEX in (1, 2))")
        name = self.column(left)
        column = column_of(self.schema, name)
        for element in right.elts:
            if isinstance(element, ast.Name):
                raise self.unquoted(name, element)
        values = [self.value(element) for element in right.elts]
        # "not in" is a conjunction of "!=", so that a missing value satisfies neither "in" nor "not in".
        tables = [self.compare(column, "==" if inside else "!=", value, negated)[2] for value in values]
        table = reduce(np.logical_or if inside else np.logical_and, tables)
        word = "in" if inside else "not in"
        listed = ", ".join(repr(value) for value in values)
        return Condition(name, f"{backticked(name)} {word} [{listed}]", tuple(table.tolist()))

    def missing_test(self, left: ast.expr, wanted: bool, right: ast.expr) -> Condition:
        if not isinstance(right, ast.Name) or right.id.lower() not in ("missing", "null"):
            raise self.refuse(
                right, "`is` followed by something other than missing (write SEX is missing, or SEX == 1)"
            )
        name = self.column(left)
        column = column_of(self.schema, name)
        if not column.missing:
            raise WorkloadError(
                f"query {shorten(self.text)!r} asks whether column {name!r} is missing, but the schema "
                "does not allow missing values in it; set missing = true in the schema, or drop the test"
            )
        table = [not wanted] * (column.size - 1) + [wanted]
        return Condition(name, f"{backticked(name)} is {'' if wanted else 'not '}missing", tuple(table))

    def column(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self.refuse(node, f"{_described(node)} where a column name is expected")
        return self.quoted.get(node.id, node.id)

    def value(self, node: ast.expr) -> Value:
        sign = 1
        literal = node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            sign = -1 if isinstance(node.op, ast.USub) else 1
            literal = node.operand
        if not isinstance(literal, ast.Constant):
            raise self.refuse(node)
        value = literal.value
        if value is None:
            raise self.refuse(node, "None (write `is missing`)")
        if isinstance(value, (bool, str)) and literal is node:
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if abs(value) > 1e300:  # comparisons of larger numbers with float edges could overflow
                raise self.refuse(node, "a number too large to compare with")
            return sign * value
        what = f"a value of type {type(value).__name__}" if literal is node else "a sign that is not before a number"
        raise self.refuse(node, what)

    def source(self, node: ast.expr) -> str:
        segment = ast.get_source_segment(self.plain, node) or ""
        for placeholder, name in self.quoted.items():
            segment = segment.replace(placeholder, backticked(name))
        return segment

    def refuse(self, node: ast.expr, what: str | None = None) -> WorkloadError:
        return WorkloadError(
            f"query {shorten(self.text)!r} contains {what or _described(node)} at {shorten(self.source(node))!r}; "
            f"{ALLOWED}"
        )


_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FORMS: dict[type[ast.expr], str] = {
    ast.Attribute: "an attribute",
    ast.BinOp: "arithmetic or a bit operator",
    ast.Call: "a function call",
    ast.Compare: "a comparison",
    ast.Constant: "a value",
    ast.IfExp: "a conditional expression",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a lambda",
    ast.Name: "a column",
    ast.NamedExpr: "an assignment",
    ast.Subscript: "an index",
}


def _described(node: ast.expr) -> str:
    return _FORMS.get(type(node), f"a form that is not allowed in queries ({type(node).__name__})")


def column_of(schema: Schema, name: str) -> Column:
    """The schema's column; a WorkloadError if there is none or its codes are not known yet."""
    try:
        schema.size(name)  # a group column has no size until the list of groups is given
    except SchemaError as error:
        raise WorkloadError(str(error)) from None
    return schema[name]


def _too_deep(text: str) -> WorkloadError:
    return WorkloadError(
        f"query {shorten(text)!r} is nested too deeply; use at most {MAX_DEPTH} levels of and, or and not"
    )
