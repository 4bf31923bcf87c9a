"""Labels that differ in case or spaces alone, such as ``Bread`` and ``bread``."""

from dataclasses import replace

import numpy as np

from labelspace.data.label_merging import merged_columns, merged_labels
from labelspace.types import Dataset, LabelSpace


def normalized(name: str) -> str:
    """What spellings that differ in case or spaces alone have in common.

    >>> normalized(" Rye  Bread")
    'rye bread'
    """
    return " ".join(name.casefold().split())


def spelling_groups(labels: LabelSpace) -> list[list[int]]:
    """Labels whose names differ in case or spaces alone, where there are several; URIs say that labels are different.

    >>> spelling_groups(LabelSpace(["Windows", "bread", "windows"]))
    [[0, 2]]
    """
    groups: dict[str, list[int]] = {}
    for label, name in enumerate(labels.names):
        groups.setdefault(normalized(name), []).append(label)
    several = [group for group in groups.values() if len(group) > 1]
    return [group for group in several if not any(labels.concept(label).uri for label in group)]


def merge_spellings(documents: Dataset, n_known: int) -> tuple[Dataset, int]:
    """The documents with one label for all spellings of it, and how many labels went into others.

    The first ``n_known`` labels stay as they are; of the others the most frequent spelling stays.

    >>> from scipy.sparse import csr_matrix
    >>> Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], np.float32))
    >>> merged, n = merge_spellings(Dataset(Y, LabelSpace(["Bread", "bread", "fish"]), ["a", "b", "c"]), 0)
    >>> merged.labels.names, merged.Y.toarray().tolist(), n
    (['bread', 'fish'], [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], 1)
    """
    space, into = documents.labels, np.arange(len(documents.labels))
    counts = np.bincount(documents.Y.indices, minlength=len(space))
    for group in spelling_groups(space):
        best = min(group, key=lambda label: (label >= n_known, -counts[label], label))
        into[[label for label in group if label >= n_known]] = best
    n_merged = int((into != np.arange(len(into))).sum())
    if not n_merged:
        return documents, 0
    labels, number = merged_labels(space, into, space.names)
    return replace(documents, Y=merged_columns(documents.Y, number, len(labels)), labels=labels), n_merged
