import numpy as np
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.models.fastxml.kernels import LEAST_GAIN, Targets, partition_by_ndcg

DISCOUNTS = 1 / np.log2(np.arange(2, 40))


def partition_in_numpy(Y, row_weights, positive):
    positive, before = positive.copy(), -np.inf
    discounts = DISCOUNTS[: Y.shape[1]]
    while True:
        sums = [(Y * row_weights[:, None])[positive == side].sum(axis=0) for side in (True, False)]
        orders = [np.argsort(-total, kind="stable") for total in sums]
        ranked = [discounts[np.argsort(order)] for order in orders]  # the discount of each label
        ndcg = sum(total @ own for total, own in zip(sums, ranked, strict=True)) / len(Y)
        difference = Y @ (ranked[0] - ranked[1])
        positive = np.where(difference == 0, positive, difference > 0)
        if ndcg - before < LEAST_GAIN:
            return positive
        before = ndcg


def test_the_sides_are_those_of_numpy():
    rng = np.random.default_rng(1)
    for seed in range(5):
        Y = sp.random(80, 25, 0.15, "csr", rng=np.random.default_rng(seed))
        Y.data = rng.integers(1, 4, len(Y.data)).astype(np.float32)  # whole numbers: sums are exact, so ties are too
        weights, positive = rng.integers(1, 3, 80).astype(float), rng.random(80) < 0.5
        expected = partition_in_numpy(Y.toarray(), weights, positive)
        gains = CsrArrays(Y.data, Y.indices, Y.indptr.astype(np.int64))
        rounds = partition_by_ndcg(Targets(gains, weights, DISCOUNTS), 25, positive)
        assert rounds > 1
        assert np.array_equal(positive, expected)


def test_documents_with_the_same_labels_come_together():
    labels, ends = np.array([0, 1] * 10 + [2, 3] * 10, np.int32), np.arange(0, 41, 2)
    positive = np.arange(20) % 3 == 0
    positive[:3] = True
    gains = CsrArrays(np.ones(40, np.float32), labels, ends)
    partition_by_ndcg(Targets(gains, np.ones(20), DISCOUNTS), 4, positive)
    assert len(set(positive[:10])) == len(set(positive[10:])) == 1
    assert positive[0] != positive[10]


def test_a_document_without_labels_stays():
    positive = np.array([True, False])
    gains = CsrArrays(np.ones(0, np.float32), np.zeros(0, np.int32), np.zeros(3, np.int64))
    partition_by_ndcg(Targets(gains, np.ones(2), DISCOUNTS), 0, positive)
    assert positive.tolist() == [True, False]
