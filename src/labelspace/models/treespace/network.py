"""A network that leads documents down a tree of labels: a vector a node, longer from level to level.

A document's features become hidden units, and these a vector for each level. A node has a vector as long as its level's
are. The shape of the tree and of its vectors is ``Shape``; what learns is ``LevelNet``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labelspace.kernels.level_embeddings import RADIUS, TINY, learn_children, passes
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.labels.tree import Nodes
from labelspace.training.optimizers import AdamParameter, RowAdagrad
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Csr, Floats, Ints, Longs

SPREAD = 0.05  # of the nodes' vectors at the start
FEATURE_SPREAD = 0.03  # of the features' vectors: most features are rare, and what they begin with is noise
LEAST_CHANCE = 1e-6  # of a child, to begin with

NodeTargets = tuple[Ints, Ints, Longs, Longs]  # what ``passes`` gives


def level_widths(root: int, leaf: int, levels: int) -> Ints:
    """The lengths of the vectors of each level: from ``root`` to ``leaf`` by one factor.

    >>> level_widths(64, 256, 3).tolist(), level_widths(64, 256, 1).tolist()
    ([64, 128, 256], [256])
    """
    if levels == 1:
        return np.array([leaf], np.int32)
    return np.rint(root * (leaf / root) ** (np.arange(levels) / (levels - 1))).astype(np.int32)


@dataclass(frozen=True)
class Shape:
    """Where the vectors of nodes and documents stand."""

    nodes: Nodes
    widths: Ints  # (levels,) the lengths of the vectors below the root
    level: Ints = field(init=False)  # (n_nodes,) counted from the children of the root; 0 for the root too
    width: Ints = field(init=False)  # (n_nodes,) of the node's vector; 0 for the root
    offset: Longs = field(init=False)  # (n_nodes,) where it begins
    place: Ints = field(init=False)  # (n_nodes,) where a document's vector for its level begins

    def __post_init__(self) -> None:
        level = np.maximum(self.nodes.level - 1, 0)
        width = self.widths[level].astype(np.int32)
        width[0] = 0
        starts = np.cumsum(self.widths) - self.widths
        for name, value in (
            ("level", level.astype(np.int32)),
            ("width", width),
            ("offset", np.cumsum(width, dtype=np.int64) - width),
            ("place", starts[level].astype(np.int32)),
        ):
            object.__setattr__(self, name, value)

    @property
    def levels(self) -> int:
        """How many there are."""
        return len(self.widths)

    @property
    def tree(self) -> tuple[Ints, Ints]:
        """First and last child of each node."""
        return self.nodes.first_child, self.nodes.last_child

    def parts(self) -> list[slice]:
        """The places of each level's vector in a document's row."""
        ends = np.cumsum(self.widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self.widths.tolist(), strict=True)]

    def rows(self, nodes: Ints) -> Longs:
        """The places of the vectors of some nodes of one level. Shape (n, width)."""
        return self.offset[nodes][:, None] + np.arange(self.width[nodes[0]])


def nodes_in_bytes(shape: Shape, vectors: Floats) -> tuple[Bytes, Floats]:
    """The nodes' vectors as int8, and a scale a node."""
    out, scales = np.zeros(len(vectors), np.int8), np.ones(len(shape.nodes), np.float32)
    for level in range(shape.levels):
        nodes = np.flatnonzero((shape.level == level) & (shape.width > 0)).astype(np.int32)
        if len(nodes):
            rows = shape.rows(nodes)
            out[rows], scales[nodes] = quantize_int8(vectors[rows])
    return out, scales


def placed(shape: Shape, documents: Floats, ball: bool) -> tuple[Floats, Floats]:
    """The vectors of documents as they are used, and their lengths (n, levels): none is longer than the ball allows."""
    lengths = np.ones((len(documents), shape.levels), np.float32)
    if not ball:
        return documents, lengths
    documents = documents.copy()
    for level, part in enumerate(shape.parts()):
        norms = np.linalg.norm(documents[:, part], axis=1) + TINY
        lengths[:, level] = RADIUS * np.tanh(norms / RADIUS)
        documents[:, part] *= (lengths[:, level] / norms)[:, None]
    return documents, lengths


def placed_back(
    shape: Shape, raw: Floats, used: Floats, lengths: Floats, by_used: Floats, by_lengths: Floats
) -> Floats:
    """The gradient by the vectors that ``placed`` in the ball was given, by what it gave."""
    out = np.empty_like(raw)
    for level, part in enumerate(shape.parts()):
        length = lengths[:, level : level + 1]
        unit, norms = used[:, part] / length, np.linalg.norm(raw[:, part], axis=1)[:, None] + TINY
        across = by_used[:, part]
        along = np.einsum("ij,ij->i", across, unit)[:, None]
        slope = 1 - (length / RADIUS) ** 2  # of RADIUS tanh(norm / RADIUS)
        out[:, part] = (across - along * unit) * (length / norms) + unit * slope * (
            along + by_lengths[:, level : level + 1]
        )
    return out


@dataclass
class Projections:
    """What takes the vector of a parent to its children's space: a matrix a level, and one of low rank a parent."""

    shape: Shape
    shared: list[AdamParameter]  # (width of the level, width of the next) each
    ups: Floats  # (n_nodes, rank, widest)
    downs: Floats  # (n_nodes, rank, widest)
    memories: tuple[RowAdagrad, RowAdagrad]

    @classmethod
    def new(cls, shape: Shape, rank: int, rng: np.random.Generator) -> Projections:
        """The coordinates that both spaces have stay as they are; what is a parent's own begins at 0."""
        pairs = zip(shape.widths[:-1].tolist(), shape.widths[1:].tolist(), strict=True)
        n, widest = len(shape.nodes), int(shape.widths.max())
        downs = rng.standard_normal((n, rank, widest), np.float32) * np.float32(SPREAD)
        memories = (RowAdagrad(n), RowAdagrad(n))
        eyes = [AdamParameter(np.eye(*pair, dtype=np.float32)) for pair in pairs]
        return cls(shape, eyes, np.zeros((n, rank, widest), np.float32), downs, memories)

    def goals(self, groups: Ints, vectors: Floats) -> Floats:
        """What the children of each node are pulled to; 0 for those of the root. Shape (n_groups, widest)."""
        out = np.zeros((len(groups), self.ups.shape[2]), np.float32)
        for level, at, parents, own in self._by_level(groups, vectors):
            width = self.shape.widths[level + 1]
            out[at, :width] = own @ self.shared[level].value
            through = np.einsum("nrw,nw->nr", self.downs[parents, :, : own.shape[1]], own)
            out[at] += np.einsum("nr,nrw->nw", through, self.ups[parents])
        return out

    def learn(
        self, groups: Ints, vectors: Floats, strays: Floats, squares: Floats, pull: float, decay: float, rate: float,
        number: int,
    ) -> None:  # fmt: skip
        """Move the projections, and the parents, to where the children are; ``strays`` is as the kernel leaves it."""
        for level, at, parents, own in self._by_level(groups, vectors):
            width = self.shape.widths[level + 1]
            error = np.float32(-pull) * strays[at, :width]
            ups, downs = self.ups[parents, :, :width], self.downs[parents, :, : own.shape[1]]
            through, back = np.einsum("nrw,nw->nr", downs, own), np.einsum("nrw,nw->nr", ups, error)
            shared = self.shared[level]
            by_own = error @ shared.value.T + np.einsum("nr,nrw->nw", back, downs)
            kept = shared.value - np.eye(*shared.value.shape, dtype=np.float32)
            shared.step(own.T @ error + np.float32(decay) * kept, rate / 10, number)
            by_ups = np.zeros_like(self.ups[parents])
            by_ups[:, :, :width] = through[:, :, None] * error[:, None, :] + np.float32(decay) * ups
            by_downs = np.zeros_like(by_ups)
            by_downs[:, :, : own.shape[1]] = back[:, :, None] * own[:, None, :] + np.float32(decay) * downs
            flat = (len(parents), -1)
            self.ups[parents] += self.memories[0].steps(parents, by_ups.reshape(flat), rate).reshape(by_ups.shape)
            self.downs[parents] += self.memories[1].steps(parents, by_downs.reshape(flat), rate).reshape(by_ups.shape)
            squares[parents] += np.einsum("ij,ij->i", by_own, by_own) / own.shape[1]
            step = np.float32(rate) / (np.sqrt(squares[parents]) + np.float32(1e-10))
            vectors[self.shape.rows(parents)] -= step[:, None] * by_own

    def _by_level(self, groups: Ints, vectors: Floats) -> list[tuple[int, Longs, Ints, Floats]]:
        """Level, places in ``groups``, nodes and vectors of those that have a level with children below."""
        found = []
        for level in range(self.shape.levels - 1):
            at = np.flatnonzero((self.shape.level[groups] == level) & (groups > 0))
            if len(at):
                found.append((level, at, groups[at], vectors[self.shape.rows(groups[at])]))
        return found


@dataclass(frozen=True)
class Pace:
    """How fast things move in a step, and what holds them back."""

    nodes: float
    dense: float
    features: float
    pull: float
    decay: float


class LevelNet:
    """The network while it learns.

    ``chances`` (n_nodes,) are those of a document that reaches a node's parent to reach the node: biases begin there.
    A ``rank`` of None is for a training in which nothing pulls.
    """

    def __init__(
        self, X: Csr, shape: Shape, hidden: int, rank: int | None, chances: Floats, ball: bool, rng: np.random.Generator
    ) -> None:
        self.shape, self.ball, self.n_steps = shape, ball, 0
        self.features = SparseLayer.random(X, hidden, rng, spread=FEATURE_SPREAD)
        self.offset = AdamParameter(np.zeros(hidden, np.float32))
        total = int(shape.widths.sum())
        self.maps = AdamParameter(rng.standard_normal((total, hidden), np.float32) * np.float32((2 / hidden) ** 0.5))
        self.vectors = rng.standard_normal(int(shape.width.sum()), np.float32) * np.float32(SPREAD)
        chances = np.clip(chances, LEAST_CHANCE, 1 - 1e-3)
        self.bias = np.log(chances / (1 - chances)).astype(np.float32)
        n = len(shape.nodes)
        self.squares, self.bias_squares = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self.projections = None if rank is None else Projections.new(shape, rank, rng)

    def learn(
        self, batch: Batch, rows: Ints, starts: Longs, reached: Ints, weights: Floats, dropout: float, pace: Pace,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        """A step on some documents, of which row i reaches ``reached[starts[i] : starts[i + 1]]``."""
        self.n_steps += 1
        units = self.features.embed(batch, self.offset.value)
        kept = (units > 0) & (rng.random(units.shape, np.float32) >= dropout)
        share = np.float32(1 / (1 - dropout))
        hidden = np.where(kept, units * share, np.float32(0))
        ways = passes(rows, starts, reached, self.shape.nodes.last_child)
        parts = self._rows_of_levels(ways[0], ways[1])
        raw = np.zeros((len(units), len(self.maps.value)), np.float32)
        for mine, part in parts:
            raw[mine, part] = hidden[mine] @ self.maps.value[part].T
        documents, lengths = placed(self.shape, raw, self.ball)
        by_documents, by_lengths = np.zeros_like(documents), np.zeros_like(lengths)
        self._learn_nodes(ways, reached, documents, lengths, weights, by_documents, by_lengths, pace)
        if self.ball:
            by_documents = placed_back(self.shape, raw, documents, lengths, by_documents, by_lengths)
        by_hidden = np.zeros_like(hidden)
        for mine, part in parts:
            gradient = by_documents[mine, part]
            by_hidden[mine] += gradient @ self.maps.value[part]
            self.maps.step(gradient.T @ hidden[mine], pace.dense, self.n_steps, part)
        by_units = np.where(kept, by_hidden * share, np.float32(0))
        self.offset.step(by_units.sum(axis=0), pace.dense, self.n_steps)
        self.features.descend(batch, by_units, pace.features)

    def _rows_of_levels(self, nodes: Ints, of_rows: Ints) -> list[tuple[Longs, slice]]:
        """The rows that pass a node above each level, and that level's places: no other row needs a vector there."""
        below = self.shape.level[self.shape.nodes.first_child[nodes]]
        found = [(np.unique(of_rows[below == level]), part) for level, part in enumerate(self.shape.parts())]
        return [(mine, part) for mine, part in found if len(mine)]

    def _learn_nodes(
        self, ways: NodeTargets, reached: Ints, documents: Floats, lengths: Floats, weights: Floats, by_documents: Floats,
        by_lengths: Floats, pace: Pace,
    ) -> None:  # fmt: skip
        """Move the nodes below which documents pass; the gradients by the documents are added."""
        first, last = self.shape.tree
        nodes, of_rows, begins, ends = ways
        order = np.argsort(nodes, kind="stable")
        groups, group_starts = np.unique(nodes[order], return_index=True)
        held = self.projections
        goals = np.zeros((len(groups), int(self.shape.widths.max())), np.float32)  # that of the roots stays so
        if held is not None:
            goals = held.goals(groups, self.vectors)
        strays = np.zeros_like(goals)
        learn_children(
            groups, np.append(group_starts, len(order)), order, of_rows, begins, ends, reached, documents, lengths,
            weights, first, last, self.shape.level, self.shape.offset, self.shape.width, self.shape.place, self.vectors,
            self.bias, self.squares, self.bias_squares, goals, pace.pull, pace.decay, pace.nodes,
            self.ball, by_documents, by_lengths, strays,
        )  # fmt: skip
        if held is not None:
            held.learn(groups, self.vectors, strays, self.squares, pace.pull, pace.decay, pace.nodes, self.n_steps)
