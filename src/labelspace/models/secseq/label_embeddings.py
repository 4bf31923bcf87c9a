"""Vectors of labels, from what is known of them: their documents, the labels beside them, their names."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError, ParameterError
from labelspace.features.tfidf import Tfidf
from labelspace.labels.clustering import pifa_embeddings
from labelspace.models.secseq.deepwalk import positive_information, walked_pairs
from labelspace.types import Bools, Csr, Floats, LabelSpace

KINDS = ("documents", "walks", "text", "sentences")
MORE = 10  # directions beyond those asked for: the last ones found are the least exact
POWERS = 2  # times that a table is multiplied with itself, which leaves its small directions behind
NGRAMS = 500_000  # of the labels' texts


def label_vectors(kind: str, X: Csr, Y: Csr, labels: LabelSpace | None, dimension: int = 64, seed: int = 0) -> Floats:
    """A vector a label, of length one: (n_labels, dimension). The mean of the labels with a document is taken off.

    ``documents`` makes a label of the features of its documents, ``walks`` of the labels it stands with, ``text`` of
    the n-grams of its name and synonyms, ``sentences`` of what a pretrained encoder makes of them. The vectors of
    labels of which nothing is known are zeros.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=200, d=100, l=20)
    >>> label_vectors("documents", data.X, data.Y, None, dimension=8).shape
    (20, 8)
    """
    if kind not in KINDS:
        raise ParameterError(f"vectors of labels must be one of {', '.join(KINDS)}, but are {kind!r}; set them so")
    if dimension < 1:
        raise ParameterError(f"dimension must be at least 1, but is {dimension}; ask for 1 or more")
    with threadpool_limits(1, user_api="blas"):  # sums in another order would be other vectors
        if kind == "documents":
            found = reduced(pifa_embeddings(X, Y), dimension, seed)
        elif kind == "walks":
            found = reduced(positive_information(walked_pairs(Y, seed)), dimension, seed, power=0.5)
        else:
            found = reduced(_of_texts(kind, _texts(kind, labels, Y.shape[1])), dimension, seed)
        return _centered(found, np.bincount(Y.indices, minlength=Y.shape[1]) > 0)


def reduced(table: Csr | Floats, dimension: int, seed: int, power: float = 1.0) -> Floats:
    """The rows of a table in its main directions, by a randomized singular value decomposition: (n, dimension).

    Each direction is scaled by its singular value, raised to ``power``. Directions that the table does not have are 0,
    and so are the vectors of rows that are.

    >>> from scipy.sparse import csr_matrix
    >>> table = csr_matrix(np.array([[3, 0, 0], [0, 2, 0], [0, 0, 1]], np.float32))
    >>> abs(reduced(table, dimension=2, seed=0)).round(3).tolist()
    [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    """
    rank = min(dimension + MORE, *table.shape)
    if not rank:
        return np.zeros((table.shape[0], dimension), np.float32)
    basis: Floats = np.random.default_rng(seed).standard_normal((table.shape[1], rank), np.float32)
    for _ in range(POWERS):
        basis = _upright(table.T @ _upright(table @ basis))
    left = _upright(table @ basis)  # (n, rank)
    small = qr(table.T @ left, mode="r", check_finite=False)[0][:rank]  # (rank, rank): left @ small.T spans the table
    _, values, turn = np.linalg.svd(small)
    values, turn = values[:dimension], turn[:dimension]
    scale = np.where(values > 1e-5 * values[0], values, 0.0) ** power  # below that all is rounding
    found = np.zeros((table.shape[0], dimension), np.float32)
    found[:, : len(values)] = left @ (turn.T * scale).astype(np.float32)
    found[~(table.any(axis=1) if isinstance(table, np.ndarray) else table.getnnz(axis=1) > 0)] = 0.0
    return found


def _texts(kind: str, labels: LabelSpace | None, n_labels: int) -> list[str]:
    if labels is None:
        raise DataError(
            f"{kind} vectors need the names of the labels, but labels is None; give labels=LabelSpace(names), "
            "or take documents or walks"
        )
    if len(labels) != n_labels:
        raise DataError(
            f"labels must name every column of Y, but there are {len(labels)} names for {n_labels} columns; "
            "give the LabelSpace that Y was built with"
        )
    texts = labels.texts()
    if not any(any(map(str.isalpha, text)) for text in texts):
        raise DataError(
            f"{kind} vectors need names that say something, but labels are numbered, as in {texts[0]!r}; "
            "name them in labels.jsonl, or take documents or walks"
        )
    return texts


def _of_texts(kind: str, texts: list[str]) -> Csr | Floats:
    """Texts as rows: n-grams of characters, since names are short and share stems more often than words."""
    if kind == "text":
        return Tfidf(analyzer="char_wb", min_n=3, max_n=4, min_df=1, max_features=NGRAMS).fit_transform(texts)
    from labelspace.features.embeddings import embed_texts

    vectors: Floats = embed_texts(texts)
    return vectors


def _upright(table: Floats) -> Floats:
    """An orthonormal basis of the columns."""
    basis: Floats = qr(table, mode="economic", overwrite_a=True, check_finite=False)[0]
    return basis


def _centered(vectors: Floats, seen: Bools) -> Floats:
    """The vectors without the mean of those ``seen``, at length one; zeros stay so, as does what the mean is all of."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    known = lengths[:, 0] > 0
    if (known & seen).any():
        mean = vectors[known & seen].mean(axis=0, dtype=np.float64)
        vectors = np.where(known[:, None], vectors - mean, 0.0).astype(np.float32)
    left = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(left > 1e-4 * lengths, left, np.inf)).astype(np.float32)
