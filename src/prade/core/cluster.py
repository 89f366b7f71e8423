"""A Dask cluster as the place where tasks run.

Dask is the extra `prade[cluster]` and is imported only here. Its workers are processes on any number of machines; they
must have the same versions (`prade.core.workers` makes sure), and see the folders that tasks name.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from prade.core.workers import WorkersError

EXAMPLE = "tcp://10.0.0.1:8786"
SECONDS = 10.0  # to wait for a scheduler, and then for a first worker
RETRIES = 2  # of a task that a worker failed at: its disk may be full, another's is not


@contextmanager
def cluster(address: str, seconds: float | None = None) -> Iterator[Executor]:
    """The executor of the cluster whose scheduler has this address, such as tcp://10.0.0.1:8786.

    A task whose worker is lost goes to another one. A cluster that cannot be used is a WorkersError.
    """
    patience = SECONDS if seconds is None else seconds
    client = _connected(address, patience)
    try:
        _need_workers(client, address, patience)
        yield client.get_executor(retries=RETRIES, pure=False)
    finally:
        client.close()


def _connected(address: str, seconds: float) -> Any:
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise WorkersError('a cluster needs Dask, which is not installed: run pip install "prade[cluster]"') from None
    try:
        _wait_for_port(*get_address_host_port(address, strict=True), seconds)
        return Client(address, timeout=seconds, set_as_default=False)  # type: ignore[no-untyped-call]
    except OSError as error:  # a TimeoutError is one
        raise WorkersError(
            f"no scheduler answers at {address} within {seconds:g} seconds: start one with `dask scheduler`, and give "
            f"the address that it prints, such as {EXAMPLE}"
        ) from error
    except (ValueError, NotImplementedError) as error:
        raise WorkersError(
            f"{address!r} is not the address of a scheduler ({error}): give one such as {EXAMPLE}"
        ) from error


def _wait_for_port(host: str, port: int, seconds: float) -> None:
    """Wait until something listens there; a Dask client that connects to nothing takes long to give up."""
    until = monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=max(until - monotonic(), 0.1)).close()
            return
        except OSError:
            if monotonic() > until:
                raise
            sleep(0.2)


def _need_workers(client: Any, address: str, seconds: float) -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise WorkersError(
            f"the cluster at {address} has no workers: start some with `dask worker {address}`, on machines that see "
            "the release folder"
        ) from error
