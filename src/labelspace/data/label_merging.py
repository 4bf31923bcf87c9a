"""Several labels become one: names, synonyms, hierarchy and the labels of documents go with them."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types import Csr, Hierarchy, LabelSpace, Longs


def merged_labels(labels: LabelSpace, into: Longs, names: Sequence[str]) -> tuple[LabelSpace, Longs]:
    """The labels where label l becomes the label ``into[l]``, by other names, and the new id of each old label.

    Edges from a label to itself are left out; a circle is an error.

    >>> labels, number = merged_labels(LabelSpace(["a", "b", "c"]), np.array([1, 1, 2]), ["a", "b", "c"])
    >>> labels.names, number.tolist()
    (['b', 'c'], [0, 0, 1])
    """
    kept = np.flatnonzero(into == np.arange(len(into)))
    number = np.full(len(into), -1, np.int64)
    number[kept] = np.arange(len(kept))
    number = number[into]
    names = [names[label] for label in kept.tolist()]
    concepts = None if labels.concepts is None else [labels.concepts[label] for label in kept.tolist()]
    synonyms, hierarchy = _synonyms(labels, number, len(kept)), _hierarchy(labels, number, names)
    return LabelSpace(names, synonyms, hierarchy=hierarchy, concepts=concepts), number


def _synonyms(labels: LabelSpace, number: Longs, n: int) -> list[list[str]] | None:
    if labels.synonyms is None:
        return None
    gathered: list[dict[str, None]] = [{} for _ in range(n)]
    for label, known in zip(number.tolist(), labels.synonyms, strict=True):
        gathered[label] |= dict.fromkeys(known)
    return [list(known) for known in gathered]


def _hierarchy(labels: LabelSpace, number: Longs, names: Sequence[str]) -> Hierarchy | None:
    if labels.hierarchy is None:
        return None
    edges = number[labels.hierarchy.edges]
    try:
        return Hierarchy.from_edges(edges[edges[:, 0] != edges[:, 1]], len(names), names)
    except DataError as error:
        raise DataError(
            f"label names that are merged must not close a circle, but {error}; leave it out: "
            "--skip near_duplicate_labels, or no --normalize-labels"
        ) from None


def merged_columns(Y: Csr, number: Longs, n_labels: int) -> Csr:
    """The labels of documents under their new ids, 0 or 1. Shape (n, n_labels)."""
    merged = sp.csr_matrix((Y.data, number[Y.indices], Y.indptr), shape=(Y.shape[0], n_labels))
    merged.sum_duplicates()
    merged.data[:] = 1
    return merged
