"""A Dask cluster as the place where tasks run.

Dask is the extra `prade[cluster]` and is imported only here. Its workers are processes on any number of machines; they
must have the same versions (`prade.core.workers` makes sure), and see the folders that tasks name.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from prade.core.workers import WorkersError

SECONDS = 20.0  # to wait for a scheduler, and then for a first worker
RETRIES = 2  # of a task that a worker failed at: its disk may be full, another's is not


@contextmanager
def cluster(address: str, seconds: float = SECONDS) -> Iterator[Executor]:
    """The executor of the cluster whose scheduler has this address, such as tcp://10.0.0.1:8786.

    A task whose worker is lost goes to another one. A cluster that cannot be used is a WorkersError.
    """
    client = _connected(address, seconds)
    try:
        _need_workers(client, address, seconds)
        yield client.get_executor(retries=RETRIES, pure=False)
    finally:
        client.close()


def _connected(address: str, seconds: float) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise WorkersError('a cluster needs Dask, which is not installed: run pip install "prade[cluster]"') from None
    try:
        return Client(address, timeout=seconds, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise WorkersError(
            f"no scheduler answers at {address} within {seconds:g} seconds: start one with `dask scheduler`, and give "
            "the address that it prints, such as tcp://10.0.0.1:8786"
        ) from error
    except ValueError as error:
        raise WorkersError(
            f"{address!r} is not the address of a scheduler ({error}): give one such as tcp://10.0.0.1:8786"
        ) from error


def _need_workers(client: Any, address: str, seconds: float) -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise WorkersError(
            f"the cluster at {address} has no workers: start some with `dask worker {address}`, on machines that see "
            "the release folder"
        ) from error
