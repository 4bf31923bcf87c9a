import numpy as np
import scipy.sparse as sp

from labelspace.models.blend.kernels import N_COLUMNS, LabelPairs, documents_of_both, fill_context
from labelspace.models.blend.stacking_model import count_pairs
from labelspace.models.blend.stacking_table import StackingTable


def labels_of(n=60, n_labels=12, seed=0):
    return sp.random(n, n_labels, 0.3, "csr", np.float32, rng=np.random.default_rng(seed)).sign()


def test_documents_of_both_equal_a_dense_product():
    Y = labels_of()
    pairs, dense = count_pairs(Y), (Y.T @ Y).toarray()
    for one in range(12):
        for other in set(range(12)) - {one}:
            assert documents_of_both(one, other, label_pairs(pairs)) == dense[one, other]


def label_pairs(pairs):
    """Counts as kernels take them."""
    return LabelPairs(pairs.partners, pairs.shared, pairs.starts, pairs.counts, float(pairs.n_documents[0]))


def context_of(label, p, others, other_ps, total, before, after, dense, counts, n):
    """The NumPy twin for one candidate."""
    both = dense[label, others]
    support = other_ps * both / np.maximum(counts[others], 1)
    pmi = np.log((both + 1) / (counts[label] * counts[others] / n + 1))
    by_this = (other_ps * both / max(counts[label], 1)).sum()
    odds = np.log(p / (1 - p))
    return [odds, total, p - after, before - p, (other_ps * pmi).sum(), support.sum(), support.max(initial=0), by_this]


def test_context_equals_numpy():
    Y, rng, size = labels_of(), np.random.default_rng(1), 4
    pairs, dense, counts = count_pairs(Y), (Y.T @ Y).toarray(), Y.sum(axis=0).A1
    ends = np.array([0, 6, 6, 9])  # six candidates, none, and three
    labels = np.concatenate([rng.choice(12, 6, False), rng.choice(12, 3, False)]).astype(np.int32)
    p, columns = rng.random(9, np.float32), rng.random((9, 7), np.float32)
    best, table = np.full((3, size), -1, np.int32), np.full((3, size, N_COLUMNS), np.nan, np.float32)
    fill_context(StackingTable(labels, columns, ends), p, 0, 3, label_pairs(pairs), best, table)
    assert (best[1] == -1).all()
    assert best[2, 3] == -1
    for document, (begin, end) in enumerate([(0, 6), (6, 6), (6, 9)]):
        rows = begin + np.argsort(-p[begin:end])[:size]
        assert np.array_equal(best[document, : len(rows)], rows)
        for rank, row in enumerate(rows):
            others = np.delete(rows, rank)
            after = p[rows[rank + 1]] if rank + 1 < len(rows) else 0.0
            before = p[rows[rank - 1]] if rank else 1.0
            expected = context_of(
                labels[row], p[row], labels[others], p[others], p[begin:end].sum(), before, after, dense, counts, 60
            )
            found = table[document, rank]
            assert found[1] == rank
            assert np.allclose(np.delete(found, 1)[:8], expected, atol=1e-4)
            assert np.array_equal(found[9:], columns[row, -3:])
