"""Checks of the hierarchy; the reader refuses cycles, malformed names and too many levels."""

import numpy as np

from labelspace.data.checks.base import Example, Found, shown_name
from labelspace.data.checks.documents import Documents
from labelspace.data.checks.label_use import examples_of
from labelspace.types import Csr, Hierarchy, Ints, Longs, check_ancestors, rows_of


def redundant_edges(hierarchy: Hierarchy) -> Ints:
    """Return the edges (child, parent) whose parent is an ancestor of another parent too. Shape (n, 2)."""
    if np.diff(hierarchy.parents.indptr).max(initial=0) < 2:
        return np.zeros((0, 2), np.int32)
    farther = hierarchy.parents @ hierarchy.ancestors
    both = hierarchy.parents.multiply(farther > 0).tocoo()
    return np.stack([both.row, both.col], axis=1).astype(np.int32)


def find_redundant_edges(documents: Documents) -> Found | None:
    """Find edges that the others imply."""
    hierarchy = documents.labels.hierarchy
    edges = np.zeros((0, 2), np.int32) if hierarchy is None else redundant_edges(hierarchy)
    return _edges(documents, edges, 0 if hierarchy is None else hierarchy.parents.nnz)


def _edges(documents: Documents, edges: Ints, total: int) -> Found | None:
    names = documents.labels.names
    examples = tuple(
        Example(f"{shown_name(names[child], 40)} -> {shown_name(names[parent], 40)}")
        for child, parent in edges[: documents.n_examples]
    )
    return Found(len(edges), total, examples) if len(edges) else None


def find_several_roots(documents: Documents) -> Found | None:
    """Find labels below more than one root."""
    hierarchy = documents.labels.hierarchy
    if hierarchy is None or np.diff(hierarchy.parents.indptr).max(initial=0) < 2:
        return None
    n_roots = hierarchy.ancestors @ (hierarchy.levels == 0).astype(np.float32)
    labels = np.flatnonzero(n_roots > 1)
    return Found(len(labels), len(documents.labels), examples_of(documents, labels)) if len(labels) else None


def find_single_children(documents: Documents) -> Found | None:
    """Find only children that no document tells from their parents."""
    hierarchy = documents.labels.hierarchy
    if hierarchy is None or not len(documents.train):
        return None
    edges = hierarchy.edges
    n_children = np.bincount(hierarchy.parents.indices, minlength=len(documents.labels))
    edges = edges[n_children[edges[:, 1]] == 1]
    by_label = documents.Y.tocsc()
    together = by_label[:, edges[:, 0]].multiply(by_label[:, edges[:, 1]]).sum(axis=0).A1
    counts = by_label.getnnz(axis=0)
    edges = edges[(together == counts[edges[:, 1]]) & (counts[edges[:, 0]] > 0)]
    return _edges(documents, edges, len(documents.labels))


def find_uneven_ancestors(documents: Documents) -> Found | None:
    """Find documents that lack parents of their labels where most have them, or have some where most have none."""
    hierarchy, Y = documents.labels.hierarchy, documents.Y
    if hierarchy is None or not Y.nnz:
        return None
    with_parents, n_with_one = parents_present(hierarchy, Y)
    lacks, has = n_with_one < with_parents, n_with_one > 0
    n = int((with_parents > 0).sum())
    mostly_complete = 2 * lacks.sum() <= n  # the habit of the majority is taken as the rule
    numbers = np.flatnonzero(lacks if mostly_complete else has)
    examples = tuple(
        documents.example(number, what=documents.label_names(number))
        for number in numbers[: documents.n_examples].tolist()
    )
    note = "most documents have a parent of each label too; these lack some"
    if not mostly_complete:
        note = "most documents have their most specific labels only; these have a label and its parent"
    return Found(len(numbers), n, examples, note) if len(numbers) else None


def parents_present(hierarchy: Hierarchy, Y: Csr) -> tuple[Longs, Longs]:
    """Count the labels of each document that have parents, and those whose parent it has too. Shape (n,) each."""
    n, n_labels = Y.shape
    n_parents = np.diff(hierarchy.parents.indptr).astype(np.int64)[Y.indices]
    check_ancestors(int(n_parents.sum()), Y.nnz)
    document = np.repeat(np.arange(n), np.diff(Y.indptr))
    entry = np.repeat(np.arange(Y.nnz), n_parents)
    parents = rows_of(hierarchy.parents.indices, hierarchy.parents.indptr[Y.indices], n_parents, n_labels).indices
    wanted, present = document[entry] * n_labels + parents, document * n_labels + Y.indices
    has_one = np.zeros(Y.nnz, bool)
    has_one[entry[np.isin(wanted, present)]] = True
    counts = [np.bincount(document[which], minlength=n) for which in (n_parents > 0, has_one)]
    return counts[0], counts[1]


FINDERS = {
    "uneven_ancestors": find_uneven_ancestors,
    "redundant_edges": find_redundant_edges,
    "several_roots": find_several_roots,
    "single_children": find_single_children,
}
