"""Label embeddings (step 1 of SeCSeq): from a label's documents, the labels it occurs with, its names, or a file."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError
from labelspace.estimator.parameter_constraints import Constraint
from labelspace.features.tfidf import Tfidf
from labelspace.kernels.threads import run_blocks
from labelspace.labels.clustering import pifa_embeddings
from labelspace.models.secseq.kernels import LabelGraph, sample_walks
from labelspace.types import Bools, Csr, Floats, Ints, LabelSpace, Longs

SOURCES = ("documents", "walks", "text", "sentences", "instances")
SPARSE_SOURCES = ("documents", "walks", "text", "instances")
VECTOR_FILE = Constraint("FILE.npy", lambda value: isinstance(value, str) and value.endswith(".npy"))
OVERSAMPLING = 10  # components beyond those returned: the last ones are the least exact
POWER_ITERATIONS = 2  # which suppress the small components
MAX_NGRAMS = 500_000  # of the label texts


def embed_labels(
    source: str, X: Csr | None, Y: Csr, labels: LabelSpace | None, dim: int | None, seed: int = 0, center: bool = True
) -> Floats | Csr:
    """Embed labels (n_labels, dim); with ``center`` around the mean of labels with documents, and of length 1.

    ``documents`` averages the features of a label's documents, ``walks`` uses random walks among labels that occur
    together, ``text`` the n-grams of its name and synonyms, ``sentences`` a pretrained encoder's embedding of them,
    ``instances`` which documents have the label, and ``FILE.npy`` the vectors of a file. A label that the source knows
    nothing of gets zeros. Without ``dim`` the embeddings are not reduced; most sources are then sparse, and cannot be
    centered.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=200, d=100, l=20)
    >>> embed_labels("documents", data.X, data.Y, None, dim=8).shape
    (20, 8)
    """
    with threadpool_limits(1, user_api="blas"):  # sums in another order would give other embeddings
        table = _label_table(source, X, Y, labels, seed)
        embeddings = table if dim is None else truncated_svd(table, dim, seed, 0.5 if source == "walks" else 1.0)
        if not center:
            return embeddings
        assert isinstance(embeddings, np.ndarray), "parameters go together"
        return _center(embeddings, np.bincount(Y.indices, minlength=Y.shape[1]) > 0)


def _label_table(source: str, X: Csr | None, Y: Csr, labels: LabelSpace | None, seed: int) -> Floats | Csr:
    """Return what the source knows of each label, as rows."""
    if source == "documents":
        assert X is not None
        return pifa_embeddings(X, Y)
    if source == "walks":
        return positive_pmi(walk_cooccurrence(Y, seed))
    if source == "instances":
        return Y.T.tocsr().astype(np.float32)
    if source in SOURCES:
        return _text_features(source, labels)
    return read_label_vectors(source, Y.shape[1])


def read_label_vectors(path: str, n_labels: int) -> Floats:
    """Read vectors of a NumPy file (n_labels, d), divided by the largest value so that sums of squares stay finite.

    Nothing in the file is executed, and no more is read than its size.
    """
    if not Path(path).is_file():
        raise DataError(f"label_vectors must be a file, but there is none at {path}; give the path of a .npy file")
    try:
        table = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # whatever NumPy makes of a header
        raise DataError(
            f"{path} must hold an array of numbers as numpy.save writes it, but does not ({error}); save it so"
        ) from error
    if table.ndim != 2 or table.shape[0] != n_labels or not table.shape[1] or table.dtype.kind not in "fiu":
        raise DataError(
            f"{path} must hold a row of numbers per label, ({n_labels}, d), but is of shape {table.shape} and type "
            f"{table.dtype}; give the vectors of the labels in the order of their ids"
        )
    largest = max(abs(float(table.max())), abs(float(table.min())))
    if not np.isfinite(largest):
        raise DataError(f"{path} must hold finite numbers, but holds others; leave labels without a vector at zeros")
    return np.ascontiguousarray(table / (largest or 1.0), dtype=np.float32)


def truncated_svd(table: Csr | Floats, dim: int, seed: int, power: float = 1.0) -> Floats:
    """Reduce a table to its principal components by a randomized singular value decomposition. Shape (n, dim).

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


def _text_features(source: str, labels: LabelSpace | None) -> Csr | Floats:
    """Return label texts as rows; ``text`` has character n-grams: names are short and share stems more than words."""
    if labels is None:
        raise DataError(
            f"label_vectors={source} needs the names of the labels, but labels is None; give labels=LabelSpace(names), "
            "or set label_vectors to documents or walks"
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
    """Return an orthonormal basis of the columns."""
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


WALKS_PER_LABEL = 20  # or fewer, so that there are at most ``MAX_PAIRS``
WALK_LENGTH = 20  # labels per walk
WINDOW = 5  # maximum distance of a pair in a walk
MAX_PAIRS = 50_000_000  # about 20 bytes each, if all differ
WALK_BLOCK = 50_000  # walks whose pairs are counted at once, which bounds memory


def walk_cooccurrence(Y: Csr, seed: int) -> Csr:
    """Count how often each pair of labels occurs within the window of random walks: (n_labels, n_labels), symmetric.

    The walks are those of DeepWalk (Perozzi, Al-Rfou and Skiena, "DeepWalk: Online Learning of Social Representations",
    2014) on the graph where the weight of an edge is the number of documents with both labels. The
    graph is never built: a step goes through a document, so memory is that of Y and of the pairs, however many labels
    a document has. With many labels there are fewer walks from each.
    """
    Y = Y.sorted_indices()
    by_label = Y.T.tocsr()  # (n_labels, n_documents)
    n_others = np.diff(Y.indptr) - 1
    cumulative: Longs = np.append(0, np.cumsum(n_others[by_label.indices], dtype=np.int64))
    connected = np.flatnonzero(np.diff(cumulative[by_label.indptr])).astype(np.int32)
    pairs_per_walk = sum(WALK_LENGTH - distance for distance in range(1, WINDOW + 1))
    walks_per_label = max(1, min(WALKS_PER_LABEL, MAX_PAIRS // max(1, pairs_per_walk * len(connected))))
    starts: Ints = np.tile(connected, walks_per_label)
    shape = (Y.shape[1], Y.shape[1])
    counts = [sp.csr_matrix(shape, dtype=np.float32)] * -(-len(starts) // WALK_BLOCK)

    def count_block(start: int, stop: int) -> None:
        walks = np.empty((stop - start, WALK_LENGTH), np.int32)
        graph = LabelGraph(Y.indices, Y.indptr, by_label.indices, by_label.indptr, cumulative)
        sample_walks(graph, starts[start:stop], seed * 1_000_003 + start, walks)
        rows = np.concatenate([walks[:, :-distance].ravel() for distance in range(1, WINDOW + 1)])
        columns = np.concatenate([walks[:, distance:].ravel() for distance in range(1, WINDOW + 1)])
        counts[start // WALK_BLOCK] = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)

    run_blocks(count_block, len(starts), WALK_BLOCK)
    total = sum(counts, sp.csr_matrix(shape, dtype=np.float32))
    return sp.csr_matrix(total + total.T)


def positive_pmi(counts: Csr) -> Csr:
    """Return the positive pointwise mutual information of pairs: max(0, log n(i, j) n / (n(i) n(j))).

    Skip-gram with negative sampling, which DeepWalk trains on its pairs, factorizes this matrix (Levy and Goldberg,
    2014, with one negative per pair and without the negative part); factorizing it directly needs no training.

    >>> positive_pmi(sp.csr_matrix(np.array([[0, 2], [2, 0]], np.float32))).toarray().round(3).tolist()
    [[0.0, 0.6930000185966492], [0.6930000185966492, 0.0]]
    """
    totals = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    log_totals = np.log(np.maximum(totals, 1.0))
    pmi = counts.copy()
    pmi.data = np.log(pmi.data) + np.float32(np.log(max(totals.sum(), 1.0)))
    pmi.data -= (np.repeat(log_totals, np.diff(counts.indptr)) + log_totals[counts.indices]).astype(np.float32)
    pmi.data = np.maximum(pmi.data, np.float32(0.0))
    pmi.eliminate_zeros()
    return pmi
