"""Plan files: the text is readable, says everything, and an edit gone wrong is answered by what to write instead."""

import datetime
import itertools
import time
import tomllib
from fractions import Fraction

import pytest

from prade.core.errors import DataError, PradeError, SchemaError, WorkloadError
from prade.data.declare.schema import Column, Schema
from prade.planning.plan import Plan
from prade.planning.questions import Level
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from prade.queries.workload import Workload

TEXT = """\
# 3 groups, 2 levels, epsilon = 1 (pure differential privacy)
# STATE (2 groups)
#   number of rows: epsilon = 1/3, Laplace noise of scale 3
#   3 parts, 15 counts in each of 2 groups: epsilon = 1/3, Laplace noise of scale 9
# STATE+PUMA (3 groups)
#   2 parts, 4 counts in each of 3 groups: epsilon = 1/3, Laplace noise of scale 6

version = 2
dataset = "survey"

[budget]
kind = "pure"
epsilon = "1"

[unit]
max_rows = 1
neighbours = "add-remove"

[[level]]
by = ["STATE"]
total = "1"

[[level.ask]]
share = "1"
parts = ["AGE", ["AGE", "SEX"], {queries = ["AGE < 18", "AGE >= 65 and SEX == 'f'", "AGE is missing"]}]

[[level]]
by = ["STATE", "PUMA"]
total = "0"

[[level.ask]]
share = "1"
parts = ["SEX", {columns = ["SEX"], cells = [0, 1], labels = ["men", "women"]}]

[groups]
STATE = [17, 17, 39]
PUMA = ["01", "02", "01"]

[schema]
version = 1

[[schema.column]]
name = "AGE"
kind = "numeric"
integer = true
edges = [18, 65]
missing = true

[[schema.column]]
name = "SEX"
kind = "categorical"
values = ["m", "f"]
"""


@pytest.fixture
def plan() -> Plan:
    schema = Schema(
        [
            Column("AGE", "numeric", edges=(18, 65), integer=True, missing=True),
            Column("SEX", "categorical", values=("m", "f")),
        ]
    )
    queries = [parse(text, schema) for text in ("AGE < 18", "AGE >= 65 and SEX == 'f'", "AGE is missing")]
    parts = [Marginal.of(schema, "AGE"), Marginal.of(schema, ["AGE", "SEX"]), Predicate(*queries)]
    by_sex = [Marginal.of(schema, "SEX"), Cells(["SEX"], [0, 1], 2, ["men", "women"])]
    levels = [Level("STATE", Workload(schema, parts), 1), Level("PUMA", Workload(schema, by_sex), 0)]
    groups = {"STATE": [17, 17, 39], "PUMA": ["01", "02", "01"]}
    return Plan("survey", schema, Budget.pure(1), Unit(), levels, groups)


# ------------------------------------------------------------------ what is written


PLAIN = "2ed6ef08190e73bb40a292458bc83235c376b0db7a52ef792ad27e1f4227e274"  # of this text, by prade 0.9


def test_a_plan_of_version_1_keeps_its_hash():
    """So releases and ledgers of prade 0.9 and before know it; a newer plan's hash has those of its public files."""
    with_files = TEXT.replace("[schema]\n", '[public]\nfiles = ["a.csv"]\nsha256 = ["0f"]\n\n[schema]\n')
    new, old = (Plan.from_toml(with_files.replace("version = 2", f"version = {each}")) for each in (2, 1))
    assert old.hash == Plan.from_toml(TEXT).hash == PLAIN
    assert new.hash != PLAIN
    assert "\nversion = 1\ndataset" in old.to_toml()
    for plan in (new, old):
        assert Plan.from_toml(plan.to_toml()).hash == plan.hash
    other = Plan.from_toml(with_files.replace('"0f"', '"0e"'))
    assert len({new.hash, other.hash, PLAIN}) == 3


def test_the_file_reads_like_this(plan):
    written = plan.to_toml()
    assert tomllib.loads(written) == tomllib.loads(TEXT)
    # line by line, but for spaces inside of inline tables
    squeezed = [text.replace("{ ", "{").replace(" }", "}") for text in (written, TEXT)]
    assert squeezed[0].splitlines() == squeezed[1].splitlines()


def test_what_was_saved_is_loaded(plan, tmp_path):
    path = tmp_path / "plan.toml"
    plan.save(path)
    found = Plan.load(path)
    assert found == plan
    assert (found.schema, found.groups, found.questions) == (plan.schema, plan.groups, plan.questions)
    assert found.to_toml() == path.read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["plan.toml"]


def test_a_plan_of_everybody_needs_no_groups():
    schema = Schema.from_mbi({"age": 10})
    plan = Plan("x", schema, Budget.zcdp("1/3"), Unit(7, "ID", 2), [Level((), Workload.all_marginals(schema, 1))])
    assert Plan.from_toml(plan.to_toml()) == plan
    assert Plan.from_toml(plan.to_toml().replace("[groups]\n", "")) == plan


def test_parts_that_are_all_tables_are_written_as_tables(plan):
    schema, queries = plan.schema, Workload.queries(plan.schema, ["AGE < 18", "AGE < 65"])
    written = Plan("x", schema, Budget.pure(1), Unit(), [Level((), queries, 0)]).to_toml()
    assert '[[level.ask.parts]]\nqueries = ["AGE < 18"]\n\n[[level.ask.parts]]\nqueries = ["AGE < 65"]\n' in written
    assert Plan.from_toml(written).questions[0].parts == queries.parts


def laplace_within_approx(**changes):
    schema = Schema.from_mbi({"age": 10, "sex": 2})
    levels = [Level("PUMA", Workload.all_marginals(schema, 1), 0)]
    return Plan("survey", schema, Budget.approx(1, "1e-9"), Unit(1), levels, {"PUMA": [1, 2]}, **changes)


def test_the_law_of_the_noise_is_in_the_file_where_it_is_not_the_usual_one(tmp_path):
    plan = laplace_within_approx(noise="laplace")
    assert 'dataset = "survey"\nnoise = "laplace"\n' in plan.to_toml()
    plan.save(tmp_path / "plan.toml")
    found = Plan.load(tmp_path / "plan.toml")
    assert (found, found.law, found.questions) == (plan, "laplace", plan.questions)
    assert found.with_public(None).with_labels(found.schema).law == "laplace"
    usual = Plan.from_toml(plan.to_toml().replace('noise = "laplace"', 'noise = "gaussian"'))
    assert usual == laplace_within_approx() != plan
    assert "\nnoise" not in usual.to_toml()


def test_files_without_a_law_mean_what_they_meant_in_earlier_versions():
    plan = laplace_within_approx()
    assert plan.hash == "1afff95e66487698d645090276f97a0031d9be1e50f22e05748f2354dc4efc66"  # by version 0.4
    assert {question.law for question in plan.questions} == {"gaussian"}


def test_names_with_odd_characters(tmp_path):
    odd = ["a`b", 'a"b', "a'''b", "a\nb", "a\x01\x7f\x00b", "a\\b", "größe = [", "]", "#", "\u2028\x85\xa0", " "]
    schema = Schema([Column(name, "categorical", values=tuple(odd)) for name in odd])
    parts = [
        Marginal.of(schema, odd[:3]),
        *(Predicate(parse(f"`{name.replace('`', '``')}` == {name!r}", schema)) for name in odd),
        *(Cells([name], [0] * len(odd), 1, [name]) for name in odd),
    ]
    groups = dict.fromkeys(odd, odd)
    plan = Plan(odd[6], schema, Budget.pure(1), Unit(), [Level(odd, Workload(schema, parts))], groups)
    plan.save(tmp_path / "odd.toml")
    found = Plan.load(tmp_path / "odd.toml")
    assert (found, found.schema, found.groups) == (plan, schema, plan.groups)
    assert found.questions == plan.questions


def test_groups_of_every_type():
    schema = Schema.from_mbi({"age": 10})
    groups = {
        "whole": [1, 2**62],
        "number": [0.1, 1e300],
        "text": ["01", "1"],
        "truth": [True, False],
        "day": [datetime.date(2020, 2, 29), datetime.date(2021, 1, 1)],
    }
    plan = Plan("x", schema, Budget.pure(1), Unit(), [Level(list(groups), Workload.all_marginals(schema, 1))], groups)
    found = Plan.from_toml(plan.to_toml())
    assert found == plan
    assert found.groups == plan.groups
    assert found.groupings[0].values[0] == (1, 0.1, "01", True, "2020-02-29")
    # a person may write dates without quotes
    edited = plan.to_toml().replace('day = ["2020-02-29", "2021-01-01"]', "day = [2020-02-29, 2021-01-01]")
    assert edited != plan.to_toml()
    assert Plan.from_toml(edited) == plan


def test_a_large_plan_is_quick_and_each_array_one_line(tmp_path):
    schema = Schema.from_mbi({f"c{i}": 8 for i in range(20)})
    pairs = itertools.islice(itertools.combinations(schema.names, 2), 180)
    workload = Workload.marginals(schema, [*schema.names, *pairs])
    groups = {name: [f"{i // size:05d}" for i in range(1300)] for name, size in (("S", 50), ("C", 10), ("P", 1))}
    plan = Plan("x", schema, Budget.pure(1), Unit(), [Level("S", workload), Level(["C", "P"], workload)], groups)
    began = time.perf_counter()
    plan.save(tmp_path / "large.toml")
    found = Plan.load(tmp_path / "large.toml")
    assert time.perf_counter() - began < 1
    assert (len(found.groups), found) == (1300, plan)
    lines = (tmp_path / "large.toml").read_text(encoding="utf-8").splitlines()
    assert all(line.startswith(("#", "[")) or " = " in line or not line for line in lines)
    assert len(lines) < 200  # whatever the number of groups and parts


# ------------------------------------------------------------------ files edited by hand


def edited(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new)


def test_the_text_itself_is_a_plan(plan):
    assert Plan.from_toml(TEXT) == plan


def test_a_total_that_is_not_given_is_decided():
    by_puma = Plan.from_toml(edited('total = "0"\n', "")).levels[1]
    assert (by_puma.total, by_puma.share) == (0, 1)  # own 2 * 3^2 = 18, derived 2 * 2 * 2^2 / 2 = 8
    by_state = Plan.from_toml(edited('total = "1"\n', "")).levels[0]
    assert (by_state.total, by_state.share) == (Fraction(1, 4), 1)  # own 2 * 4^2 = 32, derived 18 / (1/4 + 1/8) = 48


def test_a_level_may_ask_for_totals_alone():
    lines = TEXT.split("[[level.ask]]\n")
    level = Plan.from_toml(lines[0] + lines[1].partition("\n\n")[2] + "[[level.ask]]\n" + lines[2]).levels[0]
    assert (level.total, level.asks) == (1, ())


QUERIES = '{queries = ["AGE < 18", "AGE >= 65 and SEX == \'f\'", "AGE is missing"]}'
CELLS = '{columns = ["SEX"], cells = [0, 1], labels = ["men", "women"]}'
FORMS = r"a part is a column, a list of columns, \{queries = \[\.\.\.\]\} or \{columns"


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        # keys
        ("version = 2\ndataset", "dataset", DataError, "version is missing"),
        ("version = 2\ndataset", "version = 3\ndataset", DataError, "version is 3; .* `version = 2` or 1"),
        ("version = 2\ndataset", "version = true\ndataset", DataError, "version is True"),
        ('dataset = "survey"', "", DataError, "dataset is missing; the keys are version, dataset, noise, budget"),
        ('dataset = "survey"', 'data = "survey"', DataError, "unknown key 'data'"),
        ('dataset = "survey"', 'dataset = "survey"\nnoise = "gaussian"', PradeError, "Gaussian noise keeps no pure"),
        ('dataset = "survey"', 'dataset = "survey"\nnoise = 1', PradeError, "the law of the noise is '1'; it is 'lap"),
        ('dataset = "survey"', 'dataset = "survey"\nlevels = 1', DataError, "'levels'; did you mean 'level'"),
        ("[unit]\nmax_rows = 1\nneighbours", "[unit]\nneighbours", PradeError, "unit: .*max_rows"),
        ("max_rows = 1", "max_row = 1", PradeError, "unit: .*unknown: max_row"),
        ("by = ", "buy = ", DataError, "level 1: unknown key 'buy'; did you mean 'by'"),
        ('by = ["STATE"]\n', "", DataError, "level 1: by is missing; the keys are by, total, ask"),
        ("share = ", "shares = ", DataError, "level 1: ask 1: unknown key 'shares'; did you mean 'share'"),
        ('share = "1"\n', "", DataError, "level 1: ask 1: share is missing"),
        ("integer = true", "whole = true", SchemaError, "schema: column 'AGE': unknown key 'whole'"),
        ("[schema]\nversion = 1", "[schema]", SchemaError, "schema: the version of the format is missing"),
        # types
        (
            'dataset = "survey"',
            "dataset = 5",
            PradeError,
            "the name of a data set must not be empty, got 5",
        ),
        ('epsilon = "1"', "epsilon = true", PradeError, "budget: epsilon is 'True'; give a number such as"),
        ('epsilon = "1"', "epsilon = 0", PradeError, "the budget is zero"),
        ('epsilon = "1"', "epsilon = -1", PradeError, "budget: epsilon would be -1"),
        ('epsilon = "1"', 'rho = "1"', PradeError, "budget: a budget is one of: kind 'pure' with epsilon"),
        ('kind = "pure"', 'kind = "exact"', PradeError, "budget: .*'exact'"),
        ("max_rows = 1", 'max_rows = "1"', PradeError, "unit: max_rows is '1'"),
        ('neighbours = "add-remove"', "neighbours = 1", PradeError, "unit: neighbours is 1; give 'add-remove'"),
        (
            'by = ["STATE"]',
            "by = 5",
            WorkloadError,
            "level 1: by is 5; give the names of columns in the list of groups",
        ),
        ('by = ["STATE"]', 'by = [["STATE"]]', WorkloadError, "level 1: by is .*give the names of columns"),
        ('by = ["STATE"]', 'by = ["STAT"]', DataError, "no column 'STAT'; did you mean 'STATE'"),
        ('total = "1"', 'total = "much"', PradeError, "level 1: the share of the totals is 'much'; give a number"),
        ('total = "1"', "total = -1", PradeError, "level 1: .*0 or more"),
        ('share = "1"', "share = [1]", PradeError, r"level 1: ask 1: the share of an Ask is '\[1\]'; give a number"),
        ('share = "1"', "share = 0", PradeError, "the share 0, .* leave it out"),
        ('"AGE", ["AGE", "SEX"], ', '"AG", ', WorkloadError, "level 1: ask 1: .*did you mean 'AGE'"),
        (f'["AGE", ["AGE", "SEX"], {QUERIES}]', '"AGE"', WorkloadError, r"level 1: ask 1: parts is 'AGE'; give a list"),
        (f'["AGE", ["AGE", "SEX"], {QUERIES}]', "[]", WorkloadError, "level 1: ask 1: .*at least one part"),
        (QUERIES, "5", WorkloadError, FORMS + ".*got '5'"),
        (QUERIES, '{queries = "AGE < 18"}', WorkloadError, FORMS),
        (QUERIES, "{queries = 5}", WorkloadError, FORMS),
        (QUERIES, "{queries = [5]}", WorkloadError, "expected the text of a query, got 5"),
        (QUERIES, '{queries = ["AGE < 20"]}', WorkloadError, "level 1: ask 1: .*18 and 65"),
        (QUERIES, '{queries = ["AGE < 65", "AGE < 18"]}', WorkloadError, "may satisfy two"),
        (QUERIES, '{query = ["AGE < 18"]}', WorkloadError, FORMS),
        (QUERIES, '{queries = ["AGE < 18"], name = "young"}', WorkloadError, FORMS),
        (CELLS, '{columns = ["SEX"], cells = [0, 1]}', WorkloadError, "level 2: ask 1: " + FORMS),
        (CELLS, '{columns = "SEX", cells = [0, 1], labels = ["a", "b"]}', WorkloadError, FORMS),
        (CELLS, '{columns = ["SEX"], cells = 0, labels = ["a", "b"]}', WorkloadError, FORMS),
        (CELLS, '{columns = ["SEX"], cells = [0, 1], labels = "ab"}', WorkloadError, FORMS),
        (
            CELLS,
            '{columns = ["SEX"], cells = [0, 1], labels = [1, 2]}',
            WorkloadError,
            "labels a list of texts, one per cell",
        ),
        (CELLS, '{columns = ["SEX"], cells = [[0], [1]], labels = ["a"]}', WorkloadError, "one list of whole numbers"),
        (CELLS, '{columns = ["SEX"], cells = [0, true], labels = ["a"]}', WorkloadError, "one list of whole numbers"),
        (CELLS, '{columns = ["SEX"], cells = [0, 1.0], labels = ["a"]}', WorkloadError, "one list of whole numbers"),
        (CELLS, '{columns = ["SEX"], cells = [0, 3], labels = ["a", "b"]}', WorkloadError, "from 0 to 3"),
        (CELLS, '{columns = ["SEX"], cells = [0, 1, 1], labels = ["a", "b"]}', WorkloadError, "2 combinations"),
        (CELLS, '{columns = ["SEX"], cells = [0, 0], labels = []}', WorkloadError, "n_cells is 0"),
        ("STATE = [17, 17, 39]", "STATE = 17", DataError, "groups: STATE is '17'; write a list"),
        ("STATE = [17, 17, 39]", 'STATE = "abc"', DataError, "groups: STATE is 'abc'; write a list"),
        ("STATE = [17, 17, 39]", "STATE = [17, 17]", DataError, "groups: the columns differ in length"),
        ("STATE = [17, 17, 39]", "STATE = [17, 17, 17]", DataError, "groups: .*a group twice"),
        ("STATE = [17, 17, 39]", "STATE = [[17], [17], [39]]", DataError, "groups: column 'STATE': cells of type list"),
        ("STATE = [17, 17, 39]", "STATE = [nan, 17.0, 39.0]", DataError, "groups: .*empty cell"),
        (
            "STATE = [17, 17, 39]",
            "STATE = [07:00:00, 08:00:00, 09:00:00]",
            DataError,
            "groups: column 'STATE': cells of type time64",
        ),
        ('values = ["m", "f"]', 'values = ["m", 2]', SchemaError, "schema: column 'SEX': the values mix int and str"),
        # tables
        ("[[level.ask]]", "[level.ask]", DataError, r"level 1: level\.ask is .*write \[\[level\.ask\]\] tables"),
        ("[budget]", "[[budget]]", DataError, r"budget is .*write a \[budget\] table"),
        ("[unit]", "[[unit]]", DataError, r"unit is .*write a \[unit\] table"),
        ("[groups]", "[[groups]]", DataError, r"groups is .*write a \[groups\] table"),
    ],
)
def test_edits_gone_wrong(old, new, error, message):
    with pytest.raises(error, match=message):
        Plan.from_toml(edited(old, new))


def test_one_level_written_as_a_table():
    text = TEXT.replace(TEXT[TEXT.index('[[level]]\nby = ["STATE", ') : TEXT.index("[groups]")], "")
    assert len(Plan.from_toml(text).levels) == 1
    with pytest.raises(DataError, match=r"write \[\[level\]\] tables \(double brackets\)"):
        Plan.from_toml(text.replace("[[level]]", "[level]"))
    with pytest.raises(PradeError, match="at least one Level"):
        Plan.from_toml("level = []\n" + text[: text.index("[[level]]")] + text[text.index("[groups]") :])


def test_files_that_are_no_plan(tmp_path):
    with pytest.raises(DataError, match=r"there is no plan at .*absent\.toml"):
        Plan.load(tmp_path / "absent.toml")
    with pytest.raises(DataError, match="there is no plan at"):
        Plan.load(tmp_path)
    path = tmp_path / "plan.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a UTF-8 text file"):
        Plan.load(path)
    path.write_text(TEXT.replace('dataset = "survey"', 'dataset = "survey'))
    with pytest.raises(DataError, match=r"plan\.toml: this is not valid TOML: .*line 9"):
        Plan.load(path)
    path.write_text(TEXT.replace("max_rows = 1", "max_rows = 0"))
    with pytest.raises(PradeError, match=r"plan\.toml: unit: max_rows is 0"):
        Plan.load(path)
    path.write_text("")
    with pytest.raises(DataError, match="version is missing"):
        Plan.load(path)
    with pytest.raises(DataError, match="create it first"):
        Plan.from_toml(TEXT).save(tmp_path / "absent" / "plan.toml")
