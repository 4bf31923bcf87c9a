import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from labelspace.errors import DataError, MissingExtraError  # noqa: E402
from labelspace.features.views import ViewTransformer  # noqa: E402
from labelspace.labels.codes import QUANTIZERS, SCHEMES, CodeTree  # noqa: E402
from labelspace.models.secseq import decoding  # noqa: E402
from labelspace.models.secseq.model import SeCSeq  # noqa: E402
from labelspace.types import Dataset, LabelSpace  # noqa: E402
from tests.checks import same_topk  # noqa: E402
from tests.models.secseq.small_models import PAIRS, SIZES, TARGETS, fit, inputs, tiny  # noqa: E402


@pytest.fixture(scope="module")
def trained(documents):
    """A model for each encoder and target, trained once, and what it reads of the test documents."""
    models = {}

    def train(encoder, target):
        if (encoder, target) not in models:
            model = SeCSeq().set_params(encoder=encoder, target=target, epochs=6, **SIZES)
            X, X_test = inputs(model, *documents)
            models[encoder, target] = model.fit(X, documents[0].Y), X_test
        return models[encoder, target]

    return train


def hits(top, Y):
    """P@1."""
    return Y[np.arange(Y.shape[0]), top.labels[:, 0]].mean()


# ---- prediction


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "target"), PAIRS)
@pytest.mark.parametrize("method", ["beam", "sampling"])
def test_planted_labels_are_predicted(documents, trained, encoder, target, method):
    model, X = trained(encoder, target)
    top = model.set_params(decoding=method).predict_topk(X, 20)
    assert hits(top, documents[1].Y) > 0.8
    assert 7 not in top.labels, "it has no training documents"
    assert (top.labels[:, -1] == -1).all()
    scores = top.scores[top.labels >= 0]
    assert (scores > 0).all()
    assert (scores <= 1 + 1e-5).all()


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "target"), PAIRS)
def test_predictions_do_not_depend_on_threads_and_blocks(trained, monkeypatch, encoder, target):
    model, X = trained(encoder, target)
    for method in ("beam", "sampling"):
        model.set_params(decoding=method)
        expected = model.predict_topk(X, 5)
        monkeypatch.setattr(decoding, "ROW_BLOCK", 7)
        blocks = []
        for threads in ("1", "2"):
            monkeypatch.setenv("LABELSPACE_THREADS", threads)
            blocks.append(model.predict_topk(X, 5))
        monkeypatch.undo()
        assert same_topk(*blocks)
        agree = expected.labels == blocks[0].labels
        assert agree.mean() > 0.98, "but for the last bits of sums"
        assert np.allclose(expected.scores[agree], blocks[0].scores[agree], atol=1e-4)


@pytest.mark.slow
def test_the_score_over_several_trees_is_their_mean(documents):
    train, test = documents
    params = {**SIZES, "epochs": 5, "coding": "projection", "code_size": 3}  # many labels share a code
    forest = fit(SeCSeq().set_params(n_estimators=3, **params), train)
    single = []
    for tree in range(3):
        model = fit(SeCSeq().set_params(**{**params, "epochs": 1}), train)
        for name in ("embeddings_", "embedding_scales_", "weights_", "digits_", "label_shares_"):
            setattr(model, name, getattr(forest, name)[tree : tree + 1])
        single.append(model.predict_topk(test.X, 20))
    top = forest.predict_topk(test.X, 5)
    assert hits(top, test.Y) >= np.mean([hits(one, test.Y) for one in single])
    scores = np.zeros((3, 60, 20))
    for tree, one in enumerate(single):
        rows, ranks = np.nonzero(one.labels >= 0)
        scores[tree, rows, one.labels[rows, ranks]] = one.scores[rows, ranks]
    mean = scores.mean(axis=0)
    assert np.allclose(np.take_along_axis(mean, top.labels, 1), top.scores, atol=1e-5)
    assert np.allclose(np.sort(mean)[:, : -5 - 1 : -1], top.scores, atol=1e-5)


def test_several_trees_list_at_least_k_labels(few, monkeypatch):
    monkeypatch.setattr(decoding, "LABELS_PER_TREE", 2)
    model = fit(tiny(n_estimators=2), few)
    assert (model.predict_topk(few.X, 10).labels >= 0).all()


def test_decoding_parameters_can_be_changed_after_training(few):
    model = fit(tiny(), few)
    wide = model.predict_topk(few.X, 12)
    narrow = model.set_params(beam_size=1).predict_topk(few.X, 12)
    assert (narrow.labels >= 0).sum() < (wide.labels >= 0).sum()
    sampled = model.set_params(decoding="sampling", n_samples=4).predict_topk(few.X, 12)
    assert set(np.unique(sampled.scores[sampled.labels >= 0])) <= {0.25, 0.5, 0.75, 1.0}
    assert not same_topk(sampled, model.set_params(random_state=5).predict_topk(few.X, 12))


@pytest.mark.parametrize("target", TARGETS)
def test_the_parameters_decide_how_is_decoded(few, monkeypatch, target):
    calls, model = [], fit(tiny(target=target, epochs=1, beam_size=3, n_samples=7, random_state=4), few)

    def spy(name, function):
        return lambda *args: calls.append((name, *args[-2:])) or function(*args)  # generate: options, count

    def spy_on_kernel(name, function):  # after the documents and the table: softmax, width, seed if any, and outputs
        return lambda *args: calls.append((name, *args[2:-2], args[-1].shape[1])) or function(*args)

    monkeypatch.setattr(decoding, "search_codes", spy_on_kernel("beam search", decoding.search_codes))
    monkeypatch.setattr(decoding, "sample_codes", spy_on_kernel("sample", decoding.sample_codes))
    monkeypatch.setattr(decoding, "generate_sequences", spy("generate", decoding.generate_sequences))
    for method in ("beam", "sampling"):
        model.set_params(decoding=method).predict_topk(few.X[:5], 2)
    if target == "sequence":
        assert calls == [("generate", (3, 100, None), False), ("generate", (7, 100, 4), False)]
    else:
        softmax = target == "label"
        assert calls == [("beam search", softmax, 3, 2), ("sample", softmax, 7, 4, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_document_has_a_label_with_a_beam_of_one(few, target):
    model = fit(tiny(target=target, beam_size=1, epochs=6, learning_rate=0.05), few)
    assert (model.predict_topk(few.X, 1).labels >= 0).all()


# ---- codes


@pytest.mark.parametrize("target", TARGETS)
def test_labels_that_share_a_code_have_their_shares(few, target):
    model = fit(tiny(target=target, code_size=2, epochs=1), few)
    leaf, Y = CodeTree.from_codes(model.label_codes()[0]).leaf_of, few.Y.toarray()
    for label in range(12):
        sharing = Y[:, leaf == leaf[label]]
        total = sharing.sum() if target == "label" else sharing.any(axis=1).sum()
        assert model.label_shares_[0, label] == pytest.approx(Y[:, label].sum() / total)


def test_label_codes_and_trees_are_those_of_the_model(few):
    model = fit(tiny(n_estimators=2, epochs=1, code_size=3), few)
    codes, trees = model.label_codes(), model.label_trees()
    assert len(codes) == len(trees) == 2
    for tree in range(2):
        assert codes[tree].code_size == 3
        assert np.array_equal(codes[tree].digits, model.digits_[tree])
        expected = CodeTree.from_codes(codes[tree]).to_nodes()
        assert np.array_equal(trees[tree].first_child, expected.first_child)
        assert sorted(trees[tree].label[trees[tree].label >= 0]) == list(range(12))
    assert not np.array_equal(codes[0].digits, codes[1].digits)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", ["beam", "sampling"])
def test_a_single_label_is_certain(few, target, method):
    model = tiny(target=target, decoding=method).fit(few.X, np.ones((90, 1)))
    top = model.predict_topk(few.X[:3], 2)
    assert top.labels.tolist() == [[0, -1]] * 3
    assert top.scores[:, 0] == pytest.approx([1] * 3, abs=0.5 if target == "sequence" else 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_there_may_be_more_labels_than_codes(documents, target):
    """Four codes for 20 labels: of labels that share a code the frequent ones are first."""
    train, test = documents
    model = fit(SeCSeq().set_params(target=target, epochs=5, **{**SIZES, "code_size": 2}), train)
    assert model.report()["codes"][0]["codes"] == 4
    top = model.predict_topk(test.X, 20)
    assert 7 not in top.labels
    assert hits(top, test.Y) > 0.35
    counts = train.Y.sum(axis=0).A1
    leaf = CodeTree.from_codes(model.label_codes()[0]).leaf_of
    for row in top.labels:
        for sharing in (row[(leaf[row] == code) & (row >= 0)] for code in set(leaf)):
            assert (np.diff(counts[sharing]) <= 0).all()


@pytest.mark.parametrize(
    ("source", "encoder"),
    [("documents", "bag"), ("walks", "bag"), ("text", "bag"), ("sentences", "bag")]
    + [("documents", "gru"), ("walks", "convolution")],
)
def test_label_embeddings_of_every_source_make_codes(few, monkeypatch, source, encoder):
    def embed_texts(texts):
        return np.array([[text.count(letter) for letter in "0123456789"] for text in texts], np.float32)

    monkeypatch.setitem(sys.modules, "labelspace.features.embeddings", SimpleNamespace(embed_texts=embed_texts))
    model = fit(tiny(label_vectors=source, encoder=encoder, epochs=1), few, labels=few.labels)
    assert len(np.unique(model.digits_[0], axis=0)) == 12


def test_label_embeddings_of_names_need_names(few):
    with pytest.raises(DataError, match="label_vectors=text needs the names of the labels, but labels is None"):
        fit(tiny(label_vectors="text"), few)


@pytest.mark.parametrize("coding", SCHEMES)
@pytest.mark.parametrize("quantizer", QUANTIZERS)
def test_codes_of_every_scheme_can_be_learned(few, coding, quantizer):
    model, same = (fit(tiny(coding=coding, quantizer=quantizer, epochs=1), few) for _ in range(2))
    assert (model.digits_ == same.digits_).all()
    assert model.predict_topk(few.X[:5], 3).labels.max() < 12


def test_any_seed_below_2_to_the_31_is_accepted(few):
    model = fit(tiny(random_state=2**31 - 1, epochs=1, n_estimators=2, n_samples=100), few)
    for method in ("beam", "sampling"):
        assert (model.set_params(decoding=method).predict_topk(few.X[:5], 1).labels >= 0).all()
    model = fit(tiny(random_state=2**31 - 1, epochs=1, target="sequence", decoding="sampling"), few)
    assert (model.predict_topk(few.X[:5], 1).labels >= 0).all()


# ---- size


@pytest.mark.parametrize("target", TARGETS)
def test_the_number_of_weights_does_not_depend_on_the_number_of_labels(few, target):
    """Ten times the labels, the same features."""
    many = sp.hstack([few.Y] * 10).tocsr()
    reports = [tiny(target=target, epochs=1).fit(few.X, Y).report() for Y in (few.Y, many)]
    assert reports[0]["parameters"] == reports[1]["parameters"]
    assert reports[0]["network_parameters"] == reports[1]["network_parameters"] > 0
    assert reports[0]["parameters"] - reports[0]["network_parameters"] == 60 * 8
    assert [report["codes"][0]["n_labels"] for report in reports] == [12, 120]


def test_the_report_counts_all_trees(few):
    one, two = (fit(tiny(n_estimators=trees, epochs=1), few).report() for trees in (1, 2))
    assert two["parameters"] == 2 * one["parameters"]
    assert len(two["codes"]) == 2


# ---- inputs


def test_the_encoder_decides_which_views_are_read(few):
    def names(**params):
        return [(view.name, view.training_only) for view in tiny(**params).views(few)]

    assert names() == names(label_vectors="walks") == [("words", False)]
    assert names(encoder="gru") == [("sequences", False), ("words", True)], "the words for the codes"
    assert names(encoder="convolution", label_vectors="walks") == [("sequences", False)]


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_features_for_an_encoder_of_words_are_refused(few, encoder):
    model = tiny(encoder=encoder, epochs=1, label_vectors="walks", patience=1)
    message = f"encoder={encoder} reads words in order, but X holds features; give texts, or set encoder=bag"
    for X in (few.X, few.X.toarray()):
        with pytest.raises(DataError, match=message):
            model.fit(X, few.Y)
    with pytest.raises(DataError, match=message):
        fit(model, few, validation=(few.X, few.Y))
    fit(model, few)
    with pytest.raises(DataError, match=message):
        model.predict_topk(few.X)


def test_texts_for_an_encoder_of_features_are_refused(few):
    for model in (tiny(), tiny(label_vectors="walks")):
        with pytest.raises(DataError, match="reads the view 'words' .* but X holds texts .* use labelspace.Tagger"):
            model.fit(few.texts, few.Y)
    with pytest.raises(DataError, match="reads the view 'words' .* but X holds texts"):
        fit(tiny(epochs=1), few).predict_topk(few.texts)


@pytest.mark.parametrize(("encoder", "target"), [("gru", "sequence"), ("gru", "set"), ("convolution", "label")])
def test_texts_without_words_and_with_unknown_words_are_accepted(few, encoder, target):
    texts = ["", *few.texts[1:50], "...", *few.texts[51:]]
    model = tiny(encoder=encoder, target=target, epochs=1)
    views = ViewTransformer(model.views(few))
    model.fit(views.fit_transform(texts), few.Y)
    top = model.predict_topk(views.transform(["", "never seen words", texts[1]]), 3)
    assert (top.labels[:, 0] >= 0).all()
    assert not np.isnan(top.scores).any()


def test_texts_that_share_no_word_are_accepted():
    texts = ["alpha", "beta", "gamma"]
    documents = Dataset(sp.identity(3, np.float32, "csr"), LabelSpace.numbered(3), texts=texts)
    model = tiny(encoder="gru")
    views = ViewTransformer(model.views(documents))
    model.fit(views.fit_transform(texts), documents.Y)
    assert len(np.unique(model.digits_[0], axis=0)) == 3
    assert (model.predict_topk(views.transform(["alpha", "delta"]), 3).labels[:, 0] >= 0).all()


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_the_order_of_words_matters(few, encoder):
    model = tiny(encoder=encoder)
    reversed_texts = [" ".join(reversed(text.split())) for text in few.texts]
    X, turned = inputs(model, few, Dataset(few.Y, few.labels, texts=reversed_texts))
    model.fit(X, few.Y)
    assert not same_topk(model.predict_topk(X, 3), model.predict_topk(turned, 3))


# ---- without torch


def test_a_missing_torch_names_the_extra(few, tmp_path, monkeypatch):
    fit(tiny(epochs=1), few).save(tmp_path / "model")
    for name in [name for name in sys.modules if name.startswith("labelspace.")]:
        if hasattr(sys.modules[name], "torch"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    missing = r"this needs the package 'torch', which is not installed; run: pip install 'labelspace\[neural\]'"
    with pytest.raises(MissingExtraError, match=missing):
        fit(tiny(), few)
    model = SeCSeq.load(tmp_path / "model")
    with pytest.raises(MissingExtraError, match=missing):
        model.predict_topk(few.X, 2)
    assert model.report()["parameters"] > 0, "the report needs no torch"
    assert len(model.label_codes()) == len(model.label_trees()) == 1


@pytest.mark.parametrize("normalize", [True, False])
def test_documents_are_normalized_or_used_as_given(few, normalize):
    scaled = sp.csr_matrix(few.X.multiply(np.linspace(0.5, 2, len(few))[:, None]), dtype=np.float32)
    model = tiny(normalize=normalize, epochs=1).fit(few.X, few.Y)
    scores = [model.predict_topk(X, 3).scores for X in (few.X, scaled)]
    assert np.allclose(*scores, atol=1e-4) == normalize
