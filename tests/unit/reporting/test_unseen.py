"""Values that no public row has: named when the answers show them, and hardly ever otherwise."""

import math
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from prade import Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.data.public.public import Public
from prade.estimating.levels.answers import RawAnswers
from prade.queries.parts import Marginal
from prade.reporting.use_and_care import cell_texts, unseen_values

KIND = Column("KIND", "categorical", values=list(range(600)), title="Kind", labels={7: "rare"})
SCHEMA = Schema([KIND, Column("SEX", "categorical", values=[1, 2], labels={1: "men", 2: "women"})])


def looked_at(counts, scale):
    """What is found with these answers about KIND; the public rows have its first value only."""
    asked = Workload.marginals(SCHEMA, ["KIND"])
    plan = Plan("survey", SCHEMA, Budget.pure(1), Unit(1), [Level((), asked)])
    public = Public.of(SCHEMA, pa.table({"KIND": [0, 0], "SEX": [1, 2]}))
    q = math.exp(-1 / scale)
    answers = RawAnswers(tuple(asked), [counts[None]], np.array([[2 * q / (1 - q) ** 2]]), np.ones(1), np.ones(1))
    facts = SimpleNamespace(views=[SimpleNamespace(answers=answers)])
    return unseen_values(SimpleNamespace(plan=plan, public=public), facts)


def discrete_laplace(generator, scale, size):
    p = 1 - math.exp(-1 / scale)
    return generator.geometric(p, size) - generator.geometric(p, size)


def test_noise_alone_is_hardly_ever_taken_for_rows():
    """400 pages of 599 absent cells: at most 1 % of pages, so more than 13 by chance less than once in 10,000."""
    generator = np.random.default_rng(5)
    wrong = sum(bool(looked_at(discrete_laplace(generator, 8.0, 600), 8.0)) for _ in range(400))
    assert wrong <= 13
    four = 4 * 8.0 * math.sqrt(2)  # the limit of four standard deviations would be exceeded on most pages
    assert np.mean([(discrete_laplace(generator, 8.0, 599) > four).any() for _ in range(100)]) > 0.5


def test_what_the_answers_show_is_named_by_its_label():
    counts = np.zeros(600)
    counts[0], counts[7] = 5000, 200
    assert looked_at(counts, 8.0) == ["Kind rare"]
    assert cell_texts(Marginal.of(SCHEMA, ["SEX", "KIND"]), SCHEMA)[7] == "SEX men, Kind rare"
