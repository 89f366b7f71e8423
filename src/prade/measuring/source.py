"""Private sources: files, tables in memory and databases, all as streams of Arrow batches; and what is counted in them.

What to count follows from declarations alone. Messages name files, tables and columns, never a cell: an engine's own
message is dropped, because it may quote one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from prade.core.errors import DataError, PradeError
from prade.core.files import find_same_file, found_files, paths_of, refuse_duplicates
from prade.data.declare.column import Column
from prade.data.declare.groups import Groups
from prade.data.read.cells import LARGEST_WHOLE
from prade.data.read.csv import CsvFormat, format_of
from prade.data.read.frames import is_lazy
from prade.measuring.engines import duckdb_stream, postgres_stream, sqlite_stream
from prade.measuring.person_bound import MEMORY
from prade.measuring.spark import PORTS, Session, SparkTable, open_session
from prade.measuring.streams import (
    ROWS_PER_BATCH,
    Stream,
    csv_stream,
    memory_stream,
    parquet_stream,
)
from prade.measuring.tally import Counts, Tally
from prade.planning.plan import Plan
from prade.privacy.protection import Unit
from prade.queries.parts import Part

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

Result = TypeVar("Result")
BYTES_OF_A_ROW = 64  # of a CSV file, roughly
ENDINGS = (".parquet", ".csv", ".csv.gz")
FILE_ENGINES = {"duckdb": "DuckDB", "sqlite": "SQLite"}
HELP = (
    'give the path of a parquet or CSV file (or a glob), "duckdb://file.db/table", "sqlite://file.db/table", '
    '"postgres://user@host/database/table", "spark://host:port/database.table", or a pandas, polars or pyarrow table; '
    "export the rows of any other database to parquet"
)
SIZES = {"": 1, "B": 1, **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)}}
SIZES |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", start=1)}


@dataclass(frozen=True)
class Source:
    """Private rows: a `stream` that is counted here, unless `elsewhere` counts it where the rows are.

    Made by `open_source`. Use it in a ``with`` block, which ends an engine that was started for it.
    """

    stream: Stream
    engine: str
    name: str
    memory: int = MEMORY
    elsewhere: Callable[[Tally], Counts] | None = None
    close: Callable[[], None] = lambda: None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return self.stream.columns

    def tallied(self, tally: Tally) -> Counts:
        """Read all rows and count them."""
        if self.elsewhere is not None:
            return self.elsewhere(tally)
        names = tally.names or self.columns[:1]  # any column tells how many rows there are
        return tally.run(self.stream.read(names), self.memory)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(source: Any, *, memory_limit: str | None = None, rows_per_batch: int = ROWS_PER_BATCH) -> Source:
    """Private rows as a `Source`: it reads only the names of columns, and their types where a database declares them.

    `source` is a path or glob (or a list of paths) of parquet or CSV files, a `prade.CsvFile`, a pandas, polars or
    pyarrow table, or the address of a table: ``"duckdb://file.db/table"``, ``"sqlite://file.db/table"``,
    ``"postgres://user@host/database/table"`` (``schema.table`` outside the default schema) or one of Spark
    (`prade.measuring.spark`). prade cannot look inside a view: you must make sure that its rows do not depend on each
    other.

    Where a bound on a person's rows is enforced, rows in codes that do not fit into `memory_limit` (such as ``"1GiB"``;
    None: 512 MiB) go to a private folder on disk until all of a person's are there. `rows_per_batch` changes no count.

    Types of files and of tables in memory follow their rows, and SQLite does not enforce its own, so no type is refused
    there: a cell that does not fit counts as a value outside its column's domain. CSV cells are text: if types were
    guessed, one person's cell could change how others' are read.

    >>> import pyarrow
    >>> with open_source(pyarrow.table({"AGE": [3, 70]})) as source:
    ...     source.name, source.columns
    ('the private table', ('AGE',))
    """
    memory = MEMORY if memory_limit is None else _bytes_in(memory_limit)
    if isinstance(source, str) and "://" in source:
        return _open_address(source, memory, memory_limit, rows_per_batch)
    if (paths := paths_of(source)) is not None:
        return _open_files(paths, format_of(source), memory, rows_per_batch)
    home = type(source).__module__.partition(".")[0]
    if home in ("ibis", "pyspark", "duckdb", "_duckdb"):
        raise DataError(f"a {type(source).__name__} of {home.strip('_')} is not a source; name its table: {HELP}")
    if is_lazy(source):  # its columns and types may follow from rows that it has yet to read
        raise DataError("a LazyFrame has no rows yet; give its .collect()")
    try:
        stream = guarded("opening the table in memory", lambda: memory_stream(source, rows_per_batch))
    except DataError as error:
        raise DataError(f"a {type(source).__name__} is not a source of rows; {HELP}") from error
    return Source(stream, "arrow", "the private table", memory)


class EngineError(DataError):
    """An engine failed while it read rows; `kind` is the name of its error's class."""

    kind: str


def guarded(doing: str, task: Callable[[], Result]) -> Result:
    """The task's result. An engine's error becomes one without the engine's message; warnings are dropped.

    The new error is raised once the old one is gone, so that not even its context leads back to the message.
    """
    kind = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return task()
    except PradeError:
        raise
    except Exception as error:
        kind = type(error).__name__
    failure = EngineError(
        f"{doing} failed in the engine ({kind}); its own message is not shown because it may quote private rows: check "
        "that the source is reachable and complete, that its column types fit the schema, and that there is enough "
        "memory"
    )
    failure.kind = kind
    raise failure


def _open_files(paths: list[str], form: CsvFormat, memory: int, rows: int) -> Source:
    files = found_files(paths)
    endings = {next((ending for ending in ENDINGS if file.lower().endswith(ending)), "") for file in files}
    if (len(endings) > 1 and endings != {".csv", ".csv.gz"}) or "" in endings:
        raise DataError(f"{paths[0]}: files must be all parquet or all CSV ({', '.join(ENDINGS)}); {HELP}")
    refuse_duplicates(files, find_same_file)  # their contents are compared when rows are read
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    text = endings != {".parquet"}
    read = partial(csv_stream, files, form, rows * BYTES_OF_A_ROW) if text else partial(parquet_stream, files, rows)
    stream = guarded(f"opening {name}", read)
    return Source(stream, "arrow", name, memory)


def _open_address(address: str, memory: int, memory_limit: str | None, rows: int) -> Source:
    """A table at an address, whose part after the last slash is the table's name."""
    scheme, _, rest = address.partition("://")
    database, _, table = rest.partition("?")[0].rpartition("/")
    query = "?" + rest.partition("?")[2] if "?" in rest else ""
    if not database or not table:
        raise DataError(f"the {scheme} address does not end in the name of a table; {HELP}")
    # The address may contain a password, so messages name only the scheme and the table.
    name = f"the {scheme} table {table!r}"
    if scheme in FILE_ENGINES and not Path(database).is_file():  # connecting would make an empty one
        raise DataError(f"there is no {FILE_ENGINES[scheme]} file {database}; {HELP}")
    if scheme in PORTS:
        if memory_limit is not None:
            raise DataError(f"memory_limit is for rows that are counted here, but {name} is counted by Spark")
        return _open_spark(open_session(scheme, database, query[1:], name), table, name)
    if scheme == "duckdb":
        stream = guarded(f"opening {name}", lambda: duckdb_stream(database, table, memory_limit, rows))
    elif scheme == "sqlite":
        stream = guarded(f"opening {name}", lambda: sqlite_stream(database, table, rows))
    elif scheme in ("postgres", "postgresql"):
        where = f"postgresql://{database}{query}"
        stream = guarded(f"opening {name}", lambda: postgres_stream(name, address, where, table, rows))
    else:
        raise DataError(f"{scheme}:// is not a known kind of address; {HELP}")
    return Source(stream, "postgres" if scheme == "postgresql" else scheme, name, memory)


def _open_spark(opened: Session, table: str, name: str) -> Source:
    session, end = opened
    try:
        rows = guarded(f"opening {name}", lambda: SparkTable(session, table))
    except BaseException:
        end()
        raise
    return Source(rows.stream, "spark", name, elsewhere=rows.tallied, close=end)


def _bytes_in(size: str) -> int:
    """A size such as "1GiB", in bytes."""
    parts = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", size)
    if parts is None or parts[2].upper() not in SIZES:
        raise DataError(f"memory_limit is {size!r}; give a size such as 500MB or 1GiB")
    return int(float(parts[1]) * SIZES[parts[2].upper()])


# ---------------------------------------------------------------------- what is counted


def count(
    source: Source,
    schema: Schema,
    parts: Sequence[Part],
    groups: Any = None,
    unit: Unit | None = None,
    by: Sequence[str] | None = None,
) -> list[Counts]:
    """The number of rows in each cell of each part, by group: one array of shape [groups, cells] per part.

    `groups` is the public list of groups (None: all rows are one group); `by` names the columns of that list whose
    groups are counted (None: all). Rows in no listed group are left out, at every level. With a `unit` that names a
    person id, rows without one are left out, and all parts count the same rows of a person.

    >>> import pyarrow
    >>> from prade import Column, Schema
    >>> from prade.queries.parts import Marginal
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> with open_source(pyarrow.table({"AGE": [3, 70, 80], "TOWN": ["a", "b", "elsewhere"]})) as source:
    ...     count(source, schema, [Marginal.of(schema, ["AGE"])], {"TOWN": ["a", "b", "c"]})
    [array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 0]])]
    """
    listed = Groups.of(groups)
    (counts,) = Counting.of(source, schema, [(listed.names if by is None else by, parts)], listed, unit).run()
    return counts


@dataclass(frozen=True)
class Counting:
    """What to count in the rows of a source: for each level its groups and its parts."""

    source: Source
    tally: Tally

    @classmethod
    def of_plan(cls, source: Source, plan: Plan) -> Counting:
        """What a plan asks."""
        levels = [
            (level.by, [part for question in plan.questions if question.level == number for part in question.parts])
            for number, level in enumerate(plan.levels)
        ]
        return cls.of(source, plan.schema, levels, plan.groups, plan.unit)

    @classmethod
    def of(
        cls,
        source: Source,
        schema: Schema,
        levels: Sequence[tuple[Sequence[str], Sequence[Part]]],
        groups: Any = None,
        unit: Unit | None = None,
    ) -> Counting:
        """Check everything that follows from declarations: the parts, the source's columns and their declared types."""
        everything = Groups.of(groups)
        try:
            listed = tuple(everything.keyed(source.columns, everything.level(by).number) for by, _ in levels)
        except DataError as error:
            raise error.within(source.name) from None
        tally = Tally(schema, listed, tuple(tuple(parts) for _, parts in levels), unit)
        tally.check()
        source.stream.need(tally.names, source.name)
        if tally.person is not None:
            source.stream.need_fit(tally.person, None)
        for column in tally.columns:
            source.stream.need_fit(column.name, column)
            if source.stream.declared is None and column.value_type == "int" and _beyond_doubles(column):
                raise DataError(
                    f"column {column.name!r} lists whole numbers beyond 2**53, which files and tables in memory may "
                    "store as floats that cannot distinguish them: list them as text, and store the column as text"
                )
        return cls(source, tally)

    def run(self) -> list[list[Counts]]:
        """The counts of each level's parts."""
        counts = guarded(f"counting {self.source.name}", lambda: self.source.tallied(self.tally))
        tables = self.tally.tables(counts)
        return [[np.ascontiguousarray(each[:, :-1]) for each in of_level] for of_level in tables]


def _beyond_doubles(column: Column) -> bool:
    return max(abs(int(value)) for value in column.values) >= LARGEST_WHOLE
