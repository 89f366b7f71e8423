"""One run of the comparison, in a process of its own: python compare_run.py JOB SYSTEM EPS SEED SECONDS RESULT."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from compare_jobs import JOBS
from compare_list import SYSTEMS
from compare_systems import Drawn, Task
from jobs import Job


def scored(job: Job, drawn: Drawn) -> dict[str, Any]:
    """Errors of the groups that were done, as the contest has them but over all pairs."""
    result: dict[str, Any] = {"seconds": drawn.seconds, "GiB": drawn.gib, **drawn.notes}
    groups = range(len(job.listed)) if drawn.done is None else sorted(drawn.done)
    errors = drawn.errors
    if drawn.rows is not None:
        found = job.scored(*drawn.rows)
        errors = found.groups
        result["biased"] = int(sum(found.why[group] == "bias" for group in groups))
        result["raw"] = float(np.nanmean(found.detail[list(groups)]))
    assert errors is not None
    return {**result, "groups": list(groups), "errors": [float(errors[group]) for group in groups]}


def main() -> None:
    name, system, epsilon, seed, seconds, result = sys.argv[1:]
    task = Task(JOBS[name](), epsilon, int(seed), float(seconds))
    if system == "plan":  # made once for all systems that need it, and kept with the job's other results
        Path(result).write_text(json.dumps({"epsilon": str(task.plan.budget.epsilon)}))
        return
    drawn = SYSTEMS[system].run(task)
    Path(result).write_text(json.dumps(scored(task.job, drawn)))


if __name__ == "__main__":
    main()
