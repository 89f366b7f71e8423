"""Plan files: the text is readable, says everything, and an edit gone wrong is answered by what to write instead."""

import tomllib

import pytest
import tomli_w

from prade import Budget, Column, Level, Plan, PradeError, Schema, Unit, Workload
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse

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
def plan():
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


def test_the_hash_depends_on_neither_the_order_of_keys_nor_the_spelling_of_numbers(plan):
    text = tomli_w.dumps(dict(reversed(tomllib.loads(TEXT).items())))
    for old, new in (('epsilon = "1"', "epsilon = 1.0"), ('total = "1"', "total = 1")):
        assert old in text
        text = text.replace(old, new)
    assert Plan.from_toml(text).hash == plan.hash


def test_the_file_reads_like_this_and_is_the_plan(plan, tmp_path):
    plan.save(tmp_path / "plan.toml")
    written = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["plan.toml"]
    assert written == plan.to_toml()
    assert tomllib.loads(written) == tomllib.loads(TEXT) == plan.to_dict()
    # line by line, but for spaces inside of inline tables
    squeezed = [text.replace("{ ", "{").replace(" }", "}") for text in (written, TEXT)]
    assert squeezed[0].splitlines() == squeezed[1].splitlines()
    for found in (Plan.load(tmp_path / "plan.toml"), Plan.from_toml(TEXT)):
        assert found == plan
        assert (found.schema, found.groups, found.questions) == (plan.schema, plan.groups, plan.questions)
        assert found.to_toml() == written


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


QUERIES = '{queries = ["AGE < 18", "AGE >= 65 and SEX == \'f\'", "AGE is missing"]}'
CELLS = '{columns = ["SEX"], cells = [0, 1], labels = ["men", "women"]}'
STATES = "STATE = [17, 17, 39]"
FORMS = r"a part is a column, a list of columns, \{queries = \[\.\.\.\]\} or \{columns"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 2\ndataset", "dataset", "missing required field `version`; correct it, or make the plan again"),
        ("version = 2\ndataset", "version = 3\ndataset", r"value 3 - at `\$\.version`"),
        ('dataset = "survey"', 'data = "survey"', "unknown field `data`"),
        ('dataset = "survey"', "dataset = 5", r"Expected `str`, got `int` - at `\$\.dataset`"),
        ('dataset = "survey"', 'dataset = "survey"\nnoise = "odd"', "the law of the noise is 'odd'; it is 'lap"),
        ("by = ", "buy = ", r"unknown field `buy` - at `\$\.level\[0\]"),
        ('share = "1"', 'share = "much"', "level 1: the share of an Ask is 'much'; give a number"),
        ("integer = true", "whole = true", "schema: column 'AGE': unknown key 'whole'"),
        ('epsilon = "1"', "epsilon = 0", "the budget is zero"),
        ('epsilon = "1"', 'rho = "1"', "budget: a budget is one of: kind 'pure' with epsilon"),
        ('by = ["STATE"]', 'by = ["STAT"]', "no column 'STAT'; did you mean 'STATE'"),
        (QUERIES, "5", FORMS + ".*got '5'"),
        (QUERIES, '{queries = ["AGE < 20"]}', "level 1: .*18 and 65"),
        (CELLS, '{columns = ["SEX"], cells = [0, 1]}', "level 2: " + FORMS),
        (CELLS, '{columns = ["SEX"], cells = [0, 3], labels = ["a", "b"]}', "from 0 to 2"),
        (STATES, "STATE = [17, 17, 17]", "groups: .*a group twice"),
        ("[[level.ask]]", "[level.ask]", r"Expected `array`, got `object` - at `\$\.level\[0\]\.ask"),
    ],
)
def test_edits_gone_wrong(old, new, message):
    assert old in TEXT
    with pytest.raises(PradeError, match=message):
        Plan.from_toml(TEXT.replace(old, new))


def test_files_that_are_no_plan(tmp_path):
    path = tmp_path / "plan.toml"
    for content, message in (
        (None, r"there is no plan at .*plan\.toml"),
        ("\udcff\udcfe\x00", "not a UTF-8 text file"),
        (TEXT.replace('dataset = "survey"', 'dataset = "survey'), r"plan\.toml: this is not valid TOML: .*line 9"),
        (TEXT.replace("max_rows = 1", "max_rows = 0"), r"plan\.toml: unit: max_rows is 0"),
    ):
        if content is not None:
            path.write_text(content, errors="surrogateescape")
        with pytest.raises(PradeError, match=message):
            Plan.load(path)
    with pytest.raises(PradeError, match="create it first"):
        Plan.from_toml(TEXT).save(tmp_path / "absent" / "plan.toml")
