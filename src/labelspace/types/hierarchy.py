"""Parents of labels: a tree, or a DAG where a label has several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types.arrays import Bools, Csr, Ints, Longs
from labelspace.types.limits import ANCESTORS_PER_LABEL, MAX_ANCESTORS, MAX_LEVELS

SHOWN_OF_CYCLE = 10  # labels in an error message


@dataclass(frozen=True)
class Hierarchy:
    """Edges child -> parent between label ids: a tree, or a DAG where a label has several parents.

    >>> tree = Hierarchy.from_edges(np.array([[1, 0], [2, 1]]), n_labels=3)
    >>> tree.levels.tolist(), tree.ancestors[2].indices.tolist()
    ([0, 1, 2], [0, 1])
    """

    parents: Csr  # (n_labels, n_labels), row = child, columns = its parents

    @staticmethod
    def from_edges(edges: npt.ArrayLike, n_labels: int, names: Sequence[str] | None = None) -> Hierarchy:
        """Build from rows (child, parent); a cycle is an error that names its labels."""
        pairs = np.unique(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=0)
        ones = np.ones(len(pairs), np.float32)
        hierarchy = Hierarchy(sp.csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_labels, n_labels)))
        cycle = hierarchy.find_cycle()
        if cycle:
            shown = [str(label) if names is None else names[label] for label in cycle[:SHOWN_OF_CYCLE]]
            more = [f"({len(cycle) - len(shown)} more)"] if len(shown) < len(cycle) else []
            path = " -> ".join([*shown, *more, shown[0]])
            raise DataError(f"a hierarchy must have no cycle, but {path} is one; remove one of these edges")
        return hierarchy

    @property
    def edges(self) -> Ints:
        """Return rows (child, parent), sorted. Shape (n_edges, 2)."""
        coo = self.parents.tocoo()
        return np.stack([coo.row, coo.col], axis=1).astype(np.int32)

    def without(self, label: int) -> Hierarchy:
        """Return the hierarchy without the edges of a label: its children become children of its parents.

        >>> Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=3).without(1).edges.tolist()
        [[2, 0]]
        """
        edges = self.edges
        children, parents = edges[edges[:, 1] == label, 0], edges[edges[:, 0] == label, 1]
        bridges = np.stack([np.repeat(children, len(parents)), np.tile(parents, len(children))], axis=1)
        others = edges[(edges != label).all(axis=1)]
        return Hierarchy.from_edges(np.concatenate([others, bridges]), self.parents.shape[0])

    def merged(self, label: int, into: int) -> Hierarchy:
        """Return the hierarchy without the edges of a label, whose children become children of another label.

        A child that is the other label, or an ancestor of it, becomes a child of the label's parents.

        >>> Hierarchy.from_edges([[2, 1], [1, 0]], n_labels=4).merged(1, into=3).edges.tolist()
        [[2, 3]]
        """
        edges = self.edges
        above = [into, *self.ancestors[into].indices.tolist()]
        moved = (edges[:, 1] == label) & ~np.isin(edges[:, 0], above)
        edges[moved, 1] = into
        return Hierarchy.from_edges(edges, self.parents.shape[0]).without(label)

    def find_cycle(self) -> list[int]:
        """Return the labels of one cycle, each followed by one of its parents; empty if there is no cycle."""
        unresolved = self._levels[1]
        if not unresolved.any():
            return []
        # Every unresolved label has an unresolved parent, so the way up from any of them ends in a cycle.
        label, visited = int(np.flatnonzero(unresolved)[0]), {}
        walk: list[int] = []
        while label not in visited:
            visited[label] = len(walk)
            walk.append(label)
            parents = self.parents.indices[self.parents.indptr[label] : self.parents.indptr[label + 1]]
            label = int(parents[unresolved[parents]][0])
        return walk[visited[label] :]

    def is_forest(self) -> bool:
        """Return whether every label has at most one parent, and a root above it: then there is no cycle."""
        n = self.parents.shape[0]
        if np.diff(self.parents.indptr).max(initial=0) > 1:
            return False
        above = np.full(n + 1, n, np.int32)  # n stands for what is above a root
        above[:-1][np.diff(self.parents.indptr) == 1] = self.parents.indices
        for _ in range(n.bit_length() + 1):
            if (above == n).all():
                return True
            above = above[above]  # twice as far up
        return False

    @cached_property
    def _levels(self) -> tuple[Ints, Bools]:
        """Return the longest distance of each label from a root, and which labels are on or below a cycle."""
        n = self.parents.shape[0]
        level = np.zeros(n, np.int32)
        waiting = np.diff(self.parents.indptr).astype(np.int64)  # number of unresolved parents
        children = self.parents.T.tocsr()
        frontier = np.flatnonzero(waiting == 0)
        resolved = np.zeros(n, bool)
        depth = 0
        while frontier.size:
            if depth == MAX_LEVELS.value:
                raise too_many_levels(depth)
            resolved[frontier], level[frontier] = True, depth
            below = children[frontier].indices
            np.subtract.at(waiting, below, 1)
            below = np.unique(below)
            frontier, depth = below[waiting[below] == 0], depth + 1
        return level, ~resolved

    @property
    def levels(self) -> Ints:
        """Return the depth of each label: 0 for a root, else one more than its deepest parent. Shape (n_labels,)."""
        return self._levels[0]

    @cached_property
    def ancestors(self) -> Csr:
        """Return a matrix whose row l marks all ancestors of l, without l itself. Shape (n_labels, n_labels).

        It is built level by level: the ancestors of a label are its parents and their ancestors.
        """
        levels, n = self.levels, self.parents.shape[0]
        found = np.zeros(0, np.int32)  # the ancestors of all labels so far, a label after the other; grows by doubling
        begins, sizes, filled = np.zeros(n, np.int64), np.zeros(n, np.int64), 0
        order = np.argsort(levels, kind="stable")
        starts = np.searchsorted(levels[order], np.arange(1, levels.max(initial=0) + 2))
        for labels in np.split(order, starts)[1:-1]:
            parents = self.parents[labels]
            # A label has at least the ancestors of its parent with the most; in a tree, exactly these and the parent.
            least = np.maximum.reduceat(sizes[parents.indices] + 1, parents.indptr[:-1]).sum()
            check_ancestors(filled + int(least), n)
            above, at = np.unique(parents.indices, return_inverse=True)
            of_above = rows_of(found, begins[above], sizes[above], n)
            steps = sp.csr_matrix((parents.data, at, parents.indptr), shape=(len(labels), len(above)))
            block = (parents + steps @ of_above).tocsr()
            block.sort_indices()
            if filled + block.nnz > len(found):
                found = np.concatenate([found, np.zeros(max(len(found), block.nnz), np.int32)])
            found[filled : filled + block.nnz] = block.indices
            begins[labels], sizes[labels] = filled + block.indptr[:-1], np.diff(block.indptr)
            filled += block.nnz
        return rows_of(found, begins, sizes, n)

    def closed(self, Y: Csr) -> Csr:
        """Return the 0/1 label matrix with the ancestors of all its labels added."""
        check_ancestors(int(np.diff(self.ancestors.indptr)[Y.indices].sum(dtype=np.int64)), Y.nnz)
        closure = (Y + Y @ self.ancestors).tocsr()
        closure.data = np.ones_like(closure.data, dtype=np.float32)
        closure.sort_indices()
        return closure


def rows_of(indices: Ints, begins: Longs, sizes: Longs, n_columns: int) -> Csr:
    """Return the matrix of ones whose row i has the columns ``indices[begins[i] : begins[i] + sizes[i]]``.

    >>> rows_of(np.array([4, 0, 1]), np.array([1, 0]), np.array([2, 1]), 5).toarray().tolist()
    [[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    columns = indices[np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], sizes)]
    return sp.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), shape=(len(sizes), n_columns))


def check_ancestors(n_pairs: int, n_labels: int) -> None:
    """Raise DataError for too many pairs of a label and an ancestor: deep hierarchies have quadratically many."""
    limit = max(MAX_ANCESTORS.value, ANCESTORS_PER_LABEL * n_labels)
    if n_pairs > limit:
        rule = f"the labels must have at most {limit} ancestors in all, but have {n_pairs} or more"
        raise DataError(f"{rule}; use a hierarchy of fewer levels, or {MAX_ANCESTORS.raise_it}")


def too_many_levels(n: int, what: str = "a hierarchy") -> DataError:
    """Return the error for something of more than n levels."""
    return DataError(f"{what} must have at most {n} levels, but has more; use fewer levels, or {MAX_LEVELS.raise_it}")
