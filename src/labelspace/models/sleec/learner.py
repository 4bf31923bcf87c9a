"""One learner: clusters of documents, each with an embedding Z by labels, and regressors from features to Z.

The inner products of Z equal the products of label vectors for documents with near labels. Regressors are found by
ridge regression, and by ADMM if they are to be sparse. The ridge problem min_W |W|^2 / 2 + C |Z - X W|^2 has the
solution W = X'A with (X X' + I / 2C) A = Z. Conjugate gradients solve it for all columns of Z at once, with only
sparse products.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.estimator.state_constraints import array, ids, offsets
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.kmeans import kmeans
from labelspace.kernels.quantize import Int8s, quantize_int8, quantize_int16
from labelspace.kernels.threads import search_in_blocks
from labelspace.labels.document_neighbors import nearest_by_labels
from labelspace.models.fit_context import Tick
from labelspace.models.sleec.kernels import ClusterRows, nearest_in_cluster
from labelspace.training.sparse_layers import embedded, product, products_at
from labelspace.types import Csr, Doubles, Floats, Ints, Longs, Rng, TopK

if TYPE_CHECKING:
    from labelspace.models.sleec.model import Sleec

KMEANS_ITERATIONS = 7  # clusters only have to be local, not optimal
ROW_BLOCK = 32  # queries per task
OVERSAMPLING = 10  # more dimensions of the subspace iteration than requested: with fewer, the last ones are less exact
POWER_ITERATIONS = 3  # of the subspace: more separate the largest singular values better
MAX_ITERATIONS = 200  # of conjugate gradients
TOLERANCE = 1e-2  # of the residual, relative to the right side: a smaller one gains nothing


def observed_products(Y: Csr, n_neighbors: int) -> Csr:
    """Return G (n, n): products of unit label vectors, for each document those with the nearest by labels (Omega)."""
    n = Y.shape[0]
    nearest = nearest_by_labels(Y, min(n_neighbors, n))
    known = nearest.labels >= 0
    indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    return sp.csr_matrix((nearest.scores[known], nearest.labels[known], indptr), shape=(n, n))


def truncated_svd(G: Csr, dim: int, rng: Rng) -> tuple[Floats, Floats]:
    """Return U and V (n, dim) with U V' the best approximation of G, zero outside of Omega, by subspace iteration."""
    n, transposed = G.shape[0], G.T.tocsr()
    basis = rng.standard_normal((n, min(dim + OVERSAMPLING, n)), np.float32)
    for _ in range(POWER_ITERATIONS):
        basis = np.linalg.qr(product(G, basis))[0]
        basis = np.linalg.qr(product(transposed, basis))[0]
    left = np.linalg.qr(product(G, basis))[0]
    right, triangle = np.linalg.qr(product(transposed, left))  # G ~ left triangle' right'
    inner, singular, outer = np.linalg.svd(triangle.T)
    dim = min(dim, n)
    roots = np.sqrt(singular[:dim])
    return (left @ inner[:, :dim]) * roots, (right @ outer[:dim].T) * roots


def label_embeddings(Y: Csr, params: Sleec, rng: Rng, tick: Tick) -> Floats:
    """Return Z (n, dim), which minimizes |G - Z V'|^2 over Omega by alternating gradient steps on Z and V.

    Each step has the best length. The steps stop when a pass lowers the error by less than the share ``tol``.
    """
    G = observed_products(Y, params.n_label_neighbors)
    U, V = truncated_svd(G, params.embedding_dim, rng)
    omega, error = csr_arrays(G), G.copy()  # G - U V' at Omega
    error.data = G.data - products_at(omega, U, V)
    squared = float(error.data @ error.data)
    for done in range(1, params.max_iter + 1):
        tick(1)
        direction = product(error, V)
        error.data = _step(U, direction, error.data, products_at(omega, direction, V))
        direction = product(error.T.tocsr(), U)
        error.data = _step(V, direction, error.data, products_at(omega, U, direction))
        previous, squared = squared, float(error.data @ error.data)
        if previous - squared <= params.tol * previous:
            tick(params.max_iter - done)
            break
    return U


def _step(factor: Floats, direction: Floats, error: Floats, change: Floats) -> Floats:
    """Move a factor along a direction that changes the products by ``change``; return the error that remains."""
    length = np.float32(float(error @ change) / max(float(change @ change), 1e-30))
    factor += length * direction
    return np.asarray(error - length * change)


class Ridge:
    """Ridge regression on the documents X (n, n_features), for any targets."""

    def __init__(self, X: Csr, C: float) -> None:
        self.X = X
        self.X_transposed = X.T.tocsr()
        self.ridge = np.float32(0.5 / C)

    def dual(self, Z: Floats, start: Floats | None = None) -> Floats:
        """Return A (n, dim) with (X X' + I / 2C) A = Z."""
        A = np.zeros_like(Z) if start is None else start.copy()
        residual = Z - self._apply(A)
        direction = residual.copy()
        squared = _column_products(residual, residual)
        wanted = TOLERANCE**2 * np.maximum(_column_products(Z, Z), 1e-30)
        for _ in range(MAX_ITERATIONS):
            if (squared <= wanted).all():
                break
            image = self._apply(direction)
            steps = (squared / np.maximum(_column_products(direction, image), 1e-30)).astype(np.float32)
            A += steps * direction
            residual -= steps * image
            previous, squared = squared, _column_products(residual, residual)
            direction *= (squared / np.maximum(previous, 1e-30)).astype(np.float32)
            direction += residual
        return A

    def weights(self, A: Floats) -> Floats:
        """Return W = X'A (n_features, dim)."""
        return product(self.X_transposed, A)

    def _apply(self, A: Floats) -> Floats:
        out = product(self.X, self.weights(A))
        out += self.ridge * A
        return out


def _column_products(A: Floats, B: Floats) -> Doubles:
    return np.asarray(np.einsum("ij,ij->j", A, B, dtype=np.float64))


def fit_regressors(X: Csr, Z: Floats, C: float, l1: float, rho: float, admm_iter: int) -> Floats:
    """Return W (n_features, dim), which minimizes |W|^2 / 2 + C |Z - X W|^2 + C l1 |X W|_1, the last term by ADMM.

    ADMM splits off B = X W, with the scaled multipliers M: W by ridge regression on both targets, Z and B - M; then B
    by soft thresholding of X W + M at l1 / 2 rho; then M by the difference of B and X W.
    """
    if l1 == 0:
        ridge = Ridge(X, C)
        return ridge.weights(ridge.dual(Z))
    ridge = Ridge(X, C * (1 + rho))
    A = None
    B, M = np.zeros_like(Z), np.zeros_like(Z)
    for _ in range(admm_iter):
        target: Floats = ((Z + rho * (B - M)) / (1 + rho)).astype(np.float32)
        A = ridge.dual(target, A)
        W = ridge.weights(A)
        M += product(X, W)
        B = np.sign(M) * np.maximum(np.abs(M) - np.float32(0.5 * l1 / rho), 0)
        M -= B
    return W


class Learner(NamedTuple):
    """The state of a learner; the documents and the regressors are stored cluster after cluster."""

    centers: Annotated[Int8s, array("int8", "n_features", "n_clusters")]
    center_scales: Annotated[Floats, array("float32", "n_features")]
    starts: Annotated[Longs, offsets("n_clusters", into="n_documents")]  # the first document of each cluster
    documents: Annotated[Ints, ids("n_documents", below="n_documents")]
    vectors: Annotated[Int8s, array("int8", "n_documents", "dim")]  # X W of the training documents
    scales: Annotated[Floats, array("float32", "n_documents")]
    squares: Annotated[Floats, array("float32", "n_documents")]  # their squared norms
    weights: Annotated[Int8s, array("int8", "n_rows", "dim")]  # the rows of all W; the first is 0
    weight_scales: Annotated[Floats, array("float32", "n_rows")]
    # The row of each feature in a cluster, the first if the cluster has no document with the feature.
    weight_rows: Annotated[Ints, array("int32", "n_clusters", "n_features", at_least=0, below="n_rows")]

    def nearest(self, X: Csr, n_neighbors: int) -> TopK:
        """Find the nearest training documents of each row in its cluster; scores are negative squared distances."""
        cluster = self.cluster_of(X)
        rows = np.repeat(cluster, np.diff(X.indptr))
        features = self.weight_rows[rows, X.indices]
        vectors = embedded((X.data, features, X.indptr), self.weights, self.weight_scales, None, ROW_BLOCK)
        quantized, query_scales = quantize_int16(vectors)
        documents = ClusterRows(self.starts, self.vectors, self.scales, self.squares, self.documents)

        def search(part: slice, labels: Ints, scores: Floats) -> None:
            nearest_in_cluster(quantized[part], query_scales[part], cluster[part], documents, labels, scores)

        out = search_in_blocks(search, len(vectors), n_neighbors, ROW_BLOCK)
        out.scores[:] -= np.square(vectors).sum(axis=1, keepdims=True)
        return out

    def cluster_of(self, X: Csr) -> Longs:
        """Return the cluster whose center has the largest inner product with each row."""
        if self.centers.shape[1] == 1:
            return np.zeros(X.shape[0], np.int64)
        products = embedded(csr_arrays(X), self.centers, self.center_scales, None, ROW_BLOCK)
        return np.asarray(products.argmax(axis=1), np.int64)


def cluster_documents(X: Csr, n_clusters: int, seed: int) -> tuple[Ints, Longs]:
    """Make step 1: return the documents cluster after cluster, and where each cluster starts; no cluster is empty."""
    documents = np.arange(X.shape[0], dtype=np.int32)
    if n_clusters == 1:
        return documents, np.array([0, len(documents)], np.int64)
    sizes = kmeans(csr_arrays(normalize_rows(X)), documents, n_clusters, KMEANS_ITERATIONS, seed, X.shape[1])
    return documents, np.concatenate([[0], np.cumsum(sizes[sizes > 0])])


def train_learner(X: Csr, Y: Csr, params: Sleec, n_clusters: int, number: int, tick: Tick) -> Learner:
    """Make steps 1 to 5; ``tick`` counts ``max_iter`` + 1 steps for each of ``n_clusters``."""
    documents, starts = cluster_documents(X, n_clusters, params.random_state * 1_000_003 + number)
    points = np.zeros((len(documents), params.embedding_dim), np.float32)
    tables = [np.zeros((1, params.embedding_dim), np.float32)]
    n_rows = 1
    weight_rows = np.zeros((len(starts) - 1, X.shape[1]), np.int32)
    for c, (start, stop) in enumerate(pairwise(starts)):
        members = documents[start:stop]
        part = X[members]
        used, columns = np.unique(part.indices, return_inverse=True)
        part = sp.csr_matrix((part.data, columns.astype(np.int32), part.indptr), shape=(len(members), len(used)))
        rng = np.random.default_rng([params.random_state, number, c])
        W, points[start:stop] = embed_cluster(part, Y[members], params, rng, tick)
        weight_rows[c, used] = np.arange(n_rows, n_rows + len(used))
        tables.append(W)
        n_rows += len(W)
        tick(1)
    tick((n_clusters - len(weight_rows)) * (params.max_iter + 1))
    return quantized(X, documents, starts, points, np.concatenate(tables), weight_rows)


def embed_cluster(X: Csr, Y: Csr, params: Sleec, rng: Rng, tick: Tick) -> tuple[Floats, Floats]:
    """Make steps 2 to 5: return the regressors (n_features, dim) and the embeddings of the documents (n, dim)."""
    Z = label_embeddings(Y, params, rng, tick)
    Z = np.pad(Z, ((0, 0), (0, params.embedding_dim - Z.shape[1])))  # if there are fewer documents than dimensions
    W = fit_regressors(X, Z, params.C, params.l1, params.rho, params.admm_iter)
    W = zero_smallest(W.reshape(-1, 1), params.weight_sparsity).reshape(W.shape)
    return W, zero_smallest(product(X, W), params.embedding_sparsity)


def zero_smallest(values: Floats, share: float) -> Floats:
    """Set a share of the values (n, m) in each column to zero: the smallest in size.

    >>> zero_smallest(np.array([[1.0], [-3.0], [2.0], [-0.5]], np.float32), 0.5).ravel().tolist()
    [0.0, -3.0, 2.0, 0.0]
    """
    if share == 0 or not len(values):
        return values
    sizes = np.abs(values)
    n_zeroed = int(share * len(values))
    bound = np.partition(sizes, n_zeroed, axis=0)[n_zeroed]
    return np.asarray(np.where(sizes < bound, np.float32(0), values))


def quantized(X: Csr, documents: Ints, starts: Longs, points: Floats, W: Floats, weight_rows: Ints) -> Learner:
    """Quantize what was learned; centers of clusters are the means of their unit documents, scaled to length one."""
    vectors, scales = quantize_int8(points)
    squares = np.square(vectors, dtype=np.float32).sum(axis=1) * np.square(scales)
    cluster = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shape = (len(starts) - 1, len(documents))
    member = sp.csr_matrix((np.ones(len(documents), np.float32), (cluster, documents)), shape=shape)
    centers = normalize_rows((member @ normalize_rows(X)).tocsr()).toarray().T
    return Learner(*quantize_int8(centers), starts, documents, vectors, scales, squares, *quantize_int8(W), weight_rows)
