import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError, ParameterError
from labelspace.metrics import PRESETS, inverse_propensity, precision_at_k, psndcg_at_k, psp_at_k
from labelspace.types import TopK
from tests.metrics import slow_metrics as slow
from tests.metrics.random_cases import cases, perfect, unhurried

D2 = 1 / np.log2(3)  # 0.63093, the discount of the second rank; the third's is 1/2
WEIGHTS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
FAST_AND_SLOW = [(psp_at_k, slow.psp), (psndcg_at_k, slow.psndcg)]


@pytest.fixture(name="Y")
def true_labels():
    return sp.csr_matrix(
        np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]], np.float32)
    )


@pytest.fixture
def topk():
    labels = np.array([[0, 5, 2], [4, 3, 0], [0, 1, 2], [4, -1, -1]])  # row 2 has no labels
    return TopK(labels, np.zeros(labels.shape))


def test_psp_by_hand(Y, topk):
    # Earned: 1 + 3, 4, 5. Most: 3 + 2 + 1, 4, 5 + 4 + 3.
    assert psp_at_k(Y, topk, WEIGHTS, 3) == pytest.approx(13 / 22)
    # Gains at k=1: 1, 0, 5. Ideal: 3, 4, 5.
    assert psp_at_k(Y, topk, WEIGHTS, 1) == pytest.approx(6 / 12)


def test_psndcg_by_hand(Y, topk):
    earned = (1 + 3 / 2) + 4 * D2 + 5
    most = (3 + 2 * D2 + 1 / 2) + 4 + (5 + 4 * D2 + 3 / 2)
    assert psndcg_at_k(Y, topk, WEIGHTS, 3) == pytest.approx(earned / most)
    assert psndcg_at_k(Y, topk, WEIGHTS, 3) == pytest.approx(0.5636, abs=1e-4)  # 10.02372 / 17.78558
    assert psndcg_at_k(Y, topk, WEIGHTS, 1) == pytest.approx(6 / 12)


def test_weights_by_hand():
    # N = e^3, so ln N - 1 is about 2; B = 3 and A = 1/2 make C = 2 * sqrt(4) = 4.
    # Counts 1, 6, 13: 1 + 4/sqrt(4), 1 + 4/sqrt(9), 1 + 4/sqrt(16).
    weights = inverse_propensity([1, 6, 13], n_documents=20, A=0.5, B=3)
    assert weights == pytest.approx([3, 7 / 3, 2], abs=5e-3)  # ln 20 = 2.9957
    # The default at N = 1000, count 10: C = 5.90776 * 2.5^0.55 = 9.7789; 11.5^-0.55 = 0.26100.
    assert inverse_propensity([10], 1000)[0] == pytest.approx(1 + 9.7789 * 0.26100, abs=1e-3)


def test_presets_are_the_repository_s():
    assert PRESETS == {"default": (0.55, 1.5), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}
    assert np.array_equal(inverse_propensity([3, 5], 99), inverse_propensity([3, 5], 99, *PRESETS["default"]))


@unhurried
@given(
    counts=st.lists(st.integers(0, 500), min_size=1, max_size=9),
    n_documents=st.integers(500, 10**7),
    preset=st.sampled_from(sorted(PRESETS)),
)
def test_weights_equal_to_second_implementation(counts, n_documents, preset):
    weights = inverse_propensity(counts, n_documents, *PRESETS[preset])
    assert weights == pytest.approx(slow.inverse_propensity(counts, n_documents, *PRESETS[preset]))
    assert (weights >= 1).all()
    order = np.argsort(counts, kind="stable")
    assert (np.diff(weights[order]) <= 0).all()  # rarer weighs more


@pytest.mark.parametrize("n_documents", [1, 2])
def test_tiny_training_sets_weigh_all_labels_alike(n_documents):
    assert math.log(n_documents) - 1 < 0
    assert inverse_propensity([1, 0], n_documents).tolist() == [1, 1]


def test_labels_beyond_the_counts_are_unseen():
    assert inverse_propensity([7], 50, n_labels=3).tolist() == inverse_propensity([7, 0, 0], 50).tolist()
    assert inverse_propensity([7, 3, 1], 50, n_labels=1).tolist() == inverse_propensity([7], 50).tolist()


@pytest.mark.parametrize(("fast", "second"), FAST_AND_SLOW)
@unhurried
@given(case=cases())
def test_equal_to_second_implementation(fast, second, case):
    weights = inverse_propensity(case.counts, case.n_documents)
    value = fast(case.Y, case.topk, weights, case.k)
    assert value == pytest.approx(second(case.Y, case.topk, weights, case.k), abs=1e-12)
    assert 0 <= value <= 1 + 1e-12


@pytest.mark.parametrize("metric", [psp_at_k, psndcg_at_k])
@unhurried
@given(case=cases())
def test_perfect_ranking_is_one_and_order_of_documents_does_not_matter(metric, case):
    weights = inverse_propensity(case.counts, case.n_documents)
    assert metric(case.Y, perfect(case.Y, case.k, by=weights), weights, case.k) == pytest.approx(1)
    other = case.reordered(np.arange(case.Y.shape[0])[::-1])
    assert metric(other.Y, other.topk, weights, case.k) == pytest.approx(
        metric(case.Y, case.topk, weights, case.k), abs=1e-12
    )


@unhurried
@given(case=cases())
def test_equal_counts_leave_hits_over_reachable_hits(case):
    alike = inverse_propensity(np.full(case.Y.shape[1], 7), 100)
    pairs = slow.pairs_of(case.Y, case.topk, case.k)
    hits = sum(label in true for true, listed in pairs for label in listed)
    reachable = sum(min(case.k, len(true)) for true, _ in pairs)
    assert psp_at_k(case.Y, case.topk, alike, case.k) == pytest.approx(hits / reachable)
    # Multiplying all weights by a number changes nothing, since it cancels.
    assert psndcg_at_k(case.Y, case.topk, 3 * alike, case.k) == pytest.approx(
        psndcg_at_k(case.Y, case.topk, alike, case.k)
    )
    assert psp_at_k(case.Y, case.topk, alike, 1) == pytest.approx(precision_at_k(case.Y, case.topk, 1))


@unhurried
@given(case=cases(every_document_labeled=True))
def test_xclib_s_psndcg_is_ours_where_every_document_has_k_labels(case):
    weights = inverse_propensity(case.counts, case.n_documents)
    for k in range(1, min(case.k, int(case.Y.sum(axis=1).min())) + 1):
        ours = psndcg_at_k(case.Y, case.topk, weights, k)
        assert ours == pytest.approx(slow.psndcg_of_xclib(case.Y, case.topk, weights, k))


def test_xclib_s_psndcg_differs_where_a_document_has_fewer_labels(Y, topk):
    theirs = slow.psndcg_of_xclib(Y, topk, WEIGHTS, 3)
    # 1 + D2 + 1/2 divides the documents of three and five labels, 1 that of one.
    full = 1.5 + D2
    assert theirs == pytest.approx((7.5 / full + 4 * D2) / ((3.5 + 2 * D2) / full + 4 + (6.5 + 4 * D2) / full))
    assert psndcg_at_k(Y, topk, WEIGHTS, 3) != pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "there are 2 for 6 columns; call inverse_propensity with n_labels=6"),
        ([1, 1, 1, 1, 1, 0], "above 0 and finite, but one is 0.0"),
        ([1, 1, 1, 1, 1, np.nan], "above 0 and finite, but one is nan"),
    ],
)
def test_weights_that_do_not_fit_are_refused(Y, topk, weights, message):
    with pytest.raises(DataError, match=message):
        psp_at_k(Y, topk, weights, 3)


def test_counts_and_parameters_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="n_documents must be at least 1 .* but is 0 with a count of 0"):
        inverse_propensity([0], 0)
    with pytest.raises(DataError, match="but is 5 with a count of 9"):
        inverse_propensity([9], 5)
    with pytest.raises(DataError, match="count must be at least 0, but one is -1"):
        inverse_propensity([3, -1], 5)
    with pytest.raises(ParameterError, match="B above 0, but they are 0.5 and 0"):
        inverse_propensity([3], 5, A=0.5, B=0)
