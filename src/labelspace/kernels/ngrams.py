"""Count and weigh word n-grams without their strings: an n-gram is the number whose digits are its word ids plus one.

With W words, ids in alphabetical order, and n-grams of up to N words, the key of an n-gram is its ids plus one, written
as N digits to the base W + 1, padded with zeros. Since the space that joins words sorts before every character of a
word, the order of keys is the alphabetical order of the n-grams.

``words`` are the ids of all tokens, -1 for none, and ``ends`` the number of tokens up to the end of each document.
"""

import math

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.tokenize import Hashes, Ids, Offsets, mix_bits
from labelspace.kernels.topk import radix_sort
from labelspace.types import Floats

_HASH = np.uint64(0x9E3779B97F4A7C15)
_COMBINE = np.uint64(0xC2B2AE3D27D4EB4F)


@kernel()
def count_frequencies(ids: Ids, counts: Ids, ends: Offsets, n: int) -> tuple[Offsets, Offsets]:
    """Count the documents and the occurrences of each of n ids; empty ``counts`` stand for once each."""
    df, occurrences = np.zeros(n, np.int64), np.zeros(n, np.int64)
    last_doc = np.full(n, -1, np.int64)
    pos = 0
    for doc in range(ends.size):
        while pos < ends[doc]:
            word = ids[pos]
            occurrences[word] += counts[pos] if counts.size else 1
            if last_doc[word] != doc:
                last_doc[word] = doc
                df[word] += 1
            pos += 1
    return df, occurrences


@kernel()
def extend_ngrams(
    prefixes: Ids, words: Ids, ends: Offsets, gap: int, low: int, high: int, n_words: int, min_df: int
) -> tuple[Ids, Ids, Offsets, Offsets]:
    """Count the n-grams that extend the prefixes low..high, of ``gap`` words each, by one word.

    ``prefixes`` are the ids of the n-grams that start at each token, -1 for none. N-grams of a document frequency below
    ``min_df`` are dropped. Returns prefix, last word, document frequency and number of occurrences of each n-gram,
    sorted by prefix. Occurrences are sorted by prefix first: the counts of one prefix at a time fit into the cache.
    """
    offsets = np.zeros(high - low + 1, np.int64)
    start = 0
    for doc in range(ends.size):
        for pos in range(start, ends[doc] - gap):
            if low <= prefixes[pos] < high and words[pos + gap] >= 0:
                offsets[prefixes[pos] - low + 1] += 1
        start = ends[doc]
    for i in range(high - low):
        offsets[i + 1] += offsets[i]
    next_words, docs = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
    cursor = offsets[:-1].copy()
    start = 0
    for doc in range(ends.size):
        for pos in range(start, ends[doc] - gap):
            if low <= prefixes[pos] < high and words[pos + gap] >= 0:
                i = cursor[prefixes[pos] - low]
                next_words[i], docs[i] = words[pos + gap], doc
                cursor[prefixes[pos] - low] = i + 1
        start = ends[doc]
    last_doc, df, counts = np.full(n_words, -1, np.int32), np.zeros(n_words, np.int64), np.zeros(n_words, np.int64)
    seen = np.empty(n_words, np.int32)
    capacity = offsets[-1] // min_df + 1
    out_prefix, out_word = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    out_df, out_counts = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    n = 0
    for prefix in range(high - low):
        n_seen = 0
        for i in range(offsets[prefix], offsets[prefix + 1]):
            word = next_words[i]
            if counts[word] == 0:
                seen[n_seen] = word
                n_seen += 1
            counts[word] += 1
            if last_doc[word] != docs[i]:
                last_doc[word] = docs[i]
                df[word] += 1
        for i in range(n_seen):
            word = seen[i]
            if df[word] >= min_df:
                out_prefix[n], out_word[n], out_df[n], out_counts[n] = (low + prefix, word, df[word], counts[word])
                n += 1
            last_doc[word], df[word], counts[word] = -1, 0, 0
    return out_prefix[:n], out_word[:n], out_df[:n], out_counts[:n]


@part()
def _slot(key: int, mask: int) -> int:
    return int((np.uint64(key) * _HASH) >> np.uint64(20)) & mask


@kernel()
def build_key_table(keys: Offsets, values: Ids) -> Offsets:
    """Build a hash table of keys: rows (key, value), a power of two of them, with key 0 for an empty row."""
    size = 16
    while 2 * size < 3 * keys.size:
        size *= 2
    table = np.zeros((size, 2), np.int64)
    for i in range(keys.size):
        slot = _slot(keys[i], size - 1)
        while table[slot, 0] != 0:
            slot = (slot + 1) & (size - 1)
        table[slot, 0], table[slot, 1] = keys[i], values[i]
    return table


def is_key_table(table: Offsets, n_values: int) -> bool:
    """Return whether every lookup in a saved table ends, and finds a value below ``n_values`` or nothing."""
    size, values = len(table), table[table[:, 0] != 0, 1]
    in_range = bool(((values >= 0) & (values < n_values)).all())
    return in_range and size > 0 and size & (size - 1) == 0 and len(values) < size


@part()
def lookup_key(table: Offsets, key: int) -> int:
    """Return the value of a key in a table of ``build_key_table``, or -1."""
    mask = table.shape[0] - 1
    slot = _slot(key, mask)
    while table[slot, 0] != 0:
        if table[slot, 0] == key:
            return int(table[slot, 1])
        slot = (slot + 1) & mask
    return -1


@kernel()
def lookup_keys(table: Offsets, keys: Offsets) -> Ids:
    """Return the value of each key, -1 if the table has none."""
    found = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        found[i] = lookup_key(table, keys[i])
    return found


@kernel()
def ngram_ids(words: Ids, ends: Offsets, length: int, n_words: int, table: Offsets) -> Ids:
    """Return the id of the n-gram of exactly ``length`` words that starts at each token, -1 if the table has none.

    The keys of the table have ``length`` digits.
    """
    ids = np.full(words.size, -1, np.int32)
    start = 0
    for doc in range(ends.size):
        for pos in range(start, ends[doc] - length + 1):
            key = 0
            for word in words[pos : pos + length]:
                if word < 0:
                    key = -1
                    break
                key = key * (n_words + 1) + word + 1
            if key > 0:
                ids[pos] = lookup_key(table, key)
        start = ends[doc]
    return ids


@kernel()
def ngram_columns(words: Ids, ends: Offsets, max_n: int, word_columns: Ids, table: Offsets) -> tuple[Ids, Offsets]:
    """Return the columns of all n-grams of 1 to ``max_n`` words, and their number up to the end of each document.

    ``word_columns`` has the column of each word, -1 for none; ``table`` has the columns of longer n-grams by key.
    """
    columns, column_ends = np.empty(max_n * words.size, np.int32), np.empty(ends.size, np.int64)
    base = word_columns.size + 1
    size, start = 0, 0
    for doc in range(ends.size):
        for pos in range(start, ends[doc]):
            word = words[pos]
            if word < 0:
                continue
            if word_columns[word] >= 0:
                columns[size] = word_columns[word]
                size += 1
            key, scale = int(word) + 1, max_n - 1
            for i in range(pos + 1, min(pos + max_n, ends[doc])):
                if words[i] < 0:
                    break
                key, scale = key * base + words[i] + 1, scale - 1
                column = lookup_key(table, key * base**scale)
                if column >= 0:
                    columns[size] = column
                    size += 1
        start = ends[doc]
        column_ends[doc] = size
    return columns[:size], column_ends


@kernel()
def hashed_columns(hashes: Hashes, ends: Offsets, max_n: int, bits: int) -> tuple[Ids, Offsets]:
    """Return the upper bits of the hash of each n-gram of 1 to ``max_n`` words, and where those of a document end."""
    columns, column_ends = np.empty(max_n * hashes.size, np.int32), np.empty(ends.size, np.int64)
    shift = np.uint64(64 - bits)
    size, start = 0, 0
    for doc in range(ends.size):
        for pos in range(start, ends[doc]):
            h = hashes[pos]
            columns[size] = h >> shift
            size += 1
            for i in range(pos + 1, min(pos + max_n, ends[doc])):
                h = mix_bits(h * _COMBINE + hashes[i])
                columns[size] = h >> shift
                size += 1
        start = ends[doc]
        column_ends[doc] = size
    return columns[:size], column_ends


@kernel()
def count_rows(columns: Ids, counts: Ids, ends: Offsets, n_columns: int) -> tuple[Ids, Ids, Offsets]:
    """Sort each document's columns and merge equal ones; negative columns are dropped.

    ``counts`` are the occurrences of each column, or empty for once each; ``ends`` the number of columns up to the end
    of each document. Returns columns, counts and ends in the same layout.
    """
    max_items, start = 0, 0
    for doc in range(ends.size):
        max_items, start = max(max_items, ends[doc] - start), ends[doc]
    items, buffer = np.empty(max_items, np.int64), np.empty(max_items, np.int64)
    out, out_counts = np.empty(columns.size, np.int32), np.empty(columns.size, np.int32)
    out_ends = np.empty(ends.size, np.int64)
    size, start = 0, 0
    for doc in range(ends.size):
        n_items = 0
        for i in range(start, ends[doc]):
            if columns[i] >= 0:
                items[n_items] = np.int64(columns[i]) << 32 | (counts[i] if counts.size else 1)
                n_items += 1
        sorted_items = radix_sort(items[:n_items], buffer, n_columns)
        previous = -1
        for i in range(n_items):
            column, count = sorted_items[i] >> 32, sorted_items[i] & 0xFFFFFFFF
            if column == previous:
                out_counts[size - 1] += count
            else:
                out[size], out_counts[size], previous = column, count, column
                size += 1
        start = ends[doc]
        out_ends[doc] = size
    return out[:size], out_counts[:size], out_ends


@kernel()
def tfidf_values(columns: Ids, counts: Ids, ends: Offsets, idf: Floats, sublinear: bool) -> Floats:
    """Return the weight of each column: its count, or 1 + ln(count), times its idf; documents have norm 1."""
    values = np.empty(columns.size, np.float32)
    logs = np.empty(64, np.float64)  # most counts are small, and a logarithm is slow
    for i in range(logs.size):
        logs[i] = math.log(i + 1)
    start = 0
    for doc in range(ends.size):
        squared_norm = 0.0
        for i in range(start, ends[doc]):
            value = float(counts[i])
            if sublinear:
                value = 1.0 + (logs[counts[i] - 1] if counts[i] <= logs.size else math.log(value))
            value *= idf[columns[i]]
            squared_norm += value * value
            values[i] = value
        scale = 1.0 / math.sqrt(squared_norm) if squared_norm > 0.0 else 0.0
        for i in range(start, ends[doc]):
            values[i] *= scale
        start = ends[doc]
    return values
