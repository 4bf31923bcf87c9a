"""The first layer of a network on sparse rows: an embedding per feature; a step updates those of the batch."""

from typing import Self

import numpy as np

from labelspace.features.sparse_matrix import column_counts
from labelspace.kernels import large_arrays
from labelspace.kernels import sparse_layers as kernels
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.threads import run_blocks
from labelspace.training.optimizers import RowAdagrad
from labelspace.types import Csr, Floats, Ints, Rng

ROW_BLOCK = 64  # documents per task
PRODUCT_BLOCK = 256  # rows per task of a product
FEATURE_BLOCK = 2048  # features per task
INIT_STD = 0.1  # of the initial embeddings
MANY_DOCUMENTS = 30_000  # above, less input dropout is needed: there is less to overfit
INPUT_DROPOUT = (0.2, 0.1)  # up to ``MANY_DOCUMENTS``, and above

NO_FEATURES: Ints = np.zeros(0, np.int32)

Batch = tuple[Floats, Ints, Ints]  # the parts of a csr matrix


def default_input_dropout(n_documents: int) -> float:
    """Return the input dropout for a number of training documents, where none is given."""
    return INPUT_DROPOUT[n_documents > MANY_DOCUMENTS]


def batch_rows(X: Csr, rows: Ints, dropout: float, rng: Rng) -> Batch:
    """Return some rows of X with input dropout: values are dropped at random, the rest scaled up to the same mean."""
    draws = rng.random(int((X.indptr[rows + 1] - X.indptr[rows]).sum()), np.float32)
    batch: Batch = kernels.dropout_rows(X.data, X.indices, X.indptr, rows, draws, float(dropout))
    return batch


class SparseLayer:
    """E'x + c for sparse rows x, trained by row-wise Adagrad: one number of optimizer state per feature.

    With ``normalized``, only the direction of a unit's vector, a column of E, counts: the sum of its squares is updated
    with the rows that a step changes.
    """

    vectors: Floats  # E (n_features, width)

    def __init__(self, vectors: Floats, normalized: bool = False) -> None:
        n_features, width = vectors.shape
        self.vectors, self.adagrad, self.normalized = vectors, RowAdagrad(n_features), normalized
        self.squares = self.adagrad.squares  # (n_features,) Adagrad's state of each embedding
        self.squared_norms = np.zeros(width if normalized else 0)  # of the units' vectors
        if normalized:
            for start in range(0, n_features, FEATURE_BLOCK):
                self.squared_norms += np.square(vectors[start : start + FEATURE_BLOCK], dtype=np.float64).sum(axis=0)
        self._ones, self._workspace = np.ones(n_features, np.float32), np.zeros(n_features, np.int32)

    @classmethod
    def random(cls, X: Csr, width: int, rng: Rng, normalized: bool = False, init_std: float = INIT_STD) -> Self:
        """Draw the embeddings; 0 for a feature without documents."""
        vectors = large_arrays.empty((X.shape[1], width), np.float32)
        rng.standard_normal(dtype=np.float32, out=vectors)
        vectors *= np.float32(init_std)
        vectors[column_counts(X) == 0] = 0.0
        return cls(vectors, normalized)

    @property
    def unit_scales(self) -> Floats:
        """The factor of a unit's output: the expected initial norm of its vector over the norm it has."""
        initial_norm = INIT_STD * np.sqrt(max(len(self.vectors), 1))
        return np.asarray((initial_norm / np.sqrt(np.maximum(self.squared_norms, 1e-12))).astype(np.float32))

    def embed(self, batch: Batch, bias: Floats) -> Floats:
        """Return E'x + c for each row x: (batch, width)."""
        out = embedded(batch, self.vectors, self._ones, None if self.normalized else bias)
        if self.normalized:
            out *= self.unit_scales
            out += bias
        return out

    def entry_scores(self, batch: Batch, hidden: Floats, skipped: Ints = NO_FEATURES) -> Floats:
        """Return at each entry of a batch the product of its feature's embedding and its row of ``hidden``.

        Entries of features with ``skipped`` (n_features,) at 0 or more are 0.
        """
        return products_at(batch, hidden, self.vectors, skipped, ROW_BLOCK)

    def update_rows(self, ids: Ints, gradient: Floats, rate: float) -> None:
        """Update the embeddings of some features, each named once, given their gradient (n, width)."""
        self.vectors[ids] += self.adagrad.updates(ids, gradient, rate)

    def gradients(self, batch: Batch, gradient: Floats) -> tuple[Ints, Floats]:
        """Return a batch's features, and the gradient by the embedding of each. Shapes (m,) and (m, width)."""
        entries = kernels.group_by_feature(*batch, self._workspace)
        out = np.empty((len(entries.features), gradient.shape[1]), np.float32)
        kernels.feature_gradients(entries, gradient, out)
        return entries.features, out

    def backward(self, batch: Batch, gradient: Floats, rate: float) -> None:
        """Update the embeddings of a batch's features; ``gradient`` (batch, width) is by the layer's output.

        The gradient of a normalized unit lacks the term that makes it orthogonal to the unit's vector: this term would
        touch every feature, and change only the vector's norm.
        """
        if self.normalized:
            gradient = gradient * self.unit_scales
        entries = kernels.group_by_feature(*batch, self._workspace)
        n_features = len(entries.features)
        changes = np.zeros((-(-n_features // FEATURE_BLOCK), len(self.squared_norms)))

        def update(start: int, stop: int) -> None:
            change = changes[start // FEATURE_BLOCK]
            kernels.adagrad_features(entries, start, stop, gradient, rate, self.vectors, self.squares, change)

        run_blocks(update, n_features, FEATURE_BLOCK)
        self.squared_norms += changes.sum(axis=0)  # in one order, whatever the threads did


def embedded(rows: Batch, table: kernels.Table, scales: Floats, bias: Floats | None, block: int = ROW_BLOCK) -> Floats:
    """Return the sum of each row's scaled vectors of ``table`` (n_features, width) times its values, plus the bias.

    A row of the result (n, width) does not depend on the other rows.
    """
    out = np.empty((len(rows[2]) - 1, table.shape[1]), np.float32)
    initial = np.zeros(table.shape[1], np.float32) if bias is None else bias

    def embed(start: int, stop: int) -> None:
        kernels.embed_rows(*rows, start, stop, table, scales, initial, out)

    run_blocks(embed, len(out), block)
    return out


def product(A: Csr, B: Floats) -> Floats:
    """Return A B for sparse A (n, m) and dense B (m, dim), both float32; each row is summed in one order."""
    return embedded(csr_arrays(A), B, np.ones(len(B), np.float32), None, PRODUCT_BLOCK)


def products_at(A: Batch, U: Floats, V: Floats, skipped: Ints = NO_FEATURES, block: int = PRODUCT_BLOCK) -> Floats:
    """Return U_i.V_j for each entry (i, j) of A, in the order of its data; U is (n, dim), V is (m, dim).

    Entries of columns with ``skipped`` (m,) at 0 or more are 0.
    """
    _, columns, indptr = A
    out = np.zeros(len(columns), np.float32)

    def multiply(start: int, stop: int) -> None:
        kernels.sampled_products(columns, indptr, start, stop, U, V, skipped, out)

    run_blocks(multiply, len(U), block)
    return out
