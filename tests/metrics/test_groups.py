import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from labelspace.errors import DataError
from labelspace.metrics import by_group
from labelspace.types import TopK
from tests.metrics import slow_metrics as slow
from tests.metrics.random_cases import cases, unhurried

# Brands 0, 1, 2; colors 3, 4; label 5 is in no group.
GROUPS = {"brand": [0, 1, 2], "color": np.array([False, False, False, True, True, False])}
COUNTS = [100, 25, 3, 80]  # 4 and 5 are unseen


@pytest.fixture(name="Y")
def true_labels():
    return sp.csr_matrix(
        np.array([[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 1], [0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]])
    )


@pytest.fixture
def topk():
    labels = np.array([[3, 1, 0], [5, 1, 4], [2, -1, -1], [4, 0, 3], [0, 3, -1]])
    scores = np.array([[0.9, 0.8, 0.1], [0.9, 0.8, 0.4], [0.3, -np.inf, -np.inf], [0.9, 0.4, 0.2], [1, 1, -np.inf]])
    return TopK(labels, scores)


def test_brands_by_hand(Y, topk):
    # Answers: 1 (wrong, it is 0), 1 (right), 2 (right, score 0.3), 0 (score 0.4, there is none to find).
    brand = by_group(Y, topk, GROUPS, COUNTS)["brand"]
    assert brand["accuracy"] == pytest.approx(2 / 3)
    assert brand["accuracy_with_na"] == pytest.approx(2 / 4)
    assert by_group(Y, topk, GROUPS, COUNTS, min_probability=0.35)["brand"]["accuracy_with_na"] == pytest.approx(1 / 4)
    assert by_group(Y, topk, GROUPS, COUNTS, min_probability=0.5)["brand"]["accuracy_with_na"] == pytest.approx(2 / 4)
    # Over the three documents with a brand: 2 hits, 3 answers, 4 true.
    assert brand["best_micro_f1"] == pytest.approx(2 * 2 / (3 + 4))
    # Label 0: never right; 1: right once, answered twice, true twice; 2: right once of once.
    assert brand["best_macro_f1"] == pytest.approx((0 + 2 / 4 + 1) / 3)
    # Of the tail {1, 2}: 2 hits, 3 answers, 3 true.
    assert brand["tail_micro_f1"] == pytest.approx(2 * 2 / (3 + 3))
    assert brand["tail_macro_f1"] == pytest.approx((2 / 4 + 1) / 2)
    assert brand["tail_recall"] == pytest.approx(2 / 3)
    assert [brand[key] for key in ("n_labels", "n_tail", "n_occurrences", "n_na")] == [3, 2, 4, 1]


def test_colors_by_hand(Y, topk):
    # Answers: 3 (right), 4 (none to find, score 0.4), none (right: none to find), 4 (right).
    color = by_group(Y, topk, GROUPS, COUNTS)["color"]
    assert color["accuracy"] == 1
    assert color["accuracy_with_na"] == pytest.approx(3 / 4)
    assert by_group(Y, topk, GROUPS, COUNTS, min_probability=0.5)["color"]["accuracy_with_na"] == 1
    assert color["best_micro_f1"] == color["best_macro_f1"] == 1  # documents without a color are left out
    assert [color[key] for key in ("n_labels", "n_tail", "n_occurrences", "n_na")] == [2, 1, 2, 2]


def test_never_answering_wins_only_the_figure_with_na(Y):
    silent = by_group(Y, TopK.empty(5, 2), GROUPS, COUNTS)["color"]
    assert silent["accuracy_with_na"] == pytest.approx(2 / 4)
    assert silent["accuracy"] == silent["best_micro_f1"] == silent["tail_recall"] == 0


def test_documents_without_any_label_count_where_they_are_asked_for(Y, topk):
    # The fifth document has no label; its answers are 0 (score 1) and 3 (score 1).
    brand, color = by_group(Y, topk, GROUPS, COUNTS, include_unlabeled=True).values()
    assert (brand["accuracy_with_na"], color["accuracy_with_na"]) == (pytest.approx(2 / 5), pytest.approx(3 / 5))
    assert (brand["n_na"], color["n_na"]) == (2, 3)
    silent = by_group(Y, TopK.empty(5, 2), GROUPS, COUNTS, include_unlabeled=True)["color"]
    assert silent["accuracy_with_na"] == pytest.approx(3 / 5)
    without = by_group(Y, topk, GROUPS, COUNTS)["brand"]
    changed = {key for key in brand if brand[key] != without[key]}
    assert changed == {"accuracy_with_na", "micro_f1_with_na", "n_na"}  # label 0 is never right: its F1 was 0 before


def test_f1_with_na_is_scikit_learns_with_na_as_a_class():
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(-1, 6, (2, 80))  # one class of each document, -1 for NA
    scores = rng.random(80).astype(np.float32)
    Y = sp.csr_matrix(((true >= 0).astype(int), (np.arange(80), np.maximum(true, 0))), shape=(80, 6))
    figures = by_group(
        Y, TopK(predicted[:, None], np.where(predicted < 0, -np.inf, scores)[:, None]), {"all": np.arange(6)},
        counts=[9, 90, 25, 90, 26, 90], min_probability=0.3, include_unlabeled=True,
    )["all"]  # fmt: skip
    said = np.where(scores >= 0.3, predicted, -1)
    assert figures["micro_f1_with_na"] == pytest.approx(f1_score(true, said, average="micro"))
    assert figures["macro_f1_with_na"] == pytest.approx(f1_score(true, said, average="macro"))
    assert figures["na_f1"] == pytest.approx(f1_score(true, said, labels=[-1], average="macro"))
    for average in ("micro", "macro"):
        expected = f1_score(true, said, labels=[0, 2], average=average)
        assert figures[f"tail_{average}_f1_with_na"] == pytest.approx(expected)


def test_always_na_looks_good_with_na_as_a_class_only(Y):
    color = by_group(Y, TopK.empty(5, 2), {"color": [4]}, COUNTS)["color"]  # three of four documents have none
    assert color["micro_f1_with_na"] == pytest.approx(3 / 4)
    assert color["na_f1"] == pytest.approx(6 / 7)
    assert color["macro_f1_with_na"] == pytest.approx((6 / 7 + 0) / 2)
    assert color["best_micro_f1"] == color["tail_micro_f1_with_na"] == 0


def test_a_group_that_no_document_has(Y, topk):
    figures = by_group(Y, topk, {"none": [], "all": np.ones(6, bool)}, COUNTS)["none"]
    assert figures["accuracy"] == figures["best_macro_f1"] == 0
    assert figures["accuracy_with_na"] == 1
    assert (figures["n_labels"], figures["n_na"]) == (0, 4)


@unhurried
@given(case=cases())
def test_by_group_equals_second_implementation(case):
    n_labels = case.Y.shape[1]
    groups = {"even": np.arange(0, n_labels, 2), "odd": np.arange(n_labels) % 2 == 1}
    figures = by_group(case.Y, case.topk, groups, case.counts, min_probability=-1.5)
    rows = [
        (true, listed, scores)
        for true, listed, scores in zip(
            slow.truths(case.Y), case.topk.labels.tolist(), case.topk.scores.tolist(), strict=True
        )
        if true
    ]
    for name, rest in (("even", 0), ("odd", 1)):
        members = [label for label in range(n_labels) if label % 2 == rest]
        n_labeled, right, right_with_na, pairs = 0, 0, 0, []
        for true, listed, scores in rows:
            expected = true & set(members)
            answer, score = next(
                ((label, s) for label, s in zip(listed, scores, strict=True) if label in members), (None, None)
            )
            sure = answer if answer is not None and score >= -1.5 else None
            n_labeled += bool(expected)
            right += answer in expected
            right_with_na += sure in expected if expected else sure is None
            if expected:
                pairs.append((expected, [] if answer is None else [answer]))
        tail = [label for label in members if case.counts[label] <= 25]
        expected = [
            right / max(n_labeled, 1),
            right_with_na / len(rows),
            slow.micro_f1(pairs, members),
            slow.macro_f1(pairs, members),
            slow.micro_f1(pairs, tail),
            slow.macro_f1(pairs, tail),
            len(members),
            len(tail),
            len(rows) - n_labeled,
        ]
        keys = "accuracy accuracy_with_na best_micro_f1 best_macro_f1 tail_micro_f1 tail_macro_f1 n_labels n_tail n_na"
        assert [figures[name][key] for key in keys.split()] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "at least one group of labels, but there is none"),
        ({"a": [0, 1], "b": [1]}, "in at most one group, but label 1 is in 'b' and in 'a'; remove it"),
        ({"a": [6]}, "a mask of the 6 columns of Y or label ids below 6, but group 'a' is int64 of shape"),
        ({"a": [-1]}, "label ids below 6"),
        ({"a": [True, False]}, "but group 'a' is bool of shape"),
        ({"a": [0.5]}, "but group 'a' is float64 of shape"),
        ({"a": [[1]]}, "but group 'a' is int64 of shape"),
    ],
)
def test_groups_that_are_none(Y, topk, groups, message):
    with pytest.raises(DataError, match=message):
        by_group(Y, topk, groups, COUNTS)


def test_predictions_for_other_labels_are_refused(Y, topk):
    with pytest.raises(DataError, match="must be a column of Y"):
        by_group(Y[:, :4], topk, {"a": [0]}, COUNTS)
