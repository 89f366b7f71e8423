"""What an accelerator works out for several groups together, with numpy in its place."""

import numpy as np
import pytest

from prade.estimating.device_arrays import SMALL, inverses


@pytest.mark.parametrize("rows", [1, SMALL - 1, SMALL, 49, 97, 130])
def test_inverses_by_halves_are_those_of_the_library(rows):
    factors = np.random.default_rng(rows).normal(size=(3, rows, rows + 5))
    matrices = factors @ factors.transpose(0, 2, 1) / rows + np.eye(rows)
    given = matrices.copy()
    found = inverses(matrices, np)
    assert found == pytest.approx(np.linalg.inv(matrices), rel=1e-9, abs=1e-12)
    assert np.array_equal(matrices, given)


def test_large_matrices_are_halved():
    """The library sees none of more rows than it is quick at."""
    seen = []

    class Counting:
        empty_like = staticmethod(np.empty_like)

        class linalg:
            @staticmethod
            def inv(matrices):
                seen.append(matrices.shape[-1])
                return np.linalg.inv(matrices)

    inverses(np.eye(130)[None], Counting)
    assert sum(seen) == 130
    assert max(seen) <= SMALL
