"""Exact nearest neighbors in the Poincaré ball or Euclidean space: filtered in float32, ranked in float64.

The Poincaré distance of y from a query x grows with the key a|x-y|^2, a = 1/(1-|y|^2); with a = 1 it is the Euclidean
one. The key is the inner product of (|x|^2, -2x, 1) and (a, y a, |y|^2 a), but that cancels for points close to each
other, so it is only a filter: a point is skipped if a lower bound of its key is above the k-th key so far, and all
other points get their key from differences in float64. The result is the same as with all keys in float64.

Points are stored in blocks of ``BLOCK_SIZE``, one coordinate after another: the products of a block are vectorized, and
stay in the cache for the ranking and for the other queries. One query takes at most half the time of a row-major table;
y a is not stored next to y, which would double the memory.

A shortlist saves most of the time: all keys are estimated from 4 bits per number, and few are computed. The key of a
point y for the query x is a(|x|^2 - 2 x'c) + a|y|^2 - 2 a x'(y-c), for any center c. Only the product x'(y-c) is
estimated, by counting bits as in ``bit_planes``; the weight a of a point near the boundary is exact. If only the keys
of some inverted lists of points (``index/points.py``) are estimated, other lists are not read.
"""

from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import array, ids
from labelspace.kernels.bit_planes import BLOCK, QUERY_BITS, QUERY_MAX, Words, end_rows, popcount, query_planes
from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Doubles, Floats, Ints, Longs

BLOCK_SIZE = 64  # points per block
POINTS_PER_PASS = 8 * BLOCK_SIZE  # they stay in the cache while all queries read them
CODE_BITS = 4  # with 2, the shortlist must be four times as long for 100 neighbors, which takes longer in all
MAX_LEVEL = 2**CODE_BITS - 1  # codes 0 to 15 stand for -15, -13, ..., 15
CHUNK = 32  # blocks that stay in the cache while all queries read them
UNIT_ROUNDOFF = 2.0**-24  # relative rounding error of float32
UNDERFLOW_ERROR = 2.0**-124  # above the error of a product that is subnormal in float32


class Points(NamedTuple):
    """A table of n points in blocks; the last block is padded with zeros."""

    blocks: Annotated[Floats, array("float32", "n_blocks", "dimension", BLOCK_SIZE)]
    squares: Annotated[Doubles, array("float64", "n")]  # |y|^2
    weights: Annotated[Doubles, array("float64", "n")]  # a
    ids: Annotated[Ints, ids("n", below=2**31)]


def to_blocks(rows: Floats) -> Floats:
    """Return rows (n, d) as blocks (ceil(n / BLOCK_SIZE), d, BLOCK_SIZE).

    >>> to_blocks(np.ones((65, 3), np.float32)).shape
    (2, 3, 64)
    """
    n, d = rows.shape
    padded = np.zeros((-(-n // BLOCK_SIZE) * BLOCK_SIZE, d), np.float32)
    padded[:n] = rows
    return np.ascontiguousarray(padded.reshape(len(padded) // BLOCK_SIZE, BLOCK_SIZE, d).transpose(0, 2, 1))


def from_blocks(blocks: Floats, n: int) -> Floats:
    """Return the n rows that were given to ``to_blocks``."""
    return blocks.transpose(0, 2, 1).reshape(len(blocks) * BLOCK_SIZE, blocks.shape[1])[:n]


@kernel()
def squared_row_norms(rows: Floats) -> Doubles:
    """Return |y|^2 of each row in float64."""
    out = np.zeros(len(rows), np.float64)
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            out[i] += np.float64(rows[i, j]) * np.float64(rows[i, j])
    return out


@kernel()
def one_minus_squared_norms(rows: Floats) -> Doubles:
    """Return 1-|y|^2 of each row by compensated summation: squares of float32 are exact in float64."""
    out = np.empty(len(rows), np.float64)
    for i in range(len(rows)):
        total, compensation = 1.0, 0.0
        for j in range(rows.shape[1]):
            term = -np.float64(rows[i, j]) * np.float64(rows[i, j])
            new_total = total + term
            compensation += (total - new_total) + term if abs(total) >= abs(term) else (term - new_total) + total
            total = new_total
        out[i] = total + compensation
    return out


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def block_products(query: Floats, block: Floats, out: Floats) -> None:
    """Write the inner products of a query with the points of a block (d, BLOCK_SIZE)."""
    for i in range(BLOCK_SIZE):
        out[i] = np.float32(0.0)
    for j in range(len(query)):
        for i in range(BLOCK_SIZE):
            out[i] += query[j] * block[j, i]


@kernel()
def squared_distance(query: Floats, block: Floats, i: int) -> float:
    """Return |x-y|^2 in float64, from differences."""
    total = 0.0
    for j in range(len(query)):
        difference = np.float64(query[j]) - np.float64(block[j, i])
        total += difference * difference
    return total


@kernel()
def key_lower_bounds(
    query: Floats, square: float, block: Floats, squares: Doubles, weights: Doubles, products: Floats, out: Doubles
) -> None:
    """Write lower bounds of the keys of a block's points; ``square`` is |query|^2, ``products`` is scratch.

    A product x.y of d terms in float32, summed in any order, fused or not, has an error of at most g |x||y| with
    g = d u/(1 - d u), u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), plus ``UNDERFLOW_ERROR``
    per term that underflows. So |x|^2 + |y|^2 - 2 x.y has an error of at most 2 g |x||y| <= g (|x|^2 + |y|^2).
    d + 2 instead of d leaves 2 u (|x|^2 + |y|^2) for all rounding in float64 here and in ``squared_distance``:
    below (4 d + 16) 2^-53 (|x|^2 + |y|^2), which is less for d below 2^23, and so is d u below 1.
    """
    block_products(query, block, products)
    terms = len(query) + 2
    rel_error, abs_error = terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF), terms * UNDERFLOW_ERROR
    for i in range(len(squares)):
        square_sum = square + squares[i]
        out[i] = weights[i] * ((square_sum - 2.0 * np.float64(products[i])) - (rel_error * square_sum + abs_error))


@kernel()
def push_range(
    query: Floats, square: float, points: Points, start: int, stop: int, labels: Ints, scores: Doubles, size: int
) -> int:
    """Push the points ``start`` to ``stop`` onto the heap of a query, scored by minus their key; return the size."""
    products, lower_bounds = np.empty(BLOCK_SIZE, np.float32), np.empty(BLOCK_SIZE, np.float64)
    for b in range(start // BLOCK_SIZE, (stop + BLOCK_SIZE - 1) // BLOCK_SIZE):
        first, last, block = b * BLOCK_SIZE, min((b + 1) * BLOCK_SIZE, len(points.ids)), points.blocks[b]
        squares, weights = points.squares[first:last], points.weights[first:last]
        key_lower_bounds(query, square, block, squares, weights, products, lower_bounds)
        for i in range(max(start - first, 0), min(stop, last) - first):
            if size < len(scores) or -lower_bounds[i] >= scores[0]:
                key = weights[i] * squared_distance(query, block, i)
                size = push(scores, labels, size, -key, points.ids[first + i])
    return size


@kernel()
def nearest_points(queries: Floats, points: Points, out_labels: Ints, out_scores: Doubles) -> None:
    """Write the ids of the points of smallest key for each query, and minus the keys; ``out`` arrays are (m, k)."""
    squares, sizes, n = squared_row_norms(queries), np.zeros(len(queries), np.int64), len(points.ids)
    for start in range(0, n, POINTS_PER_PASS):
        stop = min(start + POINTS_PER_PASS, n)
        for i in range(len(queries)):
            sizes[i] = push_range(queries[i], squares[i], points, start, stop, out_labels[i], out_scores[i], sizes[i])
    for i in range(len(queries)):
        sort_best_first(out_scores[i], out_labels[i], sizes[i])


@kernel()
def nearest_in_clusters(
    queries: Floats, points: Points, starts: Longs, clusters: Ints, out_labels: Ints, out_scores: Doubles
) -> None:
    """Write the ``nearest_points`` among the ``clusters`` (m, p) of each query.

    Cluster c has the points starts[c] to starts[c + 1].
    """
    squares = squared_row_norms(queries)
    for i in range(len(queries)):
        labels, scores, size = out_labels[i], out_scores[i], 0
        for c in clusters[i]:
            if c >= 0:
                size = push_range(queries[i], squares[i], points, starts[c], starts[c + 1], labels, scores, size)
        sort_best_first(scores, labels, size)


def empty_results(n: int, k: int) -> tuple[Ints, Doubles]:
    """Return output arrays: ids and scores (n, k)."""
    return np.empty((n, k), np.int32), np.empty((n, k), np.float64)


class PointCodes(NamedTuple):
    """A table of n points in 4 bits per number, in the order of ``Points``."""

    planes: Annotated[Words, array("uint64", "n_blocks", "n_words", BLOCK)]
    slopes: Annotated[Floats, array("float32", "n")]  # 2 a times the scale of the point's numbers
    weights: Annotated[Floats, array("float32", "n")]  # a
    offsets: Annotated[Floats, array("float32", "n")]  # a |y|^2
    center: Annotated[Floats, array("float32", "dimension")]  # c
    query_map: Annotated[Floats, array("float32", "dimension", "width")]


class CodedQuery(NamedTuple):
    """A query mapped to 5 bits per number."""

    planes: Words
    total: int  # the sum of the numbers
    step: np.float32  # the size of one unit of the numbers
    shift: np.float32  # |x|^2 - 2 x'c


@part()
def code_products(query: Words, blocks: Words, block: int, out: Words) -> None:
    """Write the products of a query's numbers with the codes of a block's points, modulo 2^64 as two's complement does.

    ``bit_planes.block_scores`` makes a view of each block and word. Points have few words, and that takes as long as to
    count their bits.
    """
    n_words = query.shape[1]
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for i in range(BLOCK):
        out[i] = 0
    for word in range(blocks.shape[1]):
        at, plane = word % n_words, np.uint64(word // n_words)
        a, b, c, d, e = query[0, at], query[1, at], query[2, at], query[3, at], query[4, at]
        for i in range(BLOCK):
            x = blocks[block, word, i]
            product = popcount(x & a) + (popcount(x & b) << one) + (popcount(x & c) << two)
            product += (popcount(x & d) << three) - (popcount(x & e) << four)
            out[i] += product << plane


@kernel()
def push_blocks(
    query: CodedQuery, codes: PointCodes, first: int, last: int, rows: Ints, scores: Floats, size: int
) -> int:
    """Push the points of some blocks onto the heap of a query, scored by minus their estimated key; return the size."""
    total, step, shift = query.total, query.step, query.shift
    begin, end = first * BLOCK, min(last * BLOCK, len(codes.slopes))
    blocks = codes.planes[first:last]  # from 0 on, no index can be negative, and the loops are vectorized
    slopes, weights, offsets = codes.slopes[begin:end], codes.weights[begin:end], codes.offsets[begin:end]
    products, estimates = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.float32)
    for b in range(len(blocks)):
        code_products(query.planes, blocks, b, products)
        start, above = b * BLOCK, 0
        n = min(BLOCK, len(slopes) - start)
        threshold = scores[0] if size == len(scores) else np.float32(-np.inf)
        for i in range(n):
            product = np.float32(np.int32(2 * np.int64(products[i]) - MAX_LEVEL * total))
            estimate = step * (slopes[start + i] * product) - shift * weights[start + i] - offsets[start + i]
            estimates[i] = estimate
            above += estimate > threshold
        if above:
            for i in range(n):
                if size < len(scores) or estimates[i] > scores[0]:
                    size = push(scores, rows, size, estimates[i], begin + start + i)
    return size


@kernel()
def encode_query(query: Floats, mapped: Floats, center: Floats, planes: Words) -> CodedQuery:
    """Write the mapped query as bit planes to ``planes``, and return it."""
    largest, shift = np.float32(0.0), 0.0
    for value in mapped:
        largest = max(largest, abs(value))
    for j in range(len(query)):
        value = np.float64(query[j])
        shift += value * (value - 2.0 * np.float64(center[j]))
    total, step = query_planes(mapped, planes), np.float32(largest / np.float32(QUERY_MAX))
    return CodedQuery(planes, total, step, np.float32(shift))


@kernel()
def shortlist_points(queries: Floats, mapped: Floats, codes: PointCodes, out_rows: Ints, out_scores: Floats) -> None:
    """Write the rows of smallest estimated key for each query, in no order, and minus the estimates; -1 is none.

    ``mapped`` (m, width) are the queries (m, d) times ``codes.query_map``; ``out`` arrays are (m, size).
    """
    m = len(queries)
    planes, sizes = np.empty((m, QUERY_BITS, mapped.shape[1] // BLOCK), np.uint64), np.zeros(m, np.int64)
    coded = [encode_query(queries[i], mapped[i], codes.center, planes[i]) for i in range(m)]
    for first in range(0, len(codes.planes), CHUNK):
        last = min(first + CHUNK, len(codes.planes))
        for i in range(m):
            sizes[i] = push_blocks(coded[i], codes, first, last, out_rows[i], out_scores[i], sizes[i])
    for i in range(m):
        end_rows(out_rows[i], sizes[i])


@kernel()
def shortlist_points_in_lists(
    queries: Floats, mapped: Floats, codes: PointCodes, starts: Longs, lists: Ints, out_rows: Ints, out_scores: Floats
) -> None:
    """Write the ``shortlist_points`` of the rows in some lists: ``lists`` (m, p) ascending, the first -1 ends them.

    List c has the rows starts[c] to starts[c + 1]; the blocks at its ends are read as a whole, and once.
    """
    planes = np.empty((QUERY_BITS, mapped.shape[1] // BLOCK), np.uint64)
    for i in range(len(queries)):
        query = encode_query(queries[i], mapped[i], codes.center, planes)
        size, done = integer(0), integer(0)
        for c in lists[i]:
            if c < 0:
                break
            if starts[c] < starts[c + 1]:
                first, last = max(starts[c] // BLOCK, done), (starts[c + 1] + BLOCK - 1) // BLOCK
                size = push_blocks(query, codes, first, last, out_rows[i], out_scores[i], size)
                done = last
        end_rows(out_rows[i], size)


@kernel()
def nearest_in_rows(queries: Floats, points: Points, rows: Ints, out_labels: Ints, out_scores: Doubles) -> None:
    """Write the ``nearest_points`` among the ``rows`` (m, s) of each query; the first -1 ends them."""
    for i in range(len(queries)):
        size = integer(0)
        for row in rows[i]:
            if row < 0:
                break
            distance = squared_distance(queries[i], points.blocks[row // BLOCK_SIZE], row % BLOCK_SIZE)
            size = push(out_scores[i], out_labels[i], size, -points.weights[row] * distance, points.ids[row])
        sort_best_first(out_scores[i], out_labels[i], size)
