"""One run of the comparison, in a process of its own: python -m compare.run JOB SYSTEM EPS SEED SECONDS GROUPS RESULT.

SECONDS and GROUPS are the most that a system takes which treats groups one by one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from compare.entrants import SYSTEMS
from compare.jobs import JOBS
from compare.systems import MOST_GROUPS, Drawn, Task
from jobs import Job

BEFOREHAND = "beforehand"  # in the place of a seed: choose settings on public data only, and keep them


def scored(job: Job, drawn: Drawn) -> dict[str, Any]:
    """Errors of the groups that were done, as the contest has them but over all pairs.

    "raw" are the same errors without the rule on numbers of rows, and "biased" is how many groups that rule hit. "late"
    says that fewer groups were done than could have been taken.
    """
    of = len(job.listed)
    groups = list(range(of)) if drawn.done is None else sorted(drawn.done)
    errors = raw = drawn.errors
    biased = np.zeros(of, np.bool_)
    if drawn.rows is not None:
        found = job.scored(*drawn.rows)
        errors, raw, biased = found.groups, found.detail.mean(axis=1), np.array(found.why) == "bias"
    return {
        "seconds": drawn.seconds,
        "GiB": drawn.gib,
        **drawn.notes,
        "of": of,
        "late": len(groups) < min(of, MOST_GROUPS),
        "groups": groups,
        "errors": errors[groups].tolist(),
        "raw": raw[groups].tolist(),
        "biased": int(biased[groups].sum()),
    }


def main() -> None:
    name, system, epsilon, seed, seconds, groups, result = sys.argv[1:]
    chosen, beforehand = SYSTEMS[system], seed == BEFOREHAND
    task = Task(JOBS[name](), epsilon, 0 if beforehand else int(seed), float(seconds), int(groups))
    found = chosen.beforehand(task) if chosen.beforehand else {}
    if not beforehand:
        drawn = chosen.run(task)
        if chosen.beforehand:
            drawn.notes["rehearsal seconds"] = found.get("took")
        found = scored(task.job, drawn)
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
