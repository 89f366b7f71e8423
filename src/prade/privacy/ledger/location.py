"""Where the ledger is. A data custodian has one ledger for all releases, whatever folder each is written to."""

from __future__ import annotations

import os
from pathlib import Path

from prade.core.errors import PradeError

VARIABLE = "PRADE_LEDGER"
FILE = "ledger.sqlite"


def custodian_ledger() -> Path:
    """The data custodian's ledger: the path in the environment variable PRADE_LEDGER, or else `user_ledger`."""
    if not (named := os.environ.get(VARIABLE)):
        return user_ledger()
    if not Path(named).is_absolute():
        raise PradeError(
            f"{VARIABLE} is {named!r}, a relative path that would name a different ledger in every folder; "
            "give an absolute path"
        )
    return Path(named)


def user_ledger() -> Path:
    """The default ledger: a file in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("prade", appauthor=False) / FILE
