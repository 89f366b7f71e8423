"""The text of a query, rewritten as one line of Python that holds the same comparisons.

SQL's way to write things is accepted besides Python's: AND, OR, NOT, IN and IS in any case, & and |, a single =, <>,
BETWEEN. Each is replaced by what it means, so that one parser reads all of them. A word that is the name of a
column stays that column, whatever it means elsewhere.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from prade.core.errors import WorkloadError

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
