"""A data set as records, for the writers."""

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from labelspace.data.records import FIELDS, Record
from labelspace.data.sparse_rows import format_features
from labelspace.types import Dataset, LabelSpace


def record_fields(dataset: Dataset) -> list[str]:
    """The record fields that a data set has."""
    columns = {"id": dataset.ids, "text": dataset.texts, "features": dataset.X, "labels": dataset.Y}
    return [name for name in FIELDS if columns[name] is not None]


def to_records(dataset: Dataset) -> Iterator[Record]:
    """The documents, one by one; labels without names are given as ids, which keeps their order.

    >>> from scipy.sparse import csr_matrix
    >>> dataset = Dataset(csr_matrix([[1, 0]]), LabelSpace(["cat", "dog"]), texts=["it purrs"])
    >>> list(to_records(dataset))
    [Record(id='0', text='it purrs', features=None, labels=('cat',), line=0)]
    """
    n, Y, space = len(dataset), dataset.Y, dataset.labels
    names: np.ndarray = np.array([*(range(len(space)) if is_numbered(space) else space.names)], object)
    ids = map(str, range(n)) if dataset.ids is None else iter(dataset.ids)
    texts = repeat(None, n) if dataset.texts is None else iter(dataset.texts)
    features = repeat(None, n) if dataset.X is None else format_features(dataset.X)
    for row, (id_, text, pairs) in enumerate(zip(ids, texts, features, strict=True)):
        entries = slice(Y.indptr[row], Y.indptr[row + 1])
        labels = Y.indices[entries][Y.data[entries] != 0]
        yield Record(id_, text, pairs, tuple(names[np.sort(labels)]))


def is_numbered(labels: LabelSpace) -> bool:
    """Whether the names are '0', '1', ... in order."""
    return all(name == str(i) for i, name in enumerate(labels.names))
