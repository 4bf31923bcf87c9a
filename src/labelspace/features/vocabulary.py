"""Vocabulary and word n-grams of a corpus: counted, numbered in alphabetical order, and looked up.

Words are learned block by block and merged; n-grams are counted level by level (see ``kernels.ngrams``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from labelspace.errors import DataError
from labelspace.features.sparse_matrix import NO_COUNTS
from labelspace.features.tokenizer import Analyzer, Spans, map_blocks
from labelspace.kernels import large_arrays
from labelspace.kernels import ngrams as kernels
from labelspace.kernels.threads import n_threads, run_blocks
from labelspace.kernels.tokenize import Bytes, Hashes, Table, assign_word_ids, build_word_slots, lookup_words
from labelspace.types import Bools, Ints, Longs

DOCUMENT_BLOCK = 2**14  # documents whose words are counted at a time: bounds the memory of temporary arrays
NGRAM_BLOCK = 2**18  # n-grams that are copied at a time, for the same reason
# N-grams are counted in parts: each part costs a pass over all words, and saves memory.
_PART_SIZE, _MAX_PARTS = 2**22, 8
_BYTES = 24  # of an occurrence while it is counted
_MEMORY_SHARE = 8  # all parts that are counted at once may need this part of a limited memory


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words, whose ids are their positions. Alphabetical order is that of code points, and so of UTF-8 bytes."""

    word_bytes: Bytes  # UTF-8 of all words, one after the other
    offsets: Longs  # (n_words + 1,)

    def __len__(self) -> int:
        return self.offsets.size - 1

    @cached_property
    def _slots(self) -> Hashes:
        return build_word_slots(self.word_bytes, self.offsets)

    @cached_property
    def number(self) -> dict[bytes, int]:
        """Return the id of each word."""
        return {word: at for at, word in enumerate(self.utf8_words())}

    def ids(self, spans: Spans) -> Ints:
        """Return the id of each span, -1 for an unknown word."""
        text, starts, stops, hashes, _ = spans
        return lookup_words(text, starts, stops, hashes, self._slots, self.word_bytes, self.offsets)

    @classmethod
    def from_words(cls, words: Sequence[bytes]) -> Self:
        """Build a vocabulary of these words, in this order."""
        offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
        return cls(np.frombuffer(bytearray(b"".join(words)), np.uint8), offsets)

    def words(self) -> list[str]:
        """Return the words in order."""
        return [word.decode("utf-8", "surrogatepass") for word in self.utf8_words()]

    def utf8_words(self) -> list[bytes]:
        """Return the words in order, as UTF-8."""
        text, offsets = self.word_bytes.tobytes(), self.offsets.tolist()
        return [text[start:stop] for start, stop in zip(offsets, offsets[1:], strict=False)]

    def select_sorted(self, mask: Bools) -> tuple[Self, Ints]:
        """Return the words of a mask in alphabetical order, and the new id of each old word, -1 if it is left out."""
        text, chosen = self.word_bytes.tobytes(), np.flatnonzero(mask)
        starts, stops = self.offsets[chosen].tolist(), self.offsets[chosen + 1].tolist()
        words = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
        order = sorted(range(len(words)), key=words.__getitem__)
        new_ids = np.full(len(self), -1, np.int32)
        new_ids[chosen[order]] = np.arange(len(order), dtype=np.int32)
        return self.from_words([words[i] for i in order]), new_ids


class TokenStream(NamedTuple):
    """The words of all documents, one after the other: in order, or each once per document with its count."""

    words: Ints  # ids, -1 for an unknown word
    counts: Ints  # or empty, where words are in order
    ends: Longs  # words up to the end of each document

    def rows(self, start: int, stop: int) -> Self:
        """Return the documents start..stop."""
        first = int(self.ends[start - 1]) if start else 0
        part = slice(first, int(self.ends[stop - 1]))
        counts = self.counts[part] if self.counts.size else NO_COUNTS
        return self._replace(words=self.words[part], counts=counts, ends=self.ends[start:stop] - first)

    def renumber(self, new_ids: Ints) -> Self:
        """Return the stream with other word ids; -1 stays -1."""
        return self._replace(words=large_arrays.take(np.append(new_ids, np.int32(-1)), self.words))

    def counted(self, n_words: int) -> Self:
        """List each word once per document, with its count; leave out words of id -1."""
        parts = large_arrays.blocks(len(self.ends), DOCUMENT_BLOCK)
        streams: list[TokenStream] = [self.rows(part.start, part.stop) for part in parts]
        counted = [large_arrays.keep_each(TokenStream(*kernels.count_rows(*stream, n_words))) for stream in streams]
        words, counts = (large_arrays.concatenate(stream[i] for stream in counted) for i in range(2))
        return self._replace(words=words, counts=counts, ends=_joined_ends(counted))


def _joined_ends(streams: Sequence[TokenStream]) -> Longs:
    """Count the words up to the end of each document, where one stream follows the other."""
    sizes = np.cumsum([0, *(stream.words.size for stream in streams)], dtype=np.int64)
    return np.concatenate([stream.ends + size for stream, size in zip(streams, sizes, strict=False)])


class _Block(NamedTuple):
    """The words of one block of documents, with ids within the block."""

    stream: TokenStream
    hashes: Hashes
    vocabulary: Vocabulary
    df: Longs
    occurrences: Longs


def learn_vocabulary(
    texts: Sequence[str], analyzer: Analyzer, in_order: bool, min_df: int
) -> tuple[Vocabulary, TokenStream, Longs, Longs]:
    """Number the words that occur in ``min_df`` texts or more; all others get the id -1.

    Returns the words, the ids of all documents, and for each word the number of its documents and of its occurrences.
    Words stay ``in_order``, for n-grams, or each is listed once per document, in less memory.
    """
    blocks = map_blocks(lambda start, stop: _read_block(texts[start:stop], analyzer, in_order), texts)
    merged, merged_ids, df, occurrences = _merge(blocks)
    vocabulary, new_ids = merged.select_sorted(df >= min_df)
    stream = _concatenate([block.stream for block in blocks], merged_ids, new_ids)
    order = np.empty(len(vocabulary), np.int64)
    kept = new_ids >= 0
    order[new_ids[kept]] = np.flatnonzero(kept)
    return vocabulary, stream, df[order], occurrences[order]


def _read_block(texts: Sequence[str], analyzer: Analyzer, in_order: bool) -> _Block:
    spans = analyzer.spans(texts)
    ids, table = assign_word_ids(spans.text, spans.starts, spans.stops, spans.hashes, _empty_table())
    hashes, vocabulary = _table_parts(table)
    stream = TokenStream(ids, NO_COUNTS, spans.ends)
    if not in_order:
        stream = TokenStream(*kernels.count_rows(ids, NO_COUNTS, spans.ends, len(vocabulary)))
    df, occurrences = map(large_arrays.keep, kernels.count_frequencies(*stream, len(vocabulary)))
    words = Vocabulary(large_arrays.keep(vocabulary.word_bytes), large_arrays.keep(vocabulary.offsets))
    return _Block(large_arrays.keep_each(stream), large_arrays.keep(hashes), words, df, occurrences)


def _merge(blocks: list[_Block]) -> tuple[Vocabulary, list[Ints], Longs, Longs]:
    """Return one vocabulary of all blocks, the new ids of each block's words, and the sums of their counts."""
    table, ids = _empty_table(), []
    for block in blocks:
        offsets = block.vocabulary.offsets
        new, table = assign_word_ids(block.vocabulary.word_bytes, offsets[:-1], offsets[1:], block.hashes, table)
        ids.append(large_arrays.keep(new))
    _, vocabulary = _table_parts(table)
    df, occurrences = np.zeros(len(vocabulary), np.int64), np.zeros(len(vocabulary), np.int64)
    for block, new in zip(blocks, ids, strict=True):
        df[new] += block.df  # a word is once in a block's vocabulary, so no index is repeated
        occurrences[new] += block.occurrences
    return vocabulary, ids, df, occurrences


def _concatenate(streams: list[TokenStream], merged_ids: list[Ints], new_ids: Ints) -> TokenStream:
    """Join all blocks into one stream with common ids: ``new_ids`` of the ``merged_ids`` of each block's words."""
    sizes = np.cumsum([0, *(stream.words.size for stream in streams)], dtype=np.int64)
    words = large_arrays.empty(int(sizes[-1]), np.int32, in_order=True)
    counts = large_arrays.empty(sum(stream.counts.size for stream in streams), np.int32, in_order=True)

    def copy(start: int, stop: int) -> None:
        for i in range(start, stop):
            part = slice(sizes[i], sizes[i + 1])
            # mode: without it, take() makes a second copy first
            np.take(new_ids[merged_ids[i]], streams[i].words, out=words[part], mode="clip")
            if counts.size:
                counts[part] = streams[i].counts
            large_arrays.relieve()

    run_blocks(copy, len(streams), 1)
    return TokenStream(words, counts, _joined_ends(streams))


def _empty_table() -> Table:
    hashes, offsets = np.empty(2**10, np.uint64), np.zeros(2**10 + 1, np.int64)
    return np.zeros(2**14, np.uint64), hashes, np.empty(2**13, np.uint8), offsets, 0


def _table_parts(table: Table) -> tuple[Hashes, Vocabulary]:
    _, hashes, word_bytes, offsets, n = table
    return hashes[:n], Vocabulary(word_bytes[: offsets[n]], offsets[: n + 1])


class Ngrams(NamedTuple):
    """N-grams with their counts."""

    digits: Ints  # (n, longest) word ids + 1, padded with 0
    df: Longs  # (n,) documents
    occurrences: Longs  # (n,)

    def select(self, rows: Longs) -> Self:
        """Return the n-grams of these rows."""
        return type(self)(*(large_arrays.take(values, rows) for values in self))

    def keys(self, n_words: int) -> Longs:
        """Return the key of each n-gram. Shape (n,)."""
        powers = np.array([(n_words + 1) ** i for i in range(self.digits.shape[1])][::-1], np.int64)
        keys = np.empty(len(self.digits), np.int64)
        for part in large_arrays.blocks(len(keys), NGRAM_BLOCK):
            keys[part] = self.digits[part].astype(np.int64) @ powers
        return keys

    def most_frequent(self, limit: int | None) -> Self:
        """Return the ``limit`` n-grams that occur most, in alphabetical order; of ties the alphabetically first."""
        order = np.lexsort(self.digits.T[::-1])
        if limit is not None and limit < order.size:
            # a stable sort leaves ties in alphabetical order
            order = order[np.sort(np.argsort(-self.occurrences[order], kind="stable")[:limit])]
        return self.select(order)


def count_ngrams(stream: TokenStream, df: Longs, occurrences: Longs, longest: int, min_df: int) -> Ngrams:
    """Count the n-grams of 1 to ``longest`` words that occur in ``min_df`` documents or more.

    Words of the stream are in order if ``longest`` is over 1, and -1 below ``min_df``; ``df`` and ``occurrences`` are
    the counts of each word.
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
            table = kernels.build_key_table(shorter.keys(n_words), np.arange(shorter.df.size, dtype=np.int32))
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
    """Return the id of the n-gram that starts at each token, -1 for none."""
    ids = large_arrays.empty(stream.words.size, np.int32, in_order=True)
    for part in large_arrays.blocks(len(stream.ends), DOCUMENT_BLOCK):
        some, start = stream.rows(part.start, part.stop), int(stream.ends[part.start - 1]) if part.start else 0
        ids[start : start + some.words.size] = kernels.ngram_ids(some.words, some.ends, length, n_words, table)
    return ids


def _extend(shorter: Ngrams, prefixes: Ints, stream: TokenStream, n_words: int, min_df: int) -> Ngrams:
    """Count the n-grams with one more word, in parts: ranges of prefixes that occur about equally often."""
    ends = np.cumsum(shorter.occurrences)
    total = int(ends[-1]) if ends.size else 0
    n_parts = _n_parts(total)
    cuts = np.searchsorted(ends, [total * i // n_parts for i in range(n_parts)]).tolist() + [ends.size]
    parts: dict[int, tuple[Ints | Longs, ...]] = {}
    length = shorter.digits.shape[1]

    def count(start: int, stop: int) -> None:
        for i in range(start, stop):
            low, high = cuts[i], cuts[i + 1]
            found = kernels.extend_ngrams(prefixes, stream.words, stream.ends, length, low, high, n_words, min_df)
            parts[i] = tuple(large_arrays.keep(values) for values in found)

    run_blocks(count, n_parts, 1)
    prefix, word, df, occurrences = (large_arrays.concatenate(parts[i][j] for i in range(n_parts)) for j in range(4))
    digits = large_arrays.empty((len(prefix), length + 1), np.int32)
    for part in large_arrays.blocks(len(prefix), NGRAM_BLOCK):
        digits[part, :-1], digits[part, -1] = shorter.digits[prefix[part]], word[part] + 1
    return Ngrams(digits, df, occurrences)


def _n_parts(total: int) -> int:
    """Return the number of parts to count occurrences in: few, or enough to need only a share of a limited memory."""
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
        longer = np.flatnonzero(~single).astype(np.int32)
        self._table = large_arrays.keep(kernels.build_key_table(keys[longer], longer))

    def columns(self, words: Ints, ends: Longs) -> tuple[Ints, Longs]:
        """Return the columns of all n-grams in these words, and their number up to the end of each document."""
        return kernels.ngram_columns(words, ends, self.longest, self._word_columns, self._table)

    def columns_of_length(self, words: Ints, length: int) -> Ints:
        """Return the column of the n-gram of ``length`` words that starts at each word of a document; -1 for none."""
        if length == 1:
            single: Ints = np.append(self._word_columns, np.int32(-1))[words]
            return single
        base, n = self._word_columns.size + 1, max(words.size - length + 1, 0)
        keys, known = np.zeros(n, np.int64), np.ones(n, bool)
        for i in range(length):
            keys = keys * base + words[i : i + n] + 1
            known &= words[i : i + n] >= 0
        columns = np.full(words.size, -1, np.int32)
        columns[np.flatnonzero(known)] = kernels.lookup_keys(self._table, keys[known] * base ** (self.longest - length))
        return columns
