"""Projections of parents into the space of their children, for the consistency loss.

``Projections`` shares a matrix on each level and adds one of low rank for each parent; ``ParentMatrices`` is a full
matrix for each parent.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from labelspace.models.treespace.layout import LevelLayout
from labelspace.training.optimizers import AdamParameter, RowAdagrad
from labelspace.types import Floats, Ints, Longs

INIT_STD = 0.05


@dataclass
class ParentProjections(ABC):
    """What the children of each parent are drawn to."""

    layout: LevelLayout

    @abstractmethod
    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """The target of the children of each parent; 0 for those of the root. Shape (n_parents, largest width)."""

    @abstractmethod
    def backward(
        self, parents: Ints, embeddings: Floats, residuals: Floats, squares: Floats, consistency_weight: float,
        weight_decay: float, learning_rate: float, n_steps: int,
    ) -> None:  # fmt: skip
        """A step of the projections and the parents on the consistency loss.

        ``residuals`` (n_parents, width) are the sums over children of embedding minus target; ``squares`` (n_nodes,) is
        the Adagrad state of the embeddings.
        """

    def _by_level(self, parents: Ints, embeddings: Floats) -> list[tuple[int, Longs, Ints, Floats]]:
        """For each level with parents: the level, their positions in ``parents``, their nodes, their embeddings."""
        out = []
        for level in range(self.layout.levels - 1):
            at = np.flatnonzero((self.layout.level[parents] == level) & (parents > 0))
            if len(at):
                out.append((level, at, parents[at], embeddings[self.layout.indices(parents[at])]))
        return out

    def _step_parents(
        self, nodes: Ints, by_vectors: Floats, embeddings: Floats, squares: Floats, learning_rate: float
    ) -> None:
        """An Adagrad step of parents of one level, given the gradient by their embeddings."""
        squares[nodes] += np.einsum("ij,ij->i", by_vectors, by_vectors) / by_vectors.shape[1]
        step = np.float32(learning_rate) / (np.sqrt(squares[nodes]) + np.float32(1e-10))
        embeddings[self.layout.indices(nodes)] -= step[:, None] * by_vectors


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
    def init(cls, layout: LevelLayout, rank: int, rng: np.random.Generator) -> Self:
        """P keeps the coordinates that both levels have; u is 0."""
        pairs = zip(layout.widths[:-1].tolist(), layout.widths[1:].tolist(), strict=True)
        n, widest = len(layout.nodes), int(layout.widths.max())
        downs = rng.standard_normal((n, rank, widest), np.float32) * np.float32(INIT_STD)
        shared = [AdamParameter(np.eye(*pair, dtype=np.float32)) for pair in pairs]
        return cls(layout, shared, np.zeros((n, rank, widest), np.float32), downs, (RowAdagrad(n), RowAdagrad(n)))

    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """See the base class."""
        out = np.zeros((len(parents), self.ups.shape[2]), np.float32)
        for level, at, nodes, vectors in self._by_level(parents, embeddings):
            width = self.layout.widths[level + 1]
            out[at, :width] = vectors @ self.shared[level].value
            low_rank = np.einsum("nrw,nw->nr", self.downs[nodes, :, : vectors.shape[1]], vectors)
            out[at] += np.einsum("nr,nrw->nw", low_rank, self.ups[nodes])
        return out

    def backward(
        self, parents: Ints, embeddings: Floats, residuals: Floats, squares: Floats, consistency_weight: float,
        weight_decay: float, learning_rate: float, n_steps: int,
    ) -> None:  # fmt: skip
        """See the base class."""
        for level, at, nodes, vectors in self._by_level(parents, embeddings):
            width, shared = self.layout.widths[level + 1], self.shared[level]
            error = np.float32(-2 * consistency_weight) * residuals[at, :width]
            ups, downs = self.ups[nodes, :, :width], self.downs[nodes, :, : vectors.shape[1]]
            by_low_rank = np.einsum("nrw,nw->nr", ups, error)
            by_vectors = error @ shared.value.T + np.einsum("nr,nrw->nw", by_low_rank, downs)
            excess = shared.value - np.eye(*shared.value.shape, dtype=np.float32)
            shared.step(vectors.T @ error + np.float32(weight_decay) * excess, learning_rate / 10, n_steps)
            low_rank = np.einsum("nrw,nw->nr", downs, vectors)
            by_ups = low_rank[:, :, None] * error[:, None, :] + np.float32(weight_decay) * ups
            by_downs = by_low_rank[:, :, None] * vectors[:, None, :] + np.float32(weight_decay) * downs
            parts = ((self.ups, by_ups), (self.downs, by_downs))
            for (table, gradient), optimizer in zip(parts, self.optimizers, strict=True):
                padded = np.zeros_like(table[nodes])
                padded[:, :, : gradient.shape[2]] = gradient
                steps = optimizer.updates(nodes, padded.reshape(len(nodes), -1), learning_rate)
                table[nodes] += steps.reshape(padded.shape)
            self._step_parents(nodes, by_vectors, embeddings, squares, learning_rate)


@dataclass
class ParentMatrices(ParentProjections):
    """A full matrix for each parent: the target of the children of a parent p with the matrix P is P' p."""

    matrices: list[Floats]  # of each level but the last: (n_nodes, width of the level, width of the next)
    first_nodes: Ints  # the first node of each level
    optimizers: list[RowAdagrad]  # of each level: the state of a whole matrix is one number

    @classmethod
    def init(cls, layout: LevelLayout) -> Self:
        """Matrices that keep the coordinates that both levels have."""
        pairs = zip(layout.widths[:-1].tolist(), layout.widths[1:].tolist(), strict=True)
        first_nodes = np.searchsorted(layout.nodes.level, np.arange(1, layout.levels + 1)).astype(np.int32)
        counts = np.diff(first_nodes).tolist()
        matrices = [
            np.tile(np.eye(*pair, dtype=np.float32), (count, 1, 1)) for pair, count in zip(pairs, counts, strict=True)
        ]
        return cls(layout, matrices, first_nodes, [RowAdagrad(count) for count in counts])

    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """See the base class."""
        out = np.zeros((len(parents), int(self.layout.widths.max())), np.float32)
        for level, at, nodes, vectors in self._by_level(parents, embeddings):
            matrices = self.matrices[level][nodes - self.first_nodes[level]]
            out[at, : matrices.shape[2]] = np.einsum("nw,nwv->nv", vectors, matrices)
        return out

    def backward(
        self, parents: Ints, embeddings: Floats, residuals: Floats, squares: Floats, consistency_weight: float,
        weight_decay: float, learning_rate: float, n_steps: int,
    ) -> None:  # fmt: skip
        """See the base class."""
        for level, at, nodes, vectors in self._by_level(parents, embeddings):
            ids = nodes - self.first_nodes[level]
            matrices = self.matrices[level][ids]
            error = np.float32(-2 * consistency_weight) * residuals[at, : matrices.shape[2]]
            by_vectors = np.einsum("nv,nwv->nw", error, matrices)
            excess = matrices - np.eye(*matrices.shape[1:], dtype=np.float32)
            gradient = vectors[:, :, None] * error[:, None, :] + np.float32(weight_decay) * excess
            steps = self.optimizers[level].updates(ids, gradient.reshape(len(ids), -1), learning_rate)
            self.matrices[level][ids] += steps.reshape(matrices.shape)
            self._step_parents(nodes, by_vectors, embeddings, squares, learning_rate)
