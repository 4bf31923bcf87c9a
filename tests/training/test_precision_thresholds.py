"""Documents are drawn whose precision at every threshold is known, and what is learned from few is judged by many."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.estimator.state_constraints import StateError
from labelspace.training.precision_thresholds import (
    GRID,
    TARGETS,
    PrecisionThresholds,
    learn_consistent_precision,
    learn_precision,
)
from labelspace.types import Hierarchy, TopK

WIDTH, ASKED = 6, (0.6, 0.7, 0.8, 0.9)


def draw(n, rng, shared):
    """Probabilities that are wrong, and labels of a document that are right together, by an effect that they share."""
    z = -np.sort(-rng.normal(-0.3, 1.5, (n, WIDTH)), axis=1)
    logits = 1.6 * z + shared * rng.normal(size=(n, 1)) - 0.4
    right = rng.random((n, WIDTH)) < 1 / (1 + np.exp(-logits))
    top = TopK(np.tile(np.arange(WIDTH), (n, 1)), 1 / (1 + np.exp(-1.4 * z)))
    return top, sp.csr_matrix(right.astype(np.float32))


def kept(top, threshold, most):
    sure = top.scores >= np.float32(threshold)
    return sure & (np.cumsum(sure, axis=1) <= most)


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_the_precision_is_reached_in_nine_draws_of_ten(shared):
    rng, n_draws = np.random.default_rng(0), 40
    many, truth = draw(20_000, rng, shared)
    right = truth.toarray() > 0
    missed, coverage = dict.fromkeys(ASKED, 0), dict.fromkeys(ASKED, 0.0)
    for seed in range(n_draws):
        learned = PrecisionThresholds.learn(*draw(1000, rng, shared), seed)
        for asked in ASKED:
            found = learned.at(asked)
            sure = kept(many, found.threshold, found.most)
            missed[asked] += found.confidence is not None and right[sure].mean() < asked
            coverage[asked] += (sure & right).sum() / right.sum() / n_draws
            assert found.coverage == pytest.approx((sure & right).sum() / right.sum(), abs=0.1)
    assert max(missed.values()) <= 0.2 * n_draws  # a true share of a tenth exceeds that in 1 of 100 tests
    assert 0 < sum(missed.values()) <= 0.1 * n_draws * len(ASKED)  # it is not needlessly careful either
    for asked in ASKED[:2]:
        best = min(t for t in GRID if right[kept(many, t, WIDTH)].mean() >= asked)
        assert coverage[asked] > 0.8 * (kept(many, best, WIDTH) & right).sum() / right.sum()


def test_labels_are_not_counted_as_if_they_were_documents():
    """Every document has six labels that are all right or all wrong: 60 documents are not 360."""
    n, missed = 60, {False: 0, True: 0}
    for seed in range(60):
        right = np.random.default_rng(seed).random((n, 1)) < 0.6
        top = TopK(np.tile(np.arange(WIDTH), (n, 1)), np.full((n, WIDTH), 0.9, np.float32))
        Y = sp.csr_matrix(np.tile(right, WIDTH).astype(np.float32))
        single = TopK(np.zeros((n * WIDTH, 1)), np.full((n * WIDTH, 1), 0.9, np.float32))
        for alone, case in ((False, (top, Y)), (True, (single, sp.csr_matrix(Y.toarray().reshape(-1, 1))))):
            missed[alone] += PrecisionThresholds.learn(*case, seed).at(0.62).confidence is not None
    assert missed[True] > 12
    assert missed[False] <= 6


def test_thresholds_rise_with_the_precision_and_more_than_can_be_shown_is_not_reached():
    learned = PrecisionThresholds.learn(*draw(2000, np.random.default_rng(2), 1.0))
    assert (np.diff(learned.threshold[np.isfinite(learned.threshold)]) >= 0).all()
    assert (np.diff(learned.coverage) <= 1e-6).all()
    assert learned.highest is not None
    assert learned.highest < 0.99
    above = learned.at(learned.highest + 0.01)
    assert above.confidence is None
    assert learned.at(0.995)[1:] == (np.inf, 0, 0, None)
    assert learned.at(0.701) == learned.at(0.71)
    assert learned.at(0.7) == learned.at(0.7 + 1e-12)
    assert learned.at(0.2) == learned.at(0.5)


def test_what_documents_have_but_do_not_show_is_an_estimate():
    n = 160  # 151 are right: too few to show a precision of 0.94
    top, Y = (
        TopK(np.zeros((n, 1)), np.full((n, 1), 0.8)),
        sp.csr_matrix((np.arange(n) % 17 > 0)[:, None], dtype=np.float32),
    )
    learned = PrecisionThresholds.learn(top, Y)
    assert learned.highest is not None
    assert learned.highest < 0.93
    estimate = learned.at(0.93)
    assert 0 < estimate.threshold <= 0.8
    assert estimate[2:] == (1, 1, None)
    assert learned.at(0.95)[1:] == (np.inf, 0, 0, None)


def test_few_documents_show_nothing():
    top, Y = draw(40, np.random.default_rng(3), 0.0)
    assert PrecisionThresholds.learn(top.padded(6), Y).at(0.95).threshold == np.inf
    assert PrecisionThresholds.learn(TopK.empty(5, 2), sp.csr_matrix((5, 3))).highest is None
    assert learn_precision([], []).highest is None


def test_ancestors_are_right_where_a_label_below_is():
    """Which of two labels is right cannot be told, but one is: their parent can be answered, and they cannot."""
    rng, n = np.random.default_rng(4), 600
    labels, scores = np.tile([1, 2], (n, 1)), np.full((n, 2), 0.5, np.float32)
    Y = sp.csr_matrix((np.ones(n), (np.arange(n), 1 + rng.integers(0, 2, n))), shape=(n, 3))
    groups = [TopK(labels[:200], scores[:200]), TopK(labels[200:], scores[200:])], [Y[:200], Y[200:]]
    tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    assert learn_precision(*groups).at(0.9).threshold == np.inf
    consistent = learn_consistent_precision(*groups, tree).at(0.9)
    assert 0.5 < consistent.threshold <= 0.75
    assert consistent.coverage == pytest.approx(0.5)  # the parent, of two closed labels
    assert learn_consistent_precision(*groups, None) is None


@pytest.mark.parametrize(
    ("field", "value"), [("threshold", [0.5, 0.4]), ("threshold", [1.5]), ("threshold", [-1.0]), ("coverage", [2.0])]
)
def test_what_was_not_learned_is_refused(field, value):
    none = PrecisionThresholds.none()
    none.check_state()
    array = getattr(none, field).copy()
    array[: len(value)] = value
    with pytest.raises(StateError):
        replace(none, **{field: array}).check_state()
    with pytest.raises(StateError):
        replace(none, threshold=np.full(len(TARGETS), np.nan, np.float32)).check_state()
