import json
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import Tagger, metrics
from labelspace.data.source import open_source, read_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.experiment import Recipe, evaluate, timing, train
from labelspace.experiment.timing import latency
from labelspace.types import Dataset, Hierarchy

evaluate_module = import_module("labelspace.experiment.evaluate")  # the name is the function's in the package


def test_the_figures_are_those_of_the_metrics(folder, data):
    tagger = train(open_source(folder), Recipe("one_vs_rest"))
    test = read_dataset(folder / "test.jsonl", tagger.labels_)
    figures = evaluate(tagger, test)
    top = tagger.predict_topk(test.texts, 5)
    expected = metrics.evaluate(test.Y, top, tagger.labels_.counts, tagger.labels_.n_documents)
    assert {key: figures[key] for key in expected} == expected
    assert figures["P@1"] > 85
    assert set(figures["by_frequency"]) == {"head", "torso", "tail"}
    assert figures["latency_ms_p99"] >= figures["latency_ms_p50"] > 0


def test_the_hierarchy_is_that_of_the_documents_or_else_of_the_tagger(data):
    train, test = data
    tagger = Tagger("one_vs_rest").fit_dataset(train)
    figures = evaluate(tagger, test)
    tree, deep = train.labels.hierarchy, tagger.predict_topk(test.X, 40)
    answers = metrics.best_by_level(test.Y, deep, tree, tagger.labels_.counts)
    assert figures["by_level"]["1"]["accuracy"] == round(100 * answers[1]["accuracy"], 4)
    assert figures["deepest_accuracy"] == round(100 * metrics.deepest_accuracy(test.Y, deep, tree), 4)
    bare = replace(test, labels=replace(test.labels, hierarchy=None))
    assert evaluate(tagger, bare)["by_level"] == figures["by_level"]
    other = replace(test, labels=replace(test.labels, hierarchy=Hierarchy.from_edges([[1, 0]], 40)))
    assert len(evaluate(tagger, other)["by_level"]) == 2
    wider = bare.labels.extended(["a label nobody knows"])
    Y = sp.hstack([bare.Y, np.ones((len(bare), 1))], format="csr", dtype=np.float32)
    unknown = evaluate(tagger, replace(bare, Y=Y, labels=wider))
    assert unknown["by_level"]["0"]["n_labels"] == figures["by_level"]["0"]["n_labels"] + 1
    flat = Tagger("one_vs_rest").fit_dataset(replace(train, labels=bare.labels))
    assert "by_level" not in evaluate(flat, bare)


def test_labels_unknown_to_the_model_count_as_missed(folder):
    tagger = train(open_source(folder), Recipe("neighbors"))
    lines = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    before = evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    for line in lines:
        line["labels"].append("a label nobody knows")
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    after = evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    assert after["n_labels"] == before["n_labels"] + 1
    assert after["P@1"] == before["P@1"]
    assert after["R@5"] < before["R@5"]


def test_features_for_a_model_of_texts_are_refused(folder, data):
    tagger = train(open_source(folder), Recipe("popular"))
    with pytest.raises(DataError, match="reads texts, but the data holds ready-made features"):
        evaluate(tagger, Dataset(data[1].Y, data[1].labels, X=data[1].X))


def test_propensities_may_come_from_the_test_labels(folder):
    tagger = train(open_source(folder), Recipe("neighbors"))
    test = read_dataset(folder / "test.jsonl", tagger.labels_)
    ours, theirs = (evaluate(tagger, test, propensity_from=source) for source in ("train", "test"))
    assert ours["P@5"] == theirs["P@5"]
    assert ours["PSP@1"] != theirs["PSP@1"]
    amazon = evaluate(tagger, test, propensity_preset="amazon")
    assert amazon["PSP@1"] != ours["PSP@1"]
    with pytest.raises(ParameterError, match="one of default, wikipedia, amazon, but is 'moon'"):
        evaluate(tagger, test, propensity_preset="moon")


def test_latency_times_single_rows(data):
    shapes = []
    figures = latency(lambda X: shapes.append(X.shape), data[1].X)
    assert set(shapes) == {(1, 600)}
    assert len(shapes) == len(data[1])
    assert np.isfinite(list(figures.values())).all()


def test_prediction_is_timed_after_a_warm_up(folder, monkeypatch):
    tagger = train(open_source(folder), Recipe("popular"))
    calls, predict = [], Tagger.predict_topk
    monkeypatch.setattr(timing, "timed", lambda: (calls.append("timed"), nullcontext(timing.Seconds()))[1])
    monkeypatch.setattr(evaluate_module, "timed", timing.timed)
    monkeypatch.setattr(
        Tagger, "predict_topk", lambda self, X, *a, **k: (calls.append(len(X)), predict(self, X, *a, **k))[1]
    )
    evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    assert calls[:4] == [timing.WARM_UP_ROWS, 1, "timed", 200]


@pytest.mark.parametrize("ready_made", [False, True])
def test_documents_seen_in_training_are_counted(data, tmp_path, ready_made):
    train_set, test_set = data
    if not ready_made:
        train_set, test_set = (replace(part, X=None) for part in data)
    Tagger("popular").fit_dataset(train_set).save(tmp_path / "m")
    tagger = Tagger.load(tmp_path / "m")
    assert evaluate(tagger, train_set)["seen_in_training"] == 100
    assert evaluate(tagger, test_set)["seen_in_training"] == 0
    assert evaluate(tagger, train_set.rows(range(600, 700)))["seen_in_training"] == 100
    tagger.documents_ = None  # a model of an earlier version
    tagger.save(tmp_path / "m")
    assert evaluate(Tagger.load(tmp_path / "m"), train_set)["seen_in_training"] is None


def test_labels_that_the_model_does_not_know_are_counted(data):
    train_set, test_set = data
    tagger = Tagger("popular").fit_dataset(train_set)
    assert evaluate(tagger, test_set)["n_unknown_labels"] == 0
    Y = sp.hstack([test_set.Y, np.ones((len(test_set), 2))], format="csr", dtype=np.float32)
    wider = replace(test_set, Y=Y, labels=replace(test_set.labels, hierarchy=None).extended(["x", "y"]))
    assert evaluate(tagger, wider)["n_unknown_labels"] == 2


def test_figures_at_thresholds_are_those_of_the_metrics(data):
    train_set, test_set = data
    tagger = Tagger("one_vs_rest").fit_dataset(train_set)
    figures = evaluate(tagger, test_set, ci=True)
    pairs = metrics.ScoredPairs.from_topk(test_set.Y, tagger.predict_topk(test_set.X, 10))
    best = metrics.best_micro_f1(pairs)
    assert (figures["micro_f1"], figures["micro_f1_threshold"]) == (round(100 * best.value, 4), best.threshold)
    kept = tagger.predict_topk(test_set.X, 10).at_least(figures["macro_f1_threshold"])
    assert figures["macro_f1"] == round(100 * metrics.macro_f1(test_set.Y, kept), 4)
    for precision in (90, 95):
        kept = tagger.predict_topk(test_set.X, 10).at_least(figures[f"threshold_at_precision_{precision}"])
        right = kept.to_csr(40).multiply(test_set.Y).nnz
        assert right / (kept.labels >= 0).sum() >= precision / 100
        assert figures[f"coverage_at_precision_{precision}"] == round(100 * right / test_set.Y.nnz, 4)
    assert "expected_threshold" not in figures, "its scores are no probabilities"
    assert all(low <= figures[name] <= high for name, (low, high) in figures["ci"].items())
    assert {"P@1", "nDCG@5", "PSP@3", "R@5", "micro_f1"} <= set(figures["ci"])
    assert "ECE@5" not in figures
    json.dumps(figures)


def test_thresholds_can_be_left_out_and_are_put_on_deeper_lists_where_documents_have_many_labels(data):
    train_set, test_set = data
    tagger = Tagger("popular").fit_dataset(train_set)
    assert "micro_f1" not in evaluate(tagger, test_set, thresholds=False)
    assert evaluate_module.threshold_depth(test_set, (1, 3, 5)) == 10
    assert evaluate_module.threshold_depth(test_set, (1, 30)) == 30
    many = replace(test_set, Y=sp.csr_matrix(np.ones(test_set.Y.shape, np.float32)))
    assert evaluate_module.threshold_depth(many, (1, 3, 5)) == 120


def test_the_reliability_bins_of_calibrated_scores_have_all_predictions(data):
    train_set, test_set = data
    tagger = Tagger("blend", members="neighbors,label_tree", n_folds=2).fit_dataset(train_set)
    figures = evaluate(tagger, test_set)
    assert len(figures["reliability"]) == 15
    assert sum(row["n"] for row in figures["reliability"]) == 5 * len(test_set)
    error = sum(row["n"] * abs(row["probability"] - row["accuracy"]) for row in figures["reliability"] if row["n"])
    assert figures["ECE@5"] == pytest.approx(error / (5 * len(test_set)), abs=1e-3)
    assert 0 < figures["expected_threshold"] < 1
    assert figures["micro_f1_at_expected"] <= figures["micro_f1"]
    assert figures["precision_coverage"][-1][2] <= 100


def test_documents_without_labels_count_in_thresholds_and_intervals_where_they_count_in_the_averages(data):
    train_set, test_set = data
    tagger = Tagger("neighbors").fit_dataset(train_set)
    Y = test_set.Y.tolil()
    Y[:50] = 0
    some = replace(test_set, Y=Y.tocsr())
    skipped, counted = (evaluate(tagger, some, unlabelled=how, ci=True) for how in ("skip", "count"))
    assert skipped["n"] == counted["n"] - 50
    assert counted["P@1"] < skipped["P@1"]
    assert counted["ci"]["P@1"][1] < skipped["P@1"]
    assert counted["ci"]["PSP@1"] == pytest.approx(skipped["ci"]["PSP@1"], abs=3), "a ratio of sums"
    assert counted["micro_f1"] < skipped["micro_f1"]
    assert counted["coverage_at_precision_90"] <= skipped["coverage_at_precision_90"]


def test_figures_among_some_labels_are_those_of_documents_that_have_no_others(data):
    train, test = data
    tagger = Tagger("one_vs_rest").fit_dataset(train)
    names = list(train.labels.names[:9])
    figures = evaluate(tagger, test, include=names)
    Y = test.Y.tolil()
    Y[:, 9:] = 0
    top = tagger.predict_topk(test.X, 5, include=names)
    expected = metrics.evaluate(Y.tocsr(), top, tagger.labels_.counts, tagger.labels_.n_documents)
    assert {key: figures[key] for key in expected} == expected
    assert figures["n_allowed_labels"] == 9
    wider = replace(test.labels, hierarchy=None).extended(["a label nobody knows"])
    unknown = sp.hstack([test.Y, np.ones((len(test), 1))], format="csr", dtype=np.float32)
    more = evaluate(tagger, replace(test, Y=unknown, labels=wider), include=names)
    assert (more["P@5"], more["n_unknown_labels"]) == (figures["P@5"], 0)


def test_an_unknown_option_is_refused(data):
    train, test = data
    tagger = Tagger("popular").fit_dataset(train)
    with pytest.raises(ParameterError, match="unlabelled.* but is 'unlabeled'"):
        evaluate(tagger, test, unlabeled="count")
