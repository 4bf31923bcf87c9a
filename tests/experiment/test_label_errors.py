"""Labels that were planted wrong, or dropped, are found again."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.checks import DEEP_CHECKS, Documents
from labelspace.data.synthetic import planted
from labelspace.data.texts import dataset_from_names
from labelspace.experiment import label_errors
from labelspace.experiment.label_errors import find_label_errors, halves, missing_labels, wrong_labels
from labelspace.types import Dataset, LabelSpace, TopK


def of(Y):
    return Documents({"train": Dataset(sp.csr_matrix(np.array(Y, np.float32)), LabelSpace.numbered(2), ["x"] * len(Y))})


def test_wrong_labels_are_those_with_a_low_probability_where_a_high_one_was_expected(monkeypatch):
    monkeypatch.setattr(label_errors, "SHRINKAGE", 1e-9)
    documents = of([[1, 0], [1, 0], [1, 1], [0, 1]])
    top = TopK(np.array([[0, 1]] * 4), np.array([[0.9, 0.0], [0.9, 0.0], [0.0, 0.8], [0.0, 0.9]]))
    suspects = wrong_labels(documents, top)
    # Label 0 of document 2: t = 0.9 in the others, c = 0.8.
    assert (suspects.documents.tolist(), suspects.labels.tolist()) == ([2], [0])
    assert wrong_labels(of([[1, 0], [1, 0], [1, 0], [0, 1]]), top).documents.tolist() == []  # nothing is known of 2


def test_missing_labels_are_those_with_a_high_probability():
    top = TopK(np.array([[0, 1], [1, -1]]), np.array([[0.95, 0.92], [0.97, -np.inf]]))
    suspects = missing_labels(of([[1, 0], [0, 0]]), top)
    assert (suspects.documents.tolist(), suspects.labels.tolist()) == ([1, 0], [1, 1])


def test_documents_that_are_the_same_stay_in_one_half():
    first_same = np.array([0, 1, 2, 0, 1, 5, 6, 0])
    one, other = halves(first_same, seed=0)
    assert sorted([*one, *other]) == list(range(8))
    assert not set(first_same[one]) & set(first_same[other])
    assert np.array_equal(one, halves(first_same, seed=0)[0])


@pytest.mark.slow
def test_planted_errors_are_found():
    rng, n = np.random.default_rng(0), 600
    names = [f"topic{i}" for i in range(30)]
    rows = [sorted(rng.choice(30, 2, replace=False)) for _ in range(n)]
    texts = [" ".join(f"w{topic}x{rng.integers(4)}" for topic in row for _ in range(4)) for row in rows]
    wrong = {i: next(t for t in rng.permutation(30) if t not in rows[i]) for i in range(0, n, 40)}
    missing = {i: rows[i][0] for i in range(20, n, 40)}
    labels = [
        [names[t] for t in row if t != missing.get(i)] + ([names[wrong[i]]] if i in wrong else [])
        for i, row in enumerate(rows)
    ]
    documents = Documents({"train": dataset_from_names(texts, labels)}, n_examples=100)
    report = find_label_errors(documents, list(DEEP_CHECKS), seed=0, progress=None)
    found = {finding.check.name: finding.found for finding in report.findings}
    for name, expected in (("probably_wrong_labels", wrong), ("probably_missing_labels", missing)):
        at = [int(example.where[0].removeprefix("train[").removesuffix("]")) for example in found[name].examples]
        right = [row in expected for row in at]
        assert sum(right) >= 12
        assert np.mean(right) >= 0.8
    example = found["probably_wrong_labels"].examples[0]
    assert example.what.startswith("topic")
    assert "has topic" in example.what


def test_too_few_documents_are_said():
    data = planted(n=20, d=30, l=4, texts=True, seed=0)
    report = find_label_errors(Documents({"train": replace(data, X=None)}), list(DEEP_CHECKS), 0, None)
    assert not report.findings
    assert set(report.skipped) == set(DEEP_CHECKS)
    assert "at least 200" in report.skipped["probably_wrong_labels"]
