"""The option `--public` of commands that take a plan or a release; they say which public files they use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from prade.cli.main import FILE, Command, remark
from prade.core.errors import DataError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from prade.core.execution import Execution
    from prade.data.public.table import PublicFiles, PublicTable
    from prade.planning.plan import Plan

public_again = click.option(
    "--public",
    multiple=True,
    type=FILE,
    help="A public file of the plan that has moved, lies outside the plan's folder, or has no hash in the plan: look "
    "at it first. May be given several times.",
)


def public_files(paths: tuple[str, ...], weight: str | None = None) -> PublicFiles:
    """Return the public files at these paths, which must exist."""
    from prade.data.public.table import PublicFiles

    for path in paths:
        if not Path(path).is_file():
            raise DataError(f"there is no public file {path}; check the path")
    return PublicFiles.at(paths, weight)


def named_files(paths: tuple[str, ...]) -> PublicFiles | None:
    """Return the public files that the option names; None if it names none."""
    return public_files(paths) if paths else None


def public_table(plan: Plan, paths: tuple[str, ...]) -> tuple[PublicTable, list[str]]:
    """Return the public table in the files that the option or the plan names, and their paths, after saying them."""
    from prade.planning.plan import public_of

    table = public_of(plan, named_files(paths))
    return table, said_paths(table.files)


def said_paths(files: PublicFiles | None) -> list[str]:
    """Say which public files a command uses, and return their paths."""
    if files is None:
        return []
    remark(f"Public files: {', '.join(files.files)}")
    return list(files.files)


@dataclass(frozen=True)
class Where:
    """What the options say."""

    workers: int | None = None
    cluster: str | None = None

    @contextmanager
    def execution(self) -> Iterator[Execution]:
        """The execution that the options ask for, with a progress bar, for as long as the block lasts."""
        from prade.core.execution import Execution, cores, progress_bar

        with _executor(self) as executor, progress_bar() as progress:
            yield Execution(1 if self.workers == 1 else cores(), executor, progress)

    def options(self) -> list[str]:
        """The same options for another command."""
        workers = [] if self.workers is None else ["--workers", str(self.workers)]
        return [*workers, *([] if self.cluster is None else ["--cluster", self.cluster])]


THREADS = Where()


@contextmanager
def _executor(where: Where) -> Iterator[Executor | None]:
    if where.cluster is not None:
        from prade.core.execution import cluster

        with cluster(where.cluster) as executor:
            yield executor
    elif where.workers is not None and where.workers > 1:
        from prade.core.execution import processes

        with processes(where.workers) as executor:
            yield executor
    else:
        yield None


def worker_options(command: Command) -> Command:
    """Add the options, and give the command what they say as `where`."""

    @wraps(command)
    def with_where(workers: int | None, cluster: str | None, **arguments: Any) -> Any:
        if workers is not None and cluster is not None:
            raise click.UsageError("--workers starts processes on this machine, and --cluster uses others: give one")
        return command(where=Where(workers, cluster), **arguments)

    options: list[Callable[[Command], Command]] = [
        click.option(
            "--workers",
            type=click.IntRange(1),
            metavar="N",
            help="Work in N processes of this machine, as in --workers 8. [default: threads, one for each core]",
        ),
        click.option(
            "--cluster",
            metavar="ADDRESS",
            help="Work on a Dask cluster, as in --cluster tcp://10.0.0.1:8786; its workers must see the same folders.",
        ),
    ]
    decorated = cast(Command, with_where)
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
