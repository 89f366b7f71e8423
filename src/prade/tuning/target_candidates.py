"""What the tuner may try for targets: to ask for what they name, at their levels, with larger shares than for the rest.

A two-way table of a small group may be better known from its two columns than from its own cells, which are many. So
three sets of parts are tried at the last level: the targets' own, their single columns, and both. At a level above,
whose groups are large, it is the targets' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from prade.core.errors import many
from prade.queries.parts import Marginal, Part
from prade.tuning.candidates import Candidates, Change, Choice

# How many times the share of another part a target's part gets: first in long steps, then in short ones from the best
# of these. With equal shares of 36 tables, 32 times for five of them leaves the others a sixth of the budget.
LONG_STEPS = Fraction(4), Fraction(16)
TIMES = tuple(Fraction(times) for times in (2, 4, 8, 16, 32))
# Shares of the budget for the targets of one level above the last.
SHARES_ABOVE = tuple(Fraction(share) for share in ("1/30", "1/10", "3/10", "3/5"))
MOST_CELLS = 500  # of the parts of a set at the last level: the time for smoothing grows with the cube of their number


class TargetCandidates(Candidates):
    """What may be changed in a plan with targets."""

    def ladders(self, best: Callable[[], Choice]) -> Iterator[Iterator[Change]]:
        """What spends on targets comes first."""
        yield from target_ladders(self, best)
        yield from super().ladders(best)


def target_ladders(candidates: Candidates, best: Callable[[], Choice]) -> Iterator[Iterator[Change]]:
    """Changes of the best choice so far that spend on targets."""
    depth = len(candidates.levels) - 1
    if best().total < 1:
        for words, parts in _sets(candidates, depth).items():
            yield _more_often(best, depth, words, parts)
    if best().total < 1 and best().first and best().first[depth]:
        yield _alone(candidates, best, depth)
        if best().parts:
            yield _other_times(best, TIMES)
            yield _other_times(best, TIMES[::-1])
    for above in reversed(range(depth)):
        if own := _own_parts(candidates, above):
            yield _above(candidates, best, above, own)


def _own_parts(candidates: Candidates, depth: int) -> tuple[Part, ...]:
    """The parts that tell what the targets name at a level."""
    wanted = candidates.rehearsal.wanted
    assert wanted is not None
    by = set(candidates.nest[depth])
    return tuple(dict.fromkeys(each.part for each in wanted.wanted if set(each.by) == by))


def _sets(candidates: Candidates, depth: int) -> dict[str, tuple[Part, ...]]:
    """Sets of parts that tell what the targets name at the last level, in words; parts with too many cells are not."""
    own = _own_parts(candidates, depth)
    names = dict.fromkeys(name for part in own for name in part.columns)
    single = tuple(Marginal.of(candidates.schema, [name]) for name in names)
    small: list[Part] = []
    for part in sorted(own, key=lambda part: part.n_cells):
        if sum(each.n_cells for each in (*small, part)) <= MOST_CELLS:
            small.append(part)
    kept = tuple(part for part in own if part in small)
    found = {"the targets' tables": kept, "the targets' columns": single}
    found["the targets' tables and columns"] = tuple(dict.fromkeys([*kept, *single]))
    different: dict[tuple[Part, ...], str] = {}
    for words, parts in found.items():
        if parts:
            different.setdefault(parts, words)
    return {words: parts for parts, words in different.items()}


def _with(choice: Choice, depth: int, parts: tuple[Part, ...], levels: int) -> tuple[tuple[Part, ...], ...]:
    first = list(choice.first or ((),) * levels)
    first[depth] = parts
    return tuple(first)


def _more_often(best: Callable[[], Choice], depth: int, words: str, parts: tuple[Part, ...]) -> Iterator[Change]:
    """A set of parts with larger shares: from a few times as large, or from as much as another set has now."""
    now = best().times if best().first and best().first[depth] else Fraction(1)
    steps = LONG_STEPS if now == 1 else (now,)
    for times in steps:
        first = _with(best(), depth, parts, depth + 1)
        yield f"{times} times the share for {words}", replace(best(), first=first, times=times)


def _other_times(best: Callable[[], Choice], steps: Sequence[Fraction]) -> Iterator[Change]:
    now, up = best().times, steps[0] < steps[-1]
    for times in steps:
        if times > now if up else times < now:
            yield f"{times} times the share for the targets", replace(best(), times=times)


def _alone(candidates: Candidates, best: Callable[[], Choice], depth: int) -> Iterator[Change]:
    """Nothing but what tells the targets, if that also tells the numbers of rows."""
    if best().total or any(part.covers for part in best().first[depth]):
        yield "nothing but the targets", replace(best(), parts=())


def _above(candidates: Candidates, best: Callable[[], Choice], depth: int, parts: tuple[Part, ...]) -> Iterator[Change]:
    """The targets of a level above the last, for a share of the budget that tells more than sums of deeper answers."""
    free = 1 - sum((share for k, (share, _) in enumerate(best().above) if k != depth), Fraction(0))
    for share in SHARES_ABOVE:
        above = list(best().above)
        above[depth] = share * free, above[depth][1]
        changed = replace(best(), above=tuple(above), first=_with(best(), depth, parts, len(above) + 1))
        if _tells_more(candidates, changed, depth, parts):
            yield f"level {depth + 1}: {many(len(parts), 'target')} for {share * free} of the budget", changed


def _tells_more(candidates: Candidates, choice: Choice, depth: int, parts: Sequence[Part]) -> bool:
    """Whether some part has less noise at a level than the sums of deeper levels' answers, which cost nothing more."""
    known, factor = candidates.known(choice, depth), candidates.per_row_squared(depth)
    asked = [each for each in candidates.plan_of(replace(choice, everybody=False)).questions if each.level == depth]
    noise = {part: question.variance * factor for question in asked for part in question.parts}
    return any(noise[part] < known.get(part.columns, math.inf) for part in parts)
