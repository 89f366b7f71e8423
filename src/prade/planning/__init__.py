"""Plans: which questions will be asked about the private table and with how much noise, decided from public data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from prade.planning.plan import Plan as Plan
    from prade.planning.questions import Ask as Ask
    from prade.planning.questions import Level as Level
    from prade.planning.questions import weighted_asks as weighted_asks
    from prade.planning.settings import Expected as Expected
    from prade.planning.settings import Settings as Settings
    from prade.planning.task import Target as Target
    from prade.planning.task import Task as Task

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
