"""Hashing against a twin in plain Python."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from labelspace import store
from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features import Hashing
from labelspace.features import tokenizer as text_module
from tests.kernels.hash_twin import hash_ngram, hash_word

TEXTS = ["Red apple red apple", "", "green apple, İstanbul 日本 red apple", "a b", "ΑΣ ΑΣ\u0301 straße 𐐀𐐀 x_1"] * 3


def columns(text, ngrams, bits):
    """Counts of the columns of a text."""
    hashes = [hash_word(word) for word in re.findall(r"\b\w\w+\b", text.lower())]
    grams = [hashes[i : i + n] for n in range(1, ngrams + 1) for i in range(len(hashes) - n + 1)]
    return Counter(hash_ngram(gram) >> 64 - bits for gram in grams)


def twin(texts, ngrams, bits, sublinear, idf):
    counts = [columns(text, ngrams, bits) for text in texts]
    df = Counter(column for row in counts for column in row)
    X = np.zeros((len(texts), 2**bits))
    for row, found in enumerate(counts):
        for column, times in found.items():
            weight = math.log((1 + len(texts)) / (1 + df[column])) + 1 if idf else 1
            X[row, column] = (1 + math.log(times) if sublinear else times) * weight
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


@pytest.mark.parametrize("idf", [True, False])
@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize(("ngrams", "bits"), [(1, 3), (2, 3), (2, 12), (3, 12)])
def test_rows_are_those_of_the_twin(ngrams, bits, sublinear, idf):
    features = Hashing(ngrams, bits, sublinear, idf)
    X = features.fit_transform(TEXTS)
    assert X.dtype == np.float32
    assert X.has_canonical_format
    np.testing.assert_allclose(X.toarray(), twin(TEXTS, ngrams, bits, sublinear, idf), atol=2e-7)


def test_columns_are_fixed_for_ever():
    """A saved model relies on these numbers."""
    X = Hashing(idf=False).fit(["x"]).transform(["red apple"])
    assert X.shape == (1, 2**20)
    assert X.indices.tolist() == sorted(columns("red apple", 2, 20))
    assert X.indices.tolist() == [109926, 855796, 916053]


@pytest.mark.parametrize("idf", [True, False])
def test_batch_single_threads_and_storage_agree(idf, monkeypatch, tmp_path):
    features = Hashing(bits=12, idf=idf)
    whole = features.fit_transform(TEXTS)
    monkeypatch.setattr(text_module, "BLOCK", 60)
    for threads in "12":
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        assert (Hashing(bits=12, idf=idf).fit(TEXTS).transform(TEXTS) != whole).nnz == 0
    for row, text in enumerate(TEXTS):
        assert (features.transform([text]) != whole[row]).nnz == 0
    packed, arrays = store.pack(features)
    store.write(tmp_path / "m", {"kind": "", "model": "", "features": packed}, {"features.safetensors": arrays}, None)
    manifest = store.read_manifest(tmp_path / "m")
    loaded = Hashing(**manifest["features"]["params"])
    store.unpack(loaded, manifest["features"], store.read_arrays(tmp_path / "m", manifest, "features.safetensors"))
    assert (loaded.transform(TEXTS) != whole).nnz == 0


def test_errors_say_what_to_do():
    with pytest.raises(DataError, match="give a list of texts"):
        Hashing().fit("one text")
    with pytest.raises(DataError, match="at least one text"):
        Hashing().fit_transform([])
    with pytest.raises(ParameterError, match="bits of hashing must be a whole number of 1 to 30, but is 31"):
        Hashing(bits=31).fit(["red apple"])
    with pytest.raises(NotFittedError):
        Hashing().transform(["red apple"])
