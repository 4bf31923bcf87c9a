"""Documents that are the same, and documents that are nearly the same.

Texts are the same if they are equal except for white space and case; features, if the rows are equal. Near duplicates
share most of their word triples; MinHash and LSH find them, and an exact comparison confirms them:

1. Make a signature of ``N_BINS`` numbers of each text; see ``kernels``.
2. In each of ``N_BANDS`` bands, documents with equal numbers are candidates: those with a Jaccard similarity of 0.8 are
   found with a chance of 0.99, of 0.9 with one of 0.9999.
3. Keep the candidate whose signature agrees most, and compare the sets of word triples of the two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelspace.data.checks.kernels import compare_in_band, folded_hashes, minhash_signatures, shingle_similarities
from labelspace.data.document_sketch import document_hashes
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tokenize import Bytes, Offsets
from labelspace.types import Bools, Csr, Doubles, Ints, Longs

BLOCK = 2**20  # characters encoded at a time, about: fewer cost calls, more cost memory in each thread


def fold(text: str) -> str:
    r"""Return a text without differences of white space and case.

    >>> fold(" Bake\n BREAD ")
    'bake bread'
    """
    return " ".join(text.lower().split())


def encode(texts: Sequence[str]) -> tuple[Bytes, Offsets]:
    """Return the texts in lower case as UTF-8, one after the other, and where each ends."""
    parts = [text.encode() if text.isascii() else text.lower().encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(bytearray().join(parts).lower(), np.uint8), ends


def text_blocks(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Return spans of texts of these sizes, each of about ``BLOCK`` characters or one text.

    >>> text_blocks([5, 5, 2**20, 5])
    [(0, 2), (2, 4)]
    """
    total = np.cumsum([size + 1 for size in sizes])
    cuts = np.flatnonzero(np.diff(total // BLOCK)) + 1 if len(total) else np.zeros(0, np.int64)
    bounds = [0, *cuts.tolist(), len(total)]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def same_documents(texts: Sequence[str] | None, X: Sequence[Csr], empty: Bools) -> Longs:
    """Return the first document that equals each one; an empty document equals only itself."""
    first = np.arange(len(empty), dtype=np.int64)
    if texts is None:
        hashes = np.zeros(len(empty), np.uint64)
        hashes[~empty] = np.concatenate([document_hashes(rows) for rows in X])
    else:
        hashes = _text_hashes(texts)
    for numbers in _groups(hashes, empty):
        seen: dict[object, int] = {}
        for number in numbers.tolist():  # of texts with one hash, those that are the same
            first[number] = seen.setdefault(None if texts is None else fold(texts[number]), number)
    return first


def _in_blocks(sizes: Iterable[int], work: Callable[[int, int], None]) -> None:
    """Call ``work`` with the spans of texts of these sizes, on all threads."""
    blocks = text_blocks(sizes)

    def run(start: int, stop: int) -> None:
        for span in blocks[start:stop]:
            work(*span)

    run_blocks(run, len(blocks), 1)


def _text_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(len(texts), np.uint64)

    def hash_block(first: int, last: int) -> None:
        hashes[first:last] = folded_hashes(*encode(texts[first:last]))

    _in_blocks(map(len, texts), hash_block)
    return hashes


def _groups(hashes: npt.NDArray[np.uint64], empty: Bools) -> Iterator[Longs]:
    """Return the documents of each hash that several have, in order."""
    numbers = np.flatnonzero(~empty)
    order = numbers[np.argsort(hashes[numbers], kind="stable")]
    starts = np.flatnonzero(np.diff(hashes[order], prepend=hashes[order[:1]] + np.uint64(1)))
    sizes = np.diff(starts, append=len(order))
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        yield order[start : start + size]


WIDTH = 3  # words of a shingle: single words are shared by texts of one topic, longer shingles miss small changes
ROWS, N_BANDS = 6, 16  # bins of a band: more bins let fewer wrong candidates pass, more bands miss fewer right ones
N_BINS = ROWS * N_BANDS
SIMILAR = 0.8  # Jaccard similarity of near duplicates
# Share of equal bins from which two documents are compared exactly: below SIMILAR, as the share is only an estimate.
LIKELY = 0.6
MIN_SHINGLES = 3  # five words: of fewer, two that differ in one word are no duplicates


@dataclass(frozen=True)
class Neighbors:
    """For each document a training document that is nearly the same, or -1, and their similarity. Shape (n,)."""

    within: Ints  # for training documents: an earlier one
    across: Ints  # for dev and test documents
    similarity: Doubles


def near_duplicates(texts: Sequence[str], first_same: Longs, in_train: Bools) -> Neighbors:
    """Find near duplicates of documents that do not equal an earlier one."""
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


def _signatures(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint16], Ints]:
    signatures, sizes = np.zeros((len(texts), N_BINS), np.uint16), np.zeros(len(texts), np.int32)

    def make(first: int, last: int) -> None:
        block = encode(texts[first:last])
        sizes[first:last] = minhash_signatures(*block, WIDTH, MIN_SHINGLES, signatures[first:last])

    _in_blocks(map(len, texts), make)
    return signatures, sizes


def _band_keys(rows: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint64]:
    """Return one number for the numbers of a band: the first four as they are, the others mixed in."""
    keys = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(32)
    return keys


def _similarities(texts: Sequence[str], best: Ints) -> Doubles:
    """Return the Jaccard similarity of each document and its candidate, 0 without a candidate."""
    similarity, numbers = np.zeros(len(texts)), np.flatnonzero(best >= 0)
    paired = [texts[number] for query in numbers.tolist() for number in (query, best[query])]

    def compare(first: int, last: int) -> None:
        similarity[numbers[first:last]] = shingle_similarities(*encode(paired[2 * first : 2 * last]), WIDTH)

    _in_blocks((len(a) + len(b) for a, b in zip(paired[::2], paired[1::2], strict=True)), compare)
    return similarity
