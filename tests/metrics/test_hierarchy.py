import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from labelspace.errors import DataError, ParameterError
from labelspace.metrics import best_by_level, consistent_at_k, deepest_accuracy, hierarchical_at_k, micro_f1
from labelspace.types import Hierarchy, TopK
from tests.metrics import slow_metrics as slow
from tests.metrics.random_cases import cases, unhurried

# 0 has the children 1 and 2; 3 is below 1, and 4 below both 1 and 2; 5 has no parent.
DAG = Hierarchy.from_edges([[1, 0], [2, 0], [3, 1], [4, 1], [4, 2]], n_labels=6)
PARENTS = {1: [0], 2: [0], 3: [1], 4: [1, 2]}


def ranked(*rows):
    labels = np.array(rows)
    return TopK(labels, np.where(labels >= 0, -np.arange(labels.shape[1], dtype=float), -np.inf))


def test_hierarchical_figures_by_hand():
    Y = sp.csr_matrix(np.array([[0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]))
    topk = ranked([4, 5], [0, -1], [3, 4])
    # At k=1: predicted {4,1,2,0} and {0}; true {3,1,0} and {1,0}; hits {1,0} and {0}. The third has no labels.
    assert hierarchical_at_k(Y, topk, DAG, 1) == pytest.approx({"hP@1": 3 / 5, "hR@1": 3 / 5, "hF@1": 3 / 5})
    # At k=2: 5 is predicted too.
    assert hierarchical_at_k(Y, topk, DAG, 2) == pytest.approx({"hP@2": 3 / 6, "hR@2": 3 / 5, "hF@2": 6 / 11})


def test_consistency_by_hand():
    topk = ranked(
        [0, 1, 3],  # in order
        [0, 3, 1],  # 3 before its parent
        [0, 1, 4],  # 4 without its parent 2
        [5, -1, 0],  # gaps do no harm
        [-1, -1, -1],  # nothing is said
        [1, 0, 5],  # 1 before its parent
    )
    assert consistent_at_k(topk, DAG, 3) == pytest.approx(3 / 6)
    assert consistent_at_k(topk, DAG, 1) == pytest.approx(5 / 6)
    assert consistent_at_k(ranked([-1]), DAG, 1) == 1
    assert consistent_at_k(ranked([3, 1]), Hierarchy.from_edges([], n_labels=6), 2) == 1


def test_deepest_accuracy_by_hand():
    Y = sp.csr_matrix(
        np.array([[1, 1, 0, 1, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]])
    )
    topk = ranked([0, 4, 3], [0, 1, 2], [0, 5, -1], [0, 1, -1], [0, 1, 3])
    # Levels 2, 1, 0, 2: the answers 4 (wrong), 1 (right), 0 (wrong), none (wrong); the last has no labels.
    assert deepest_accuracy(Y, topk, DAG) == pytest.approx(1 / 4)


def test_answers_by_level_by_hand():
    # Leaves alone are true; their ancestors count with them: {3,1,0} and {2,0}.
    Y = sp.csr_matrix(np.array([[0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]]))
    levels = best_by_level(Y, ranked([3, 0, 2], [0, 1, 2]), DAG, counts=[9, 9, 9, 1, 1, 1], tail=5)
    assert list(levels) == [0, 1, 2]
    assert [levels[level]["accuracy"] for level in levels] == [1, 0, 1]  # at level 1 they say 2 and 1
    assert [levels[level]["accuracy_with_na"] for level in levels] == [1, 0, 1]
    assert [levels[level]["n_na"] for level in levels] == [0, 0, 1]
    assert [levels[level]["n_labels"] for level in levels] == [2, 2, 2]
    assert [levels[level]["n_tail"] for level in levels] == [1, 0, 2]
    assert [levels[level]["n_occurrences"] for level in levels] == [2, 2, 1]
    assert levels[2]["tail_recall"] == 1


def test_without_edges_there_is_one_level():
    flat = Hierarchy.from_edges([], n_labels=3)
    Y, topk = sp.csr_matrix([[0, 1, 0], [1, 0, 1]]), ranked([1, 0], [1, 2])
    levels = best_by_level(Y, topk, flat, counts=[1, 1, 1])
    assert list(levels) == [0]
    assert levels[0]["accuracy"] == deepest_accuracy(Y, topk, flat) == 0.5
    assert hierarchical_at_k(Y, topk, flat, 2)["hF@2"] == micro_f1(Y, topk)


@unhurried
@given(case=cases())
def test_figures_equal_second_implementations(case):
    n_labels = case.Y.shape[1]
    parents = {label: [(label - 1) // 2, *([label - 3] if label > 3 else [])] for label in range(1, n_labels)}
    edges = [(child, parent) for child, of in parents.items() for parent in of]
    graph = Hierarchy.from_edges(np.array(edges, np.int64).reshape(-1, 2), n_labels)
    pairs = slow.pairs_of(case.Y, case.topk, case.k)
    closed = [(slow.with_ancestors(t, parents), slow.with_ancestors(g, parents)) for t, g in pairs]
    hits, said, true = (sum(map(len, sets)) for sets in zip(*((t & g, g, t) for t, g in closed), strict=True))
    ours = hierarchical_at_k(case.Y, case.topk, graph, case.k)
    assert list(ours.values()) == pytest.approx([hits / max(said, 1), hits / true, 2 * hits / (said + true)])
    in_order = [
        all(
            slow.with_ancestors([label], parents) - {label} <= set(listed[:rank])
            for rank, label in enumerate(listed)
            if label >= 0
        )
        for listed in case.topk.labels[:, : case.k].tolist()
    ]
    assert consistent_at_k(case.topk, graph, case.k) == pytest.approx(slow.mean(in_order))
    deepest = []
    for true, listed in slow.pairs_of(case.Y, case.topk, case.topk.k):
        depth = max(graph.levels[label] for label in true)
        answer = next((label for label in listed if label >= 0 and graph.levels[label] == depth), None)
        deepest.append(answer in true)
    assert deepest_accuracy(case.Y, case.topk, graph) == pytest.approx(slow.mean(deepest))


def test_what_does_not_fit_is_refused():
    Y, topk = sp.csr_matrix([[0, 1, 0]]), ranked([1, 0])
    for figure in (
        lambda: hierarchical_at_k(Y, topk, DAG, 1),
        lambda: deepest_accuracy(Y, topk, DAG),
        lambda: best_by_level(Y, topk, DAG, [1]),
    ):
        with pytest.raises(DataError, match="has 6 labels for 3 columns; build it with n_labels=3"):
            figure()
    with pytest.raises(ParameterError, match="k must be at least 1, but is 0"):
        consistent_at_k(topk, DAG, 0)
    with pytest.raises(DataError, match="needs k labels per document, but the TopK has 2"):
        consistent_at_k(topk, DAG, 3)
    with pytest.raises(DataError, match="at least one document, but there is none"):
        consistent_at_k(TopK.empty(0, 2), DAG, 1)
    with pytest.raises(DataError, match="must be a column of Y"):
        consistent_at_k(ranked([6]), DAG, 1)
    with pytest.raises(DataError, match="none of the 1 has"):
        deepest_accuracy(0 * sp.csr_matrix((1, 6)), ranked([1]), DAG)
