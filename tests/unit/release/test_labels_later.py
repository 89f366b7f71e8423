"""Labels that are given to a release after measuring, as a file in its folder."""

import hashlib
from dataclasses import replace

import pytest

from prade import Column, Level, Release, Schema, Workload
from prade.release.release import LabelsNotUsed
from worlds.plans import plan_of
from worlds.releases import invented, write_folder

AGE = Column("AGE", "numeric", edges=(18, 65), integer=True)
SEX = Column("SEX", "categorical", values=(1, 2))
SCHEMA = Schema([Column("PLACE", "group"), SEX, AGE])


@pytest.fixture
def folder(tmp_path):
    plan = plan_of(SCHEMA, Level("PLACE", Workload.all_marginals(SCHEMA, 1)), groups={"PLACE": ["a", "b"]})
    write_folder(tmp_path / "release", plan, invented(plan).noisy)
    return tmp_path / "release"


def test_a_release_is_labelled_after_the_fact(folder):
    before = Release.load(folder)
    labelled = Schema([SCHEMA["PLACE"], replace(SEX, labels={2: "female"}), AGE])
    labelled.save(folder / "labels.toml")
    found = Release.load(folder)
    assert found.plan.schema["SEX"].label_of(2) == "female"
    assert (found.plan.hash, found.fingerprint) == (before.plan.hash, before.fingerprint)
    assert found.labels == hashlib.sha256((folder / "labels.toml").read_bytes()).hexdigest()
    assert before.labels is None


@pytest.mark.parametrize("text", [SCHEMA.select(["SEX", "AGE"]).to_toml(), "columns = [", "\0\xff"])
def test_labels_that_cannot_be_used_block_nothing_and_are_remarked_on(folder, text):
    (folder / "labels.toml").write_text(text, encoding="latin-1")
    with pytest.warns(LabelsNotUsed, match=r"labels.toml cannot be used .* the plan's own: repair the file, or remove"):
        found = Release.load(folder)
    assert (found.plan.schema["SEX"].labels, found.labels) == ({}, None)
