"""Names of data sets: one spelling each, so that no other spelling has a budget of its own."""

# ruff: noqa: RUF001 - letters that look alike are the subject

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Budget, Ledger, Level, Plan, PradeError, Schema, Unit, Workload
from prade.privacy.protection import confusable, dataset_name

SCHEMA = Schema.from_mbi({"age": 4})


def plan_for(name):
    return Plan(name, SCHEMA, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(SCHEMA, 1))])


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "l")
    ledger.open_dataset("copco 1", Unit(1), Budget.pure(1))
    return ledger


@pytest.mark.parametrize("name", ["ｃopco 1", "copco ①", "copco\u00a01", "copco\u20031"])
def test_plans_and_ledgers_use_one_normal_form(ledger, name):
    assert plan_for(name).dataset == "copco 1"
    assert plan_for(name).hash == plan_for("copco 1").hash
    assert ledger.dataset(name) == ledger.open_dataset(name, Unit(1), Budget.pure(1)) == ledger.dataset("copco 1")
    ledger.reserve(name, "p", Budget.pure("1/2"))
    assert ledger.remaining("copco 1") == Budget.pure("1/2")
    assert [dataset.name for dataset in ledger.datasets()] == ["copco 1"]


UNSEEN = "\u200b\u200d\ufeff\u00ad\u202e\u2060\x07\n\t\u2028\u180e\ue000\ud800\u1680"


@pytest.mark.parametrize(
    "name",
    [
        *(f"copco{each} 1" for each in UNSEEN),
        *("", " ", "-", "...", "_ _", "€", "🐘", "\u0301"),
    ],
)
def test_names_that_nobody_can_read_or_tell_apart_are_refused(ledger, name):
    for use in (plan_for, lambda name: ledger.open_dataset(name, Unit(1), Budget.pure(1))):
        with pytest.raises(PradeError, match="give one that has a letter or a digit, and no invisible characters"):
            use(name)


@pytest.mark.parametrize(
    "name",
    ["перепись 2020", "census перепись", "Etat civil été", "Hawaiʻi", "国勢調査2020年", "2020年PUMS",
     "Απογραφή", "α-survey", "x_y-z 3", "الإحصاء"],
)  # fmt: skip
def test_names_in_any_language_are_fine(name):
    assert dataset_name(name) == name == plan_for(name).dataset


@pytest.mark.parametrize(
    "name",
    [
        *("сорсо 1", "СОРСО 1", "\u0441opco 1", "copc\u03bf 1"),  # Cyrillic and Greek letters
        *("COPCO 1", " copco 1", "copco  1", "copco1", "co pco 1"),
        *("copco_1", "copco.1", "copco-1", "copco/1", "copco: 1!", "(copco) 1", "copco+1", "co'pco 1", "«copco 1»"),
    ],
)
def test_a_name_that_looks_like_a_recorded_one_gets_no_budget_of_its_own(ledger, name):
    half, terms = Budget.pure("1/2"), {"unit": Unit(1), "cap": Budget.pure(1)}
    for act in (
        *(ledger.dataset, ledger.remaining, ledger.entries, ledger.account, ledger.knows, ledger.next_year),
        lambda name: ledger.open_dataset(name, **terms),
        lambda name: ledger.reserve(name, "p", half, **terms),
        lambda name: ledger.reserve(name, "p", half),
        lambda name: ledger.check(name, "p", half),
    ):
        with pytest.raises(PradeError, match=r"has a data set 'copco 1', and .* use the recorded name"):
            act(name)
    assert ledger.remaining("copco 1") == Budget.pure(1)
    assert len(ledger.datasets()) == 1


def test_two_accounts_of_an_earlier_version_stay_two(tmp_path):
    """Version 0.9 took both names; each is found under its own."""
    both = ["census 2020", "census_2020"]
    ledger = Ledger(tmp_path / "l")
    ledger.open_dataset(both[0], Unit(1), Budget.pure(1))
    with ledger._file.transaction("open_dataset") as chain:
        chain.add({**chain.events[-1], "dataset": both[1]})
    ledger.reserve("census 2020", "p", Budget.pure("1/2"))
    assert [ledger.remaining(name) for name in both] == [Budget.pure("1/2"), Budget.pure(1)]
    with pytest.raises(PradeError, match="has a data set 'census 2020'"):
        ledger.remaining("census2020")


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [
        ("a-\u2013b", "a--b", True),
        ("o\u2019b", "ob", True),
        ("e-\u0301te", "\u00e9te", True),
        ("1-11", "11-1", True),
        ("Ηθος", "ηθος", True),
        ("a-b", "a-c", False),
        ("mail", "mall", False),
        ("1-11", "1-12", False),
        ("resume", "resumé", False),
    ],
)
def test_only_letters_accents_and_digits_tell_names_apart(name, other, same):
    assert confusable(name, other) == confusable(other, name) == same


@given(st.text(min_size=1))
def test_a_normal_form_is_its_own(text):
    try:
        name = dataset_name(text)
    except PradeError:
        return
    assert dataset_name(name) == name
    assert confusable(name, text)
