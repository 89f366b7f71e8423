"""Where the ledger is. There is one for all that a custodian releases, whatever folder a release is written to."""

from __future__ import annotations

import os
from pathlib import Path

from prade.core.errors import PradeError

VARIABLE = "PRADE_LEDGER"
FILE = "ledger.sqlite"


def custodian_ledger() -> Path:
    """The ledger of whoever keeps the data: the environment variable PRADE_LEDGER, else `user_ledger`."""
    if not (named := os.environ.get(VARIABLE)):
        return user_ledger()
    if not Path(named).is_absolute():
        raise PradeError(f"{VARIABLE} is {named!r}, which would be another ledger in every folder: give the whole path")
    return Path(named)


def user_ledger() -> Path:
    """One file in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("prade", appauthor=False) / FILE
