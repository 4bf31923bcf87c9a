"""Hashing against a twin in plain Python."""

import math
from collections import Counter

import numpy as np
import pytest

from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features import Hashing, tokenizer
from tests.features.saving import saved_and_loaded
from tests.features.word_twin import normalize, words
from tests.kernels.hash_twin import hash_ngram, hash_word

TEXTS = ["Red apple red apple", "", "green apple, İstanbul 日本 red apple", "a b", "ΑΣ ΑΣ\u0301 straße 𐐀𐐀 x_1"] * 3


def columns(text, ngrams, bits):
    """Counts of the columns of a text."""
    hashes = [hash_word(word) for word in words(normalize(text))]
    grams = [hashes[i : i + n] for n in range(1, ngrams + 1) for i in range(len(hashes) - n + 1)]
    return Counter(hash_ngram(gram) >> 64 - bits for gram in grams)


def twin(texts, ngrams, bits, sublinear, idf):
    counts = [columns(text, ngrams, bits) for text in texts]
    df = Counter(column for row in counts for column in row)
    X = np.zeros((len(texts), 2**bits))
    for row, of_row in enumerate(counts):
        for column, count in of_row.items():
            weight = math.log((1 + len(texts)) / (1 + df[column])) + 1 if idf else 1
            X[row, column] = (1 + math.log(count) if sublinear else count) * weight
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize("idf", [True, False])
@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize(("ngrams", "bits"), [(1, 3), (2, 3), (2, 12), (3, 12)])
def test_rows_are_those_of_the_twin(ngrams, bits, sublinear, idf):
    features = Hashing(ngrams=ngrams, bits=bits, sublinear=sublinear, idf=idf)
    X = features.fit_transform(TEXTS)
    assert X.dtype == np.float32
    assert X.has_canonical_format
    np.testing.assert_allclose(X.toarray(), twin(TEXTS, ngrams, bits, sublinear, idf), atol=2e-7)


def test_columns_never_change():
    """A saved model relies on these numbers."""
    X = Hashing(idf=False).fit(["x"]).transform(["red apple"])
    assert X.shape == (1, 2**20)
    assert X.indices.tolist() == sorted(columns("red apple", 2, 20))
    assert X.indices.tolist() == [109926, 855796, 916053]


@pytest.mark.parametrize("idf", [True, False])
def test_blocks_single_texts_threads_and_storage_agree(idf, monkeypatch, tmp_path):
    features = Hashing(bits=12, idf=idf)
    X = features.fit_transform(TEXTS)
    monkeypatch.setattr(tokenizer, "BLOCK", 60)
    for threads in "12":
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        assert (Hashing(bits=12, idf=idf).fit(TEXTS).transform(TEXTS) != X).nnz == 0
    for row, text in enumerate(TEXTS):
        assert (features.transform([text]) != X[row]).nnz == 0
    assert (saved_and_loaded(features, tmp_path).transform(TEXTS) != X).nnz == 0


def test_errors_say_what_to_do():
    with pytest.raises(DataError, match="give a list of texts"):
        Hashing().fit("one text")
    with pytest.raises(DataError, match="at least one text"):
        Hashing().fit_transform([])
    with pytest.raises(ParameterError, match="bits of hashing must be an integer from 1 to 30, but is 31"):
        Hashing(bits=31).fit(["red apple"])
    with pytest.raises(NotFittedError):
        Hashing().transform(["red apple"])
