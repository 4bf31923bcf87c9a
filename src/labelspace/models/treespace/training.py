"""What every learner of treespace is trained on: documents, label texts, and the nodes on their paths."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.labels.tree import TreeNodes
from labelspace.models.treespace.tree import on_path_nodes
from labelspace.types import Csr, Floats, Ints, Longs


@dataclass(frozen=True)
class TrainingSet:
    """Documents, and label texts as further documents, with the nodes on their paths."""

    X: Csr
    starts: Longs  # the nodes on the paths of document i are on_path[starts[i] : starts[i + 1]]
    on_path: Ints
    weights: Floats  # (n, levels) of the loss of a document on a level
    probabilities: Floats  # (n_nodes,) of a node to be on a path, given its parent

    @classmethod
    def build(
        cls, X: Csr, Y: Csr, tree: TreeNodes, level_weights: Floats, label_features: Csr | None, label_text: float,
        normalize: bool = True,
    ) -> Self:  # fmt: skip
        """From documents and, where there are any, the texts of the tree's labels with weight ``label_text``."""
        weights = np.ones(X.shape[0], np.float32)
        if label_text and label_features is not None:
            labels = tree.label[tree.label >= 0]
            texts = label_features[labels]
            has_text = np.diff(texts.indptr) > 0
            labels, texts = labels[has_text], texts[has_text]
            n = len(labels)
            own_label = sp.csr_matrix((np.ones(n, np.float32), labels, np.arange(n + 1)), (n, Y.shape[1]))
            texts = normalize_rows(texts) if normalize else texts
            X, Y = sp.vstack([X, texts]).tocsr(), sp.vstack([Y, own_label]).tocsr()
            weights = np.append(weights, np.full(n, label_text, np.float32))
        starts, on_path = on_path_nodes(Y, tree)
        counts = np.bincount(on_path, minlength=len(tree)).astype(np.float32)
        probabilities = (counts + 0.5) / (counts[np.maximum(tree.parent, 0)] + 1)
        return cls(X, starts, on_path, weights[:, None] * level_weights, probabilities)
