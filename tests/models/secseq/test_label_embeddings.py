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
from labelspace.models.secseq.label_embeddings import (
    SOURCES,
    embed_labels,
    positive_pmi,
    truncated_svd,
    walk_cooccurrence,
)
from labelspace.models.secseq.model import SeCSeq
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
    """The products of all vectors, computed from full rows: a rotation does not change them."""
    rows = np.asarray(rows, np.float64)
    known = rows.any(axis=1)
    rows = np.where(known[:, None], rows - rows[known & seen].mean(axis=0), 0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 1e-6, lengths, np.inf)
    return rows @ rows.T


@pytest.mark.parametrize(("shape", "dim"), [((60, 30), 5), ((30, 60), 5), ((20, 8), 8), ((20, 8), 12)])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_table_is_reduced_as_by_the_full_decomposition(shape, dim, power):
    rng = np.random.default_rng(1)
    table = sp.csr_matrix(
        (rng.standard_normal((shape[0], 8)) * 0.5 ** np.arange(8)) @ rng.standard_normal((8, shape[1]))
    )
    U, values, _ = np.linalg.svd(table.toarray(), full_matrices=False)
    expected = U[:, :dim] * values[:dim] ** power
    for given in (table.astype(np.float32), table.toarray().astype(np.float32)):
        reduced = truncated_svd(given, dim, 0, power)
        assert reduced.dtype == np.float32
        assert reduced.shape == (shape[0], dim)
        assert np.allclose(reduced @ reduced.T, expected @ expected.T, atol=2e-4 * values[0])


def test_rows_and_tables_of_zeros_stay_zeros():
    table = sp.csr_matrix(np.diag([1.0, 0, 2, 0, 3]).astype(np.float32))
    for given in (table, table.toarray()):
        assert truncated_svd(given, 3, 0).any(axis=1).tolist() == [True, False, True, False, True]
    assert not truncated_svd(sp.csr_matrix((4, 6), dtype=np.float32), 2, 0).any()


def test_documents_make_labels_of_their_features():
    data = planted(n=80, d=60, l=30, seed=4)  # some labels have no document
    seen = data.Y.getnnz(axis=0) > 0
    assert not seen.all()
    vectors = embed_labels("documents", data.X, data.Y, None, dim=40)
    expected = centered_products(pifa_embeddings(data.X, data.Y).toarray(), seen)
    assert np.allclose(vectors @ vectors.T, expected, atol=1e-3)
    assert not vectors[~seen].any()


def test_walks_make_labels_of_the_square_roots_of_their_pmi():
    data = planted(n=80, d=60, l=30, seed=4)
    pmi = positive_pmi(walk_cooccurrence(data.Y, seed=7)).toarray()
    U, values, _ = np.linalg.svd(pmi)
    rows = np.where(pmi.any(axis=1, keepdims=True), U * np.sqrt(values), 0.0)
    vectors = embed_labels("walks", data.X, data.Y, None, dim=30, seed=7)
    assert np.allclose(vectors @ vectors.T, centered_products(rows, data.Y.getnnz(axis=0) > 0), atol=1e-3)


def test_text_knows_labels_without_documents_but_centers_on_the_others():
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0]], np.float32))
    labels = LabelSpace(["bread", "breads", "white bread", "fish"], synonyms=[[], [], ["loaf"], []])
    vectors = embed_labels("text", Y, Y, labels, dim=20)
    rows = Tfidf(analyzer="char_wb", min_n=3, max_n=4, min_df=1).fit_transform(labels.texts()).toarray()
    assert np.allclose(vectors @ vectors.T, centered_products(rows, np.array([True, True, False, False])), atol=1e-3)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_sentences_come_from_the_encoder(sentences):
    Y = sp.csr_matrix(np.ones((1, 4), np.float32))
    labels = LabelSpace(["bread", "breads", "fish", "42"])
    vectors = embed_labels("sentences", Y, Y, labels, dim=30)
    assert vectors.shape == (4, 30)
    expected = centered_products(sentences(labels.texts()), np.ones(4, bool))
    assert np.allclose(vectors @ vectors.T, expected, atol=1e-3)


@pytest.mark.parametrize("source", SOURCES)
def test_vectors_are_of_length_one_or_zero_and_depend_on_the_seed_alone(source, family, sentences, monkeypatch):
    X, Y, labels = family
    before = X.copy(), Y.copy()
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    vectors = embed_labels(source, X, Y, labels, dim=16, seed=3)
    assert vectors.dtype == np.float32
    assert vectors.shape == (111, 16)
    assert np.allclose(np.linalg.norm(vectors, axis=1), vectors.any(axis=1), atol=1e-5)
    assert vectors.any(axis=1).sum() > 100
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    assert np.array_equal(vectors, embed_labels(source, X, Y, labels, dim=16, seed=3))
    assert (before[0] != X).nnz == (before[1] != Y).nnz == 0


@pytest.mark.parametrize("source", SOURCES)
def test_few_labels_and_labels_that_are_all_equal_are_accepted(source, sentences):
    one = sp.csr_matrix(np.ones((3, 1), np.float32))
    assert embed_labels(source, one, one, LabelSpace(["bread"]), dim=64).tolist() == [[0.0] * 64]
    Y = sp.csr_matrix(np.ones((3, 50), np.float32))
    alike = embed_labels(source, one, Y, LabelSpace(["bread"] * 50), dim=64)
    assert np.isfinite(alike).all()
    if source != "walks":  # where random walks differ
        assert not alike.any()


@pytest.mark.parametrize("source", SOURCES)
def test_labels_without_documents_are_accepted(source, sentences):
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], np.float32))
    vectors = embed_labels(source, X, Y, LabelSpace(["bread", "dough", "fish", "salt"]), dim=3)
    assert np.isfinite(vectors).all()
    assert vectors[3].any() == (source in ("text", "sentences"))
    none = embed_labels(
        source, X, sp.csr_matrix((4, 4), dtype=np.float32), LabelSpace(["bread", "dough", "fish", "salt"]), dim=64
    )
    assert np.isfinite(none).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("source", ["documents", "walks", "text"])
def test_siblings_share_their_first_digit(source, scheme, family):
    vectors = embed_labels(source, *family, dim=8)
    distinct = ~np.eye(111, dtype=bool)
    siblings = (PARENT[:, None] == PARENT) & distinct
    ratios = []
    for seed in range(5):
        first = make_codes(vectors, code_size=8, code_length=3, scheme=scheme, quantizer="ordinal", seed=seed).digits[
            :, 0
        ]
        alike = first[:, None] == first
        ratios.append(alike[siblings].mean() / alike[distinct].mean())
    assert np.mean(ratios) > (5 if scheme == "clusters" else 2.5)  # one random direction separates less than all


def test_bad_arguments_are_refused():
    Y = sp.csr_matrix(np.ones((1, 2), np.float32))
    with pytest.raises(
        ParameterError, match="one of documents, walks, text, sentences, instances, or FILE.npy, but is 'names'"
    ):
        SeCSeq(label_vectors="names").check_params()
    with pytest.raises(ParameterError, match="embedding_dim of secseq must be none, or an integer of at least 1"):
        SeCSeq(embedding_dim=0).check_params()
    for source in ("text", "sentences"):
        with pytest.raises(DataError, match=f"label_vectors={source} needs the names of the labels, but"):
            embed_labels(source, Y, Y, None, dim=64)


@pytest.mark.parametrize("source", ["text", "sentences"])
def test_label_numbers_are_not_names(source, family, sentences):
    X, Y, _ = family
    with pytest.raises(DataError, match="needs names with letters, but labels are numbered, as in '0'; name"):
        embed_labels(source, X, Y, LabelSpace.numbered(Y.shape[1]), dim=64)
    also = LabelSpace([str(i) for i in range(111)], [["bread"]] * 111)
    assert embed_labels(source, X, Y, also, dim=64).shape == (111, 64)
