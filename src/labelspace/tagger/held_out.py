"""The fixed sample of documents that a model never learns from, by which its versions are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.document_sketch import document_hashes
from labelspace.data.label_mapping import widened
from labelspace.data.side_columns import plain_row, with_values
from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import anything, list_of, mapping, optional
from labelspace.estimator.state_constraints import array, must, offsets, plain, sparse
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Bools, Csr, Dataset, LabelSpace, Longs, SideColumns, TextWithValues


class HeldOutDocuments(Stateful):
    """Texts or features of documents, and the ids of their labels, which no later change of a model changes.

    >>> from labelspace.data.texts import dataset_from_names
    >>> documents = dataset_from_names(["bake bread", "grill fish"], [["bread"], ["fish"]])
    >>> HeldOutDocuments.of(documents).dataset(documents.labels.extended(["toast"]), SideColumns()).texts
    ['bake bread', 'grill fish']
    """

    name = "held_out"

    text_bytes_: Bytes = learned(array("uint8", "n_text_bytes"))
    text_starts_: Longs = learned(offsets("n_texts", into="n_text_bytes"))
    values_: list[dict[str, Any]] | None = learned(plain(optional(list_of(mapping(anything())))), default=None)
    features_: Csr = learned(sparse("float32", "n", "n_features"))  # without columns if there are texts
    labels_: Csr = learned(sparse("float32", "n", "n_labels"))

    @classmethod
    def of(cls, documents: Dataset) -> Self:
        """Return these documents, whose labels have the ids of the model's."""
        made = cls()
        X = documents.X if documents.texts is None else None
        empty = sp.csr_matrix((len(documents), 0), dtype=np.float32)
        made.text_bytes_, made.text_starts_ = _joined(documents.texts or [])
        made.values_ = None
        if any(isinstance(text, TextWithValues) for text in documents.texts or []):
            made.values_ = list(map(plain_row, documents.texts or []))
        made.features_ = empty if X is None else sp.csr_matrix(X, dtype=np.float32)
        made.labels_ = sp.csr_matrix(documents.Y, dtype=np.float32)
        return made

    def check_state(self) -> None:
        """Check that there is a text, or a row of features, for each document."""
        n_texts = len(self.text_starts_) - 1
        must(self.labels_.shape[0] > 0, "held-out documents")
        must(n_texts in (0, self.labels_.shape[0]), "a text of each held-out document, or none")
        must(self.values_ is None or len(self.values_) == n_texts, "the values beside each held-out text")
        must(n_texts == 0 or self.features_.shape[1] == 0, "texts or features of held-out documents")
        must(bool((self.labels_.data == 1).all()), "ones as labels of held-out documents")

    def check_known(self, n_labels: int) -> None:
        """Check that the model has the labels of the documents."""
        n = self.labels_.shape[1]
        must(n <= n_labels, f"the {n} labels of its held-out documents")

    def __len__(self) -> int:
        return int(self.labels_.shape[0])

    def dataset(self, labels: LabelSpace, beside: SideColumns) -> Dataset:
        """Return the documents, with the labels of the model, and the columns beside the texts that it reads."""
        texts = _split(self.text_bytes_, self.text_starts_)
        if self.values_ is not None:
            rows = zip(texts, self.values_, strict=True)
            texts = [with_values(text, row, beside, "a held-out document") for text, row in rows]
        X, Y = self.features_.copy(), self.labels_.copy()  # sorted in place: a file may have them in any order
        for matrix in (X, Y):
            matrix.sum_duplicates()
        Y.data[:] = 1
        return Dataset(widened(Y, len(labels)), labels, texts or None, None if texts else X)


def are_among(documents: Any, hashes: npt.NDArray[np.uint64]) -> Bools:  # noqa: ANN401 - texts, or a matrix of features
    """Return which documents, texts or rows of features, have one of these hashes; empty ones never have.

    >>> are_among(["bake bread", "", "grill fish"], document_hashes(["grill fish ", ""])).tolist()
    [False, False, True]
    """
    found = _has_content(documents)
    found[found] = np.isin(document_hashes(documents), hashes)
    return found


def put_aside(documents: Any, n: int) -> Bools:  # noqa: ANN401 - texts, or a matrix of features
    """Choose about n documents by their content, whatever their order; equal ones are chosen together.

    >>> texts = [f"text {i}" for i in range(20)]
    >>> [text for text, chosen in zip(texts, put_aside(texts, 2)) if chosen]
    ['text 2', 'text 16']
    """
    chosen = _has_content(documents)
    # Not the smallest hashes: the sketch of the training documents keeps those.
    order = document_hashes(documents) * np.uint64(0x9E3779B97F4A7C15)
    chosen[chosen] = np.isin(order, np.unique(order)[:n])
    return chosen


def _has_content(documents: Any) -> Bools:  # noqa: ANN401 - texts, or a matrix of features
    if getattr(documents, "ndim", 1) == 2:
        n_values = np.diff(sp.csr_matrix(documents).indptr)
        return np.asarray(n_values > 0, bool)
    return np.array([bool(document.strip()) for document in documents], bool)


def _joined(texts: Sequence[str]) -> tuple[Bytes, Longs]:
    parts = [given.encode("utf-8", "surrogatepass") for given in texts]
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _split(joined: Bytes, starts: Longs) -> list[str]:
    whole, ends = joined.tobytes(), starts.tolist()
    return [whole[start:end].decode("utf-8", "replace") for start, end in zip(ends, ends[1:], strict=False)]
