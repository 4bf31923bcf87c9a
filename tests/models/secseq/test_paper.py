"""The preset ``paper`` of secseq and mlc2seq, and each of its choices alone."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("torch")

from labelspace.errors import ModelError, ParameterError  # noqa: E402
from labelspace.models.secseq import Mlc2Seq, SeCSeq  # noqa: E402
from labelspace.store import sealed  # noqa: E402
from tests.checks import same_topk  # noqa: E402
from tests.models.secseq.small_models import TINY, fit, inputs, tiny  # noqa: E402

SMALL = {"code_size": 4, "code_length": 3, "beam_size": 4, "max_sequence": 6}


def paper(model=SeCSeq, **params):
    sizes = {key: value for key, value in {**TINY, **SMALL}.items() if key in model.params}
    return model().set_params(**{**model.presets["paper"], **sizes, **params})


@pytest.mark.parametrize("model", [SeCSeq, Mlc2Seq])
def test_a_preset_lists_parameters_that_differ_from_the_defaults_and_fit_together(model):
    preset = model.presets["paper"]
    assert all(preset[key] != model.defaults()[key] for key in preset)
    model(**preset).check_params()
    for key, value in preset.items():  # the walk from our default: each choice alone, with what it needs
        needs = {"target": "sequence"}
        if key == "shared_embeddings":
            needs["decoder"] = "gru"
        if key == "embedding_dim":
            needs |= {"coding": "projection", "center_labels": False}
        model(**{**needs, key: value}).check_params()


def test_the_weights_of_the_paper_do_not_grow_with_the_labels(few):
    many = sp.hstack([few.Y] * 4).tocsr()
    reports = [paper(encoder="bag", epochs=1).fit(few.X, Y).report() for Y in (few.Y, many)]
    assert reports[0]["parameters"] == reports[1]["parameters"] > reports[0]["network_parameters"] > 0


@pytest.mark.parametrize(("model", "trees"), [(SeCSeq, 2), (Mlc2Seq, 1)])
@pytest.mark.parametrize("decoding", ["beam", "sampling"])
def test_a_model_of_the_paper_counts_labels_and_is_saved_and_loaded(few, tmp_path, model, trees, decoding):
    more = {"n_estimators": trees} if model is SeCSeq else {}
    fitted = paper(model, decoding=decoding, **more)
    (X,) = inputs(fitted, few)
    top = fitted.fit(X, few.Y).predict_topk(X, 12)
    scores = top.scores[top.labels >= 0]
    assert len(scores) > 90
    assert np.array_equal(scores, scores.round())
    assert (scores >= 1).all()
    fitted.save(tmp_path / "model")
    assert same_topk(model.load(tmp_path / "model").predict_topk(X, 12), top)
    if trees == 1:
        return
    total = np.zeros((90, 12))
    for tree in range(trees):
        single = model.load(tmp_path / "model")
        for name in ("embeddings_", "embedding_scales_", "weights_", "digits_", "label_shares_"):
            setattr(single, name, getattr(fitted, name)[tree : tree + 1])
        one = single.predict_topk(X, 12)
        rows, ranks = np.nonzero(one.labels >= 0)
        total[rows, one.labels[rows, ranks]] += one.scores[rows, ranks]
    rows, ranks = np.nonzero(top.labels >= 0)
    assert np.array_equal(total[rows, top.labels[rows, ranks]], top.scores[rows, ranks]), "the sum over the trees"
    assert (total > 0).sum() == len(rows)


@pytest.mark.parametrize("decoder", ["gru", "lstm"])
def test_the_number_of_weights_does_not_depend_on_the_number_of_labels_and_of_digits(few, decoder):
    many = sp.hstack([few.Y] * 10).tocsr()
    reports = [
        paper(encoder="bag", decoder=decoder, epochs=1, code_length=length).fit(few.X, Y).report()
        for Y, length in ((few.Y, 3), (many, 3), (many, 40))
    ]
    assert len({report["network_parameters"] for report in reports}) == 1
    assert [report["codes"][0]["n_labels"] for report in reports] == [12, 120, 120]


@pytest.mark.parametrize(
    "params",
    [
        {"decoder": "gru"},
        {"decoder": "lstm", "shared_outputs": True, "decoding": "sampling"},
        {"decoder": "gru", "shared_embeddings": True, "scores": "count"},
        {"constrained": False},
        {"constrained": False, "shared_outputs": True, "leaf_histogram": "documents"},
        {"masked_softmax": False, "repeated_codes": True, "init_biases": False},
        {"max_sequence": 1},
        {"label_vectors": "instances", "code_size": 2, "code_length": 20},
    ],
    ids=str,
)
def test_choices_can_be_made_one_by_one(few, params):
    model = fit(tiny(**{"target": "sequence", "max_sequence": 5, **params}), few)
    top = model.predict_topk(few.X, 12)
    assert (top.labels[:, 0] >= 0).any()
    assert top.labels.max() < 12


def test_shared_outputs_work_with_sets(few):
    one, other = (fit(tiny(shared_outputs=shared), few) for shared in (True, False))
    assert one.weights_.size == other.weights_.size - 8 * (8 + 1), "one output layer less"
    assert (one.predict_topk(few.X, 3).labels >= 0).all()


def test_longer_sequences_than_50_labels_are_learned(few):
    Y = sp.csr_matrix(np.ones((90, 70), np.float32))
    tokens = {}
    for length in (50, 100):
        progress = []
        model = tiny(target="sequence", epochs=1, max_sequence=length, code_size=16)
        model.fit(few.X, Y, progress=lambda *args, to=progress: to.append(args))
        tokens[length] = progress[-1][2]
    assert tokens == {50: 90 * 50 * 2, 100: 90 * 70 * 2}


def test_vectors_of_a_file_make_codes(few, tmp_path):
    vectors = np.repeat(np.eye(3, 5), 4, axis=0) + 0.01 * np.random.default_rng(0).random((12, 5))
    np.save(tmp_path / "v.npy", vectors)
    for dim in (None, 5):
        model = fit(tiny(label_vectors=str(tmp_path / "v.npy"), embedding_dim=dim, code_size=3, epochs=1), few)
        first = model.digits_[0, :, 0].reshape(3, 4)
        assert (first == first[:, :1]).all()
        assert len(set(first[:, 0])) == 3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"decoder": "gru"}, "decoder of secseq has an effect only with target=sequence, but target is set; leave"),
        ({"shared_embeddings": True, "target": "sequence"}, "decoder=gru or lstm, but decoder is gated"),
        ({"embedding_dim": None}, "embedding_dim=none with label_vectors=documents needs coding=projection"),
        ({"label_vectors": "file.txt"}, "label_vectors of secseq must be one of documents, .*, or FILE.npy, but is"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(few, params, message):
    with pytest.raises(ParameterError, match=message):
        fit(SeCSeq(**params), few)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "set"}, "must have shape"),
        ({"shared_outputs": True}, "must have shape"),
        ({"decoder": "gru"}, "must have shape"),
        ({"decoder": "lstm"}, "must have shape"),
        ({"embedding_dim": None}, "must have parameters that go together"),
        ({"decoder": "transformer"}, "decoder of secseq must be one of gated, gru, lstm"),
        ({"max_sequence": 10**9}, "max_sequence of secseq must be an integer from 1 to 10000"),
    ],
    ids=str,
)
def test_a_saved_model_with_other_settings_than_its_weights_is_refused(few, tmp_path, change, message):
    fit(tiny(epochs=1, target="sequence"), few).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    manifest = json.loads(path.read_text())
    manifest["model"]["params"] |= change
    path.write_text(json.dumps(sealed(manifest)))
    with pytest.raises(ModelError, match=message):
        SeCSeq.load(tmp_path / "model")
