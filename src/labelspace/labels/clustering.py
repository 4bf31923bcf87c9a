"""Trees over labels by hierarchical clustering of their vectors: balanced 2-means, or k-means without balance."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.kernels import large_arrays
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.kmeans import balanced_2means, kmeans
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.topk import largest_entries
from labelspace.types import Csr, Ints, Longs

LABEL_BLOCK = 8192  # labels whose sums are in memory at a time; more take more memory, fewer more products
SUMS_SHARE = 256  # where memory is limited, the sums have at most one entry per this number of bytes
MAX_ITERATIONS = 8  # of k-means; more cost time and gain nothing
SAMPLED_ITERATIONS, SAMPLED_TOL = 50, 0.01  # where samples come first: few of these iterations are over many rows


def pifa_embeddings(X: Csr, Y: Csr, max_features: int | None = None) -> Csr:
    """Return PIFA label embeddings: the normalized sum of each label's documents. Shape (n_labels, n_features).

    With ``max_features``, each label keeps that number of its largest features, and memory is bounded accordingly.
    """
    by_label = Y.T.tocsr()
    columns, values = large_arrays.growing(np.int32), large_arrays.growing(np.float32)
    sizes = np.zeros(by_label.shape[0], np.int64)
    for labels in _label_blocks(by_label, X, max_features):
        sums = (by_label[labels] @ X).tocsr()
        if max_features is not None:
            kept = largest_entries(sums.data, sums.indptr, max_features)
            starts = np.searchsorted(kept, sums.indptr).astype(np.int32)
            sums = sp.csr_matrix((sums.data[kept], sums.indices[kept], starts), shape=sums.shape)
        unit = normalize_rows(sums)
        columns.append(unit.indices)
        values.append(unit.data)
        sizes[labels] = np.diff(unit.indptr)
    ends = np.append(0, np.cumsum(sizes))
    Z = sp.csr_matrix((by_label.shape[0], X.shape[1]), dtype=np.float32)
    # Set, not passed: with an indptr of 64 bits, SciPy's constructor would convert the indices to 64 bits as well.
    Z.data, Z.indices = values.finish(), columns.finish()
    Z.indptr = ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)
    return Z


def _label_blocks(by_label: Csr, X: Csr, max_features: int | None) -> Iterator[slice]:
    """Yield labels whose sums are made at a time: all, or few if only the largest entries stay or memory is limited."""
    memory, n_labels = large_arrays.memory(), by_label.shape[0]
    if memory is None:
        yield from large_arrays.blocks(n_labels, LABEL_BLOCK if max_features is not None else max(n_labels, 1))
        return
    n_features = by_label @ np.diff(X.indptr).astype(np.float64)  # of the documents of each label
    ends, start = np.append(0.0, np.cumsum(np.minimum(n_features, X.shape[1]))), 0
    while start < n_labels:
        stop = int(np.searchsorted(ends, ends[start] + memory // SUMS_SHARE, "right")) - 1
        yield slice(start, max(start + 1, stop))
        start = max(start + 1, stop)


def balanced_tree(Z: Csr, max_leaf: int, seed: int, sample: int | None = None) -> tuple[Ints, list[Longs]]:
    """Halve the rows of Z by balanced 2-means until no cluster is larger than ``max_leaf``.

    With ``sample``, the centers of larger clusters are first found for that number of their rows, then for more and
    more. Return the rows in the order of the leaves, and for each depth where its clusters start (and the last ends).

    >>> import scipy.sparse as sp
    >>> Z = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 1]], np.float32))
    >>> order, depths = balanced_tree(normalize_rows(Z), max_leaf=2, seed=0)
    >>> sorted(sorted(cluster.tolist()) for cluster in np.split(order, depths[-1][1:-1]))
    [[0, 2], [1, 3]]
    """
    order: Ints = np.arange(Z.shape[0], dtype=np.int32)
    depths: list[Longs] = [np.array([0, Z.shape[0]], np.int64)]
    max_iter, tol = (MAX_ITERATIONS, 0.0) if sample is None else (SAMPLED_ITERATIONS, SAMPLED_TOL)
    smallest = max(Z.shape[0], 1) if sample is None else sample
    while np.diff(depths[-1]).max(initial=0) > max_leaf:
        bounds = depths[-1]
        middles = (bounds[:-1] + bounds[1:] + 1) // 2

        def halve(start: int, stop: int, bounds: Longs = bounds, middles: Longs = middles) -> None:
            sums = np.zeros((Z.shape[1], 2), np.float32)
            for i in range(start, stop):
                members = order[bounds[i] : bounds[i + 1]]
                if len(members) > 1:
                    half, cluster_seed = int(middles[i] - bounds[i]), seed * 1_000_003 + len(bounds) + i
                    balanced_2means(csr_arrays(Z), members, half, max_iter, tol, cluster_seed, sums, smallest)

        run_blocks(halve, len(middles), max(1, len(middles) // 64))
        depths.append(np.unique(np.concatenate([bounds, middles])))
    return order, depths


def balanced_levels(
    Z: Csr, branching: int, max_leaf: int, seed: int, sample: int | None = None
) -> tuple[Ints, list[Longs]]:
    """Build a ``balanced_tree`` with ``branching`` children per node, a power of 2, instead of 2."""
    order, depths = balanced_tree(Z, max_leaf, seed, sample)
    halvings = max(1, round(np.log2(branching)))
    return order, depths[len(depths) - 1 :: -halvings][::-1]


def kmeans_tree(Z: Csr, branching: int, max_leaf: int, max_depth: int, seed: int) -> tuple[Ints, list[Longs]]:
    """Split the rows of Z by k-means with k = ``branching``, ``max_depth`` times or down to ``max_leaf`` rows.

    Return what ``balanced_tree`` returns. Clusters have any size; rows that are all equal are not split.
    """
    order: Ints = np.arange(Z.shape[0], dtype=np.int32)
    depths: list[Longs] = [np.array([0, Z.shape[0]], np.int64)]
    while len(depths) <= max_depth and np.diff(depths[-1]).max(initial=0) > max_leaf:
        bounds = depths[-1]
        cuts: list[Longs] = [np.zeros(0, np.int64)] * (len(bounds) - 1)
        large = np.flatnonzero(np.diff(bounds) > max_leaf)

        def split(
            start: int, stop: int, bounds: Longs = bounds, cuts: list[Longs] = cuts, large: Longs = large
        ) -> None:
            for i in large[start:stop]:
                members = order[bounds[i] : bounds[i + 1]]
                part_seed = seed * 1_000_003 + len(bounds) + int(i)
                sizes = kmeans(csr_arrays(Z), members, branching, MAX_ITERATIONS, part_seed, Z.shape[1])
                cuts[i] = bounds[i] + np.cumsum(sizes)

        run_blocks(split, len(large), 1)
        finer = np.unique(np.concatenate([bounds, *cuts]))
        if len(finer) == len(bounds):
            break
        depths.append(finer)
    return order, depths
