import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from labelspace import metrics
from labelspace.errors import DataError, ParameterError
from labelspace.metrics import evaluate, evaluate_baselines, inverse_propensity, most_common, random_topk
from labelspace.types import TopK
from tests.metrics import slow_metrics as slow
from tests.metrics.random_cases import cases, unhurried

ROOT = Path(__file__).parents[2]
KEYS = (
    "P@1 P@3 P@5 nDCG@1 nDCG@3 nDCG@5 PSP@1 PSP@3 PSP@5 PSnDCG@1 PSnDCG@3 PSnDCG@5 R@1 R@3 R@5 RP@5 "
    "coverage@5 n n_without_labels n_labels"
).split()


@pytest.fixture(name="Y")
def true_labels():
    return sp.csr_matrix(np.array([[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]], np.float32))


@pytest.fixture
def topk():
    labels = np.array([[0, 2, 1, 3, 4], [1, 5, -1, -1, -1], [0, 1, 2, 3, 4]])
    return TopK(labels, np.zeros(labels.shape))


def test_table_by_hand(Y, topk):
    scores = evaluate(Y, topk, counts=[4, 4, 4, 4, 4, 4], n_documents=100)
    assert list(scores) == KEYS
    d2 = 1 / np.log2(3)
    # Document 0 hits at ranks 1 and 3 of two labels, document 1 at rank 2 of one; the third has no labels.
    # All weights are alike, so PSP and PSnDCG are sums of hits over sums of reachable hits.
    expected = {
        "P@1": 50,  # (1 + 0) / 2
        "P@3": 50,  # (2/3 + 1/3) / 2
        "P@5": 30,  # (2/5 + 1/5) / 2
        "nDCG@1": 50,
        "nDCG@3": 50 * (1.5 / (1 + d2) + d2),
        "nDCG@5": 50 * (1.5 / (1 + d2) + d2),
        "PSP@1": 50,  # 1 of 1 + 1
        "PSP@3": 100,  # 3 of 2 + 1
        "PSP@5": 100,
        "PSnDCG@1": 50,
        "PSnDCG@3": 100 * (1.5 + d2) / (2 + d2),
        "PSnDCG@5": 100 * (1.5 + d2) / (2 + d2),
        "R@1": 25,  # (1/2 + 0) / 2
        "R@3": 100,
        "R@5": 100,
        "RP@5": 100,
        "coverage@5": 100,
        "n": 2,
        "n_without_labels": 1,
        "n_labels": 6,
    }
    assert scores == pytest.approx(expected, abs=5e-5)
    assert json.loads(json.dumps(scores)) == scores
    assert all(isinstance(scores[name], int) for name in ("n", "n_without_labels", "n_labels"))


@unhurried
@given(case=cases())
def test_table_equals_the_functions(case):
    weights = inverse_propensity(case.counts, case.n_documents)
    scores = evaluate(case.Y, case.topk, case.counts, case.n_documents, ks=(1, case.k))
    for k in (1, case.k):
        expected = {
            f"P@{k}": slow.precision(case.Y, case.topk, k),
            f"nDCG@{k}": slow.ndcg(case.Y, case.topk, k),
            f"PSP@{k}": slow.psp(case.Y, case.topk, weights, k),
            f"PSnDCG@{k}": slow.psndcg(case.Y, case.topk, weights, k),
        }
        assert {name: scores[name] for name in expected} == pytest.approx(
            {name: 100 * value for name, value in expected.items()}, abs=5.1e-5
        )
    assert scores[f"R@{case.k}"] == round(100 * metrics.recall_at_k(case.Y, case.topk, case.k), 4)
    assert scores[f"RP@{case.k}"] == round(100 * metrics.r_precision_at_k(case.Y, case.topk, case.k), 4)
    assert scores[f"coverage@{case.k}"] == round(100 * metrics.coverage_at_k(case.Y, case.topk, case.k), 4)
    assert scores["n"] + scores["n_without_labels"] == case.Y.shape[0]


def test_labels_unseen_in_training_count_as_zero(Y, topk):
    short = evaluate(Y, topk, counts=[9, 3], n_documents=50)
    padded = evaluate(Y, topk, counts=[9, 3, 0, 0, 0, 0], n_documents=50)
    assert short == padded
    # Place 1: earned the weight of label 0; most that of label 1 and that of the unseen label 5.
    weights = inverse_propensity([9, 3, 0], 50)
    assert short["PSP@1"] == pytest.approx(100 * weights[0] / (weights[1] + weights[2]), abs=5e-5)


def test_propensities_of_the_test_labels(Y, topk):
    Y = sp.vstack([Y] * 10, format="csr")
    topk = TopK(np.tile(topk.labels, (10, 1)), np.tile(topk.scores, (10, 1)))
    of_test = evaluate(Y, topk, propensity_from="test", A=0.6, B=2.6)
    # 30 test documents, those without labels among them; labels 0, 1 and 5 occur 10 times each.
    assert of_test == evaluate(Y, topk, counts=[10, 10, 0, 0, 0, 10], n_documents=30, A=0.6, B=2.6)
    assert of_test == evaluate(Y, topk, counts=[1], n_documents=7, A=0.6, B=2.6, propensity_from="test")


def test_input_is_left_as_it_is_and_need_not_be_tidy(Y, topk):
    # The same labels with unsorted columns and a stored zero.
    untidy = sp.csr_matrix((np.array([1, 1, 0, 1.0]), np.array([1, 0, 3, 5]), np.array([0, 3, 4, 4])), shape=(3, 6))
    before = untidy.indices.copy(), untidy.data.copy(), topk.labels.copy()
    assert evaluate(untidy, topk, [4] * 6, 100) == evaluate(Y, topk, [4] * 6, 100)
    assert evaluate(sp.csc_array(Y.astype(bool)), topk, [4] * 6, 100) == evaluate(Y, topk, [4] * 6, 100)
    for kept, now in zip(before, (untidy.indices, untidy.data, topk.labels), strict=True):
        assert np.array_equal(kept, now)


def test_what_evaluate_lacks_is_named(Y, topk):
    with pytest.raises(DataError, match="but counts is None; pass counts=..., or .* propensity_from='test'"):
        evaluate(Y, topk)
    with pytest.raises(DataError, match="but n_documents is None"):
        evaluate(Y, topk, counts=[1])
    with pytest.raises(ParameterError, match="'train' or 'test', but is 'dev'"):
        evaluate(Y, topk, counts=[1], n_documents=9, propensity_from="dev")
    with pytest.raises(ParameterError, match="ks must name at least one k"):
        evaluate(Y, topk, counts=[1], n_documents=9, ks=())
    with pytest.raises(ParameterError, match="k must be at least 1, but is 0"):
        evaluate(Y, topk, counts=[1], n_documents=9, ks=(0, 1))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0, 1]], "have 3 and 1 rows; predict the documents of Y"),
        ([[0]] * 3, "needs k labels per document, but the TopK has 1; predict with k=2 or more"),
        ([[0, 1], [0, 6], [0, 1]], r"column of Y \(0 to 5\) or -1 for none, but one is 6; give Y"),
        ([[0, 1], [0, -2], [0, 1]], "or -1 for none, but one is -2"),
        ([[0, 1], [4, 4], [0, 1]], "label 4 occurs twice in row 1; keep the better rank"),
    ],
)
def test_rankings_that_do_not_fit_are_refused(Y, labels, message):
    topk = TopK(np.array(labels), np.zeros((len(labels), len(labels[0]))))
    for metric in (metrics.precision_at_k, metrics.ndcg_at_k, metrics.micro_f1):
        with pytest.raises(DataError, match=message):
            metric(Y, topk, 2)


def test_truths_that_do_not_fit_are_refused(Y, topk):
    with pytest.raises(DataError, match="0 and 1 only, each label at most once per document, but holds 2.0"):
        metrics.precision_at_k(2 * Y, topk, 1)
    with pytest.raises(DataError, match="at least one document must have a label, but none of the 3 has"):
        metrics.precision_at_k(sp.csr_matrix((3, 6)), topk, 1)


def test_most_common_by_hand():
    topk = most_common([2, 7, 7, 1], n=2, k=3)
    assert topk.labels.tolist() == [[1, 2, 0]] * 2  # the tie of 1 and 2 goes to the smaller
    assert topk.scores.tolist() == [[7, 7, 2]] * 2
    assert most_common([2, 7], n=1, k=3).labels.tolist() == [[1, 0, -1]]


@pytest.mark.parametrize(("n_labels", "k"), [(1, 1), (5, 5), (6, 2), (50, 7), (3, 5)])
def test_random_labels_are_distinct_and_evenly_drawn(n_labels, k):
    n = 6000
    topk = random_topk(n_labels, n, k, seed=3)
    drawn = min(n_labels, k)
    labels = topk.labels[:, :drawn]
    assert topk.labels.shape == (n, k)
    assert (topk.labels[:, drawn:] == -1).all()
    assert all(len(set(row)) == drawn for row in labels.tolist())
    spread = 5 * np.sqrt(n / n_labels) + 1e-9  # five standard deviations
    for rank in range(drawn):
        assert np.abs(np.bincount(labels[:, rank], minlength=n_labels) - n / n_labels).max() <= spread
    assert (np.diff(topk.scores[:, :drawn], axis=1) < 0).all()


def test_random_labels_follow_the_seed():
    assert np.array_equal(random_topk(99, 9, 5, seed=1).labels, random_topk(99, 9, 5, seed=1).labels)
    assert not np.array_equal(random_topk(99, 9, 5, seed=1).labels, random_topk(99, 9, 5, seed=2).labels)


def test_baselines_by_hand(Y):
    scores = evaluate_baselines(Y, counts=[9, 3], n_documents=50)
    assert list(scores) == ["most_common", "random"]
    assert [list(table) for table in scores.values()] == [KEYS] * 2
    # Ranking 0, 1, 2, 3, 4 for all: document 0 hits at ranks 1 and 2, document 1 (label 5) never.
    assert [scores["most_common"][key] for key in ("P@1", "P@5", "R@5", "coverage@5")] == [50, 20, 50, 66.6667]
    assert scores["random"] == evaluate(Y, random_topk(6, 3, 5, seed=0), [9, 3], 50)
    assert evaluate_baselines(Y, [9, 3], 50, seed=1)["random"] != scores["random"]


def test_benchmark_prints_one_json_line():
    command = [sys.executable, "benchmarks/metrics.py", "--documents", "500", "--labels", "40", "--repeats", "1"]
    run = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "src"}, capture_output=True, text=True, check=True
    )
    line = json.loads(run.stdout)
    assert line["documents"] == 500
    assert 40 < line["P@5"] <= 75  # half of the ranks are correct on purpose, some more at random and by repair


def test_documents_without_labels_are_left_out_or_counted_with_a_score_of_zero():
    Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]], np.float32))
    topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7], [0.9, 0.5, 0.1], [0.1, 0.2, 0.3]], k=2)
    skipped = evaluate(Y, topk, [3, 2, 1], 5, ks=(1, 2))
    counted = evaluate(Y, topk, [3, 2, 1], 5, ks=(1, 2), unlabelled="count")
    assert (skipped["n"], counted["n"]) == (2, 4)
    for key in ("P@1", "P@2", "nDCG@2", "R@2", "RP@2"):
        assert counted[key] == pytest.approx(skipped[key] / 2, abs=1e-4), key
    for key in ("PSP@1", "PSnDCG@2", "coverage@2", "n_without_labels", "n_labels"):
        assert counted[key] == skipped[key], key
    with pytest.raises(ParameterError, match="unlabelled must be skip or count, but is 'drop'"):
        evaluate(Y, topk, [3, 2, 1], 5, ks=(1, 2), unlabelled="drop")
