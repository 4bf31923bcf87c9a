"""Labels that a person rejected: documents similar to those that a label was rejected for are less likely to get it.

A suggestion of probability 0.1 is expected to be wrong nine times out of ten, so members learn little from its
rejection. But a person who keeps rejecting a label for some kind of documents does not want to see it there again. So
the log-odds of a label change by

    min(0, K / (K + 0.5) * log((A + c) / (E + c)))

K sums the cosine similarities to the documents that the label was rejected or accepted for, A those to documents that
it was accepted for, and E all, each times the probability that the label had there: as many acceptances as were
expected. A single rejection means little, ten without an acceptance much; and acceptances undo rejections.

Rejections count here if no label of the document is known: from a document with labels the members learn all that it
tells. Acceptances of a rejected label always count.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import scipy.sparse as sp

from labelspace.estimator.state_constraints import must, sparse
from labelspace.features.normalize import normalize_rows
from labelspace.models.blend.recalibration import log_odds
from labelspace.models.blend.stacking_table import StackingTable
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.losses import sigmoid
from labelspace.types import Csr, Floats, Longs

# Chosen on CookingSE by benchmarks/rejections.py: a smaller c or a smaller half weight acts more on unlike documents.
HALF_WEIGHT = 0.5  # K at which half of the change is made
SMOOTHING = 0.005  # c
MIN_PROBABILITY = 0.01  # that a rejected label is taken to have had
MAX_DOCUMENTS = 5000  # that are kept, the last ones: each costs some time in every prediction


@dataclass(frozen=True)
class Rejections:
    """Documents that labels were rejected or accepted for, and the probability that each of these labels had there."""

    documents: Annotated[Csr, sparse("float32", "n_documents", "n_features")]  # rows of norm 1
    verdicts: Annotated[Csr, sparse("float32", "n_documents", "n_labels")]  # a probability, negative if rejected

    @classmethod
    def none(cls, n_features: int, n_labels: int) -> Self:
        """Return no rejections."""
        return cls(sp.csr_matrix((0, n_features), dtype=np.float32), sp.csr_matrix((0, n_labels), dtype=np.float32))

    def check_state(self) -> None:
        """Check that verdicts are probabilities with a sign, and documents have norm 1."""
        must(bool((np.abs(self.verdicts.data) <= 1).all()), "verdicts from -1 to 1")
        must(bool((np.abs(self.documents.data) <= 1).all()), "documents of norm 1")

    def __len__(self) -> int:
        return int(self.documents.shape[0])

    def extended(self, X: Csr, new: NewDocuments, probabilities: Csr) -> Self:
        """Return the rejections with those of new documents X; ``probabilities`` (n, n_labels) are those before."""
        rejected = sp.csr_matrix(sp.diags((~new.are_complete).astype(np.float32)) @ new.rejected)
        known = sp.csr_matrix(
            (self.verdicts.data, self.verdicts.indices, self.verdicts.indptr), shape=(len(self), new.n_labels)
        )
        is_rejected = np.zeros(new.n_labels, np.float32)
        is_rejected[rejected.indices] = 1
        is_rejected[known.indices[known.data < 0]] = 1
        given = (new.Y @ sp.diags(is_rejected) - rejected).tocsr()  # 1 and -1
        verdicts = given.multiply(probabilities + abs(given) * MIN_PROBABILITY).tocsr()
        verdicts.data = np.clip(verdicts.data, -1, 1).astype(np.float32)
        verdicts.eliminate_zeros()
        judged = np.flatnonzero(np.diff(verdicts.indptr))
        documents = sp.vstack([self.documents, normalize_rows(X[judged])], format="csr", dtype=np.float32)
        joined = sp.vstack([known, verdicts[judged]], format="csr", dtype=np.float32)
        return replace(self, documents=documents[-MAX_DOCUMENTS:], verdicts=joined[-MAX_DOCUMENTS:])

    def insert_features(self, at: Longs) -> Self:
        """Return the rejections with features that no document has inserted before these."""
        columns = self.documents.indices + np.searchsorted(at, self.documents.indices, side="right")
        shape = (len(self), self.documents.shape[1] + len(at))
        arrays = (self.documents.data, columns.astype(np.int32), self.documents.indptr)
        return replace(self, documents=sp.csr_matrix(arrays, shape=shape))

    def changes(self, X: Csr, table: StackingTable) -> Floats:
        """Return what is added to the log-odds of the candidates of documents X: at most 0."""
        similar = (normalize_rows(X) @ self.documents.T).tocsr()
        rows = np.repeat(np.arange(X.shape[0]), np.diff(table.ends))

        def sums(verdicts: Csr) -> Floats:
            found: Floats = np.asarray((similar @ verdicts).tocsr()[rows, table.labels], np.float32).ravel()
            return found

        accepted, expected = sums((self.verdicts > 0).astype(np.float32)), sums(abs(self.verdicts))
        total = sums((self.verdicts != 0).astype(np.float32))
        ratio = (accepted + SMOOTHING) / (expected + SMOOTHING)
        change: Floats = np.minimum(total / (total + HALF_WEIGHT) * np.log(ratio), np.float32(0))
        return change

    def apply(self, X: Csr, table: StackingTable, probabilities: Floats) -> Floats:
        """Return the probabilities of the candidates of documents X, lower where labels were rejected."""
        if not np.isin(table.labels, self.verdicts.indices).any():
            return probabilities
        changes = self.changes(X, table)
        moved = changes < 0
        out = probabilities.copy()
        out[moved] = sigmoid(log_odds(probabilities[moved]) + changes[moved])
        return out
