"""Connecting to a database and finding a table in it. This reads no rows, so messages may say what the driver says.

What reads rows is guarded instead (`prade.measuring.source.guarded`): there a driver's message may quote a cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from prade.core.errors import DataError, closest

Found = TypeVar("Found")
MOST_NAMES = 20  # of tables that are listed
HIDDEN = "***"
NO_SECRETS = ("user", "host", "port", "dbname", "database", "schema", "sslmode")  # options of an address


def connected(name: str, address: str, connect: Callable[[], Any]) -> Any:
    """The connection. A failure shows the driver's message without the address's password and options."""
    failure = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return connect()
    except Exception as error:
        failure = f"{type(error).__name__}: {without_secrets(str(error), address)}"
    raise DataError(f"connecting to {name} failed: {failure}. No row was read; correct the address")


def without_secrets(message: str, address: str) -> str:
    """A driver's message on one line, with stars in place of everything in an address that may be secret.

    >>> without_secrets('user "ann", password "s%40ve" or "s@ve" is wrong', "postgres://ann:s%40ve@host/people?token=7")
    'user "ann", password "***" or "***" is wrong'
    """
    try:
        parts = urlsplit(address)
        texts = [parts.password or "", *(value for key, value in parse_qsl(parts.query) if key not in NO_SECRETS)]
    except ValueError:  # an address that cannot be taken apart
        return HIDDEN
    # a password that has not been escaped may end up in any part of the address
    userinfo = address.partition("://")[2].rpartition("@")[0]
    texts += [parts.query, userinfo.partition(":")[2]]
    spelled = {each for text in texts for each in (text, unquote(text), quote(text, safe="")) if each}
    for secret in sorted(spelled, key=len, reverse=True):
        message = message.replace(secret, HIDDEN)
    return " ".join(message.split())


def table_named(name: str, tables: Iterable[tuple[Found, set[str]]]) -> Found:
    """The one table that a name means, of tables and the names of each; an error if it means none or several."""
    listed = list(tables)
    meant = [found for found, names in listed if name in names]
    if len(meant) > 1:
        raise DataError(f"{name!r} means {len(meant)} tables, because of dots in their names; give one of them a view")
    if not meant:
        raise no_table(name, [min(names, key=len) for _, names in listed])
    return meant[0]


def no_table(name: str, tables: Iterable[str], where: str = "the database") -> DataError:
    """The error for a table that does not exist, with the names of those that do."""
    known = sorted(map(str, tables))
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    listed = f"it has {', '.join(known[:MOST_NAMES])}{more}" if known else "it has none"
    return DataError(f"there is no table {name!r} in {where}{closest(name, known) or '; check its name'}: {listed}")
