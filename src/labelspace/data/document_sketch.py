"""The share of some documents that was in the training data: a bottom-k sketch of document hashes, of fixed size."""

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import boolean
from labelspace.estimator.state_constraints import array, must, plain
from labelspace.kernels import large_arrays

SIZE = 4096  # hashes kept
_BYTES = 8  # of a hash
_BLOCK = 2**14  # rows whose ends are numbers of Python at a time
_PERSON = b"labelspace"  # the hashes are those of no other program


class DocumentSketch(Stateful):
    """The smallest hashes of documents, texts or rows of features; documents without content are left out.

    The hashes are equal on every machine. Up to ``SIZE`` different documents the share is exact; above it is estimated
    from the other documents whose hashes are as small.

    >>> sketch = DocumentSketch.of(["bake bread", "grill fish", ""])
    >>> sketch.share(["bake bread", "a text of its own", ""])
    0.5
    """

    name = "documents"

    hashes_: npt.NDArray[np.uint64] = learned(array("uint64", "n"))  # the smallest, in order
    complete_: bool = learned(plain(boolean()))  # whether these are all

    @classmethod
    def of(cls, documents: Any) -> Self:  # noqa: ANN401 - texts, or a matrix of features
        """Return the sketch of texts, or of the rows of a sparse matrix."""
        sketch, hashes = cls(), np.unique(document_hashes(documents))
        sketch.hashes_, sketch.complete_ = hashes[:SIZE], len(hashes) <= SIZE
        return sketch

    def extended(self, documents: Any) -> Self:  # noqa: ANN401 - texts, or a matrix of features
        """Return the sketch of the documents of this one and of further documents.

        >>> DocumentSketch.of(["bake bread"]).extended(["grill fish"]).share(["grill fish", "a new text"])
        0.5
        """
        sketch, hashes = type(self)(), np.union1d(self.hashes_, document_hashes(documents))
        if not self.complete_:  # hashes above the largest kept one are of an unknown number of documents
            hashes = hashes[hashes <= self.hashes_[-1]]
        sketch.hashes_, sketch.complete_ = hashes[:SIZE], self.complete_ and len(hashes) <= SIZE
        return sketch

    def check_state(self) -> None:
        """Check that hashes are kept if some were left out."""
        must(self.complete_ or len(self.hashes_) > 0, "hashes of documents")

    def share(self, documents: Any) -> float | None:  # noqa: ANN401 - texts, or a matrix of features
        """Return the share of these documents that is among those of the sketch; None if nothing can be told."""
        n_seen, n_comparable = self.count(documents)
        return n_seen / n_comparable if n_comparable else None

    def count(self, documents: Any) -> tuple[int, int]:  # noqa: ANN401 - texts, or a matrix of features
        """Return how many of these documents are among those of the sketch, and of how many this is known.

        >>> DocumentSketch.of(["bake bread", "grill fish"]).count(["bake bread", "a text of its own", ""])
        (1, 2)
        """
        hashes = document_hashes(documents)
        if not self.complete_:
            hashes = hashes[hashes <= self.hashes_[-1]]
        return int(np.isin(hashes, self.hashes_).sum()), len(hashes)

    def has_others(self, documents: Any) -> bool:  # noqa: ANN401 - texts, or a matrix of features
        """Return whether the sketch has documents that are not among these.

        >>> DocumentSketch.of(["bake bread", "grill fish"]).has_others(["grill fish", "a text of its own"])
        True
        """
        return not bool(np.isin(self.hashes_, document_hashes(documents)).all())


def document_hashes(documents: Any) -> npt.NDArray[np.uint64]:  # noqa: ANN401 - texts, or a matrix of features
    """Return the hash of every document that is not empty."""
    contents = _rows(sp.csr_matrix(documents)) if getattr(documents, "ndim", 1) == 2 else _texts(documents)
    digests = bytearray()
    for content in contents:
        digests += blake2b(content, digest_size=_BYTES, person=_PERSON).digest()
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _texts(texts: Iterable[str]) -> Iterable[bytes]:
    return (stripped.encode("utf-8", "surrogatepass") for text in texts if (stripped := text.strip()))


def _rows(X: Any) -> Iterable[bytes]:  # noqa: ANN401 - a csr matrix
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    indices, values = X.indices.astype("<i4", copy=False), X.data.astype("<f4", copy=False)
    for rows in large_arrays.blocks(X.shape[0], _BLOCK):
        for start, end in pairwise(X.indptr[rows.start : rows.stop + 1].tolist()):
            if end > start:
                yield indices[start:end].tobytes() + values[start:end].tobytes()
