"""Boolean expressions over coded columns: comparisons stored as lookup tables, joined by and, or and not.

`prade.queries.query.Query` holds such an expression tree: plain data that can be evaluated on rows or on a whole
domain, or translated to another language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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
