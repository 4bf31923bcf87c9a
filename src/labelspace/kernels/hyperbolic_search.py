"""The points nearest to a query, in the Poincaré ball or in flat space: screened in float32, ranked in float64.

The Poincaré distance of y from a query x grows with the key a|x-y|^2, a = 1/(1-|y|^2); with a = 1 it is the Euclidean
one. The key is the inner product of (|x|^2, -2x, 1) and (a, y a, |y|^2 a), but that cancels for points close to each
other, so it screens only: a point is passed over where even the least its key can be is above the k-th key so far, and
all others get their key from differences in float64. The answer is that of all keys in float64, whatever the screen
rounds.

Points stand in blocks of ``LANES``, one coordinate after another: the products of a block are summed side by side, and
stay in the cache for the ranking and for the other queries. One query takes half the time it takes with a point a row
or less; y a is not kept beside y, which would double the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Doubles, Floats, Ints, Longs

LANES = 64  # points a block
SPAN = 8 * LANES  # points that stay in the cache while all queries meet them
UNIT = 2.0**-24  # the most that float32 is off by in rounding, times the number
SMALLEST = 2.0**-124  # more than a product below the numbers that float32 holds in full is off by


class Points(NamedTuple):
    """A table of n points in blocks; the last one is filled up with zeros."""

    blocks: Floats  # (ceil(n / LANES), dimension, LANES)
    squares: Doubles  # (n,) |y|^2
    weights: Doubles  # (n,) a
    ids: Ints  # (n,)


def in_blocks(rows: Floats) -> Floats:
    """Rows (n, d) as blocks (ceil(n / LANES), d, LANES).

    >>> in_blocks(np.ones((65, 3), np.float32)).shape
    (2, 3, 64)
    """
    n, d = rows.shape
    full = np.zeros((-(-n // LANES) * LANES, d), np.float32)
    full[:n] = rows
    return np.ascontiguousarray(full.reshape(len(full) // LANES, LANES, d).transpose(0, 2, 1))


def in_rows(blocks: Floats, n: int) -> Floats:
    """The n rows that ``in_blocks`` was given."""
    return blocks.transpose(0, 2, 1).reshape(len(blocks) * LANES, blocks.shape[1])[:n]


@njit(cache=True, nogil=True)
def squares_of(rows: Floats) -> Doubles:
    """|y|^2 of each row in float64."""
    out = np.zeros(len(rows), np.float64)
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            out[i] += np.float64(rows[i, j]) * np.float64(rows[i, j])
    return out


@njit(cache=True, nogil=True)
def gaps_of(rows: Floats) -> Doubles:
    """1-|y|^2 of each row: squares of float32 are whole in float64, and what their sum drops is summed too."""
    out = np.empty(len(rows), np.float64)
    for i in range(len(rows)):
        total, dropped = 1.0, 0.0
        for j in range(rows.shape[1]):
            term = -np.float64(rows[i, j]) * np.float64(rows[i, j])
            step = total + term
            dropped += (total - step) + term if abs(total) >= abs(term) else (term - step) + total
            total = step
        out[i] = total + dropped
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def products_of(query: Floats, block: Floats, out: Floats) -> None:
    """The inner products of a query with the points of a block (d, LANES)."""
    for i in range(LANES):
        out[i] = np.float32(0.0)
    for j in range(len(query)):
        for i in range(LANES):
            out[i] += query[j] * block[j, i]


@njit(cache=True, nogil=True)
def square_between(query: Floats, block: Floats, at: int) -> float:
    """|x-y|^2 in float64, from differences."""
    total = 0.0
    for j in range(len(query)):
        apart = np.float64(query[j]) - np.float64(block[j, at])
        total += apart * apart
    return total


@njit(cache=True, nogil=True)
def least_keys(
    query: Floats, square: float, block: Floats, squares: Doubles, weights: Doubles, products: Floats, out: Doubles
) -> None:  # fmt: skip
    """What the keys of a block's points are at least; ``square`` is that of the query, ``products`` room to work.

    A product x.y of d terms in float32, summed in any order, fused or not, is off by at most g |x||y| with
    g = d u/(1 - d u), u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), and where terms are too
    small for float32 by ``SMALLEST`` each. So |x|^2 + |y|^2 - 2 x.y is off by at most 2 g |x||y| <= g (|x|^2 + |y|^2).
    d + 2 in place of d leaves 2 u (|x|^2 + |y|^2) for all that is rounded in float64 here and in ``square_between``:
    below (4 d + 16) 2^-53 (|x|^2 + |y|^2), which is less for d below 2^23, and so is d u below 1.
    """
    products_of(query, block, products)
    terms = len(query) + 2
    share, least = terms * UNIT / (1 - terms * UNIT), terms * SMALLEST
    for i in range(len(squares)):
        both = square + squares[i]
        out[i] = weights[i] * ((both - 2.0 * np.float64(products[i])) - (share * both + least))


@njit(cache=True, nogil=True)
def offer_span(
    query: Floats, square: float, points: Points, start: int, stop: int, labels: Ints, scores: Doubles, size: int
) -> int:  # fmt: skip
    """Offer the points ``start`` to ``stop`` to the heap of a query, scored by their keys below zero; its new size."""
    products, least = np.empty(LANES, np.float32), np.empty(LANES, np.float64)
    for b in range(start // LANES, (stop + LANES - 1) // LANES):
        first, last, block = b * LANES, min((b + 1) * LANES, len(points.ids)), points.blocks[b]
        squares, weights = points.squares[first:last], points.weights[first:last]
        least_keys(query, square, block, squares, weights, products, least)
        for i in range(max(start - first, 0), min(stop, last) - first):
            if size < len(scores) or -least[i] >= scores[0]:
                key = weights[i] * square_between(query, block, i)
                size = push(scores, labels, size, -key, points.ids[first + i])
    return size


@njit(cache=True, nogil=True)
def nearest(queries: Floats, points: Points, out_labels: Ints, out_scores: Doubles) -> None:
    """The ids of the points of smallest key for each query, and the keys below zero; ``out`` arrays are (m, k)."""
    squares, sizes, n = squares_of(queries), np.zeros(len(queries), np.int64), len(points.ids)
    for start in range(0, n, SPAN):
        stop = min(start + SPAN, n)
        for i in range(len(queries)):
            sizes[i] = offer_span(
                queries[i], squares[i], points, start, stop, out_labels[i], out_scores[i], sizes[i]
            )  # fmt: skip
    for i in range(len(queries)):
        sort_best_first(out_scores[i], out_labels[i], sizes[i])


@njit(cache=True, nogil=True)
def nearest_in_parts(
    queries: Floats, points: Points, starts: Longs, parts: Ints, out_labels: Ints, out_scores: Doubles
) -> None:  # fmt: skip
    """The same among the points of the ``parts`` (m, p) listed for each query; part c is ``starts[c : c + 2]``."""
    squares = squares_of(queries)
    for i in range(len(queries)):
        size = 0
        for part in parts[i]:
            if part >= 0:
                size = offer_span(
                    queries[i], squares[i], points, starts[part], starts[part + 1], out_labels[i], out_scores[i], size
                )  # fmt: skip
        sort_best_first(out_scores[i], out_labels[i], size)


def room(n: int, k: int) -> tuple[Ints, Doubles]:
    """Arrays for what is found: ids and scores (n, k)."""
    return np.empty((n, k), np.int32), np.empty((n, k), np.float64)
