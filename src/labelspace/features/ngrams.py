"""Word n-grams of a corpus: counted level by level, selected, and looked up by key (see ``kernels.ngrams``)."""

from typing import NamedTuple, Self

import numpy as np

from labelspace.errors import DataError
from labelspace.features.vocabulary import DOCUMENT_BLOCK, TokenStream
from labelspace.kernels import large_arrays
from labelspace.kernels.ngrams import build_key_table, extend_ngrams, lookup_keys, ngram_columns, ngram_ids
from labelspace.kernels.threads import n_threads, run_blocks
from labelspace.types import Ints, Longs

_PART_SIZE, _MAX_PARTS = 2**22, 8  # a part of the n-grams costs a pass over all words, and saves memory
_BYTES, _MEMORY_SHARE = 24, 8  # of an occurrence while it is counted; a part of the memory that all parts may need
_BLOCK = 2**18  # n-grams that are copied at a time


class Ngrams(NamedTuple):
    """N-grams with their counts."""

    digits: Ints  # (n, longest) word ids + 1, padded with 0
    df: Longs  # (n,) documents
    occurrences: Longs  # (n,)

    def select(self, rows: Longs) -> Self:
        """The n-grams of these rows."""
        return type(self)(*(large_arrays.take(values, rows) for values in self))

    def keys(self, n_words: int) -> Longs:
        """The key of each n-gram. Shape (n,)."""
        powers = np.array([(n_words + 1) ** i for i in range(self.digits.shape[1])][::-1], np.int64)
        keys = np.empty(len(self.digits), np.int64)
        for part in large_arrays.blocks(len(keys), _BLOCK):
            keys[part] = self.digits[part].astype(np.int64) @ powers
        return keys

    def most_frequent(self, limit: int | None) -> Self:
        """In alphabetical order; at most ``limit``, those that occur most, and the alphabetically first of ties."""
        order = np.lexsort(self.digits.T[::-1])
        if limit is not None and limit < order.size:
            # a stable sort leaves ties in alphabetical order
            order = order[np.sort(np.argsort(-self.occurrences[order], kind="stable")[:limit])]
        return self.select(order)


def count_ngrams(stream: TokenStream, df: Longs, occurrences: Longs, longest: int, min_df: int) -> Ngrams:
    """Count the n-grams of 1 to ``longest`` words that occur in ``min_df`` documents or more.

    Words of the stream are in order if ``longest`` is over 1, and -1 below ``min_df``; ``df`` and ``occurrences`` are
    those of each word.
    """
    n_words = df.size
    if (n_words + 1) ** longest >= 2**63:
        rule = f"n-grams of {longest} words must have keys of 63 bits, but {n_words} words are too many for that"
        raise DataError(f"{rule}; raise min_df, or lower ngrams")
    levels = [Ngrams(np.arange(1, n_words + 1, dtype=np.int32)[:, None], df, occurrences)]
    prefixes = stream.words
    for length in range(2, longest + 1):
        shorter = levels[-1]
        if length > 2:
            table = build_key_table(shorter.keys(n_words), np.arange(shorter.df.size, dtype=np.int32))
            prefixes = _ngram_ids(stream, length - 1, n_words, table)
        levels.append(_extend(shorter, prefixes, stream, n_words, min_df))
    counts = [large_arrays.concatenate(level[i] for level in levels) for i in (1, 2)]
    digits, start = large_arrays.empty((len(counts[0]), longest), np.int32), 0
    for length, level in enumerate(levels, 1):
        own = digits[start : start + len(level.digits)]
        own[:, :length], own[:, length:] = level.digits, 0
        start += len(own)
    return Ngrams(digits, *counts)


def _ngram_ids(stream: TokenStream, length: int, n_words: int, table: Longs) -> Ints:
    """The id of the n-gram that starts at each token, -1 for none."""
    ids = large_arrays.empty(stream.words.size, np.int32, in_order=True)
    for part in large_arrays.blocks(len(stream.ends), DOCUMENT_BLOCK):
        some, start = stream.rows(part.start, part.stop), int(stream.ends[part.start - 1]) if part.start else 0
        ids[start : start + some.words.size] = ngram_ids(some.words, some.ends, length, n_words, table)
    return ids


def _extend(shorter: Ngrams, prefixes: Ints, stream: TokenStream, n_words: int, min_df: int) -> Ngrams:
    """The n-grams with one more word, counted in parts: ranges of prefixes that occur about equally often."""
    ends = np.cumsum(shorter.occurrences)
    total = int(ends[-1]) if ends.size else 0
    n_parts = _n_parts(total)
    cuts = np.searchsorted(ends, [total * i // n_parts for i in range(n_parts)]).tolist() + [ends.size]
    parts: dict[int, tuple[Ints | Longs, ...]] = {}
    length = shorter.digits.shape[1]

    def count(start: int, stop: int) -> None:
        for i in range(start, stop):
            found = extend_ngrams(prefixes, stream.words, stream.ends, length, cuts[i], cuts[i + 1], n_words, min_df)
            parts[i] = tuple(large_arrays.keep(values) for values in found)

    run_blocks(count, n_parts, 1)
    prefix, word, df, occurrences = (large_arrays.concatenate(parts[i][j] for i in range(n_parts)) for j in range(4))
    digits = large_arrays.empty((len(prefix), length + 1), np.int32)
    for part in large_arrays.blocks(len(prefix), _BLOCK):
        digits[part, :-1], digits[part, -1] = shorter.digits[prefix[part]], word[part] + 1
    return Ngrams(digits, df, occurrences)


def _n_parts(total: int) -> int:
    """Parts to count so many occurrences in: few, or such that all threads together need a part of scarce memory."""
    memory = large_arrays.memory()
    if memory is None:
        return min(_MAX_PARTS, total // _PART_SIZE + 1)
    return total * _BYTES * n_threads() * _MEMORY_SHARE // memory + 1


class NgramIndex:
    """Lookup of the columns of n-grams, by sorted keys."""

    def __init__(self, keys: Longs, n_words: int, longest: int) -> None:
        self.longest = longest
        power = (n_words + 1) ** (longest - 1)
        single = keys % power == 0
        self._word_columns = np.full(n_words, -1, np.int32)
        self._word_columns[keys[single] // power - 1] = np.flatnonzero(single)
        self._table = large_arrays.keep(build_key_table(keys[~single], np.flatnonzero(~single).astype(np.int32)))

    def columns(self, words: Ints, ends: Longs) -> tuple[Ints, Longs]:
        """The columns of all n-grams in these words, and their number up to the end of each document."""
        return ngram_columns(words, ends, self.longest, self._word_columns, self._table)

    def columns_of_length(self, words: Ints, length: int) -> Ints:
        """The column of the n-gram of this many words that starts at each word of one document; -1 for none."""
        if length == 1:
            single: Ints = np.append(self._word_columns, np.int32(-1))[words]
            return single
        base, n = self._word_columns.size + 1, max(words.size - length + 1, 0)
        keys, known = np.zeros(n, np.int64), np.ones(n, bool)
        for i in range(length):
            keys = keys * base + words[i : i + n] + 1
            known &= words[i : i + n] >= 0
        columns = np.full(words.size, -1, np.int32)
        columns[np.flatnonzero(known)] = lookup_keys(self._table, keys[known] * base ** (self.longest - length))
        return columns
