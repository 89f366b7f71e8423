"""The options that say where work is done: `--workers`, `--cluster` and `--cuda`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from prade.cli.main import Command
from prade.core.threads import cores

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True)
class Where:
    """What the options say; `arguments` gives those of the functions that do the work."""

    workers: int | None = None
    cluster: str | None = None

    @contextmanager
    def arguments(self) -> Iterator[dict[str, Any]]:
        """The arguments `threads` and `executor`, for as long as the block lasts."""
        threads = 1 if self.workers == 1 else None
        with _executor(self) as executor:
            yield {"threads": threads, "executor": executor}

    def rehearsing(self, *, cuda: bool) -> Where:
        """The same for a command that rehearses: an accelerator is kept busy by many processes, one for each core.

        There are as many as it has memory for, and no more than keep it busy.
        """
        if not cuda or self != THREADS:
            return self
        from prade.estimating.cuda import most_processes

        return replace(self, workers=min(cores(), most_processes()))

    def options(self) -> list[str]:
        """The same options for another command."""
        workers = [] if self.workers is None else ["--workers", str(self.workers)]
        return [*workers, *([] if self.cluster is None else ["--cluster", self.cluster])]


THREADS = Where()

cuda_option = click.option(
    "--cuda",
    is_flag=True,
    help="Use this machine's NVIDIA accelerator for rehearsals and estimates. Rehearsals then have one process for "
    "each core, at most 16, unless --workers or --cluster says otherwise.",
)


@contextmanager
def _executor(where: Where) -> Iterator[Executor | None]:
    if where.cluster is not None:
        from prade.core.cluster import cluster

        with cluster(where.cluster) as executor:
            yield executor
    elif where.workers is not None and where.workers > 1:
        from prade.core.local_processes import processes

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
