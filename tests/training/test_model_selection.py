import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.data.synthetic import planted
from labelspace.models.label_tree import LabelTree
from labelspace.training import model_selection
from labelspace.training.model_selection import Choice, choose, draw_sample
from labelspace.types import TopK, no_progress

N = 240


def ranking(scores):
    """A training that finds the label of the first ``scores[C]`` of all held-out documents, and else a wrong one."""

    def rank(X, Y, held_out, C, k):
        assert not set(X.data.tolist()) & set(held_out.data.tolist()), "trained on what is held out"
        truth = (held_out.data.astype(int) % 7)[:, None]
        right = np.arange(len(truth))[:, None] < scores[C] * len(truth)
        return TopK(np.where(right, truth, (truth + 1) % 7).astype(np.int32), np.ones(truth.shape, np.float32))

    return rank


def chosen(scores, n=N):
    """Document i has the one feature i, and the label i % 7."""
    ids = np.arange(n)
    X = sp.csr_matrix((ids + 7.0, (ids, ids)), shape=(n, n))
    Y = sp.csr_matrix((np.ones(n, np.float32), (ids, ids % 7)), shape=(n, 7))
    return choose({"words": X, "bigrams": X}, Y, list(scores), ranking(scores), 0, no_progress)


def test_the_best_is_chosen_and_of_equal_ones_the_last():
    assert chosen({1.0: 0.9, 2.0: 0.5}) == Choice("bigrams", 1.0)
    assert chosen({1.0: 0.5, 2.0: 0.9}) == Choice("bigrams", 2.0)
    assert chosen({1.0: 0.5, 2.0: 0.5}) == Choice("bigrams", 2.0)


def test_few_documents_leave_no_choice():
    assert chosen({1.0: 0.9, 2.0: 0.5}, n=model_selection.MIN_DOCUMENTS - 1) is None


def test_a_sample_has_no_more_documents_labels_and_cells_than_said(monkeypatch):
    Y = planted(n=500, d=300, l=60, seed=0).Y
    rows, labels = draw_sample(Y, 5.0, 0)
    assert len(rows) == 500
    assert set(labels.tolist()) == set(Y.indices.tolist())
    monkeypatch.setattr(model_selection, "MAX_DOCUMENTS", 300)
    monkeypatch.setattr(model_selection, "MAX_LABELS", 20)
    assert [len(part) for part in draw_sample(Y, 5.0, 0)] == [300, 20]
    monkeypatch.setattr(model_selection, "MAX_CELLS", 2000)
    rows, labels = draw_sample(Y, 5.0, 0)
    assert (len(rows), len(labels)) == (100, 20)
    assert labels.tolist() == sorted(set(labels.tolist()))
    assert np.array_equal(rows, draw_sample(Y, 5.0, 0)[0])
    assert not np.array_equal(rows, draw_sample(Y, 5.0, 1)[0])
    monkeypatch.setattr(model_selection, "MAX_WORK", 300 * 5 * 15)
    assert len(draw_sample(Y, 5.0, 0)[1]) == 15
    assert len(draw_sample(Y, 500.0, 0)[1]) == model_selection.MIN_LABELS


def ordered_texts(pairs_matter):
    """Texts of two of four words, labeled by the first of them: by word order, or by the words alone."""
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(["red", "green", "blue", "gray"])[:2] for _ in range(N)]
    return [" ".join(words) for words in drawn], [[" ".join(words) if pairs_matter else min(words)] for words in drawn]


def test_pairs_of_words_are_read_where_the_order_counts():
    texts, names = ordered_texts(pairs_matter=True)
    tagger = Tagger("label_tree").fit(texts, names)
    assert tagger.model.report()["features.ngrams"] == 2
    assert tagger.tag("blue red", k=1)[0][0] == "blue red"


def choosing(monkeypatch, choice):
    asked = []

    def chooses(tables, Y, Cs, *rest):
        asked.append((list(tables), Cs))
        return choice

    monkeypatch.setattr(model_selection, "choose", chooses)
    return asked


def test_what_is_chosen_is_trained_reported_and_saved(tmp_path, monkeypatch):
    asked = choosing(monkeypatch, Choice("words", 1.0))
    texts, names = ordered_texts(pairs_matter=False)
    tagger = Tagger("label_tree").fit(texts, names)
    assert asked == [(["words", "bigrams"], [0.35, 1.0])]
    fixed = Tagger("label_tree", feature_params={"ngrams": 1}, C=1.0).fit(texts, names)
    assert tagger.predict_topk(texts, 3).scores.tolist() == fixed.predict_topk(texts, 3).scores.tolist()
    tagger.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    assert loaded.model.report() == {"features.ngrams": 1, "C": 1.0}
    assert list(loaded.features_.features_) == ["words"]
    assert loaded.model.n_features_ == 4
    assert loaded.tag_batch(texts[:5]) == tagger.tag_batch(texts[:5])


@pytest.mark.parametrize(
    ("params", "feature_params", "candidates"),
    [
        ({"C": 2.0}, {}, (["words", "bigrams"], [2.0])),
        ({}, {"ngrams": 1}, (["bigrams"], [0.35, 1.0])),
        ({}, {"analyzer": "char"}, (["bigrams"], [0.35, 1.0])),
        ({"label_text": 1.0}, {}, (["bigrams"], [0.35, 1.0])),
        ({"loss": "logistic"}, {}, (["words", "bigrams"], [0.35])),
        ({"C": 2.0}, {"ngrams": 2}, None),
        ({"tune": False}, {}, None),
        ({"max_leaf_size": 3}, {}, None),
    ],
)
def test_what_a_user_sets_is_not_chosen(monkeypatch, params, feature_params, candidates):
    asked = choosing(monkeypatch, Choice("bigrams", 0.35))
    texts, names = ordered_texts(pairs_matter=True)
    tagger = Tagger("label_tree", feature_params=feature_params, **params).fit(texts, names)
    assert asked == ([] if candidates is None else [candidates])
    views, Cs = candidates or ([], [])
    expected = {**({"features.ngrams": 2} if len(views) > 1 else {}), **({"C": 0.35} if len(Cs) > 1 else {})}
    assert tagger.model.report() == expected


def test_with_ready_made_features_only_the_regularization_is_chosen(monkeypatch):
    data = planted(n=300, d=200, l=20, seed=0)
    asked = choosing(monkeypatch, Choice("given", 1.0))
    model = LabelTree().fit(data.X, data.Y)
    assert asked == [(["given"], [0.35, 1.0])]
    assert model.report() == {"C": 1.0}
    assert (model.weights_ != LabelTree(C=1.0).fit(data.X, data.Y).weights_).nnz == 0


def test_a_member_of_blend_does_not_choose(monkeypatch):
    asked = choosing(monkeypatch, None)
    data = planted(n=300, d=200, l=20, seed=0)
    labelspace.models.registry.create("blend", members="label_tree", n_folds=1, boosting_rounds=5).fit(data.X, data.Y)
    assert asked == []
