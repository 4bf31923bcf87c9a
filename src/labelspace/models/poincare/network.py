"""What one learner trains: the document map theta and the label points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labelspace import index
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.poincare.geometry import Manifold
from labelspace.models.poincare.pairs import SampledPairs
from labelspace.training.epochs import VALIDATION_K, r_precision
from labelspace.training.losses import SampledLabels
from labelspace.training.optimizers import RowAdagrad, RowAdam, RowOptimizer, RowSgd
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Csr, Floats

if TYPE_CHECKING:
    from labelspace.models.poincare.model import Poincare

LEARNING_RATES = {"adagrad": (0.2, 0.03), "adam": (0.01, 0.001), "sgd": (1.0, 10.0)}  # of label points, and of theta
LABEL_SCALE = 1e-3  # standard deviation of label points at the start
ROW_BLOCK = 64  # documents per task


class Net:
    """Theta (n_features, dimension) and the label points (n_labels, dimension) on a manifold, with their optimizers."""

    def __init__(self, params: Poincare, theta: SparseLayer, label_points: Floats) -> None:
        self.manifold, self.theta, self.label_points = params.manifold, theta, label_points
        label_rate, theta_rate = LEARNING_RATES[params.optimizer]
        self.learning_rate = label_rate if params.learning_rate is None else params.learning_rate
        self.theta_learning_rate = theta_rate if params.feature_learning_rate is None else params.feature_learning_rate
        self.label_optimizer = create_optimizer(params.optimizer, label_points)
        self.theta_optimizer = None  # the layer has an Adagrad inside
        if params.optimizer != "adagrad":
            self.theta_optimizer = create_optimizer(params.optimizer, theta.vectors)
        self.zeros = np.zeros(label_points.shape[1], np.float32)

    @classmethod
    def random(cls, params: Poincare, X: Csr, n_labels: int, rng: np.random.Generator) -> Net:
        """Theta and label points drawn near the origin; the row of theta is 0 for a feature without documents."""
        theta = SparseLayer.random(X, params.embedding_dim, rng, init_std=params.init_std)
        label_points = rng.standard_normal((n_labels, params.embedding_dim), np.float32) * np.float32(LABEL_SCALE)
        return cls(
            params, theta, label_points if params.geometry != "cosine" else params.manifold.project(label_points)
        )

    def document_vectors(self, batch: Batch) -> Floats:
        """The vectors r = theta'x of documents. Shape (batch, dimension)."""
        return self.theta.embed(batch, self.zeros)

    def embed(self, X: Csr) -> Floats:
        """The points of documents. Shape (n, dimension)."""
        return self.manifold.project(self.document_vectors((X.data, X.indices, X.indptr)))

    def sampled_points(self, sampled: SampledLabels | SampledPairs) -> Floats:
        """The points of the sampled labels. Shape (n, dimension)."""
        return self.label_points if sampled.covers_all else self.label_points[sampled.ids]

    def update_labels(self, sampled: SampledLabels | SampledPairs, gradient: Floats, lr_decay: float) -> None:
        """Move the points of the sampled labels on their Euclidean gradient."""
        points, learning_rate = self.sampled_points(sampled), self.learning_rate * lr_decay
        updated = self.manifold.riemannian_step(points, gradient, self.label_optimizer, sampled.ids, learning_rate)
        if sampled.covers_all:
            self.label_points = updated
        else:
            self.label_points[sampled.ids] = updated

    def update_theta(self, batch: Batch, gradient: Floats, lr_decay: float) -> None:
        """Move theta on the gradient (batch, dimension) by r."""
        learning_rate = self.theta_learning_rate * lr_decay
        if self.theta_optimizer is None:
            self.theta.backward(batch, gradient, learning_rate)
            return
        features, rows = self.theta.gradients(batch, gradient)
        self.theta.vectors[features] += self.theta_optimizer.updates(features, rows, learning_rate)

    def validation_score(self, X: Csr, Y: Csr) -> float:
        """R-precision of the nearest labels."""
        ids, geometry = np.arange(len(self.label_points)), self.manifold.geometry
        labels = index.PointIndex(self.label_points, ids, geometry, recall_target=None)
        return r_precision(labels.search(self.embed(X), VALIDATION_K), Y)


def create_optimizer(name: str, table: Floats) -> RowOptimizer:
    """The optimizer of this name for the rows of a table."""
    if name == "sgd":
        return RowSgd()
    return RowAdagrad(len(table)) if name == "adagrad" else RowAdam(*table.shape)


def embed_documents(X: Csr, theta: Int8s, scales: Floats, manifold: Manifold) -> Floats:
    """The points of documents by a quantized theta; each depends on its row alone. Shape (n, dimension)."""
    out, zeros = np.empty((X.shape[0], theta.shape[1]), np.float32), np.zeros(theta.shape[1], np.float32)

    def embed(start: int, stop: int) -> None:
        embed_rows(X.data, X.indices, X.indptr, start, stop, theta, scales, zeros, out)
        out[start:stop] = manifold.project(out[start:stop])

    run_blocks(embed, len(out), ROW_BLOCK)
    return out
