import numpy as np
import pytest

from labelspace.features.normalize import normalize_rows
from labelspace.models.hierarchicalxc import classifiers
from labelspace.models.hierarchicalxc.classifiers import node_blocks, train_linear_classifiers
from labelspace.models.hierarchicalxc.dendrogram import cluster_labels
from labelspace.types import no_progress


def test_blocks_of_nodes_change_no_classifier(data, monkeypatch):
    train = data[0].rows(range(200))
    Y = train.Y[:, np.unique(train.Y.indices)]
    tree, trained = cluster_labels(Y, "iou", "average", "auto"), []
    for block in (64, 4, 1):
        monkeypatch.setattr(classifiers, "NODE_BLOCK", block)
        progress = lambda done, total: no_progress("nodes", done, total)  # noqa: E731
        trained.append(train_linear_classifiers(normalize_rows(train.X), Y, tree, 10.0, 0.1, 0, progress))
    assert all(np.array_equal(a, b) for other in trained[1:] for a, b in zip(trained[0], other, strict=True))
    assert len(trained[0].bias) == len(tree)


@pytest.mark.parametrize("block", [1, 2, 64])
def test_blocks_of_nodes_cover_every_node_once(monkeypatch, block):
    monkeypatch.setattr(classifiers, "NODE_BLOCK", block)
    for n in (1, 2, 3, 5, 63, 64, 65, 128, 129, 1000):
        blocks = node_blocks(n)
        assert [at for start, stop in blocks for at in range(start, stop)] == list(range(n))
        assert all(0 < stop - start <= block for start, stop in blocks)
