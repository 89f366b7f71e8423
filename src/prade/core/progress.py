"""A progress bar for long work, on terminals only. It shows public facts only: numbers of groups, seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float, float], None]


@contextmanager
def progress_bar(*, shown: bool | None = None) -> Iterator[Progress]:
    """A callback to pass as `progress`; it shows one bar for each task that is reported to it.

    `shown` says whether to show the bars; by default they appear if standard error is a terminal.

    >>> with progress_bar() as progress:
    ...     progress("estimating", 1, 2)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    visible = console.is_terminal if shown is None else shown
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=not visible) as bars:

        def progress(task: str, done: float, total: float) -> None:
            if task not in tasks:
                tasks[task] = bars.add_task(task, total=total)
            bars.update(tasks[task], completed=min(done, total), total=total)

        yield progress
