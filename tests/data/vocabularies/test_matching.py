import numpy as np
import pytest

from labelspace.data.vocabularies.update import without_cycles
from labelspace.types import Hierarchy


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_has_no_cycle_and_nothing_else_is_cut(seed):
    rng = np.random.default_rng(seed)
    n = 40
    edges = np.unique(rng.integers(0, n, (70, 2)), axis=0)
    kept, cut = without_cycles(edges, n)
    assert len(kept) + len(cut) == len(edges)
    Hierarchy.from_edges(kept, n)  # raises on a cycle
    for edge in cut:  # each of them closes a cycle with those that are kept
        reaches = Hierarchy.from_edges(kept, n).ancestors[edge[1]].indices
        assert edge[0] == edge[1] or edge[0] in reaches


def test_a_long_cycle_loses_one_edge():
    n = 20_000
    chain = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    kept, cut = without_cycles(chain, n)
    assert (len(kept), cut.tolist()) == (n - 1, [[n - 1, 0]])


def test_without_cycles_nothing_is_cut():
    edges = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
    kept, cut = without_cycles(edges, 4)
    assert (kept.tolist(), cut.tolist()) == (edges.tolist(), [])
