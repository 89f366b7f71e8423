"""The report: one HTML page about a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.reporting.report import write_report as write_report

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
