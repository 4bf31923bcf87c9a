"""One learner: clusters of documents, each with its own embedding."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.estimator.state_constraints import array, ids, offsets
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.kmeans import kmeans
from labelspace.kernels.quantize import Int8s, quantize_int8, quantize_int16
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.sleec.embedding import fit_regressors, label_embeddings
from labelspace.models.sleec.kernels import ClusterRows, nearest_in_cluster
from labelspace.training.sparse_layers import product
from labelspace.types import Csr, Floats, Ints, Longs, TopK

if TYPE_CHECKING:
    from labelspace.models.sleec.model import Sleec

KMEANS_ITERATIONS = 7  # clusters only have to be local, not optimal
ROW_BLOCK = 32  # queries per task


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
        vectors = _embed(X.data, features, X.indptr, self.weights, self.weight_scales)
        quantized, scales = quantize_int16(vectors)
        documents = ClusterRows(self.starts, self.vectors, self.scales, self.squares, self.documents)
        out = TopK.empty(len(vectors), n_neighbors)

        def search(start: int, stop: int) -> None:
            part = slice(start, stop)
            queries = (quantized[part], scales[part], cluster[part])
            nearest_in_cluster(*queries, documents, out.labels[part], out.scores[part])

        run_blocks(search, len(vectors), ROW_BLOCK)
        out.scores[:] -= np.square(vectors).sum(axis=1, keepdims=True)
        return out

    def cluster_of(self, X: Csr) -> Longs:
        """Return the cluster whose center has the largest inner product with each row."""
        if self.centers.shape[1] == 1:
            return np.zeros(X.shape[0], np.int64)
        products = _embed(X.data, X.indices, X.indptr, self.centers, self.center_scales)
        return np.asarray(products.argmax(axis=1), np.int64)


def _embed(data: Floats, features: Ints, indptr: Ints, table: Int8s, scales: Floats) -> Floats:
    """Multiply a sparse matrix by a quantized table; a row of the result depends only on the same row of the matrix."""
    out = np.empty((len(indptr) - 1, table.shape[1]), np.float32)
    zeros = np.zeros(table.shape[1], np.float32)

    def embed(start: int, stop: int) -> None:
        embed_rows(data, features, indptr, start, stop, table, scales, zeros, out)

    run_blocks(embed, len(out), ROW_BLOCK)
    return out


def cluster_documents(X: Csr, n_clusters: int, seed: int) -> tuple[Ints, Longs]:
    """Make step 1: return the documents cluster after cluster, and where each cluster starts; no cluster is empty."""
    documents = np.arange(X.shape[0], dtype=np.int32)
    if n_clusters == 1:
        return documents, np.array([0, len(documents)], np.int64)
    unit = normalize_rows(X)
    sizes = kmeans(csr_arrays(unit), documents, n_clusters, KMEANS_ITERATIONS, seed, X.shape[1])
    return documents, np.concatenate([[0], np.cumsum(sizes[sizes > 0])])


def train_learner(X: Csr, Y: Csr, params: Sleec, n_clusters: int, number: int, tick: Callable[[int], None]) -> Learner:
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


def embed_cluster(
    X: Csr, Y: Csr, params: Sleec, rng: np.random.Generator, tick: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """Make steps 2 to 5: return the regressors (n_features, dim) and the embeddings of the documents (n, dim)."""
    Z = label_embeddings(Y, params.embedding_dim, params.n_label_neighbors, params.max_iter, params.tol, rng, tick)
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
    kept: Floats = np.where(sizes < bound, np.float32(0), values)
    return kept


def quantized(X: Csr, documents: Ints, starts: Longs, points: Floats, weights: Floats, weight_rows: Ints) -> Learner:
    """Quantize what was learned; centers of clusters are the means of their unit documents, scaled to length one."""
    vectors, scales = quantize_int8(points)
    squares = np.square(vectors, dtype=np.float32).sum(axis=1) * np.square(scales)
    cluster = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shape = (len(starts) - 1, len(documents))
    member = sp.csr_matrix((np.ones(len(documents), np.float32), (cluster, documents)), shape=shape)
    centers = normalize_rows((member @ normalize_rows(X)).tocsr()).toarray().T
    return Learner(
        *quantize_int8(centers), starts, documents, vectors, scales, squares, *quantize_int8(weights), weight_rows
    )
