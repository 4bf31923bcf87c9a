"""Search by inner products of quantized vectors in bit planes: labels of 1 to 4 bits, queries of 5.

The labels come in blocks of 64. Plane p of a block has bit p of every number: a word (64 bits) is 64 numbers of one
label, and the words of the 64 labels at the same numbers are adjacent, so the processor counts several labels at
once. For label numbers c = sum_p 2^p c_p and query numbers q = sum_j w_j q_j, of bits c_p and q_j, the inner product is
sum_pj 2^p w_j popcount(c_p & q_j). The query's last plane has the weight -16: two's complement.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.quantize import Int16s
from labelspace.kernels.topk import push, select_best, sort_best_first
from labelspace.types import Floats, Ints, Longs

Words = npt.NDArray[np.uint64]

BLOCK = 64  # labels of a block, and numbers of a word
QUERY_BITS = 5
QUERY_MAX = 15  # symmetric range
CHUNK = 32  # blocks that stay in the cache while all queries read them


class CodedRows(NamedTuple):
    """A table of rows in bit planes."""

    blocks: Words  # (n_blocks, bits * width / 64, 64)
    scales: Floats  # (n,)


class Shortlist(NamedTuple):
    """The buffer of a query, or of several: rows above a threshold, and their scores.

    A full buffer, of 2 size + 64 rows, is cut to the best ``size`` rows, the last of which is the new threshold.
    """

    rows: Ints
    scores: Floats


@intrinsic
def _popcount(_context: Any, _word: Any) -> Any:  # noqa: ANN401 - numba has no types
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:  # noqa: ANN401
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


# The number of bits that are set; one instruction, where the processor has it.
popcount = cast(Callable[[np.uint64], np.uint64], _popcount)


def to_planes(codes: npt.NDArray[np.uint8], bits: int) -> Words:
    """Return codes (n, width) below 2^bits, width a multiple of 64, as words (n, bits * width / 64), plane after plane.

    >>> to_planes(np.full((1, 64), 2, np.uint8), bits=2).tolist() == [[0, 2**64 - 1]]
    True
    """
    planes = [np.packbits((codes >> p) & 1, axis=1, bitorder="little").view("<u8") for p in range(bits)]
    return np.concatenate(planes, axis=1).astype(np.uint64, copy=False)


def to_blocks(words: Words) -> Words:
    """Return words (n, w) in blocks (ceil(n / 64), w, 64); missing rows are 0."""
    n, width = words.shape
    n_blocks = -(-n // BLOCK)
    full = np.zeros((n_blocks * BLOCK, width), np.uint64)
    full[:n] = words
    return np.ascontiguousarray(full.reshape(n_blocks, BLOCK, width).transpose(0, 2, 1))


def from_blocks(blocks: Words, n: int) -> Words:
    """Return the words of n rows, the inverse of ``to_blocks``."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:n]


@kernel()
def query_planes(query: Floats, out: Words) -> int:
    """Write a query in 5 bits, as planes (5, width / 64); return the sum of its numbers. NaN and infinity are 0."""
    largest = np.float32(0.0)
    for value in query:
        largest = max(largest, abs(value))
    factor = np.float32(QUERY_MAX) / max(largest, np.float32(1e-30))
    total = 0
    for j in range(out.shape[0]):
        for w in range(out.shape[1]):
            out[j, w] = 0
    for at in range(len(query)):
        value = query[at] * factor
        if abs(value) < QUERY_MAX + 0.5:  # false for infinity and NaN
            number = int(np.rint(value))
            total += number
            for j in range(QUERY_BITS):
                out[j, at // BLOCK] |= np.uint64((number >> j) & 1) << np.uint64(at % BLOCK)
    return total


@kernel()
def _add_word(planes: Words, at: int, words: Words, shift: np.uint64, products: Words) -> None:
    """Add the products of 64 numbers of a query with those of 64 labels; modulo 2^64, as two's complement does."""
    a, b, c, d, e = planes[0, at], planes[1, at], planes[2, at], planes[3, at], planes[4, at]
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for i in range(BLOCK):
        x = words[i]
        product = popcount(x & a) + (popcount(x & b) << one) + (popcount(x & c) << two)
        product += (popcount(x & d) << three) - (popcount(x & e) << four)
        products[i] += product << shift


@kernel()
def block_scores(planes: Words, total: int, block: Words, scales: Floats, products: Words, out: Floats) -> None:
    """Write the scores of a block's labels, scale * sum_d q_d (2 c_d - (2^bits - 1)); ``total`` is sum_d q_d."""
    n_words = planes.shape[1]
    bits = len(block) // n_words
    for i in range(BLOCK):
        products[i] = 0
    for p in range(bits):
        for at in range(n_words):
            _add_word(planes, at, block[p * n_words + at], np.uint64(p), products)
    middle = ((1 << bits) - 1) * total
    for i in range(len(scales)):
        out[i] = scales[i] * np.float32(2 * np.int64(products[i]) - middle)


@kernel()
def scan_blocks(
    planes: Words,
    total: int,
    table: CodedRows,
    span: tuple[int, int],
    size: int,
    found: Shortlist,
    used: int,
    threshold: np.float32,
) -> tuple[int, np.float32]:
    """Add the rows of the blocks of a span to a query's shortlist; return its length and threshold."""
    blocks, scales, rows, best = table.blocks, table.scales, found.rows, found.scores
    n = len(scales)
    products, scores = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.float32)
    for b in range(span[0], span[1]):
        start, stop = b * BLOCK, min(b * BLOCK + BLOCK, n)
        block_scores(planes, total, blocks[b], scales[start:stop], products, scores)
        above = 0
        for j in range(stop - start):
            above += scores[j] > threshold
        if not above:
            continue
        if used + above > len(best):
            select_best(best, rows, used, size)
            used, threshold = size, best[0]
            for j in range(1, size):
                threshold = min(threshold, best[j])
        for j in range(stop - start):
            if scores[j] > threshold:
                best[used], rows[used] = scores[j], start + j
                used += 1
    return used, threshold


@part()
def end_rows(rows: Ints, size: int) -> None:
    """Write -1 behind the first ``size`` rows."""
    for j in range(size, len(rows)):
        rows[j] = -1


@part()
def cut_shortlist(found: Shortlist, used: int, size: int) -> None:
    """Move the ``size`` best of a query's shortlist to the front, and write -1 behind them."""
    if used > size:
        select_best(found.scores, found.rows, used, size)
    end_rows(found.rows, min(used, size))


@kernel()
def shortlists(queries: Floats, table: CodedRows, size: int, out: Shortlist) -> None:
    """Write the ``size`` rows of highest score for each query (m, width) to ``out``, in no order; -1 is none."""
    m = len(queries)
    planes, totals = np.empty((m, QUERY_BITS, queries.shape[1] // BLOCK), np.uint64), np.empty(m, np.int64)
    filled, thresholds = np.zeros(m, np.int64), np.full(m, -np.inf, np.float32)
    for i in range(m):
        totals[i] = query_planes(queries[i], planes[i])
    for first in range(0, len(table.blocks), CHUNK):
        span = (first, min(first + CHUNK, len(table.blocks)))
        for i in range(m):
            found = Shortlist(out.rows[i], out.scores[i])
            filled[i], thresholds[i] = scan_blocks(
                planes[i], totals[i], table, span, size, found, filled[i], thresholds[i]
            )
    for i in range(m):
        cut_shortlist(Shortlist(out.rows[i], out.scores[i]), filled[i], size)


@kernel()
def shortlists_in_lists(
    queries: Floats, table: CodedRows, starts: Longs, lists: Ints, size: int, out: Shortlist
) -> None:
    """Write the ``shortlists`` of the rows in some lists: ``lists`` (m, p) ascending, the first -1 ends them.

    List c has the rows starts[c] to starts[c + 1]; the blocks at its ends are read as a whole, and once.
    """
    planes = np.empty((QUERY_BITS, queries.shape[1] // BLOCK), np.uint64)
    for i in range(len(queries)):
        total = query_planes(queries[i], planes)
        used, threshold, done = integer(0), np.float32(-np.inf), integer(0)
        found = Shortlist(out.rows[i], out.scores[i])
        for c in lists[i]:
            if c < 0:
                break
            if starts[c] < starts[c + 1]:
                first, last = max(starts[c] // BLOCK, done), (starts[c + 1] + BLOCK - 1) // BLOCK
                used, threshold = scan_blocks(planes, total, table, (first, last), size, found, used, threshold)
                done = last
        cut_shortlist(found, used, size)


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def float_int_dot(a: Floats, b: Int16s) -> np.float32:
    """Return the inner product of a float and an integer vector, summed in any order, so that it is vectorized."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * np.float32(b[i])
    return total


@kernel()
def rerank_int16(
    queries: Floats, vectors: Int16s, scales: Floats, ids: Ints, rows: Ints, out_labels: Ints, out_scores: Floats
) -> None:
    """Write the best of the candidate ``rows`` (m, s) of vectors in int16 with a scale each; the first -1 ends them."""
    for i in range(len(queries)):
        size = 0
        for row in rows[i]:
            if row < 0:
                break
            score = float_int_dot(queries[i], vectors[row]) * scales[row]
            size = push(out_scores[i], out_labels[i], size, score, ids[row])
        sort_best_first(out_scores[i], out_labels[i], size)


@kernel()
def choose_lists(scores: Floats, starts: Longs, n_rows: int, out: Ints) -> None:
    """Write the lists of highest score that have ``n_rows`` rows together, ascending; the first -1 ends them.

    ``scores`` and ``out`` are (m, n_lists); list c has starts[c + 1] - starts[c] rows. Of equal scores, the first list
    is read.
    """
    n_lists = scores.shape[1]
    best, lists = np.empty(n_lists, np.float32), np.empty(n_lists, np.int32)
    for i in range(len(scores)):
        n_read = min(n_lists, 2 * (n_rows * n_lists // max(starts[n_lists], 1)) + 8)
        while True:
            for c in range(n_lists):
                best[c], lists[c] = scores[i, c], c
            select_best(best, lists, n_lists, n_read)
            total = 0
            for j in range(n_read):
                total += starts[lists[j] + 1] - starts[lists[j]]
            if total >= n_rows or n_read == n_lists:
                break
            n_read = min(n_lists, 2 * n_read)
        order = np.argsort(lists[:n_read])
        chosen = lists[:n_read][order]
        ranked = np.argsort(-best[:n_read][order], kind="mergesort")  # stable: by score, then by list
        total, n_kept = 0, 0
        while n_kept < n_read and total < n_rows:
            c = chosen[ranked[n_kept]]
            total += starts[c + 1] - starts[c]
            n_kept += 1
        kept = np.sort(chosen[ranked[:n_kept]])
        for j in range(n_lists):
            out[i, j] = kept[j] if j < n_kept else -1
