"""AnnexML: documents with similar labels are neighbors in a learned embedding, and vote for their labels.

Tagami, "AnnexML: Approximate Nearest Neighbor Search for Extreme Multi-label Classification" (2017).

1. Link each document to its ``n_label_neighbors`` nearest documents by the cosine of label sets. Steps 2 to 6 train one
   learner; ``n_estimators`` learners are trained in parallel, each with other random numbers.
2. Start K partitions with the features of K documents drawn at random as their weights w_c.
3. For each document, find the partition c with the largest w_c . x; draw the document's neighbors to it and as many
   other documents away from it: FTRL with L1 weight lambda on the logistic loss of w_c . x.
4. In each partition, find the label neighbors of each document again.
5. Train V by Adagrad on the loss log(1 + sum_q exp(-gamma (cos_p - cos_q))) of each neighbor p and others q drawn at
   random, where cos is the cosine with the document after x -> V'x.
6. Store the direction of V'x for each document of the partition.
7. To tag a document, find its partition and its ``n_neighbors`` nearest documents there, by each learner; they vote for
   their labels with weights exp(-sharpness (1 - cos)).

| symbol | meaning | in the code |
|---|---|---|
| w_c | weights of partition c | ``weights_`` |
| V_c | embedding of partition c | ``vectors_`` |
| gamma | sharpness of the softmax of cosines | ``gamma`` |
| lambda | L1 weight of the partitions | ``reg_weight`` |

Where we differ, and why: Adagrad has one rate for each feature, not for each number of V: half the memory, and most of
the step is a vector operation. Cosines whose slope is below 1 % of the largest move nothing. The search reads all
points of a partition, in 8 bits: for 6,000 points this is quick, and exact. Learners are trained one per thread, so
results do not depend on their number. Near documents have larger votes (the preset ``paper`` counts them).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import integer, real
from labelspace.estimator.state_constraints import array, ids, must, offsets, sparse
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.random_numbers import initial_state
from labelspace.kernels.threads import search_in_blocks
from labelspace.labels.document_neighbors import count_votes, label_neighbors
from labelspace.labels.masks import labels_among
from labelspace.models import parameters
from labelspace.models.annexml import kernels
from labelspace.models.annexml.kernels import Ftrl, Learners, PartitionPoints, PartitionVectors
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext, Tick
from labelspace.training.sparse_layers import embedded
from labelspace.types import Bools, Csr, Floats, Ints, Rng, TopK

PARTITION_SIZE = 6000  # documents per partition, if their number is not given: the search reads one partition whole
ROW_BLOCK = 16  # documents per task
MAX_DIM = 10_000  # a wider query would have too few steps: its products with int8 points are summed in 32 bits
PARTITION_LEARNING_RATE = 0.1  # of FTRL, which lowers it for weights that change often


class AnnexML(Model):
    """Nearest training documents in embeddings that are learned from the similarity of label sets.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = AnnexML(n_estimators=3).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "annexml"
    title = "AnnexML: nearest neighbors in embeddings learned from label sets (Tagami, 2017)"
    choose_when = "documents have many labels, or you compare with the paper"
    trains_in_tasks = True

    n_estimators: int = param(15, integer(1, at_most=100), "Number of learners, whose votes are added.")
    embedding_dim: int = param(50, integer(1, at_most=MAX_DIM), "Dimension of the embeddings.")
    n_partitions: int | None = param(
        None, integer(1), f"Partitions of the documents; none takes one for {PARTITION_SIZE:,} documents."
    )
    partition_epochs: int = param(2, integer(1), "Number of epochs that learn the partitions.")
    reg_weight: float = param(4.0, real(at_least=0), "L1 weight of the partitions.")
    n_label_neighbors: int = param(10, integer(1), "Documents with the most similar labels that are drawn near.")
    n_negatives: int = param(10, integer(1), "Documents drawn at random for each one, which its neighbors must beat.")
    gamma: float = param(10.0, real(above=0), "Sharpness of the softmax of cosines.")
    epochs: int = param(10, integer(1), "Number of epochs that learn the embeddings.")
    learning_rate: float = parameters.learning_rate(0.1, "the embeddings")
    init_std: float = param(1.0, real(above=0), "Standard deviation of the embeddings at the start.")
    n_neighbors: int = param(20, integer(1), "Nearest documents of each learner that vote.")
    sharpness: float = param(10.0, real(at_least=0), "Decay of votes with distance; 0 counts all alike.")
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    presets = {
        # The authors' example settings; all others are their defaults too. With sharpness 0, votes are counted.
        "paper": {"partition_epochs": 10, "n_neighbors": 10, "sharpness": 0.0}
    }

    learner_starts_: Ints = learned(offsets("n_learners", into="n_partitions"))  # the partitions of each learner
    weights_: Csr = learned(sparse("float32", "n_features", "n_partitions"))
    vectors_: Int8s = learned(array("int8", "n_vectors", "dim"))  # feature after feature
    vector_scales_: Floats = learned(array("float32", "n_vectors"))
    vector_partitions_: Ints = learned(ids("n_vectors", below="n_partitions"))
    vector_starts_: Ints = learned(offsets("n_features", into="n_vectors"))
    points_: Int8s = learned(array("int8", "n_points", "dim"))  # partition after partition
    point_scales_: Floats = learned(array("float32", "n_points"))
    point_documents_: Ints = learned(ids("n_points", below="n_documents"))  # rows of Y_
    point_starts_: Ints = learned(offsets("n_partitions", into="n_points"))
    Y_: Csr = learned(sparse("float32", "n_documents", "n_labels"))

    def check_state(self) -> None:
        """Check that every learner has a partition."""
        must(len(self.learner_starts_) > 1, "learners")
        must((np.diff(self.learner_starts_) > 0).all(), "a partition for each learner")

    def count_partitions(self, n_documents: int) -> int:
        """Return the number of partitions for a number of documents."""
        return min(self.n_partitions or max(n_documents // PARTITION_SIZE, 1), n_documents)

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        labelled = np.flatnonzero(np.diff(Y.indptr))  # documents without labels have no vote
        X = normalize_rows(X) if self.normalize else X
        X, Y = X[labelled], Y[labelled]
        n = len(labelled)
        n_partitions = self.count_partitions(n)
        graph = label_neighbors(Y, self.n_label_neighbors) if n_partitions > 1 else None  # step 1
        total = self.n_estimators * n * (self.epochs + self.partition_epochs * (n_partitions > 1))
        data = (X, Y, graph, self)
        learners = context.train_learners(
            train_learner, data, self.n_estimators, lambda done: context.progress("documents", done, total)
        )
        self.Y_ = Y
        self._store(learners, X.shape[1])

    def _store(self, learners: list[Learner], n_features: int) -> None:
        """Join the arrays of all learners, in the order in which prediction reads them."""
        partitions = [partition for _, parts in learners for partition in parts]
        self.learner_starts_ = starts_of([len(parts) for _, parts in learners])
        self.weights_ = sp.csr_matrix(np.concatenate([weights for weights, _ in learners], axis=1))
        all_parts = Partition(*map(np.concatenate, zip(*partitions, strict=True)))
        order = np.argsort(all_parts.features, kind="stable")
        sizes = [len(partition.features) for partition in partitions]
        self.vectors_, self.vector_scales_ = all_parts.vectors[order], all_parts.vector_scales[order]
        self.vector_partitions_ = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
        self.vector_starts_ = starts_of(np.bincount(all_parts.features, minlength=n_features))
        self.points_, self.point_scales_ = all_parts.points, all_parts.point_scales
        self.point_documents_ = all_parts.rows
        self.point_starts_ = starts_of([len(partition.rows) for partition in partitions])

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        Y = self.Y_ if allowed is None else self.mask_cache.get(allowed, lambda: labels_among(self.Y_, allowed))
        X = normalize_rows(X) if self.normalize else X

        def tag(rows: slice, labels: Ints, scores: Floats) -> None:
            top = self._vote(*self._nearest(X, rows.start, rows.stop), Y, k)
            labels[:], scores[:] = top.labels, top.scores

        return search_in_blocks(tag, X.shape[0], k, ROW_BLOCK)

    def _nearest(self, X: Csr, start: int, stop: int) -> tuple[Ints, Floats]:
        """Return the nearest documents of some rows and their cosines: (rows, n_learners, n_neighbors)."""
        shape = (stop - start, len(self.learner_starts_) - 1, min(self.n_neighbors, self.Y_.shape[0]))
        near, cosines = np.empty(shape, np.int32), np.empty(shape, np.float32)
        vectors = PartitionVectors(self.vectors_, self.vector_scales_, self.vector_partitions_, self.vector_starts_)
        points = PartitionPoints(self.points_, self.point_scales_, self.point_documents_, self.point_starts_)
        learners = Learners(csr_arrays(self.weights_), self.learner_starts_, vectors, points)
        kernels.nearest_in_partitions(csr_arrays(X), start, stop, learners, near, cosines)
        return near, cosines

    def _vote(self, near: Ints, cosines: Floats, Y: Csr, k: int) -> TopK:
        """Count the votes of the nearest documents of all learners; with sharpness 0 each has one vote."""
        votes = np.zeros_like(cosines)
        np.exp(np.float32(self.sharpness) * (cosines - np.float32(1)), where=near >= 0, out=votes)
        return count_votes(near.reshape(len(near), -1), votes.reshape(len(near), -1), Y, k)


def starts_of(sizes: npt.ArrayLike) -> Ints:
    """Return where each of some adjacent spans begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


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
    kept = np.flatnonzero(np.bincount(partition_of, minlength=weights.shape[1]))
    members = [np.flatnonzero(partition_of == c).astype(np.int32) for c in kept]
    partitions = [embed_partition(X, Y, rows, params, rng, tick) for rows in members]
    return np.ascontiguousarray(weights[:, kept]), partitions


def learn_partitions(X: Csr, graph: Csr | None, params: AnnexML, rng: Rng, tick: Tick) -> tuple[Floats, Ints]:
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
    ftrl = Ftrl(weights, sums, roots, PARTITION_LEARNING_RATE, float(params.reg_weight))
    documents, links = csr_arrays(X), csr_arrays(graph)
    state = initial_state(int(rng.integers(2**31)))
    for _ in range(params.partition_epochs):  # step 3
        order = rng.permutation(n).astype(np.int32)
        state = np.uint64(kernels.train_partitions(documents, links, order, state, ftrl))
        tick(n)
    kernels.assign_partitions(documents, weights, partition_of)
    return weights, partition_of


def embed_partition(X: Csr, Y: Csr, rows: Ints, params: AnnexML, rng: Rng, tick: Tick) -> Partition:
    """Train the embedding of the documents of one partition."""
    rows = rng.permutation(rows)  # else documents with the same labels have the same few neighbors
    own = X[rows]
    features, columns = np.unique(own.indices, return_inverse=True)
    documents = CsrArrays(own.data, columns.astype(np.int32), own.indptr)
    graph = csr_arrays(label_neighbors(Y[rows], params.n_label_neighbors))  # step 4
    vectors = rng.standard_normal((len(features), params.embedding_dim), np.float32) * np.float32(params.init_std)
    squares = np.zeros(len(features), np.float32)
    loss = kernels.CosineLoss(params.n_negatives, float(params.gamma), float(params.learning_rate))
    state = initial_state(int(rng.integers(2**31)))
    for _ in range(params.epochs):  # step 5
        order = rng.permutation(len(rows)).astype(np.int32)
        _, drawn = kernels.train_cosine_embeddings(documents, graph, order, loss, state, vectors, squares)
        state = np.uint64(drawn)
        tick(len(rows))
    table, scales = quantize_int8(vectors)
    points = embedded(documents, table, scales, None)  # step 6
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.float32(1e-30))
    return Partition(rows, features.astype(np.int32), table, scales, *quantize_int8(points))
