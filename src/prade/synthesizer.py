"""`fit` and `sample`: all five stages as one object, for people who come from SDV, smartnoise-synth or scikit-learn.

It holds what was given and what came of it, and calls `prade.pipeline`: a release made here and one made by the command
`prade synthesize` are the same.
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
from prade.core.progress import Progress
from prade.data.decode import Decoder, Like
from prade.data.groups import Groups
from prade.data.public_table import PublicTable
from prade.data.schema import Schema
from prade.estimating.levels.estimates import Estimates
from prade.pipeline import NOT_REHEARSED, Terms, estimate, fit, keep_rows, kept_or_new_plan, report, sample
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.unit import Unit
from prade.release.derived_files import KEPT_ROWS, is_kept
from prade.release.release import Release

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

    ``fit(private, public)`` spends epsilon, once; everything after it is free and may be repeated. The constructor
    keeps what it is given; `plan` and `fit` read it. Results have names that end in an underscore.

    epsilon: a number (with `delta`, Gaussian noise), or a `Budget`. public: the public table, file or files that the
    estimates start from, here or in `fit`; `weight` is a column of its weights. schema: a `Schema` or the path of its
    file; without one, a first draft is made from the public table, with a warning, and kept as FOLDER.schema.toml.
    folder: the release to make; it is also the saved form. groups: the public list of groups (None: everybody is one),
    `levels` its columns from coarse to fine. unit: how many rows a person may have. ledger: the file of the account,
    the custodian's own when not given; `dataset` is the private table's name in it. cap: for a data set that the ledger
    does not know yet, the most that may ever be spent on it, a number or a `Budget`; `prade ledger open` enters it too.
    weak_protection: whether to spend a budget that hardly protects, such as an epsilon above 20. tune: whether to
    choose the plan by rehearsal on the public table, in about `seconds`. against_advice: whether to measure although
    the rehearsal expects the public table alone to be better. progress(what, done, all) is told how far it is.

    What is different from other tools, because it would break the promise:

    * A public table must be given, and must not be the private one: values, types and combinations come from it.
    * No column type, range or list of values is inferred from private rows; the schema declares them before.
    * The noise has no seed. `sample` has one.
    * There is no fit without a ledger, and no second price for the same plan: `fit` again finds the release.
    * `fit_sample` returns as many rows as were estimated, not as many as the private table has: that is private.
    * There is one method, so nothing like ``create("mst")``; a saved synthesizer is a folder of readable files.

    >>> from prade import Unit
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=300, places_per_state=2, years=[2023, 2024])
    >>> synthesizer = Synthesizer(epsilon=4, schema=data.schema, folder="release", groups=data.groups,
    ...     levels=["STATE", "PLACE"], unit=Unit(data.max_rows, person_id="PERSON"), tune=False, cap=8)
    >>> rows = synthesizer.fit(data.private, public=data.public.to_pandas()).sample(100, seed=1)
    >>> type(rows).__name__, len(rows), str(synthesizer.spent_)
    ('DataFrame', 100, 'epsilon = 4 (pure differential privacy)')
    >>> Synthesizer.load("release", public=data.public.to_pandas()).sample(100, seed=1).equals(rows)
    True
    """

    advice_: str  # in plain words, whether measuring is worth its price
    plan_: Plan
    release_: Release
    estimates_: Estimates
    public_: PublicTable  # as the latest plan or fit read it
    spent_: Budget | None  # by the latest fit; None: the release was there already

    def __init__(
        self,
        epsilon: Number | Budget,
        *,
        public: Any = None,
        schema: Schema | str | PathLike[str] | None = None,
        folder: str | PathLike[str] = "release",
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
        against_advice: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.public = public
        self.schema = schema
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
        self.against_advice = against_advice

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What was given, by name; ``Synthesizer(**params)`` is the same one, not fitted."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    get_parameters = get_params  # SDV's word

    def __repr__(self) -> str:
        state = f"release of {self.release_.plan!r}" if hasattr(self, "release_") else "not fitted"
        return f"Synthesizer({str(self.folder)!r}, {state})"

    # ---------------------------------------------------------------- before anything is spent

    def plan(self, public: Any = None) -> Plan:
        """What `fit` will ask, at which noise: from public data only, spends nothing.

        The plan is kept beside the folder, as FOLDER.plan.toml, and `fit` goes on with it. `advice_` says what a
        rehearsal on the public table expects of it: whether measuring is worth its price.
        """
        table = self._table(public)
        made = kept_or_new_plan(self._task(table), table, self.folder, self._terms(), self.progress)
        self.plan_, self.advice_, self.public_ = made, _advice(made), table
        return made

    def _table(self, public: Any = None) -> PublicTable:
        """The public table, which is read once for all that follows."""
        given = self.public if public is None else public
        known: PublicTable | None = getattr(self, "public_", None)
        if known is not None and (given is None or known.given is given) and known.weight == self.weight:
            return known
        return PublicTable(given, self.weight)

    def _task(self, table: PublicTable) -> Task:
        listed, unit = Groups.of(self.groups), Unit() if self.unit is None else self.unit
        what = self._budget(), unit, self.levels, listed
        if self.schema is None:
            return Task(self.dataset, self._drafted(table, listed, unit), *what)
        if not isinstance(self.schema, (Schema, str, PathLike)):
            raise PradeError(
                f"schema is a {type(self.schema).__name__}; give a prade.Schema, the path of its file, or None to "
                "draft one from the public table"
            )
        return Task(self.dataset, self.schema, *what)

    def _drafted(self, table: PublicTable, groups: Groups, unit: Unit) -> Schema:
        """A schema from the public table, kept beside the folder; the one that is kept there already is used again."""
        path = Path(f"{Path(self.folder).absolute()}.schema.toml")
        if path.exists():
            return Schema.load(path)
        names = table.typed.column_names
        identifiers = [name for name in names if name == unit.person_id]
        drafted = table.draft([name for name in groups.names if name in names], identifiers)
        drafted.save(path)
        warnings.warn(
            f"no schema was given: {path} is a first draft from the public table, with {len(drafted.coded)} columns. "
            "Read it, add values that the public table happens not to have, and give it as schema=",
            stacklevel=4,
        )
        return drafted

    def _budget(self) -> Budget:
        if isinstance(self.epsilon, Budget):
            if self.delta is not None:
                raise PradeError("epsilon is a Budget, which has its own delta: leave delta out")
            return self.epsilon
        return Budget.pure(self.epsilon) if self.delta is None else Budget.approx(self.epsilon, self.delta)

    def _terms(self, again: bool = False) -> Terms:
        return Terms(self.ledger, self.cap, self.tune, self.seconds, again, self.weak_protection, self.against_advice)

    # ---------------------------------------------------------------- fit

    def fit(self, data: Any, public: Any = None, *, again: bool = False, **refused: Any) -> Synthesizer:
        """Measure the private table, which spends the budget, and estimate every group.

        `data` is a pandas, polars or pyarrow table, a file, or a database address; it is not kept. `public` is the
        public table, unless the constructor has it. With the same parameters a second fit finds the release in the
        folder: it spends nothing, does not look at `data`, and warns that it did not. Other rows need another folder,
        and budget. A fit that fails leaves the object as it was. `again` pays once more for a plan whose release was
        lost.
        """
        for name in refused:
            if name not in _REFUSED:
                raise TypeError(f"fit() takes the private table, the public one and again=, not {name!r}")
            raise PradeError(f"fit does not take {name}: {_REFUSED[name]}")
        table = self._table(public)
        fitted = fit(self._task(table), data, table, self.folder, self._terms(again), progress=self.progress)
        self.plan_, self.advice_, self.public_ = fitted.plan, _advice(fitted.plan), table
        self.release_, self.estimates_ = fitted.release, fitted.estimates
        self.spent_ = fitted.plan.budget if fitted.spent else None
        if not fitted.spent:
            warnings.warn(
                f"{self.folder} has this plan's release already: nothing was spent, and the table given now was not "
                "looked at. Other rows need another folder",
                stacklevel=2,
            )
        return self

    def fit_sample(self, data: Any, num_rows: int | None = None, seed: int | None = None, **options: Any) -> Any:
        """`fit`, then `sample`; without `num_rows` as many rows as were estimated, for the true number is private."""
        return self.fit(data, **options).sample(num_rows, seed)

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
        seed = secrets.randbits(63) if seed is None else seed
        table, progress = self._drawn_from(), self.progress
        return sample(estimates, table, seed=seed, rows=num_rows, groups=groups, like=like, progress=progress)

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
        """Write an HTML page about the release, and say where it is: see `prade.report`.

        The page shows rows too: they are drawn into the folder, as `prade sample` does, unless they are there already.
        """
        release = self._fitted().release_
        if not is_kept(release, KEPT_ROWS):
            keep_rows(self.sample(seed=0, like="pyarrow"), release)
        return report(release, path, progress=self.progress, **options)

    def _fitted(self) -> Synthesizer:
        if not hasattr(self, "release_"):
            raise NotFittedError(
                "this synthesizer has not seen a private table: call fit(data) first, or Synthesizer.load(folder) for "
                "a release that was made before"
            )
        return self

    def _drawn_from(self) -> PublicTable:
        if self.public is None and not hasattr(self, "public_"):
            raise DataError("the release does not say where its public table is", remedy="public")
        return self._table()

    def _framed(self, table: Any) -> Any:
        like = self._table().like if self.public is not None or hasattr(self, "public_") else "pyarrow"
        return Decoder(self.estimates_.plan.schema, [], {}).framed(table, like)

    # ---------------------------------------------------------------- the folder

    def save(self, folder: str | PathLike[str]) -> None:
        """Copy the release, whole or not at all, to another folder; the one that `fit` made needs no saving."""
        source, target = self._fitted().release_.path, Path(folder).absolute()
        if target.exists():
            raise DataError(f"{target} exists already, and what is there is kept: give the name of a new folder")
        if not target.parent.is_dir():
            raise DataError(f"there is no folder {target.parent} to save in; make it first")
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
            os.replace(shutil.copytree(source, Path(beside) / target.name), target)

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
        given = public is not None
        if public is None and files is not None:
            public, weight = files, files.weight
        there = given or (files is not None and all(Path(file).is_file() for file in files.files))
        found = cls(
            plan.budget,
            public=public,
            schema=plan.schema,
            folder=folder,
            groups=plan.groups if plan.groups.names else None,
            levels=[level.by for level in plan.levels if level.by],
            unit=plan.unit,
            dataset=plan.dataset,
            weight=weight,
            ledger=ledger,
        )
        if there:
            found.public_ = found._table()
        found.plan_, found.release_, found.spent_, found.advice_ = plan, release, None, _advice(plan)
        found.estimates_ = estimate(release, found.public_ if there else None)
        return found


def _advice(plan: Plan) -> str:
    if plan.expected is None:
        return NOT_REHEARSED
    return plan.expected.advice or str(plan.expected)
