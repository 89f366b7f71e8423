"""Peers by other packages: mbi from our measurements or from JAM's, MST and AIM in environments of their own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common import OUT, ROOT
from compare.asking import Table
from compare.jam import Graphical, Jam
from compare.rehearsal import low_marginals
from compare.systems import DELTA, GROUP, Drawn, Task, by_group, extrapolated, joined, released, with_group_column
from prade import Part, Schema
from prade.data.public.joint import Coded, Prior, encode
from prade.queries.parts import Marginal
from prade.release.release import Measurement

MIRROR_STEPS = 2500
ADAM_STEPS = 1000  # mbi's default
ADAM_RATE = 0.1  # as in its documentation
JAM_STEPS = 1000  # of mirror descent in each round, as in its authors' program
PEERS = {
    ("opendp", "mst"): {},
    ("opendp", "aim"): {},
    ("dpmm", "mst"): {},
    ("dpmm", "aim"): {"max_model_size": 80},
}

PeerRows = tuple[dict[str, np.ndarray], dict[str, float]]  # codes of rows, and what they took


def _mbi() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi

    return mbi


# ---------------------------------------------------------------------- mbi


class Cells:
    """What mbi calls a query: the counts of a part that is no marginal, or of groups that are several together.

    `above` is the larger group that each group is in, None where groups are no column.
    """

    def __init__(self, part: Part, shape: tuple[int, ...], schema: Any, above: np.ndarray | None) -> None:
        grid = np.indices(shape).reshape(len(shape), -1)
        cell = part.cells(schema, dict(zip(part.columns, grid, strict=True)))
        self.cell, self.n_cells, self.above = np.asarray(cell, np.int64), part.n_cells, above

    def __call__(self, factor: Any) -> Any:
        import jax.numpy as jnp
        from jax.ops import segment_sum

        values = factor.datavector()
        if self.above is not None:
            rows = values.reshape(len(self.above), -1)
            values = segment_sum(rows, jnp.asarray(self.above), int(self.above.max()) + 1)
            counted = segment_sum(values.T, jnp.asarray(self.cell), self.n_cells + 1)[: self.n_cells]
            return counted.T.ravel()
        return segment_sum(values, jnp.asarray(self.cell), self.n_cells + 1)[: self.n_cells]


def graphical(task: Task) -> Drawn:
    """One graphical model of all our measurements, of every level, with the group as a column; no prior."""
    mbi = _mbi()
    from mbi.estimation import MirrorDescent

    job, plan, schema = task.job, task.plan, task.job.schema
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        release = released(task, Path(folder))
        groups = len(plan.groupings[-1])
        domain = mbi.Domain([*schema.coded, GROUP], [*schema.shape(schema.coded), groups])
        measurements = []
        for question, answers in zip(plan.questions, release.noisy, strict=True):
            level, last = plan.groupings[question.level], plan.groupings[-1]
            above = last.above(level)
            for part, counts in zip(question.parts, answers, strict=True):
                given = [np.asarray(counts, np.float64).ravel(), (GROUP, *part.columns), question.variance**0.5]
                if not isinstance(part, Marginal) or len(level) < groups:
                    given.append(Cells(part, schema.shape(part.columns), schema, above))
                measurements.append(mbi.LinearMeasurement(*given))
        totals, _ = release.totals(len(plan.levels) - 1)
        total = float(max(totals.sum(), 1.0))
        model = MirrorDescent().estimate(domain, measurements, known_total=total, iters=MIRROR_STEPS)
        rows = model.synthetic_data(round(total)).to_dict()
        drawn = by_group(job, {name: np.asarray(rows[name]) for name in domain.attributes})
        return Drawn(drawn, time.perf_counter() - began)


def reweighted(task: Task) -> Drawn:
    """mbi's reweighting of the public rows, group by group, to our measurements of the last level."""
    mbi = _mbi()
    import optax
    from mbi.extensions.reweighted_dataset import ReweightedDatasetEstimator

    plan, schema = task.plan, task.job.schema
    domain = mbi.Domain(schema.coded, schema.shape(schema.coded))
    queries: dict[str, Cells] = {}

    def measured(measurement: Measurement) -> Any:
        part = measurement.part
        given = [measurement.counts, part.columns, float(np.max(measurement.variance)) ** 0.5]
        if not isinstance(part, Marginal):
            if part.name not in queries:  # one object a part: mbi compiles for each
                queries[part.name] = Cells(part, schema.shape(part.columns), schema, None)
            given.append(queries[part.name])
        return mbi.LinearMeasurement(*given)

    def estimator_of(prior: Prior) -> Any:
        codes = {name: code.astype(np.int64) for name, code in prior.codes.items()}
        return ReweightedDatasetEstimator(seed_data=mbi.Dataset(codes, domain), optimizer=optax.adam(ADAM_RATE))

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        release, last = released(task, Path(folder)), len(plan.levels) - 1
        totals, _ = release.totals(last)
        pooled = estimator_of(task.job.rows.prior)
        done = dict[int, Coded]()
        for group in task.in_turn():
            prior = task.rows(group)
            estimator = pooled if prior is task.job.rows.prior else estimator_of(prior)
            answers = [measured(each) for each in release.measurements(last, group)]
            total = max(float(totals[group]), 1.0)
            model = estimator.estimate(domain, answers, known_total=total, iters=ADAM_STEPS)
            weights = np.asarray(model.weights, np.float64)
            done[group] = task.sampled(Prior(schema, prior.codes, weights / weights.sum()), total)
        return extrapolated(task, began, done)


def jam(task: Task) -> Drawn:
    """JAM-PGM, group by group, with the public rows that PMW^Pub has too."""
    mbi, schema = _mbi(), task.job.schema
    began, done, public, taken = time.perf_counter(), dict[int, Coded](), 0, 0
    asking = Jam(low_marginals(schema))
    for group, rows in task.private_groups():
        prior, model = task.prior(group, 1.0), Graphical(mbi, schema, JAM_STEPS)
        total, tables = asking.ask(prior, Table(rows, schema, task.job.unit, task.epsilon), model)
        public, taken = public + sum(name.endswith("(public)") for name in tables), taken + len(tables)
        done[group] = model.rows(max(round(total), 1))
    drawn = extrapolated(task, began, done)
    return replace(drawn, notes={**drawn.notes, "settings": f"{public} of {taken} tables taken from public rows"})


# ---------------------------------------------------------------------- MST and AIM


def python_of(package: str) -> Path:
    """The interpreter of a peer's environment, which `make compare` sets up."""
    return ROOT / ".venv-peers" / package / "bin" / "python"


def peer(package: str, algorithm: str, task: Task) -> Drawn:
    """MST or AIM of the private table, with its group as one more column: as a user would do it.

    OpenDP for pure epsilon, dpmm for (epsilon, delta).
    """
    schema, table = with_group_column(task.job)
    rows, took = peer_rows(package, algorithm, schema, encode(schema, table), task)
    notes = {"fit": took["fit"]}
    return Drawn(by_group(task.job, rows), took["fit"] + took["draw"], took["GiB"], notes=notes)


def peer_each_place(package: str, algorithm: str, task: Task) -> Drawn:
    """MST or AIM of the table of each place, with the whole epsilon (and delta): a person is in one place.

    Times are those of fitting and drawing, without the start of a process for each place. A place that is done is kept,
    so that a run that is stopped, or has more time than the last one, goes on from there.
    """
    schema, done, times, processor, gib = task.job.schema, dict[int, Coded](), [], [], 0.0
    for group, table in task.private_groups():
        rows, took = kept_rows(package, algorithm, schema, encode(schema, table), task)
        done[group] = Coded(schema, {name: rows[name] for name in schema.coded})
        times.append(took["fit"] + took["draw"])
        processor.append(took["processor"])
        gib = max(gib, took["GiB"])
    groups = len(task.job.listed)
    some = list(done) if len(done) < groups else None
    notes = {"own seconds": sum(times), "processor seconds by group": processor}
    return Drawn(joined(done), sum(times) / len(times) * groups, gib, done=some, notes=notes)


def kept_rows(package: str, algorithm: str, schema: Schema, coded: Coded, task: Task) -> PeerRows:
    """The same as `peer_rows`, made once for the same table, settings and peer."""
    here = ROOT / "benchmarks" / "peers"
    parts = [json.dumps(asked_of(package, algorithm, schema, task)).encode()]
    parts += [(here / name).read_bytes() for name in (f"{package}.txt", f"{package}_peer.py", "peer_script.py")]
    parts += [np.ascontiguousarray(coded.codes[name], np.int64).tobytes() for name in schema.coded]
    file = OUT / "peer-places" / f"{hashlib.sha256(b'|'.join(parts)).hexdigest()[:24]}.npz"
    if not file.exists():
        rows, took = peer_rows(package, algorithm, schema, coded, task)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(new, took=json.dumps(took), **{f"rows {name}": codes for name, codes in rows.items()})
        new.replace(file)
    with np.load(file) as found:
        return {name: found[f"rows {name}"] for name in schema.coded}, json.loads(str(found["took"]))


def peer_rows(package: str, algorithm: str, schema: Schema, coded: Coded, task: Task) -> PeerRows:
    """Rows of one fit in the peer's own process, and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "task.json").write_text(json.dumps(asked_of(package, algorithm, schema, task)))
        np.savez(place / "codes.npz", **coded.codes)
        script = ROOT / "benchmarks" / "peers" / f"{package}_peer.py"
        ended = subprocess.run(
            [str(python_of(package)), "-W", "ignore", str(script), folder],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ended.returncode:
            sys.exit(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"status {ended.returncode}")
        took = json.loads((place / "done.json").read_text())
        with np.load(place / "synthetic.npz") as found:
            return {name: found[name] for name in schema.coded}, took


def asked_of(package: str, algorithm: str, schema: Schema, task: Task) -> dict[str, Any]:
    """What a peer's script is told."""
    return {
        "algorithm": algorithm,
        "settings": PEERS[package, algorithm],
        "epsilon": float(task.epsilon),
        "delta": float(DELTA),
        "seed": task.seed,
        "sizes": dict(zip(schema.coded, schema.shape(schema.coded), strict=True)),
        "group": GROUP if GROUP in schema.coded else None,
    }
