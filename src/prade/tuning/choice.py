"""A choice of the tuner: what a plan asks for at which level, for which share of the budget, and how to estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from prade.data.declare.schema import Schema
from prade.planning.questions import Ask, Level, favoured_asks, weighted_asks
from prade.planning.settings import Settings
from prade.privacy.noise_law import NoiseLaw
from prade.queries.parts import Marginal, Part
from prade.queries.workload import Workload
from prade.tuning.gain import Columns


@dataclass(frozen=True)
class Choice:
    """What is chosen: the columns of each part and the share of the totals at the last level, and what is asked above.

    `above` has the share of the whole budget and the parts of each level except the last. With a share of 1 for the
    totals, no part is asked for at the last one. The parts of the last level have equal shares, or, if `weighted`,
    shares that grow with their number of cells (`prade.planning.questions`). `everybody` puts the level of all rows
    first: it asks nothing, because its answers are sums of others', and all groups learn from it. `law` is that of the
    noise;
    None is the usual one of the budget's kind. `first` are the parts of each level that tell what the targets name, if
    the level asks anything: each has `times` the share of another part.
    """

    parts: tuple[Columns, ...]
    above: tuple[tuple[Fraction, tuple[Columns, ...]], ...] = ()
    total: Fraction = Fraction(0)
    settings: Settings = field(default_factory=Settings)
    weighted: bool = False
    everybody: bool = False
    law: NoiseLaw | None = None
    first: tuple[tuple[Part, ...], ...] = ()
    times: Fraction = Fraction(1)

    def levels(self, schema: Schema, nest: Sequence[Columns]) -> list[Level]:
        """The levels of a plan.

        >>> schema = Schema.from_mbi({"age": 4, "sex": 2})
        >>> choice = Choice((("age",), ("sex",)), ((Fraction(1, 10), (("age", "sex"),)),), Fraction(1, 3))
        >>> [str(level.share) for level in choice.levels(schema, [("STATE",), ("PUMA",)])]
        ['1/10', '9/10']
        """
        above = [
            Level(by, self._asks(schema, parts, depth, share) if share else (), 0)
            for depth, (by, (share, parts)) in enumerate(zip(nest[:-1], self.above, strict=True))
        ]
        if self.everybody:
            above.insert(0, Level((), (), 0))
        last = 1 - sum((share for share, _ in self.above), Fraction(0))
        if self.total == 1:
            return [*above, Level(nest[-1], (), last)]
        asks = self._asks(schema, self.parts, len(nest) - 1, last * (1 - self.total), self.weighted)
        return [*above, Level(nest[-1], asks, last * self.total)]

    def _asks(
        self, schema: Schema, parts: tuple[Columns, ...], depth: int, share: Fraction, weighted: bool = False
    ) -> Ask | tuple[Ask, ...]:
        first = self.first[depth] if self.first else ()
        if not first:
            return (weighted_asks if weighted else Ask)(Workload.marginals(schema, parts), share)
        others = [Marginal.of(schema, columns) for columns in parts]
        return favoured_asks(schema, others, first, self.times, share, weighted=weighted)


Change = tuple[str, Choice]  # in words, and what comes out
