"""Word n-grams of a corpus: counted level by level, selected, and looked up by key (see ``kernels.ngrams``)."""

from typing import NamedTuple, Self

import numpy as np

from labelspace.errors import DataError
from labelspace.features.vocabulary import TokenStream
from labelspace.kernels.ngrams import build_key_table, extend_ngrams, lookup_keys, ngram_columns, ngram_ids
from labelspace.kernels.threads import run_blocks
from labelspace.types import Ints, Longs

_PART_SIZE, _MAX_PARTS = 2**22, 8  # a part of the n-grams costs a pass over all words, and saves memory


class Ngrams(NamedTuple):
    """N-grams with their counts."""

    digits: Ints  # (n, longest) word ids + 1, padded with 0
    df: Longs  # (n,) documents
    occurrences: Longs  # (n,)

    def select(self, rows: Longs) -> Self:
        """The n-grams of these rows."""
        return self._replace(digits=self.digits[rows], df=self.df[rows], occurrences=self.occurrences[rows])

    def keys(self, n_words: int) -> Longs:
        """The key of each n-gram. Shape (n,)."""
        powers = np.array([(n_words + 1) ** i for i in range(self.digits.shape[1])][::-1], np.int64)
        return self.digits.astype(np.int64) @ powers

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
        raise DataError(
            f"n-grams of {longest} words must have keys of 63 bits, but {n_words} words are too many for that; "
            "raise min_df, or lower ngrams"
        )
    levels = [Ngrams(np.arange(1, n_words + 1, dtype=np.int32)[:, None], df, occurrences)]
    prefixes = stream.words
    for length in range(2, longest + 1):
        shorter = levels[-1]
        if length > 2:
            table = build_key_table(shorter.keys(n_words), np.arange(shorter.df.size, dtype=np.int32))
            prefixes = ngram_ids(stream.words, stream.ends, length - 1, n_words, table)
        levels.append(_extend(shorter, prefixes, stream, n_words, min_df))
    digits = [np.pad(level.digits, ((0, 0), (0, longest - level.digits.shape[1]))) for level in levels]
    return Ngrams(np.concatenate(digits), *(np.concatenate([level[i] for level in levels]) for i in (1, 2)))


def _extend(shorter: Ngrams, prefixes: Ints, stream: TokenStream, n_words: int, min_df: int) -> Ngrams:
    """The n-grams with one more word, counted in parts: ranges of prefixes that occur about equally often."""
    ends = np.cumsum(shorter.occurrences)
    total = int(ends[-1]) if ends.size else 0
    n_parts = min(_MAX_PARTS, total // _PART_SIZE + 1)
    cuts = np.searchsorted(ends, [total * i // n_parts for i in range(n_parts)]).tolist() + [ends.size]
    parts: dict[int, tuple[Ints, Ints, Longs, Longs]] = {}
    length = shorter.digits.shape[1]

    def count(start: int, stop: int) -> None:
        for i in range(start, stop):
            parts[i] = extend_ngrams(prefixes, stream.words, stream.ends, length, cuts[i], cuts[i + 1], n_words, min_df)

    run_blocks(count, n_parts, 1)
    prefix, word, df, occurrences = (np.concatenate([parts[i][j] for i in range(n_parts)]) for j in range(4))
    return Ngrams(np.column_stack([shorter.digits[prefix], word + 1]), df, occurrences)


class NgramIndex:
    """Lookup of the columns of n-grams, by sorted keys."""

    def __init__(self, keys: Longs, n_words: int, longest: int) -> None:
        self.longest = longest
        first, rest = np.divmod(keys, (n_words + 1) ** (longest - 1))
        columns = np.arange(keys.size, dtype=np.int32)
        single = rest == 0
        self._word_columns = np.full(n_words, -1, np.int32)
        self._word_columns[first[single] - 1] = columns[single]
        self._table = build_key_table(keys[~single], columns[~single])

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
