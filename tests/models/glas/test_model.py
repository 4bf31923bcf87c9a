import sys

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import DataError, MissingExtraError, ModelError, ParameterError
from labelspace.features.normalize import normalize_rows
from labelspace.models.blend import members
from labelspace.models.blend.model import Blend
from labelspace.models.glas import Glas, training
from labelspace.models.glas import model as glas_model
from labelspace.models.glas.model import place_label, without_label
from labelspace.models.glas.network import Net
from labelspace.models.glas.training import TrainingData
from labelspace.types import Hierarchy, LabelSpace
from tests.checks import digest, needs_faiss, precision_at_1, same_topk
from tests.models.glas.cases import copies, quick, small_data, trained_arrays, uninformative_data


@pytest.fixture(scope="module")
def small():
    return small_data()


# ---- epochs and steps


def test_learning_rates_fall_linearly_to_0(small, monkeypatch):
    decays = []
    monkeypatch.setattr(
        training, "train_step", lambda model, net, data, rows, hard, lr_decay, rng: decays.append(lr_decay)
    )
    quick(epochs=2).fit(small.X, small.Y)
    assert np.allclose(decays, 1 - np.arange(len(decays)) / len(decays))


def test_every_epoch_has_all_documents_in_a_new_order(small, monkeypatch):
    batches = []
    monkeypatch.setattr(training, "train_step", lambda model, net, data, rows, *rest: batches.append(rows))
    quick(epochs=2).fit(small.X, small.Y)
    one, other = np.concatenate(batches[: len(batches) // 2]), np.concatenate(batches[len(batches) // 2 :])
    assert sorted(one) == sorted(other) == list(range(260))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_few_sampled_labels_train_about_as_well_as_all(data, loss):
    train, test = data
    params = {"embedding_dim": 32, "epochs": 8, "loss": loss, "n_negatives": 6, "n_hard_negatives": 4}
    of_all, of_sampled = (
        precision_at_1(Glas().set_params(all_labels=all_labels, **params).fit(train.X, train.Y), test)
        for all_labels in (True, False)
    )
    assert of_all > 0.85
    assert of_sampled > of_all - 0.04


# ---- early stopping


def with_validation_scores(model, monkeypatch, *documents, **options):
    """Fit; the net's arrays at the end, and after each epoch its score, its arrays and the validation documents."""
    epochs, score = [], Net.validation_score

    def spy(net, *held_out):
        epochs.append((score(net, *held_out), copies(net), held_out))
        return epochs[-1][0]

    monkeypatch.setattr(Net, "validation_score", spy)
    return trained_arrays(model, *documents, **options), epochs


def test_training_stops_where_the_score_stalls_and_the_best_epoch_is_restored(monkeypatch):
    arrays, epochs = with_validation_scores(quick(epochs=40, patience=2), monkeypatch, *uninformative_data())
    best = int(np.argmax([score for score, *_ in epochs]))
    assert len(epochs) == best + 1 + 2 < 40
    for key, value in epochs[best][1].items():
        assert np.array_equal(arrays[key], value), key
    assert not np.array_equal(arrays["feature_embeddings"], epochs[-1][1]["feature_embeddings"])


def test_documents_to_stop_by_are_held_out_of_train_where_none_are_given(small, monkeypatch):
    sizes, build = [], TrainingData.build
    monkeypatch.setattr(TrainingData, "build", lambda X, *rest: sizes.append(X.shape[0]) or build(X, *rest))
    _, epochs = with_validation_scores(quick(patience=1), monkeypatch, small.X, small.Y)
    held_out = epochs[0][2][0]
    assert held_out.shape[0] == 26
    assert (held_out != normalize_rows(small.X)[:26]).nnz, "at random, not the first"
    other = small.rows(range(50))
    _, epochs = with_validation_scores(quick(patience=1), monkeypatch, small.X, small.Y, validation=(other.X, other.Y))
    assert epochs[0][2][0].shape[0] == 50
    quick(epochs=1).fit(small.X, small.Y, validation=(other.X, other.Y))
    assert sizes == [234, 260, 260]


@pytest.mark.parametrize("all_labels", [True, False])
def test_training_stops_by_the_labels_that_are_suggested(small, monkeypatch, all_labels):
    Y = small.Y.tolil()
    Y[:, 11] = 0
    results, search = [], glas_model.index.Exact.search

    def spy(self, *queries):
        results.append(search(self, *queries).labels)
        return search(self, *queries)

    monkeypatch.setattr(glas_model.index.Exact, "search", spy)
    model = quick(patience=1, all_labels=all_labels, loss="margin", epochs=2)
    model.fit(small.X, Y.tocsr(), validation=(small.X, small.Y))
    assert len(results) == 2
    assert not any((labels == 11).any() for labels in results), "it has no training document"


def test_validation_documents_of_unknown_labels_alone_are_as_none(small):
    known, unknown = small.Y[:, :20], small.Y.toarray()
    unknown[:, :20] = 0
    assert unknown.any()
    one = trained_arrays(quick(patience=1), small.X, known, validation=(small.X, unknown))
    other = trained_arrays(quick(patience=1), small.X, known)
    assert np.array_equal(one["label_embeddings"], other["label_embeddings"])


def test_too_few_documents_to_stop_by_are_one_clear_line(small):
    few = small.rows(range(4))
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 4 in all; give validat"):
        quick(patience=1).fit(few.X, few.Y)
    quick(patience=1, epochs=1).fit(few.X, few.Y, validation=(small.X, small.Y))


def test_validation_documents_of_other_features_or_without_their_labels_are_refused(small):
    model, some = quick(patience=1), small.rows(range(50))
    with pytest.raises(DataError, match="validation must have the 150 features .*, but has 149; give"):
        model.fit(small.X, small.Y, validation=(some.X[:, :-1], some.Y))
    with pytest.raises(DataError, match="validation must have one row per document, but have 49 and 50 rows; give the"):
        model.fit(small.X, small.Y, validation=(some.X[1:], some.Y))


# ---- checkpoints


def interrupt(model, at, *documents, **options):
    """Fit until progress reports ``at`` batches."""

    def progress(step, done, total):
        if step == "batches" and done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(*documents, progress=progress, **options)
    assert not model.is_fitted


@pytest.mark.parametrize(("all_labels", "patience"), [(True, None), (False, 3)])
def test_an_interrupted_training_ends_in_the_same_bytes(small, tmp_path, all_labels, patience):
    model = quick(
        n_layers=2, weight_norm=True, all_labels=all_labels, n_negatives=6, n_hard_negatives=2, epochs=4,
        patience=patience,
    )  # fmt: skip
    model.fit(small.X, small.Y).save(tmp_path / "at_once")
    for batches in (25, 49):  # epochs have 16: within the second and just after the third
        interrupt(model, batches, small.X, small.Y, checkpoint=tmp_path / "checkpoint")
    steps = []
    options = {"checkpoint": tmp_path / "checkpoint", "progress": lambda *step: steps.append(step)}
    model.fit(small.X, small.Y, **options).save(tmp_path / "resumed")
    assert next(done for step, done, _ in steps if step == "batches") == 49
    assert digest(tmp_path / "resumed") == digest(tmp_path / "at_once")
    steps.clear()
    model.fit(small.X, small.Y, **options).save(tmp_path / "again")
    assert not [step for step in steps if step[0] == "batches"], "all was done"
    assert digest(tmp_path / "again") == digest(tmp_path / "at_once")


def test_a_checkpoint_of_other_data_or_parameters_is_refused(small, tmp_path):
    one, other = ((part.X, part.Y) for part in (small.rows(range(50)), small.rows(range(50, 100))))
    params = {"epochs": 1, "patience": 1}
    quick(**params).fit(small.X, small.Y, validation=one, checkpoint=tmp_path)
    quick(epochs=np.int64(1), patience=1).fit(small.X, small.Y, validation=one, checkpoint=tmp_path)  # the same
    X = small.X.copy()
    X.data[5] += 0.5
    Y = sp.csr_matrix(np.roll(small.Y.toarray(), 1, axis=1))
    for model, *documents, validation in (
        (quick(**params), X, small.Y, one),
        (quick(**params), small.X, Y, one),
        (quick(**params), small.X, small.Y, other),
        (quick(**params, learning_rate=0.1), small.X, small.Y, one),
    ):
        with pytest.raises(ModelError, match="^a checkpoint must be of the same data and parameters"):
            model.fit(*documents, validation=validation, checkpoint=tmp_path)


# ---- prediction and the index


def test_scores_are_those_of_the_formula(small):
    model = quick(epochs=2)
    net = trained_arrays(model, small.X, small.Y)
    top = model.predict_topk(small.X[:40], 30)
    X = small.X[:40].toarray() / np.linalg.norm(small.X[:40].toarray(), axis=1, keepdims=True)
    hidden = np.maximum(X @ net["feature_embeddings"] + net["hidden_bias"], 0)
    phi = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    z = np.exp(net["log_scale"]) * phi @ net["label_embeddings"][:, :-1].T + net["bias"]
    expected = 1 / (1 + np.exp(-z))
    assert np.allclose(top.scores, np.take_along_axis(expected, top.labels, axis=1), atol=0.02)


@pytest.mark.parametrize("all_labels", [True, False])
def test_a_label_without_documents_is_never_suggested(small, all_labels):
    Y = small.Y.tolil()
    Y[:, 11] = 0
    top = quick(epochs=1, all_labels=all_labels).fit(small.X, Y.tocsr()).predict_topk(small.X, 30)
    assert 11 not in top.labels
    assert (top.labels[:, -1] == -1).all()


def test_the_index_is_chosen_by_documents_as_they_will_be_searched(small, monkeypatch):
    chosen, choose = {}, glas_model.index.choose

    def spy(vectors, ids, queries, **options):
        chosen.update(vectors=vectors.copy(), ids=ids, queries=queries)
        return choose(vectors, ids, queries, **options)

    monkeypatch.setattr(glas_model.index, "choose", spy)
    model = quick(epochs=1).fit(small.X, small.Y)
    queries = chosen["queries"]
    assert np.allclose(np.linalg.norm(queries[:, :-1], axis=1), 1, atol=1e-5)
    assert (queries[:, -1] == np.float32(model.bias_scale_)).all()
    assert np.allclose(np.linalg.norm(chosen["vectors"][:, :-1], axis=1), model.scale_, rtol=1e-5)
    assert chosen["ids"].tolist() == list(range(30))


@needs_faiss
def test_a_saved_faiss_index_is_loaded_with_its_report(tmp_path):
    many = planted(n=400, d=300, l=300, seed=3)
    model = quick(epochs=1, index="ivf", recall_target=0.2).fit(many.X, many.Y, labels=many.labels)
    assert model.index_.kind == "ivf"
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "index.faiss").is_file()
    loaded = Glas.load(tmp_path / "model")
    report = loaded.index_.report
    assert report == model.index_.report
    assert report["kind"] == loaded.index_.kind == "ivf"
    assert report["recall"] >= report["recall_target"] == 0.2
    assert same_topk(loaded.predict_topk(many.X, 5), model.predict_topk(many.X, 5))
    loaded.save(tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "model")


@needs_faiss
def test_a_saved_faiss_index_without_faiss_names_the_extra(tmp_path, monkeypatch, small):
    model = quick(epochs=1, index="ivf", recall_target=0.01).fit(small.X, small.Y, labels=small.labels)
    assert model.index_.kind == "ivf"
    model.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "faiss", None)
    words = r"^an index of kind 'ivf' needs the package 'faiss', .*; run: pip install 'labelspace\[ann\]'$"
    with pytest.raises(MissingExtraError, match=words):
        Glas.load(tmp_path / "model")
    with pytest.raises(MissingExtraError, match=words):
        quick(index="ivf").check_params()


@needs_faiss
def test_a_blend_saves_the_index_of_its_member(tmp_path, monkeypatch):
    params = {"embedding_dim": 16, "epochs": 2, "index": "ivf", "recall_target": 0.2}
    monkeypatch.setitem(members.MEMBER_PARAMS, "glas", params)
    many = planted(n=300, d=300, l=200, seed=3)
    model = Blend(members="neighbors,glas", n_folds=2, boosting_rounds=5).fit(many.X, many.Y, labels=many.labels)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "members.1.index.faiss").is_file()
    loaded = Blend.load(tmp_path / "model")
    assert loaded.members_[1].index_.report["kind"] == "ivf"
    assert same_topk(loaded.predict_topk(many.X, 5), model.predict_topk(many.X, 5))


def test_a_member_of_an_ensemble_predicts_the_same_without_the_documents_that_new_labels_need(small):
    model = Glas(embedding_dim=32, epochs=1).fit(small.X, small.Y)
    expected = model.predict_topk(small.X, 3)
    assert len(model.background_) > 1
    assert len(model.keep_for_prediction().background_) == 1
    assert np.array_equal(model.predict_topk(small.X, 3).scores, expected.scores)


def unit_rows(rng, n, dim=8):
    rows = rng.standard_normal((n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_new_label_points_to_its_examples_and_scores_above_0_for_its_share(share):
    rng = np.random.default_rng(0)
    background, examples = unit_rows(rng, 1000), unit_rows(rng, 3)
    v, b = place_label(examples, background, scale=12.0, share=share)
    assert np.isclose(np.linalg.norm(v), 1)
    direction = examples.mean(axis=0) - background.mean(axis=0)
    assert np.isclose(v @ direction, np.linalg.norm(direction))
    assert np.isclose((12.0 * background @ v + b > 0).mean(), share, atol=0.002)


@pytest.fixture
def fitted(small):
    return quick(epochs=1).fit(small.X, small.Y, labels=small.labels)


def test_a_label_comes_and_goes_and_comes_back_with_its_id(small, fitted):
    examples = small.X[[4, 9]]
    label = fitted.add_label("new", examples, share=0.5)
    assert label == 30
    assert (fitted.n_labels_, fitted.labels_.names[30], fitted.labels_.counts[30]) == (31, "new", 2)
    assert (fitted.predict_topk(examples, 31).labels == 30).any(axis=1).all()
    fitted.remove_label("new")
    assert not (fitted.predict_topk(examples, 31).labels == 30).any()
    assert (fitted.n_labels_, fitted.labels_.counts[30]) == (31, 0)
    assert fitted.add_label("new", examples) == 30


def test_a_filter_knows_labels_that_come_and_go(small, fitted):
    examples, allowed = small.X[[4, 9]], np.arange(31) % 6 == 0  # 30 is the new one
    fitted.add_label("new", examples, share=0.5)
    first = fitted.predict_topk(examples, 6, allowed=allowed)
    assert (first.labels == 30).any(axis=1).all()
    fitted.remove_label("new")
    assert not (fitted.predict_topk(examples, 6, allowed=allowed).labels == 30).any()
    fitted.add_label("new", small.X[[1]], share=0.01)
    again = fitted.predict_topk(examples, 6, allowed=allowed)
    assert not np.allclose(again.scores[again.labels == 30], first.scores[first.labels == 30])


def test_the_larger_its_share_the_more_documents_a_label_scores_high(small, fitted):
    scores = []
    for name, share in (("rare", 0.01), ("frequent", 0.5)):
        label = fitted.add_label(name, small.X[[4, 9]], share=share)
        top = fitted.predict_topk(small.X, 40)
        scores.append(top.scores[top.labels == label])
    assert (scores[0] < scores[1]).all()


def test_the_hierarchy_bypasses_a_removed_label():
    labels = LabelSpace(
        ["a", "b", "c"], hierarchy=Hierarchy.from_edges([[1, 0], [2, 1]], 3), counts=np.array([1, 2, 3])
    )
    remaining = without_label(labels, 1)
    assert remaining.hierarchy.edges.tolist() == [[2, 0]]
    assert remaining.counts.tolist() == [1, 0, 3]


def test_labels_that_cannot_be_added_or_removed_are_one_clear_line(small, fitted):
    known = small.labels.names[0]
    with pytest.raises(ParameterError, match="share must be above 0 and below 1, but is 0; give a part"):
        fitted.add_label("new", small.X[:1], share=0)
    with pytest.raises(DataError, match=f"must be new, but {known!r} is known; remove it first"):
        fitted.add_label(known, small.X[:1])
    with pytest.raises(DataError, match="an example with a known feature, but 'new' has none; give some"):
        fitted.add_label("new", sp.csr_matrix((1, 150)))
    with pytest.raises(DataError, match="150 features the model was trained on, but has 149"):
        fitted.add_label("new", small.X[:1, :-1])
    with pytest.raises(DataError, match="must be known, but 'new' is not; see labels_.names"):
        fitted.remove_label("new")
    assert (fitted.n_labels_, len(fitted.index_)) == (30, 30), "nothing was changed"
    with pytest.raises(DataError, match="labels must have names to come and go"):
        quick(epochs=1).fit(small.X, small.Y).add_label("new", small.X[:1])
