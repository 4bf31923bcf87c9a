"""Documents that are learned later, against training with all of them."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.models.lexical import Lexical
from labelspace.models.lexical import model as lexical_model
from labelspace.models.partial_fit import learn_more
from labelspace.store.model_folder import sealed
from labelspace.types import LabelSpace
from tests.checks import digest, same_topk

NAMES = ["olive oil", "bread", "rye bread", "grilled fish", "fish, smoked", "yeast", "cold butter", "a knife"]
FILLERS = ["the", "a", "some", "of", "very", "hot", "oil", "grill", "smoked", "fish"]


def documents(n, seed=0):
    """Texts with names of labels, some of them in part; a label is right with a probability of its own."""
    rng = np.random.default_rng(seed)
    texts, rows = [], []
    for _ in range(n):
        named = np.flatnonzero(rng.random(len(NAMES)) < 0.3)
        words = [*(NAMES[label] for label in named), *rng.choice(FILLERS, 6)]
        texts.append(" ".join(words[i] for i in rng.permutation(len(words))))
        rows.append((rng.random(len(NAMES)) < 0.1 + np.arange(len(NAMES)) / 10) & np.isin(np.arange(len(NAMES)), named))
    return texts, sp.csr_matrix(np.array(rows, float))


def made(**params):
    return Lexical(language="english", **params)


def check_same(one, other):
    for name in ("log_odds_", "shift_"):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for parts in ("phrases_", "counts_"):
        for name in getattr(one, parts)._fields:
            found, expected = getattr(getattr(one, parts), name), getattr(getattr(other, parts), name)
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected), name


def test_learning_equals_training_on_everything_to_the_byte(tmp_path):
    texts, Y = documents(300)
    labels = LabelSpace(NAMES)
    model = made().fit(texts[:150], Y[:150], labels=labels)
    before = model.predict_topk(texts, 5)
    for part in (slice(150, 151), slice(151, 300)):
        assert learn_more(model, texts[part], Y[part]) == ()
    whole = made().fit(texts, Y, labels=labels)
    check_same(model, whole)
    assert not same_topk(before, model.predict_topk(texts, 5))
    model.save(tmp_path / "learned")
    whole.save(tmp_path / "whole")
    assert digest(tmp_path / "learned") == digest(tmp_path / "whole")


def test_learning_after_training_on_labels_alone_equals_training():
    texts, Y = documents(200)
    labels = LabelSpace(NAMES)
    model = Lexical.from_labels(labels, language="english")
    learn_more(model, texts, Y)
    check_same(model, made().fit(texts, Y, labels=labels))
    assert model.labels_.n_documents == 200


def test_later_documents_all_count_for_the_buckets(monkeypatch):
    monkeypatch.setattr(lexical_model, "BUCKET_SAMPLE", 50)
    texts, Y = documents(200)
    labels = LabelSpace(NAMES)
    model = made().fit(texts[:100], Y[:100], labels=labels)
    learn_more(model, texts[100:], Y[100:])
    sampled = [*range(0, 100, 2), *range(100, 200)]
    monkeypatch.setattr(lexical_model, "BUCKET_SAMPLE", 5000)
    expected = made().fit([texts[i] for i in sampled], Y[sampled], labels=labels)
    assert np.array_equal(model.counts_.by_bucket, expected.counts_.by_bucket)
    assert np.array_equal(model.log_odds_, expected.log_odds_)
    every = made().fit(texts, Y, labels=labels)
    assert np.array_equal(model.counts_.matches, every.counts_.matches), "labels count over all documents"


def test_a_new_label_is_found_by_its_name_and_synonyms_at_once():
    texts, Y = documents(100)
    model = made().fit(texts, Y, labels=LabelSpace(NAMES))
    labels = LabelSpace([*NAMES, "saffron", "bay leaf"], [*([] for _ in NAMES), ["crocus"], ["laurel"]])
    wide = sp.csr_matrix(([1.0], ([0], [8])), (1, 10))
    learn_more(model, ["saffron in water"], wide, labels=labels)
    asked = ["two threads of saffron", "dried crocus", "laurel", "bay leaves", "olive oil"]
    assert model.predict_topk(asked, 1).labels.ravel().tolist() == [8, 8, 9, 9, 0]
    assert model.labels_.counts[-2:].tolist() == [1, 0]
    whole = made().fit(texts[:1], sp.csr_matrix((1, 10)) + wide, labels=labels)
    for found, expected in zip(model.phrases_, whole.phrases_, strict=True):
        assert np.array_equal(found, expected)
    learn_more(model, [], sp.csr_matrix((0, 11)), labels=LabelSpace([*NAMES, "saffron", "bay leaf", "sumac"]))
    assert model.predict_topk(["sumac"], 1).labels.tolist() == [[10]], "without any document"


def test_new_names_and_synonyms_of_known_labels_are_found():
    texts, Y = documents(100)
    model = made().fit(texts, Y, labels=LabelSpace(NAMES))
    matches = model.counts_.matches.sum()
    learn_more(model, ["a toaster"], sp.csr_matrix((1, 8)), labels=LabelSpace(NAMES, [*[[]] * 7, ["toaster"]]))
    assert model.predict_topk(["the toaster"], 1).labels.tolist() == [[7]]
    assert model.counts_.matches.sum() == matches + 1
    model.relabel(LabelSpace(["kiwi", *NAMES[1:]]))
    assert model.predict_topk(["a kiwi"], 1).labels.tolist() == [[0]]


def test_a_match_of_a_rejected_label_is_a_match_without_a_hit():
    texts, Y = documents(200)
    labels = LabelSpace(NAMES)
    model = made().fit(texts, Y, labels=labels)
    text = "grilled fish on rye bread"
    before = model.predict_topk([text], 8)
    counts, odds = model.counts_, model.log_odds_
    rejected = sp.csr_matrix(np.isin(NAMES, ["grilled fish"]) * 1.0)
    learn_more(model, [text] * 20, sp.csr_matrix((20, 8)), rejected=sp.vstack([rejected] * 20))
    after = model.predict_topk([text], 8)
    assert score(after, 3) < 0.8 * score(before, 3)
    for label in (1, 2):
        assert score(after, label) == score(before, label), "nothing is known of the other labels"
    assert model.counts_.matches.sum() == counts.matches.sum() + 20
    assert model.counts_.hits.sum() == counts.hits.sum()
    assert np.array_equal(model.log_odds_, odds)


def test_of_a_document_that_may_have_further_labels_its_own_count():
    texts, Y = documents(200)
    model = made().fit(texts, Y, labels=LabelSpace(NAMES))
    counts, odds = model.counts_, model.log_odds_
    given = sp.csr_matrix(np.isin(NAMES, ["rye bread"]) * 1.0)
    learn_more(model, ["grilled fish on rye bread"], given, complete=False)
    assert model.counts_.matches.sum() == counts.matches.sum() + 1
    assert model.counts_.hits.sum() == counts.hits.sum() + 1
    assert np.array_equal(model.log_odds_, odds)


def score(top, label):
    return float(top.scores[0, top.labels[0] == label][0])


def test_a_rejected_label_of_a_complete_document_counts_as_any_label_that_is_not_right():
    texts, Y = documents(120)
    labels = LabelSpace(NAMES)
    models = [made().fit(texts[:100], Y[:100], labels=labels) for _ in range(2)]
    complete = np.flatnonzero(np.diff(Y.indptr[100:])) + 100
    rejected = sp.csr_matrix(np.ones((complete.size, 8)) - (Y[complete].toarray() > 0))
    for model, judged in zip(models, (None, rejected), strict=True):
        learn_more(model, [texts[i] for i in complete], Y[complete], rejected=judged)
    check_same(*models)


def test_empty_texts_and_texts_without_matches_change_nothing_but_the_number_of_documents():
    texts, Y = documents(100)
    model = made().fit(texts, Y, labels=LabelSpace(NAMES))
    before = model.predict_topk(texts, 5)
    learn_more(model, ["", "nothing of the kind"], sp.csr_matrix((2, 8)))
    assert same_topk(model.predict_topk(texts, 5), before)
    assert model.labels_.n_documents == 102


def test_labels_must_have_names():
    texts, Y = documents(100)
    model = made().fit(texts, Y, labels=LabelSpace(NAMES))
    model.attach_labels(None)
    with pytest.raises(DataError, match="lexical must know the names of the labels, but labels is None; give labels"):
        learn_more(model, texts, Y)


@pytest.fixture
def folder(tmp_path):
    texts, Y = documents(100)
    made().fit(texts, Y, labels=LabelSpace(NAMES)).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_loaded_model_learns_the_same(folder, tmp_path):
    texts, Y = documents(140)
    model = made().fit(texts[:100], Y[:100], labels=LabelSpace(NAMES))
    loaded = Lexical.load(folder)
    for number, one in enumerate((model, loaded)):
        learn_more(one, texts[100:], Y[100:])
        one.save(tmp_path / str(number))
    assert digest(tmp_path / "0") == digest(tmp_path / "1")
    assert same_topk(Lexical.load(tmp_path / "1").predict_topk(texts, 5), model.predict_topk(texts, 5))


def without(value, key):
    """Delete a key of a dict and of all dicts within."""
    for name in list(value):
        if name == key:
            del value[name]
        elif isinstance(value[name], dict):
            without(value[name], key)


def test_a_model_saved_before_counts_were_kept_tags_and_cannot_learn(folder):
    texts, Y = documents(100)
    model = Lexical.load(folder)
    expected = model.predict_topk(texts, 5)
    model.counts_ = None
    model.save(folder)
    stored = json.loads((folder / "model.json").read_text())
    without(stored, "counts_")
    (folder / "model.json").write_text(json.dumps(sealed(stored)))
    loaded = Lexical.load(folder)
    assert same_topk(loaded.predict_topk(texts, 5), expected)
    with pytest.raises(ParameterError, match="lexical goes on learning from what it counted.*; train it again"):
        learn_more(loaded, texts, Y)
    assert same_topk(loaded.predict_topk(texts, 5), expected)


@pytest.mark.parametrize(
    ("field", "change", "rule"),
    [
        ("hits", lambda counts: counts.matches + 1, "at most as many hits as matches of a label"),
        ("cells", lambda counts: counts.cells + np.uint16(5000), "must be below 4160"),
        ("by_bucket", lambda counts: counts.by_bucket + 2**40, "must be below"),
        ("starts", lambda counts: counts.starts[::-1].copy(), "must rise from 0"),
    ],
)
def test_hostile_counts_are_refused(folder, field, change, rule):
    model = Lexical.load(folder)
    model.counts_ = model.counts_._replace(**{field: change(model.counts_)})
    with pytest.raises(ModelError, match=rule):  # by the check that loading makes, too
        model.save(folder)
