"""The report: one HTML page about a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.reporting.report import write_report as write_report

_HOMES = {
    "write_report": "prade.reporting.report",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
