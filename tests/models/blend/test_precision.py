"""Thresholds for a precision: learned with the stacking model, saved, and not there in models saved before."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.errors import ModelError, ParameterError
from labelspace.models.blend.model import Blend
from labelspace.models.blend.stacking_model import SHORTLIST, Candidates, count_pairs, fit_passes
from labelspace.models.capabilities import LearnsPrecision, methods_with
from labelspace.types import Dataset, no_progress
from tests.checks import planted_split
from tests.models.blend.test_stacking_model import WIDTH, N, documents


@pytest.fixture(scope="module")
def fitted(data):
    train, _ = data
    return Tagger(members="neighbors,label_tree", n_folds=2).fit_dataset(
        Dataset(train.Y, train.labels, texts=train.texts)
    )


def test_both_passes_are_fitted_without_the_documents_that_thresholds_are_learned_from():
    """Where nothing can be learned, trees that saw a document would still know its labels."""
    table, truth = documents(0)
    noise = Candidates(
        table._replace(columns=np.random.default_rng(1).random(table.columns.shape).astype(np.float32)),
        np.random.default_rng(2).permutation(table.targets(truth)),
        count_pairs(sp.csr_matrix(truth.shape, dtype=np.float32)),
    )
    (unseen,) = fit_passes([noise], WIDTH, 40, 0, no_progress).unseen
    assert unseen.labels.shape == (N, SHORTLIST)
    assert (np.diff(unseen.scores, axis=1) <= 0).all()
    targets = {
        (row, label): right
        for row, label, right in zip(np.repeat(np.arange(N), 20), table.labels, noise.targets, strict=True)
    }
    sure = unseen.scores > np.quantile(unseen.scores, 0.9)
    right = [targets[row, label] for row, label in zip(np.nonzero(sure)[0], unseen.labels[sure], strict=True)]
    assert np.mean(right) < 0.15  # 2 of 20 are


def test_the_precision_asked_for_is_reached_on_new_documents(data, fitted):
    _, test = data
    for consistent, truth in ((False, test.Y), (True, fitted.labels_.hierarchy.closed(test.Y))):
        thresholds = fitted.precision_thresholds(consistent)
        asked = thresholds.highest - 0.1
        kept = fitted.predict_topk(test.texts, 10, precision=asked, consistent=consistent).to_csr(truth.shape[1])
        assert kept.multiply(truth).sum() >= asked * kept.nnz > 0
        assert 0.1 < thresholds.at(asked).coverage <= 1


def test_thresholds_are_saved_and_models_saved_before_have_none(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    for consistent in (False, True):
        before, after = fitted.precision_thresholds(consistent), loaded.precision_thresholds(consistent)
        assert all(np.array_equal(getattr(before, key), getattr(after, key)) for key in vars(before))
    assert loaded.tag("w1 w2", precision=0.6) == fitted.tag("w1 w2", precision=0.6)
    before = Blend(members="neighbors,label_tree", n_folds=2).fit(*_features())
    known = {key: learned for key, learned in Blend.state.items() if not key.endswith("precision_")}
    with monkeypatch.context() as earlier:
        earlier.setattr(Blend, "state", known)
        before.save(tmp_path / "before")
    old = labelspace.load(tmp_path / "before")
    assert old.predict_topk(_features()[0], 3, min_probability=0.1).k == 3
    with pytest.raises(
        ParameterError, match="learned in training, but the model has none for such answers; train it again"
    ):
        old.predict_topk(_features()[0], precision=0.9)


def _features():
    train, _ = planted_split(n=200, test=50, d=100, l=10, seed=3)
    return train.X, train.Y


def test_damaged_thresholds_are_refused(fitted, tmp_path, monkeypatch):
    good = fitted.model.precision_
    monkeypatch.setattr(fitted.model, "precision_", replace(good, threshold=good.threshold[::-1].copy()))
    with pytest.raises(ModelError, match="thresholds that never fall"):
        fitted.save(tmp_path / "model")


def test_probabilities_do_not_depend_on_how_many_labels_are_asked_for(data, fitted):
    texts = data[1].texts[:30]
    few, more = fitted.predict_topk(texts, 5), fitted.predict_topk(texts, 30)
    assert np.array_equal(few.labels, more.labels[:, :5])
    assert np.array_equal(few.scores, more.scores[:, :5])
    assert (np.diff(more.scores, axis=1) <= 0).all()
    assert (more.labels >= 0).all()


def test_blend_is_the_method_that_learns_thresholds():
    assert methods_with(LearnsPrecision) == ["blend"]
    tiny = Tagger(members="neighbors").fit(["old bread", "raw fish"] * 5, [["x"], ["y"]] * 5)
    assert tiny.precision_thresholds().highest is None
    assert tiny.tag("old bread", precision=0.9) == []
