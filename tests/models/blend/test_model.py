import json

import numpy as np
import pytest

import labelspace
from labelspace.errors import DataError, ParameterError
from labelspace.metrics import expected_calibration_error
from labelspace.models.blend import model as blend
from labelspace.models.blend.model import Blend, parse_members
from labelspace.models.registry import create

pytestmark = pytest.mark.slow  # many small trainings

QUICK = "label_tree,neighbors"


def precision(model, X, Y):
    first = model.predict_topk(X, k=1).labels[:, 0]
    return Y[np.arange(Y.shape[0]), first].mean()


def test_it_is_better_than_its_members_on_features(noisy):
    train, test = noisy
    blend = Blend(members=QUICK).fit(train.X, train.Y)
    best = max(precision(create(name).fit(train.X, train.Y), test.X, test.Y) for name in QUICK.split(","))
    assert precision(blend, test.X, test.Y) >= best - 0.01
    assert not blend.takes_texts


@pytest.fixture
def noisy():
    from labelspace.data.synthetic import planted

    data = planted(n=900, d=300, l=30, noise=60, seed=2)
    return data.rows(range(600)), data.rows(range(600, 900))


@pytest.mark.slow
def test_members_are_chosen_by_what_there_is(data):
    train, _ = data
    of_texts = Blend(rounds=5, folds=1).fit(train.texts, train.Y, labels=train.labels)
    assert [m.name for m in of_texts.members_] == ["neighbors", "label_tree", "network", "glas", "lexical"]
    assert of_texts.member_views_ == ["words", "pieces", "words", "words", "given"]
    unnamed = Blend(rounds=5, folds=1).fit(train.texts, train.Y)
    assert "lexical" not in [m.name for m in unnamed.members_]
    of_features = Blend(rounds=5, folds=1).fit(train.X, train.Y, labels=train.labels)
    assert [m.name for m in of_features.members_] == ["neighbors", "label_tree", "network", "glas"]


@pytest.mark.slow
def test_where_labels_are_many_glas_takes_the_networks_place_and_samples_labels(data, monkeypatch):
    train, _ = data
    monkeypatch.setattr(blend, "NETWORK_WORK", 0)
    model = Blend(rounds=2, folds=1).fit(train.X, train.Y)
    assert [m.name for m in model.members_] == ["neighbors", "label_tree", "glas"]
    assert model.members_[-1].get_params()["all_labels"] is False
    monkeypatch.setattr(blend, "GLAS_WORK", 0)
    assert [m.name for m in Blend(rounds=2, folds=1).fit(train.X, train.Y).members_] == ["neighbors", "label_tree"]


def test_long_texts_are_seen_as_pairs_of_words(data):
    train, _ = data
    texts = [text * 40 for text in train.texts[:100]]
    assert "pairs" in Blend(rounds=2, folds=1).fit(texts, train.Y[:100]).member_views_


def test_probabilities_are_probabilities(noisy):
    train, test = noisy
    model = Blend(members=QUICK).fit(train.X, train.Y)
    top = model.predict_topk(test.X, 5, calibrated=True)
    assert ((top.scores[top.labels >= 0] > 0) & (top.scores[top.labels >= 0] < 1)).all()
    assert expected_calibration_error(test.Y, top, 5) < 0.08


def test_validation_documents_teach_the_combiner_and_no_member(data):
    train, test = data
    blend = Blend(members=QUICK).fit(train.X, train.Y, validation=(test.X, test.Y))
    alone = create("neighbors").fit(train.X, train.Y)
    top, expected = blend.members_[1].predict_topk(test.X, 3), alone.predict_topk(test.X, 3)
    assert np.array_equal(top.labels, expected.labels)
    folded = Blend(members=QUICK).fit(train.X, train.Y)
    assert not np.array_equal(folded.forest_value_, blend.forest_value_)


def test_a_damaged_list_of_members_is_refused(data, tmp_path):
    train, _ = data
    Blend(members=QUICK, rounds=2).fit(train.X, train.Y).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    manifest = json.loads(path.read_text())
    manifest["members"].pop()
    from labelspace.store import sealed

    path.write_text(json.dumps(sealed(manifest)))
    with pytest.raises(labelspace.errors.ModelError, match="must hold 2 members"):
        labelspace.load(tmp_path / "model")


def test_texts_for_features_and_the_other_way_round_are_refused(data):
    train, test = data
    of_features = Blend(members=QUICK, rounds=2).fit(train.X, train.Y)
    with pytest.raises(DataError, match="600 features the model was trained on, but holds texts"):
        of_features.predict_topk(test.texts)
    of_texts = Blend(members=QUICK, rounds=2).fit(train.texts, train.Y)
    with pytest.raises(DataError, match="must have the 0 features|holds features"):
        of_texts.predict_topk(test.X)


def test_members_can_be_named():
    assert [str(member) for member in parse_members("label_tree, network:pieces")] == [
        "label_tree:words",
        "network:pieces",
    ]
    with pytest.raises(ParameterError, match="there is no method 'label_three'"):
        parse_members("label_three")
    with pytest.raises(ParameterError, match="must be one of words, pairs, pieces, but is 'sounds'"):
        parse_members("neighbors:sounds")
    with pytest.raises(ParameterError, match="must be a single method"):
        parse_members("blend")


def test_a_member_that_reads_text_needs_texts(data):
    train, _ = data
    with pytest.raises(DataError, match="lexical reads texts, but there are only features"):
        Blend(members="neighbors,lexical").fit(train.X, train.Y, labels=train.labels)
    with pytest.raises(ParameterError, match="members of blend must be"):
        Blend(members="neighbors,nothing").fit(train.X, train.Y)


def test_documents_are_asked_about_a_few_at_a_time(data, monkeypatch):
    train, test = data
    model = Blend(members=QUICK, rounds=10).fit(train.X, train.Y)
    whole = model.predict_topk(test.X, 5)
    monkeypatch.setattr("labelspace.models.blend.model.AT_ONCE", 7)
    parts = model.predict_topk(test.X, 5)
    assert np.array_equal(whole.labels, parts.labels)
    assert np.array_equal(whole.scores, parts.scores)


def test_few_documents_are_enough(tmp_path):
    texts, Y = ["red", "green", "red red", "blue sky"], np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])
    model = Blend().fit(texts, Y)
    asked = model.predict_topk(["red", "green", "a blue one"], 3)
    assert asked.labels[:, 0].tolist() == [0, 1, 2]
    assert len(model.forest_roots_) == 0, "nothing to learn from: the mean of the members' scores"
    assert (asked.scores[:, 0] <= 1).all()
    model.save(tmp_path / "model")
    again = labelspace.load(tmp_path / "model").predict_topk(["red", "green", "a blue one"], 3)
    assert np.array_equal(again.labels, asked.labels)


def test_labels_that_all_stand_in_one_part_are_no_trouble(data):
    train, _ = data
    Y = np.zeros((60, 2))
    Y[17, 1] = 1
    model = Blend(members=QUICK, rounds=2).fit(train.X[:60], Y)
    assert model.predict_topk(train.X[17:18], 1).labels[0, 0] in (1, -1)
