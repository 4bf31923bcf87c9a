import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.metrics import f1_score

from labelspace.errors import DataError, ParameterError
from labelspace.metrics import by_frequency, f1_by_level, macro_f1, micro_f1
from labelspace.types import Hierarchy, TopK
from tests.metrics import slow_metrics as slow
from tests.metrics.random_cases import cases, unhurried

GROUP_KEYS = ["n_labels", "n_occurrences", "recall", "precision", "macro_f1"]


@pytest.fixture(name="Y")
def true_labels():
    return sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]))


@pytest.fixture
def predicted():
    # Hits: 0 and 1. Wrong: 3 twice. The third document has no labels and is left out.
    return sp.csr_matrix(np.array([[1, 1, 0, 1, 0], [0, 0, 0, 1, 0], [1, 0, 0, 0, 0]]))


@pytest.fixture
def topk():
    labels = np.array([[0, 1, 3], [3, -1, -1], [0, -1, -1]])  # the same sets as predicted
    return TopK(labels, np.zeros(labels.shape))


def test_micro_f1_by_hand(Y, predicted, topk):
    assert micro_f1(Y, predicted) == pytest.approx(2 * 2 / (4 + 4))  # 2 hits, 4 predicted, 4 true
    assert micro_f1(Y, topk) == micro_f1(Y, predicted)
    assert micro_f1(Y, topk, k=2) == pytest.approx(2 * 2 / (3 + 4))  # the first 3 is cut off


def test_macro_f1_by_hand(Y, predicted, topk):
    # Label 0: 2*1/(1+1) = 1; 1: 2*1/(1+2) = 2/3; 2: 0/(0+1); 3: 0/(2+0); 4 occurs nowhere and does not count.
    assert macro_f1(Y, predicted) == pytest.approx((1 + 2 / 3 + 0 + 0) / 4)
    assert macro_f1(Y, topk) == macro_f1(Y, predicted)
    assert macro_f1(Y, topk, k=1) == pytest.approx(1 / 4)  # only label 0 is right


def test_perfect_and_empty_predictions(Y):
    assert micro_f1(Y, Y) == macro_f1(Y, Y) == 1
    nothing = sp.csr_matrix(Y.shape)
    assert micro_f1(Y, nothing) == macro_f1(Y, nothing) == 0


@unhurried
@given(case=cases())
def test_f1_equals_second_implementation_and_scikit_learn(case):
    labels = range(case.Y.shape[1])
    pairs = slow.pairs_of(case.Y, case.topk, case.k)
    ours = micro_f1(case.Y, case.topk, case.k), macro_f1(case.Y, case.topk, case.k)
    assert ours == pytest.approx((slow.micro_f1(pairs, labels), slow.macro_f1(pairs, labels)))
    matrix = case.topk.padded(case.k).to_csr(case.Y.shape[1])
    assert ours == (micro_f1(case.Y, matrix), macro_f1(case.Y, matrix))
    assert 0 <= min(ours) <= max(ours) <= 1 + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_f1_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    Y, P = ((rng.random((40, 12)) < 0.15).astype(int) for _ in range(2))
    labeled = Y.any(axis=1)
    true, guess = Y[labeled], P[labeled]
    occurring = np.flatnonzero((true + guess).any(axis=0))
    ours = micro_f1(sp.csr_matrix(Y), sp.csr_matrix(P)), macro_f1(sp.csr_matrix(Y), sp.csr_matrix(P))
    assert ours[0] == pytest.approx(f1_score(true, guess, average="micro"))
    assert ours[1] == pytest.approx(f1_score(true, guess, average="macro", labels=occurring, zero_division=0))


def test_f1_refuses_what_does_not_fit(Y, predicted):
    with pytest.raises(DataError, match=r"shape of Y, but has \(3, 4\) against \(3, 5\)"):
        micro_f1(Y, predicted[:, :4])
    with pytest.raises(ParameterError, match="k is for a TopK, not for a 0/1 matrix, but is 2"):
        macro_f1(Y, predicted, k=2)
    with pytest.raises(DataError, match="predicted must hold 0 and 1 only.* but holds 3"):
        micro_f1(Y, 3 * predicted)
    with pytest.raises(DataError, match="none of the 3 has"):
        micro_f1(0 * Y, predicted)


def test_by_frequency_by_hand(Y, topk):
    # Counts 101, 100, 26, 25 and none: head {0}, torso {1, 2}, tail {3, 4}.
    groups = by_frequency(Y, topk, counts=[101, 100, 26, 25], k=3)
    assert list(groups) == ["head", "torso", "tail"]
    assert [list(group) for group in groups.values()] == [GROUP_KEYS] * 3
    # Label 0: true once, predicted once, right. (Its prediction for the document without labels is left out.)
    assert list(groups["head"].values()) == [1, 1, 1.0, 1.0, 1.0]
    # Labels 1 and 2: true 3 times, predicted once, right; F1 2/3 and 0.
    assert list(groups["torso"].values()) == pytest.approx([2, 3, 1 / 3, 1.0, 1 / 3])
    # Labels 3 and 4: never true, predicted twice, wrong; only 3 occurs.
    assert list(groups["tail"].values()) == [2, 0, 0.0, 0.0, 0.0]


def test_by_frequency_with_other_bounds(Y, topk):
    groups = by_frequency(Y, topk, counts=[9, 5, 4, 1], k=3, tail=4, head=8)
    assert [group["n_labels"] for group in groups.values()] == [1, 1, 3]
    with pytest.raises(ParameterError, match="tail must be at least 0 and at most head, but they are 9 and 3"):
        by_frequency(Y, topk, counts=[1], k=3, tail=9, head=3)


@unhurried
@given(case=cases())
def test_by_frequency_equals_second_implementation(case):
    seen, pairs = case.counts.tolist(), slow.pairs_of(case.Y, case.topk, case.k)
    members = {
        "head": [label for label, count in enumerate(seen) if count > 100],
        "torso": [label for label, count in enumerate(seen) if 25 < count <= 100],
        "tail": [label for label, count in enumerate(seen) if count <= 25],
    }
    groups = by_frequency(case.Y, case.topk, case.counts, case.k)
    for name, labels in members.items():
        counts = [slow.label_counts(pairs, label) for label in labels]
        hits, predicted, true = (sum(three[i] for three in counts) for i in range(3))
        expected = [len(labels), true, hits / max(true, 1), hits / max(predicted, 1), slow.macro_f1(pairs, labels)]
        assert [groups[name][key] for key in GROUP_KEYS] == pytest.approx(expected)
    assert sum(group["n_labels"] for group in groups.values()) == case.Y.shape[1]


def test_f1_by_level_by_hand():
    # 0 has the children 1 and 2; 3 is below 1 and 4 below 2.
    tree = Hierarchy.from_edges([[1, 0], [2, 0], [3, 1], [4, 2]], n_labels=5)
    Y = sp.csr_matrix(np.array([[0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]))
    labels = np.array([[3, -1], [3, 2]])
    levels = f1_by_level(Y, TopK(labels, np.zeros(labels.shape)), tree)
    # With ancestors, true: {0,1,3}, {0,2,4}; predicted: {0,1,3}, {0,1,2,3}.
    # Level 0: both right. Level 1 (labels 1, 2): 2 hits, 3 predicted, 2 true; F1 of 1 is 2/3, of 2 is 1.
    # Level 2 (labels 3, 4): 1 hit, 2 predicted, 2 true; F1 of 3 is 2/3, of 4 is 0.
    assert list(levels) == [0, 1, 2]
    assert list(levels[0].values()) == [1.0, 1.0, 1, 2]
    assert list(levels[1].values()) == pytest.approx([4 / 5, 5 / 6, 2, 2])
    assert list(levels[2].values()) == pytest.approx([2 / 4, 1 / 3, 2, 2])
    # As given, nothing is true at the levels 0 and 1; the predicted 2 is wrong there.
    as_given = f1_by_level(Y, TopK(labels, np.zeros(labels.shape)), tree, close=False)
    assert [level["micro_f1"] for level in as_given.values()] == [0.0, 0.0, 0.5]
    assert [level["n_occurrences"] for level in as_given.values()] == [0, 0, 2]


@unhurried
@given(case=cases())
def test_f1_by_level_equals_second_implementation(case):
    n_labels = case.Y.shape[1]
    parents = {label: [(label - 1) // 2] for label in range(1, n_labels)}  # the binary heap
    tree = Hierarchy.from_edges([[child, above[0]] for child, above in parents.items()], n_labels)
    pairs = [
        (slow.with_ancestors(true, parents), slow.with_ancestors(listed, parents))
        for true, listed in slow.pairs_of(case.Y, case.topk, case.k)
    ]
    levels = f1_by_level(case.Y, case.topk, tree, case.k)
    for level, figures in levels.items():
        labels = [label for label in range(n_labels) if (label + 1).bit_length() - 1 == level]
        expected = (slow.micro_f1(pairs, labels), slow.macro_f1(pairs, labels), len(labels))
        assert (figures["micro_f1"], figures["macro_f1"], figures["n_labels"]) == pytest.approx(expected)
    assert sum(figures["n_labels"] for figures in levels.values()) == n_labels
    closed = f1_by_level(case.Y, tree.closed(case.Y), tree)
    assert closed[0]["micro_f1"] == closed[0]["macro_f1"] == 1  # a perfect prediction


def test_f1_by_level_of_several_parents():
    # 2 is below 0 and below 1, so its level is 1 and both roots are marked with it.
    dag = Hierarchy.from_edges([[2, 0], [2, 1]], n_labels=3)
    levels = f1_by_level(sp.csr_matrix([[0, 0, 1]]), sp.csr_matrix([[1, 0, 0]]), dag)
    assert levels[0]["micro_f1"] == pytest.approx(2 * 1 / (1 + 2))
    assert levels[1]["micro_f1"] == 0


def test_f1_by_level_refuses_another_label_space(Y, predicted):
    with pytest.raises(DataError, match="has 4 labels for 5 columns; build it with n_labels=5"):
        f1_by_level(Y, predicted, Hierarchy.from_edges([[1, 0]], n_labels=4))
