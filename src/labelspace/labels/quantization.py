"""Parts of labels cut into smaller ones, a digit each: along random directions, or by balanced 2-means."""

from __future__ import annotations

import numpy as np

from labelspace.kernels.kmeans import balanced_2means_dense
from labelspace.kernels.threads import run_blocks
from labelspace.labels.clustering import MAX_ROUNDS
from labelspace.types import Doubles, Floats, Ints, Longs

ROW_BLOCK = 65_536  # rows that are projected at once


def projected(
    vectors: Floats, order: Ints, bounds: Longs, width: int, quantizer: str, few_apart: bool, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Quantize the labels of each part along a direction of its own.

    The parts are ``order[bounds[i]:bounds[i + 1]]``. Returned are the labels sorted within their parts, and the digit
    of each; with ``few_apart``, parts of at most ``width`` labels give every label a digit of its own.
    """
    sizes = np.diff(bounds)
    part = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    directions = rng.standard_normal((len(sizes), vectors.shape[1]), np.float32)
    z = np.empty(len(order), np.float32)
    for start in range(0, len(order), ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        # Not by BLAS: a sum in another order would be another rank.
        z[rows] = np.einsum("ij,ij->i", vectors[order[rows]], directions[part[rows]])
    by_value = np.lexsort((order, z, part))
    order, z = order[by_value], z[by_value]
    members, starts = sizes[part], bounds[:-1][part]
    by_rank = (np.arange(len(order)) - starts) * np.minimum(members, width) // members
    if quantizer == "ordinal":
        return order, by_rank.astype(np.int32)
    low, high = z[starts].astype(np.float64), z[bounds[1:][part] - 1].astype(np.float64)
    bins: Doubles = np.minimum((z - low) / np.where(high > low, high - low, 1.0) * width, width - 1)
    apart = (members <= width) & few_apart
    return order, np.where(apart, by_rank, bins).astype(np.int32)


def clustered(vectors: Floats, order: Ints, bounds: Longs, width: int, seed: int) -> Ints:
    """Cut each part into ``width`` clusters of even size, by halving; ``order`` is sorted by them in place.

    The digit of each place of ``order`` is returned. Vectors are of length one. Halves are as large as the clusters
    that they will be cut into, so a width need not be a power of 2.
    """
    size = np.diff(bounds)
    wanted = np.minimum(size, width)  # clusters to make of each part
    first_digit = np.zeros(len(size), np.int64)
    while (wanted > 1).any():
        ahead = (wanted + 1) // 2
        middles = bounds[:-1] + np.where(wanted > 1, ahead * size // wanted, 0)

        def halve(start: int, stop: int, bounds: Longs = bounds, middles: Longs = middles) -> None:
            for i in range(start, stop):
                if middles[i] > bounds[i]:
                    members, number = order[bounds[i] : bounds[i + 1]], seed + len(bounds) + i
                    half = int(middles[i] - bounds[i])
                    balanced_2means_dense(vectors, members, half, MAX_ROUNDS, number)

        run_blocks(halve, len(middles), max(1, len(middles) // 64))
        cut = wanted > 1
        bounds = np.append(np.stack([bounds[:-1], middles], 1)[np.stack([np.ones_like(cut), cut], 1)], bounds[-1])
        twice = np.repeat(np.arange(len(cut)), 1 + cut)
        second = np.append(False, twice[1:] == twice[:-1])
        first_digit = first_digit[twice] + np.where(second, ahead[twice], 0)
        wanted = np.where(second, (wanted - ahead)[twice], np.where(cut, ahead, wanted)[twice])
        size = np.diff(bounds)
    return np.repeat(first_digit, size).astype(np.int32)
