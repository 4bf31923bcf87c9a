"""One digit for each label of a group: by quantized random projections, or by balanced 2-means.

Groups are ``order[bounds[i]:bounds[i + 1]]``: labels with the same prefix.
"""

import numpy as np

from labelspace.kernels.kmeans import balanced_2means_dense
from labelspace.kernels.threads import run_blocks
from labelspace.labels.clustering import MAX_ITERATIONS
from labelspace.types import Csr, Doubles, Floats, Ints, Longs

ROW_BLOCK = 65_536  # rows that are projected at once


def quantize_projections(
    vectors: Floats | Csr, order: Ints, bounds: Longs, code_size: int, quantizer: str, split_small: bool,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Quantize the labels of each group along a random direction per group; of sparse vectors there is one group.

    Returns the labels sorted within their groups, and the digit of each; with ``split_small``, every label of a group
    of at most ``code_size`` labels gets another digit.
    """
    sizes = np.diff(bounds)
    group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    directions = rng.standard_normal((len(sizes), vectors.shape[1]), np.float32)
    z = np.empty(len(order), np.float32)
    if not isinstance(vectors, np.ndarray):
        z[:] = (vectors @ directions[0])[order]
    for start in range(0, len(order) if isinstance(vectors, np.ndarray) else 0, ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        # Not by BLAS: another order of the sum could give another rank.
        z[rows] = np.einsum("ij,ij->i", vectors[order[rows]], directions[group[rows]])
    by_value = np.lexsort((order, z, group))
    order, z = order[by_value], z[by_value]
    members, starts = sizes[group], bounds[:-1][group]
    by_rank = (np.arange(len(order)) - starts) * np.minimum(members, code_size) // members
    if quantizer == "ordinal":
        return order, by_rank.astype(np.int32)
    low, high = z[starts].astype(np.float64), z[bounds[1:][group] - 1].astype(np.float64)
    bins: Doubles = np.minimum((z - low) / np.where(high > low, high - low, 1.0) * code_size, code_size - 1)
    small = (members <= code_size) & split_small
    return order, np.where(small, by_rank, bins).astype(np.int32)


def balanced_digits(vectors: Floats, order: Ints, bounds: Longs, code_size: int, seed: int) -> Ints:
    """Split each group into ``code_size`` clusters of equal size, by halving; ``order`` is sorted by them in place.

    Returns the digit of each label of ``order``. Vectors must have norm 1. Halves are proportional to the clusters they
    will be split into, so ``code_size`` need not be a power of 2.
    """
    size = np.diff(bounds)
    n_clusters = np.minimum(size, code_size)  # still to make of each part
    first_digit = np.zeros(len(size), np.int64)
    while (n_clusters > 1).any():
        n_left = (n_clusters + 1) // 2
        middles = bounds[:-1] + np.where(n_clusters > 1, n_left * size // n_clusters, 0)

        def halve(start: int, stop: int, bounds: Longs = bounds, middles: Longs = middles) -> None:
            for i in range(start, stop):
                if middles[i] > bounds[i]:
                    members, part_seed = order[bounds[i] : bounds[i + 1]], seed + len(bounds) + i
                    half = int(middles[i] - bounds[i])
                    balanced_2means_dense(vectors, members, half, MAX_ITERATIONS, part_seed)

        run_blocks(halve, len(middles), max(1, len(middles) // 64))
        halved = n_clusters > 1
        starts = np.stack([bounds[:-1], middles], 1)[np.stack([np.ones_like(halved), halved], 1)]
        bounds = np.append(starts, bounds[-1])
        parent = np.repeat(np.arange(len(halved)), 1 + halved)
        is_right = np.append(False, parent[1:] == parent[:-1])
        first_digit = first_digit[parent] + np.where(is_right, n_left[parent], 0)
        n_right, n_first = (n_clusters - n_left)[parent], np.where(halved, n_left, n_clusters)[parent]
        n_clusters = np.where(is_right, n_right, n_first)
        size = np.diff(bounds)
    return np.repeat(first_digit, size).astype(np.int32)
