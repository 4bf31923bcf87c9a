"""How the embeddings of nodes and documents are laid out: a dimension per level, all in flat arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.labels.tree import TreeNodes
from labelspace.types import Floats, Ints, Longs


def level_dims(root_dim: int, leaf_dim: int, levels: int) -> Ints:
    """The dimension of each level: from ``root_dim`` to ``leaf_dim`` by a constant factor.

    >>> level_dims(64, 256, 3).tolist(), level_dims(64, 256, 1).tolist()
    ([64, 128, 256], [256])
    """
    if levels == 1:
        return np.array([leaf_dim], np.int32)
    return np.rint(root_dim * (leaf_dim / root_dim) ** (np.arange(levels) / (levels - 1))).astype(np.int32)


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
        """Where the embedding of each node starts. Shape (n_nodes,)."""
        offset: Longs = np.cumsum(self.width, dtype=np.int64) - self.width
        return offset

    @cached_property
    def document_offset(self) -> Ints:
        """Where a document's vector for the level of each node starts. Shape (n_nodes,)."""
        return (np.cumsum(self.widths) - self.widths)[self.level].astype(np.int32)

    @property
    def tree(self) -> tuple[Ints, Ints]:
        """First and last child of each node."""
        return self.nodes.first_child, self.nodes.last_child

    def level_slices(self) -> list[slice]:
        """The slice of each level in a document's row."""
        ends = np.cumsum(self.widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self.widths.tolist(), strict=True)]

    def indices(self, nodes: Ints) -> Longs:
        """The flat indices of the embeddings of nodes of one level. Shape (n, width)."""
        return self.offset[nodes][:, None] + np.arange(self.width[nodes[0]])

    def level_matrices(self, embeddings: Floats) -> list[Floats]:
        """The embeddings of the nodes of each level, which are numbered one after another: views (n_nodes, width)."""
        counts = np.bincount(self.nodes.level, minlength=self.levels + 1)[1:]
        ends = np.cumsum(counts * self.widths).tolist()
        parts = zip([0, *ends], ends, self.widths.tolist(), strict=False)
        return [embeddings[start:end].reshape(-1, width) for start, end, width in parts]


def quantize_nodes(layout: LevelLayout, embeddings: Floats) -> tuple[Int8s, Floats]:
    """The node embeddings as int8, and a scale per node."""
    out, scales = np.zeros(len(embeddings), np.int8), np.ones(len(layout.nodes), np.float32)
    for level in range(layout.levels):
        nodes = np.flatnonzero((layout.level == level) & (layout.width > 0)).astype(np.int32)
        if len(nodes):
            at = layout.indices(nodes)
            out[at], scales[nodes] = quantize_int8(embeddings[at])
    return out, scales
