"""The options that say where work is done: `--workers` and `--cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from prade.cli.main import Command

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from prade.core.execution import Execution


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
