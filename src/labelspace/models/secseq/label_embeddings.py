"""Label embeddings (step 1 of SeCSeq): from a label's documents, the labels it occurs with, or its names."""

import numpy as np
from scipy.linalg import qr
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError, ParameterError
from labelspace.features.tfidf import Tfidf
from labelspace.labels.clustering import pifa_embeddings
from labelspace.models.secseq.deepwalk import positive_pmi, walk_cooccurrence
from labelspace.types import Bools, Csr, Floats, LabelSpace

SOURCES = ("documents", "walks", "text", "sentences")
OVERSAMPLING = 10  # components beyond those returned: the last ones are the least exact
POWER_ITERATIONS = 2  # which suppress the small components
MAX_NGRAMS = 500_000  # of the label texts


def embed_labels(source: str, X: Csr, Y: Csr, labels: LabelSpace | None, dim: int = 64, seed: int = 0) -> Floats:
    """Label embeddings of length 1 (n_labels, dim), centered on the labels that have documents.

    ``documents`` averages the features of a label's documents, ``walks`` uses random walks among labels that occur
    together, ``text`` the n-grams of its name and synonyms, ``sentences`` a pretrained encoder's embedding of them. A
    label of which nothing is known gets zeros.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=200, d=100, l=20)
    >>> embed_labels("documents", data.X, data.Y, None, dim=8).shape
    (20, 8)
    """
    if source not in SOURCES:
        raise ParameterError(f"label_vectors must be one of {', '.join(SOURCES)}, but is {source!r}; set it so")
    if dim < 1:
        raise ParameterError(f"embedding_dim must be at least 1, but is {dim}; set 1 or more")
    with threadpool_limits(1, user_api="blas"):  # sums in another order would give other embeddings
        if source == "documents":
            embeddings = truncated_svd(pifa_embeddings(X, Y), dim, seed)
        elif source == "walks":
            embeddings = truncated_svd(positive_pmi(walk_cooccurrence(Y, seed)), dim, seed, power=0.5)
        else:
            embeddings = truncated_svd(_text_features(source, labels, Y.shape[1]), dim, seed)
        return _center(embeddings, np.bincount(Y.indices, minlength=Y.shape[1]) > 0)


def truncated_svd(table: Csr | Floats, dim: int, seed: int, power: float = 1.0) -> Floats:
    """The rows of a table in its principal components, by a randomized singular value decomposition: (n, dim).

    Each component is scaled by its singular value, raised to ``power``. Components beyond the table's rank are 0, and
    so are rows of zeros.

    >>> from scipy.sparse import csr_matrix
    >>> table = csr_matrix(np.array([[3, 0, 0], [0, 2, 0], [0, 0, 1]], np.float32))
    >>> abs(truncated_svd(table, dim=2, seed=0)).round(3).tolist()
    [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    """
    rank = min(dim + OVERSAMPLING, *table.shape)
    if not rank:
        return np.zeros((table.shape[0], dim), np.float32)
    basis: Floats = np.random.default_rng(seed).standard_normal((table.shape[1], rank), np.float32)
    for _ in range(POWER_ITERATIONS):
        basis = _orthonormal(table.T @ _orthonormal(table @ basis))
    Q = _orthonormal(table @ basis)  # (n, rank)
    R = qr(table.T @ Q, mode="r", check_finite=False)[0][:rank]  # (rank, rank): Q @ R.T spans the table
    _, values, rotation = np.linalg.svd(R)
    values, rotation = values[:dim], rotation[:dim]
    scale = np.where(values > 1e-5 * values[0], values, 0.0) ** power  # below is rounding
    reduced = np.zeros((table.shape[0], dim), np.float32)
    reduced[:, : len(values)] = Q @ (rotation.T * scale).astype(np.float32)
    reduced[~(table.any(axis=1) if isinstance(table, np.ndarray) else table.getnnz(axis=1) > 0)] = 0.0
    return reduced


def _text_features(source: str, labels: LabelSpace | None, n_labels: int) -> Csr | Floats:
    """Label texts as rows; of ``text``, character n-grams: names are short and share stems more often than words."""
    if labels is None:
        raise DataError(
            f"label_vectors={source} needs the names of the labels, but labels is None; give labels=LabelSpace(names), "
            "or set label_vectors to documents or walks"
        )
    if len(labels) != n_labels:
        raise DataError(
            f"labels must name every column of Y, but there are {len(labels)} names for {n_labels} columns; "
            "give the LabelSpace that Y was built with"
        )
    texts = labels.texts()
    if not any(any(map(str.isalpha, text)) for text in texts):
        raise DataError(
            f"label_vectors={source} needs names with letters, but labels are numbered, as in {texts[0]!r}; "
            "name them in labels.jsonl, or set label_vectors to documents or walks"
        )
    if source == "text":
        return Tfidf(analyzer="char_wb", min_n=3, max_n=4, min_df=1, max_features=MAX_NGRAMS).fit_transform(texts)
    from labelspace.features.embeddings import embed_texts

    return embed_texts(texts)


def _orthonormal(table: Floats) -> Floats:
    """An orthonormal basis of the columns."""
    basis: Floats = qr(table, mode="economic", overwrite_a=True, check_finite=False)[0]
    return basis


def _center(embeddings: Floats, seen: Bools) -> Floats:
    """Subtract the mean of the labels ``seen`` and scale to length 1; zeros, and the mean itself, become zeros."""
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    known = lengths[:, 0] > 0
    if (known & seen).any():
        mean = embeddings[known & seen].mean(axis=0, dtype=np.float64)
        embeddings = np.where(known[:, None], embeddings - mean, 0.0).astype(np.float32)
    centered = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return (embeddings / np.where(centered > 1e-4 * lengths, centered, np.inf)).astype(np.float32)
