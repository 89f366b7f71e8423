"""All five stages in one object with `fit` and `sample`, for users of SDV, smartnoise-synth or scikit-learn.

A `Synthesizer` holds its parameters and results, and calls `prade.pipeline`. It makes the same releases as the command
`prade synthesize`.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.execution import EFFORT, Execution
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public.table import PublicTable
from prade.data.read.frames import DeclaredTypes, Frame, Like
from prade.estimating.levels.estimates import Estimates
from prade.measuring.source import refuse_early
from prade.pipeline import estimate, fit, kept_or_new_plan, sample, write_sample
from prade.planning.plan import Plan
from prade.planning.task import Target, Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.protection import Unit
from prade.release.derived_files import KEPT_ROWS, is_kept
from prade.release.release import Release
from prade.release.terms import Terms, drafted_schema
from prade.reporting.report import report
from prade.sampling.table import like_public

Names = str | Sequence[str]


class NotFittedError(PradeError, AttributeError):
    """A result was requested before `fit` or `load`."""


@dataclass(eq=False, repr=False)
class Synthesizer:
    """Make synthetic rows like those of a private table, from a public table and a privacy budget.

    ``fit(private, public)`` spends epsilon once; everything after it is free and can be repeated. The constructor only
    stores its arguments, which `plan` and `fit` use. The names of results end in an underscore.

    * epsilon: a number, or a `Budget`. With `delta`, the noise is Gaussian or Laplace, whichever is better.
    * public: the public table, file or files that the estimates start from, given here or to `fit`. `weight` names the
      column with its weights.
    * schema: a `Schema` or the path of its file. Without one, `plan` or `fit` drafts a schema from the public table,
      warns, and keeps the draft as FOLDER.schema.toml.
    * folder: where to write the release.
    * groups: the public list of groups; None treats everybody as one group. `levels` are its columns, coarse to fine.
    * targets: what must be right first, each a `Target`, or the path of their file.
    * unit: the unit of protection, that is, how many rows one person may have.
    * ledger: the ledger or its file; by default the custodian's own. `dataset` is the private table's name in it.
    * cap: the most that may ever be spent on a data set that the ledger does not know yet, a number or a `Budget`. You
      can also enter it with `prade ledger open`.
    * tune: whether to choose the plan by rehearsal on the public table; `effort` and `seconds` are for `prade.plan`.
    * weak_protection: whether to accept a budget that hardly protects, such as an epsilon above 20.
    * against_advice: whether to measure even if the rehearsal expects the public table alone to be better.
    * execution: threads or an executor for what is not private, and a function that hears of progress.

    Some things differ from other tools, because they would break the promise:

    * You must give a public table, and it must not be the private one: values, types and combinations come from it.
    * No column type, range or list of values is inferred from private rows; the schema declares them beforehand.
    * The noise has no seed. `sample` takes one.
    * Every fit is recorded in a ledger, and the same plan is paid for once: a second `fit` finds the release.
    * The release folder is the saved synthesizer.

    >>> from prade import Unit
    >>> from prade.examples import census_like
    >>> data = census_like(persons=300, places_per_state=2, years=[2023, 2024])
    >>> synthesizer = Synthesizer(epsilon=4, schema=data.schema, folder="release", groups=data.groups,
    ...     levels=["STATE", "PLACE"], unit=Unit(data.max_rows, person_id="PERSON"), tune=False, cap=8)
    >>> rows = synthesizer.fit(data.private, public=data.public.to_pandas()).sample(100, seed=1)
    >>> type(rows).__name__, len(rows), str(synthesizer.spent_)
    ('DataFrame', 100, 'epsilon = 4 (pure differential privacy)')
    >>> Synthesizer.load("release", public=data.public.to_pandas()).sample(100, seed=1).equals(rows)
    True
    """

    epsilon: Number | Budget
    _: KW_ONLY
    public: Any = None
    schema: Schema | str | PathLike[str] | None = None
    folder: str | PathLike[str] = "release"
    groups: Any = None
    levels: Sequence[Names] = ()
    delta: Number | None = None
    unit: Unit | None = None
    dataset: str = "private"
    weight: str | None = None
    ledger: Ledger | str | PathLike[str] | None = None
    cap: Number | Budget | None = None
    tune: bool = True
    effort: float = EFFORT
    seconds: float | None = None
    execution: Execution = Execution()
    weak_protection: bool = False
    against_advice: bool = False
    targets: Sequence[Target] | str | PathLike[str] = ()

    plan_: Plan = field(init=False)
    release_: Release = field(init=False)
    estimates_: Estimates = field(init=False)
    public_: PublicTable = field(init=False)  # as read by the latest plan or fit
    spent_: Budget | None = field(init=False)  # by the latest fit; None if the folder already had the release

    def __repr__(self) -> str:
        state = "fitted" if hasattr(self, "release_") else "not fitted"
        return f"<Synthesizer of epsilon {self.epsilon!r} in the folder {str(self.folder)!r}, {state}>"

    # ---------------------------------------------------------------- plan

    def plan(self, public: Any = None) -> Plan:
        """Decide what `fit` will measure, and with which noise, from public data only. This spends nothing.

        The plan is kept beside the folder as FOLDER.plan.toml, and `fit` uses it. Its ``advice`` says what error the
        rehearsal expects, and whether measuring is worth its cost.
        """
        table = self._table(public)
        self.plan_ = kept_or_new_plan(self._task(table), table, self.folder, self._terms(), execution=self.execution)
        self.public_ = table
        return self.plan_

    def _table(self, public: Any = None) -> PublicTable:
        """Return the public table, which is read once in a plan or fit: it may change between them."""
        if public is not None and self.public is not None and public is not self.public:
            raise PradeError("the constructor has a public table already, and this is another one: give one of them")
        known = self.public_.given if hasattr(self, "public_") else None  # given to `plan`
        given = next((each for each in (public, self.public, known) if each is not None), None)
        return PublicTable(given, self.weight)

    def _task(self, table: PublicTable) -> Task:
        groups, unit = Groups.of(self.groups), Unit() if self.unit is None else self.unit
        schema = drafted_schema(self.folder, table, groups, unit) if self.schema is None else self.schema
        return Task(self.dataset, schema, self._budget(), unit, self.levels, groups, (), self.targets)

    def _budget(self) -> Budget:
        if isinstance(self.epsilon, Budget):
            if self.delta is not None:
                raise PradeError("epsilon is a Budget, which includes delta: leave delta out")
            return self.epsilon
        return Budget.pure(self.epsilon) if self.delta is None else Budget.approx(self.epsilon, self.delta)

    def _terms(self, again: bool = False) -> Terms:
        how = self.tune, self.effort, self.seconds, again, self.weak_protection, self.against_advice
        return Terms(self.ledger, self.cap, *how)

    # ---------------------------------------------------------------- fit

    def fit(self, data: Any, public: Any = None, *, again: bool = False) -> Synthesizer:
        """Measure the private table and estimate every group. This spends the budget.

        `data` is a pandas, polars or pyarrow table, a file, or a database address; it is not kept. `public` is the
        public table, unless the constructor has it. A second fit with the same parameters finds the release in the
        folder: it spends nothing, does not read `data`, and warns about that. To measure other rows, choose another
        folder and pay again. A fit that fails does not change the object. `again` pays once more for a plan whose
        release was lost.
        """
        table = self._table(public)
        if self.schema is None:  # a draft must not be made from a private table
            refuse_early(self._budget(), data, table, self.folder, self.weak_protection)
        task = self._task(table)
        estimates, spent = fit(task, data, table, self.folder, self._terms(again), execution=self.execution)
        self.estimates_, self.release_, self.plan_, self.public_ = estimates, estimates.release, estimates.plan, table
        table.decoder(task.schema)  # now, so that later changes to a frame do not mix with these estimates
        self.spent_ = self.plan_.budget if spent else None
        if not spent:
            warnings.warn(
                f"{self.folder} already has this plan's release, which was used: nothing was spent, and the private "
                "table given now was not read. To measure other rows, choose another folder",
                stacklevel=2,
            )
        return self

    # ---------------------------------------------------------------- results, which cost nothing

    def sample(
        self,
        num_rows: int | None = None,
        seed: int | None = None,
        *,
        groups: Mapping[str, Any] | None = None,
        like: Like | None = None,
    ) -> Frame:
        """Draw `num_rows` synthetic rows, divided among the groups in proportion to their estimated numbers of rows.

        Without `num_rows`, every group gets its estimated number. `groups` selects some groups by their values in the
        list of groups: ``groups={"STATE": 17, "PUMA": [100, 200]}``. The same seed draws the same rows; None draws
        different rows each time. The result has the types of the public table and is the same kind of table, or the
        kind that `like` names ("pandas", "polars", "pyarrow").
        """
        estimates = self._fitted().estimates_
        seed = secrets.randbits(63) if seed is None else seed
        table, execution = self._drawn_from(), self.execution
        return sample(estimates, table, seed=seed, rows=num_rows, groups=groups, like=like, execution=execution)

    def answer(
        self, query: str, by: Names = (), *, of: str | None = None, labels: bool = False, like: Like | None = None
    ) -> Frame:
        """Estimate how many rows satisfy a query such as "AGE >= 65 and SEX == 2", by group, with 95 % intervals.

        `Estimates.answer` explains "mean(WAGE)" and other statistics, `of`, the query to divide by, and `labels`. The
        result has the types of `sample`, and is the same kind of table, or the kind that `like` names.
        """
        return self._framed(self._fitted().estimates_.answer(query, by, of=of, labels=labels), like)

    def marginal(self, columns: Names, by: Names = (), *, labels: bool = False, like: Like | None = None) -> Frame:
        """Estimate the counts of every combination of these columns' values, by group: see `Estimates.marginal`."""
        return self._framed(self._fitted().estimates_.marginal(columns, by, labels=labels), like)

    def report(self, path: str | PathLike[str] | None = None, **options: Any) -> Path:
        """Write an HTML page about the release and return its path: see `prade.report`.

        The page also shows synthetic rows. If the folder has none, they are drawn and kept there, as by `prade sample`.
        """
        estimates = self._fitted().estimates_
        if not is_kept(estimates.release, KEPT_ROWS):
            write_sample(estimates, None, self._drawn_from(), execution=self.execution)
        return report(estimates, path, **{"execution": self.execution, **options})

    def _fitted(self) -> Synthesizer:
        if not hasattr(self, "release_"):
            raise NotFittedError(
                "this synthesizer has not been fitted: call fit(data) first, or load an earlier release with "
                "Synthesizer.load(folder)"
            )
        return self

    def _drawn_from(self) -> PublicTable:
        """Return the public table that the estimates were made from, which is the latest fit's, whatever came since."""
        if self.public is None and not hasattr(self, "public_"):
            raise DataError("the release does not name its public files", remedy="public")
        return self.public_ if hasattr(self, "public_") else PublicTable(self.public, self.weight)

    def _framed(self, table: Any, like: Like | None) -> Frame:
        plan = self.estimates_.plan
        if hasattr(self, "public_"):
            return like_public(table, plan, self.public_, like)
        return DeclaredTypes().framed(table, like or "pyarrow")

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        public: Any = None,
        *,
        weight: str | None = None,
        ledger: Ledger | str | PathLike[str] | None = None,
    ) -> Synthesizer:
        """Load a fitted synthesizer from a release folder, without the private table.

        Answers need only the folder. Drawing rows takes values from the public table: give `public` (and `weight`, the
        column with its weights) if `fit` had a table in memory, or if the file has moved or lies outside the folder
        that the release is in.
        """
        release = Release.load(folder)
        plan, files = release.plan, release.plan.public
        table = None if public is None else PublicTable(public, weight)
        if public is None and files is not None:
            public, weight = files, files.weight
            with suppress(DataError):  # files that must not be used: answers need none, and `sample` says why
                table = PublicTable(files.checked(), weight)
        loaded = cls(
            plan.budget,
            public=public,
            schema=plan.schema.with_invariants(plan.invariants),
            folder=folder,
            groups=plan.groups if plan.groups.names else None,
            levels=[level.by for level in plan.levels if level.by],
            unit=plan.unit,
            dataset=plan.dataset,
            weight=weight,
            ledger=ledger,
            targets=plan.targets,
        )
        if table is not None:
            loaded.public_ = table
        loaded.plan_, loaded.release_, loaded.spent_ = plan, release, None
        loaded.estimates_ = estimate(release, table)
        return loaded
