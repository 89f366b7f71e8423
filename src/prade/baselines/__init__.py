"""Published methods that prade is compared with, using the same door, ledger, priors and scores.

Each baseline is an estimator (`fit` makes an estimate from noisy answers) that also decides what to ask (`ask`); `run`
does both for a private table. They follow their papers and are not meant to be improved.
"""

from prade.baselines.base import Baseline, run
from prade.baselines.gem import GEMPub
from prade.baselines.histogram import Histogram
from prade.baselines.mwem import MWEM, PMWPub
from prade.baselines.privbayes import PrivBayes

__all__ = ["MWEM", "Baseline", "GEMPub", "Histogram", "PMWPub", "PrivBayes", "run"]
