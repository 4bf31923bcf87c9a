"""The embeddings of nodes and documents in flat arrays, a dimension per level; their bounds in the ball, and penalties.

Each level also has a weight in the loss.

In the Poincaré ball documents are tangent vectors at the origin, whose norms are bounded.

The effective dimension of a level is the number of coordinates that its nodes use. The penalty that makes it smaller is
a group lasso: a group is one coordinate of all nodes of a level, so a coordinate is used by the level, or 0 for all of
its nodes. The penalty is the sum of the groups' norms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import Constraint, list_of, real
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.labels.tree import TreeNodes
from labelspace.models.treespace.kernels import EPSILON, MAX_NORM, NodeArrays
from labelspace.types import Floats, Ints, Longs

USED = 0.01  # a coordinate is used if its norm is above this share of the largest of its level: quantization adds noise


def level_dims(root_dim: int, leaf_dim: int, levels: int) -> Ints:
    """Return the dimension of each level: from ``root_dim`` to ``leaf_dim`` by a constant factor.

    >>> level_dims(64, 256, 3).tolist(), level_dims(64, 256, 1).tolist()
    ([64, 128, 256], [256])
    """
    if levels == 1:
        return np.array([leaf_dim], np.int32)
    return np.rint(root_dim * (leaf_dim / root_dim) ** (np.arange(levels) / (levels - 1))).astype(np.int32)


LevelWeight = float | str | Sequence[float]
WEIGHT = real(above=0)


def parse_weights(value: LevelWeight) -> float | Sequence[float]:
    """Return the numbers of a text with commas between them, as on the command line; other values as they are."""
    return [float(part) for part in value.split(",")] if isinstance(value, str) else value


def _is_level_weight(value: Any) -> bool:  # noqa: ANN401 - whatever was given
    try:
        value = parse_weights(value)
    except ValueError:
        return False
    return WEIGHT.holds(value) or (value != [] and list_of(WEIGHT).holds(value))


LEVEL_WEIGHT = Constraint("a number above 0, or one for each level, as in 1,0.5,0.25", _is_level_weight)


def level_weights(value: LevelWeight, levels: int) -> Floats:
    """Return the weight of each level in the loss: as given, or the powers of a single number. Shape (levels,).

    >>> level_weights(0.5, 3).tolist(), level_weights("2,3", 2).tolist()
    ([1.0, 0.5, 0.25], [2.0, 3.0])
    """
    weights = np.ravel(parse_weights(value)).astype(np.float32)
    if len(weights) == 1:
        return np.asarray(weights[0] ** np.arange(levels, dtype=np.float32))
    if len(weights) != levels:
        rule = f"level_weight of treespace must be one number or {levels}, one for each level of the hierarchy"
        raise ParameterError(f"{rule}, but has {len(weights)}; set it so")
    return weights


@dataclass(frozen=True)
class LevelLayout:
    """Offsets and widths of the embeddings of nodes, and of a document's vectors for all levels, in flat arrays."""

    nodes: TreeNodes
    widths: Ints  # (levels,) the dimension of each level below the root

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.widths)

    @cached_property
    def level(self) -> Ints:
        """The level of each node: 0 for the children of the root, and for the root too. Shape (n_nodes,)."""
        return np.maximum(self.nodes.level - 1, 0).astype(np.int32)

    @cached_property
    def width(self) -> Ints:
        """The dimension of each node; 0 for the root. Shape (n_nodes,)."""
        width = self.widths[self.level].astype(np.int32)
        width[0] = 0
        return width

    @cached_property
    def offset(self) -> Longs:
        """The start of the embedding of each node. Shape (n_nodes,)."""
        offset: Longs = np.cumsum(self.width, dtype=np.int64) - self.width
        return offset

    @cached_property
    def arrays(self) -> NodeArrays:
        """The tree and the layout as kernels take them."""
        document_offset = (np.cumsum(self.widths) - self.widths)[self.level].astype(np.int32)
        tree = (self.nodes.first_child, self.nodes.last_child, self.nodes.label)
        return NodeArrays(*tree, self.level, self.offset, self.width, document_offset)

    def level_slices(self) -> list[slice]:
        """Return the slice of each level in a document's row."""
        ends = np.cumsum(self.widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self.widths.tolist(), strict=True)]

    def indices(self, nodes: Ints) -> Longs:
        """Return the flat indices of the embeddings of nodes of one level. Shape (n, width)."""
        return self.offset[nodes][:, None] + np.arange(self.width[nodes[0]])

    def level_matrices(self, embeddings: Floats) -> list[Floats]:
        """Return the embeddings of the nodes of each level, which have consecutive ids: views (n_nodes, width)."""
        counts = np.bincount(self.nodes.level, minlength=self.levels + 1)[1:]
        parts = np.split(embeddings, np.cumsum(counts * self.widths)[:-1])
        return [part.reshape(-1, width) for part, width in zip(parts, self.widths.tolist(), strict=True)]


def quantize_nodes(layout: LevelLayout, embeddings: Floats) -> tuple[Int8s, Floats]:
    """Return the node embeddings as int8, and a scale per node."""
    quantized = [quantize_int8(vectors) for vectors in layout.level_matrices(embeddings)]
    scales = [np.ones(1, np.float32), *(of_level for _, of_level in quantized)]  # the root has no embedding
    return np.concatenate([vectors.ravel() for vectors, _ in quantized]), np.concatenate(scales)


def bound_norms(layout: LevelLayout, documents: Floats, ball: bool) -> tuple[Floats, Floats]:
    """Return the vectors of documents with norms MAX_NORM tanh(norm / MAX_NORM), and these norms (n, levels).

    Without ``ball``, return the documents as they are, and ones.
    """
    norms = np.ones((len(documents), layout.levels), np.float32)
    if not ball:
        return documents, norms
    documents = documents.copy()
    for level, part in enumerate(layout.level_slices()):
        raw_norms = np.linalg.norm(documents[:, part], axis=1) + EPSILON
        norms[:, level] = MAX_NORM * np.tanh(raw_norms / MAX_NORM)
        documents[:, part] *= (norms[:, level] / raw_norms)[:, None]
    return documents, norms


def bound_norms_backward(
    layout: LevelLayout, raw: Floats, bounded: Floats, norms: Floats, by_bounded: Floats, by_norms: Floats
) -> Floats:
    """Return the gradient by the input ``raw`` of ``bound_norms`` in the ball, given the gradients by its outputs."""
    out = np.empty_like(raw)
    for level, part in enumerate(layout.level_slices()):
        norm = norms[:, level : level + 1]
        unit, raw_norm = bounded[:, part] / norm, np.linalg.norm(raw[:, part], axis=1)[:, None] + EPSILON
        gradient = by_bounded[:, part]
        radial = np.einsum("ij,ij->i", gradient, unit)[:, None]
        slope = 1 - (norm / MAX_NORM) ** 2  # of MAX_NORM tanh(norm / MAX_NORM)
        tangential = (gradient - radial * unit) * (norm / raw_norm)
        out[:, part] = tangential + unit * slope * (radial + by_norms[:, level : level + 1])
    return out


def shrink_dimensions(layout: LevelLayout, embeddings: Floats, threshold: float) -> None:
    """Take the proximal step of ``threshold`` times the penalty, in place: each group gets shorter by it, down to 0."""
    for vectors in layout.level_matrices(embeddings):
        norms = np.maximum(np.linalg.norm(vectors, axis=0), np.float32(threshold))
        vectors *= 1 - np.float32(threshold) / norms


def effective_dimensions(layout: LevelLayout, embeddings: Floats) -> list[int]:
    """Return the number of coordinates that each level uses."""
    norms = [np.linalg.norm(vectors, axis=0) for vectors in layout.level_matrices(embeddings)]
    return [int((norm > USED * norm.max()).sum()) for norm in norms]
