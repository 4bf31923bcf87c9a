"""The training of one learner: its partitions (steps 2 and 3), and an embedding for each (steps 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.random_numbers import initial_state
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.labels.document_neighbors import label_neighbors
from labelspace.models.annexml.kernels import Ftrl, assign_partitions, train_cosine_embeddings, train_partitions
from labelspace.types import Csr, Floats, Ints

if TYPE_CHECKING:
    from labelspace.models.annexml.model import AnnexML

PARTITION_LEARNING_RATE = 0.1  # of FTRL, which lowers it for weights that change often
Tick = Callable[[int], None]


class Partition(NamedTuple):
    """The documents of a partition as points, and the embedding that made them; only of features that occur."""

    rows: Ints
    features: Ints
    vectors: Int8s  # V (features, dim)
    vector_scales: Floats
    points: Int8s  # (rows, dim)
    point_scales: Floats


Learner = tuple[Floats, list[Partition]]
"""The weights of partitions (n_features, K), and the partitions; each has documents."""


def train_learner(X: Csr, Y: Csr, graph: Csr | None, params: AnnexML, number: int, tick: Tick) -> Learner:
    """Train one learner, whose random numbers depend only on the seed and its number."""
    rng = np.random.default_rng([params.random_state, number])
    weights, partition_of = learn_partitions(X, graph, params, rng, tick)
    counts = np.bincount(partition_of, minlength=weights.shape[1])
    kept = np.flatnonzero(counts)
    partitions = [
        embed_partition(X, Y, np.flatnonzero(partition_of == c).astype(np.int32), params, rng, tick) for c in kept
    ]
    return np.ascontiguousarray(weights[:, kept]), partitions


def learn_partitions(
    X: Csr, graph: Csr | None, params: AnnexML, rng: np.random.Generator, tick: Tick
) -> tuple[Floats, Ints]:
    """Return the weights of the partitions (n_features, K) and the partition of each document, by a graph of neighbors.

    Without a graph there is one partition.
    """
    n, n_partitions = X.shape[0], params.count_partitions(X.shape[0])
    partition_of = np.zeros(n, np.int32)
    if graph is None:
        return np.zeros((X.shape[1], 1), np.float32), partition_of
    centers = X[rng.permutation(n)[:n_partitions]].T.toarray()  # step 2
    weights = np.ascontiguousarray(centers, np.float32)
    roots = np.zeros(centers.shape, np.float32)
    sums = (-weights / PARTITION_LEARNING_RATE - np.sign(weights) * params.reg_weight).astype(np.float32)
    ftrl = Ftrl(weights, sums, roots)
    documents, links = csr_arrays(X), csr_arrays(graph)
    state = initial_state(int(rng.integers(2**31)))
    for _ in range(params.partition_epochs):  # step 3
        order = rng.permutation(n).astype(np.int32)
        state = np.uint64(
            train_partitions(documents, links, order, PARTITION_LEARNING_RATE, float(params.reg_weight), state, ftrl)
        )
        tick(n)
    assign_partitions(documents, weights, partition_of)
    return weights, partition_of


def embed_partition(X: Csr, Y: Csr, rows: Ints, params: AnnexML, rng: np.random.Generator, tick: Tick) -> Partition:
    """Train the embedding of the documents of one partition."""
    rows = rng.permutation(rows)  # else documents with the same labels have the same few neighbors
    own = X[rows]
    features, columns = np.unique(own.indices, return_inverse=True)
    documents = CsrArrays(own.data, columns.astype(np.int32), own.indptr)
    graph = csr_arrays(label_neighbors(Y[rows], params.n_label_neighbors))  # step 4
    vectors = rng.standard_normal((len(features), params.embedding_dim), np.float32) * np.float32(params.init_std)
    squares = np.zeros(len(features), np.float32)
    state = initial_state(int(rng.integers(2**31)))
    for _ in range(params.epochs):  # step 5
        order = rng.permutation(len(rows)).astype(np.int32)
        _, drawn = train_cosine_embeddings(
            documents,
            graph,
            order,
            params.n_negatives,
            float(params.gamma),
            float(params.learning_rate),
            state,
            vectors,
            squares,
        )
        state = np.uint64(drawn)
        tick(len(rows))
    table, scales = quantize_int8(vectors)
    points = np.empty((len(rows), params.embedding_dim), np.float32)
    zeros = np.zeros(params.embedding_dim, np.float32)
    embed_rows(*documents, 0, len(rows), table, scales, zeros, points)  # step 6
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.float32(1e-30))
    return Partition(rows, features.astype(np.int32), table, scales, *quantize_int8(points))
