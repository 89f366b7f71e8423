"""A progress bar for long work: on a terminal only, and only of public things (how many groups, how many seconds)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float, float], None]


@contextmanager
def progress_bar(*, shown: bool | None = None) -> Iterator[Progress]:
    """What `tune`, `measure` and `synthesize` take as `progress`: one bar for each kind of work that is told of.

    `shown` is whether there is a bar at all; None: if the standard error output is a terminal.

    >>> with progress_bar() as progress:
    ...     progress("estimating", 1, 2)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    wanted = console.is_terminal if shown is None else shown
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=not wanted) as bars:

        def progress(what: str, done: float, number: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=number)
            bars.update(tasks[what], completed=min(done, number), total=number)

        yield progress
