"""Near duplicates: documents that share most of their word triples, found by MinHash and LSH, then compared exactly.

1. Make a signature of ``N_BINS`` numbers of each text; see ``kernels/minhash.py``.
2. In each of ``N_BANDS`` bands, documents with equal numbers are candidates: those with a Jaccard similarity of 0.8 are
   found with a chance of 0.99, of 0.9 with one of 0.9999.
3. Keep the candidate whose signature agrees most, and compare the sets of word triples of the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelspace.data.checks.same_documents import encode, text_blocks
from labelspace.kernels.minhash import Signatures, compare_in_band, minhash_signatures, shingle_similarities
from labelspace.kernels.threads import run_blocks
from labelspace.types import Bools, Doubles, Ints, Longs

WIDTH = 3  # words of a shingle
ROWS, N_BANDS = 6, 16
N_BINS = ROWS * N_BANDS
SIMILAR = 0.8  # Jaccard similarity of near duplicates
LIKELY = 0.6  # share of equal bins from which two documents are compared
MIN_SHINGLES = 3  # five words: of fewer, two that differ in one word are no duplicates


@dataclass(frozen=True)
class Neighbors:
    """For each document a training document that is nearly the same, or -1, and how similar they are. Shape (n,)."""

    within: Ints  # for training documents: an earlier one
    across: Ints  # for dev and test documents
    similarity: Doubles


def near_duplicates(texts: Sequence[str], first_same: Longs, in_train: Bools) -> Neighbors:
    """Near duplicates of documents that are not the same as an earlier one."""
    signatures, sizes = _signatures(texts)
    considered = (first_same == np.arange(len(texts))) & (sizes >= MIN_SHINGLES)
    queries, n = np.flatnonzero(considered), len(texts)
    best, agreement = np.full(n, -1, np.int32), np.full(n, int(LIKELY * N_BINS) - 1, np.int32)
    for band in range(N_BANDS):
        keys = _band_keys(signatures[:, band * ROWS : (band + 1) * ROWS])
        order = queries[np.argsort(keys[queries], kind="stable")]
        compare_in_band(order, keys, considered, considered & in_train, signatures, best, agreement)
    similarity = _similarities(texts, best)
    best = np.where(similarity >= SIMILAR, best, -1).astype(np.int32)
    return Neighbors(np.where(in_train, best, -1), np.where(in_train, -1, best), similarity)


def _signatures(texts: Sequence[str]) -> tuple[Signatures, Ints]:
    signatures, sizes = np.zeros((len(texts), N_BINS), np.uint16), np.zeros(len(texts), np.int32)
    blocks = text_blocks(map(len, texts))

    def make(start: int, stop: int) -> None:
        for first, last in blocks[start:stop]:
            sizes[first:last] = minhash_signatures(
                *encode(texts[first:last]), WIDTH, MIN_SHINGLES, signatures[first:last]
            )

    run_blocks(make, len(blocks), 1)
    return signatures, sizes


def _band_keys(rows: Signatures) -> npt.NDArray[np.uint64]:
    """One number for the numbers of a band: the first four as they are, the others mixed in."""
    keys = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(32)
    return keys


def _similarities(texts: Sequence[str], best: Ints) -> Doubles:
    """The Jaccard similarity of each document and its candidate, 0 where there is none."""
    similarity, numbers = np.zeros(len(texts)), np.flatnonzero(best >= 0)
    paired = [texts[number] for query in numbers.tolist() for number in (query, best[query])]
    blocks = text_blocks(len(a) + len(b) for a, b in zip(paired[::2], paired[1::2], strict=True))

    def compare(start: int, stop: int) -> None:
        for first, last in blocks[start:stop]:
            pairs = encode(paired[2 * first : 2 * last])
            similarity[numbers[first:last]] = shingle_similarities(*pairs, WIDTH)

    run_blocks(compare, len(blocks), 1)
    return similarity
