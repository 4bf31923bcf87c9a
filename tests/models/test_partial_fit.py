"""What every method keeps that goes on learning; found by discovery."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import DataError, ParameterError
from labelspace.models.base import Model
from labelspace.models.capabilities import PartialFit, methods_with
from labelspace.models.partial_fit import learn_more
from labelspace.models.registry import create
from labelspace.types import Dataset, LabelSpace
from tests.checks import digest, precision_at_1, same_topk
from tests.models.test_contract import Inputs, made, marked
from tests.models.variants import CONVERGED

SETTINGS = {**CONVERGED, "pdsparse": {"per_label": True}}
"""With which a method can go on learning, and has learned enough for it to matter."""
N_KNOWN = 19  # labels of the training documents; one more comes later


class Stream(NamedTuple):
    """Documents to train on, documents to learn later, which have a new label too, and documents to test with."""

    train: Dataset
    new: Dataset
    test: Dataset


@pytest.fixture(scope="module")
def stream() -> Stream:
    whole = planted(n=500, d=300, l=N_KNOWN + 1, texts=True, seed=7)
    frequency = np.bincount(whole.Y.indices)
    fresh = int(np.argsort(frequency)[N_KNOWN // 2])  # neither frequent nor rare
    order = [label for label in range(N_KNOWN + 1) if label != fresh] + [fresh]
    Y = whole.Y[:, order].tocsr()
    Y.sort_indices()
    names = [whole.labels.names[label] for label in order]
    has_fresh = Y[:, N_KNOWN].toarray().ravel() > 0
    early = np.arange(500) < 300

    def documents(chosen, n_labels):
        rows = np.flatnonzero(chosen)
        texts = [whole.texts[row] for row in rows]
        return Dataset(Y[rows, :n_labels].tocsr(), LabelSpace(names[:n_labels]), X=whole.X[rows], texts=texts)

    late = np.arange(500) >= 420
    return Stream(
        documents(early & ~has_fresh, N_KNOWN),
        documents(~(early & ~has_fresh) & ~late, N_KNOWN + 1),
        documents(late, N_KNOWN + 1),
    )


@pytest.fixture(params=[marked(name) for name in methods_with(PartialFit)])
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def trained() -> dict:
    return {}


@pytest.fixture
def fitted(name, stream, trained) -> tuple[Model, Inputs]:
    """A fitted model and its inputs; trained once, and each test has its own."""
    if name not in trained:
        model = made(name, **SETTINGS.get(name, {}))
        inputs = Inputs(model, stream.train)
        model.fit(inputs(stream.train), stream.train.Y, labels=stream.train.labels)
        trained[name] = model, inputs
    model, inputs = trained[name]
    return deepcopy(model), inputs


def learn(model, inputs, documents, **given):
    labels = model.labels_.extended(documents.labels.names)
    return learn_more(model, inputs(documents), documents.Y, labels, **given)


def saved(model, folder):
    model.save(folder)
    return digest(folder)


def test_documents_and_labels_are_learned(fitted, stream):
    model, inputs = fitted
    known = Dataset(stream.test.Y[:, :N_KNOWN].tocsr(), stream.train.labels, X=stream.test.X, texts=stream.test.texts)
    before = precision_at_1(model, known, inputs(stream.test))
    left_out = learn(model, inputs, stream.new)
    assert all(isinstance(part, str) for part in left_out)
    assert model.n_labels_ == N_KNOWN + 1
    assert list(model.labels_.names) == list(stream.new.labels.names)
    assert model.labels_.n_documents == len(stream.train) + len(stream.new)
    counts = np.bincount(stream.new.Y.indices)
    counts[:N_KNOWN] += np.bincount(stream.train.Y.indices, minlength=N_KNOWN)
    assert model.labels_.counts.tolist() == counts.tolist()
    assert precision_at_1(model, stream.test, inputs(stream.test)) > before - 0.03


def test_a_new_label_is_found(fitted, stream):
    model, inputs = fitted
    learn(model, inputs, stream.new)
    top = model.predict_topk(inputs(stream.test), 5)
    has_it = stream.test.Y[:, N_KNOWN].toarray().ravel() > 0
    found = (top.labels == N_KNOWN).any(axis=1)
    assert has_it.sum() >= 5
    assert found[has_it].mean() >= 0.6
    assert found[has_it].mean() > found[~has_it].mean() + 0.2


def test_a_rejected_label_falls(fitted, stream):
    model, inputs = fitted
    first = model.predict_topk(inputs(stream.test), 1).labels[:, 0]
    label = int(np.argmax(np.bincount(first[first >= 0])))
    shown = stream.test.rows(np.flatnonzero(first == label))
    before = scores_of(model, inputs(shown), label)
    rejected = sp.csr_matrix(np.tile(np.arange(N_KNOWN) == label, (len(shown), 1)).astype(np.float32))
    nothing = sp.csr_matrix(rejected.shape, dtype=np.float32)
    learn_more(model, inputs(shown), nothing, rejected=rejected)
    after = scores_of(model, inputs(shown), label)
    assert (after <= before + 1e-6).mean() > 0.9
    assert after.mean() < before.mean()


def scores_of(model, X, label):
    top = model.predict_topk(X, model.n_labels_)
    return np.where(top.labels == label, top.scores, 0).sum(axis=1)


def test_the_same_documents_give_the_same_bytes_whatever_the_number_of_threads(fitted, stream, tmp_path, monkeypatch):
    model, inputs = fitted
    digests = []
    for threads in ("1", "2", "2"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        own = deepcopy(model)
        learn(own, inputs, stream.new)
        digests.append(saved(own, tmp_path / str(len(digests))))
    assert digests[0] == digests[1] == digests[2]


def test_a_failing_step_leaves_the_model_as_it_was(fitted, stream, tmp_path, monkeypatch):
    model, inputs = fitted
    before = saved(model, tmp_path / "before")
    top = model.predict_topk(inputs(stream.test), 5)
    own = type(model).partial_fit

    def interrupted(self, new):
        own(self, new)
        if self is model:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "partial_fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learn(model, inputs, stream.new)
    assert same_topk(model.predict_topk(inputs(stream.test), 5), top)
    assert saved(model, tmp_path / "after") == before
    learn(model, inputs, stream.new)
    assert saved(model, tmp_path / "learned") != before


def test_a_loaded_model_learns_the_same_and_is_saved_again(fitted, stream, tmp_path):
    model, inputs = fitted
    before = saved(model, tmp_path / "first")
    loaded = type(model).load(tmp_path / "first")
    for number, one in enumerate((model, loaded)):
        learn(one, inputs, stream.new)
        one.save(tmp_path / f"learned {number}")
    assert digest(tmp_path / "learned 0") == digest(tmp_path / "learned 1")
    assert digest(tmp_path / "first") == before
    again = type(model).load(tmp_path / "learned 0")
    X = inputs(stream.test)
    assert same_topk(again.predict_topk(X, 5), model.predict_topk(X, 5))
    assert list(again.labels_.names) == list(stream.new.labels.names)
    learn(again, inputs, stream.new)


def test_k_over_the_number_of_labels_is_padded_and_a_mask_is_of_all_labels(fitted, stream):
    model, inputs = fitted
    learn(model, inputs, stream.new)
    X = inputs(stream.test)
    top = model.predict_topk(X, 100)
    assert top.labels.shape == (len(stream.test), 100)
    assert (top.labels[:, N_KNOWN + 1 :] == -1).all()
    assert top.labels.max() == N_KNOWN
    only = np.arange(N_KNOWN + 1) == N_KNOWN
    assert set(model.predict_topk(X, 3, allowed=only).labels.ravel().tolist()) <= {-1, N_KNOWN}
    with pytest.raises(ParameterError, match=f"one for each of {N_KNOWN + 1} labels"):
        model.predict_topk(X, 3, allowed=np.ones(N_KNOWN, bool))


def test_a_batch_equals_single_rows_afterwards(fitted, stream):
    model, inputs = fitted
    learn(model, inputs, stream.new)
    X = inputs(stream.test)
    batch = model.predict_topk(X, 5)
    for row in range(0, len(stream.test), 19):
        single = model.predict_topk(inputs(stream.test.rows([row])), 5)
        assert np.array_equal(single.labels[0], batch.labels[row])
        np.testing.assert_allclose(single.scores[0], batch.scores[row], rtol=1e-6)


def test_documents_without_features_or_labels_are_allowed(fitted, stream, tmp_path):
    model, inputs = fitted
    part = stream.new.rows(range(6))
    texts = ["", *part.texts[1:]]
    X = sp.vstack([sp.csr_matrix((1, 300), dtype=np.float32), part.X[1:]]).tocsr()
    Y = part.Y.tolil()
    Y[2:4] = 0
    documents = Dataset(Y.tocsr(), part.labels, X=X, texts=texts)
    for _ in range(2):
        learn(model, inputs, documents)
    assert not np.isnan(model.predict_topk(inputs(documents), 5).scores).any()
    model.save(tmp_path / "model")  # which checks that it can be loaded


def test_a_single_document_suffices_and_inputs_stay_as_they_are(fitted, stream, tmp_path):
    model, inputs = fitted
    one = stream.new.rows([0])
    X, Y = one.X.copy(), one.Y.copy()
    learn(model, inputs, one)
    assert (one.X != X).nnz == 0
    assert (one.Y != Y).nnz == 0
    before = saved(model, tmp_path / "before")
    one.X.data[:] = 7
    one.Y.data[:] = 0
    assert saved(model, tmp_path / "after") == before, "nothing of the caller's is kept"


def test_a_new_label_may_come_without_documents(fitted, stream, tmp_path):
    model, inputs = fitted
    learn(model, inputs, stream.new.rows([]))
    assert model.n_labels_ == N_KNOWN + 1
    assert model.predict_topk(inputs(stream.test), 5).labels.shape == (len(stream.test), 5)
    model.save(tmp_path / "model")


def test_documents_may_have_further_labels_than_those_given(fitted, stream, tmp_path):
    model, inputs = fitted
    learn(model, inputs, stream.new, complete=False)
    top = model.predict_topk(inputs(stream.test), 5)
    assert not np.isnan(top.scores).any()
    model.save(tmp_path / "model")


def test_what_cannot_be_learned_is_refused_and_changes_nothing(fitted, stream, tmp_path):
    model, inputs = fitted
    before = saved(model, tmp_path / "before")
    X, Y, labels = inputs(stream.new), stream.new.Y, stream.new.labels
    with pytest.raises(DataError, match="known labels, but has 18"):
        learn_more(model, X, Y[:, :18], LabelSpace(labels.names[:18]))
    with pytest.raises(DataError, match="cannot have a label that is rejected"):
        learn_more(model, X, Y, labels, rejected=Y)
    with pytest.raises(DataError, match="3 names for 20 columns"):
        learn_more(model, X, Y, LabelSpace(labels.names[:3]))
    with pytest.raises(DataError, match="one row per document"):
        learn_more(model, X, Y[:-1], labels)
    assert saved(model, tmp_path / "after") == before


def test_a_method_that_cannot_go_on_names_those_that_can(stream):
    model = create("popular").fit(stream.train.X, stream.train.Y)
    with pytest.raises(ParameterError, match="needs a method that can go on learning, but popular cannot; .*neighbors"):
        learn_more(model, stream.new.X, stream.new.Y)


@pytest.mark.slow
def test_a_member_that_was_saved_without_what_it_needs_is_named_and_stays_as_it_was(stream):
    model = create("blend", members="neighbors,lexical", n_folds=2, boosting_rounds=20)
    inputs = Inputs(model, stream.train)
    model.fit(inputs(stream.train), stream.train.Y, labels=stream.train.labels)
    neighbors, lexical = model.members_
    lexical.counts_ = None
    assert learn(model, inputs, stream.new) == ["lexical"]
    neighbors, lexical = model.members_
    assert (neighbors.n_labels_, lexical.n_labels_) == (N_KNOWN + 1, N_KNOWN)
    assert (model.predict_topk(inputs(stream.test), 5).labels == N_KNOWN).any()
