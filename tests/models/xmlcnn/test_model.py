import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.models.xmlcnn import XMLCNN
from labelspace.models.xmlcnn.network import ConvolutionalNet
from tests.checks import same_topk

TEXTS = [f"{a} {b} w{i % 7}" for i in range(60) for a, b in (("man", "bites"), ("bites", "man"))]
Y = np.tile(np.eye(2), (60, 1))
SMALL = {"n_filters": 8, "hidden_dim": 16, "word_dim": 8}


@pytest.mark.slow
def test_the_order_of_words_counts():
    model = XMLCNN(**SMALL).fit(TEXTS, Y)
    assert model.predict_topk(["man bites", "bites man"], k=1).labels.tolist() == [[0], [1]]


def test_words_beyond_the_maximum_length_are_not_read():
    model = XMLCNN(**SMALL, max_length=2, epochs=1).fit(TEXTS, Y)
    assert same_topk(model.predict_topk(["man bites"], k=2), model.predict_topk(["man bites bites man"], k=2))


def test_patience_keeps_the_best_epoch():
    model = XMLCNN(**SMALL, epochs=30, patience=2).fit(TEXTS, Y)
    scores = model.report()["accuracies"]
    assert len(scores) <= int(np.argmax(scores)) + 3 < 30
    assert "accuracies" not in XMLCNN(**SMALL, epochs=1).fit(TEXTS, Y).report()


def test_filters_wider_than_any_text_are_refused():
    with pytest.raises(ParameterError, match="filter_widths must be at most 1000, but one is 1001; set smaller ones"):
        XMLCNN(filter_widths="2,1001").check_params()


def test_weights_that_diverge_are_refused(monkeypatch):
    def diverge(net, *_):
        net.output.bias.value[0] = np.nan

    monkeypatch.setattr(ConvolutionalNet, "train_step", diverge)
    with pytest.raises(ParameterError, match="lower learning_rate or feature_learning_rate"):
        XMLCNN(**SMALL, epochs=1).fit(TEXTS, Y)
