import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import DataError, ParameterError
from labelspace.features.tfidf import Tfidf
from labelspace.labels.clustering import pifa_embeddings
from labelspace.labels.codes import SCHEMES, make_codes
from labelspace.models.secseq.deepwalk import positive_information, walked_pairs
from labelspace.models.secseq.label_embeddings import KINDS, label_vectors, reduced
from labelspace.types import LabelSpace

PARENT = (np.arange(111) - 1) // 10


@pytest.fixture(scope="module")
def family():
    """Planted documents, and names in which siblings share a stem."""
    data = planted(n=3000, d=2000, l=111, labels_per_document=3, seed=2)
    rng = np.random.default_rng(0)
    stems = ["".join(rng.choice(list("bdfglmnprst"), 6)) for _ in range(12)]
    endings = ["".join(rng.choice(list("aeioubdfgl"), 5)) for _ in range(111)]
    names = [f"{stems[p]}{'s' * (i % 2)} {end}" for i, (p, end) in enumerate(zip(PARENT, endings, strict=True))]
    return data.X, data.Y, LabelSpace(names)


@pytest.fixture
def sentences(monkeypatch):
    """A stand-in for the pretrained encoder: a text becomes a bag of its letters."""

    def embed_texts(texts):
        bags = np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], np.float32)
        return bags / np.maximum(np.linalg.norm(bags, axis=1, keepdims=True), 1e-9)

    monkeypatch.setitem(sys.modules, "labelspace.features.embeddings", SimpleNamespace(embed_texts=embed_texts))
    return embed_texts


def centered_products(rows, seen):
    """The products of all vectors, worked out on whole rows: a change of axes leaves them as they are."""
    rows = np.asarray(rows, np.float64)
    known = rows.any(axis=1)
    rows = np.where(known[:, None], rows - rows[known & seen].mean(axis=0), 0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 1e-6, lengths, np.inf)
    return rows @ rows.T


@pytest.mark.parametrize(("shape", "dimension"), [((60, 30), 5), ((30, 60), 5), ((20, 8), 8), ((20, 8), 12)])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_table_is_reduced_as_by_the_full_decomposition(shape, dimension, power):
    rng = np.random.default_rng(1)
    table = sp.csr_matrix(
        (rng.standard_normal((shape[0], 8)) * 0.5 ** np.arange(8)) @ rng.standard_normal((8, shape[1]))
    )
    left, values, _ = np.linalg.svd(table.toarray(), full_matrices=False)
    expected = left[:, :dimension] * values[:dimension] ** power
    for given in (table.astype(np.float32), table.toarray().astype(np.float32)):
        found = reduced(given, dimension, 0, power)
        assert found.dtype == np.float32
        assert found.shape == (shape[0], dimension)
        assert np.allclose(found @ found.T, expected @ expected.T, atol=2e-4 * values[0])


def test_rows_and_tables_of_nothing_stay_so():
    table = sp.csr_matrix(np.diag([1.0, 0, 2, 0, 3]).astype(np.float32))
    for given in (table, table.toarray()):
        assert reduced(given, 3, 0).any(axis=1).tolist() == [True, False, True, False, True]
    assert not reduced(sp.csr_matrix((4, 6), dtype=np.float32), 2, 0).any()


def test_documents_make_labels_of_their_features():
    data = planted(n=80, d=60, l=30, seed=4)  # some labels have no document
    seen = data.Y.getnnz(axis=0) > 0
    assert not seen.all()
    vectors = label_vectors("documents", data.X, data.Y, None, dimension=40)
    expected = centered_products(pifa_embeddings(data.X, data.Y).toarray(), seen)
    assert np.allclose(vectors @ vectors.T, expected, atol=1e-3)
    assert not vectors[~seen].any()


def test_walks_make_labels_of_the_roots_of_their_information():
    data = planted(n=80, d=60, l=30, seed=4)
    information = positive_information(walked_pairs(data.Y, seed=7)).toarray()
    left, values, _ = np.linalg.svd(information)
    rows = np.where(information.any(axis=1, keepdims=True), left * np.sqrt(values), 0.0)
    vectors = label_vectors("walks", data.X, data.Y, None, dimension=30, seed=7)
    assert np.allclose(vectors @ vectors.T, centered_products(rows, data.Y.getnnz(axis=0) > 0), atol=1e-3)


def test_text_knows_labels_without_documents_but_centers_on_the_others():
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0]], np.float32))
    labels = LabelSpace(["bread", "breads", "white bread", "fish"], synonyms=[[], [], ["loaf"], []])
    vectors = label_vectors("text", Y, Y, labels, dimension=20)
    rows = Tfidf(analyzer="char_wb", min_n=3, max_n=4, min_df=1).fit_transform(labels.texts()).toarray()
    assert np.allclose(vectors @ vectors.T, centered_products(rows, np.array([True, True, False, False])), atol=1e-3)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_sentences_come_from_the_encoder(sentences):
    Y = sp.csr_matrix(np.ones((1, 4), np.float32))
    labels = LabelSpace(["bread", "breads", "fish", "42"])
    vectors = label_vectors("sentences", Y, Y, labels, dimension=30)
    assert vectors.shape == (4, 30)
    expected = centered_products(sentences(labels.texts()), np.ones(4, bool))
    assert np.allclose(vectors @ vectors.T, expected, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_of_length_one_or_zero_and_the_seed_decides(kind, family, sentences, monkeypatch):
    X, Y, labels = family
    before = X.copy(), Y.copy()
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    vectors = label_vectors(kind, X, Y, labels, dimension=16, seed=3)
    assert vectors.dtype == np.float32
    assert vectors.shape == (111, 16)
    assert np.allclose(np.linalg.norm(vectors, axis=1), vectors.any(axis=1), atol=1e-5)
    assert vectors.any(axis=1).sum() > 100
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    assert np.array_equal(vectors, label_vectors(kind, X, Y, labels, dimension=16, seed=3))
    assert (before[0] != X).nnz == (before[1] != Y).nnz == 0


@pytest.mark.parametrize("kind", KINDS)
def test_few_labels_and_labels_that_are_all_alike_are_no_trouble(kind, sentences):
    one = sp.csr_matrix(np.ones((3, 1), np.float32))
    assert label_vectors(kind, one, one, LabelSpace(["bread"])).tolist() == [[0.0] * 64]
    Y = sp.csr_matrix(np.ones((3, 50), np.float32))
    alike = label_vectors(kind, one, Y, LabelSpace(["bread"] * 50))
    assert np.isfinite(alike).all()
    if kind != "walks":  # where chance makes differences
        assert not alike.any()


@pytest.mark.parametrize("kind", KINDS)
def test_labels_without_documents_are_no_trouble(kind, sentences):
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], np.float32))
    vectors = label_vectors(kind, X, Y, LabelSpace(["bread", "dough", "fish", "salt"]), dimension=3)
    assert np.isfinite(vectors).all()
    assert vectors[3].any() == (kind in ("text", "sentences"))
    none = label_vectors(
        kind, X, sp.csr_matrix((4, 4), dtype=np.float32), LabelSpace(["bread", "dough", "fish", "salt"])
    )
    assert np.isfinite(none).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["documents", "walks", "text"])
def test_siblings_begin_alike(kind, scheme, family):
    vectors = label_vectors(kind, *family, dimension=8)
    apart = ~np.eye(111, dtype=bool)
    siblings = (PARENT[:, None] == PARENT) & apart
    ratios = []
    for seed in range(5):
        first = make_codes(vectors, width=8, digits=3, scheme=scheme, quantizer="ordinal", seed=seed).digits[:, 0]
        alike = first[:, None] == first
        ratios.append(alike[siblings].mean() / alike[apart].mean())
    assert np.mean(ratios) > (5 if scheme == "clusters" else 2.5)  # one direction tells less than all of them


def test_what_cannot_be_is_refused():
    Y = sp.csr_matrix(np.ones((1, 2), np.float32))
    with pytest.raises(ParameterError, match="one of documents, walks, text, sentences, but are 'names'"):
        label_vectors("names", Y, Y, None)
    with pytest.raises(ParameterError, match="dimension must be at least 1, but is 0"):
        label_vectors("documents", Y, Y, None, dimension=0)
    for kind in ("text", "sentences"):
        with pytest.raises(DataError, match=f"{kind} vectors need the names of the labels, but labels is None; give"):
            label_vectors(kind, Y, Y, None)
    with pytest.raises(DataError, match="there are 1 names for 2 columns"):
        label_vectors("text", Y, Y, LabelSpace(["bread"]))


@pytest.mark.parametrize("kind", ["text", "sentences"])
def test_numbers_are_no_names(kind, family, sentences):
    X, Y, _ = family
    with pytest.raises(DataError, match="but labels are numbered, as in '0'; name them in labels.jsonl, or take doc"):
        label_vectors(kind, X, Y, LabelSpace.numbered(Y.shape[1]))
    also = LabelSpace([str(i) for i in range(111)], [["bread"]] * 111)
    assert label_vectors(kind, X, Y, also).shape == (111, 64)
