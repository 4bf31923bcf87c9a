import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from labelspace.labels.tree import balance, is_degenerate
from labelspace.models.hierarchicalxc import dendrogram
from labelspace.models.hierarchicalxc.complete_link import balance_heavy_paths
from labelspace.models.hierarchicalxc.dendrogram import (
    TIES,
    Dendrogram,
    cluster_labels,
    complete_link,
    label_similarity,
    rebalanced,
    to_nodes,
)


def clusters(children, n):
    """The labels of each node."""
    labels = [frozenset([i]) for i in range(n)]
    for a, b in children:
        labels.append(labels[int(a)] | labels[int(b)])
    return labels


def leaves(tree):
    """The labels from left to right."""
    n, order, stack = tree.n_labels, [], [2 * tree.n_labels - 2]
    while stack:
        node = stack.pop()
        if node < n:
            order.append(node)
        else:
            stack.extend(tree.children[node - n, ::-1].tolist())
    return order


def similarities(n, density, levels, seed):
    """Similarities without ties where levels is 0, else integers up to it."""
    rng = np.random.default_rng(seed)
    values = rng.permutation(n * n).reshape(n, n) + 1 if levels == 0 else rng.integers(1, levels + 1, (n, n))
    upper = np.triu(values * (rng.random((n, n)) < density), 1).astype(np.float32)
    return upper + upper.T


def random_tree(n, seed, chain=0.0):
    """Random merges; with probability ``chain`` of the last cluster and another."""
    rng = np.random.default_rng(seed)
    clusters, children = list(range(n)), []
    while len(clusters) > 1:
        last = n + len(children) - 1
        first = last if children and rng.random() < chain else clusters[rng.integers(len(clusters))]
        clusters.remove(first)
        second = clusters.pop(rng.integers(len(clusters)))
        children.append((first, second) if rng.random() < 0.5 else (second, first))
        clusters.append(n + len(children) - 1)
    similarity = -np.sort(-rng.random(n - 1)).astype(np.float32)
    return Dendrogram(np.array(children, np.int32).reshape(-1, 2), similarity)


def chain_tree(n):
    firsts = np.concatenate([[0], np.arange(n, 2 * n - 2)])
    return Dendrogram(np.stack([firsts, np.arange(1, n)], 1).astype(np.int32), np.zeros(n - 1, np.float32))


def check_tree(tree, n):
    assert tree.n_labels == n
    assert tree.children.shape == (n - 1, 2)
    assert tree.children.dtype == np.int32
    assert tree.similarity.shape == (n - 1,)
    assert tree.similarity.dtype == np.float32
    assert sorted(tree.children.ravel()) == list(range(2 * n - 2)), "every node but the root is a child once"
    assert (tree.children.max(axis=1, initial=-1) < np.arange(n, 2 * n - 1)).all()
    assert sorted(leaves(tree)) == list(range(n))


@given(st.integers(2, 30), st.sampled_from([0.1, 0.4, 0.9, 1.0]), st.integers(0, 10**6), st.sampled_from(TIES))
def test_positive_merges_are_scipys(n, density, seed, ties):
    table = similarities(n, density, 0, seed)
    distance = table.max() + 1 - table
    np.fill_diagonal(distance, 0)
    theirs = linkage(squareform(distance), "complete")
    similar = table.max() + 1 - theirs[:, 2]
    positive = int((similar > 0).sum())
    tree = complete_link(sp.csr_matrix(table), ties)
    check_tree(tree, n)
    assert np.array_equal(tree.similarity[:positive], similar[:positive])
    assert (tree.similarity[positive:] == 0).all()
    assert clusters(tree.children, n)[: n + positive] == clusters(theirs[:, :2], n)[: n + positive]


@given(st.integers(2, 25), st.floats(0, 1), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from(TIES))
def test_each_merge_is_of_two_clusters_that_none_are_closer_than(n, density, levels, seed, ties):
    table = similarities(n, density, levels, seed)
    tree = complete_link(sp.csr_matrix(table), ties)
    check_tree(tree, n)
    labels_of, now = clusters(tree.children, n), set(range(n))

    def closeness(a, b):
        return table[np.ix_(sorted(labels_of[a]), sorted(labels_of[b]))].min()

    for j, (a, b) in enumerate(tree.children.tolist()):
        best = max(closeness(c, d) for c in now for d in now if c < d)
        assert closeness(a, b) == best == tree.similarity[j]
        now = (now - {a, b}) | {n + j}


@given(st.integers(2, 25), st.floats(0, 0.6), st.integers(1, 4), st.integers(0, 10**6))
def test_ties_are_broken_by_the_average_and_then_by_the_number_of_labels(n, density, levels, seed):
    table = similarities(n, density, levels, seed)
    tree = complete_link(sp.csr_matrix(table))
    labels_of, now = clusters(tree.children, n), set(range(n))

    def mean(a, b):
        return table[np.ix_(sorted(labels_of[a]), sorted(labels_of[b]))].astype(np.float64).mean()

    for j, (a, b) in enumerate(tree.children.tolist()):
        if tree.similarity[j] == 0:
            best = max(mean(c, d) for c in now for d in now if c < d)
            assert np.isclose(mean(a, b), best, rtol=1e-9)
            if best == 0:
                smallest = sorted(len(labels_of[c]) for c in now)[:2]
                assert sorted([len(labels_of[a]), len(labels_of[b])]) == smallest
        now = (now - {a, b}) | {n + j}


def test_ties_in_order_give_a_chain_of_the_clusters_left():
    table = np.zeros((6, 6), np.float32)
    table[1, 4] = table[4, 1] = 2
    tree = complete_link(sp.csr_matrix(table), "order")
    assert tree.children.tolist() == [[1, 4], [0, 6], [2, 7], [3, 8], [5, 9]]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("n", [1, 2, 3, 17])
@pytest.mark.parametrize("value", [0, 1])
def test_all_similar_and_none_similar(n, value, ties):
    tree = complete_link(sp.csr_matrix(np.full((n, n), value, np.float32)), ties)
    check_tree(tree, n)
    assert (tree.similarity == value).all()
    if value == 0 and ties == "average":
        assert balance(n, tree.height()) == 1.0


def test_labels_that_were_never_seen_are_joined_low():
    table = np.zeros((40, 40), np.float32)
    table[:4, :4] = 1
    tree = complete_link(sp.csr_matrix(table))
    check_tree(tree, 40)
    assert frozenset(range(4)) in clusters(tree.children, 40)
    assert tree.height() <= 7


def test_the_input_is_left_alone_and_the_result_is_always_the_same():
    S = sp.csr_matrix(similarities(80, 0.3, 3, 1) + 5 * np.eye(80, dtype=np.float32))
    S.indices[: S.indptr[1]] = S.indices[: S.indptr[1]][::-1].copy()  # unsorted
    S.data[: S.indptr[1]] = S.data[: S.indptr[1]][::-1].copy()
    S.has_sorted_indices = False
    before = [S.data.copy(), S.indices.copy(), S.indptr.copy()]
    one, other = complete_link(S), complete_link(S)
    assert all(np.array_equal(a, b) for a, b in zip(before, [S.data, S.indices, S.indptr], strict=True))
    assert np.array_equal(one.children, other.children)
    plain = similarities(80, 0.3, 3, 1)
    assert np.array_equal(one.children, complete_link(sp.csr_matrix(plain)).children), "the diagonal does not count"


def test_above_the_bound_only_the_most_similar_clusters_are_considered(monkeypatch):
    table = similarities(60, 0.2, 0, 4)
    exact = complete_link(sp.csr_matrix(table))
    monkeypatch.setattr(dendrogram, "MAX_EDGES", 50)
    tree = complete_link(sp.csr_matrix(table))
    check_tree(tree, 60)
    positive = int((exact.similarity > 0).sum())
    assert np.array_equal(tree.children[: positive + 1], exact.children[: positive + 1])
    assert not np.array_equal(tree.children, exact.children)


def test_the_similarity_is_the_number_of_shared_documents_or_intersection_over_union():
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 8)) < 0.3).astype(np.float32)
    Y[:, 5] = 0
    both, counts = Y.T @ Y, Y.sum(axis=0)
    distinct = ~np.eye(8, dtype=bool)
    assert np.array_equal(label_similarity(sp.csr_matrix(Y), "counts").toarray()[distinct], both[distinct])
    iou = both / np.maximum(counts[:, None] + counts - both, 1)
    assert np.allclose(label_similarity(sp.csr_matrix(Y), "iou").toarray()[distinct], iou[distinct])


@given(st.integers(1, 200), st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_a_rebalanced_tree_is_low_and_has_the_same_order_of_leaves(n, seed, chain):
    tree = random_tree(n, seed, chain)
    folded = rebalanced(tree)
    check_tree(folded, n)
    assert leaves(folded) == leaves(tree)
    assert folded.height() <= min(tree.height(), 2 * np.log2(n) + 2)
    assert np.isclose(folded.height() * balance(n, folded.height()), np.ceil(np.log2(n)))
    assert not is_degenerate(n, folded.height())


@given(st.integers(2, 60), st.integers(0, 10**6), st.sampled_from([0.0, 0.9]))
def test_a_new_node_has_the_similarity_of_the_smallest_node_that_had_its_labels(n, seed, chain):
    tree = random_tree(n, seed, chain)
    folded = rebalanced(tree)
    if folded is tree:
        return
    before = clusters(tree.children, n)[n:]
    for j, labels in enumerate(clusters(folded.children, n)[n:]):
        smallest = min((at for at in range(n - 1) if labels <= before[at]), key=lambda at: len(before[at]))
        assert folded.similarity[j] == tree.similarity[smallest]


def test_a_tree_that_is_already_low_is_unchanged():
    children = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]], np.int32)
    tree = Dendrogram(children, np.arange(7, 0, -1).astype(np.float32))
    assert rebalanced(tree) is tree
    folded, similarity = balance_heavy_paths(tree.children, tree.similarity)
    assert set(clusters(folded, 8)) == set(clusters(children, 8)), "clusters that halve well are not split"
    assert sorted(similarity) == sorted(tree.similarity)


def test_a_chain_of_a_million_labels_is_detected_and_rebalanced():
    n = 1_000_000
    chain = chain_tree(n)
    assert chain.height() == n - 1
    assert is_degenerate(n, chain.height())
    assert balance(n, chain.height()) < 1e-4
    low = rebalanced(chain)
    assert low.height() == 20
    assert balance(n, low.height()) == 1.0
    assert to_nodes(low).height == 20
    assert to_nodes(chain).height == n - 1


def test_measures_of_a_tree_worked_by_hand():
    tree = Dendrogram(np.array([[0, 3], [4, 1], [2, 5]], np.int32), np.array([3, 2, 0], np.float32))
    assert tree.depths().tolist() == [3, 2, 1, 3]
    assert tree.height() == 3
    assert balance(4, tree.height()) == pytest.approx(2 / 3)
    one = complete_link(sp.csr_matrix((1, 1), dtype=np.float32))
    assert (one.height(), balance(1, 0), is_degenerate(1, 0)) == (0, 1.0, False)


@given(st.integers(1, 120), st.integers(0, 10**6), st.sampled_from([0.0, 0.9]))
def test_nodes_are_numbered_breadth_first_with_adjacent_siblings(n, seed, chain):
    tree = random_tree(n, seed, chain)
    nodes = to_nodes(tree)
    assert sorted(nodes.label[nodes.label >= 0]) == list(range(n))
    assert nodes.n_labels == n
    assert all(array.dtype == np.int32 for array in (nodes.first_child, nodes.last_child, nodes.label, nodes.parent))
    inner = np.flatnonzero(nodes.label < 0)
    claimed = [child for i in inner for child in range(nodes.first_child[i], nodes.last_child[i])]
    assert claimed == list(range(1, len(nodes))), "children are adjacent, in the order of their parents"
    assert (nodes.first_child[inner] > inner).all()
    assert (nodes.first_child[nodes.label >= 0] == 0).all()
    assert (nodes.last_child[nodes.label >= 0] == 0).all()
    assert (np.diff(nodes.level) >= 0).all(), "breadth first"
    leaf = nodes.label >= 0
    assert nodes.level[leaf][np.argsort(nodes.label[leaf])].tolist() == (tree.depths() + (n == 1)).tolist()
    assert nodes.height == max(tree.height(), 1)


@pytest.mark.parametrize(("balance", "height"), [("never", 69), ("auto", 7), ("always", 7)])
def test_a_chain_of_labels_is_rebalanced_as_asked(balance, height):
    Y = sp.csr_matrix(np.eye(70, dtype=np.float32))
    assert cluster_labels(Y, "counts", "order", balance).height == height
