"""Private sources: files, tables in memory and databases, all as streams of Arrow batches; and what is counted in them.

What to count follows from declarations alone. Messages name files, tables and columns, never a cell: an engine's own
message is dropped, because it may quote one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from prade.core.errors import DataError, PradeError
from prade.core.files import find_same_content, find_same_file, found_files, paths_of, refuse_duplicates
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public.table import PublicFiles, PublicTable
from prade.data.read.cells import LARGEST_WHOLE
from prade.data.read.csv import CsvFormat, format_of
from prade.data.read.frames import is_lazy, shared_memory
from prade.data.read.tables import NAMES, file_format
from prade.measuring.engines import duckdb_stream, postgres_stream, sqlite_stream
from prade.measuring.spark import open_session, spark_stream
from prade.measuring.streams import ROWS_PER_BATCH, Stream, file_stream, memory_stream
from prade.measuring.tally import Counts, Tally
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit, refuse_weak
from prade.queries.parts import Part
from prade.release.terms import saved_plan

Result = TypeVar("Result")
FILE_ENGINES = {"duckdb": "DuckDB", "sqlite": "SQLite"}
HELP = (
    f'give the path of a {NAMES} file (or a glob), "duckdb://file.db/table", "sqlite://file.db/table", '
    '"postgres://user@host/database/table", "spark://session/database.table", "sc://host:port/database.table", or a '
    "pandas, polars or pyarrow table; "
    "export the rows of any other database to parquet"
)


def open_source(source: Any, *, rows_per_batch: int = ROWS_PER_BATCH) -> Stream:
    """Private rows as a `Stream`: it reads only the names of columns, and their types where a database declares them.

    `source` is a path or glob (or a list of paths) of parquet or CSV files, a `prade.CsvFile`, a pandas, polars or
    pyarrow table, or the address of a table: ``"duckdb://file.db/table"``, ``"sqlite://file.db/table"``,
    ``"postgres://user@host/database/table"`` (``schema.table`` outside the default schema), or
    ``"spark://session/database.table"`` or ``"sc://host:port/database.table"`` (`prade.measuring.spark`). prade cannot
    look inside a view: you must make sure that its rows do not depend on each other. `rows_per_batch` changes no count.

    Types of files and of tables in memory follow their rows, and SQLite does not enforce its own, so no type is refused
    there: a cell that does not fit counts as a value outside its column's domain. CSV cells are text: if types were
    guessed, one person's cell could change how others' are read.

    >>> import pyarrow
    >>> with open_source(pyarrow.table({"AGE": [3, 70]})) as source:
    ...     source.name, source.columns
    ('the private table', ('AGE',))
    """
    if isinstance(source, str) and "://" in source:
        return _open_address(source, rows_per_batch)
    if (paths := paths_of(source)) is not None:
        return _open_files(paths, format_of(source), rows_per_batch)
    home = type(source).__module__.partition(".")[0]
    if home in ("ibis", "pyspark", "duckdb", "_duckdb"):
        raise DataError(f"a {type(source).__name__} of {home.strip('_')} is not a source; name its table: {HELP}")
    if is_lazy(source):  # its columns and types may follow from rows that it has yet to read
        raise DataError("a LazyFrame has no rows yet; give its .collect()")
    try:
        return guarded("opening the table in memory", lambda: memory_stream(source, rows_per_batch))
    except DataError as error:
        raise DataError(f"a {type(source).__name__} is not a source of rows; {HELP}") from error


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


def _open_files(paths: list[str], form: CsvFormat, rows: int) -> Stream:
    files = found_files(paths)
    if len({file_format(file).name for file in files}) > 1:
        raise DataError(f"{paths[0]}: files must all have one format, {NAMES}; {HELP}")
    refuse_duplicates(files, find_same_file)  # their contents are compared when rows are read
    name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return replace(guarded(f"opening {name}", partial(file_stream, files, form, rows)), name=name)


def _open_address(address: str, rows: int) -> Stream:
    """A table at an address, whose part after the last slash is the table's name."""
    scheme, _, rest = address.partition("://")
    database, _, table = rest.partition("?")[0].rpartition("/")
    query = "?" + rest.partition("?")[2] if "?" in rest else ""
    if not database or not table:
        raise DataError(f"the {scheme} address does not end in the name of a table; {HELP}")
    name = f"the {scheme} table {table!r}"  # in messages, because the address may contain a password
    if scheme in FILE_ENGINES and not Path(database).is_file():  # connecting would make an empty one
        raise DataError(f"there is no {FILE_ENGINES[scheme]} file {database}; {HELP}")
    with ExitStack() as session:
        if scheme in ("spark", "sc"):
            opened = partial(spark_stream, open_session(session, scheme, database, query[1:], name), table)
        elif scheme == "duckdb":
            opened = partial(duckdb_stream, database, table, rows)
        elif scheme == "sqlite":
            opened = partial(sqlite_stream, database, table, rows)
        elif scheme in ("postgres", "postgresql"):
            opened = partial(postgres_stream, name, address, f"postgresql://{database}{query}", table, rows)
        else:
            raise DataError(f"{scheme}:// is not a known kind of address; {HELP}")
        engine = {"sc": "spark", "postgresql": "postgres"}.get(scheme, scheme)
        return replace(guarded(f"opening {name}", opened), engine=engine, name=name, close=session.pop_all().close)


# ---------------------------------------------------------------------- what is counted


def planned_tally(source: Stream, plan: Plan) -> Tally:
    levels = [
        (level.by, [part for question in plan.questions if question.level == number for part in question.parts])
        for number, level in enumerate(plan.levels)
    ]
    return tally_of(source, plan.schema, levels, plan.groups, plan.unit)


def tally_of(
    source: Stream,
    schema: Schema,
    levels: Sequence[tuple[Sequence[str], Sequence[Part]]],
    groups: Groups,
    unit: Unit | None = None,
) -> Tally:
    """The tally of each level's groups and parts, once the source's columns and declared types fit: no row is read.

    Rows in no listed group are left out, at every level. With a `unit` that names a person id, rows without one are
    left out, and all parts count the same rows of a person.
    """
    try:
        listed = tuple(groups.keyed(source.columns, groups.level(by).number) for by, _ in levels)
    except DataError as error:
        raise error.within(source.name) from None
    tally = Tally(schema, listed, tuple(tuple(parts) for _, parts in levels), unit)
    source.need(tally.names)
    if tally.person is not None:
        source.need_fit(tally.person, None)
    for column in tally.columns:
        source.need_fit(column.name, column)
        whole = [abs(int(value)) for value in column.values] if column.value_type == "int" else [0]
        if source.declared is None and max(whole) >= LARGEST_WHOLE:
            raise DataError(
                f"column {column.name!r} lists whole numbers beyond 2**53, which files and tables in memory may "
                "store as floats that cannot distinguish them: list them as text, and store the column as text"
            )
    return tally


def counts_of(source: Stream, tally: Tally) -> list[list[Counts]]:
    """The number of rows in each cell of each part of each level, by group: arrays of shape [groups, cells]."""

    def tallied() -> Counts:
        if source.elsewhere is None:
            return tally.run(source.read(tally.names or source.columns[:1]))  # any column tells how many rows there are
        counts: Counts = source.elsewhere(tally)
        return counts

    counts = guarded(f"counting {source.name}", tallied)
    return [[np.ascontiguousarray(each[:, :-1]) for each in of_level] for of_level in tally.tables(counts)]


# ---------------------------------------------------------------------- a private table that is public too is refused
# Each private file is compared with each public one as `prade.core.files` describes. Tables in memory are compared by
# the memory that holds their cells, never by the cells themselves: two tables with equal cells in different memory
# pass, because a refusal must not depend on a private cell.


def refuse_public(private: Any, *public: Any) -> None:
    """Refuse a private table that is among the public tables or files, by identity or by content."""
    refuse_same_files(private, *public)
    refuse_same_contents(private, *public)


def refuse_same_files(private: Any, *public: Any) -> None:
    """Refuse a private table that is itself one of the public ones; None, and files that do not exist, are skipped.

    Files are compared by path, link and name, tables in memory by the memory of their cells: no cell is read, so this
    may come before anything is reserved.
    """
    if (pair := find_same_file(_sides(private, public))) is not None:
        raise _refusal(f"{pair[0]} is the public file {pair[1]} (by path, link or compression)")
    if isinstance(private, str) or paths_of(private) is not None:  # texts that are no paths are addresses of databases
        return
    for each in public:
        in_memory = each is not None and not isinstance(each, PublicFiles) and paths_of(each) is None
        if in_memory and (shared := shared_memory(private, each)):
            raise _refusal(shared)


def refuse_same_contents(private: Any, *public: Any) -> None:
    """Refuse private files with the same contents as one of the public files.

    This reads the private rows, so in a run of a plan from outside it belongs after the reservation. The public files
    themselves are compared, never hashes that a plan brings, because these could be guesses.
    """
    if (pair := find_same_content(_sides(private, public))) is not None:
        raise _refusal(f"{pair[0]} has the same content as the public file {pair[1]}")


def _sides(private: Any, public: Sequence[Any]) -> list[list[str]]:
    """The private files, and the public ones that exist; none of either if one of them is not in files."""
    paths = paths_of(private)
    named = [each.files if isinstance(each, PublicFiles) else paths_of(each) or () for each in public]
    files = [file for each in named for file in each if Path(file).is_file()]
    return [found_files(paths), files] if paths is not None and files else [[], []]


def _refusal(what: str) -> DataError:
    return DataError(
        f"the private table is also given as the public table: {what}. Rows of the public table reappear among the "
        "synthetic rows: give a table that is already public, such as last year's release or another region's"
    )


# ---------------------------------------------------------------------- before a run plans: later would be too late


def refuse_early(
    budget: Budget, private: Any, table: PublicTable, folder: str | PathLike[str], weak_protection: bool
) -> None:
    """Refuse what `measure` would refuse before anything reads the public table, which may be the private one.

    The user names both tables, and a plan made from private rows would tell of them, so contents are compared before
    anything is reserved. A run that continues with a kept plan does not rehearse: `measure` is in time.
    """
    if saved_plan(folder) is None:
        refuse_weak(budget, weak_protection)
        refuse_public(private, table.source)


def refuse_unfit(task: Task, private: Any, folder: str | PathLike[str]) -> None:
    """Refuse a private table that lacks a column, or declares a type that cannot fit, before a long rehearsal.

    No row is read. A run that continues with a kept plan does not rehearse.
    """
    if saved_plan(folder) is None:
        with open_source(private) as source:
            planned_tally(source, Plan.simplest(task))
