"""prade: prior-aware distribution estimation for differential privacy.

Start from what is already public, and spend the privacy budget on what it gets wrong. The five stages are the five
functions: plan, measure, estimate, sample, report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prade.core.lazy_names import lazy_names
from prade.core.version import __version__ as __version__

if TYPE_CHECKING:
    from prade.core.errors import BudgetError as BudgetError
    from prade.core.errors import DataError as DataError
    from prade.core.errors import EstimationError as EstimationError
    from prade.core.errors import PradeError as PradeError
    from prade.core.errors import SchemaError as SchemaError
    from prade.core.errors import WorkloadError as WorkloadError
    from prade.core.execution import Execution as Execution
    from prade.data.declare.column import Column as Column
    from prade.data.declare.groups import Groups as Groups
    from prade.data.declare.schema import PublishedTotals as PublishedTotals
    from prade.data.declare.schema import Rule as Rule
    from prade.data.declare.schema import Schema as Schema
    from prade.data.read.csv import CsvFile as CsvFile
    from prade.estimating.levels.estimates import Estimates as Estimates
    from prade.measuring.check import check as check
    from prade.measuring.run import measure as measure
    from prade.pipeline import estimate as estimate
    from prade.pipeline import plan as plan
    from prade.pipeline import sample as sample
    from prade.planning.plan import Plan as Plan
    from prade.planning.questions import Ask as Ask
    from prade.planning.questions import Level as Level
    from prade.planning.settings import Settings as Settings
    from prade.planning.task import Target as Target
    from prade.planning.task import Task as Task
    from prade.privacy.budget import Budget as Budget
    from prade.privacy.ledger import Ledger as Ledger
    from prade.privacy.protection import Unit as Unit
    from prade.queries.parts import Part as Part
    from prade.queries.workload import Workload as Workload
    from prade.release.release import Release as Release
    from prade.reporting.report import report as report
    from prade.scoring.score import Score as Score
    from prade.scoring.score import score as score
    from prade.synthesizer import Synthesizer as Synthesizer
    from prade.tuning.explore import Exploration as Exploration
    from prade.tuning.explore import explore as explore

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
__all__ += ["__version__"]
