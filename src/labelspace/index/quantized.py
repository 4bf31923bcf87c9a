"""Search in two steps: a shortlist by vectors of 1, 2 or 4 bits per number, re-ranked by the vectors in 16 bits.

For label vectors v with mean c and queries q with second moments C = E[q q']:

1. q'v = q'c + q'(v - c), and the first term is the same for all labels: it does not change their order.
2. Map x = A'(v - c) and y = W'q with A W' = I, so that q'(v - c) = y'x and E[y y'] = I: A = C^1/2 B, W = C^-1/2 B
   with B orthonormal. An error of x then costs the same in every direction. Without queries, C = I.
3. Where x must be shorter than v, B spans the first right singular vectors of the centered labels times C^1/2: the
   least squared error over the queries. B ends with a random rotation, after which all numbers of x are alike.
4. Round every x / rms(x) to 2^bits levels l. Estimate the score by y'l |x|^2 / x'l, whose error is not biased in the
   direction of x.
5. Round y to 5 bits, and compute y'l of all labels by counting bits (``kernels/bit_planes.py``).

6. With ``n_read``, compute steps 4 and 5 for some labels only: the labels lie in inverted lists
   (``inverted_lists.py``), and a query reads the most promising lists until it has read ``n_read`` labels.

Steps 4 and 5 follow Gao and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for
Approximate Nearest Neighbor Search" (2024), which has one bit, and no step 2.
"""

from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError
from labelspace.estimator import learned
from labelspace.estimator.parameter_constraints import integer, one_of, optional
from labelspace.estimator.state_constraints import are_sorted_spans, array, ids, must, part, plain
from labelspace.index.base import Index, checked_ids, checked_vectors
from labelspace.index.inverted_lists import InvertedLists, moment_basis, second_moments
from labelspace.kernels import bit_planes
from labelspace.kernels.bit_planes import BLOCK, CodedRows, Shortlist, Words
from labelspace.kernels.quantize import Int16s, quantize_int16
from labelspace.kernels.sparse_layers import dense_forward
from labelspace.kernels.threads import run_blocks, search_in_blocks
from labelspace.types import Doubles, Floats, Ints, Longs, TopK

STEPS = {1: 1.596, 2: 0.9957, 4: 0.3352}  # bits -> distance of levels of least squared error, for Gaussian numbers
SHORTLIST = 256  # labels that are re-ranked; more are more accurate and slower
MAX_SHORTLIST = 4096  # of a saved index: more would take too much memory per query
SHORTLIST_FACTOR = 8  # candidates per label to return, at least
QUERY_BLOCK = 32  # queries per task, which share a block of vectors in the cache
MAX_CANDIDATES = 200_000  # of all queries of a task, which bounds memory
ROW_BLOCK = 4096  # vectors encoded at a time: no float32 copy of the full table
MOMENT_ROWS = 100_000  # vectors that the second moments are taken from; more change them little and take longer
SELF_QUERIES = 100  # without queries, every hundredth vector stands for one
MIN_READ = 4  # labels that are read per candidate of the shortlist, at least
MAX_READ_SHARE = 1 / 2  # of all labels: rather than more, all are read, which is as fast
DROPPED = 8  # up to this number of dimensions beyond a multiple of 64 are dropped, more are padded to the next


class Quantized(Index):
    """All products in few bits, those of a shortlist in 16 bits; results do not depend on the batch or the threads.

    ``queries`` (m, d), some hundreds or thousands, are examples of later queries. ``n_read`` is how many labels a query
    reads, from lists; None reads all labels, without lists.

    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.standard_normal((500, 32))
    >>> index = Quantized(vectors, ids=np.arange(500), bits=2)
    >>> index.search(vectors[:5], k=1).labels[:, 0].tolist()
    [0, 1, 2, 3, 4]
    """

    name = "quantized"
    copied_in_part = True

    bits: int = learned(plain(integer(1, at_most=max(STEPS))))
    shortlist: int = learned(plain(integer(1, at_most=MAX_SHORTLIST)))
    n_read: int | None = learned(plain(optional(integer(1))), default=None)  # None without lists
    ids_: Ints = learned(ids("n", below=2**31))  # sorted, in each list
    planes_: Words = learned(array("uint64", "n_blocks", "n_words", BLOCK))  # the levels of x
    scales_: Floats = learned(array("float32", "n"))  # |x|^2 / x'l
    vectors_: Int16s = learned(array("int16", "n", "dimension"))
    vector_scales_: Floats = learned(array("float32", "n"))
    center_: Floats = learned(array("float32", "dimension"))  # c
    label_map_: Floats = learned(array("float32", "dimension", "width"))  # A
    query_map_: Floats = learned(array("float32", "dimension", "width"))  # W
    lists_: InvertedLists | None = learned(
        part(InvertedLists, optional=True, n="n", dimension="dimension"), default=None
    )

    def __init__(
        self,
        vectors: npt.ArrayLike,
        ids: npt.ArrayLike,
        bits: int = 2,
        shortlist: int = SHORTLIST,
        queries: npt.ArrayLike | None = None,
        seed: int = 0,
        n_read: int | None = None,
    ) -> None:
        one_of(*STEPS).check("bits", bits)
        rows = checked_vectors(vectors, "vectors")
        if not rows.size:
            raise DataError(f"a quantized index must have vectors, but they have shape {rows.shape}; use Exact")
        given = None if queries is None else checked_vectors(queries, "queries", rows.shape[1])
        super().__init__("quantized", f"{bits}bit+int16", rows.shape[1])
        self.bits = bits
        self.set_shortlist(shortlist)
        self.center_, self.label_map_, self.query_map_ = _maps(rows, given, seed)
        new = checked_ids(ids, rows)
        self.lists_, self.n_read, list_of = None, None, np.zeros(len(new), np.int32)
        if n_read is not None:
            self.lists_, list_of = InvertedLists.build(rows, rows[::SELF_QUERIES] if given is None else given, seed)
            self.set_n_read(n_read)
        order = np.lexsort([new, list_of])
        self._set(new[order], *self._encode(rows, order))

    def with_bits(self, bits: int, vectors: Floats) -> Self:
        """Return this index with another number of bits; ``vectors`` belong to its ids in ascending order."""
        other = copy(self)
        other.bits, other.storage = bits, f"{bits}bit+int16"
        other.report = self.report | {"storage": other.storage}
        order = np.searchsorted(np.sort(self.ids_), self.ids_)
        words, other.scales_ = other._encode_levels(vectors, order)
        other.planes_ = bit_planes.to_blocks(words)
        return other

    def set_n_read(self, n_read: int) -> None:
        """Set how many labels a query reads from lists: more are more accurate and slower."""
        integer(1).check("n_read", n_read)
        self.n_read = self.report["n_read"] = int(n_read)

    def set_shortlist(self, shortlist: int) -> None:
        """Set how many labels are re-ranked: more are more accurate and slower."""
        integer(1, at_most=MAX_SHORTLIST).check("shortlist", shortlist)
        self.shortlist = self.report["shortlist"] = int(shortlist)

    @property
    def ids(self) -> Ints:
        """Return the ids in the index. Shape (n,)."""
        return self.ids_

    def check_state(self) -> None:
        """Check that the ids are in order, and that planes and lists fit the labels."""
        must((self.lists_ is None) == (self.n_read is None), "both lists and how much to read of them, or neither")
        spans = np.array([0, len(self.ids_)]) if self.lists_ is None else self.lists_.starts
        must(are_sorted_spans(self.ids_, spans), "ids in order")
        n_blocks, n_words, _ = self.planes_.shape
        width = self.query_map_.shape[1]
        must(n_blocks == -(-len(self.ids_) // BLOCK), "blocks of its labels")
        must(width > 0 and width % BLOCK == 0 and n_words == self.bits * width // BLOCK, "planes of its bits and width")

    def _encode(self, vectors: Floats, order: Longs) -> tuple[Words, Floats, Int16s, Floats]:
        rounded, scales = np.empty((len(order), self.dimension), np.int16), np.empty(len(order), np.float32)

        def encode(start: int, stop: int) -> None:
            rounded[start:stop], scales[start:stop] = quantize_int16(vectors[order[start:stop]])

        run_blocks(encode, len(order), ROW_BLOCK)
        return *self._encode_levels(vectors, order), rounded, scales

    def _encode_levels(self, vectors: Floats, order: Longs) -> tuple[Words, Floats]:
        """Return words and their scales, of vectors in this order; a row does not depend on the others."""
        width = self.label_map_.shape[1]
        words = np.empty((len(order), self.bits * width // BLOCK), np.uint64)
        scales, zeros = np.empty(len(order), np.float32), np.zeros(width, np.float32)

        def encode(start: int, stop: int) -> None:
            x = np.empty((stop - start, width), np.float32)
            dense_forward(vectors[order[start:stop]] - self.center_, self.label_map_, zeros, x)
            words[start:stop], scales[start:stop] = _levels(x, self.bits)

        run_blocks(encode, len(order), ROW_BLOCK)
        return words, scales

    def _set(self, ids: Ints, words: Words, scales: Floats, vectors: Int16s, vector_scales: Floats) -> None:
        self.ids_, self.planes_, self.scales_ = ids, bit_planes.to_blocks(words), scales
        self.vectors_, self.vector_scales_ = vectors, vector_scales

    def _rows(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the arguments of ``_set``."""
        words = bit_planes.from_blocks(self.planes_, len(self.ids_))
        return self.ids_, words, self.scales_, self.vectors_, self.vector_scales_

    def _put(self, rows: tuple[npt.NDArray[Any], ...], list_of: Ints) -> None:
        """Set rows that are in any order, each with its list; 0 without lists."""
        order = np.lexsort([rows[0], list_of])
        if self.lists_ is not None:
            self.lists_ = self.lists_.regrouped(list_of)
        self._set(*(array[order] for array in rows))

    def _list_of(self) -> Ints:
        return np.zeros(len(self.ids_), np.int32) if self.lists_ is None else self.lists_.list_of()

    def _search(self, queries: Floats, k: int) -> TopK:
        size = max(1, min(max(self.shortlist, SHORTLIST_FACTOR * k), len(self.ids_)))
        n_read = max(self.n_read or 0, MIN_READ * size)
        lists = self.lists_ if n_read <= MAX_READ_SHARE * len(self.ids_) else None
        zeros = np.zeros(self.query_map_.shape[1], np.float32)

        table = CodedRows(self.planes_, self.scales_)

        def search(rows: slice, labels: Ints, scores: Floats) -> None:
            block, y = queries[rows], np.empty((len(labels), len(zeros)), np.float32)
            dense_forward(block, self.query_map_, zeros, y)
            shape = len(labels), 2 * size + BLOCK
            found = Shortlist(np.empty(shape, np.int32), np.empty(shape, np.float32))
            if lists is None:
                bit_planes.shortlists(y, table, size, found)
            else:
                bit_planes.shortlists_in_lists(y, table, lists.starts, lists.to_read(block, n_read), size, found)
            bit_planes.rerank_int16(block, self.vectors_, self.vector_scales_, self.ids_, found.rows, labels, scores)

        return search_in_blocks(search, len(queries), k, max(1, min(QUERY_BLOCK, MAX_CANDIDATES // size)))

    def _vectors(self, at: Longs) -> Floats:
        return self.vectors_[at] * self.vector_scales_[at, None]

    def _add(self, ids: Ints, vectors: Floats) -> None:
        new: tuple[npt.NDArray[Any], ...] = (ids, *self._encode(vectors, np.arange(len(ids))))
        lists = np.zeros(len(ids), np.int32) if self.lists_ is None else self.lists_.nearest(vectors)
        rows = tuple(np.concatenate(pair) for pair in zip(self._rows(), new, strict=True))
        self._put(rows, np.concatenate([self._list_of(), lists]))

    def _remove(self, ids: Ints) -> None:
        keep = ~np.isin(self.ids_, ids)
        self._put(tuple(rows[keep] for rows in self._rows()), self._list_of()[keep])


def _maps(vectors: Floats, queries: Floats | None, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return c, A and W (steps 1 to 3)."""
    dimension = vectors.shape[1]
    width = BLOCK * max(1, -(-(dimension - DROPPED) // BLOCK))
    sample = vectors[:: -(-len(vectors) // MOMENT_ROWS)]
    center: Floats = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    with threadpool_limits(1, user_api="blas"):  # sums in one order
        root, inverse = _roots(queries) if queries is not None and len(queries) else (np.eye(dimension),) * 2
        _, directions = np.linalg.eigh(root.T @ second_moments(sample - center) @ root)  # by rising eigenvalues
        directions = directions[:, ::-1][:, : min(width, dimension)]
        noise = np.random.default_rng(seed).standard_normal((width, directions.shape[1]))
        B = directions @ np.linalg.qr(noise)[0].T
        return center, (root @ B).astype(np.float32), (inverse @ B).astype(np.float32)


def _roots(queries: Floats) -> tuple[Doubles, Doubles]:
    """Return C^1/2 and C^-1/2, up to a rotation."""
    values, basis = moment_basis(queries)
    return basis * np.sqrt(values), basis / np.sqrt(values)


def _levels(x: Floats, bits: int) -> tuple[Words, Floats]:
    """Return the levels of rows x as words, and |x|^2 / x'l, where l are odd numbers from -2^bits + 1 (step 4)."""
    squares = np.einsum("ij,ij->i", x, x)
    step = np.maximum(np.sqrt(squares / np.float32(x.shape[1])), np.float32(1e-30)) * np.float32(STEPS[bits])
    half = 2 ** (bits - 1)
    codes = np.clip(np.floor(x / step[:, None]) + half, 0, 2 * half - 1).astype(np.uint8)
    along = np.einsum("ij,ij->i", x, 2 * codes.astype(np.float32) - np.float32(2 * half - 1))
    scales = np.divide(squares, along, out=np.zeros_like(along), where=along > 0)
    return bit_planes.to_planes(codes, bits), scales
