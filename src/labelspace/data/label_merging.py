"""Several labels become one: names, synonyms, hierarchy and the labels of documents go with them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types import Csr, Dataset, Hierarchy, LabelSpace, Longs


def merged_labels(labels: LabelSpace, into: Longs, names: Sequence[str]) -> tuple[LabelSpace, Longs]:
    """Return the labels where label l becomes the label ``into[l]``, by other names, and the new ids of old labels.

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
            "skip=near_duplicate_labels, or no normalize_labels",
            options=["skip=", "normalize_labels"],
        ) from None


def merged_columns(Y: Csr, number: Longs, n_labels: int) -> Csr:
    """Return the labels of documents under their new ids, 0 or 1. Shape (n, n_labels)."""
    merged = sp.csr_matrix((Y.data, number[Y.indices], Y.indptr), shape=(Y.shape[0], n_labels))
    merged.sum_duplicates()
    merged.data[:] = 1
    return merged


def normalized(name: str) -> str:
    """Return what spellings that differ only in case or spaces have in common.

    >>> normalized(" Rye  Bread")
    'rye bread'
    """
    return " ".join(name.casefold().split())


def spelling_groups(labels: LabelSpace) -> list[list[int]]:
    """Return groups of labels whose names differ only in case or spaces, unless URIs say that they differ.

    >>> spelling_groups(LabelSpace(["Windows", "bread", "windows"]))
    [[0, 2]]
    """
    groups: dict[str, list[int]] = {}
    for label, name in enumerate(labels.names):
        groups.setdefault(normalized(name), []).append(label)
    several = [group for group in groups.values() if len(group) > 1]
    return [group for group in several if not any(labels.concept(label).uri for label in group)]


def merge_spellings(documents: Dataset, n_known: int) -> tuple[Dataset, int]:
    """Return the documents with one label for all spellings of it, and how many labels went into others.

    The first ``n_known`` labels stay as they are; of the others the most frequent spelling stays.

    >>> from scipy.sparse import csr_matrix
    >>> Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], np.float32))
    >>> merged, n = merge_spellings(Dataset(Y, LabelSpace(["Bread", "bread", "fish"]), ["a", "b", "c"]), 0)
    >>> merged.labels.names, merged.Y.toarray().tolist(), n
    (['bread', 'fish'], [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], 1)
    """
    space = documents.labels
    into = np.arange(len(documents.labels))
    counts = np.bincount(documents.Y.indices, minlength=len(space))
    for group in spelling_groups(space):
        best = min(group, key=lambda label: (label >= n_known, -counts[label], label))
        into[[label for label in group if label >= n_known]] = best
    n_merged = int((into != np.arange(len(into))).sum())
    if not n_merged:
        return documents, 0
    labels, number = merged_labels(space, into, space.names)
    return replace(documents, Y=merged_columns(documents.Y, number, len(labels)), labels=labels), n_merged
