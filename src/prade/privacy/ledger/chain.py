"""A ledger's events, each holding the hash of the one before: no event can be changed without changing all later ones.

    hash(n) = SHA-256 of the JSON list [n, hash(n - 1), content of event n]        hash(0) is the empty text

The last number and hash, the *head*, stand for everything before them. A release keeps a copy of the head: a ledger
that lacks that event, or has another in its place, is an old copy or has lost its end.
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
FIRST = "made"  # the kind of the first event, which holds the ledger's identity


@dataclass(frozen=True)
class Head:
    """The end of a ledger's chain at some moment: which ledger, the last event's number and its hash."""

    ledger: str
    number: int
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a release holds them."""
        return vars(self).copy()

    @classmethod
    def from_dict(cls, values: Any) -> Head:
        """The head that `to_dict` wrote."""
        if isinstance(values, Mapping) and set(values) == {"ledger", "number", "hash"}:
            head = cls(**values)
            if isinstance(head.ledger, str) and type(head.number) is int and isinstance(head.hash, str):
                return head
        raise DataError(f"a ledger's head is made of ledger, number and hash, got {str(values)[:80]!r}")

    def __str__(self) -> str:
        return f"event {self.number} of ledger {self.ledger}, hash {self.hash}"


class Broken(Exception):
    """The chain does not hold together."""


class Chain:
    """All events of a ledger, oldest first, checked; `add` writes one more, in the transaction that the chain is of.

    `heads` are the chain's ends as of each event. A file of format 1 that is only read has events, but no heads yet.
    """

    def __init__(self, write: Callable[[int, str, str, str], None]) -> None:
        self.events: list[Event] = []
        self.heads: list[Head] = []
        self._write = write

    @classmethod
    def read(cls, rows: Iterable[tuple[Any, ...]], write: Callable[[int, str, str, str], None]) -> Chain:
        """The chain of rows (number, before, content, hash); Broken if any of them is not what was written."""
        chain = cls(write)
        for number, before, content, digest in rows:
            known = (len(chain.events) + 1, chain.heads[-1].hash if chain.heads else "")
            if (number, before) != known or digest != _hash(number, before, content):
                raise Broken
            chain._append(json.loads(content), digest)
        if [event["event"] == FIRST for event in chain.events] != [True] + [False] * (len(chain.events) - 1):
            raise Broken  # it begins with the ledger's identity, and that stays
        return chain

    def add(self, event: Event) -> None:
        """Write one more event at the end. It gets a random text, so that no two copies of a ledger go on alike."""
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
    # repr is for what damage may turn a text into: bytes, which JSON does not know
    text = json.dumps([number, before, content], separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
