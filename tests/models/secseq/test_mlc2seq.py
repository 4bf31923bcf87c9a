import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("torch")

from labelspace.errors import DataError, ParameterError  # noqa: E402
from labelspace.models.secseq.model import (  # noqa: E402
    Mlc2Seq,  # noqa: E402
    SeCSeq,
    SequenceModel,
)
from tests.checks import same_topk  # noqa: E402
from tests.models.secseq.small_models import SIZES, TINY, inputs  # noqa: E402

CODES = ("code_size", "code_length")


def tiny(**params):
    shared = {key: value for key, value in TINY.items() if key not in CODES}
    return Mlc2Seq().set_params(**{**shared, "beam_size": 3, **params})


def test_each_label_is_a_digit(few):
    model = tiny().fit(few.X, few.Y)
    (codes,) = model.label_codes()
    assert codes.code_size == 12
    assert codes.digits.tolist() == [[label] for label in range(12)]
    assert model.report()["codes"][0]["collisions"] == 0
    assert (model.label_shares_[0][few.Y.sum(axis=0).A1 > 0] == 1).all()


def test_it_has_the_parameters_of_secseq_but_for_the_codes():
    codes = {"n_estimators", *CODES, "label_vectors", "coding", "quantizer", "embedding_dim", "center_labels"}
    codes |= {"shared_outputs", "shared_embeddings", "repeated_codes", "leaf_histogram"}
    assert set(Mlc2Seq.defaults()) == set(SequenceModel.defaults()) == set(SeCSeq.defaults()) - codes
    changed = {key: value for key, value in Mlc2Seq.defaults().items() if value != SeCSeq.defaults()[key]}
    assert changed == {"target": "sequence", "beam_size": 8}
    with pytest.raises(ParameterError, match="mlc2seq has no parameter 'code_size'"):
        Mlc2Seq().set_params(code_size=3)


def test_its_weights_grow_with_the_number_of_labels(few):
    """A label has a digit embedding, an output with its bias, and a prior."""
    many = sp.hstack([few.Y, few.Y]).tocsr()
    one, two = (tiny(epochs=1).fit(few.X, Y).report()["network_parameters"] for Y in (few.Y, many))
    assert two - one == 12 * (8 + 8 + 1 + 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "label_order"), [("bag", "frequent"), ("bag", "rare"), ("bag", "random"), ("convolution", "frequent")]
)
def test_planted_labels_are_predicted_with_any_label_order(documents, tmp_path, encoder, label_order):
    train, test = documents
    shared = {key: value for key, value in SIZES.items() if key not in CODES}
    model = Mlc2Seq().set_params(
        **{**shared, "encoder": encoder, "label_order": label_order, "epochs": 6, "beam_size": 4}
    )
    X, X_test = inputs(model, train, test)
    model.fit(X, train.Y).save(tmp_path / "model")
    for decoding in ("beam", "sampling"):
        top = model.set_params(decoding=decoding).predict_topk(X_test, 3)
        assert test.Y[np.arange(60), top.labels[:, 0]].mean() > 0.8
        loaded = Mlc2Seq.load(tmp_path / "model").set_params(decoding=decoding)
        assert same_topk(loaded.predict_topk(X_test, 3), top)


@pytest.mark.parametrize("target", ["set", "label"])
def test_other_targets_are_accepted(few, target):
    top = tiny(target=target).fit(few.X, few.Y).predict_topk(few.X[:5], 3)
    assert (top.labels >= 0).all()


def test_features_for_an_encoder_of_words_are_refused(few):
    with pytest.raises(DataError, match="encoder=gru reads words in order"):
        tiny(encoder="gru").fit(few.X, few.Y)
