"""How far the public table is from what was measured: alarms and distances, from answers that are already paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.diagnosis.diagnose import diagnosed as diagnosed
    from prade.diagnosis.findings import Diagnosis as Diagnosis

_HOMES = {"Diagnosis": "prade.diagnosis.findings", "diagnosed": "prade.diagnosis.diagnose"}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
