"""Word n-grams without their strings: an n-gram is the number whose digits are its word ids, counted from one.

With W words, ids in alphabetical order, and n-grams of up to N words, the key of an n-gram is its ids plus one, written
as N digits to the base W + 1, zeros behind. Since the space that joins words sorts before every character of a word,
the order of keys is the alphabetical order of the n-grams.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.tokenize import Hashes, Ids, Offsets, mixed

_HASH = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xC2B2AE3D27D4EB4F)


@njit(cache=True, nogil=True)
def tally(ids: Ids, counts: Ids, ends: Offsets, n: int) -> tuple[Offsets, Offsets]:
    """In how many documents each of n ids occurs, and how often; ``counts`` may be empty, for once each."""
    documents, times = np.zeros(n, np.int64), np.zeros(n, np.int64)
    last = np.full(n, -1, np.int64)
    at = 0
    for doc in range(ends.size):
        while at < ends[doc]:
            word = ids[at]
            times[word] += counts[at] if counts.size else 1
            if last[word] != doc:
                last[word] = doc
                documents[word] += 1
            at += 1
    return documents, times


@njit(cache=True, nogil=True)
def extend(
    prefixes: Ids, words: Ids, ends: Offsets, gap: int, low: int, high: int, n_words: int, min_df: int
) -> tuple[Ids, Ids, Offsets, Offsets]:
    """Count the n-grams that lengthen the prefixes low..high by one word.

    Occurrences are put in order of their prefix first, so that the counts of one prefix at a time fit into the cache.

    Args:
        prefixes: id of the n-gram that begins at each token, -1 for none.
        words: id of each token, -1 for none.
        ends: number of tokens up to the end of each document.
        gap: words in a prefix.
        low: first prefix.
        high: one after the last prefix.
        n_words: number of word ids.
        min_df: n-grams of fewer documents are left out.

    Returns:
        Prefix, last word, number of documents and of occurrences of each n-gram, in order of prefix.
    """
    begins = np.zeros(high - low + 1, np.int64)
    begin = 0
    for doc in range(ends.size):
        for at in range(begin, ends[doc] - gap):
            if low <= prefixes[at] < high and words[at + gap] >= 0:
                begins[prefixes[at] - low + 1] += 1
        begin = ends[doc]
    for i in range(high - low):
        begins[i + 1] += begins[i]
    nexts, docs = np.empty(begins[-1], np.int32), np.empty(begins[-1], np.int32)
    place = begins[:-1].copy()
    begin = 0
    for doc in range(ends.size):
        for at in range(begin, ends[doc] - gap):
            if low <= prefixes[at] < high and words[at + gap] >= 0:
                i = place[prefixes[at] - low]
                nexts[i], docs[i] = words[at + gap], doc
                place[prefixes[at] - low] = i + 1
        begin = ends[doc]
    last, df, times = np.full(n_words, -1, np.int32), np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
    touched = np.empty(n_words, np.int32)
    room = begins[-1] // min_df + 1
    out_prefix, out_word = np.empty(room, np.int32), np.empty(room, np.int32)
    out_df, out_times = np.empty(room, np.int64), np.empty(room, np.int64)
    n = 0
    for prefix in range(high - low):
        n_touched = 0
        for i in range(begins[prefix], begins[prefix + 1]):
            word = nexts[i]
            if times[word] == 0:
                touched[n_touched] = word
                n_touched += 1
            times[word] += 1
            if last[word] != docs[i]:
                last[word] = docs[i]
                df[word] += 1
        for i in range(n_touched):
            word = touched[i]
            if df[word] >= min_df:
                out_prefix[n], out_word[n], out_df[n], out_times[n] = low + prefix, word, df[word], times[word]
                n += 1
            last[word], df[word], times[word] = -1, 0, 0
    return out_prefix[:n], out_word[:n], out_df[:n], out_times[:n]


@njit(cache=True, nogil=True, inline="always")
def _slot(key: int, mask: int) -> int:
    return int((np.uint64(key) * _HASH) >> np.uint64(20)) & mask


@njit(cache=True, nogil=True)
def index_keys(keys: Offsets, places: Ids) -> Offsets:
    """A table from key to place: rows (key, place), a power of two of them, with key 0 for an empty row."""
    size = 16
    while 2 * size < 3 * keys.size:
        size *= 2
    table = np.zeros((size, 2), np.int64)
    for i in range(keys.size):
        slot = _slot(keys[i], size - 1)
        while table[slot, 0] != 0:
            slot = (slot + 1) & (size - 1)
        table[slot, 0], table[slot, 1] = keys[i], places[i]
    return table


@njit(cache=True, nogil=True, inline="always")
def find_key(table: Offsets, key: int) -> int:
    """The place of a key in a table of ``index_keys``, or -1."""
    mask = table.shape[0] - 1
    slot = _slot(key, mask)
    while table[slot, 0] != 0:
        if table[slot, 0] == key:
            return int(table[slot, 1])
        slot = (slot + 1) & mask
    return -1


@njit(cache=True, nogil=True)
def ngram_places(words: Ids, ends: Offsets, length: int, n_words: int, table: Offsets) -> Ids:
    """The place of the n-gram of exactly ``length`` words that begins at each token, -1 where the table has none.

    The keys of the table are of ``length`` digits.
    """
    places = np.full(words.size, -1, np.int32)
    begin = 0
    for doc in range(ends.size):
        for at in range(begin, ends[doc] - length + 1):
            key = 0
            for word in words[at : at + length]:
                if word < 0:
                    key = -1
                    break
                key = key * (n_words + 1) + word + 1
            if key > 0:
                places[at] = find_key(table, key)
        begin = ends[doc]
    return places


@njit(cache=True, nogil=True)
def ngram_columns(words: Ids, ends: Offsets, longest: int, word_columns: Ids, table: Offsets) -> tuple[Ids, Offsets]:
    """The columns of all n-grams of 1 to ``longest`` words, and their number up to the end of each document.

    Args:
        words: id of each token, -1 for none.
        ends: number of tokens up to the end of each document.
        longest: words in the longest n-gram.
        word_columns: column of each word, -1 for none.
        table: from the key of a longer n-gram to its column, as of ``index_keys``.
    """
    columns, column_ends = np.empty(longest * words.size, np.int32), np.empty(ends.size, np.int64)
    base = word_columns.size + 1
    n, begin = 0, 0
    for doc in range(ends.size):
        for at in range(begin, ends[doc]):
            word = words[at]
            if word < 0:
                continue
            if word_columns[word] >= 0:
                columns[n] = word_columns[word]
                n += 1
            key, scale = int(word) + 1, longest - 1
            for i in range(at + 1, min(at + longest, ends[doc])):
                if words[i] < 0:
                    break
                key, scale = key * base + words[i] + 1, scale - 1
                column = find_key(table, key * base**scale)
                if column >= 0:
                    columns[n] = column
                    n += 1
        begin = ends[doc]
        column_ends[doc] = n
    return columns[:n], column_ends


@njit(cache=True, nogil=True)
def hashed_columns(hashes: Hashes, ends: Offsets, longest: int, bits: int) -> tuple[Ids, Offsets]:
    """The upper bits of the hash of each n-gram of 1 to ``longest`` words, and their number up to each document."""
    columns, column_ends = np.empty(longest * hashes.size, np.int32), np.empty(ends.size, np.int64)
    shift = np.uint64(64 - bits)
    n, begin = 0, 0
    for doc in range(ends.size):
        for at in range(begin, ends[doc]):
            h = hashes[at]
            columns[n] = h >> shift
            n += 1
            for i in range(at + 1, min(at + longest, ends[doc])):
                h = mixed(h * _SECOND + hashes[i])
                columns[n] = h >> shift
                n += 1
        begin = ends[doc]
        column_ends[doc] = n
    return columns[:n], column_ends
