import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from labelspace.models.hierarchicalxc.average_link import (
    TARGET,
    average_linkage,
    delete_slot,
    find_slot,
    increase_key,
    merge_heaps,
    pop_root,
    remove,
)
from tests.kernels.random_graphs import random_similarities


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(0, 10**6))
def test_a_pairing_heap_returns_its_maximum_after_keys_were_increased_or_removed(values, seed):
    rng = np.random.default_rng(seed)
    keys, links = np.array(values, np.float64), np.full((len(values), 4), -1, np.int32)
    root = -1
    for x in range(len(keys)):
        root = merge_heaps(root, x, keys, links)
    remaining = set(range(len(keys)))
    while remaining:
        assert (keys[root], -root) == max((keys[x], -x) for x in remaining)
        x, action = np.int32(rng.choice(sorted(remaining))), rng.integers(3)
        if action == 0:
            root = increase_key(root, x, keys[x] + rng.integers(-5, 20), keys, links)
        elif action == 1:
            root = remove(root, x, keys, links)
            remaining.remove(x)
        else:
            remaining.remove(root)
            root = pop_root(root, keys, links)
    assert root == -1


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(10, 19)), min_size=1, max_size=60), st.integers(0, 10**6))
def test_edges_are_found_after_others_were_deleted(pairs, seed):
    edges = sorted(pairs)
    links = np.full((2 * len(edges), 4), -1, np.int32)
    links[:, TARGET] = np.array(edges).ravel()
    table = np.full(64 if len(edges) < 60 else 128, -1, np.int32)  # nearly full: long probe sequences
    for edge, (a, b) in enumerate(edges):
        table[find_slot(a, b, table, links)] = edge
    remaining = dict.fromkeys(range(len(edges)))
    for deleted in np.random.default_rng(seed).permutation(len(edges)):
        delete_slot(find_slot(*edges[deleted], table, links), table, links)
        del remaining[deleted]
        for edge, (a, b) in enumerate(edges):
            found = table[find_slot(b, a, table, links)]
            assert found == (edge if edge in remaining else -1)


def pairs(table):
    """The row and the column of every entry, side by side in memory, as the library has them."""
    return np.ascontiguousarray(np.argwhere(table), np.int32)


def assert_average_linkage(totals, sizes, children, means):
    """Each merge, from the highest mean to the lowest, joins two clusters of maximum similarity."""
    table, sizes = np.array(totals, np.float64), np.array(sizes, np.float64)
    m = len(sizes)
    slot = {i: i for i in range(m)}
    renumbered = {}
    for rank, at in enumerate(np.argsort(-means, kind="stable")):
        renumbered[m + at] = m + rank
        a, b = (slot.pop(renumbered.get(int(node), int(node))) for node in children[at])
        mean = table / np.outer(sizes, sizes)
        assert np.isclose(mean[a, b], mean.max(), rtol=1e-9)
        assert np.isclose(mean[a, b], means[at], rtol=1e-9)
        table[a] += table[b]
        table[:, a] += table[:, b]
        table[b] = table[:, b] = table[a, a] = 0
        sizes[a] += sizes[b]
        slot[m + rank] = a
    assert table.max(initial=0) == 0, "no two similar clusters remain unmerged"


@given(st.integers(1, 25), st.floats(0, 1), st.sampled_from([1, 4, 1000]), st.integers(0, 10**6))
def test_average_linkage_merges_the_most_similar_clusters_with_ties(m, density, levels, seed):
    table = random_similarities(m, density, levels, seed).astype(np.float64)
    sizes = np.random.default_rng(seed).integers(1, 5, m)
    ends = pairs(np.triu(table))
    children, means = average_linkage(ends, table[ends[:, 0], ends[:, 1]], sizes.copy())
    assert_average_linkage(table, sizes, children, means)


@pytest.mark.parametrize("seed", range(3))
def test_average_linkage_of_rounded_sums(seed):
    rng = np.random.default_rng(seed)
    table = random_similarities(60, 0.3, 1, seed) * rng.random((60, 60))
    table = np.triu(table) + np.triu(table).T
    ends = pairs(np.triu(table))
    children, means = average_linkage(ends, table[ends[:, 0], ends[:, 1]], np.ones(60, np.int64))
    assert_average_linkage(table, np.ones(60), children, means)


def test_average_linkage_equals_scipy():
    rng = np.random.default_rng(5)
    points = rng.random((150, 3))
    table = 2 - np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(table, 2)
    theirs = linkage(squareform(2 - table), "average")
    ends = pairs(np.triu(table, 1))
    children, means = average_linkage(ends, table[ends[:, 0], ends[:, 1]], np.ones(150, np.int64))
    assert np.allclose(-np.sort(-means), 2 - theirs[:, 2])

    def clusters(merges):
        sets = [frozenset([i]) for i in range(150)]
        for a, b in merges:
            sets.append(sets[int(a)] | sets[int(b)])
        return set(sets)

    assert clusters(children) == clusters(theirs[:, :2])
