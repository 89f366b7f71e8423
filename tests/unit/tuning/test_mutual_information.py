"""Choosing columns: mutual information by hand and by another formula, cliques with and without room, independence."""

from itertools import combinations

import numpy as np
import pytest

from prade import Schema
from prade.data.public.joint import Coded, Information
from prade.tuning.mutual_information import cliques, independent_columns, strongest_pairs


def known(names, edges, entropy=2.0):
    """Information as given for pairs written "ab", 0.01 for all others."""
    nats = np.full((len(names), len(names)), 0.01)
    np.fill_diagonal(nats, entropy)
    for (a, b), value in edges.items():
        nats[names.index(a), names.index(b)] = nats[names.index(b), names.index(a)] = value
    return Information(tuple(names), nats)


def test_information_is_the_entropies_less_the_joint_entropy():
    schema = Schema.from_mbi({"x": 5, "y": 7, "z": 3})
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, 3000)
    rows = {"x": x, "y": (x + rng.integers(0, 3, 3000)) % 7, "z": rng.integers(0, 3, 3000)}
    joint = Coded(schema, rows, rng.random(3000))

    def entropy(columns):
        mass = joint.project(columns)
        return -(mass[mass > 0] * np.log(mass[mass > 0])).sum()

    found = Information.of(joint)
    for a, b in combinations("xyz", 2):
        assert found.between(a, b) == pytest.approx(entropy([a]) + entropy([b]) - entropy([a, b]), abs=1e-12)
    assert Information.of(joint, ["z", "x"]).columns == ("z", "x")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most_cells", [40, 300, 10_000])
def test_whatever_the_graph(seed, most_cells):
    rng = np.random.default_rng(seed)
    names = "abcdefghij"
    schema = Schema.from_mbi({name: int(rng.integers(2, 12)) for name in names})
    information = known(names, {a + b: rng.random() for a, b in combinations(names, 2)})
    pairs = strongest_pairs(information, int(rng.integers(0, 46)))
    found = cliques(schema, information, pairs, most_cells=most_cells)
    fitting = {pair for pair in pairs if schema.domain_size(pair) <= most_cells}
    together = {pair for clique in found for pair in combinations(clique, 2)}
    assert together == fitting  # every strong pair that fits, and nothing but strong pairs
    assert {name for clique in found for name in clique} == set(names)
    assert all(schema.domain_size(clique) <= most_cells for clique in found)
    assert not any(set(one) < set(other) for one in found for other in found)
    assert len(set(found)) == len(found)
    assert found == cliques(schema, information, pairs[::-1], most_cells=most_cells)  # of the graph alone
    if most_cells == 10_000:
        fits = {clique for clique in cliques(schema, information, pairs, most_cells=2**62) if len(clique) > 1}
        assert {clique for clique in fits if schema.domain_size(clique) <= most_cells} <= set(found)


def test_independent_columns_leave_out_what_a_more_telling_one_tells():
    information = known("abcd", {"ab": 1.5, "bc": 1.0})
    # b tells most; a and c are told by it; d is not
    assert independent_columns(information) == ("b", "d")
    assert independent_columns(information, 1) == ("b",)


def test_what_is_little_depends_on_what_there_is_to_know():
    nats = np.array([[2.0, 0.05, 0.05], [0.05, 0.1, 0.0], [0.05, 0.0, 1.0]])
    # 0.05 nats are half of what there is to know about b, and a twentieth of c
    assert independent_columns(Information(("a", "b", "c"), nats)) == ("a", "c")
