"""Search labels by typed text: find words within one edit, flag the labels that match, and pick the best of them.

The words of all labels are different, in alphabetical order and in UTF-8, one after the other, each with a NUL behind
it; ``starts`` is where each begins. Labels are given by their ranks, 0 for the one to show first, and ``flags`` has a
few bits for each.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Bools, Ints, Longs

Flags = npt.NDArray[np.uint16]
MAX_SHARED = 255  # bytes; a word that shares more is compared again, so that a byte is enough for the count


@part()
def _n_bytes(first: int) -> int:
    """Return the number of bytes of a character in UTF-8, by its first byte."""
    return 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)


@part()
def _match(query: Bytes, q: int, words: Bytes, w: int) -> int:
    """Return how many bytes of the query from q on equal those of a word from w on, without the NUL behind it."""
    n = 0
    while q + n < query.size and query[q + n] == words[w + n]:
        n += 1
    return n


@kernel()
def _compare(query: Bytes, words: Bytes, start: int) -> tuple[bool, int]:
    """Return whether a word begins with the query except for one edit, and how many of its bytes were read.

    An edit can only be at the first character that differs: an earlier edit would only move the difference there.
    """
    same = _match(query, 0, words, start)
    seen = same + 1
    if same == query.size:
        return True, seen
    while query[same] & 0xC0 == 0x80:  # back to the first byte of the character
        same -= 1
    q, w = same + _n_bytes(query[same]), start + same  # behind the character of the query, before that of the word
    after = w + _n_bytes(words[w])
    for q_on, w_on in ((q, w), (q, after), (same, after)):  # a character too many, another one, one too few
        n = _match(query, q_on, words, w_on)
        seen = max(seen, w_on - start + n + 1)
        if q_on + n == query.size:
            return True, seen
        if words[w] == 0:
            return False, seen
    width, next_width = q - same, _n_bytes(query[q])  # the query goes on, or the first edit would have been enough
    for i in range(next_width + width):  # two neighbors swapped
        if words[w + i] != (query[q + i] if i < next_width else query[same + i - next_width]):
            return False, seen  # these bytes were read before
    n = _match(query, q + next_width, words, w + next_width + width)
    return q + next_width + n == query.size, max(seen, same + next_width + width + n + 1)


@kernel()
def words_within_one_edit(query: Bytes, words: Bytes, starts: Longs, shared: npt.NDArray[np.uint8]) -> Ints:
    """Return the words that begin with the query, not empty, except for at most one edit, in order.

    An edit inserts, deletes or replaces a character, or swaps two neighbors. ``shared`` comes from ``shared_bytes``: a
    word that shares the bytes that decided about the word before has the same answer, without a comparison.
    """
    found = np.empty(starts.size, np.int32)
    n, is_found, seen = 0, False, MAX_SHARED + 1
    for word in range(starts.size):
        if shared[word] < seen:
            is_found, seen = _compare(query, words, starts[word])
        if is_found:
            found[n] = word
            n += 1
    return found[:n]


@kernel()
def shared_bytes(words: Bytes, starts: Longs) -> npt.NDArray[np.uint8]:
    """Return how many bytes each word shares with the word before, at most MAX_SHARED. Shape (n_words,)."""
    shared = np.zeros(starts.size, np.uint8)
    for word in range(1, starts.size):
        a, b, n = starts[word - 1], starts[word], 0
        while n < MAX_SHARED and words[a + n] == words[b + n]:
            n += 1
        shared[word] = n
    return shared


@kernel()
def flag_labels(ranks: Ints, start: int, stop: int, flag: int, flags: Flags) -> None:
    """Set a bit of the labels ranks[start:stop]."""
    for i in range(start, stop):
        flags[ranks[i]] |= flag


@kernel()
def flag_where(words: Ints, offsets: Longs, ranks: Ints, mask: int, value: int, flag: int, flags: Flags) -> None:
    """Set a bit of the labels that have one of these words, if their bits under a mask have a value.

    Word w has the labels ranks[offsets[w] : offsets[w + 1]].
    """
    for word in words:
        for i in range(offsets[word], offsets[word + 1]):
            if flags[ranks[i]] & mask == value:
                flags[ranks[i]] |= flag


@kernel()
def single_gaps(flags: Flags, every: int) -> int:
    """Return the bits of ``every`` that some label lacks while it has all other bits."""
    gaps = 0
    for rank in range(flags.size):
        gap = every & (every ^ flags[rank])
        if gap & (gap - 1) == 0:
            gaps |= gap
    return gaps


@kernel()
def best_labels(flags: Flags, levels: Flags, by_rank: Ints, allowed: Bools, limit: int) -> Ints:
    """Return the first labels of each level, padded with -1. Shape (n_levels, limit).

    A label belongs to the first level whose bits it has all. ``by_rank`` has the number of the label of each rank;
    ``allowed`` is by number, and empty where all are allowed.
    """
    found, n = np.full((levels.size, limit), -1, np.int32), np.zeros(levels.size, np.int64)
    for rank in range(flags.size):
        if flags[rank] == 0 and levels[0] != 0:  # most labels of most queries
            continue
        for level in range(levels.size):
            if flags[rank] & levels[level] == levels[level]:
                if n[level] < limit and (allowed.size == 0 or allowed[by_rank[rank]]):
                    found[level, n[level]] = by_rank[rank]
                    n[level] += 1
                break
        if n[0] == limit:
            break
    return found
