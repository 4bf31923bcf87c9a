"""Labels that become other labels: a matrix in another label space, several labels merged into one.

Names, synonyms, hierarchy and the labels of documents go with the labels.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_files import numbered_labels
from labelspace.errors import DataError
from labelspace.types import Csr, Dataset, Hierarchy, Ints, LabelSpace, Longs


def label_ones(Y: Csr, where: str | Path) -> Csr:
    """Return a matrix of labels as ones: values above 0 mark a label, 0 none.

    >>> label_ones(sp.csr_matrix([[0.5, 0, 1]]), "Y.npz").toarray().tolist()
    [[1.0, 0.0, 1.0]]
    """
    wrong = Y.data[~(Y.data >= 0)]
    if len(wrong):
        raise DataError(f"{where} must hold 1 where a document has a label, but holds {wrong[0]:g}; correct it")
    ones = sp.csr_matrix((Y.data > 0, Y.indices, Y.indptr), shape=Y.shape).astype(np.float32)
    ones.eliminate_zeros()
    return ones


def distinct_names(names: Sequence[str], ids: Iterable[str]) -> list[str]:
    """Return names of labels; a name that several labels have is followed by the id, an empty one is the id.

    >>> distinct_names(["tea", "cup", "tea", ""], ["B1", "B2", "B3", "B4"])
    ['tea <B1>', 'cup', 'tea <B3>', '<B4>']
    """
    count = Counter(names)
    named = zip(names, ids, strict=True)
    return [name if count[name] == 1 and name else f"{name} <{id_}>".strip() for name, id_ in named]


def in_label_space(
    Y: Csr, own: LabelSpace | None, given: LabelSpace | None, where: str | Path
) -> tuple[Csr, LabelSpace]:
    """Return the matrix and the label space of a file with the labels ``own``, None if its columns have no names.

    The space is ``given`` if that is not None, with the names of used columns that it does not have appended. Columns
    without names are the labels of that space by number.

    >>> Y, space = in_label_space(sp.csr_matrix([[1, 1]]), LabelSpace(["b", "c"]), LabelSpace(["a", "b"]), "Y.npz")
    >>> space.names, Y.toarray().tolist()
    (['a', 'b', 'c'], [[0, 1, 1]])
    """
    known = given if own is None else own
    if known is not None and len(known) < Y.shape[1]:
        problem = f"has {Y.shape[1]} columns for {len(known)} names; give the label names of this data set"
        raise DataError(f"{where} must have no more labels than are known, but {problem}")
    if given is not None and own is not None:
        return matched_labels(Y, own, given)
    space = numbered_labels(Y.shape[1], Y.nnz, where, 1) if known is None else known
    return merged_columns(Y, np.arange(Y.shape[1]), len(space)), space


def matched_labels(Y: Csr, labels: LabelSpace, known: LabelSpace) -> tuple[Csr, LabelSpace]:
    """Return Y with the ids of the known labels, matched by name or URI; other labels of documents are appended.

    >>> Y, space = matched_labels(sp.csr_matrix([[1, 0]]), LabelSpace(["tea", "rye"]), LabelSpace(["bread", "tea"]))
    >>> space.names, Y.toarray().tolist()
    (['bread', 'tea'], [[0, 1]])
    """
    used = np.unique(Y.indices)
    names = [labels.names[label] for label in used.tolist()]
    is_new = [known.find(name) is None for name in names]
    space = known.extended(name for name, new in zip(names, is_new, strict=True) if new)
    space = _with_own_synonyms(space, len(known), labels, used[is_new])
    number = np.zeros(len(labels), np.int64)
    number[used] = np.array([space.find(name) for name in names], np.int64)
    return merged_columns(Y, number, len(space)), space


def _with_own_synonyms(space: LabelSpace, n_known: int, labels: LabelSpace, new: Longs | Ints) -> LabelSpace:
    """Return a label space whose last labels, from ``n_known`` on, have the synonyms of the ``new`` labels."""
    own = [] if labels.synonyms is None else [list(labels.synonyms[label]) for label in new.tolist()]
    if not any(own):
        return space
    synonyms = space.synonyms or [[]] * len(space)
    return replace(space, synonyms=[*synonyms[:n_known], *own])


def check_rows(sizes: dict[str, int | None]) -> None:
    """Raise DataError for files of one split with different numbers of documents; None stands for a missing file."""
    present = {name: size for name, size in sizes.items() if size is not None}
    if len(set(present.values())) > 1:
        listed = ", ".join(f"{name} has {size:,}" for name, size in present.items())
        raise DataError(f"the files of one split must have one row per document, but {listed}; give matching files")
    if not any(present.values()):
        raise DataError(f"{next(iter(present))} must hold at least one document, but has none; give another file")


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
    counts = labels.counts
    if counts is not None:
        counts = np.bincount(number, counts, minlength=len(kept)).astype(np.int64)
    current = labels.current
    if current is not None:
        current = np.where(current < 0, -1, number[current])[kept].astype(np.int32)
    return LabelSpace(names, synonyms, counts, labels.n_documents, hierarchy, concepts, current), number


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
        rule = "label names that are merged must not close a circle"
        remedy = "leave it out: skip=near_duplicate_labels, or no normalize_labels"
        raise DataError(f"{rule}, but {error}; {remedy}", options=["skip=", "normalize_labels"]) from None


def ones_of_rows(rows: Sequence[Sequence[int]], n_columns: int) -> Csr:
    """Return a matrix of ones whose row i has the columns ``rows[i]``, in their order.

    >>> ones_of_rows([[1], [], [2, 0]], 3).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    """
    indptr = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter(chain.from_iterable(rows), np.int32, int(indptr[-1]))
    return sp.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), shape=(len(rows), n_columns))


def widened(matrix: Csr, n_columns: int) -> Csr:
    """Return a matrix with so many columns, of which the last may be empty; it shares the values."""
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], n_columns))


def merged_columns(Y: Csr, number: Longs, n_labels: int) -> Csr:
    """Return the labels of documents under their new ids, 0 or 1. Shape (n, n_labels)."""
    merged = sp.csr_matrix((Y.data, number[Y.indices], Y.indptr), shape=(Y.shape[0], n_labels), copy=True)
    merged.sum_duplicates()
    np.minimum(merged.data, 1, out=merged.data)
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
    return _with_merged(documents, into), int((into != np.arange(len(into))).sum())


def labels_by_synonym(labels: LabelSpace) -> dict[str, int]:
    """Return the labels by their synonyms, such as former names; a synonym of several labels names none.

    >>> labels_by_synonym(LabelSpace(["cat", "dog"], [["kitty", "pet"], ["pet"]]))
    {'kitty': 0}
    """
    synonyms = labels.synonyms or []
    times = Counter(name for names in synonyms for name in set(names))
    return {name: label for label, names in enumerate(synonyms) for name in names if times[name] == 1}


def merge_synonyms(documents: Dataset, known: LabelSpace) -> tuple[Dataset, list[str]]:
    """Return documents whose labels begin with the known ones, with further labels merged into those that they name.

    A renamed label has its name before as a synonym: documents may still have it. Return these names, too.

    >>> known = LabelSpace(["seafood"], [["fish"]])
    >>> Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 1]], np.float32))
    >>> merged, names = merge_synonyms(Dataset(Y, known.extended(["fish", "tea"]), ["a", "b"]), known)
    >>> merged.labels.names, merged.Y.toarray().tolist(), names
    (['seafood', 'tea'], [[1.0, 0.0], [1.0, 1.0]], ['fish'])
    """
    further = documents.labels.names[len(known) :]
    found = labels_by_synonym(known) if further else {}
    names = [name for name in further if name in found]
    into = np.arange(len(documents.labels))
    for name in names:
        into[documents.labels.index[name]] = found[name]
    return _with_merged(documents, into), names


def _with_merged(documents: Dataset, into: Longs) -> Dataset:
    """Return documents where label l becomes the label ``into[l]``."""
    if (into == np.arange(len(into))).all():
        return documents
    labels, number = merged_labels(documents.labels, into, documents.labels.names)
    filtered = documents.filtered
    if filtered is not None:
        filtered = merged_columns(filtered, number, len(labels))
    Y = merged_columns(documents.Y, number, len(labels))
    return replace(documents, Y=Y, labels=labels, filtered=filtered)
