"""Hierarchies must have no cycle, but some published vocabularies have: the links that close one are cut."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelspace.types import Longs

_NONE = -1


def without_cycles(edges: Longs, n: int) -> tuple[Longs, Longs]:
    """The edges (child, parent) without those that close a cycle, and those; the same edges give the same result.

    >>> kept, cut = without_cycles(np.array([[0, 1], [1, 0], [2, 0], [3, 3]]), n=4)
    >>> kept.tolist(), cut.tolist()
    ([[0, 1], [2, 0]], [[1, 0], [3, 3]])
    """
    graph = sp.csr_matrix((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=True, connection="strong")
    suspects = np.flatnonzero(component[edges[:, 0]] == component[edges[:, 1]])
    closing = set(_closing_edges(list(map(tuple, edges[suspects].tolist()))))
    cut = np.zeros(len(edges), bool)
    cut[suspects] = [tuple(edge) in closing for edge in edges[suspects].tolist()]
    return edges[~cut], edges[cut]


def _closing_edges(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges that lead back to a node on the way of a depth-first search."""
    parents: dict[int, list[int]] = {}
    for child, parent in edges:
        parents.setdefault(child, []).append(parent)
    found, finished = list[tuple[int, int]](), set[int]()
    for start in sorted(parents):
        way = {start: iter(parents[start])} if start not in finished else {}
        while way:
            child = next(reversed(way))
            parent = next(way[child], _NONE)
            if parent == _NONE:
                finished.add(child)
                del way[child]
            elif parent in way:
                found.append((child, parent))
            elif parent not in finished:
                way[parent] = iter(parents[parent])
    return found
