"""The network of treespace: hidden units, a vector of the document for each level, and an embedding per node.

``LevelNet`` is the network in training, ``QuantizedLevelNet`` what is stored of it.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from labelspace.estimator.state_constraints import array
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.models.treespace import kernels, layout
from labelspace.models.treespace.kernels import Paths, TrainedNodes, Visits
from labelspace.models.treespace.layout import LevelLayout
from labelspace.models.treespace.projections import INIT_STD, ParentMatrices, ParentProjections, Penalties, Projections
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer, embedded
from labelspace.types import Csr, Floats, Ints, Rng

FEATURE_INIT_STD = 0.03  # small: most features are rare, and their initial embeddings are noise
MIN_PROBABILITY, MAX_PROBABILITY = 1e-6, 1 - 1e-3  # of a child, at initialization


@dataclass(frozen=True)
class LearningRates:
    """Learning rates of one step: nodes and features by Adagrad, dense layers by Adam."""

    nodes: float
    dense: float
    features: float


def node_visits(rows: Ints, paths: Paths, last_child: Ints) -> Visits:
    """Return all visits of inner nodes by the documents ``rows``."""
    ends = paths.starts[rows + 1]
    lengths = ends - paths.starts[rows]
    at = np.arange(lengths.sum()) + np.repeat(ends - np.cumsum(lengths), lengths)  # positions in the paths
    visit_rows = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
    is_inner = last_child[paths.nodes[at]] > 0
    at, visit_rows = at[is_inner], visit_rows[is_inner]
    return Visits(paths.nodes[at], visit_rows, at + 1, ends[visit_rows], paths.nodes)


class LevelNet:
    """The network, its losses and its optimizers."""

    def __init__(
        self,
        X: Csr,
        shape: LevelLayout,
        hidden_dim: int,
        probabilities: Floats,
        rng: Rng,
        *,
        ball: bool = False,
        penalties: Penalties | None = None,
    ) -> None:
        """Draw the weights; ``probabilities`` (n_nodes,) of a node to be on a path, given its parent, give biases."""
        self.layout, self.ball, self.penalties = shape, ball, penalties or Penalties()
        self.n_steps = 0
        self.features = SparseLayer.random(X, hidden_dim, rng, init_std=FEATURE_INIT_STD)
        self.hidden_bias = AdamParameter(np.zeros(hidden_dim, np.float32))
        maps = rng.standard_normal((int(shape.widths.sum()), hidden_dim), np.float32)
        self.level_maps = AdamParameter(maps * np.float32((2 / hidden_dim) ** 0.5))
        embeddings = rng.standard_normal(int(shape.width.sum()), np.float32) * np.float32(INIT_STD)
        probabilities = np.clip(probabilities, MIN_PROBABILITY, MAX_PROBABILITY)
        bias = np.log(probabilities / (1 - probabilities)).astype(np.float32)
        self.nodes = TrainedNodes(embeddings, bias, np.zeros(len(bias), np.float32), np.zeros(len(bias), np.float32))
        self.projections: ParentProjections | None = None
        if self.penalties.consistency:
            rank = self.penalties.projection_rank
            self.projections = ParentMatrices(shape) if rank is None else Projections(shape, rank, rng)

    def train_step(
        self, batch: Batch, rows: Ints, paths: Paths, weights: Floats, dropout: float, rates: LearningRates, rng: Rng
    ) -> None:
        """Update all weights on a batch, given the paths of all documents, and the batch's weights (batch, levels)."""
        self.n_steps += 1
        units = self.features.embed(batch, self.hidden_bias.value)
        active = (units > 0) & (rng.random(units.shape, np.float32) >= dropout)
        scale = np.float32(1 / (1 - dropout))
        hidden = np.where(active, units * scale, np.float32(0))
        visits = node_visits(rows, paths, self.layout.nodes.last_child)
        child_level = self.layout.level[self.layout.nodes.first_child[visits.nodes]]
        rows_at = [np.unique(visits.rows[child_level == level]) for level in range(self.layout.levels)]
        # The rows that need a vector at a level, since a parent of its nodes is on their paths, and the level's slice.
        levels = [(at, part) for at, part in zip(rows_at, self.layout.level_slices(), strict=True) if len(at)]
        raw = np.zeros((len(units), len(self.level_maps.value)), np.float32)
        for at, part in levels:
            raw[at, part] = hidden[at] @ self.level_maps.value[part].T
        vectors, norms = layout.bound_norms(self.layout, raw, self.ball)
        documents = kernels.Documents(vectors, norms, weights, np.zeros_like(vectors), np.zeros_like(norms))
        self._descend_nodes(visits, documents, rates.nodes)
        by_vectors = documents.by_vectors
        if self.ball:
            by_vectors = layout.bound_norms_backward(self.layout, raw, vectors, norms, by_vectors, documents.by_norms)
        by_hidden = np.zeros_like(hidden)
        for at, part in levels:
            gradient = by_vectors[at, part]
            by_hidden[at] += gradient @ self.level_maps.value[part]
            self.level_maps.step(gradient.T @ hidden[at], rates.dense, self.n_steps, part)
        by_units = np.where(active, by_hidden * scale, np.float32(0))
        self.hidden_bias.step(by_units.sum(axis=0), rates.dense, self.n_steps)
        self.features.backward(batch, by_units, rates.features)

    def _descend_nodes(self, visits: Visits, documents: kernels.Documents, rate: float) -> None:
        """Update the children of all visited nodes, and add to the gradients of the documents."""
        penalties = self.penalties
        order = np.argsort(visits.nodes, kind="stable")
        child_starts, row_ends = visits.child_starts[order], visits.row_ends[order]
        visits = Visits(visits.nodes[order], visits.rows[order], child_starts, row_ends, visits.path_nodes)
        parents, starts = np.unique(visits.nodes, return_index=True)
        targets = np.zeros((len(parents), int(self.layout.widths.max())), np.float32)
        if self.projections is not None:
            targets = self.projections.targets(parents, self.nodes.embeddings)
        visited = kernels.Parents(parents, np.append(starts, len(order)), targets, np.zeros_like(targets))
        step = kernels.Step(rate, 2 * penalties.consistency, penalties.weight_decay, self.ball)
        kernels.update_children(visited, visits, documents, self.layout.arrays, self.nodes, step)
        if self.projections is not None:
            self.projections.backward(parents, self.nodes, visited.deviations, penalties, rate, self.n_steps)
        if penalties.dimensions:
            layout.shrink_dimensions(self.layout, self.nodes.embeddings, penalties.dimensions * rate)


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
        features, nodes = quantize_int8(net.features.vectors), layout.quantize_nodes(net.layout, net.nodes.embeddings)
        return cls(*features, net.hidden_bias.value, net.level_maps.value.T.copy(), *nodes, net.nodes.bias)

    @property
    def n_parameters(self) -> int:
        """The number of weights and embedding coordinates."""
        return self.feature_embeddings.size + self.level_maps.size + self.node_embeddings.size + self.node_bias.size

    def document_vectors(self, X: Csr) -> Floats:
        """Return the vectors of documents for all levels. Shape (n, sum of the levels' widths)."""
        hidden = embedded(csr_arrays(X), self.feature_embeddings, self.feature_scales, self.hidden_bias)
        out = np.empty((len(hidden), self.level_maps.shape[1]), np.float32)
        kernels.relu_matmul(hidden, self.level_maps, out)
        return out

    def dequantized_nodes(self, layout: LevelLayout) -> Floats:
        """Return the node embeddings as float32, in one flat array."""
        return self.node_embeddings.astype(np.float32) * np.repeat(self.node_scales, layout.width)

    def node_norms(self, layout: LevelLayout) -> Floats:
        """Return the norms of the node embeddings; 1 for the root. Shape (n_nodes,)."""
        norms = np.ones_like(self.node_scales)
        sums = np.add.reduceat(np.square(self.node_embeddings, dtype=np.float32), layout.offset[1:])
        norms[1:] = np.sqrt(sums) * self.node_scales[1:] + kernels.EPSILON
        return norms
