"""Nearest neighbors among sparse rows of 8-bit numbers: exact integer sums over an inverted index in three parts.

Number x of feature f stands for x * scales[f]. The features are of three kinds, by how many rows have them:

rare        a posting is a row and its number (``values``, ``rows``, ``starts``)
frequent    a posting is the gap to the row before, in 8 bits, and a number (``gap_values``, ``gaps``, ``gap_starts``);
            a gap too long for 8 bits is several, with the number 0
common      a column of a dense table (``common``, n_rows x n_common), ``common_column[f]``, which is -1 for all others
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.inner_products import int_product
from labelspace.kernels.quantize import INT8_MAX, INT16_MAX, Int8s, Int16s
from labelspace.kernels.topk import push, select_best, sort_best_first
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

MAX_GAP = 255  # of 8 bits
BLOCK = 32  # rows of which only the largest sum is compared first; most blocks are skipped whole
GROUPS = 8  # of blocks for each requested row: with more, the k-th largest is closer to exact, but found later
ROUNDING = 1e-4  # tolerance for rounded sums against a bound
HEAD_ROUNDING = 64  # error of a sum below SUM_RANGE as float32, which has 24 bits
SUM_RANGE = 2.0**29  # bounds a sum, and what the common features add to it: both together fit into 32 bits


class Postings(NamedTuple):
    """The indexed rows as postings, see the module."""

    scales: Floats  # (n_features,)
    values: Int8s
    rows: Ints
    starts: Ints  # (n_features + 1,)
    gap_values: Int8s
    gaps: npt.NDArray[np.uint8]
    gap_starts: Ints  # (n_features + 1,)
    common_column: Ints  # (n_features,)
    common: Int8s  # (n_rows, n_common)
    common_norms: Floats  # (n_rows,) length of a row of ``common``


class NewPostings(NamedTuple):
    """The postings of rows that are appended to an index, feature after feature; rows rise within a feature."""

    numbers: Int8s
    rows: Ints
    starts: Ints  # (n_features + 1,)


@part()
def rescaled(number: np.int8, factor: float) -> np.int8:
    """Return a number for a scale that grew: times a factor of 0 to 1."""
    return number if factor == 1.0 else np.int8(np.rint(factor * number))


@kernel()
def joined_postings(index: Postings, new: NewPostings, feature: int, factor: float, rows: Ints, numbers: Int8s) -> int:
    """Write the postings of a feature, those of an index times ``factor``, then the new ones; return how many.

    ``rows`` and ``numbers`` have room for each row once: postings of a damaged index whose rows do not rise are left
    out.
    """
    size = integer(0)
    last = integer(-1)
    column = index.common_column[feature]
    if column >= 0:
        for row in range(len(index.common)):
            number = rescaled(index.common[row, column], factor)
            if number != 0:
                rows[size], numbers[size] = row, number
                size += 1
    else:
        for pos in range(index.starts[feature], index.starts[feature + 1]):
            row = integer(index.rows[pos])
            number = rescaled(index.values[pos], factor)
            if number != 0 and row > last:
                rows[size], numbers[size] = row, number
                size += 1
                last = row
        row = integer(0)
        for pos in range(index.gap_starts[feature], index.gap_starts[feature + 1]):
            row += integer(index.gaps[pos])
            number = rescaled(index.gap_values[pos], factor)
            if number != 0 and row > last:
                rows[size], numbers[size] = row, number
                size += 1
                last = row
    for pos in range(new.starts[feature], new.starts[feature + 1]):
        if new.numbers[pos] != 0:
            rows[size], numbers[size] = new.rows[pos], new.numbers[pos]
            size += 1
    return size


@kernel()
def posting_sizes(
    index: Postings, new: NewPostings, n_rows: int, factors: Doubles, counts: Longs, n_gaps: Longs
) -> None:
    """Count the postings of each feature of an index and new rows, and the gaps in which they could be stored."""
    rows, numbers = np.empty(n_rows, np.int32), np.empty(n_rows, np.int8)
    for feature in range(len(factors)):
        size = joined_postings(index, new, feature, factors[feature], rows, numbers)
        last = np.int32(0)
        counts[feature] = size
        n_gaps[feature] = 0
        for i in range(size):
            n_gaps[feature] += (rows[i] - last) // MAX_GAP + 1  # all but the last are MAX_GAP long
            last = rows[i]


@kernel()
def write_postings(index: Postings, new: NewPostings, factors: Doubles, joined: Postings) -> None:
    """Write the postings of an index and of new rows to ``joined``, which says where each feature is stored.

    Its dense table is all zeros before.
    """
    n_rows = len(joined.common_norms)
    rows, numbers = np.empty(n_rows, np.int32), np.empty(n_rows, np.int8)
    squares = np.zeros(n_rows, np.float64)
    for feature in range(len(factors)):
        size = joined_postings(index, new, feature, factors[feature], rows, numbers)
        column = joined.common_column[feature]
        if column >= 0:
            for i in range(size):
                joined.common[rows[i], column] = numbers[i]
                value = joined.scales[feature] * np.float32(numbers[i])
                squares[rows[i]] += np.float64(value * value)
        elif joined.gap_starts[feature + 1] > joined.gap_starts[feature]:
            at = integer(joined.gap_starts[feature])
            last = np.int32(0)
            for i in range(size):
                gap = rows[i] - last
                while gap >= MAX_GAP:
                    joined.gaps[at], joined.gap_values[at] = MAX_GAP, 0
                    gap -= MAX_GAP
                    at += 1
                joined.gaps[at], joined.gap_values[at] = gap, numbers[i]
                at += 1
                last = rows[i]
        else:
            at = integer(joined.starts[feature])
            for i in range(size):
                joined.rows[at + i], joined.values[at + i] = rows[i], numbers[i]
    for row in range(n_rows):
        joined.common_norms[row] = np.float32(np.sqrt(squares[row]))


@part()
def add_postings(weight: np.int32, values: Int8s, rows: Ints, start: int, stop: int, sums: Ints) -> None:
    """Add weight times its number to the sum of each row of some postings.

    Unsigned indices and sums of 32 bits halve the time: numba lets signed indices count from the end.
    """
    for pos in range(np.uint64(start), np.uint64(stop)):
        row = np.uint64(rows[pos])
        sums[row] = np.int32(sums[row] + np.int32(weight * np.int32(values[pos])))


@part()
def add_gaps(weight: np.int32, values: Int8s, gaps: npt.NDArray[np.uint8], start: int, stop: int, sums: Ints) -> None:
    """Add as ``add_postings`` does, with rows given by gaps."""
    row = np.uint64(0)
    for pos in range(np.uint64(start), np.uint64(stop)):
        row += np.uint64(gaps[pos])
        sums[row] = np.int32(sums[row] + np.int32(weight * np.int32(values[pos])))


@part()
def add_products(x: Floats, features: Ints, index: Postings, sums: Ints, query: Int16s) -> tuple[float, float, float]:
    """Sum the products of a query with all rows, except over common features, which go to ``query``.

    Returns the unit of ``sums``, the unit of a product of ``query`` with a row of ``common``, and the length of
    the query over the common features.
    """
    total, largest, squares = 0.0, 0.0, 0.0
    for j in range(len(features)):
        weight = abs(np.float64(x[j]) * index.scales[features[j]])
        if index.common_column[features[j]] >= 0:
            largest = max(largest, weight)
            squares += np.float64(x[j]) * x[j]
        else:
            total += weight * INT8_MAX
    norm = np.sqrt(squares)
    unit = max(total, norm, 1e-30) / SUM_RANGE
    range_of_16_bits = min(INT16_MAX, (2**31 - 1) // (INT8_MAX * max(len(query), 1)))
    common_unit = max(largest, 1e-30) / range_of_16_bits
    for c in range(len(query)):
        query[c] = 0
    for j in range(len(features)):
        feature = features[j]
        value = np.float64(x[j]) * index.scales[feature]
        if index.common_column[feature] >= 0:
            query[index.common_column[feature]] = np.int16(np.rint(value / common_unit))
            continue
        number = np.int32(np.rint(value / unit))
        add_postings(number, index.values, index.rows, index.starts[feature], index.starts[feature + 1], sums)
        add_gaps(number, index.gap_values, index.gaps, index.gap_starts[feature], index.gap_starts[feature + 1], sums)
    return unit, common_unit, norm


@part()
def largest_of_blocks(sums: Ints, n: int, block: int, out: Ints) -> None:
    """Find the largest of each block of the first n sums."""
    for b in range(len(out)):
        first = b * block
        largest = sums[first]
        for row in range(np.uint64(first), np.uint64(min(first + block, n))):
            largest = sums[row] if sums[row] > largest else largest
        out[b] = largest


@part()
def bounds_of_blocks(sums: Ints, norms: Floats, norm: np.float32, block: int, out: Ints) -> None:
    """Find the largest of sums + norm * norms in each block: no inner product in the block is larger."""
    for b in range(len(out)):
        first = b * block
        largest = np.int32(0)
        for row in range(np.uint64(first), np.uint64(min(first + block, len(norms)))):
            bound = np.int32(sums[row] + np.int32(norm * norms[row]))
            largest = bound if bound > largest else largest
        out[b] = largest


@part()
def kth_largest(largest: Ints, k: int, heads: Floats, ids: Ints) -> int:
    """Return about the k-th largest of some numbers, not more, but at least 1; 1 if there are fewer than k.

    Of many numbers it is the k-th among the largest of GROUPS * k groups: seldom much less, but quick to find.
    ``heads`` and ``ids`` are scratch.
    """
    n = min(len(largest), GROUPS * k)
    if n < k:
        return 1
    for i in range(n):
        heads[i], ids[i] = largest[i], i
    for start in range(n, len(largest), n):  # adjacent numbers are in different groups: similar rows may be adjacent
        for i in range(min(n, len(largest) - start)):
            heads[i] = max(heads[i], np.float32(largest[start + i]))
    select_best(heads, ids, n, k)
    smallest = heads[0]
    for i in range(1, k):
        smallest = min(smallest, heads[i])
    return max(int(smallest) - HEAD_ROUNDING, 1)


@kernel()
def nearest_quantized_rows(
    X: CsrArrays, start: int, stop: int, index: Postings, sums: Ints, neighbors: Ints, similarities: Floats
) -> None:
    """Find the indexed rows with the largest positive inner products with the rows start..stop of X.

    Common features are not read for every row: they add at most the product of the norms over the common features. At
    least k rows that lead on the other features are scored first, if there are that many; then only rows that can still
    reach the k-th best of these rows are scored. ``sums`` (n_rows or more) is scratch, all zeros before and after.
    ``neighbors`` and ``similarities`` (stop - start, k) are filled best first, and padded with -1 and -inf.
    """
    data, indices, indptr = X
    common = index.common
    k, n = neighbors.shape[1], len(index.common_norms)
    n_blocks = (n + BLOCK - 1) // BLOCK
    query = np.empty(common.shape[1], np.int16)
    largest, bounds = np.empty(n_blocks, np.int32), np.empty(n_blocks, np.int32)
    heads, ids = np.empty(n_blocks, np.float32), np.empty(n_blocks, np.int32)
    for at in range(start, stop):
        entries = slice(indptr[at], indptr[at + 1])
        unit, common_unit, norm = add_products(data[entries], indices[entries], index, sums, query)
        largest_of_blocks(sums, n, BLOCK, largest)
        leading = kth_largest(largest, k, heads, ids)
        near, values = neighbors[at - start], similarities[at - start]
        size = 0
        for b in range(n_blocks):
            if largest[b] >= leading:
                for row in range(b * BLOCK, min(b * BLOCK + BLOCK, n)):
                    if sums[row] >= leading:
                        value = np.float32(unit * sums[row] + common_unit * int_product(query, common[row]))
                        if value > 0.0 and (size < k or value >= values[0]):
                            size = push(values, near, size, value, row)
        if norm > 0.0:
            norm_units = np.float32(norm / unit)
            bounds_of_blocks(sums, index.common_norms, norm_units, BLOCK, bounds)
            for b in range(n_blocks):
                if bounds[b] > 0 and (size < k or unit * bounds[b] >= values[0] - ROUNDING):
                    for row in range(b * BLOCK, min(b * BLOCK + BLOCK, n)):
                        bound = sums[row] + np.int32(norm_units * index.common_norms[row])
                        if sums[row] < leading and (size < k or unit * bound >= values[0] - ROUNDING):
                            value = np.float32(unit * sums[row] + common_unit * int_product(query, common[row]))
                            if value > 0.0 and (size < k or value >= values[0]):
                                size = push(values, near, size, value, row)
        sort_best_first(values, near, size)
        for row in range(np.uint64(n)):
            sums[row] = 0


@kernel()
def shared_products(data: Floats, indices: Ints, index: Postings, rows: Ints, slots: Ints, out: Floats) -> None:
    """Compute what each feature of one document adds to its inner products with some indexed rows, each named once.

    ``slots`` (n_rows or more) is scratch, all zeros before and after; ``out`` is (rows, n_features of the document).
    """
    for i in range(len(rows)):
        slots[rows[i]] = i + 1
    for j in range(len(indices)):
        feature = indices[j]
        weight, column = data[j] * index.scales[feature], index.common_column[feature]
        for i in range(len(rows)):
            out[i, j] = weight * index.common[rows[i], column] if column >= 0 else np.float32(0.0)
        for pos in range(np.uint64(index.starts[feature]), np.uint64(index.starts[feature + 1])):
            slot = slots[np.uint64(index.rows[pos])]
            if slot > 0:
                out[slot - 1, j] += weight * index.values[pos]
        row = np.uint64(0)
        for pos in range(np.uint64(index.gap_starts[feature]), np.uint64(index.gap_starts[feature + 1])):
            row += np.uint64(index.gaps[pos])
            slot = slots[row]
            if slot > 0:
                out[slot - 1, j] += weight * index.gap_values[pos]
    for i in range(len(rows)):
        slots[rows[i]] = 0


@kernel()
def strong_values(data: Floats, indptr: Ints, start: int, stop: int, share: float, at_least: int, out: Bools) -> None:
    """Mark the strong values of the rows start..stop of a CSR matrix; the others have at most ``share`` of the squares.

    At least ``at_least`` values of a row are strong, if it has so many; values of the same size are treated alike.
    ``out`` is (n_values,); values of other rows are not touched.
    """
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        n_weak, smallest = last - first - at_least, 0.0  # how many may be left out
        if n_weak > 0:
            sizes = np.sort(np.abs(data[first:last]))
            total, below = 0.0, 0.0
            for i in range(len(sizes)):
                total += np.float64(sizes[i]) * sizes[i]
            for i in range(n_weak + 1):
                below += np.float64(sizes[i]) * sizes[i]
                smallest = np.float64(sizes[i])
                if below > share * total:
                    break
        for j in range(first, last):
            out[j] = abs(data[j]) >= smallest
