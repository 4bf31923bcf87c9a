import json
from dataclasses import replace

import numpy as np
import pytest

import labelspace
from labelspace import Tagger
from labelspace.errors import DataError, ParameterError
from labelspace.features.views import Views
from labelspace.metrics import expected_calibration_error
from labelspace.models.blend import members, stacking_table
from labelspace.models.blend.members import parse_members
from labelspace.models.blend.model import Blend
from labelspace.models.blend.training import choose_folds
from labelspace.models.neighbors import Neighbors
from labelspace.models.registry import create
from labelspace.types import Dataset, LabelSpace
from tests.checks import planted_split, precision_at_1, same_topk

pytestmark = pytest.mark.slow  # many small trainings

QUICK = "label_tree,neighbors"


def of_texts(documents):
    return Dataset(documents.Y, documents.labels, texts=documents.texts)


def test_it_is_better_than_its_members_on_features(noisy):
    train, test = noisy
    blend = Blend(members=QUICK).fit(train.X, train.Y)
    best = max(precision_at_1(create(name).fit(train.X, train.Y), test) for name in QUICK.split(","))
    assert precision_at_1(blend, test) >= best - 0.01


@pytest.fixture
def noisy():
    return planted_split(n=900, test=300, d=300, l=30, noise=60, seed=2)


def test_members_are_chosen_by_what_there_is(data):
    train, _ = data
    tagger = Tagger("blend", boosting_rounds=5, n_folds=1).fit_dataset(of_texts(train))
    assert [m.name for m in tagger.model.members_] == ["neighbors", "pdsparse", "lexical"]
    assert tagger.model.member_views_ == ["words", "words+chars", "text"]
    assert tagger.model.members_[1].n_features_ == sum(tagger.model.widths_.values())
    numbered = replace(of_texts(train), labels=LabelSpace.numbered(40))
    unnamed = Tagger("blend", boosting_rounds=5, n_folds=1).fit_dataset(numbered).model
    assert [m.name for m in unnamed.members_] == ["neighbors", "pdsparse"]
    of_features = Blend(boosting_rounds=5, n_folds=1).fit(train.X, train.Y, labels=train.labels)
    assert [m.name for m in of_features.members_] == ["neighbors", "label_tree", "sleec"]


def test_members_that_cost_much_are_left_out_where_labels_are_many(monkeypatch):
    def methods(effort, per_document=9.0, shape=(9, 9)):
        return [m.method for m in members.choose_members_on_features(shape, per_document, effort)]

    assert methods("normal") == ["neighbors", "network", "glas", "sleec"]
    assert methods("normal", 2.0) == ["neighbors", "label_tree", "sleec"]
    assert methods("normal", shape=(9, 20)) == ["neighbors", "label_tree", "sleec"], "4 documents per label"
    monkeypatch.setattr(members, "MAX_NETWORK_CELLS", 0)
    assert methods("normal") == ["neighbors", "label_tree", "sleec"]
    assert [m.method for m in members.choose_members((9, 9), "words", with_text=False)] == ["neighbors", "pdsparse"]
    monkeypatch.setattr(members, "MAX_PDSPARSE_CELLS", 0)
    assert [m.method for m in members.choose_members((9, 9), "words", with_text=False)] == ["neighbors", "label_tree"]
    monkeypatch.setattr(members, "MAX_SLEEC_DOCUMENTS", 0)
    assert methods("normal") == methods("best") == ["neighbors", "label_tree"]


def test_very_many_documents_are_trained_on_once_without_a_sample(noisy, monkeypatch):
    train, _ = noisy
    trained = []
    fit = Neighbors._fit

    def counting(self, X, Y, context):
        trained.append(Y.shape[0])
        fit(self, X, Y, context)

    monkeypatch.setattr(Neighbors, "_fit", counting)
    Blend(members="neighbors", boosting_rounds=2).fit(train.X, train.Y)
    assert sorted(trained) == [300, 300, 600]
    trained.clear()
    monkeypatch.setattr("labelspace.models.blend.training.MAX_OUT_OF_FOLD", 500)
    Blend(members="neighbors", boosting_rounds=2).fit(train.X, train.Y)
    assert trained == [540]
    trained.clear()
    Blend(members="neighbors", boosting_rounds=2, n_folds=1).fit(train.X, train.Y)
    assert trained == [540, 600]


def test_long_texts_are_read_as_bigrams(data):
    train, _ = data
    long = replace(of_texts(train), texts=[text * 40 for text in train.texts]).rows(range(100))
    assert "bigrams" in Tagger("blend", boosting_rounds=2, n_folds=1).fit_dataset(long).model.member_views_


def test_views_of_ones_own_go_to_the_members_that_name_them(data):
    train, test = data
    views = Views({"words": train.X, "embeddings": train.X[:, :300].toarray()})
    model = Blend(members="neighbors:embeddings,label_tree", boosting_rounds=5).fit(views, train.Y)
    assert model.members_[0].n_features_ == 300
    asked = Views({"words": test.X, "embeddings": test.X[:, :300].toarray()})
    assert precision_at_1(model, test, asked) > 0.85
    with pytest.raises(DataError, match="300 features the model was trained on, but has 299"):
        model.predict_topk(Views({"words": test.X, "embeddings": test.X[:, :299]}))


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
    assert not np.array_equal(folded.forest_.value, blend.forest_.value)


def test_a_damaged_list_of_members_is_refused(data, tmp_path):
    train, _ = data
    Blend(members=QUICK, boosting_rounds=2).fit(train.X, train.Y).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    manifest = json.loads(path.read_text())
    manifest["model"]["state"]["members_"]["list"].pop()
    from labelspace.store import sealed

    path.write_text(json.dumps(sealed(manifest)))
    with pytest.raises(labelspace.errors.ModelError, match="members_ of a saved model must have n_members=2 parts"):
        labelspace.load(tmp_path / "model")


def test_texts_without_views_are_refused(data):
    train, test = data
    of_features = Blend(members=QUICK, boosting_rounds=2).fit(train.X, train.Y)
    with pytest.raises(
        DataError, match="reads the view 'words' of the documents, but X holds texts.*use labelspace.Tagger"
    ):
        of_features.predict_topk(test.texts)
    with pytest.raises(DataError, match="use labelspace.Tagger"):
        Blend(members=QUICK, boosting_rounds=2).fit(train.texts, train.Y)


def test_members_can_be_named():
    assert [str(member) for member in parse_members("label_tree, network:chars")] == [
        "label_tree:words",
        "network:chars",
    ]
    with pytest.raises(ParameterError, match="there is no method 'label_three'"):
        parse_members("label_three")
    with pytest.raises(ParameterError, match=r"must be one of words, .*, or two of them joined by \+, but is 'sounds'"):
        parse_members("neighbors:sounds")
    with pytest.raises(ParameterError, match="must be a single method"):
        parse_members("blend")


def test_a_member_that_reads_text_needs_texts(data):
    train, _ = data
    with pytest.raises(DataError, match="lexical reads texts, but there are only features"):
        Blend(members="neighbors,lexical").fit(train.X, train.Y, labels=train.labels)
    with pytest.raises(ParameterError, match="members of blend must be"):
        Blend(members="neighbors,nothing").fit(train.X, train.Y)


def test_documents_are_predicted_a_few_at_a_time(data, monkeypatch):
    train, test = data
    model = Blend(members=QUICK, boosting_rounds=10).fit(train.X, train.Y)
    whole = model.predict_topk(test.X, 5)
    monkeypatch.setattr("labelspace.models.blend.model.PREDICTED_AT_ONCE", 7)
    parts = model.predict_topk(test.X, 5)
    assert np.array_equal(whole.labels, parts.labels)
    assert np.array_equal(whole.scores, parts.scores)


def test_few_documents_are_enough(tmp_path):
    texts, labels = ["red", "green", "red red", "blue sky"], [["r"], ["g"], ["r"], ["b"]]
    tagger = Tagger("blend").fit(texts, labels)
    tags = tagger.tag_batch(["red", "green", "a blue one"], 3)
    assert [row[0][0] for row in tags] == ["r", "g", "b"]
    assert len(tagger.model.forest_.roots) == 0, "nothing to learn from: the mean of the members' scores"
    assert all(score <= 1 for row in tags for _, score in row)
    tagger.save(tmp_path / "model")
    assert labelspace.load(tmp_path / "model").tag_batch(["red", "green", "a blue one"], 3) == tags


def test_a_fold_with_all_labels_is_left_out(data):
    train, _ = data
    Y = np.zeros((60, 2))
    Y[17, 1] = 1
    model = Blend(members=QUICK, boosting_rounds=2).fit(train.X[:60], Y)
    assert model.predict_topk(train.X[17:18], 1).labels[0, 0] in (1, -1)


def test_effort_is_the_number_of_members_and_folds():
    def methods(effort):
        return [str(m) for m in members.choose_members((9, 9), "chars", with_text=True, effort=effort)]

    assert methods("fast") == ["neighbors:words", "label_tree:words", "lexical"]
    assert set(methods("normal")) < set(methods("best"))
    on_features = [m.method for m in members.choose_members_on_features((9, 9), 2.0, "best")]
    assert on_features[-2:] == ["fastxml", "poincare"]
    assert [m.method for m in members.choose_members_on_features((9, 9), 2.0, "fast")] == ["neighbors", "label_tree"]
    assert [choose_folds(9000, effort) for effort in ("fast", "normal", "best")] == [1, 2, 5]
    assert choose_folds(30_000, "best") == 1
    assert Blend.from_preset("fast").effort == "fast"


def test_ranking_for_rare_labels_keeps_the_probabilities(noisy):
    train, test = noisy
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    usual = Blend(members=QUICK, n_folds=2, boosting_rounds=10).fit(train.X, train.Y)
    rare = Blend(members=QUICK, n_folds=2, boosting_rounds=10, optimize="PSP@5").fit(train.X, train.Y)
    k = train.Y.shape[1]
    top = {model: model.predict_topk(test.X, k) for model in (usual, rare)}
    assert counts[top[rare].labels[:, 0]].mean() < counts[top[usual].labels[:, 0]].mean()
    assert (np.diff(top[rare].scores, axis=1)[top[rare].labels[:, 1:] >= 0] <= 0).all()
    probable = {model: model.predict_topk(test.X, k, calibrated=True) for model in (usual, rare)}
    for row in range(20):
        of_usual = dict(zip(probable[usual].labels[row].tolist(), probable[usual].scores[row].tolist(), strict=True))
        for label, p in zip(probable[rare].labels[row].tolist(), probable[rare].scores[row].tolist(), strict=True):
            assert of_usual[label] == pytest.approx(p, rel=1e-4)
    with pytest.raises(ParameterError, match=r"optimize of blend must be a metric such as P@5"):
        Blend(optimize="accuracy").fit(train.X, train.Y)


@pytest.mark.parametrize("optimize", ["nDCG@5", "PSP@5"])
def test_a_filter_changes_no_probability(noisy, optimize):
    train, test = noisy
    blend = Blend(members="pdsparse,neighbors", n_folds=2, boosting_rounds=10, n_candidates=4, optimize=optimize)
    blend.fit(train.X, train.Y)
    everything = blend.predict_topk(test.X, 30, calibrated=True)
    for n_allowed in (2, 6, 25):
        allowed = np.random.default_rng(n_allowed).permutation(30) < n_allowed
        for k in (1, 3, 8):
            ranked = blend.predict_topk(test.X, 30).among(allowed, k)
            found = blend.predict_topk(test.X, k, allowed=allowed)
            assert same_topk(found, ranked), "the list of all labels without the others"
            sure = blend.predict_topk(test.X, k, calibrated=True, allowed=allowed)
            for row in range(10):
                known = dict(zip(everything.labels[row].tolist(), everything.scores[row].tolist(), strict=True))
                for label, p in zip(sure.labels[row].tolist(), sure.scores[row].tolist(), strict=True):
                    assert label < 0 or p == pytest.approx(known[label], rel=1e-5)


def test_k_changes_no_probability_of_a_candidate(noisy):
    train, test = noisy
    blend = Blend(members="pdsparse,neighbors", n_folds=2, boosting_rounds=10, n_candidates=4).fit(train.X, train.Y)
    everything = blend.predict_topk(test.X, 30)
    for k in (1, 4, 5, 12):  # at least 4 are candidates
        assert same_topk(blend.predict_topk(test.X, k).padded(4), everything.padded(k).padded(4))
    assert (everything.labels >= 0).sum(axis=1).min() > 8, "labels beyond the candidates follow"
    for k in (15, 30):  # members are asked for all labels
        assert same_topk(blend.predict_topk(test.X, k), everything.padded(k))


def test_many_allowed_labels_are_searched_as_deep_as_needed(noisy, monkeypatch):
    train, test = noisy
    blend = Blend(members="pdsparse,label_tree", n_folds=2, boosting_rounds=10, n_candidates=2).fit(train.X, train.Y)
    monkeypatch.setattr(stacking_table, "FEW_LABELS", 0)
    allowed = np.random.default_rng(4).permutation(30) < 12
    shallow, deep = blend.predict_topk(test.X, 5, allowed=allowed), blend.predict_topk(test.X, 12, allowed=allowed)
    assert (shallow.labels >= 0).all()
    assert allowed[shallow.labels].all()
    first = blend.predict_topk(test.X, 2)
    for row in range(len(test)):  # candidates keep their probabilities
        known = dict(zip(first.labels[row].tolist(), first.scores[row].tolist(), strict=True))
        scores = dict(zip(deep.labels[row].tolist(), deep.scores[row].tolist(), strict=True))
        assert all(scores[label] == known[label] for label in known if allowed[label])
