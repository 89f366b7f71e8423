"""How far the public table is from what was measured: alarms and distances, from answers that are already paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.diagnosis.diagnose import Diagnosis as Diagnosis
    from prade.diagnosis.diagnose import diagnosed as diagnosed

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
