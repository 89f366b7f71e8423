"""Names of data sets: one spelling each, nothing invisible, nothing that a reader takes for another name."""

# ruff: noqa: RUF001 - letters that look alike are the subject

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Budget, Ledger, Level, Plan, Schema, Unit, Workload
from prade.core.errors import PradeError
from prade.privacy.dataset_names import LOOK_ALIKES, confusable, dataset_name

SCHEMA = Schema.from_mbi({"age": 4})


def plan_for(name: str) -> Plan:
    return Plan(name, SCHEMA, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(SCHEMA, 1))])


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "l")
    ledger.open_dataset("copco 1", Unit(1), Budget.pure(1))
    return ledger


@pytest.mark.parametrize("name", ["ｃopco 1", "copco ①", "copco\u00a01", "copco\u20031"])
def test_plans_and_ledgers_use_one_normal_form(ledger: Ledger, name: str) -> None:
    assert plan_for(name).dataset == "copco 1"
    assert plan_for(name).hash == plan_for("copco 1").hash
    assert ledger.dataset(name) == ledger.open_dataset(name, Unit(1), Budget.pure(1)) == ledger.dataset("copco 1")
    ledger.reserve(name, "p", Budget.pure("1/2"))
    assert ledger.remaining("copco 1") == Budget.pure("1/2")
    assert [dataset.name for dataset in ledger.datasets()] == ["copco 1"]


@pytest.mark.parametrize(
    "unseen",
    ["\u200b", "\u200d", "\ufeff", "\u00ad", "\u202e", "\u2060", "\x07", "\n", "\t", "\u2028", "\u115f", "\u3164",
     "\ufe0f", "\u034f", "\u180e", "\U000e0101", "\U000e0041", "\ue000", "\ud800", "\u1680"],
)  # fmt: skip
def test_what_cannot_be_seen_is_refused(ledger: Ledger, unseen: str) -> None:
    for name in (f"copco{unseen} 1", f"copco 1{unseen}", f"{unseen}a"):
        with pytest.raises(PradeError, match="the invisible character"):
            ledger.open_dataset(name, Unit(1), Budget.pure(1))
        with pytest.raises(PradeError, match="the invisible character"):
            plan_for(name)


@pytest.mark.parametrize(
    "name", ["\u0441opco 1", "\u03bfpco 1", "copc\u043e 1", "census \u0410pril", "\u0561\u0440\u0430"]
)
def test_words_of_mixed_alphabets_are_refused(ledger: Ledger, name: str) -> None:
    """Cyrillic es, Greek omicron, Cyrillic o, a Cyrillic A before Latin letters, Armenian with Cyrillic."""
    with pytest.raises(PradeError, match="which mixes alphabets"):
        ledger.open_dataset(name, Unit(1), Budget.pure(1))
    with pytest.raises(PradeError, match="write each word in one alphabet"):
        plan_for(name)


@pytest.mark.parametrize(
    "name",
    ["перепись 2020", "census перепись", "Etat civil été", "Hawaiʻi", "国勢調査2020年", "2020年PUMS",
     "Απογραφή", "α-survey", "x_y-z 3", "الإحصاء"],
)  # fmt: skip
def test_names_in_any_language_are_fine(name: str) -> None:
    assert dataset_name(name) == name == plan_for(name).dataset


OTHER_SPELLINGS = [
    *("сорсо 1", "СОРСО 1"),  # Cyrillic letters throughout
    *("COPCO 1", " copco 1", "copco  1", "copco1", "co pco 1"),
    *(
        "copco_1",
        "copco.1",
        "copco-1",
        "copco/1",
        "copco: 1!",
        "(copco) 1",
        "copco+1",
        "copco~1",
        "co'pco 1",
        "«copco 1»",
    ),
]


@pytest.mark.parametrize("name", OTHER_SPELLINGS)
def test_a_name_that_looks_like_a_recorded_one_gets_no_budget_of_its_own(ledger: Ledger, name: str) -> None:
    """Letters that look alike; another case; other blanks; other punctuation."""
    with pytest.raises(PradeError, match=r"has a data set 'copco 1', and .* use the recorded name"):
        ledger.open_dataset(name, Unit(1), Budget.pure(1))
    with pytest.raises(PradeError, match=r"has a data set 'copco 1', and .* use the recorded name"):
        ledger.reserve(name, "p", Budget.pure("1/2"), unit=Unit(1), cap=Budget.pure(1))
    assert len(ledger.datasets()) == 1


@pytest.mark.parametrize("name", OTHER_SPELLINGS)
def test_a_recorded_data_set_is_found_under_its_own_spelling_only(ledger: Ledger, name: str) -> None:
    for ask in (ledger.dataset, ledger.remaining, ledger.entries, ledger.account, ledger.knows, ledger.next_year):
        with pytest.raises(PradeError, match=r"has a data set 'copco 1', and .* use the recorded name"):
            ask(name)
    for spend in (ledger.reserve, ledger.check):
        with pytest.raises(PradeError, match="has a data set 'copco 1'"):
            spend(name, "p", Budget.pure("1/2"))
    assert ledger.remaining("copco 1") == Budget.pure(1)


def test_four_spellings_are_one_account() -> None:
    names = ["census 2020", "census2020", "census_2020", "census.2020"]
    assert all(confusable(one, other) for one in names for other in names)


def test_two_accounts_of_an_earlier_version_stay_two(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["-", "...", "_ _", "€", "+", "🐘", "\u0301"])
def test_a_name_has_a_letter_or_a_digit(ledger: Ledger, name: str) -> None:
    with pytest.raises(PradeError, match="has no letter and no digit"):
        ledger.open_dataset(name, Unit(1), Budget.pure(1))
    with pytest.raises(PradeError, match="has no letter and no digit"):
        plan_for(name)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *(
            (f"a-{dash}b", "a--b")
            for dash in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u058a\u2e3a\u30a0\ufe58\uff0d"
        ),
        *((f"o{quote}b", "o'b") for quote in "\u2018\u2019\u201b\u2032\u02bb\u02bc`\uff07"),
        *((f"{quote}b", '"b') for quote in ["\u201c", "\u201d", "\u201e", "\u00ab", "\u2033", "''"]),
        ("ᴄᴇɴꜱᴜꜱ", "census"),
        ("ᴄᴇɴꜱᴜꜱ ɪ", "census i"),
        ("ɑɡe", "age"),
        ("cıty", "city"),
        ("wave 1", "wave l"),
        ("wave 1", "wave I"),
        ("wave l", "wave I"),
        ("wave |", "wave І"),
        ("2010", "20lO"),
        ("census 0", "CENSUS o"),
        ("census ٢", "census 2"),
        ("census २०", "census 20"),
        ("census ۱", "census l"),
        ("census 𞥒", "census 2"),
        ("a-b", "ab"),
        ("o'b", "ob"),
        ("Hawaiʻi", "Hawaii"),
        ("1-11", "11-1"),
        ("e-\u0301te", "\u00e9te"),
    ],
)
def test_characters_that_look_alike_make_no_other_name(name: str, other: str) -> None:
    assert confusable(name, other)
    assert confusable(other, name)


@pytest.mark.parametrize(
    ("name", "other"), [("mail", "mall"), ("a-b", "a-c"), ("1-11", "1-12"), ("wave ٢", "wave 3"), ("x", "x²")]
)
def test_names_that_can_be_told_apart_stay_two(name: str, other: str) -> None:
    assert not confusable(name, other)


def test_accents_make_another_name() -> None:
    assert not confusable("resume", "resumé")
    assert not confusable("census 1", "census l2")


def test_the_table_of_shapes_is_of_letters_that_normalising_keeps() -> None:
    for other, latin in LOOK_ALIKES.items():
        assert dataset_name(chr(other)) == chr(other)
        assert chr(latin).isascii()


@given(st.text(min_size=1))
def test_a_normal_form_is_its_own(text: str) -> None:
    try:
        name = dataset_name(text)
    except PradeError:
        return
    assert dataset_name(name) == name
    assert confusable(name, text)
