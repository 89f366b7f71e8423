"""The hash chain of a ledger's events: no event can be changed without changing all later ones.

    hash(n) = SHA-256 of the JSON list [n, hash(n - 1), content of event n]        hash(0) is the empty string

The last number and hash, the *head*, stand for everything before them. A release keeps a copy of the head. A ledger
that does not have that event, or has a different one with that number, is an old copy or has lost its last events.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prade.core.errors import DataError

Event = Mapping[str, Any]
FIRST = "made"  # the type of the first event, which contains the ledger's identity


@dataclass(frozen=True)
class Head:
    """The end of a ledger's chain at some moment: the ledger's identity, the last event's number and its hash."""

    ledger: str
    number: int
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, to be written into a release."""
        return vars(self).copy()

    @classmethod
    def from_dict(cls, values: Any) -> Head:
        """The head that `to_dict` wrote."""
        if isinstance(values, Mapping) and set(values) == {"ledger", "number", "hash"}:
            head = cls(**values)
            if isinstance(head.ledger, str) and type(head.number) is int and isinstance(head.hash, str):
                return head
        raise DataError(f"a ledger's head consists of ledger, number and hash, got {str(values)[:80]!r}")

    def __str__(self) -> str:
        return f"event {self.number} of ledger {self.ledger}, hash {self.hash}"


class BrokenChain(Exception):
    """The chain is inconsistent: an event was changed, or is missing."""


class Chain:
    """All events of a ledger, oldest first, checked; `add` writes one more in the transaction that read the chain.

    `heads` lists the head after each event. A file of format 1 has events but no heads until it is first written to.
    """

    def __init__(self, write: Callable[[int, str, str, str], None]) -> None:
        self.events: list[Event] = []
        self.heads: list[Head] = []
        self._write = write

    @classmethod
    def read(cls, rows: Iterable[tuple[Any, ...]], write: Callable[[int, str, str, str], None]) -> Chain:
        """The chain from rows (number, before, content, hash); BrokenChain if a row is not what was written."""
        chain = cls(write)
        for number, before, content, digest in rows:
            expected = (len(chain.events) + 1, chain.heads[-1].hash if chain.heads else "")
            if (number, before) != expected or digest != _hash(number, before, content):
                raise BrokenChain
            chain._append(json.loads(content), digest)
        if [event["event"] == FIRST for event in chain.events] != [True] + [False] * (len(chain.events) - 1):
            raise BrokenChain  # only the first event may give the ledger's identity
        return chain

    def add(self, event: Event) -> None:
        """Write an event at the end. It includes a random string, so that copies of a ledger never continue alike."""
        number, before = len(self.events) + 1, self.heads[-1].hash if self.heads else ""
        content = json.dumps({**event, "random": secrets.token_hex(8)}, sort_keys=True, separators=(",", ":"))
        digest = _hash(number, before, content)
        self._write(number, before, content, digest)
        self._append(json.loads(content), digest)

    def _append(self, event: Any, digest: str) -> None:
        ledger = self.heads[0].ledger if self.heads else event.get("ledger")
        self.events.append(event)
        self.heads.append(Head(ledger, len(self.events), digest))


def _hash(number: int, before: str, content: str) -> str:
    # repr: in a damaged file a text may be read as bytes, which JSON cannot encode
    text = json.dumps([number, before, content], separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
