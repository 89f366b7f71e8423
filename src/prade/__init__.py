"""prade: prior-aware distribution estimation for differential privacy.

Start from what is already public, spend the privacy budget on what it gets wrong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from prade.codec import Coded as Coded
    from prade.codec import encode as encode
    from prade.codec import outside as outside
    from prade.decode import Decoder as Decoder
    from prade.errors import BudgetError as BudgetError
    from prade.errors import DataError as DataError
    from prade.errors import EstimationError as EstimationError
    from prade.errors import PradeError as PradeError
    from prade.errors import SchemaError as SchemaError
    from prade.errors import WorkloadError as WorkloadError
    from prade.estimate import Estimate as Estimate
    from prade.estimates import Estimates as Estimates
    from prade.estimators.base import fit_many as fit_many
    from prade.estimators.ide import IDE as IDE
    from prade.estimators.map_ import MAP as MAP
    from prade.estimators.two_stage import TwoStage as TwoStage
    from prade.evaluate import Score as Score
    from prade.evaluate import score as score
    from prade.expected import Expected as Expected
    from prade.groups import Groups as Groups
    from prade.layout import Layout as Layout
    from prade.ledger import Ledger as Ledger
    from prade.measurement import Measurement as Measurement
    from prade.plan import Ask as Ask
    from prade.plan import Level as Level
    from prade.plan import Plan as Plan
    from prade.prior import Prior as Prior
    from prade.privacy import Budget as Budget
    from prade.privacy import Unit as Unit
    from prade.public import Public as Public
    from prade.query import Query as Query
    from prade.release import Release as Release
    from prade.schema import Column as Column
    from prade.schema import Schema as Schema
    from prade.settings import Settings as Settings
    from prade.synthesizer import Synthesizer as Synthesizer
    from prade.tune import Tuned as Tuned
    from prade.workload import Part as Part
    from prade.workload import Workload as Workload

# Names are loaded when first used: importing the package costs milliseconds, whatever the parts need.
_HOME = {
    "Ask": "plan",
    "Budget": "privacy",
    "BudgetError": "errors",
    "Coded": "codec",
    "Column": "schema",
    "DataError": "errors",
    "Decoder": "decode",
    "Estimate": "estimate",
    "Estimates": "estimates",
    "EstimationError": "errors",
    "Expected": "expected",
    "Groups": "groups",
    "IDE": "estimators.ide",
    "Layout": "layout",
    "Ledger": "ledger",
    "Level": "plan",
    "MAP": "estimators.map_",
    "Measurement": "measurement",
    "Part": "workload",
    "Plan": "plan",
    "PradeError": "errors",
    "Prior": "prior",
    "Public": "public",
    "Query": "query",
    "Release": "release",
    "Schema": "schema",
    "SchemaError": "errors",
    "Score": "evaluate",
    "Settings": "settings",
    "Synthesizer": "synthesizer",
    "Tuned": "tune",
    "TwoStage": "estimators.two_stage",
    "Unit": "privacy",
    "Workload": "workload",
    "WorkloadError": "errors",
    "encode": "codec",
    "fit_many": "estimators.base",
    "outside": "codec",
    "score": "evaluate",
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
