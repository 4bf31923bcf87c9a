"""What network and glas share in going on learning: replayed documents, rejected labels, what is loaded."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import ModelError, ParameterError
from labelspace.models.glas import Glas
from labelspace.models.glas import learning as glas_learning
from labelspace.models.network import Network
from labelspace.models.partial_fit import insert_features, learn_more
from labelspace.models.registry import create
from labelspace.store.state import LoadedBundle, ModelBundle, pack, unpack
from tests.checks import digest, needs_faiss, same_topk
from tests.models.recorded_gradients import first_adagrad_step
from tests.models.test_network import case, finite_differences

SETTINGS = {
    "network": [{"hidden_dim": 32}, {"hidden_dim": 32, "normalize": False, "input_dropout": 0.2}],
    "glas": [
        {"embedding_dim": 32},
        {"embedding_dim": 32, "loss": "softmax", "n_layers": 2, "weight_norm": True},
        {"embedding_dim": 32, "loss": "margin", "regularizer": "gravity", "bias": False},
        {"embedding_dim": 32, "all_labels": False, "n_negatives": 10, "n_hard_negatives": 3, "activation": "linear"},
        {"embedding_dim": 32, "optimizer": "sgd", "learning_rate": 0.003, "feature_learning_rate": 0.5},
    ],
}
ALL = [
    pytest.param(name, settings, id=f"{name}{at}") for name in SETTINGS for at, settings in enumerate(SETTINGS[name])
]
BOTH = [pytest.param(name, SETTINGS[name][0], id=name) for name in SETTINGS]


@pytest.fixture(scope="module")
def stream():
    whole = planted(n=500, d=200, l=20, seed=4)
    has_last = whole.Y[:, 19].toarray().ravel() > 0
    first = np.flatnonzero(~has_last)[:300]
    later = np.setdiff1d(np.arange(500), first)
    return whole.rows(first), whole.rows(later)


def made(name, settings, stream):
    first, _ = stream
    return create(name, **settings).fit(first.X, first.Y[:, :19])


@pytest.mark.parametrize(("name", "settings"), ALL)
def test_learning_is_saved_and_repeated_to_the_byte(name, settings, stream, tmp_path):
    model, (_, later) = made(name, settings, stream), stream
    model.save(tmp_path / "first")
    for at in range(2):
        one = type(model).load(tmp_path / "first")
        learn_more(one, later.X, later.Y)
        learn_more(one, later.X[:20], later.Y[:20])
        one.save(tmp_path / str(at))
    assert digest(tmp_path / "0") == digest(tmp_path / "1")
    top = type(model).load(tmp_path / "0").predict_topk(later.X, 5)
    assert same_topk(top, one.predict_topk(later.X, 5))
    assert np.isfinite(top.scores[top.labels >= 0]).all()
    has_new = later.Y[:, 19].toarray().ravel() > 0
    if settings.get("optimizer") != "sgd":
        assert (top.labels[has_new] == 19).any(axis=1).mean() > 0.5


@pytest.mark.parametrize(("name", "settings"), BOTH)
def test_a_model_without_documents_to_replay_says_so(name, settings, stream, tmp_path):
    model, (_, later) = made(name, settings, stream), stream
    model.replay_ = model.gradient_roots_ = None
    before = model.predict_topk(later.X, 5)
    model.save(tmp_path / "old")
    loaded = type(model).load(tmp_path / "old")
    assert same_topk(loaded.predict_topk(later.X, 5), before)
    with pytest.raises(ParameterError, match="needs documents to replay, but this .* model was saved without any"):
        learn_more(loaded, later.X, later.Y)
    assert same_topk(loaded.predict_topk(later.X, 5), before)


@pytest.mark.parametrize(("name", "settings"), BOTH)
def test_inserted_features_change_no_answer_and_are_learned(name, settings, stream):
    model, (_, later) = made(name, settings, stream), stream
    X = later.X.toarray()
    before, at = model.predict_topk(X, 5), np.array([0, 7, 7, 200])
    insert_features(model, {model.view.name: at})
    model.widths_ = {view: 204 for view in model.widths_}
    wider = np.insert(X, at, 0, axis=1)
    assert same_topk(model.predict_topk(wider, 5), before)
    wider[:, 0] = later.Y[:, 19].toarray().ravel()
    learn_more(model, wider, later.Y)
    row = sp.csr_matrix((np.ones(1, np.float32), ([0], [0])), (1, 204))
    with_it, without = (model.predict_topk(X, 1, allowed=np.arange(20) == 19).scores[0, 0] for X in (row, 0 * row))
    assert with_it > 1.5 * without


@pytest.mark.parametrize(("name", "settings"), BOTH)
@pytest.mark.parametrize(
    ("key", "damage"),
    [
        ("replay_/columns", lambda values: np.full_like(values, 200)),
        ("replay_/labels", lambda values: np.full_like(values, 19)),
        ("replay_/columns", lambda values: values[::-1].copy()),
        ("replay_/labels", lambda values: np.zeros_like(values)),
        ("replay_/starts", lambda values: values[:-1].copy()),
        ("replay_/label_starts", lambda values: values + 1),
        ("replay_/scales", lambda values: np.full_like(values, np.nan)),
        ("replay_/values", lambda values: values.astype(np.int16)),
        ("gradient_roots_/labels", lambda values: -values - 1),
        ("gradient_roots_/features", lambda values: values[1:].copy()),
    ],
)
def test_what_a_stranger_wrote_to_be_replayed_is_refused(name, settings, key, damage, stream, tmp_path):
    model, bundle = made(name, {**settings, "epochs": 1}, stream), ModelBundle()
    packed = pack(model, bundle)
    arrays = {**bundle.arrays, key: damage(bundle.arrays[key])}
    with pytest.raises(ModelError, match=f"{key.partition('/')[0]}.* of a saved model must"):
        unpack(packed, LoadedBundle(arrays, tmp_path.joinpath), type(model))


@pytest.mark.parametrize(("name", "settings"), BOTH)
def test_replayed_numbers_that_overflow_change_nothing(name, settings, stream):
    model, (_, later) = made(name, {**settings, "normalize": False}, stream), stream
    model.replay_ = model.replay_._replace(scales=np.full_like(model.replay_.scales, 3e38))
    before = model.predict_topk(later.X, 5)
    with np.errstate(all="ignore"), pytest.raises(ParameterError, match="must stay finite"):
        learn_more(model, later.X, later.Y)
    assert same_topk(model.predict_topk(later.X, 5), before)


@pytest.mark.parametrize(("name", "settings"), BOTH)
def test_documents_to_replay_take_a_tenth_of_a_model_at_most(name, settings, stream):
    model, (_, later) = made(name, settings, stream), stream
    for _ in range(3):
        kept = sum(part.nbytes for part in model.replay_[:-1])
        assert 0 < kept <= 0.1 * 32 * 219 + 100
        assert model.keep_for_prediction().replay_ is not None, "members of an ensemble go on learning"
        learn_more(model, later.X, later.Y)
    assert model.replay_.n_learned == 300 + 3 * 200


def test_a_step_on_examples_is_the_step_of_the_loss_that_is_known(monkeypatch):
    from labelspace.models.network import HiddenLayerNet
    from labelspace.training.dense_layers import OutputLayer
    from labelspace.training.optimizers import FixedParameter, RowAdagradParameter
    from labelspace.training.replay import Examples
    from labelspace.training.sparse_layers import SparseLayer

    X, Y, weights = case()
    w = {key: value.astype(np.float32) for key, value in weights.items()}
    output = OutputLayer(w["W"].copy(), w["b"].copy())
    output.weights = RowAdagradParameter(output.weights.value, np.zeros(5, np.float32))
    output.bias = RowAdagradParameter(output.bias.value, np.zeros(5, np.float32))
    net = HiddenLayerNet(SparseLayer(w["E"].copy()), FixedParameter(w["c"].copy()), output)
    nothing = sp.csr_matrix(Y.shape, dtype=np.float32)
    everything = Examples(X.astype(np.float32), Y.astype(np.float32), np.arange(9), nothing, np.ones(6, bool), 6)
    net.learn_step(everything, np.arange(6, dtype=np.int32), (0.0, 0.0), (0.1, 0.1), np.random.default_rng(0))
    for key, now in (("E", net.features.vectors), ("W", output.weights.value)):
        gradient = finite_differences(X, Y, weights, key)
        np.testing.assert_allclose(now - w[key], first_adagrad_step(gradient, 0.1), atol=1e-3)
    gradient = finite_differences(X, Y, weights, "b")
    np.testing.assert_allclose(output.bias.value - w["b"], -0.1 * np.sign(gradient), atol=1e-3)
    assert np.array_equal(net.hidden_bias.value, w["c"]), "what all documents share stays"


def test_nothing_but_rejected_labels_lowers_these(stream):
    for model in (made("network", {"hidden_dim": 32}, stream), made("glas", {"embedding_dim": 32}, stream)):
        _, later = stream
        first = model.predict_topk(later.X, 1).labels[:, 0]
        label = int(np.argmax(np.bincount(first)))
        chosen = np.flatnonzero(first == label)
        mask = np.arange(19) == label
        before = model.predict_topk(later.X[chosen], 1, allowed=mask).scores
        rejected = np.zeros((len(chosen), 19), np.float32)
        rejected[:, label] = 1
        n_learned = model.replay_.n_learned
        learn_more(model, later.X[chosen], sp.csr_matrix(rejected.shape), rejected=sp.csr_matrix(rejected))
        assert (model.predict_topk(later.X[chosen], 1, allowed=mask).scores < before).mean() > 0.9
        assert model.replay_.n_learned == n_learned, "documents of which little is known are not replayed"


def test_glas_places_new_labels_and_leaves_out_removed_ones(stream, tmp_path):
    first, later = stream
    model = Glas(embedding_dim=32).fit(first.X, first.Y[:, :19])
    model.removed_ = np.array([3], np.int32)
    model.index_.remove([3])
    index, background = model.index_, model.background_
    vectors = index.vectors(index.ids).copy()
    learn_more(model, later.X, later.Y)
    assert np.array_equal(index.vectors(index.ids), vectors), "the index before is another one"
    assert sorted(model.index_.ids.tolist()) == [label for label in range(20) if label != 3]
    assert 3 not in model.predict_topk(later.X, 20).labels
    assert model.background_.shape == background.shape
    assert (model.background_ != background).any()
    model.save(tmp_path / "model")
    again = Glas.load(tmp_path / "model")
    learn_more(again, later.X, later.Y)
    assert 3 not in again.index_.ids


def test_glas_reads_some_labels_only_where_they_are_many(stream, monkeypatch):
    first, later = stream
    model = Glas(embedding_dim=32, all_labels=False, n_negatives=3, n_hard_negatives=2).fit(first.X, first.Y)
    found = []
    begin, n_known = glas_learning.partial_training, len(model.index_)
    monkeypatch.setattr(glas_learning, "partial_training", lambda *given: found.append(begin(*given)) or found[-1])
    model.replay_ = model.replay_.of(first.X[:1], first.Y[:1], 1000, np.random.default_rng(0))
    learn_more(model, later.X[:1], later.Y[:1])
    training = found[0]
    needed = set(later.Y[:1].indices.tolist()) | set(first.Y[:1].indices.tolist())
    assert needed <= set(training.labels.tolist())
    assert len(training.labels) < 19
    assert training.weights.sum() == pytest.approx(n_known), "the sampled ones stand for all others"


@needs_faiss
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_an_approximate_index_gets_new_embeddings(kind, stream, tmp_path):
    first, later = stream
    model = Glas(embedding_dim=32, index=kind).fit(first.X, first.Y[:, :19])
    before = model.index_.search(np.eye(33)[:3], 3)
    index = model.index_
    learn_more(model, later.X, later.Y)
    assert same_topk(index.search(np.eye(33)[:3], 3), before)
    assert 19 in model.index_.ids
    model.save(tmp_path / "model")
    assert same_topk(Glas.load(tmp_path / "model").predict_topk(later.X, 3), model.predict_topk(later.X, 3))


def test_network_has_no_state_that_grows_with_what_it_learned(stream):
    model, (_, later) = Network(hidden_dim=16).fit(stream[0].X, stream[0].Y), stream
    sizes = []
    for _ in range(3):
        learn_more(model, later.X, later.Y)
        sizes.append(model.replay_.n)
    assert max(sizes) <= 2 * min(sizes)
