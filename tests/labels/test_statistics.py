import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.labels.statistics import MEASURES, cooccurrence_counts, similarity


def dense(Y, measure):
    """The same with dense matrices: A = Y'Y and Z its diagonal, as the paper writes it."""
    n, A = len(Y), Y.T @ Y
    counts = np.maximum(np.diag(A), 1e-300)
    if measure == "arithmetic":
        U = 0.5 * (A / counts[None, :] + A / counts[:, None])
    elif measure == "geometric":
        U = np.sqrt(A / counts[None, :] * (A / counts[:, None]))
    elif measure == "jaccard":
        U = A / np.maximum(counts[:, None] + counts[None, :] - A, 1e-300)
    else:
        with np.errstate(all="ignore"):
            U = np.log((A / n) / (counts[:, None] / n * counts[None, :] / n)) / -np.log(A / n)
        U = np.where(A == n, 1, np.where(A == 0, 0, np.maximum(U, 0)))
    np.fill_diagonal(U, 1)
    return U


@pytest.fixture(name="Y")
def labels():
    """Labels 0 and 9 on every document, 4 on none, 6 and 7 always together."""
    rng = np.random.default_rng(6)
    Y = (rng.random((40, 12)) < rng.random(12)).astype(np.float64)
    Y[:, [0, 9]], Y[:, 4], Y[:, 7] = 1, 0, Y[:, 6]
    return Y


@pytest.mark.parametrize("measure", MEASURES)
def test_similarity_is_that_of_dense_matrices(Y, measure):
    U = similarity(sp.csr_matrix(Y, dtype=np.float32), measure).toarray()
    assert np.allclose(U, dense(Y, measure), atol=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_similarity_is_symmetric_within_0_and_1_and_sparse(Y, measure):
    Y[:20, 1], Y[20:, 1] = 1, 0
    Y[:20, 2], Y[20:, 2] = 0, 1  # never together
    U = similarity(sp.csr_matrix(Y, dtype=np.float32), measure)
    assert U.format == "csr"
    assert U.dtype == np.float32
    assert U.has_sorted_indices
    table = U.toarray()
    assert np.array_equal(table, table.T)
    assert table.min() >= 0
    assert table.max() <= 1
    assert (np.diag(table) == 1).all()
    assert U.nnz <= (Y.T @ Y > 0).sum() + 1
    assert table[1, 2] == 0


# Label 0 on documents 0-3, label 1 on 3-4, label 2 on none, of 8 documents: 4, 2 and 1 shared.
@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("arithmetic", (1 / 4 + 1 / 2) / 2),
        ("geometric", np.sqrt(1 / 4 * 1 / 2)),
        ("jaccard", 1 / 5),
        ("pmi", np.log(1 * 8 / (4 * 2)) / np.log(8)),  # as often together as at random
    ],
)
def test_cases_worked_by_hand(measure, expected):
    Y = np.zeros((8, 3), np.float32)
    Y[:4, 0], Y[3:5, 1] = 1, 1
    U = similarity(sp.csr_matrix(Y), measure).toarray()
    assert np.allclose(U, [[1, expected, 0], [expected, 1, 0], [0, 0, 1]], atol=1e-6)


def test_pmi_of_labels_that_attract_and_repel():
    Y = np.zeros((8, 3), np.float32)
    Y[:2, 0], Y[:2, 1], Y[1:, 2] = 1, 1, 1
    U = similarity(sp.csr_matrix(Y), "pmi").toarray()
    assert np.isclose(U[0, 1], 1), "always together"
    assert U[0, 2] == 0, "less often together than at random"


@pytest.mark.parametrize("measure", MEASURES)
def test_labels_that_are_always_together_are_of_similarity_1(measure):
    for n in (3, 8):  # of some documents, of every document
        Y = np.zeros((8, 2), np.float32)
        Y[:n] = 1
        assert np.allclose(similarity(sp.csr_matrix(Y), measure).toarray(), 1)


def test_a_label_of_every_document_is_similar_to_no_other_by_pmi(Y):
    U = similarity(sp.csr_matrix(Y, dtype=np.float32), "pmi").toarray()
    some = [label for label in range(12) if 0 < Y[:, label].sum() < 40]
    assert np.allclose(U[0, some], 0, atol=1e-6)
    assert len(some) > 5


@pytest.mark.parametrize("measure", MEASURES)
def test_a_label_without_documents_is_similar_only_to_itself(Y, measure):
    row = similarity(sp.csr_matrix(Y, dtype=np.float32), measure)[4]
    assert row.indices.tolist() == [4]
    assert row.data.tolist() == [1]
    none = similarity(sp.csr_matrix((3, 4), dtype=np.float32), measure)
    assert np.array_equal(none.toarray(), np.eye(4))


def test_an_unknown_measure_is_refused():
    with pytest.raises(
        ParameterError, match="similarity must be one of arithmetic, geometric, jaccard, pmi, but is 'x'"
    ):
        similarity(sp.csr_matrix((3, 4), dtype=np.float32), "x")


def test_counts_are_the_documents_that_two_labels_share(Y):
    counts = cooccurrence_counts(sp.csr_matrix(Y, dtype=np.float32)).toarray()
    for i in range(12):
        for j in range(12):
            assert counts[i, j] == np.sum((Y[:, i] == 1) & (Y[:, j] == 1))
