"""The network of treespace: hidden units, a vector of the document for each level, and an embedding per node.

``LevelNet`` is the network in training, ``QuantizedLevelNet`` what is stored of it.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from labelspace.estimator.state_constraints import array
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.models.treespace.ball import bound_norms, bound_norms_backward
from labelspace.models.treespace.dimensions import shrink_dimensions
from labelspace.models.treespace.kernels import EPSILON, node_visits, relu_matmul, update_children
from labelspace.models.treespace.layout import LevelLayout, quantize_nodes
from labelspace.models.treespace.projections import INIT_STD, ParentMatrices, ParentProjections, Projections
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Csr, Floats, Ints, Longs

FEATURE_INIT_STD = 0.03  # small: most features are rare, and their initial embeddings are noise
MIN_PROBABILITY, MAX_PROBABILITY = 1e-6, 1 - 1e-3  # of a child, at initialization


@dataclass(frozen=True)
class LearningRates:
    """Learning rates of one step: nodes and features by Adagrad, dense layers by Adam."""

    nodes: float
    dense: float
    features: float


class LevelNet:
    """The network, its losses and its optimizers.

    ``probabilities`` (n_nodes,) are those of a node to be on the path of a document, given its parent: biases start
    there. With ``consistency_weight`` 0 there are no projections; with ``projection_rank`` None each parent has a full
    one.
    """

    def __init__(
        self, X: Csr, layout: LevelLayout, hidden_dim: int, probabilities: Floats, ball: bool, rng: np.random.Generator,
        consistency_weight: float = 0.0, projection_rank: int | None = 1, weight_decay: float = 0.0,
        dimension_penalty: float = 0.0,
    ) -> None:  # fmt: skip
        self.layout, self.ball, self.n_steps = layout, ball, 0
        self.consistency_weight, self.weight_decay = consistency_weight, weight_decay
        self.dimension_penalty = dimension_penalty
        self.features = SparseLayer.random(X, hidden_dim, rng, init_std=FEATURE_INIT_STD)
        self.hidden_bias = AdamParameter(np.zeros(hidden_dim, np.float32))
        maps = rng.standard_normal((int(layout.widths.sum()), hidden_dim), np.float32)
        self.level_maps = AdamParameter(maps * np.float32((2 / hidden_dim) ** 0.5))
        self.embeddings = rng.standard_normal(int(layout.width.sum()), np.float32) * np.float32(INIT_STD)
        probabilities = np.clip(probabilities, MIN_PROBABILITY, MAX_PROBABILITY)
        self.bias = np.log(probabilities / (1 - probabilities)).astype(np.float32)
        n = len(layout.nodes)
        self.squares, self.bias_squares = np.zeros(n, np.float32), np.zeros(n, np.float32)  # the state of Adagrad
        self.projections: ParentProjections | None = None
        if consistency_weight:
            self.projections = (
                ParentMatrices.init(layout)
                if projection_rank is None
                else Projections.init(layout, projection_rank, rng)
            )

    def train_step(
        self, batch: Batch, rows: Ints, starts: Longs, on_path: Ints, weights: Floats, dropout: float,
        rates: LearningRates, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """A step on a batch; the nodes on the paths of row i are ``on_path[starts[i] : starts[i + 1]]``."""
        self.n_steps += 1
        units = self.features.embed(batch, self.hidden_bias.value)
        active = (units > 0) & (rng.random(units.shape, np.float32) >= dropout)
        scale = np.float32(1 / (1 - dropout))
        hidden = np.where(active, units * scale, np.float32(0))
        visits = node_visits(rows, starts, on_path, self.layout.nodes.last_child)
        child_level = self.layout.level[self.layout.nodes.first_child[visits[0]]]
        rows_at = [np.unique(visits[1][child_level == level]) for level in range(self.layout.levels)]
        # The rows that need a vector at a level, since a parent of its nodes is on their paths, and the level's slice.
        levels = [(at, part) for at, part in zip(rows_at, self.layout.level_slices(), strict=True) if len(at)]
        raw = np.zeros((len(units), len(self.level_maps.value)), np.float32)
        for at, part in levels:
            raw[at, part] = hidden[at] @ self.level_maps.value[part].T
        documents, norms = bound_norms(self.layout, raw, self.ball)
        by_documents, by_norms = self._descend_nodes(visits, on_path, documents, norms, weights, rates.nodes)
        if self.ball:
            by_documents = bound_norms_backward(self.layout, raw, documents, norms, by_documents, by_norms)
        by_hidden = np.zeros_like(hidden)
        for at, part in levels:
            gradient = by_documents[at, part]
            by_hidden[at] += gradient @ self.level_maps.value[part]
            self.level_maps.step(gradient.T @ hidden[at], rates.dense, self.n_steps, part)
        by_units = np.where(active, by_hidden * scale, np.float32(0))
        self.hidden_bias.step(by_units.sum(axis=0), rates.dense, self.n_steps)
        self.features.backward(batch, by_units, rates.features)

    def _descend_nodes(
        self, visits: tuple[Ints, Ints, Longs, Longs], on_path: Ints, documents: Floats, norms: Floats, weights: Floats,
        learning_rate: float,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Update the children of all nodes on paths of the batch; returns the gradients by documents and norms.

        ``visits`` are the inner nodes on the paths, with the row of each and the bounds of its children in ``on_path``.
        """
        layout, projections = self.layout, self.projections
        by_documents, by_norms = np.zeros_like(documents), np.zeros_like(norms)
        nodes, visit_rows, child_starts, row_ends = visits
        order = np.argsort(nodes, kind="stable")
        parents, parent_starts = np.unique(nodes[order], return_index=True)
        targets = np.zeros((len(parents), int(layout.widths.max())), np.float32)
        if projections is not None:
            targets = projections.targets(parents, self.embeddings)
        residuals = np.zeros_like(targets)
        update_children(
            parents, np.append(parent_starts, len(order)), order, visit_rows, child_starts, row_ends, on_path,
            documents, norms, weights, *layout.tree, layout.level, layout.offset, layout.width, layout.document_offset,
            self.embeddings, self.bias, self.squares, self.bias_squares, targets, 2 * self.consistency_weight,
            self.weight_decay, learning_rate, self.ball, by_documents, by_norms, residuals,
        )  # fmt: skip
        if projections is not None:
            projections.backward(
                parents, self.embeddings, residuals, self.squares, self.consistency_weight, self.weight_decay,
                learning_rate, self.n_steps,
            )  # fmt: skip
        if self.dimension_penalty:
            shrink_dimensions(layout, self.embeddings, self.dimension_penalty * learning_rate)
        return by_documents, by_norms


@dataclass(frozen=True)
class QuantizedLevelNet:
    """A trained network: features and nodes in 8 bits."""

    feature_embeddings: Annotated[Int8s, array("int8", "n_features", "hidden")]
    feature_scales: Annotated[Floats, array("float32", "n_features")]
    hidden_bias: Annotated[Floats, array("float32", "hidden")]
    level_maps: Annotated[Floats, array("float32", "hidden", "document_dim")]  # sum of the levels' widths
    node_embeddings: Annotated[Int8s, array("int8", "node_dims")]  # sum of the nodes' widths
    node_scales: Annotated[Floats, array("float32", "n_nodes")]
    node_bias: Annotated[Floats, array("float32", "n_nodes")]

    @classmethod
    def from_net(cls, net: LevelNet) -> Self:
        """Quantize a network."""
        features, nodes = quantize_int8(net.features.vectors), quantize_nodes(net.layout, net.embeddings)
        return cls(*features, net.hidden_bias.value, net.level_maps.value.T.copy(), *nodes, net.bias)

    @property
    def n_parameters(self) -> int:
        """The number of weights and embedding coordinates."""
        return self.feature_embeddings.size + self.level_maps.size + self.node_embeddings.size + self.node_bias.size

    def document_vectors(self, X: Csr) -> Floats:
        """The vectors of documents for all levels. Shape (n, sum of the levels' widths)."""
        n, features, bias = X.shape[0], (self.feature_embeddings, self.feature_scales), self.hidden_bias
        hidden, out = np.empty((n, len(bias)), np.float32), np.empty((n, self.level_maps.shape[1]), np.float32)
        embed_rows(X.data, X.indices, X.indptr, 0, n, *features, bias, hidden)
        relu_matmul(hidden, self.level_maps, out)
        return out

    def dequantized_nodes(self, layout: LevelLayout) -> Floats:
        """The node embeddings as numbers, in one flat array."""
        return self.node_embeddings.astype(np.float32) * np.repeat(self.node_scales, layout.width)

    def node_norms(self, layout: LevelLayout) -> Floats:
        """The norms of the node embeddings; 1 for the root. Shape (n_nodes,)."""
        norms = np.ones_like(self.node_scales)
        sums = np.add.reduceat(np.square(self.node_embeddings, dtype=np.float32), layout.offset[1:])
        norms[1:] = np.sqrt(sums) * self.node_scales[1:] + EPSILON
        return norms
