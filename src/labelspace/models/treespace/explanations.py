"""Explain the scores of the tree-embedded label space by the shares of features at every step of a label's path.

1. The score is the mean over learners of the product of sigmoid(z_n) over the nodes n of the label's path; with
   ``rare_boost``, times the label's factor. The baseline is that of the empty document.
2. The margin z_n is b_n plus the product of the node's embedding and the document's vector for its level, which is
   linear in the hidden units: unit u adds w_nu relu(h_u). Feature f adds x_f E_fu to h_u, and to z_n the sum over units
   of that times w_nu times the slope of the ReLU between the empty document and this one.
3. In the Poincaré ball, z_n is not linear in the document's vector. In place of w_n there is the mean gradient of z_n
   along the line from the empty document's vector to this one's, by ``POINTS`` Gauss-Legendre points.
4. Shares of z_n become those of log sigmoid(z_n) and of the score: ``models.tree_paths``.

In Euclidean space all is exact, and the remainder 0; in the ball it is the error of step 3. Where a label has several
parents, prediction gives an ancestor at least the score of a label below it: what is explained is its own path's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from labelspace.models.evidence import Evidence, gauss_legendre, relu_slopes
from labelspace.models.tree_paths import TreePath, labels_below, log_sigmoid, margin_shares, mean_of_paths, path_to
from labelspace.models.treespace.kernels import EPSILON, hyperbolic_product
from labelspace.models.treespace.layout import LevelLayout, bound_norms, bound_norms_backward
from labelspace.models.treespace.network import QuantizedLevelNet
from labelspace.types import Csr, Doubles, Floats, Ints

if TYPE_CHECKING:
    from labelspace.models.treespace.model import Treespace

POINTS = 8  # of the integral along the line: more cost time, fewer leave a larger remainder


class TreeEvidence:
    """The paths to labels for one document X (1, n_features)."""

    def __init__(self, model: Treespace, layout: LevelLayout, X: Csr, view: str) -> None:
        self.model, self.X, self.view = model, X, view
        ball = model.space == "poincare"
        self.documents = [LearnerDocument(net, layout, X, ball) for net in model.estimators_]

    def evidence(self, label: int) -> Evidence:
        """Return the evidence for one label."""
        tree = self.model.tree_
        below = partial(labels_below, tree.first_child, tree.last_child, tree.label)
        # A label without training documents has no node, and no paths.
        nodes = [path_to(tree.parent, node) for node in np.flatnonzero(tree.label == label).tolist()]
        paths = [document.path(nodes[0]) for document in self.documents if nodes]
        weight = 1.0 / max(int(self.model.label_counts_[label]), 1) ** self.model.rare_boost
        return mean_of_paths(paths, len(paths), self.X.indices, self.view, below, weight)


class LearnerDocument:
    """The empty document and document X (1, n_features) in one learner's network."""

    def __init__(self, net: QuantizedLevelNet, layout: LevelLayout, X: Csr, ball: bool) -> None:
        self.net, self.layout, self.ball = net, layout, ball
        self.embeddings = net.feature_embeddings[X.indices].astype(np.float32)  # (features, hidden), unscaled
        self.values = X.data * net.feature_scales[X.indices]
        before, after = net.hidden_bias, net.hidden_bias + self.values @ self.embeddings
        self.unit_slopes = relu_slopes(after, before)
        self.vectors: Floats = np.maximum([before, after], 0) @ net.level_maps  # (2, sum of the levels' widths)

    def path(self, nodes: Ints) -> TreePath:
        """Return the shares at the nodes of a path, one of each level from the first on (steps 2 and 3)."""
        b, z = self._margins(self.vectors, nodes)[0]
        gradient = self._mean_gradient(nodes)
        slices = self.layout.level_slices()[: len(nodes)]
        by_unit = np.stack([self.net.level_maps[:, part] @ gradient[part] for part in slices])
        by_feature = (by_unit * self.unit_slopes).astype(np.float32) @ self.embeddings.T
        parts = by_feature.astype(np.float64) * self.values
        return TreePath(nodes, *margin_shares(log_sigmoid, b, z, parts))

    def _margins(self, vectors: Floats, nodes: Ints) -> tuple[Doubles, Floats]:
        """Return the margins of documents (n, nodes), and their gradients by the documents' vectors (n, all widths)."""
        documents, norms = bound_norms(self.layout, vectors, self.ball)
        margins = np.empty((len(vectors), len(nodes)))
        by_documents, by_norms = np.zeros_like(documents), np.zeros_like(norms)
        for level, (node, part) in enumerate(zip(nodes.tolist(), self.layout.level_slices(), strict=False)):
            start = int(self.layout.offset[node])
            quantized = self.net.node_embeddings[start : start + int(self.layout.width[node])]
            vector = quantized * self.net.node_scales[node]
            products = documents[:, part] @ vector
            margins[:, level], slopes = products + self.net.node_bias[node], np.ones(len(products))
            if self.ball:
                for i, product in enumerate(products.tolist()):
                    value, slopes[i], by_norms[i, level], _ = hyperbolic_product(
                        product, float(norms[i, level]), float(np.linalg.norm(vector) + EPSILON)
                    )
                    margins[i, level] = value + self.net.node_bias[node]
            by_documents[:, part] = slopes[:, None] * vector
        if self.ball:
            return margins, bound_norms_backward(self.layout, vectors, documents, norms, by_documents, by_norms)
        return margins, by_documents

    def _mean_gradient(self, nodes: Ints) -> Doubles:
        """Return the mean gradient of the margins between the two documents; each node's is in its level's part."""
        if not self.ball:
            return np.asarray(self._margins(self.vectors[:1], nodes)[1][0])
        at, weights = gauss_legendre(POINTS)
        before, after = self.vectors
        between = before + at[:, None].astype(np.float32) * (after - before)
        return np.asarray(weights @ self._margins(between, nodes)[1])
