"""What is promised and what it costs: units of protection, privacy budgets, and the ledger of what has been spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.privacy.budget import Budget as Budget
    from prade.privacy.ledger import Ledger as Ledger
    from prade.privacy.protection import Unit as Unit

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
