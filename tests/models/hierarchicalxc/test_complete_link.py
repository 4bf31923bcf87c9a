import heapq

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.ancestors import node_levels
from labelspace.models.hierarchicalxc.complete_link import (
    balanced_cut,
    breadth_first_order,
    complete_linkage,
    merge_smallest_first,
    subtree_sizes,
)
from tests.kernels.random_graphs import random_similarities


def greedy(table):
    """The NumPy twin: merge the most similar pair, ties by the smallest slots, while any similarity is positive."""
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


def kernel(table):
    S = sp.csr_matrix(table)
    upper = sp.triu(S, 1).tocsr().tocoo()
    pairs = (upper.row.astype(np.int64) << 32) | upper.col
    order = np.lexsort([pairs, -upper.data])
    return complete_linkage(S.data, S.indices, S.indptr.astype(np.int64), upper.data[order], pairs[order])


@given(st.integers(1, 25), st.floats(0, 1), st.sampled_from([1, 3, 1000]), st.integers(0, 10**6))
def test_merges_equal_the_twin_with_ties(n, density, levels, seed):
    table = random_similarities(n, density, levels, seed)
    merges, nodes = greedy(table)
    children, similarities, final_nodes = kernel(table)
    assert [tuple(row) for row in children.tolist()] == [(a, b) for a, b, _ in merges]
    assert similarities.tolist() == [value for _, _, value in merges]
    assert final_nodes.tolist() == nodes


def test_merges_equal_the_twin_when_the_heap_is_large():
    table = random_similarities(120, 0.9, 5000, 3)
    merges, _ = greedy(table)
    children, similarities, _ = kernel(table)
    assert [tuple(row) for row in children.tolist()] == [(a, b) for a, b, _ in merges]
    assert similarities.tolist() == [value for _, _, value in merges]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_the_two_smallest_trees_are_merged(sizes):
    heap = [(size, i) for i, size in enumerate(sizes)]
    expected = []
    heapq.heapify(heap)
    while len(heap) > 1:
        (one, a), (other, b) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (one + other, len(sizes) + len(expected)))
        expected.append([a, b])
    assert merge_smallest_first(np.array(sizes)).tolist() == expected


def test_subtree_sizes_levels_and_breadth_first_order():
    children = np.array([[0, 3], [4, 1], [2, 5]], np.int32)
    assert subtree_sizes(children, np.ones(4, np.int64)).tolist() == [1, 1, 1, 1, 2, 3, 4]
    assert subtree_sizes(children[:2], np.array([1, 5, 1, 2])).tolist() == [1, 5, 1, 2, 3, 8]
    assert breadth_first_order(children).tolist() == [6, 2, 5, 4, 1, 0, 3]
    assert node_levels(np.array([-1, 0, 0, 2, 3, 0], np.int32)).tolist() == [0, 1, 1, 2, 3, 1]


@given(st.lists(st.integers(1, 20), min_size=2, max_size=30))
def test_a_cut_halves_the_labels_best(sizes):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    cut = balanced_cut(offsets, 0, len(sizes))
    imbalances = [abs(2 * offsets[i] - offsets[-1]) for i in range(1, len(sizes))]
    assert 1 <= cut < len(sizes)
    assert abs(2 * offsets[cut] - offsets[-1]) == min(imbalances)
