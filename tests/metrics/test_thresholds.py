"""F1 at the best threshold and the precision-coverage curve, by hand and against every threshold tried in turn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError
from labelspace.metrics import (
    PrecisionCoverage,
    ScoredPairs,
    best_macro_f1,
    best_micro_f1,
    expected_threshold,
    label_counts_at,
    macro_f1,
    micro_f1,
)
from labelspace.metrics.thresholds import macro_f1_by_threshold
from labelspace.types import TopK
from tests.metrics.random_cases import cases, unhurried

NOTHING = TopK.empty(2, 3)


@pytest.fixture(name="Y")
def true_labels():
    return sp.csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]]))


@pytest.fixture
def topk():
    # Right: 0 (0.9) and 2 (0.5) of the first two; wrong: 2 (0.5), 0 (0.25). Label 1 is never predicted.
    labels = np.array([[0, 2, -1], [2, 0, -1], [1, 0, -1]])
    scores = np.array([[0.875, 0.5, -np.inf], [0.5, 0.25, -np.inf], [0.75, 0.125, -np.inf]])
    return TopK(labels, scores)


def test_pairs_by_hand(Y, topk):
    pairs = ScoredPairs.from_topk(Y, topk)
    assert pairs.scores.tolist() == [0.875, 0.5, 0.5, 0.25]
    assert pairs.correct.tolist() == [True, False, True, False]
    assert pairs.labels.tolist() == [0, 2, 2, 0]
    assert pairs.n_true.tolist() == [2, 1]
    assert pairs.label_counts.tolist() == [1, 1, 1]
    assert (pairs.thresholds.tolist(), pairs.n_kept.tolist()) == ([0.875, 0.5, 0.25], [1, 3, 4])
    assert pairs.n_hits.tolist() == [1, 2, 2]
    every = ScoredPairs.from_topk(Y, topk, include_unlabeled=True)
    assert every.scores.tolist() == [0.875, 0.75, 0.5, 0.5, 0.25, 0.125]
    assert every.n_true.tolist() == [2, 1, 0]


def test_best_f1_by_hand(Y, topk):
    pairs = ScoredPairs.from_topk(Y, topk)
    # micro: 2*1/(1+3), 2*2/(3+3), 2*2/(4+3).
    assert best_micro_f1(pairs) == (pytest.approx(4 / 6), 0.5)
    # macro of the labels 0, 1, 2: (1 + 0 + 0)/3, (1 + 0 + 2/3)/3, (2/3 + 0 + 2/3)/3.
    assert macro_f1_by_threshold(pairs).tolist() == pytest.approx([1 / 3, 5 / 9, 4 / 9])
    assert best_macro_f1(pairs) == (pytest.approx(5 / 9), 0.5)


def test_the_expected_threshold_by_hand(Y, topk):
    # Probabilities 0.875, 0.5, 0.5, 0.25, in all 2.125: 1.75/3.125 = 0.56, 3.75/5.125 = 0.73, 4.25/6.125 = 0.69.
    pairs = ScoredPairs.from_topk(Y, topk)
    assert expected_threshold(pairs) == 0.5
    assert label_counts_at(pairs, 0.5).micro() == pytest.approx(4 / 6)
    other_truth = ScoredPairs.from_topk(sp.csr_matrix([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), topk)
    assert expected_threshold(other_truth) == 0.5, "true labels are not looked at"


def test_precision_and_coverage_by_hand(Y, topk):
    curve = PrecisionCoverage.from_pairs(ScoredPairs.from_topk(Y, topk))
    assert curve.precision.tolist() == pytest.approx([1, 2 / 3, 1 / 2])
    assert curve.coverage.tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert curve.coverage_at(0.9) == (pytest.approx(1 / 3), 0.875)
    assert curve.coverage_at(0.6) == (pytest.approx(2 / 3), 0.5)
    counted = PrecisionCoverage.from_pairs(ScoredPairs.from_topk(Y, topk, include_unlabeled=True))
    assert counted.coverage_at(0.6) == (pytest.approx(1 / 3), 0.875), "what a document without labels gets is wrong"


def test_a_precision_that_is_not_reached_covers_nothing(topk):
    curve = PrecisionCoverage.from_pairs(ScoredPairs.from_topk(sp.csr_matrix([[0, 1, 0], [0, 1, 0], [0, 0, 1]]), topk))
    assert curve.coverage_at(0.9) == (0.0, None)
    assert curve.coverage_at(0.0) == (0.0, None)


def test_nothing_predicted(Y):
    pairs = ScoredPairs.from_topk(Y[:2], NOTHING)
    assert best_micro_f1(pairs) == best_macro_f1(pairs) == (0.0, None)
    assert expected_threshold(pairs) is None
    assert label_counts_at(pairs, None).micro() == 0
    curve = PrecisionCoverage.from_pairs(pairs)
    assert curve.coverage_at(0.9) == (0.0, None)
    assert curve.points().coverage.size == 0


def test_documents_that_do_not_fit_are_refused(Y):
    with pytest.raises(DataError, match="one row per document, but have 3 and 2"):
        ScoredPairs.from_topk(Y, NOTHING)
    with pytest.raises(DataError, match="at least one document must have a label"):
        ScoredPairs.from_topk(0 * Y[:2], NOTHING)


@unhurried
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
def test_every_threshold_tried_in_turn(case, seed):
    # Few distinct scores, so that many are equal.
    drawn = np.sort(np.random.default_rng(seed).integers(0, 4, case.topk.labels.shape) / 4, axis=1)[:, ::-1]
    topk = TopK(case.topk.labels, np.where(case.topk.labels >= 0, drawn, -np.inf))
    pairs = ScoredPairs.from_topk(case.Y, topk)
    kept = [topk.at_least(threshold) for threshold in pairs.thresholds]
    micros, macros = ([f1(case.Y, top) for top in kept] for f1 in (micro_f1, macro_f1))
    assert macro_f1_by_threshold(pairs).tolist() == pytest.approx(macros)
    for best, values in ((best_micro_f1(pairs), micros), (best_macro_f1(pairs), macros)):
        assert best.value == pytest.approx(max(values, default=0))
    for threshold, micro, macro in zip(pairs.thresholds.tolist(), micros, macros, strict=True):
        counts = label_counts_at(pairs, threshold)
        assert (counts.micro(), counts.macro()) == pytest.approx((micro, macro))
        assert pairs.micro_f1_values(threshold).value() == pytest.approx(micro)
    curve = PrecisionCoverage.from_pairs(pairs)
    precisions = [pairs.correct[pairs.kept(t)].mean() for t in pairs.thresholds]
    coverages = [pairs.correct[pairs.kept(t)].sum() / case.Y.nnz for t in pairs.thresholds]
    for precision in (0.3, 0.5, 0.9):
        reached = [c for p, c in zip(precisions, coverages, strict=True) if p >= precision]
        assert curve.coverage_at(precision).value == pytest.approx(max(reached, default=0))


def test_the_points_of_a_long_curve_lie_on_it():
    rng = np.random.default_rng(0)
    topk = TopK(np.zeros((3000, 1)), rng.random((3000, 1)))
    curve = PrecisionCoverage.from_pairs(
        ScoredPairs.from_topk(sp.csr_matrix((rng.random((3000, 1)) < topk.scores).astype(float)), topk, True)
    )
    drawn = curve.points(20)
    assert 20 <= len(drawn.coverage) <= 21
    assert np.diff(drawn.coverage).max() < 0.06
    assert drawn.coverage[-1] == 1
    assert set(zip(drawn.precision, drawn.coverage, strict=True)) <= set(
        zip(curve.precision, curve.coverage, strict=True)
    )
