import numpy as np
import pytest

from labelspace.models.hierarchicalxc.classifiers import NodeTargets
from labelspace.models.hierarchicalxc.dendrogram import cluster_labels


@pytest.fixture
def case(data):
    """Labels of documents, all of them seen, and their tree."""
    Y = data[0].Y[:200]
    Y = Y[:, np.unique(Y.indices)]
    return Y, cluster_labels(Y, "iou", "average", "auto")


def on_paths(Y, tree):
    """Whether each node is the root or above a label of each document, by brute force: (n, n_nodes)."""
    below = np.zeros((len(tree), Y.shape[1]))
    for node in range(len(tree) - 1, -1, -1):
        if tree.label[node] >= 0:
            below[node, tree.label[node]] = 1
        if node:
            below[tree.parent[node]] += below[node]
    on_path = Y @ below.T > 0
    on_path[:, 0] = True
    return on_path


def test_targets_are_the_children_of_nodes_on_the_paths(case):
    Y, tree = case
    rows = np.arange(200, dtype=np.int32)
    targets, nodes, ends = NodeTargets(tree, Y, off_path=0).of_rows(rows)
    expected = on_paths(Y, tree)
    for row in range(0, 200, 7):
        part = slice(ends[row], ends[row + 1])
        trained = expected[row, tree.parent]
        trained[0] = False  # the root has no classifier
        assert sorted(nodes[part].tolist()) == np.flatnonzero(trained).tolist()
        assert np.array_equal(targets[part], expected[row, nodes[part]])


def test_the_log_odds_are_how_often_a_node_is_on_the_path_given_its_parent(case):
    Y, tree = case
    positive = on_paths(Y, tree)
    trained = positive[:, tree.parent]
    trained[:, 0] = False
    yes, no = (positive & trained).sum(axis=0), (~positive & trained).sum(axis=0)
    expected = np.log((yes + 0.5) / (no + 0.5))
    assert np.allclose(NodeTargets(tree, Y, 0).log_odds(), expected, atol=1e-5)


def test_an_off_path_document_is_a_negative_of_more_nodes(case):
    Y, tree = case
    rows = np.arange(200, dtype=np.int32)
    batches = [NodeTargets(tree, Y, off_path).of_rows(rows) for off_path in (0, 1, 2, 100)]
    assert len({targets.sum() for targets, _, _ in batches}) == 1
    assert (np.diff([len(nodes) for _, nodes, _ in batches]) > 0).all()
    assert len(batches[-1][1]) == 200 * (len(tree) - 1)
