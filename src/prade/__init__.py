"""prade: prior-aware distribution estimation for differential privacy.

Start from what is already public, spend the privacy budget on what it gets wrong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prade.core.version import __version__ as __version__

if TYPE_CHECKING:
    from prade.core.errors import BudgetError as BudgetError
    from prade.core.errors import DataError as DataError
    from prade.core.errors import EstimationError as EstimationError
    from prade.core.errors import PradeError as PradeError
    from prade.core.errors import SchemaError as SchemaError
    from prade.core.errors import WorkloadError as WorkloadError
    from prade.data.decode import Decoder as Decoder
    from prade.data.encode import Coded as Coded
    from prade.data.encode import encode as encode
    from prade.data.encode import outside as outside
    from prade.data.groups import Groups as Groups
    from prade.data.prior import Prior as Prior
    from prade.data.public import Public as Public
    from prade.data.schema import Column as Column
    from prade.data.schema import Schema as Schema
    from prade.estimating.base import fit_many as fit_many
    from prade.estimating.estimate import Estimate as Estimate
    from prade.estimating.ide import IDE as IDE
    from prade.estimating.layout import Layout as Layout
    from prade.estimating.levels.estimates import Estimates as Estimates
    from prade.estimating.map import MAP as MAP
    from prade.estimating.two_stage import TwoStage as TwoStage
    from prade.planning.expected import Expected as Expected
    from prade.planning.plan import Plan as Plan
    from prade.planning.questions import Ask as Ask
    from prade.planning.questions import Level as Level
    from prade.planning.settings import Settings as Settings
    from prade.privacy.budget import Budget as Budget
    from prade.privacy.budget import Unit as Unit
    from prade.privacy.ledger import Ledger as Ledger
    from prade.queries.query import Query as Query
    from prade.queries.workload import Part as Part
    from prade.queries.workload import Workload as Workload
    from prade.release.measurement import Measurement as Measurement
    from prade.release.release import Release as Release
    from prade.scoring.score import Score as Score
    from prade.scoring.score import score as score
    from prade.synthesizer import Synthesizer as Synthesizer
    from prade.tuning.tune import Tuned as Tuned

# Names are loaded when first used: importing the package costs milliseconds, whatever the parts need.
_HOME = {
    "Ask": "planning.questions",
    "Budget": "privacy.budget",
    "BudgetError": "core.errors",
    "Coded": "data.encode",
    "Column": "data.schema",
    "DataError": "core.errors",
    "Decoder": "data.decode",
    "Estimate": "estimating.estimate",
    "Estimates": "estimating.levels.estimates",
    "EstimationError": "core.errors",
    "Expected": "planning.expected",
    "Groups": "data.groups",
    "IDE": "estimating.ide",
    "Layout": "estimating.layout",
    "Ledger": "privacy.ledger",
    "Level": "planning.questions",
    "MAP": "estimating.map",
    "Measurement": "release.measurement",
    "Part": "queries.workload",
    "Plan": "planning.plan",
    "PradeError": "core.errors",
    "Prior": "data.prior",
    "Public": "data.public",
    "Query": "queries.query",
    "Release": "release.release",
    "Schema": "data.schema",
    "SchemaError": "core.errors",
    "Score": "scoring.score",
    "Settings": "planning.settings",
    "Synthesizer": "synthesizer",
    "Tuned": "tuning.tune",
    "TwoStage": "estimating.two_stage",
    "Unit": "privacy.budget",
    "Workload": "queries.workload",
    "WorkloadError": "core.errors",
    "encode": "data.encode",
    "fit_many": "estimating.base",
    "outside": "data.encode",
    "score": "scoring.score",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'prade' has no attribute {name!r}")
    value = getattr(import_module(f"prade.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
