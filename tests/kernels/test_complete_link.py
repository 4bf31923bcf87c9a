import heapq

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from labelspace.kernels.average_link import TARGET, erase, link_average, lookup, meld, raised, removed, without_root
from labelspace.kernels.complete_link import (
    breadth_first,
    depths_below,
    halving,
    join_smallest_first,
    labels_below,
    levels,
    link_complete,
)


def greedy(table):
    """The NumPy twin: the most similar pair of clusters each time, of equals the smallest, while any is positive."""
    S = np.array(table, np.float64)
    np.fill_diagonal(S, 0)
    n, nodes, merges = len(S), list(range(len(S))), []
    while S.max(initial=0) > 0:
        a, b = (int(i) for i in np.unravel_index(np.argmax(S), S.shape))
        merges.append((nodes[a], nodes[b], S[a, b]))
        S[a] = S[:, a] = np.minimum(S[a], S[b])
        S[b] = S[:, b] = 0
        S[a, a], nodes[a], nodes[b] = 0, n + len(merges) - 1, -1
    return merges, nodes


def drawn(n, density, levels, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, levels + 1, (n, n)) * (rng.random((n, n)) < density), 1)
    return (upper + upper.T).astype(np.float32)


def kernel(table):
    S = sp.csr_matrix(table)
    upper = sp.triu(S, 1).tocsr().tocoo()
    pairs = (upper.row.astype(np.int64) << 32) | upper.col
    order = np.lexsort([pairs, -upper.data])
    return link_complete(S.data, S.indices, S.indptr.astype(np.int64), upper.data[order], pairs[order])


@given(st.integers(1, 25), st.floats(0, 1), st.sampled_from([1, 3, 1000]), st.integers(0, 10**6))
def test_merges_are_those_of_the_twin_ties_too(n, density, levels, seed):
    table = drawn(n, density, levels, seed)
    merges, nodes = greedy(table)
    children, joined, left = kernel(table)
    assert [tuple(row) for row in children.tolist()] == [(a, b) for a, b, _ in merges]
    assert joined.tolist() == [value for _, _, value in merges]
    assert left.tolist() == nodes


def test_a_heap_of_fallen_pairs_that_outgrows_its_first_room_is_the_twins():
    table = drawn(120, 0.9, 5000, 3)
    merges, _ = greedy(table)
    children, joined, _ = kernel(table)
    assert [tuple(row) for row in children.tolist()] == [(a, b) for a, b, _ in merges]
    assert joined.tolist() == [value for _, _, value in merges]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_the_two_with_the_fewest_labels_are_joined(sizes):
    heap = [(size, i) for i, size in enumerate(sizes)]
    expected = []
    heapq.heapify(heap)
    while len(heap) > 1:
        (one, a), (other, b) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (one + other, len(sizes) + len(expected)))
        expected.append([a, b])
    assert join_smallest_first(np.array(sizes)).tolist() == expected


def test_labels_are_counted_and_nodes_listed_level_by_level():
    children = np.array([[0, 3], [4, 1], [2, 5]], np.int32)
    assert labels_below(children, np.ones(4, np.int64)).tolist() == [1, 1, 1, 1, 2, 3, 4]
    assert labels_below(children[:2], np.array([1, 5, 1, 2])).tolist() == [1, 5, 1, 2, 3, 8]
    assert breadth_first(children).tolist() == [6, 2, 5, 4, 1, 0, 3]
    assert depths_below(children).tolist() == [3, 2, 1, 3, 2, 1, 0]
    assert levels(np.array([-1, 0, 0, 2, 3, 0], np.int32)).tolist() == [0, 1, 1, 2, 3, 1]


@given(st.lists(st.integers(1, 20), min_size=2, max_size=30))
def test_a_cut_halves_the_labels_best(sizes):
    before = np.concatenate([[0], np.cumsum(sizes)])
    cut = halving(before, 0, len(sizes))
    uneven = [abs(2 * before[at] - before[-1]) for at in range(1, len(sizes))]
    assert 1 <= cut < len(sizes)
    assert abs(2 * before[cut] - before[-1]) == min(uneven)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(0, 10**6))
def test_a_pairing_heap_gives_its_highest_whatever_was_raised_or_removed(values, seed):
    rng = np.random.default_rng(seed)
    keys, links = np.array(values, np.float64), np.full((len(values), 4), -1, np.int32)
    root = -1
    for x in range(len(keys)):
        root = meld(root, x, keys, links)
    left = set(range(len(keys)))
    while left:
        assert (keys[root], -root) == max((keys[x], -x) for x in left)
        x, act = int(rng.choice(sorted(left))), rng.integers(3)
        if act == 0:
            root = raised(root, x, keys[x] + rng.integers(-5, 20), keys, links)
        elif act == 1:
            root = removed(root, x, keys, links)
            left.remove(x)
        else:
            left.remove(root)
            root = without_root(root, keys, links)
    assert root == -1


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(10, 19)), min_size=1, max_size=60), st.integers(0, 10**6))
def test_edges_are_found_after_others_were_erased(pairs, seed):
    edges = sorted(pairs)
    links = np.full((2 * len(edges), 4), -1, np.int32)
    links[:, TARGET] = np.array(edges).ravel()
    table = np.full(64 if len(edges) < 60 else 128, -1, np.int32)  # nearly full: long runs of taken places
    for edge, (a, b) in enumerate(edges):
        table[lookup(a, b, table, links)] = edge
    left = dict.fromkeys(range(len(edges)))
    for gone in np.random.default_rng(seed).permutation(len(edges)):
        erase(lookup(*edges[gone], table, links), table, links)
        del left[gone]
        for edge, (a, b) in enumerate(edges):
            at = table[lookup(b, a, table, links)]
            assert at == (edge if edge in left else -1)


def check_average(totals, sizes, children, means):
    """Each merge, from the highest mean to the lowest, is of two clusters that none are closer than."""
    table, sizes = np.array(totals, np.float64), np.array(sizes, np.float64)
    m = len(sizes)
    slot = {i: i for i in range(m)}
    name = {}
    for rank, at in enumerate(np.argsort(-means, kind="stable")):
        name[m + at] = m + rank
        a, b = (slot.pop(name.get(int(node), int(node))) for node in children[at])
        mean = table / np.outer(sizes, sizes)
        assert np.isclose(mean[a, b], mean.max(), rtol=1e-9)
        assert np.isclose(mean[a, b], means[at], rtol=1e-9)
        table[a] += table[b]
        table[:, a] += table[:, b]
        table[b] = table[:, b] = table[a, a] = 0
        sizes[a] += sizes[b]
        slot[m + rank] = a
    assert table.max(initial=0) == 0, "no two clusters with any similarity are left apart"


@given(st.integers(1, 25), st.floats(0, 1), st.sampled_from([1, 4, 1000]), st.integers(0, 10**6))
def test_average_link_joins_the_closest_ties_too(m, density, levels, seed):
    table = drawn(m, density, levels, seed).astype(np.float64)
    sizes = np.random.default_rng(seed).integers(1, 5, m)
    ends = np.argwhere(np.triu(table)).astype(np.int32).reshape(-1, 2)
    children, means = link_average(ends, table[ends[:, 0], ends[:, 1]], sizes.copy())
    check_average(table, sizes, children, means)


@pytest.mark.parametrize("seed", range(3))
def test_average_link_of_sums_that_are_rounded(seed):
    rng = np.random.default_rng(seed)
    table = drawn(60, 0.3, 1, seed) * rng.random((60, 60))
    table = np.triu(table) + np.triu(table).T
    ends = np.argwhere(np.triu(table)).astype(np.int32)
    children, means = link_average(ends, table[ends[:, 0], ends[:, 1]], np.ones(60, np.int64))
    check_average(table, np.ones(60), children, means)


def test_average_link_is_scipys():
    rng = np.random.default_rng(5)
    near = rng.random((150, 3))
    table = 2 - np.linalg.norm(near[:, None] - near, axis=2)
    np.fill_diagonal(table, 2)
    theirs = linkage(squareform(2 - table), "average")
    ends = np.argwhere(np.triu(table, 1)).astype(np.int32)
    children, means = link_average(ends, table[ends[:, 0], ends[:, 1]], np.ones(150, np.int64))
    assert np.allclose(-np.sort(-means), 2 - theirs[:, 2])

    def held(merges):
        sets = [frozenset([i]) for i in range(150)]
        for a, b in merges:
            sets.append(sets[int(a)] | sets[int(b)])
        return set(sets)

    assert held(children) == held(theirs[:, :2])
