"""Projections of parents into the space of their children, for the consistency loss.

``Projections`` shares a matrix on each level and adds one of low rank for each parent; ``ParentMatrices`` has a full
matrix for each parent.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from labelspace.models.treespace.kernels import ADAGRAD_EPSILON, TrainedNodes
from labelspace.models.treespace.layout import LevelLayout
from labelspace.training.optimizers import AdamParameter, RowAdagrad
from labelspace.types import Floats, Ints, Longs, Rng

INIT_STD = 0.05  # of embeddings and of the downs at the start
SHARED_SLOWDOWN = 10  # the rate of shared matrices is so much lower: every parent of a level moves them, by Adam


@dataclass(frozen=True)
class Penalties:
    """The weights of the losses besides the prediction loss, and the rank of a parent's projection."""

    consistency: float = 0.0  # 0: there are no projections
    projection_rank: int | None = 1  # None: a full matrix for each parent
    weight_decay: float = 0.0
    dimensions: float = 0.0


@dataclass
class ParentProjections(ABC):
    """Projections, by which the children of each parent are drawn to a target."""

    layout: LevelLayout

    @abstractmethod
    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """Return the target of the children of each parent; 0 below the root. Shape (n_parents, largest width)."""

    @abstractmethod
    def backward(
        self, parents: Ints, nodes: TrainedNodes, residuals: Floats, penalties: Penalties, rate: float, n_steps: int
    ) -> None:
        """Update the projections and the parents on the consistency loss.

        ``residuals`` (n_parents, width) are the sums over children of embedding minus target.
        """

    def _by_level(self, parents: Ints, embeddings: Floats) -> list[tuple[int, Longs, Ints, Floats]]:
        """Return each level with parents, their positions in ``parents``, their nodes and embeddings."""
        out = []
        for level in range(self.layout.levels - 1):
            at = np.flatnonzero((self.layout.level[parents] == level) & (parents > 0))
            if len(at):
                out.append((level, at, parents[at], embeddings[self.layout.indices(parents[at])]))
        return out

    def _step_parents(self, parents: Ints, by_vectors: Floats, nodes: TrainedNodes, rate: float) -> None:
        """Update parents of one level by Adagrad, given the gradient by their embeddings."""
        nodes.squares[parents] += np.einsum("ij,ij->i", by_vectors, by_vectors) / by_vectors.shape[1]
        step = np.float32(rate) / (np.sqrt(nodes.squares[parents]) + ADAGRAD_EPSILON)
        nodes.embeddings[self.layout.indices(parents)] -= step[:, None] * by_vectors


@dataclass
class Projections(ParentProjections):
    """A matrix per level, shared by all its parents, plus a matrix of low rank per parent.

    The target of the children of a parent p on a level with matrix P is (P' + sum of u v') p.
    """

    shared: list[AdamParameter]  # P: (width of the level, width of the next) each
    ups: Floats  # u: (n_nodes, rank, largest width)
    downs: Floats  # v: (n_nodes, rank, largest width)
    optimizers: tuple[RowAdagrad, RowAdagrad]  # of ups and downs

    @classmethod
    def init(cls, layout: LevelLayout, rank: int, rng: Rng) -> Self:
        """Start where P keeps the coordinates that both levels have; u is 0."""
        pairs = zip(layout.widths[:-1].tolist(), layout.widths[1:].tolist(), strict=True)
        n, widest = len(layout.nodes), int(layout.widths.max())
        downs = rng.standard_normal((n, rank, widest), np.float32) * np.float32(INIT_STD)
        shared = [AdamParameter(np.eye(*pair, dtype=np.float32)) for pair in pairs]
        return cls(layout, shared, np.zeros((n, rank, widest), np.float32), downs, (RowAdagrad(n), RowAdagrad(n)))

    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """Return (P' + sum of u v') p for each parent p."""
        out = np.zeros((len(parents), self.ups.shape[2]), np.float32)
        for level, at, nodes, vectors in self._by_level(parents, embeddings):
            width = self.layout.widths[level + 1]
            out[at, :width] = vectors @ self.shared[level].value
            low_rank = np.einsum("nrw,nw->nr", self.downs[nodes, :, : vectors.shape[1]], vectors)
            out[at] += np.einsum("nr,nrw->nw", low_rank, self.ups[nodes])
        return out

    def backward(
        self, parents: Ints, nodes: TrainedNodes, residuals: Floats, penalties: Penalties, rate: float, n_steps: int
    ) -> None:
        """Update the shared matrices by Adam, and the matrices of the parents by row-wise Adagrad."""
        decay = np.float32(penalties.weight_decay)
        for level, at, some, vectors in self._by_level(parents, nodes.embeddings):
            width, shared = self.layout.widths[level + 1], self.shared[level]
            error = np.float32(-2 * penalties.consistency) * residuals[at, :width]
            ups, downs = self.ups[some, :, :width], self.downs[some, :, : vectors.shape[1]]
            by_low_rank = np.einsum("nrw,nw->nr", ups, error)
            by_vectors = error @ shared.value.T + np.einsum("nr,nrw->nw", by_low_rank, downs)
            excess = shared.value - np.eye(*shared.value.shape, dtype=np.float32)
            shared.step(vectors.T @ error + decay * excess, rate / SHARED_SLOWDOWN, n_steps)
            low_rank = np.einsum("nrw,nw->nr", downs, vectors)
            by_ups = low_rank[:, :, None] * error[:, None, :] + decay * ups
            by_downs = by_low_rank[:, :, None] * vectors[:, None, :] + decay * downs
            parts = zip((self.ups, self.downs), (by_ups, by_downs), self.optimizers, strict=True)
            for table, gradient, optimizer in parts:
                padded = np.zeros_like(table[some])
                padded[:, :, : gradient.shape[2]] = gradient
                steps = optimizer.updates(some, padded.reshape(len(some), -1), rate)
                table[some] += steps.reshape(padded.shape)
            self._step_parents(some, by_vectors, nodes, rate)


@dataclass
class ParentMatrices(ParentProjections):
    """A full matrix for each parent: the target of the children of a parent p with the matrix P is P' p."""

    matrices: list[Floats]  # of each level but the last: (n_nodes, width of the level, width of the next)
    first_nodes: Ints  # the first node of each level
    optimizers: list[RowAdagrad]  # of each level: the state of a whole matrix is one number

    @classmethod
    def init(cls, layout: LevelLayout) -> Self:
        """Start from matrices that keep the coordinates that both levels have."""
        pairs = zip(layout.widths[:-1].tolist(), layout.widths[1:].tolist(), strict=True)
        first_nodes = np.searchsorted(layout.nodes.level, np.arange(1, layout.levels + 1)).astype(np.int32)
        counts = np.diff(first_nodes).tolist()
        matrices = [
            np.tile(np.eye(*pair, dtype=np.float32), (count, 1, 1)) for pair, count in zip(pairs, counts, strict=True)
        ]
        return cls(layout, matrices, first_nodes, [RowAdagrad(count) for count in counts])

    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """Return P' p for each parent p."""
        out = np.zeros((len(parents), int(self.layout.widths.max())), np.float32)
        for level, at, nodes, vectors in self._by_level(parents, embeddings):
            matrices = self.matrices[level][nodes - self.first_nodes[level]]
            out[at, : matrices.shape[2]] = np.einsum("nw,nwv->nv", vectors, matrices)
        return out

    def backward(
        self, parents: Ints, nodes: TrainedNodes, residuals: Floats, penalties: Penalties, rate: float, n_steps: int
    ) -> None:
        """Update the matrices of the parents by Adagrad, with one number of state per matrix."""
        for level, at, some, vectors in self._by_level(parents, nodes.embeddings):
            ids = some - self.first_nodes[level]
            matrices = self.matrices[level][ids]
            error = np.float32(-2 * penalties.consistency) * residuals[at, : matrices.shape[2]]
            by_vectors = np.einsum("nv,nwv->nw", error, matrices)
            excess = matrices - np.eye(*matrices.shape[1:], dtype=np.float32)
            gradient = vectors[:, :, None] * error[:, None, :] + np.float32(penalties.weight_decay) * excess
            steps = self.optimizers[level].updates(ids, gradient.reshape(len(ids), -1), rate)
            self.matrices[level][ids] += steps.reshape(matrices.shape)
            self._step_parents(some, by_vectors, nodes, rate)
