"""The report's page: which template, style and scripts show its data (`prade.reporting.page_data`)."""

from __future__ import annotations

from typing import Any

from prade.reporting.html import page

STYLES = ("report.css",)
SCRIPTS = (
    "frames.js",
    "report.js",
    "report_explore.js",
    "report_pairs.js",
    "report_tables.js",
    "report_budget.js",
    "report_map.js",
    "report_truth.js",
    "report_start.js",
)


def report_page(data: dict[str, Any]) -> str:
    """The whole page as HTML."""
    return page("report.html.j2", data, styles=STYLES, scripts=SCRIPTS)
