"""Coding in a database: a declared column becomes an Ibis expression for the code of each cell.

It applies the rules of `prade.data.matching` to cells that stay in the database: the same value lists, bins, missing
and fallback codes, decided by the column's declaration and the type of the table's column, never by other cells. No
expression here can make an engine fail on a cell: text is cast only where it matches the pattern of a number, and
nothing is added to or subtracted from a raw number.

Three things differ from tables in memory: only spaces, tabs and line ends around text are trimmed; text with an
exponent of 300 or more, or with over a hundred digits, is not read as a number; and text is compared with a short list
by the column's own collation. A database declares its types, and rows cannot change them, so types may be refused here:
a type that cannot fit the schema, and a list of values that no cell of the type can equal.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prade.core.errors import DataError
from prade.data.cells import texts_of
from prade.data.column import EPOCH, LARGEST_WHOLE, Column
from prade.data.matching import numerals
from prade.measuring.dialects import Dialect

if TYPE_CHECKING:
    import ibis.expr.types as ir

# Every text that matches fits into a double, so an engine's cast cannot overflow.
NUMBER = (
    r"^[+-]?([0-9]{1,150}\.?[0-9]{0,100}|\.[0-9]{1,100})([eE][+-]?[0-9]{1,2})?$"
    r"|^[+-]?([0-9]{1,4}\.?[0-9]{0,17}|\.[0-9]{1,17})[eE]\+?[12][0-9]{2}$"
    r"|^[+-]?([0-9]{1,17}\.?[0-9]{0,4}|\.[0-9]{1,4})[eE]-[12][0-9]{2}$"
)
WHOLE = r"^[+-]?[0-9]{1,30}$"
# Decimals of any length, as text: digits beyond a double's range are cut off, which leaves a very large or tiny number.
WRITTEN_OUT = r"^-?[0-9]+(\.[0-9]+)?$"
WITHIN_DOUBLES = r"^-?[0-9]{1,250}(\.[0-9]{1,250})?"
LONGEST_DECIMAL = 76  # digits that an Arrow decimal can have
TRUTH = {"false": 0, "true": 1, "0": 0, "1": 1}
DAY = r"^([0-9]{1,4})-(0?[1-9]|1[0-2])-(0?[1-9]|[12][0-9]|3[01])$"


def code_of(column: Column, cell: ir.Value, dialect: Dialect, position: ir.Value | None = None) -> ir.Value:
    """The code of each cell, 0 to size - 1 and never NULL.

    For a column whose list is joined (see `joined_position`), `position` is the cell's position in the list, NULL if it
    is not listed.
    """
    if column.size == 1:  # every cell has the one code, such as "missing" in a column that is always missing
        return _code(0).cast(_integer_type(1))
    if column.kind == "numeric":
        code = _bin_of(column, cell, dialect)
    elif position is not None:
        code = position.fill_null(_code(column.fallback))
    else:
        code = position_of(column, cell, column.fallback, dialect)
    if column.missing:
        code = _choose(_empty(cell, dialect.has_nan), column.present, code)
    return code.cast(_integer_type(column.size))


def position_of(column: Column, cell: ir.Value, unlisted: int | None, dialect: Dialect) -> ir.Value:
    """The position of each cell in the column's list of values; `unlisted` (None: NULL) for cells not in the list."""
    value, listed = _comparable(column, cell, dialect)
    if value.type().is_string() or value.type().is_binary():
        return value.cases(*[(text, _code(position)) for text, position in listed], else_=_code(unlisted))
    return _find(value, listed, unlisted)


def joined_position(table: ir.Table, column: Column, cells: str, name: str, dialect: Dialect) -> ir.Table:
    """The table with a new column `name`: each cell's position in the list, NULL if it is not listed, found by a join.

    An expression grows with the list and, for text, takes as many comparisons; a join takes one look-up. The list
    is part of the statement, as an array of texts (ten digits of the position, then the value), so that nothing has to
    be written into the database. No cell may match two values of the list, or its row would count twice: text is joined
    by its bytes, because "=" may follow a collation in which "a" equals "A".
    """
    import ibis

    value, listed = _comparable(column, table[cells], dialect)
    kind = value.type()
    text = kind.is_string() or kind.is_binary()
    key = dialect.joinable(value) if text else value
    if key is None or not (text or kind.is_integer() or kind.is_floating()):
        return table.mutate(**{name: position_of(column, table[cells], None, dialect)})
    texts = [f"{position:010d}{dialect.entry(each)}" for each, position in listed]
    entry = ibis.literal(texts, "array<string>").unnest().name("entry").as_table()
    own, match = f"{name}_key", f"{name}_value"
    each = dialect.joined_entry(entry.entry.substr(10), kind)
    listing = entry.select(**{match: each, name: entry.entry.substr(0, 10).cast("int32")})
    keyed = table.mutate(**{own: key})
    return keyed.left_join(listing, keyed[own] == listing[match]).drop(own, match)


def only_listed(rows: ir.Table, name: str, keys: Sequence[int], numbers: Sequence[int], by_join: bool) -> ir.Table:
    """The rows whose key in column `name` is among `keys`, with the key replaced by its number."""
    import ibis

    if not by_join:
        numbered = rows.mutate(**{name: _find(rows[name], list(zip(keys, numbers, strict=True)), None).cast("int64")})
        return numbered.filter(numbered[name].notnull())
    pairs = ibis.literal([f"{key:020d}{number}" for key, number in zip(keys, numbers, strict=True)], "array<string>")
    entry = pairs.unnest().name("entry").as_table()
    number, listed = f"{name}_number", f"{name}_listed"
    listing = entry.select(
        **{listed: entry.entry.substr(0, 20).cast("int64"), number: entry.entry.substr(20).cast("int64")}
    )
    joined = rows.inner_join(listing, rows[name] == listing[listed])
    return joined.mutate(**{name: joined[number]}).drop(number, listed)


# ---------------------------------------------------------------------- lists of values


def _comparable(column: Column, cell: Any, dialect: Dialect) -> tuple[Any, list[tuple[Any, int]]]:
    """The cell as text, number or date, and the listed values that it can equal, at least one, with their positions."""
    value, listed = _matches(column, cell, dialect)
    if not listed and not cell.type().is_null():
        raise DataError(
            f"column {column.name!r}: no cell of the table's type {cell.type()} can equal a listed value (the first is "
            f"{column.values[0]!r}). Nothing was counted: write the values as the table does, or convert the column"
        )
    return value, listed


def _matches(column: Column, cell: Any, dialect: Dialect) -> tuple[Any, list[tuple[Any, int]]]:
    """As `_comparable`, but possibly without any value."""
    if column.value_type == "str":
        kind = cell.type()
        _refuse_unreadable(column, kind)
        listed_texts = (
            column.values if kind.is_string() or kind.is_boolean() or kind.is_temporal() else numerals(column)
        )
        texts = [(str(value), position) for position, value in enumerate(listed_texts)]
        if kind.is_string():
            return dialect.comparable(cell, texts)
        if _of_any_length(kind):
            written = cell.cast("string").re_replace(r"(\.[0-9]*[1-9])0+$", r"\1").re_replace(r"\.0+$", "")
            return written, texts
        # "0" and "-0" are the same number: a row that matched both in a join would be counted twice
        return cell, list({value: position for text, position in texts for value in _typed(text, kind)}.items())
    number = _number(column, cell, dialect)
    kind = number.type()
    listed: list[tuple[Any, int]] = []
    for position, value in enumerate(column.values):
        exact = int(value) if float(value).is_integer() else float(value)
        # A value that the cells' type cannot represent equals no cell.
        if not (kind.is_integer() and isinstance(exact, float)) and not (kind.is_floating() and float(exact) != exact):
            listed.append((exact, position))
    return number, listed


def _find(cell: Any, listed: Sequence[tuple[Any, int]], unlisted: int | None) -> Any:
    """The position of the listed value that equals the cell, found in a search tree, so that long lists stay cheap."""
    kind = cell.type()
    if not listed or kind.is_null():
        return _code(unlisted)
    ordered = sorted(listed)
    literals = [_literal(value, kind) for value, _ in ordered]
    leaves = [_choose(cell == each, position, unlisted) for each, (_, position) in zip(literals, ordered, strict=True)]
    return _search(cell, literals[1:], leaves)  # no comparison holds for NULL, so it ends up unlisted


def _typed(text: str, kind: Any) -> list[Any]:
    """The value of the given type that the codec writes as `text`: a list of none or one."""
    import pyarrow as pa

    if kind.is_null():
        return []
    try:
        value = pa.array([text]).cast(pa.timestamp("us") if kind.is_timestamp() else kind.to_pyarrow())
        same = texts_of(value).to_pylist() == [text]
    except pa.ArrowException:
        return []
    (typed,) = value.to_pylist()
    return [typed] if same and not (isinstance(typed, float) and not math.isfinite(typed)) else []


# ---------------------------------------------------------------------- bins


def _bin_of(column: Column, cell: ir.Value, dialect: Dialect) -> ir.Value:
    """The bin of each cell: the number of cuts not above it, or the fallback for a cell that is not a number."""
    number = _number(column, cell, dialect)
    kind = number.type()
    if kind.is_null():
        return _code(column.fallback)
    bins = _search(number, [_literal(_at(cut, kind), kind) for cut in column.cuts], list(range(len(column.cuts) + 1)))
    if column.unknown == "missing":
        for bound, beyond in ((column.min, number.__lt__), (column.max, number.__gt__)):
            if bound is not None:
                bins = _choose(beyond(_literal(_at(bound, kind), kind)), column.size - 1, bins)
    return _choose(_empty(number, dialect.has_nan), column.fallback, bins)


def _at(number: float, kind: Any) -> Any:
    """A cut or bound as a value of the type it is compared with; for whole numbers a cut is rounded up."""
    if kind.is_temporal():
        return EPOCH + datetime.timedelta(days=math.ceil(number))
    return math.ceil(number) if kind.is_integer() else number


def _number(column: Column, cell: Any, dialect: Dialect) -> Any:
    """The cell as the number or date by which it is compared; NULL for text that is neither."""
    kind = cell.type()
    _refuse_unreadable(column, kind)
    if kind.is_null():
        return cell
    if kind.is_string():
        text = dialect.stripped(cell)
        if column.dates:
            return _days(text, dialect)
        if column.value_type == "bool":
            return text.lower().cases(*[(word, _code(truth)) for word, truth in TRUTH.items()], else_=_code(None))
        if column.value_type == "int" and max(abs(int(value)) for value in column.values) >= LARGEST_WHOLE:
            return _only(text, WHOLE, dialect).cast("decimal(38, 0)")  # doubles cannot distinguish such numbers
        return _only(text, NUMBER, dialect).cast("float64")
    if kind.is_boolean():  # not every engine can cast it
        return _choose(cell.isnull(), None, _choose(cell, 1, 0))
    # Cuts of a numeric column may exceed every integer type; then its cells are compared as doubles.
    listed = (*column.cuts, *(bound for bound in (column.min, column.max) if bound is not None))
    if _of_any_length(kind):
        return _only(cell.cast("string"), WRITTEN_OUT, dialect).re_extract(WITHIN_DOUBLES, 0).cast("float64")
    if kind.is_temporal() or (kind.is_integer() and all(abs(each) <= LARGEST_WHOLE for each in listed)):
        return cell
    return cell.cast("float64")


def _of_any_length(kind: Any) -> bool:
    """Whether cells are decimals that may not fit into a double, so that an engine's cast could fail."""
    sizes = (kind.precision, kind.scale) if kind.is_decimal() else ()
    return any(size is None or not 0 <= size <= LONGEST_DECIMAL for size in sizes)


def _only(text: Any, pattern: str, dialect: Dialect) -> Any:
    """The text where it matches the pattern, NULL elsewhere, so that later casts only see text that they can read."""
    import ibis

    return text.re_search(dialect.pattern(pattern)).ifelse(text, ibis.null(text.type()))


def _days(text: Any, dialect: Dialect) -> Any:
    """Text that starts with a date, as days since 1970-01-01, by the Julian day number's formula in whole numbers."""
    date = _only(text.substr(0, 10), DAY, dialect)
    year, month, day = (date.re_extract(dialect.pattern(DAY), group).cast("int64") for group in (1, 2, 3))
    early = _choose(month <= 2, 1, 0).cast("int64")
    years, months = year + 4800 - early, month + 12 * early - 3
    julian = day + (153 * months + 2) // 5 + 365 * years + years // 4 - years // 100 + years // 400 - 32045
    return julian - 2440588


# ---------------------------------------------------------------------- pieces of expressions


def _search(cell: Any, bounds: Sequence[Any], leaves: Sequence[Any]) -> Any:
    """``leaves[i]`` where bounds[i - 1] <= cell < bounds[i], as a balanced tree of comparisons."""
    if not bounds:
        return _code(leaves[0])
    middle = len(bounds) // 2
    below = _search(cell, bounds[:middle], leaves[: middle + 1])
    above = _search(cell, bounds[middle + 1 :], leaves[middle + 1 :])
    return (cell < bounds[middle]).ifelse(below, above)


def _empty(cell: Any, has_nan: bool) -> Any:
    return cell.isnull() | cell.isnan() if has_nan and cell.type().is_floating() else cell.isnull()


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return condition.ifelse(_code(yes), _code(no))


def _code(value: Any) -> Any:
    """A code (NULL for None) as a literal; expressions pass unchanged."""
    import ibis

    if hasattr(value, "type"):
        return value
    return ibis.null("int32") if value is None else ibis.literal(value, "int32")


def _literal(value: Any, kind: Any) -> Any:
    import ibis

    if kind.is_timestamp():
        moment = (
            value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)
        )
        return ibis.literal(moment if kind.timezone is None else moment.replace(tzinfo=datetime.UTC), kind)
    if kind.is_floating():
        # Some engines read 20.000000000000004 as a decimal and lose its last digit; text is read exactly.
        return ibis.literal(repr(float(value))).cast("float64")
    return ibis.literal(value, "int64" if kind.is_integer() else kind)


def _integer_type(size: int) -> str:
    """The narrowest signed type for codes below `size`: rows that an engine sorts or spills stay small."""
    return "int16" if size <= 2**15 else "int32"


def _refuse_unreadable(column: Column, kind: Any) -> None:
    """Refuse a type that cannot be what the schema says, whatever its cells are."""
    if kind.is_string() or kind.is_null():
        return
    dates = kind.is_date() or kind.is_timestamp()
    number = kind.is_integer() or kind.is_floating() or kind.is_boolean() or kind.is_decimal()
    if not dates and not number:
        raise DataError(
            f"column {column.name!r}: cells of type {kind} cannot be coded; "
            "convert them to numbers, text, true/false or dates"
        )
    if column.value_type != "str" and dates != column.dates:
        declared = "dates" if column.dates else "numbers"
        raise DataError(
            f"column {column.name!r}: the schema has {declared}, but the table has the type {kind}; convert it"
        )
