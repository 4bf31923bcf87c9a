"""Evaluation where some labels do not count for some documents."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import Tagger, metrics
from labelspace.experiment import evaluate


def test_filtered_labels_count_in_no_figure(data):
    train, test = data
    tagger = Tagger("one_vs_rest").fit_dataset(train)
    best = tagger.predict_topk(test.X, 2).labels
    rows = np.arange(len(test))
    filtered = sp.csr_matrix((np.ones(len(test), np.float32), (rows, best[:, 0])), shape=test.Y.shape)
    figures = evaluate(tagger, replace(test, filtered=filtered))
    assert figures["n_filtered_pairs"] == len(test)
    true = metrics.labels_without(test.Y, filtered)
    top = tagger.predict_topk(test.X, 6)
    assert (top.labels[:, 0] == best[:, 0]).all()
    rest = type(top)(top.labels[:, 1:], top.scores[:, 1:])  # the best one is the filtered one
    expected = metrics.evaluate(true, rest, tagger.labels_.counts, tagger.labels_.n_documents)
    assert {key: figures[key] for key in expected} == expected
    pairs = metrics.ScoredPairs.from_topk(true, type(top)(*(part[:, 1:] for part in deep(tagger, test, 11))))
    assert figures["micro_f1"] == pytest.approx(100 * metrics.best_micro_f1(pairs).value, abs=1e-3)


def deep(tagger, test, k):
    top = tagger.predict_topk(test.X, k)
    return top.labels, top.scores


def test_nothing_filtered_changes_nothing(data):
    train, test = data
    tagger = Tagger("popular").fit_dataset(train)
    none = sp.csr_matrix(test.Y.shape, dtype=np.float32)
    plain, filtered = evaluate(tagger, test), evaluate(tagger, replace(test, filtered=none))
    assert filtered["n_filtered_pairs"] == 0
    keys = [key for key in plain if "seconds" not in key and "latency" not in key]
    assert {key: plain[key] for key in keys} == {key: filtered[key] for key in keys}
