import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("torch")

import labelspace  # noqa: E402
from labelspace.data.synthetic import planted  # noqa: E402
from labelspace.errors import DataError, ParameterError  # noqa: E402
from labelspace.models.secseq.mlc2seq import CODING, Mlc2Seq  # noqa: E402
from labelspace.models.secseq.model import SeCSeq  # noqa: E402


@pytest.fixture(scope="module")
def few():
    return planted(n=90, d=60, l=12, texts=True, seed=3)


def quick(**params):
    return Mlc2Seq(**{"hidden": 8, "memory": 8, "word": 8, "epochs": 2, "beam": 3, "samples": 10, **params})


def test_a_label_is_one_digit_of_its_own(few):
    model = quick().fit(few.X, few.Y)
    (codes,) = model.label_codes()
    assert codes.width == 12
    assert codes.digits.tolist() == [[label] for label in range(12)]
    assert model.report()["codes"][0]["collisions"] == 0
    assert (model.shares_[0][few.Y.sum(axis=0).A1 > 0] == 1).all()


def test_it_is_secseq_but_for_the_coding():
    assert set(SeCSeq.defaults()) - set(Mlc2Seq.defaults()) == CODING
    assert {*Mlc2Seq.defaults()} == {*Mlc2Seq.rules}
    assert Mlc2Seq().target == "sequence"
    with pytest.raises(ParameterError, match="mlc2seq has no parameter 'width'"):
        Mlc2Seq().set_params(width=3)


def test_its_weights_grow_with_the_number_of_labels(few):
    """A label has a vector, an output with its bias, and a prior."""
    many = sp.hstack([few.Y, few.Y]).tocsr()
    one, two = (quick(epochs=1).fit(few.X, Y).report()["network_parameters"] for Y in (few.Y, many))
    assert two - one == 12 * (8 + 8 + 1 + 8)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["frequent", "rare", "random"])
@pytest.mark.parametrize("encoder", ["bag", "convolution"])
def test_planted_labels_are_found_in_any_order(tmp_path, order, encoder):
    data = planted(n=460, d=300, l=20, texts=True, seed=2)
    train, test = data.rows(range(400)), data.rows(range(400, 460))
    X, asked = (train.X, test.X) if encoder == "bag" else (train.texts, test.texts)
    model = Mlc2Seq(encoder=encoder, order=order, hidden=64, memory=32, word=32, epochs=6, beam=4, rate=0.01)
    model.fit(X, train.Y).save(tmp_path / "model")
    for decoding in ("beam", "sampling"):
        top = model.set_params(decoding=decoding).predict_topk(asked, 3)
        assert test.Y[np.arange(60), top.labels[:, 0]].mean() > 0.8
        loaded = labelspace.load(tmp_path / "model").set_params(decoding=decoding).predict_topk(asked, 3)
        assert np.array_equal(loaded.labels, top.labels)
        assert np.array_equal(loaded.scores, top.scores)


@pytest.mark.parametrize("target", ["set", "label"])
def test_other_targets_are_taken_too(few, target):
    top = quick(target=target).fit(few.X, few.Y).predict_topk(few.X[:5], 3)
    assert (top.labels >= 0).all()


def test_features_where_words_are_read_are_one_clear_line(few):
    with pytest.raises(DataError, match="encoder=gru reads words in a row"):
        quick(encoder="gru").fit(few.X, few.Y)
