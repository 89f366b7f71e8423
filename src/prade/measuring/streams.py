"""Streams of private rows: every source delivers batches of Arrow arrays, and prade alone reads their cells.

A file's types follow its rows: one missing value turns whole numbers into floats. So every file is read with its own
types, each cell is coded by its own value (`prade.data.read.coding`), and only codes are combined. A cell that does not
fit its column counts as a value outside the domain.

A database declares its types, and rows cannot change them. How a column is delivered follows from its declared type
alone: natively where Arrow has the type, else as the engine's own text. A declared type that cannot fit the schema is
refused, whether or not the table has rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from prade.core.errors import DataError, closest
from prade.core.files import find_same_content, refuse_duplicates
from prade.data.declare.column import Column
from prade.data.read.csv import DEFAULT_FORMAT, CsvFormat
from prade.data.read.frames import DeclaredType
from prade.data.read.tables import column_names, file_format, read_table

ROWS_PER_BATCH = 2**16

Batch = Mapping[str, Any]  # the cells of each column, as Arrow arrays
Reader = Callable[[Sequence[str]], Iterator[Batch]]


@dataclass(frozen=True)
class Stream:
    """Private rows that can be read repeatedly: `read(names)` yields batches of the named columns.

    `declared` has the types that a database declares; of files and tables in memory it is None. `elsewhere` counts the
    rows where they are, if that is not here. Use it in a ``with`` block, which closes a session that was opened for it.
    """

    columns: tuple[str, ...]
    read: Reader
    declared: Mapping[str, DeclaredType] | None = None
    engine: str = "arrow"
    name: str = "the private table"
    lacking: Mapping[str, str] = field(default_factory=dict)  # columns that not all files have, and a file without
    elsewhere: Callable[[Any], Any] | None = None  # a tally into its counts
    close: Callable[[], None] = lambda: None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def need(self, names: Sequence[str]) -> None:
        """Raise a DataError that suggests similar names, unless the rows have all these columns."""
        for name in names:
            if name not in self.columns:
                hint = closest(name, self.columns) or "."
                raise DataError(
                    f"{self.lacking.get(name, self.name)} has no column {name!r}{hint} Rename or add it, "
                    "or make a plan whose schema and list of groups do not need it"
                )

    def need_fit(self, name: str, column: Column | None) -> None:
        """Raise a DataError if a declared type cannot fit the column, or a person's id, whatever the cells are."""
        declared = None if self.declared is None else self.declared[name]
        if declared is not None and (misfit := declared.misfit(column)) is not None:
            raise DataError(f"column {name!r}: {misfit}. Nothing was counted")


# ---------------------------------------------------------------------- tables in memory


def memory_stream(table: Any, rows_per_batch: int = ROWS_PER_BATCH) -> Stream:
    def read(wanted: Sequence[str]) -> Iterator[Batch]:
        for batch in read_table(table, wanted, guess=False).to_batches(max_chunksize=rows_per_batch):
            yield dict(zip(wanted, batch.columns, strict=True))

    return Stream(tuple(column_names(table)), read)


# ---------------------------------------------------------------------- files


def file_stream(files: Sequence[str], form: CsvFormat = DEFAULT_FORMAT, rows_per_batch: int = ROWS_PER_BATCH) -> Stream:
    """Files of one kind, one after the other, each with its own types; it has the columns that all files have."""
    kinds = [file_format(file) for file in files]
    headers = [kind.names(Path(file), form) for kind, file in zip(kinds, files, strict=True)]
    for file, header in zip(files, headers, strict=True):
        if len(set(header)) < len(header) or not all(header):
            raise DataError(f"{file} has a column without a name or two columns with the same name; rename the column")
    every, lacking = set(chain(*headers)), dict[str, str]()
    for file, header in zip(files, headers, strict=True):
        lacking |= dict.fromkeys(every.difference(header), file)
    columns = tuple(name for name in headers[0] if name not in lacking)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        refuse_duplicates(files, find_same_content)
        for kind, file in zip(kinds, files, strict=True):
            for cells in kind.batches(Path(file), names, form, rows_per_batch):
                yield dict(zip(names, cells, strict=True))

    return Stream(columns, read, lacking=lacking)


# ---------------------------------------------------------------------- databases

HIDDEN = "***"
MOST_OF_A_MESSAGE = 300  # letters
NO_SECRETS = ("user", "host", "port", "dbname", "database", "schema", "sslmode")  # options of an address


def without_secrets(message: str, address: str) -> str:
    """A driver's message on one line, with stars in place of everything in an address that may be secret.

    >>> without_secrets('user "ann", password "s%40ve" or "s@ve" is wrong', "postgres://ann:s%40ve@host/people?token=7")
    'user "ann", password "***" or "***" is wrong'
    """
    try:
        parts = urlsplit(address)
        texts = [parts.password or "", *(value for key, value in parse_qsl(parts.query) if key not in NO_SECRETS)]
    except ValueError:  # an address that cannot be taken apart
        return HIDDEN
    # a password that has not been escaped may end up in any part of the address
    userinfo = address.partition("://")[2].rpartition("@")[0]
    texts += [parts.query, userinfo.partition(":")[2]]
    spelled = {each for text in texts for each in (text, unquote(text), quote(text, safe="")) if each}
    for secret in sorted(spelled, key=len, reverse=True):
        message = message.replace(secret, HIDDEN)
    return " ".join(message.split())


def connected(name: str, address: str, connect: Callable[[], Any]) -> Any:
    """A connection. No row has been read yet, so a driver's message may be shown, without the address's secrets."""
    failure = ""
    try:
        return connect()
    except Exception as error:  # the beginning of the message: Spark appends its own stack
        words = without_secrets(str(error).split("\n\tat ")[0], address)[:MOST_OF_A_MESSAGE]
        failure = f"{type(error).__name__}: {words}"
    raise DataError(f"connecting to {name} failed: {failure}. No row was read; correct the address")


def table_named(name: str, tables: Iterable[Sequence[Any]]) -> tuple[str, str]:
    """The schema and table that a name means; each comes with whether its schema may be left out."""
    spelled = [((schema, table), [f"{schema}.{table}", *([table] if usual else [])]) for schema, table, usual in tables]
    meant = [table for table, names in spelled if name in names]
    if len(meant) > 1:
        raise DataError(f"{name!r} means {len(meant)} tables, because of dots in their names; give one of them a view")
    if not meant:
        raise no_table(name, [names[-1] for _, names in spelled])
    return meant[0]


def no_table(name: str, tables: Iterable[str], where: str = "the database") -> DataError:
    """The error for a table that does not exist, with the names of those that do."""
    known = sorted(map(str, tables))
    listed = f"it has {', '.join(known)}" if known else "it has none"
    return DataError(f"there is no table {name!r} in {where}{closest(name, known) or '; check its name'}: {listed}")
