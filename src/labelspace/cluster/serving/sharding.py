"""Call shards, wherever they are, and merge and check their answers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from labelspace.errors import ClusterError, ModelError, ParameterError
from labelspace.features.sparse_matrix import BLOCK
from labelspace.kernels import large_arrays
from labelspace.types import Bools, Floats, Ints, Longs, TopK

REMEDY = "remove the folder MODEL.shards, it is made anew"
MAX_ID = 2**31  # above the numbers of labels and nodes, which are 32-bit


class Shards(Protocol):
    """The shards of a model: all have the same methods, and each answers for its own labels."""

    def call(self, method: str, *arguments: Any, mask: Any = None) -> list[Any]:  # noqa: ANN401 - of the method
        """Call a method of each shard, and return the answers; ``mask`` comes from ``share``, for ``allowed``."""

    def share(self, mask: Bools) -> Any:  # noqa: ANN401 - whatever ``call`` takes for it
        """Give a mask of labels to all shards, for several calls."""


class Splitting(NamedTuple):
    """The functions that split a method."""

    split: Callable[[Any, int], Iterator[Any]]  # into n shards
    front_end: Callable[[Any, int], Any]  # the model without the parts of n shards
    connected: Callable[[Any, Shards], Any]  # the front end with its shards, which answers as the whole model


class Extent(NamedTuple):
    """The largest numbers in a shard, with which the front end indexes its own arrays."""

    n_features: int  # or numbers of a vector
    last_label: int  # -1 is none
    last_node: int = -1


def check_extents(shards: Shards, n_features: int, n_labels: int, n_nodes: int = 0) -> None:
    """Raise ModelError for shards that do not match the front end: each was only checked by itself when loaded."""
    for found in shards.call("extent"):
        if found.n_features != n_features or found.last_label >= n_labels or found.last_node >= n_nodes:
            rule = f"every shard must have {n_features} features, labels below {n_labels} and nodes below {n_nodes}"
            problem = f"one has {found.n_features}, and label {found.last_label} and node {found.last_node}"
            raise ModelError(f"{rule}, but {problem}; {REMEDY}")


def must_fit(fits: bool | np.bool_, n_features: int) -> None:
    """Raise ClusterError for documents with other features than a shard: kernels would read beyond its end."""
    if not fits:
        raise ClusterError(f"documents must have the {n_features} features of the shard, but have others; {REMEDY}")


def id_counts(ids: npt.NDArray[Any], n: int) -> Longs:
    """Count how often each id below n occurs. Shape (n,).

    >>> id_counts(np.array([0, 2, 2], np.uint16), 4).tolist()
    [1, 0, 2, 0]
    """
    counts = np.zeros(n, np.int64)
    for part in large_arrays.blocks(len(ids), max(BLOCK, n)):  # in parts, since NumPy converts the ids to 64 bits
        counts += np.bincount(ids[part], minlength=n)
    return counts


def merged(found: Sequence[TopK], k: int) -> TopK:
    """Return the k best labels of all shards, best first; of equal scores the smaller label, as in one model.

    >>> merged([TopK.from_scores([[0.1, 0.9]], k=2), TopK(np.array([[7, -1]]), np.array([[0.9, -np.inf]]))], k=2).labels
    array([[1, 7]], dtype=int32)
    """
    labels = np.concatenate([top.labels for top in found], axis=1)
    return TopK(*best(labels, np.concatenate([top.scores for top in found], axis=1), k)).padded(k)


def best(ids: Ints, scores: Floats, size: int) -> tuple[Ints, Floats]:
    """Return the ids of largest score along the last axis, best first; of equal scores the smaller id."""
    order = np.lexsort((ids, -scores))[..., :size]
    return np.take_along_axis(ids, order, -1), np.take_along_axis(scores, order, -1)


def check_shards(n: int, n_labels: int) -> None:
    """Raise ParameterError for more shards than labels that can be suggested."""
    if n > n_labels:
        problem = f"{n} shards are for {n_labels} labels that have documents"
        raise ParameterError(f"a shard must have a label, but {problem}; ask for fewer")


def balanced_spans(costs: Sequence[int] | Any, n: int) -> list[slice]:  # noqa: ANN401 - an array of numbers
    """Return n spans of adjacent labels whose costs are alike; few are empty.

    >>> balanced_spans([5, 1, 1, 1, 1, 1], 2), balanced_spans([1], 2)
    ([slice(0, 1, None), slice(1, 6, None)], [slice(0, 0, None), slice(0, 1, None)])
    """
    total = np.cumsum(np.asarray(costs, np.int64))
    parts = np.arange(1, n)
    inner = np.searchsorted(total, total[-1] * parts / n) + 1
    inner = np.maximum.accumulate(inner - parts) + parts  # each after the one before
    inner = np.maximum(np.minimum(inner, len(total) - n + parts), 0)
    cuts = [0, *inner.tolist(), len(total)]
    return list(map(slice, cuts, cuts[1:]))
