"""Laws of the ledger: after any sequence of operations, exactly what was not given back is spent, within the cap.

A model that shares no code with the ledger does the same with fractions: which entries exist, for which of them noise
was drawn, which were given back. The ledger must agree with it on every refusal and every number.
"""

import tempfile
from fractions import Fraction
from pathlib import Path
from shutil import rmtree

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from prade.core.errors import BudgetError, PradeError
from prade.privacy.budget import Budget
from prade.privacy.ledger import Ledger
from prade.privacy.protection import Unit

CAP = Fraction(1)
costs = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(3, 5), max_denominator=50)
plans = st.sampled_from("pq")
folders = st.sampled_from([None, "/a", "/b"])
numbers = st.integers(1, 6)
stages = st.sampled_from(["count", "draw", "write"])


class Accounts(RuleBasedStateMachine):
    """The ledger beside a model of it."""

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = Ledger(self.folder / "l")
        self.ledger.open_dataset("d", Unit(1), Budget.pure(CAP))
        self.cap = CAP
        self.entries = []
        self.opened = None  # the most that may have been spent by the end of each year
        self.year = 0

    def teardown(self):
        if hasattr(self, "folder"):
            rmtree(self.folder)

    @property
    def spent(self):
        return sum((entry["cost"] for entry in self.entries if not entry["returned"]), Fraction(0))

    @rule(plan=plans, cost=costs, folder=folders, again=st.booleans())
    def reserve(self, plan, cost, folder, again):
        terms = {"again": again, "folder": folder}
        mine = [entry for entry in self.entries if entry["plan"] == plan and not entry["returned"]]
        same = [entry for entry in mine if (entry["cost"], entry["folder"], entry["drawn"]) == (cost, folder, False)]
        limit = self.cap if self.opened is None else self.opened[self.year]
        if folder is not None and same:
            self.ledger.check("d", plan, Budget.pure(cost), **terms)
            found = self.ledger.reserve("d", plan, Budget.pure(cost), **terms)
            assert (found.id, found.state) == (same[-1]["id"], "reserved")
            same[-1]["resumed"] += 1
        elif (mine and not again) or self.spent + cost > limit:
            for act in (self.ledger.check, self.ledger.reserve):
                with pytest.raises(BudgetError):
                    act("d", plan, Budget.pure(cost), **terms)
        else:
            self.ledger.check("d", plan, Budget.pure(cost), **terms)
            entry = self.ledger.reserve("d", plan, Budget.pure(cost), **terms)
            assert entry.id == len(self.entries) + 1
            facts = {"id": entry.id, "plan": plan, "cost": cost, "folder": folder}
            self.entries.append({**facts, "drawn": False, "returned": False, "hash": None, "failures": 0, "resumed": 0})

    @rule(number=numbers)
    def draw(self, number):
        entry = self.of(number)
        if entry is None or entry["drawn"] or entry["returned"]:
            with pytest.raises(PradeError):
                self.ledger.start_drawing(number)
        else:
            assert self.ledger.start_drawing(number).state == "drawing"
            entry["drawn"] = True

    @rule(number=numbers)
    def give_back(self, number):
        entry = self.of(number)
        if entry is None or entry["drawn"] or entry["returned"]:
            with pytest.raises(PradeError):
                self.ledger.give_back(number, "why")
        else:
            before = self.ledger.remaining("d")
            assert self.ledger.give_back(number, "why").state == "returned"
            assert self.ledger.remaining("d") == before + Budget.pure(entry["cost"])
            entry["returned"] = True

    @rule(number=numbers, stage=stages)
    def fail(self, number, stage):
        entry, before = self.of(number), self.ledger.remaining("d")
        if entry is None:
            with pytest.raises(PradeError):
                self.ledger.fail(number, stage, "DataError")
        else:
            self.ledger.fail(number, stage, "DataError")
            entry["failures"] += 1
        assert self.ledger.remaining("d") == before

    @rule(number=numbers, digest=st.sampled_from(["h", "g"]))
    def commit(self, number, digest):
        entry = self.of(number)
        if entry is None or not entry["drawn"] or entry["hash"] not in (None, digest):
            with pytest.raises(PradeError):
                self.ledger.commit(number, digest)
        else:
            assert self.ledger.commit(number, digest).state == "committed"
            entry["hash"] = digest

    @rule(more=costs)
    def raise_cap(self, more):
        self.cap += more
        self.ledger.raise_cap("d", Budget.pure(self.cap), "why")

    @rule(years=st.integers(1, 3))
    def divide(self, years):
        self.ledger.divide("d", years)
        left = self.cap - self.spent
        self.opened, self.year = [self.spent + left * year / years for year in range(1, years + 1)], 0

    @rule()
    def next_year(self):
        if self.opened is None or self.year + 1 == len(self.opened):
            with pytest.raises(PradeError):
                self.ledger.next_year("d")
        else:
            self.ledger.next_year("d")
            self.year += 1

    @invariant()
    def the_ledger_agrees(self):
        if not hasattr(self, "ledger"):
            return
        statement = Ledger(self.ledger.path).statement("d")
        assert statement.remaining.epsilon == self.cap - self.spent >= 0
        assert statement.spent.epsilon == self.spent
        assert sum(entry.cost.epsilon for entry in statement.entries if entry.state != "returned") <= self.cap
        for entry, known in zip(statement.entries, self.entries, strict=True):
            assert (entry.drawn, entry.returned is not None) == (known["drawn"], known["returned"])
            assert (entry.measurements_hash, len(entry.failures)) == (known["hash"], known["failures"])
            assert (entry.state == "returned", entry.state == "committed") == (
                known["returned"],
                known["hash"] is not None,
            )
            assert len(entry.resumed) == known["resumed"]
        if self.opened is not None:
            division = statement.dataset.division
            assert division is not None
            left = division.left_this_year(statement.spent).epsilon
            assert left == self.opened[self.year] - self.spent >= 0
            # a later year has no less than its share, whatever was given back
            assert all(later - self.opened[self.year] + left <= statement.remaining.epsilon for later in self.opened)

    def of(self, number):
        return self.entries[number - 1] if number <= len(self.entries) else None


TestAccounts = Accounts.TestCase
TestAccounts.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
