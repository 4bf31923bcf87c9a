"""Projections of parents into the space of their children, for the consistency loss.

``Projections`` shares a matrix on each level and adds one of low rank for each parent; ``ParentMatrices`` has a full
matrix for each parent.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

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


class ParentProjections(ABC):
    """Projections, by which the children of each parent are drawn to a target."""

    def __init__(self, layout: LevelLayout) -> None:
        self.layout = layout
        pairs = zip(layout.widths[:-1].tolist(), layout.widths[1:].tolist(), strict=True)
        # Of each level but the last (width, width of the next): they keep the coordinates that both levels have.
        self.identities = [np.eye(*pair, dtype=np.float32) for pair in pairs]

    @abstractmethod
    def project(self, level: int, parents: Ints, vectors: Floats) -> Floats:
        """Return the projections of some parents of a level, given their embeddings."""

    @abstractmethod
    def step(
        self, level: int, parents: Ints, vectors: Floats, errors: Floats, decay: np.float32, rate: float, n_steps: int
    ) -> Floats:
        """Update the projections of a level's parents on the gradient by targets; return that by the embeddings."""

    def targets(self, parents: Ints, embeddings: Floats) -> Floats:
        """Return the target of the children of each parent; 0 below the root. Shape (n_parents, largest width)."""
        out = np.zeros((len(parents), int(self.layout.widths.max())), np.float32)
        for level, at in self._by_level(parents):
            vectors = embeddings[self.layout.indices(parents[at])]
            out[at, : self.layout.widths[level + 1]] = self.project(level, parents[at], vectors)
        return out

    def backward(
        self, parents: Ints, nodes: TrainedNodes, residuals: Floats, penalties: Penalties, rate: float, n_steps: int
    ) -> None:
        """Update the projections on the consistency loss, and the parents by Adagrad.

        ``residuals`` (n_parents, width) are the sums over children of embedding minus target.
        """
        decay = np.float32(penalties.weight_decay)
        for level, at in self._by_level(parents):
            some, indices = parents[at], self.layout.indices(parents[at])
            errors = np.float32(-2 * penalties.consistency) * residuals[at, : self.layout.widths[level + 1]]
            by_vectors = self.step(level, some, nodes.embeddings[indices], errors, decay, rate, n_steps)
            nodes.squares[some] += np.einsum("ij,ij->i", by_vectors, by_vectors) / by_vectors.shape[1]
            rates = np.float32(rate) / (np.sqrt(nodes.squares[some]) + ADAGRAD_EPSILON)
            nodes.embeddings[indices] -= rates[:, None] * by_vectors

    def _by_level(self, parents: Ints) -> Iterator[tuple[int, Longs]]:
        """Yield each level with parents, and their positions in ``parents``."""
        for level in range(self.layout.levels - 1):
            at = np.flatnonzero((self.layout.level[parents] == level) & (parents > 0))
            if len(at):
                yield level, at


class Projections(ParentProjections):
    """A matrix per level, shared by all its parents, plus a matrix of low rank per parent.

    The target of the children of a parent p on a level with matrix P is (P' + sum of u v') p. At the start u is 0.
    """

    def __init__(self, layout: LevelLayout, rank: int, rng: Rng) -> None:
        super().__init__(layout)
        shape = (len(layout.nodes), rank, int(layout.widths.max()))
        self.shared = [AdamParameter(identity.copy()) for identity in self.identities]  # P
        self.ups = np.zeros(shape, np.float32)  # u
        self.downs = rng.standard_normal(shape, np.float32) * np.float32(INIT_STD)  # v
        self.optimizers = (RowAdagrad(shape[0]), RowAdagrad(shape[0]))  # of ups and downs

    def project(self, level: int, parents: Ints, vectors: Floats) -> Floats:
        """Return (P' + sum of u v') p for each parent p."""
        low_rank = np.einsum("nrw,nw->nr", self.downs[parents, :, : vectors.shape[1]], vectors)
        projected: Floats = vectors @ self.shared[level].value
        projected += np.einsum("nr,nrw->nw", low_rank, self.ups[parents])[:, : projected.shape[1]]
        return projected

    def step(
        self, level: int, parents: Ints, vectors: Floats, errors: Floats, decay: np.float32, rate: float, n_steps: int
    ) -> Floats:
        """Update the shared matrices by Adam, and the matrices of the parents by row-wise Adagrad."""
        shared, identity = self.shared[level], self.identities[level]
        ups, downs = self.ups[parents, :, : errors.shape[1]], self.downs[parents, :, : vectors.shape[1]]
        by_low_rank = np.einsum("nrw,nw->nr", ups, errors)
        by_vectors: Floats = errors @ shared.value.T + np.einsum("nr,nrw->nw", by_low_rank, downs)
        shared.step(vectors.T @ errors + decay * (shared.value - identity), rate / SHARED_SLOWDOWN, n_steps)
        low_rank = np.einsum("nrw,nw->nr", downs, vectors)
        by_ups = low_rank[:, :, None] * errors[:, None, :] + decay * ups
        by_downs = by_low_rank[:, :, None] * vectors[:, None, :] + decay * downs
        parts = zip((self.ups, self.downs), (by_ups, by_downs), self.optimizers, strict=True)
        for table, gradient, optimizer in parts:
            padded = np.zeros((len(parents), *table.shape[1:]), np.float32)
            padded[:, :, : gradient.shape[2]] = gradient
            table[parents] += optimizer.updates(parents, padded.reshape(len(parents), -1), rate).reshape(padded.shape)
        return by_vectors


class ParentMatrices(ParentProjections):
    """A full matrix for each parent: the target of the children of a parent p with the matrix P is P' p."""

    def __init__(self, layout: LevelLayout) -> None:
        super().__init__(layout)
        self.first_nodes = np.searchsorted(layout.nodes.level, np.arange(1, layout.levels + 1))  # of each level
        counts = np.diff(self.first_nodes).tolist()
        # Of each level but the last: (n_nodes, width of the level, width of the next).
        self.matrices = [np.tile(part, (n, 1, 1)) for part, n in zip(self.identities, counts, strict=True)]
        self.optimizers = [RowAdagrad(n) for n in counts]  # of each level: the state of a whole matrix is one number

    def project(self, level: int, parents: Ints, vectors: Floats) -> Floats:
        """Return P' p for each parent p."""
        matrices = self.matrices[level][parents - self.first_nodes[level]]
        return np.asarray(np.einsum("nw,nwv->nv", vectors, matrices))

    def step(
        self, level: int, parents: Ints, vectors: Floats, errors: Floats, decay: np.float32, rate: float, n_steps: int
    ) -> Floats:
        """Update the matrices of the parents by Adagrad, with one number of state per matrix."""
        ids = parents - self.first_nodes[level]
        matrices = self.matrices[level][ids]
        gradient = vectors[:, :, None] * errors[:, None, :] + decay * (matrices - self.identities[level])
        steps = self.optimizers[level].updates(ids, gradient.reshape(len(ids), -1), rate)
        self.matrices[level][ids] += steps.reshape(matrices.shape)
        return np.asarray(np.einsum("nv,nwv->nw", errors, matrices))
