"""The report's page: which template, style and scripts show its data (`prade.reporting.page_data`)."""

from __future__ import annotations

from typing import Any

from prade.reporting.html import page

STYLES = ("report.css",)
SCRIPTS = ("frames", "report", "report_explore", "report_pairs", "report_tables", "report_budget", "report_map", "report_truth")


def report_page(data: dict[str, Any]) -> str:
    """The whole page as HTML."""
    return page("report.html.j2", data, styles=STYLES, scripts=[f"{name}.js" for name in (*SCRIPTS, "report_start")])
