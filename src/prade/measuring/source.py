"""Private sources: databases, whose engines count the rows, and files or tables in memory, coded while being read.

This module reads no rows; `prade.measuring.counts` asks an engine for counts. The rows of a file or of a table in
memory are streamed through the codec (`prade.measuring.streams`) into an embedded DuckDB, which may be given a memory
limit and a folder to spill to. Messages name files, tables and columns, never a cell: an engine's own message is
dropped, because it may quote a cell.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from prade.core.duplicate_files import refuse_duplicates
from prade.core.errors import DataError, PradeError
from prade.core.words import closest
from prade.data.csv_format import CsvFormat, format_of
from prade.measuring.connections import connected, no_table, table_in
from prade.measuring.dialects import Dialect
from prade.measuring.locked_folders import spill_folder
from prade.measuring.public_overlap import found_files, paths_of
from prade.measuring.spark import PORTS, open_spark, spark_table
from prade.measuring.sqlite_rows import sqlite_expression, sqlite_file, sqlite_tables
from prade.measuring.streams import Stream, csv_stream, parquet_stream, table_stream

if TYPE_CHECKING:
    import ibis.expr.types as ir

Result = TypeVar("Result")
ENDINGS = (".parquet", ".csv", ".csv.gz")
FILE_ENGINES = {"duckdb": "DuckDB", "sqlite": "SQLite"}
HELP = (
    'give the path of a parquet or CSV file (or a glob), "duckdb://file.db/table", an Ibis address that ends in the '
    'name of the table ("postgres://user@host/database/table"), "spark://host:port/database.table", a pandas, polars '
    "or pyarrow table, or an Ibis table"
)


class Source:
    """Private rows: either `table`, the Ibis expression of a database's table, or `stream`, for files and memory.

    Made by `open_source`. `connection` is the engine that counts. Close the source, or use it in a ``with`` block, to
    release the engine and its spill folder. A connection that the caller made stays open.
    """

    def __init__(
        self,
        rows: ir.Table | Stream,
        connection: Any,
        name: str,
        release: Callable[[], None] | None = None,
    ) -> None:
        self.stream = rows if isinstance(rows, Stream) else None
        self.table: Any = None if isinstance(rows, Stream) else rows
        if self.table is not None:
            _refuse_dependent_rows(self.table)
            if connection.name == "sqlite":
                raise DataError("SQLite does not enforce types, so its rows must be streamed: use open_source(table)")
        self.connection = connection
        self.name = name
        self.origin: Any = rows  # what the source was made from; `prade.measuring.public_overlap` compares it
        self._finalizer = weakref.finalize(self, release) if release is not None else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return self.stream.columns if self.stream is not None else tuple(self.table.columns)

    @property
    def engine(self) -> str:
        """The name of the engine that counts, such as "duckdb" or "postgres"."""
        return str(self.connection.name)

    @property
    def dialect(self) -> Dialect:
        """How the engine writes expressions."""
        return Dialect(self.engine, self.supports)

    def need(self, names: Sequence[str]) -> None:
        """Raise a DataError that suggests similar names, unless the table has all these columns."""
        for name in names:
            if name in self.columns:
                continue
            if self.stream is not None and name in self.stream.lacking:
                raise DataError(
                    f"{self.stream.lacking[name]} lacks the column {name!r}, which another file has: add it"
                )
            hint = closest(name, self.columns) or "."
            raise DataError(
                f"{self.name} has no column {name!r}{hint} Rename or add it, or make a plan whose schema and list of "
                "groups do not need it"
            )

    def column(self, name: str) -> ir.Value:
        """The cells of one column of a database's table."""
        cells = self.table[name]
        # Ibis treats an enumeration as text, but PostgreSQL cannot compare it with a text that is not in it.
        return cells + "" if self.engine == "postgres" and cells.type().is_string() else cells

    def supports(self, operation: Any) -> bool:
        """Whether the engine knows an Ibis operation."""
        return bool(self.connection.has_operation(operation))

    def close(self) -> None:
        """Close the engine, if it was opened here, and remove its spill folder."""
        if self._finalizer is not None:
            self._finalizer()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Source({self.name!r}, engine={self.engine!r}, {len(self.columns)} columns)"


def open_source(
    source: Any,
    *,
    memory_limit: str | None = None,
    temp_directory: str | PathLike[str] | None = None,
    threads: int | None = None,
) -> Source:
    """Private rows as a `Source`: it reads only the names of columns, and their types where a database declares them.

    `source` is a path or glob (or a list of paths) of parquet or CSV files, ``"duckdb://file.db/table"``, any address
    that Ibis connects to, ending in the name of the table (``schema.table`` outside the default schema), a pandas,
    polars or pyarrow table, or an Ibis table. `memory_limit`, `temp_directory` and `threads` are settings of the
    embedded DuckDB and are refused for other engines.

    Rows that do not fit into `memory_limit` (such as ``"1GiB"``; None: four fifths of the machine's memory) are spilled
    to disk. The limit applies to the engine's rows; the process takes a few hundred MiB more. Spilled rows are private.
    They go to a folder ``prade-spill-...`` in the system's temporary folder, which only this user can read and which is
    removed at the end. The user's next run on this machine removes what a killed run left behind (except on Windows).
    If you name a `temp_directory`, the engine removes its files at the end, and you must remove what a killed run
    leaves.

    Each file is read with its own types, and each cell is coded by its own value: no other file or row affects it. The
    types of files and of tables in memory follow their rows, so no type is refused there; a cell that does not fit
    counts as a value outside its column's domain. SQLite does not enforce its types, so its rows are treated alike.

    A CSV file is UTF-8 with commas, or has the format that a `prade.CsvFile` declares. It begins with a header, and
    every line after it is one record, whatever bytes it has (`prade.measuring.csv_records`): no cell can change how the
    records of others are read. All cells are text, because one person's cell could change what is guessed about others.

    An Ibis table may select columns and rows and compute cells row by row. Anything through which one row could change
    how others are counted (limits, samples, aggregates, windows, joins, SQL) is refused. prade cannot look inside a
    view of the database: you must make sure that its rows do not depend on each other.

    >>> import pyarrow
    >>> with open_source(pyarrow.table({"AGE": [3, 70]})) as source:
    ...     source
    Source('a table in memory', engine='duckdb', 1 columns)
    """
    if isinstance(source, Source):
        return source
    settings = {"memory_limit": memory_limit, "temp_directory": temp_directory, "threads": threads}
    opened = _opened(source, settings)
    opened.origin = source
    return opened


def _opened(source: Any, settings: dict[str, Any]) -> Source:
    if _is_ibis_table(source):
        return _open_ibis(source, settings)
    if isinstance(source, str) and "://" in source:
        return _open_address(source, settings)
    paths = paths_of(source)
    return _open_memory(source, settings) if paths is None else _open_files(paths, format_of(source), settings)


def guarded(doing: str, task: Callable[[], Result]) -> Result:
    """The task's result. An engine's error becomes a DataError without the engine's message; warnings are dropped.

    The new error is raised once the old one is gone, so that not even its context leads back to the message.
    """
    failure = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return task()
    except PradeError:
        raise
    except Exception as error:
        failure = type(error).__name__
    raise DataError(
        f"{doing} failed in the engine ({failure}); its own message is not shown because it may quote private rows: "
        "check that the source is reachable and complete, that its column types fit the schema, and that there is "
        "enough memory"
    )


# ---------------------------------------------------------------------- files and tables in memory


def _open_files(paths: list[str], form: CsvFormat, settings: dict[str, Any]) -> Source:
    files = found_files(paths)
    endings = {next((ending for ending in ENDINGS if file.lower().endswith(ending)), "") for file in files}
    if (len(endings) > 1 and endings != {".csv", ".csv.gz"}) or "" in endings:
        raise DataError(f"{paths[0]}: files must be all parquet or all CSV ({', '.join(ENDINGS)}); {HELP}")
    refuse_duplicates(files)
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    text = endings != {".parquet"}
    stream = guarded(f"opening {name}", lambda: csv_stream(files, form) if text else parquet_stream(files))
    return _streamed(stream, name, settings)


def _streamed(stream: Stream, name: str, settings: dict[str, Any]) -> Source:
    connection, release = _embedded(settings)
    return Source(stream, connection, name, release)


def _open_memory(source: Any, settings: dict[str, Any]) -> Source:
    from prade.data.tables import column_names, read_table

    if type(source).__name__ == "LazyFrame":
        source = guarded("collecting the LazyFrame", source.collect)
    try:
        names = column_names(source)
    except DataError as error:
        raise DataError(f"a {type(source).__name__} is not a source of rows; {HELP}") from error

    table = guarded("reading the table in memory", lambda: read_table(source, names, guess=False))
    return _streamed(table_stream(table), "a table in memory", settings)


def _embedded(settings: dict[str, Any], database: str = ":memory:", **more: Any) -> tuple[Any, Callable[[], None]]:
    """An embedded DuckDB, and a function that closes it. It spills to a private folder, never to the current one."""
    import ibis

    folders = ExitStack()
    spill = settings["temp_directory"]
    options = {key: value for key, value in settings.items() if value is not None} | more
    connection: Any = None

    def release() -> None:
        if connection is not None:
            connection.disconnect()
        folders.close()

    try:
        options["temp_directory"] = str(folders.enter_context(spill_folder()) if spill is None else spill)
        connection = ibis.duckdb.connect(database, **options)
        with suppress(Exception):  # a notebook without widgets has no progress bar and rejects the setting
            connection.raw_sql("SET enable_progress_bar = false")
    except Exception as error:  # no row has been read yet, so this message is about settings and files
        release()
        raise DataError(f"the embedded DuckDB does not start: {str(error).splitlines()[0]}") from None
    return connection, release


# ---------------------------------------------------------------------- databases


def _open_address(address: str, settings: dict[str, Any]) -> Source:
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
    if scheme == "sqlite":
        stream = guarded(f"opening {name}", lambda: sqlite_file(database, table))
        if not stream.columns:
            raise no_table(table, guarded(f"opening {name}", lambda: sqlite_tables(database)), database)
        return _streamed(stream, name, settings)
    if scheme in PORTS:
        _refuse_settings(settings, name)
        connection, release = open_spark(scheme, database, query[1:], name)
        return _source(lambda: spark_table(connection, table), connection, name, release)
    if scheme == "duckdb":
        connection, release = _embedded(settings, database, read_only=True)
    else:
        import ibis

        if scheme not in _engines():
            raise DataError(f"connecting to {name} failed: {scheme}:// is not a known kind of address; {HELP}")
        _refuse_settings(settings, name)
        connection = connected(name, address, lambda: ibis.connect(f"{scheme}://{database}{query}"))
        release = connection.disconnect
    return _source(lambda: table_in(connection, table), connection, name, release)


def _open_ibis(table: Any, settings: dict[str, Any]) -> Source:
    """An Ibis table, counted by its own engine; SQLite's rows are streamed, which costs it no more than counting."""
    _refuse_dependent_rows(table)
    connection = guarded("finding the engine of the Ibis table", lambda: table.get_backend())
    if connection.name == "sqlite":
        return _streamed(sqlite_expression(table, connection), "the Ibis table", settings)
    _refuse_settings(settings, "an Ibis table")
    return Source(table, connection, "the Ibis table")


def _engines() -> set[str]:
    """The kinds of addresses that Ibis connects to."""
    return {each.name for each in entry_points(group="ibis.backends")} | {"postgresql"}


def _source(find: Callable[[], Any], connection: Any, name: str, release: Callable[[], None]) -> Source:
    """The source for the table that `find` returns; if that fails, the connection is closed."""
    try:
        return Source(guarded(f"opening {name}", find), connection, name, release)
    except BaseException:
        release()
        raise


def _is_ibis_table(source: Any) -> bool:
    return type(source).__module__.startswith("ibis.") and hasattr(source, "get_backend") and hasattr(source, "schema")


def _refuse_dependent_rows(table: Any) -> None:
    """Refuse an Ibis expression in which a row could change how another is counted, or be counted more than once."""
    import ibis.expr.operations as ops

    if table.op().find(ops.InMemoryTable):
        raise DataError(
            "the Ibis table is made from a table in memory, whose types follow its rows: give that table itself"
        )
    row_by_row = (
        ops.DatabaseTable,
        ops.Project,
        ops.Filter,
        ops.Sort,
        ops.DropColumns,
        ops.DropNull,
        ops.FillNull,
        ops.SelfReference,
    )
    across_rows = (ops.Reduction, ops.Analytic, ops.WindowFunction, ops.Subquery, ops.Unnest, ops.RowID)
    unknown = (ops.Impure, ops.ElementWiseVectorizedUDF)  # random values, and functions that may see several rows
    for node in table.op().find(ops.Node):
        relation = isinstance(node, ops.Relation) and not isinstance(node, row_by_row)
        if relation or isinstance(node, across_rows + unknown):
            raise DataError(
                f"the Ibis table contains the operation {type(node).__name__}, through which a row could change how "
                "others are counted or be counted several times; expected columns and rows selected or computed row by "
                "row. If you know that a person changes only their own rows, make it a table or a view of the database "
                "and give that"
            )


def _refuse_settings(settings: dict[str, Any], name: str) -> None:
    given = [key for key, value in settings.items() if value is not None]
    if given:
        raise DataError(
            f"{given[0]} is a setting of the embedded DuckDB, but {name} is counted by its own engine; leave it out"
        )
