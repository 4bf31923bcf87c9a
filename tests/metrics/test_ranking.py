import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.metrics import ndcg_score

from labelspace.metrics import coverage_at_k, ndcg_at_k, precision_at_k, r_precision_at_k, recall_at_k
from labelspace.types import TopK
from tests.metrics import slow_metrics as slow
from tests.metrics.random_cases import cases, perfect, unhurried

FAST_AND_SLOW = [
    (precision_at_k, slow.precision),
    (ndcg_at_k, slow.ndcg),
    (recall_at_k, slow.recall),
    (r_precision_at_k, slow.r_precision),
    (coverage_at_k, slow.coverage),
]
FAST = [fast for fast, _ in FAST_AND_SLOW]
D2 = 1 / np.log2(3)  # 0.63093, the discount of the second rank; the third's is 1/2


@pytest.fixture(name="Y")
def true_labels():
    return sp.csr_matrix(
        np.array(
            [
                [1, 1, 1, 0, 0, 0],
                [0, 0, 0, 1, 0, 0],
                [0, 0, 0, 0, 0, 0],  # left out
                [1, 1, 1, 1, 1, 0],
            ]
        )
    )


@pytest.fixture
def topk():
    labels = np.array(
        [
            [0, 5, 2],  # hit, miss, hit
            [4, 3, 0],  # miss, hit, miss
            [0, 1, 2],
            [4, -1, -1],  # hit, nothing, nothing
        ]
    )
    return TopK(labels, np.zeros(labels.shape))


def test_precision_by_hand(Y, topk):
    assert precision_at_k(Y, topk, 1) == pytest.approx(2 / 3)  # (1 + 0 + 1) / 3 documents
    assert precision_at_k(Y, topk, 3) == pytest.approx(4 / 9)  # (2/3 + 1/3 + 1/3) / 3


def test_ndcg_by_hand(Y, topk):
    # Documents: (1 + 1/2) / (1 + D2 + 1/2), D2 / 1 (one label: the ideal is one hit), 1 / (1 + D2 + 1/2).
    assert ndcg_at_k(Y, topk, 3) == pytest.approx((1.5 / (1.5 + D2) + D2 + 1 / (1.5 + D2)) / 3)
    assert ndcg_at_k(Y, topk, 3) == pytest.approx(0.6014, abs=1e-4)  # (0.70392 + 0.63093 + 0.46928) / 3
    assert ndcg_at_k(Y, topk, 1) == pytest.approx(2 / 3)


def test_recall_by_hand(Y, topk):
    assert recall_at_k(Y, topk, 3) == pytest.approx(28 / 45)  # (2/3 + 1/1 + 1/5) / 3
    assert recall_at_k(Y, topk, 1) == pytest.approx(8 / 45)  # (1/3 + 0/1 + 1/5) / 3


def test_r_precision_by_hand(Y, topk):
    assert r_precision_at_k(Y, topk, 3) == pytest.approx(2 / 3)  # (2/3 + 1/1 + 1/3) / 3: five labels, three ranks
    assert r_precision_at_k(Y, topk, 1) == pytest.approx(2 / 3)  # (1 + 0 + 1) / 3


def test_coverage_by_hand(Y, topk):
    assert coverage_at_k(Y, topk, 3) == pytest.approx(4 / 5)  # 0, 2, 3, 4 of the occurring 0, 1, 2, 3, 4
    assert coverage_at_k(Y, topk, 1) == pytest.approx(2 / 5)  # 0 and 4


@pytest.mark.parametrize("metric", FAST)
def test_documents_without_labels_change_nothing(metric, Y, topk):
    kept = [0, 1, 3]
    alone = TopK(topk.labels[kept], topk.scores[kept])
    assert metric(Y, topk, 3) == metric(Y[kept], alone, 3)


@pytest.mark.parametrize("metric", FAST)
def test_nothing_predicted_is_zero(metric, Y):
    assert metric(Y, TopK.empty(4, 3), 3) == 0.0


@pytest.mark.parametrize(("fast", "second"), FAST_AND_SLOW)
@unhurried
@given(case=cases())
def test_equal_to_second_implementation(fast, second, case):
    value = fast(case.Y, case.topk, case.k)
    assert value == pytest.approx(second(case.Y, case.topk, case.k), abs=1e-12)
    assert 0 <= value <= 1 + 1e-12


@pytest.mark.parametrize("metric", FAST)
@unhurried
@given(case=cases())
def test_order_of_documents_does_not_matter(metric, case):
    other = case.reordered(np.arange(case.Y.shape[0])[::-1])
    assert metric(other.Y, other.topk, case.k) == pytest.approx(metric(case.Y, case.topk, case.k), abs=1e-12)


@unhurried
@given(case=cases())
def test_perfect_ranking_is_one(case):
    best = perfect(case.Y, case.k)
    assert ndcg_at_k(case.Y, best, case.k) == pytest.approx(1)
    assert r_precision_at_k(case.Y, best, case.k) == pytest.approx(1)
    perfect_topk = perfect(case.Y, case.Y.shape[1])
    assert recall_at_k(case.Y, perfect_topk, case.Y.shape[1]) == pytest.approx(1)
    assert coverage_at_k(case.Y, perfect_topk, case.Y.shape[1]) == 1


@unhurried
@given(case=cases())
def test_relations_between_the_metrics(case):
    Y, topk, k = case.Y, case.topk, case.k
    at_one = {metric(Y, topk, 1) for metric in (precision_at_k, ndcg_at_k, r_precision_at_k)}
    assert max(at_one) == pytest.approx(min(at_one))
    # RP divides by min(k, labels), the smaller of the divisors of P and R.
    assert r_precision_at_k(Y, topk, k) >= max(precision_at_k(Y, topk, k), recall_at_k(Y, topk, k)) - 1e-12
    assert recall_at_k(Y, topk, k) >= recall_at_k(Y, topk, 1) - 1e-12
    assert coverage_at_k(Y, topk, k) >= coverage_at_k(Y, topk, 1)
    one = sp.csr_matrix(np.eye(1, Y.shape[1])[[0] * Y.shape[0]])  # one label each: k times P is R
    assert k * precision_at_k(one, topk, k) == pytest.approx(recall_at_k(one, topk, k))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_ndcg_equals_scikit_learn(k):
    rng = np.random.default_rng(k)
    Y = (rng.random((50, 20)) < 0.2).astype(int)
    Y[:, 0] |= Y.sum(axis=1) == 0  # scikit-learn scores a document without labels 0, so give each one
    scores = rng.random(Y.shape)
    ours = ndcg_at_k(sp.csr_matrix(Y), TopK.from_scores(scores, k), k)
    assert ours == pytest.approx(ndcg_score(Y, scores, k=k), abs=1e-12)
