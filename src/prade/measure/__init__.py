"""The one door: private rows are counted where they are, exact noise is added, and only that comes out.

No other part of prade opens a private source or draws noise; a test holds it to that.
"""

from prade.measure.counts import count
from prade.measure.noise import add_noise
from prade.measure.run import measure
from prade.measure.source import Source, open_source

__all__ = ["Source", "add_noise", "count", "measure", "open_source"]
