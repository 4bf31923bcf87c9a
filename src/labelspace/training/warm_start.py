"""Going on learning from further documents with linear classifiers that are stored by features in 8 bits.

What the documents learned before say stays as it is: see ``kernels.warm_start``. A classifier is touched if a new
document has its label, if a person rejected the label for it, or if its margin for the document violates the loss
clearly. All costs are those of the new documents, and of the weights of their features, except for copies.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.features.sparse_matrix import scaled_values
from labelspace.kernels import warm_start as kernels
from labelspace.kernels.beam_search import NodeWeights, Tree
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.warm_start import Columns, FeatureRows, Lists, Pairs, WarmProblem
from labelspace.training.linear_weights import LinearWeights, id_type
from labelspace.types import Csr, Floats, Ints

Halves = npt.NDArray[np.float16]

ROW_BLOCK = 64  # documents per task
CLASSIFIER_BLOCK = 64  # classifiers per task
# Chosen on held-out documents of CookingSE and EURLEX57K.
NEGATIVE_C, POSITIVE_C = 0.7, 1.0  # C of a new document of few features, as a multiple of C in the training
REJECTED = 10.0  # the weight of a document whose label a person rejected: a negative that is certain, and was shown
STIFFNESS = 3.0  # of a classifier that all documents trained, times C; for documents of few features
FEW_FEATURES = 50  # of a document: the words and groups of characters of a short title
GROWTH = 0.6  # power of the number of features by which new negatives count more, and earlier documents hold weights
VIOLATION = -0.9  # margin above which a document is a negative: smaller violations cost much time and teach little
LOGISTIC_VIOLATION = -2.0  # the same for the logistic loss, where the gradient is then 0.12
MAX_SQUARES = 60_000.0  # the largest sum of squares that is kept: 16 bits hold no larger one


class WarmOptions(NamedTuple):
    """How classifiers were trained, and go on learning."""

    solver: SolverOptions
    threshold: float  # weights of a smaller absolute value become 0
    l1: float = 0.0
    logistic: bool = False


class Examples(NamedTuple):
    """New documents of some classifiers, which are the children of nodes of a tree."""

    X: Csr  # (n, n_features)
    signs: Csr  # (n, n_classifiers) 1 for a positive, and -REJECTED for a negative by a person
    reached: Csr  # (n, n_nodes) ones where a document is an example for the children of a node; sorted
    # (n_classifiers,) as far as all documents are negatives if infinite, and no documents if -infinite
    search_bias: Floats


def sums_of_squares(X: Csr, before: Halves | None = None) -> Halves:
    """Return the sum of squares of each feature, with those of documents before, in 16 bits.

    >>> sums_of_squares(sp.csr_matrix([[0.0, 2.0], [1.0, 1.0]], dtype=np.float32)).tolist()
    [1.0, 5.0]
    """
    totals = np.zeros(X.shape[1], np.float32) if before is None else before.astype(np.float32)
    kernels.add_squares(csr_arrays(X), totals)
    return np.minimum(totals, MAX_SQUARES).astype(np.float16)


def continue_training(
    weights: LinearWeights,
    tree: Tree,
    examples: Examples,
    squares: Halves | None,
    shares: Floats,
    options: WarmOptions,
    seed: int,
) -> LinearWeights:
    """Return the weights after they learned from the examples.

    ``squares`` are the ``sums_of_squares`` of the documents learned before, None if nobody knows; ``shares``
    (n_classifiers,) are the parts of these that trained each classifier.
    """
    X, signs = examples.X, examples.signs
    limit = LOGISTIC_VIOLATION if options.logistic else VIOLATION
    by_classifier = (signs - violated(weights, tree, examples, limit)).tocsc()
    by_classifier.sort_indices()
    touched = np.flatnonzero(np.diff(by_classifier.indptr)).astype(np.int32)
    starts = by_classifier.indptr[np.append(touched, signs.shape[1])].astype(np.int64)
    pairs = Pairs(by_classifier.indices, by_classifier.data, starts)
    features, local = _with_local_features(X)
    number = np.full(signs.shape[1], -1, np.int32)
    number[touched] = np.arange(len(touched))
    stored = (weights.values, weights.labels, weights.starts, weights.scales)
    known = kernels.weights_of_columns(*stored, features, number, len(touched))
    squared = np.zeros(X.nnz, np.float32) if squares is None else squares[X.indices].astype(np.float32)
    C, growth = options.solver.C, _growth(X)
    problem = WarmProblem(csr_arrays(local), squared, len(features), C * NEGATIVE_C * growth, C * POSITIVE_C, *options)
    stiffness = (STIFFNESS * C * growth * shares[touched]).astype(np.float32)
    bias = weights.bias[touched]
    found: dict[int, Columns] = {}

    def learn(start: int, stop: int) -> None:
        found[start] = kernels.continue_columns(problem, pairs, known, bias, stiffness, start, stop, seed)

    run_blocks(learn, len(touched), CLASSIFIER_BLOCK)
    changes = _by_feature([found[start] for start in sorted(found)], len(features))
    return _merged(weights, features, CsrArrays(changes.data, touched[changes.indices], changes.indptr))


def violated(weights: LinearWeights, tree: Tree, examples: Examples, limit: float) -> Csr:
    """Return ones where a margin is above the limit, without what has a sign: (n, n_classifiers)."""
    X, reached, signs = examples.X, examples.reached, examples.signs
    documents = CsrArrays(scaled_values(X, weights.scales), X.indices, X.indptr)
    nodes = NodeWeights(weights.values, weights.labels, weights.starts, examples.search_bias)
    lists = Lists(reached.indices, reached.indptr), Lists(signs.indices, signs.indptr)
    found: dict[int, tuple[Ints, Ints]] = {}

    def search(start: int, stop: int) -> None:
        found[start] = kernels.violated_children(documents, start, stop, nodes, tree, *lists, limit)

    run_blocks(search, X.shape[0], ROW_BLOCK)
    nothing: Ints = np.zeros(0, np.int32)
    rows = np.concatenate([nothing, *(found[start][0] for start in sorted(found))])
    columns = np.concatenate([nothing, *(found[start][1] for start in sorted(found))])
    return sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=signs.shape)


def _growth(X: Csr) -> float:
    """Return by how much more new negatives count, and earlier documents hold weights, than for short documents.

    The more features documents have, the more of the earlier ones share some with a new document. When weights change,
    some of these would become negatives, which nobody looks for: new negatives stand for them too.
    """
    return float(max(X.nnz / max(X.shape[0], 1) / FEW_FEATURES, 1.0) ** GROWTH)


def _with_local_features(X: Csr) -> tuple[Ints, Csr]:
    """Return the features that occur in X, and X with only these columns."""
    occurs = np.zeros(X.shape[1], bool)
    occurs[X.indices] = True
    features = np.flatnonzero(occurs).astype(np.int32)
    number = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return features, sp.csr_matrix((X.data, number[X.indices], X.indptr), shape=(X.shape[0], len(features)))


def _by_feature(changes: list[Columns], n_features: int) -> Csr:
    """Return the changed weights of classifiers, block after block, as a matrix (n_features, n_classifiers)."""
    if not changes:
        return sp.csr_matrix((n_features, 0), dtype=np.float32)
    weights = np.concatenate([block.weights for block in changes])
    features = np.concatenate([block.features for block in changes])
    sizes = np.concatenate([np.diff(block.starts) for block in changes])
    indptr = np.append(0, np.cumsum(sizes))
    return sp.csc_matrix((weights, features, indptr), shape=(n_features, len(sizes))).tocsr()


def _merged(weights: LinearWeights, features: Ints, changes: CsrArrays) -> LinearWeights:
    """Return the weights with the changed ones; a feature has a new scale only if its largest weight grows."""
    old = FeatureRows(weights.values, weights.labels, weights.starts, weights.scales)
    scales = np.array(weights.scales)
    room = int(kernels.merged_sizes(old, features, changes, scales).sum())
    values, ids = np.empty(room, np.int8), np.empty(room, id_type(len(weights.bias)))
    new = FeatureRows(values, ids, np.empty(len(scales) + 1, np.int64), scales)
    end = kernels.merge_rows(old, features, changes, new)
    starts = new.starts.astype(weights.starts.dtype) if end < 2**31 else new.starts
    return replace(weights, values=values[:end], labels=ids[:end], starts=starts, scales=scales)
