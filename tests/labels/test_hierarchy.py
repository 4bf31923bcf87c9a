"""Predictions with all ancestors: what must hold for every hierarchy and every ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError
from labelspace.labels.hierarchy import ancestor_probabilities, include_ancestors
from labelspace.metrics import consistent_at_k
from labelspace.types import Hierarchy, TopK


@st.composite
def cases(draw):
    """A tree, a DAG or no edge at all, and lists with equal scores and gaps."""
    n_labels = draw(st.integers(1, 12))
    parents = draw(st.sampled_from([0, 1, 3]))
    above = [draw(st.lists(st.integers(0, child - 1), max_size=parents)) if child else [] for child in range(n_labels)]
    turned = draw(st.permutations(range(n_labels)))  # an ancestor may have the larger id
    edges = [(turned[child], turned[parent]) for child, of in enumerate(above) for parent in of]
    graph = Hierarchy.from_edges(np.array(edges, np.int64).reshape(-1, 2), n_labels)
    n, width = draw(st.integers(0, 3)), draw(st.integers(1, 6))
    labels, scores = np.full((n, width), -1), np.full((n, width), -np.inf)
    for row in range(n):
        listed = draw(st.lists(st.integers(0, n_labels - 1), unique=True, max_size=width))
        at = sorted(draw(st.permutations(range(width)))[: len(listed)])
        labels[row, at] = listed
        scores[row, at] = sorted(draw(st.lists(st.integers(-2, 2), min_size=len(at), max_size=len(at))), reverse=True)
    return TopK(labels, scores), graph, draw(st.integers(1, 15))


def as_dicts(top):
    rows = zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    return [{label: score for label, score in zip(*row, strict=True) if label >= 0} for row in rows]


@given(case=cases())
def test_every_ancestor_is_included_and_ranked_first(case):
    top, graph, k = case
    full, cut = include_ancestors(top, graph, 12), include_ancestors(top, graph, k)
    assert cut.k == k
    assert np.array_equal(cut.padded(12).labels[:, :k], full.padded(max(k, 12)).labels[:, : min(k, 12)])  # a prefix
    if len(top):
        assert consistent_at_k(cut, graph, k) == 1
    for before, after, row in zip(as_dicts(top), as_dicts(full), full.labels, strict=True):
        ancestors = {label: set(graph.ancestors[label].indices.tolist()) for label in before}
        assert set(after) == set(before).union(*ancestors.values())
        for label, score in after.items():
            assert score == max(given for other, given in before.items() if other == label or label in ancestors[other])
        ranks = {label: rank for rank, label in enumerate(before)}
        order = [
            (-after[label], graph.levels[label], ranks.get(label, 99), label) for label in row.tolist() if label >= 0
        ]
        assert order == sorted(order)


def test_a_label_of_several_parents_includes_them_all():
    dag = Hierarchy.from_edges([[3, 1], [3, 2], [2, 0]], n_labels=5)
    closed = include_ancestors(TopK(np.array([[4, 3]]), np.array([[9.0, 1.0]])), dag, 6)
    assert closed.labels.tolist() == [[4, 0, 1, 2, 3, -1]]
    assert closed.scores.tolist() == [[9, 1, 1, 1, 1, -np.inf]]
    assert include_ancestors(TopK(np.array([[4, 3]]), np.array([[9.0, 1.0]])), dag, 2).labels.tolist() == [[4, 0]]


def test_of_several_parents_the_one_that_was_ranked_first_stays_first():
    dag = Hierarchy.from_edges([[2, 0], [2, 1]], n_labels=3)
    closed = include_ancestors(TopK(np.array([[2, 1, 0]]), np.array([[0.9, 0.6, 0.3]])), dag, 3)
    assert closed.labels.tolist() == [[1, 0, 2]]


def test_a_better_ancestor_keeps_its_score():
    tree = Hierarchy.from_edges([[1, 0]], n_labels=2)
    closed = include_ancestors(TopK(np.array([[0, 1]]), np.array([[3.0, -1.0]])), tree, 2)
    assert closed.scores.tolist() == [[3, -1]]


def test_without_edges_or_labels_nothing_changes():
    top = TopK(np.array([[2, 0], [-1, -1]]), np.array([[2.0, 1.0], [-np.inf, -np.inf]]))
    closed = include_ancestors(top, Hierarchy.from_edges([], n_labels=3), 2)
    assert np.array_equal(closed.labels, top.labels)
    assert np.array_equal(closed.scores, top.scores)


def test_a_hierarchy_of_other_labels_is_refused():
    with pytest.raises(DataError, match="over all labels of the TopK, but has 2 labels and one is 2; build it"):
        include_ancestors(TopK(np.array([[2]]), np.array([[1.0]])), Hierarchy.from_edges([[1, 0]], n_labels=2), 1)


@given(case=cases())
def test_no_ancestor_is_less_probable_than_a_label_below_it(case):
    top, graph, _ = case
    given_p = TopK(top.labels, np.where(top.labels >= 0, (top.scores + 2) / 4, -np.inf))
    before, after = as_dicts(given_p), as_dicts(ancestor_probabilities(given_p, graph, 12))
    for listed, closed in zip(before, after, strict=True):
        assert list(closed.values()) == sorted(closed.values(), reverse=True)
        assert all(closed[label] >= p for label, p in listed.items())
        for label, p in closed.items():
            assert all(closed[above] >= p for above in graph.ancestors[label].indices.tolist())
            assert label in listed or graph.ancestors[:, [label]].nnz
