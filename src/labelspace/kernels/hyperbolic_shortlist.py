"""Nearest points by a shortlist: all keys of ``hyperbolic_search`` are estimated from 4 bits per number, few computed.

The key a|x-y|^2 of a point y for the query x is a(|x|^2 - 2 x'c) + a|y|^2 - 2 a x'(y-c), for any center c. Only the
product x'(y-c) is estimated, by counting bits as in ``bit_planes``; the weight a of a point near the boundary is exact.
Or the keys of some inverted lists of points are estimated (``index/points.py``), and the others are not read.
"""

from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import array
from labelspace.kernels.bit_planes import BLOCK, QUERY_BITS, QUERY_MAX, Words, popcount, query_planes
from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.hyperbolic_search import BLOCK_SIZE, Points, squared_distance
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Doubles, Floats, Ints, Longs

CODE_BITS = 4  # with 2, the shortlist must be four times as long for 100 neighbors, which takes longer in all
MAX_LEVEL = 2**CODE_BITS - 1  # codes 0 to 15 stand for -15, -13, ..., 15
CHUNK = 32  # blocks that stay in the cache while all queries read them


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


@part()
def end_rows(rows: Ints, size: int) -> None:
    """Write -1 behind the first ``size`` rows."""
    for j in range(size, len(rows)):
        rows[j] = -1


@kernel()
def shortlist_points(queries: Floats, mapped: Floats, codes: PointCodes, out_rows: Ints, out_scores: Floats) -> None:
    """Write the rows of smallest estimated key for each query, in no order, and minus the estimates; -1 is none.

    ``mapped`` (m, width) are the queries (m, d) times ``codes.query_map``; ``out`` arrays are (m, size).
    """
    m = len(queries)
    planes, totals = np.empty((m, QUERY_BITS, mapped.shape[1] // BLOCK), np.uint64), np.empty(m, np.int64)
    steps, shifts, sizes = np.empty(m, np.float32), np.empty(m, np.float32), np.zeros(m, np.int64)
    for i in range(m):
        query = encode_query(queries[i], mapped[i], codes.center, planes[i])
        totals[i], steps[i], shifts[i] = query.total, query.step, query.shift
    for first in range(0, len(codes.planes), CHUNK):
        last = min(first + CHUNK, len(codes.planes))
        for i in range(m):
            query = CodedQuery(planes[i], totals[i], steps[i], shifts[i])
            sizes[i] = push_blocks(query, codes, first, last, out_rows[i], out_scores[i], sizes[i])
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
