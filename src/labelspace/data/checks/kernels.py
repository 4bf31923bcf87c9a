"""MinHash of word shingles: which documents may be nearly the same (Broder, 1997), by one permutation of the shingles.

1. A word is a run of ASCII letters, digits and characters beyond ASCII; a shingle is ``width`` words in a row.
2. A shingle's hash says its bin, and each bin keeps the smallest of its hashes: the signature of a document.
3. An empty bin borrows from another bin, the same for all documents (optimal densification, Shrivastava, 2017).
4. Two documents agree in a bin with about the chance of their Jaccard similarity.
5. In a band, a few bins in a row, documents that agree in all are compared with the first and the last of them.

``text`` is the UTF-8 of all documents in lower case, one after the other, and ``ends`` where each ends in it.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.tokenize import FNV_PRIME, FNV_SEED, Bytes, Flags, Hashes, Ids, Offsets, mix_bits

Signatures = npt.NDArray[np.uint16]
"""One row per document, one column per bin."""

_NONE, _LARGEST = np.uint32(0xFFFFFFFF), np.uint32(0xFFFFFFFE)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_SPACE = np.uint8(32)


@part()
def _is_word(b: int) -> bool:
    return b >= 128 or 48 <= b <= 57 or 97 <= b <= 122


@part()
def _is_space(b: int) -> bool:
    return b == 32 or 9 <= b <= 13


@kernel()
def shingle_hashes(text: Bytes, start: int, stop: int, width: int, out: Hashes) -> int:
    """Write the hashes of the shingles of one document to ``out`` and return their number.

    A document with fewer words than ``width`` has one shingle of all its words.
    """
    n, h, inside = 0, FNV_SEED, False
    for pos in range(start, stop + 1):
        if pos < stop and _is_word(text[pos]):
            h = (h ^ np.uint64(text[pos])) * FNV_PRIME
            inside = True
        elif inside:
            out[n] = mix_bits(h)  # the hash of the word
            n, h, inside = n + 1, FNV_SEED, False
    used = min(width, n)
    last = max(n - width + 1, min(n, 1))
    for i in range(last):
        h = FNV_SEED
        for j in range(i, i + used):
            h = mix_bits((h ^ out[j]) * FNV_PRIME)
        out[i] = h
    return last


@kernel()
def folded_hashes(text: Bytes, ends: Offsets) -> Hashes:
    """Return the hash of each document; any white space counts as one space, and as none at both ends."""
    hashes = np.empty(ends.size, np.uint64)
    start = 0
    for doc in range(ends.size):
        h, gap, begun = FNV_SEED, False, False
        for pos in range(start, ends[doc]):
            b = text[pos]
            if _is_space(b):
                gap = begun
                continue
            if gap:
                h = (h ^ np.uint64(_SPACE)) * FNV_PRIME
            h = (h ^ np.uint64(b)) * FNV_PRIME
            gap, begun = False, True
        hashes[doc] = mix_bits(h)
        start = ends[doc]
    return hashes


@kernel()
def minhash_signatures(text: Bytes, ends: Offsets, width: int, least: int, signatures: Signatures) -> Ids:
    """Write the signature of each document of ``least`` shingles (at least 1) or more, and return their numbers."""
    n_bins, longest, start = signatures.shape[1], 0, 0
    for doc in range(ends.size):
        longest = max(longest, ends[doc] - start)
        start = ends[doc]
    hashes, smallest = np.empty(longest // 2 + 1, np.uint64), np.empty(n_bins, np.uint32)
    sizes = np.empty(ends.size, np.int32)
    start = 0
    for doc in range(ends.size):
        sizes[doc] = n = shingle_hashes(text, start, ends[doc], width, hashes)
        start = ends[doc]
        if n < least:
            continue
        for b in range(n_bins):
            smallest[b] = _NONE
        for i in range(n):
            at = np.int64(((hashes[i] >> _HALF) * np.uint64(n_bins)) >> _HALF)
            value = min(np.uint32(hashes[i] & _LOW), _LARGEST)
            if value < smallest[at]:
                smallest[at] = value
        for b in range(n_bins):
            at, tries = np.int64(b), np.uint64(0)
            while smallest[at] == _NONE:
                tries += np.uint64(1)
                h = mix_bits((np.uint64(b + 1) * _STEP) ^ tries * FNV_PRIME)
                at = np.int64(((h >> _HALF) * np.uint64(n_bins)) >> _HALF)
            signatures[doc, b] = np.uint16(smallest[at] & np.uint32(0xFFFF))
    return sizes


@part()
def _agreeing(signatures: Signatures, a: int, b: int) -> int:
    n = 0
    for i in range(signatures.shape[1]):
        n += signatures[a, i] == signatures[b, i]
    return n


@kernel()
def compare_in_band(
    order: Offsets, keys: Hashes, is_query: Flags, is_target: Flags, signatures: Signatures, best: Ids, agreement: Ids
) -> None:
    """Update the best target of each query, and the number of bins in which they agree, from one band (step 5).

    ``order`` has the documents by their keys in this band, those of one key in the order of their numbers. A target is
    a document with a smaller number.
    """
    first, last = -1, -1
    for i in range(order.size):
        doc = order[i]
        if i == 0 or keys[doc] != keys[order[i - 1]]:
            first, last = -1, -1
        if is_query[doc]:
            for target in (first, last):
                if target >= 0 and target != best[doc]:
                    n = _agreeing(signatures, doc, target)
                    if n > agreement[doc]:
                        best[doc], agreement[doc] = target, n
        if is_target[doc]:
            first, last = (doc if first < 0 else first), doc


@kernel()
def shingle_similarities(text: Bytes, ends: Offsets, width: int) -> npt.NDArray[np.float64]:
    """Return the Jaccard similarity of the shingle sets of documents 0 and 1, 2 and 3, ..."""
    n_pairs = ends.size // 2
    out = np.zeros(n_pairs, np.float64)
    for pair in range(n_pairs):
        start = 0 if pair == 0 else ends[2 * pair - 1]
        middle, stop = ends[2 * pair], ends[2 * pair + 1]
        hashes = np.empty((stop - start) // 2 + 2, np.uint64)
        n = shingle_hashes(text, start, middle, width, hashes)
        n_all = n + shingle_hashes(text, middle, stop, width, hashes[n:])
        size = 16
        while size < 2 * n_all:
            size *= 2
        slots, seen = np.zeros(size, np.uint64), np.zeros(size, np.uint8)  # 1: in the first, 2: in the second
        mask, both, either = np.uint64(size - 1), 0, 0
        for i in range(n_all):
            mark = np.uint8(1) if i < n else np.uint8(2)
            slot = hashes[i] & mask
            while seen[slot] != 0 and slots[slot] != hashes[i]:
                slot = (slot + np.uint64(1)) & mask
            either += seen[slot] == 0
            both += seen[slot] != 0 and (seen[slot] & mark) == 0 and mark == 2 and seen[slot] == 1
            slots[slot], seen[slot] = hashes[i], seen[slot] | mark
        out[pair] = both / either if either > 0 else 0.0
    return out
