"""`fit` and `sample`: the whole way as one object, for people who come from SDV, smartnoise-synth or scikit-learn.

It holds what was given and what came of it, and calls the functions that everybody else calls (`prade.tuning.tune`,
`prade.measuring`, `prade.sampling.table`): a release made here and one made by the command `prade synthesize` are the
same.
"""

from __future__ import annotations

import inspect
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.numbers import exact
from prade.core.progress import Progress
from prade.core.threads import cores
from prade.data.decode import Decoder, Like
from prade.data.groups import Groups
from prade.data.public import Public, group_columns
from prade.data.public_files import PublicFiles
from prade.data.schema import Schema
from prade.data.tables import read_table
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.kept_estimates import estimates_of, kept_estimates
from prade.planning.plan import Plan
from prade.privacy.budget import Budget, Number, Unit
from prade.privacy.ledger import Ledger
from prade.privacy.ledger_place import custodian_ledger
from prade.privacy.protection import refuse_weak
from prade.release.unrecorded_releases import need_on_record, not_entered
from prade.release.file_names import SYNTHETIC
from prade.release.derived_files import KEPT_ESTIMATES, KEPT_ROWS, is_kept, write_rows
from prade.release.release import MANIFEST, Release
from prade.sampling.sizes import resized
from prade.sampling.table import drawn_table, kind_of
from prade.tuning.choice import NOT_REHEARSED, kept_plan, plan_beside, simplest_plan, tuned_plan

_IN_THE_SCHEMA = "domains are declared in `schema`, never found in private rows: edit the schema"
_NO_SEED = "the noise takes no seed, for whoever knew it could take the noise away; `sample` takes one"
# What other tools' `fit` takes, and why this one does not.
_REFUSED = {
    **dict.fromkeys(
        ("categorical_columns", "ordinal_columns", "continuous_columns", "nullable", "transformer"), _IN_THE_SCHEMA
    ),
    "preprocessor_eps": "nothing is learnt from private rows before they are measured, so there is nothing to pay for",
    **dict.fromkeys(("seed", "random_state"), _NO_SEED),
    "epsilon": "the budget belongs to the plan: give it to Synthesizer(...)",
}


class NotFittedError(PradeError, AttributeError):
    """A result was asked for before there is one."""


class Synthesizer:
    """Synthetic rows like those of a private table, from a public table and a privacy budget.

    ``fit(data)`` spends epsilon, once; everything after it is free and may be repeated. What is given here is kept as
    it is and looked at by `plan` and `fit`; what they find has names that end in an underscore.

    schema: a `Schema`, the path of its file, or None to propose one from the public table. epsilon: a number (with
    `delta`, Gaussian noise), or a `Budget`. public: the public table or file (or several files) that the estimates
    start from, `weight` a column of its weights. folder: the release to make; it is also the saved form. groups: the
    public list of groups (None: everybody is one), `levels` its columns from coarse to fine. unit: how many rows a
    person may have. ledger: file of the account, the custodian's one when not given (`prade.privacy.ledger_place`);
    `dataset` is the private table's name in it. cap: for a data set that the ledger does not know yet, the most that
    may ever be spent on it, a number or a `Budget`; `prade ledger open` enters it too. weak_protection: whether to
    spend a budget that hardly protects, such as an epsilon above 20. tune: whether to choose the plan by rehearsal on
    the public table, for about `seconds`. progress(what, done, all) is told how far it is.

    What is different from other tools, because it would break the promise:

    * `public` must be given, and it must not be the private table: values, types and combinations are taken from it.
    * No column type, range or list of values is inferred from private rows; the schema says them before.
    * The noise has no seed. `sample` has one.
    * There is no fit without a ledger, and no second price for the same plan: `fit` again finds the release.
    * `fit_sample` returns as many rows as were estimated, not as many as the private table has: that is private.
    * There is one method, so nothing like ``create("mst")``; a saved synthesizer is a folder of readable files.

    >>> from prade import Unit
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=300, places_per_state=2, years=[2023, 2024])
    >>> synthesizer = Synthesizer(data.schema, 4, public=data.public.to_pandas(), folder="release",
    ...     groups=data.groups, levels=["STATE", "PLACE"], unit=Unit(data.max_rows, person_id="PERSON"), tune=False,
    ...     cap=8)
    >>> rows = synthesizer.fit(data.private).sample(100, seed=1)
    >>> type(rows).__name__, len(rows), str(synthesizer.spent_)
    ('DataFrame', 100, 'epsilon = 4 (pure differential privacy)')
    >>> Synthesizer.load("release", public=data.public.to_pandas()).sample(100, seed=1).equals(rows)
    True
    """

    advice_: str  # in plain words, whether measuring is worth its price
    plan_: Plan
    release_: Release
    estimates_: Estimates
    spent_: Budget | None  # by the latest fit; None: the release was there already

    def __init__(
        self,
        schema: Schema | str | PathLike[str] | None,
        epsilon: Number | Budget,
        *,
        public: Any,
        folder: str | PathLike[str],
        groups: Any = None,
        levels: Sequence[str | Sequence[str]] = (),
        delta: Number | None = None,
        unit: Unit | None = None,
        dataset: str = "private",
        weight: str | None = None,
        ledger: Ledger | str | PathLike[str] | None = None,
        cap: Number | Budget | None = None,
        tune: bool = True,
        seconds: float = 120,
        progress: Progress | None = None,
        weak_protection: bool = False,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.public = public
        self.folder = folder
        self.groups = groups
        self.levels = levels
        self.delta = delta
        self.unit = unit
        self.dataset = dataset
        self.weight = weight
        self.ledger = ledger
        self.cap = cap
        self.tune = tune
        self.seconds = seconds
        self.progress = progress
        self.weak_protection = weak_protection

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What was given, by name; ``Synthesizer(**params)`` is the same one, not fitted."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    get_parameters = get_params  # SDV's word

    def __repr__(self) -> str:
        state = f"release of {self.release_.plan!r}" if hasattr(self, "release_") else "not fitted"
        return f"Synthesizer({str(self.folder)!r}, {state})"

    # ---------------------------------------------------------------- before anything is spent

    def plan(self) -> Plan:
        """What `fit` will ask, at which noise: from public data only, spends nothing.

        The plan is kept beside the folder, as FOLDER.plan.toml, and `fit` goes on with it. `advice_` says what a
        rehearsal on the public table expects of it: whether measuring is worth its price.
        """
        self.plan_, self.advice_ = self._planned()
        return self.plan_

    def _planned(self) -> tuple[Plan, str]:
        """The plan, the one that is kept or a new one, and the advice."""
        if self.public is None:
            raise DataError("there is no public table: give public=, from which the estimates start")
        if bool(self.levels) != (self.groups is not None):
            raise PradeError("groups and levels go together: give both, or neither and everybody is one group")
        listed, unit = Groups.of(self.groups), Unit() if self.unit is None else self.unit
        levels = [self.levels] if isinstance(self.levels, str) else self.levels
        schema = self._schema(listed, unit)
        simple = simplest_plan(self.dataset, schema, self._budget(), unit, levels, listed)
        made = kept_plan(self.folder, simple)
        if made is None:
            rows = self._rows(simple)
            made, advice = tuned_plan(simple, rows, self.seconds, self.progress) if self.tune else (simple, "")
            made.save(plan_beside(self.folder))
        else:
            advice = str(made.expected or "")
        files = self._files()
        return made.with_public(files and files.hashed()), advice or NOT_REHEARSED

    def _schema(self, groups: Groups, unit: Unit) -> Schema:
        if isinstance(self.schema, Schema):
            return self.schema
        if isinstance(self.schema, (str, PathLike)):
            return Schema.load(self.schema)
        if self.schema is not None:
            raise PradeError(
                f"schema is a {type(self.schema).__name__}; give a prade.Schema, the path of its file, or None to "
                "propose one from the public table"
            )
        table = self._table()
        names = read_table(table).column_names
        places = [name for name in groups.names if name in names]
        identifiers = [name for name in names if name == unit.person_id]
        return Schema.infer(table, groups=places, weight=self.weight, skip=identifiers)

    def _budget(self) -> Budget:
        if isinstance(self.epsilon, Budget):
            if self.delta is not None:
                raise PradeError("epsilon is a Budget, which has its own delta: leave delta out")
            return self.epsilon
        return Budget.pure(self.epsilon) if self.delta is None else Budget.approx(self.epsilon, self.delta)

    # ---------------------------------------------------------------- the public table

    def _files(self) -> PublicFiles | None:
        """The public files, None for a table in memory."""
        paths = [self.public] if isinstance(self.public, (str, PathLike)) else self.public
        if isinstance(paths, (list, tuple)) and paths and all(isinstance(path, (str, PathLike)) for path in paths):
            return PublicFiles.at(paths, self.weight)
        return None

    def _table(self) -> Any:
        """The public table as `read_table` takes it."""
        if self.public is None:
            raise DataError("the release does not say where its public table is: load it with public=")
        files = self._files()
        return self.public if files is None else files.source()

    def _rows(self, plan: Plan) -> Public:
        return Public.of(plan.schema, self._table(), group_columns(plan.groups, plan.schema), weight=self.weight)

    # ---------------------------------------------------------------- fit

    def fit(self, data: Any, *, again: bool = False, **refused: Any) -> Synthesizer:
        """Measure the private table, which spends the budget, and estimate every group.

        `data` is a pandas, polars or pyarrow table, a file, a database address; it is not kept. With the same
        parameters a second fit finds the release in the folder: it spends nothing, does not look at `data`, and warns
        that it did not. Other rows need another folder, and budget. A fit that fails leaves the object as it was.
        `again` pays once more for a plan whose release was lost.
        """
        from prade.measuring.public_overlap import refuse_public
        from prade.measuring.run import measure

        for name in refused:
            if name not in _REFUSED:
                raise TypeError(f"fit() takes the private table and again=, not {name!r}")
            raise PradeError(f"fit does not take {name}: {_REFUSED[name]}")
        if not (Path(self.folder) / MANIFEST).exists():  # what `measure` would refuse, before rehearsals read a file
            refuse_weak(self._budget(), self.weak_protection)
            refuse_public(data, self.public)
        plan, advice = self._planned()
        ledger, cap = self._ledger(), self._cap(plan)
        if cap is None and not ledger.knows(plan.dataset):
            need_on_record(plan, Path(self.folder).resolve(), ledger)
            raise not_entered(plan, ledger, "cap=, or ")
        before = ledger.times_paid(plan.dataset, plan.hash)
        terms = {"again": again, "public": self.public, "weak_protection": self.weak_protection}
        release = measure(plan, data, self.folder, ledger, cap=cap, **terms)
        spent = plan.budget if ledger.times_paid(plan.dataset, plan.hash) > before else None
        estimates = estimates_of(release, self._rows(plan), threads=cores(), progress=self.progress)
        self.plan_, self.advice_ = plan, advice
        self.release_, self.estimates_, self.spent_ = release, estimates, spent
        if spent is None:
            warnings.warn(
                f"{self.folder} has this plan's release already: nothing was spent, and the table given now was not "
                "looked at. Other rows need another folder",
                stacklevel=2,
            )
        return self

    def fit_sample(self, data: Any, num_rows: int | None = None, seed: int | None = None, **refused: Any) -> Any:
        """`fit`, then `sample`; without `num_rows` as many rows as were estimated, for the true number is private."""
        return self.fit(data, **refused).sample(num_rows, seed)

    def _ledger(self) -> Ledger:
        if isinstance(self.ledger, Ledger):
            return self.ledger
        if self.ledger is not None and not isinstance(self.ledger, (str, PathLike)):
            raise PradeError(f"ledger is {self.ledger!r}; give a Ledger or the path of its file: none is no choice")
        return Ledger(custodian_ledger() if self.ledger is None else self.ledger)

    def _cap(self, plan: Plan) -> Budget | None:
        if self.cap is None or isinstance(self.cap, Budget):
            return self.cap
        if plan.budget.kind == "approx":
            raise PradeError(
                f"cap is {self.cap!r}, but the plan has a delta too: give cap=Budget.approx(epsilon, delta)"
            )
        return Budget(plan.budget.kind, (exact(self.cap, "the cap"),))

    # ---------------------------------------------------------------- what comes of it: free, as often as wanted

    def sample(
        self,
        num_rows: int | None = None,
        seed: int | None = None,
        *,
        groups: Mapping[str, Any] | None = None,
        like: Like | None = None,
    ) -> Any:
        """Synthetic rows: `num_rows` in all, shared out in proportion to the groups' estimated numbers of rows.

        None draws the estimated numbers themselves. `groups` draws from some groups only, by their value or values in
        columns of the list of groups: ``groups={"STATE": 17, "PUMA": [100, 200]}``. The same seed draws the same rows,
        None others each time. The table is of the public table's kind, with its types; `like` ("pandas", "polars",
        "pyarrow") asks for another.
        """
        estimates = self._fitted().estimates_
        table = self._table()
        if num_rows is not None or groups is not None:
            estimates = resized(estimates, num_rows, groups)
        seed = secrets.randbits(63) if seed is None else seed
        threads = cores()
        return drawn_table(
            estimates, table, seed, weight=self.weight, threads=threads, like=like, progress=self.progress
        )

    def answer(self, query: str, by: str | Sequence[str] = ()) -> Any:
        """How many rows satisfy a query such as "AGE >= 65 and SEX == 2", by group: see `Estimates.answer`."""
        return self._framed(self._fitted().estimates_.answer(query, by))

    def marginal(self, columns: str | Sequence[str], by: str | Sequence[str] = ()) -> Any:
        """The marginal of some columns by group: see `Estimates.marginal`."""
        return self._framed(self._fitted().estimates_.marginal(columns, by))

    def account(self) -> str:
        """In words: under which promise, what was asked, at which noise, what it cost, what remained."""
        return self._fitted().release_.account()

    def report(self, path: str | PathLike[str] | None = None, **options: Any) -> Path:
        """Write an HTML page about the release, and say where it is: see `prade.reporting.report.write_report`.

        The page shows rows too: they are drawn into the folder, as `prade sample` does, unless they are there already.
        """
        from prade.reporting.report import write_report

        release = self._fitted().release_
        if not is_kept(release, KEPT_ROWS):
            write_rows(self.sample(seed=0, like="pyarrow"), release.path / SYNTHETIC, release)
        return write_report(release, path, progress=self.progress, **options)

    def _fitted(self) -> Synthesizer:
        if not hasattr(self, "release_"):
            raise NotFittedError(
                "this synthesizer has not seen a private table: call fit(data) first, or Synthesizer.load(folder) for "
                "a release that was made before"
            )
        return self

    def _framed(self, table: Any) -> Any:
        return Decoder(self.estimates_.plan.schema, [], {}).framed(table, kind_of(self.public))

    # ---------------------------------------------------------------- the folder

    def save(self, folder: str | PathLike[str]) -> None:
        """Copy the release, whole or not at all, to another folder; the one that `fit` made needs no saving."""
        source, place = self._fitted().release_.path, Path(folder).absolute()
        if place.exists():
            raise DataError(f"{place} exists already, and what is there is kept: give the name of a new folder")
        if not place.parent.is_dir():
            raise DataError(f"there is no folder {place.parent} to save in; make it first")
        with tempfile.TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as beside:
            os.replace(shutil.copytree(source, Path(beside) / place.name), place)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        public: Any = None,
        *,
        weight: str | None = None,
        ledger: Ledger | str | PathLike[str] | None = None,
    ) -> Synthesizer:
        """The fitted synthesizer of a release's folder, however the release was made: no private row is needed.

        Answers need nothing but the folder. Drawing rows takes values from the public table: `public` (and the column
        of its `weight`) must be given when `fit` was given a table in memory, or the file is now elsewhere.
        """
        release = Release.load(folder)
        plan, files = release.plan, release.plan.public
        given = there = public is not None
        if public is None and files is not None:
            public, weight = files.files, files.weight
            there = all(Path(file).is_file() for file in files.files)
        listed = plan.groups if plan.groups.names else None
        found = cls(
            plan.schema,
            plan.budget,
            public=public,
            folder=folder,
            groups=listed,
            levels=[level.by for level in plan.levels if level.by],
            unit=plan.unit,
            dataset=plan.dataset,
            weight=weight,
            ledger=ledger,
        )
        if given and files is not None and (now := found._files()) is not None:
            files.moved_to(now)
        if there or not is_kept(release, KEPT_ESTIMATES):
            estimates = estimates_of(release, found._rows(plan), threads=cores())
        else:
            estimates = kept_estimates(release)
        found.plan_, found.release_, found.estimates_, found.spent_ = plan, release, estimates, None
        found.advice_ = str(plan.expected or NOT_REHEARSED)
        return found
