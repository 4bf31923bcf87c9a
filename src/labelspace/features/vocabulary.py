"""Vocabulary: words with ids, learned block by block, merged, in alphabetical order, with lookup."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from labelspace.features.sparse_matrix import NO_COUNTS
from labelspace.features.tokenizer import Analyzer, Spans, map_blocks
from labelspace.kernels import large_arrays
from labelspace.kernels.ngrams import count_frequencies
from labelspace.kernels.tfidf import count_rows
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tokenize import Bytes, Hashes, Table, assign_word_ids, build_word_slots, lookup_words
from labelspace.types import Bools, Ints, Longs

DOCUMENT_BLOCK = 2**14  # documents whose words are counted at a time


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
        """The id of each word."""
        return {word: at for at, word in enumerate(self.utf8_words())}

    def ids(self, spans: Spans) -> Ints:
        """The id of each span, -1 for an unknown word."""
        text, starts, stops, hashes, _ = spans
        return lookup_words(text, starts, stops, hashes, self._slots, self.word_bytes, self.offsets)

    @classmethod
    def from_words(cls, words: Sequence[bytes]) -> Self:
        """These words, in this order."""
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=offsets[1:])
        return cls(np.frombuffer(bytearray(b"".join(words)), np.uint8), offsets)

    def words(self) -> list[str]:
        """The words in order."""
        return [word.decode("utf-8", "surrogatepass") for word in self.utf8_words()]

    def utf8_words(self) -> list[bytes]:
        """The words in order, as UTF-8."""
        text, offsets = self.word_bytes.tobytes(), self.offsets.tolist()
        return [text[start:stop] for start, stop in zip(offsets, offsets[1:], strict=False)]

    def select_sorted(self, mask: Bools) -> tuple[Self, Ints]:
        """The words of a mask in alphabetical order, and the new id of each old one, -1 for those left out."""
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
        """The documents start..stop."""
        first = int(self.ends[start - 1]) if start else 0
        part = slice(first, int(self.ends[stop - 1]))
        counts = self.counts[part] if self.counts.size else NO_COUNTS
        return self._replace(words=self.words[part], counts=counts, ends=self.ends[start:stop] - first)

    def renumber(self, new_ids: Ints) -> Self:
        """With other word ids; -1 stays -1."""
        return self._replace(words=large_arrays.take(np.append(new_ids, np.int32(-1)), self.words))

    def counted(self, n_words: int) -> Self:
        """Each word once per document, with its count; those of id -1 are left out."""
        parts = large_arrays.blocks(len(self.ends), DOCUMENT_BLOCK)
        streams = [self.rows(part.start, part.stop) for part in parts]
        counted = [
            large_arrays.keep_each(TokenStream(*count_rows(stream.words, stream.counts, stream.ends, n_words)))
            for stream in streams
        ]
        words, counts = (large_arrays.concatenate(stream[i] for stream in counted) for i in range(2))
        return self._replace(words=words, counts=counts, ends=_joined_ends(counted))


def _joined_ends(streams: Sequence[TokenStream]) -> Longs:
    """Words up to the end of each document, where one stream follows the other."""
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
        stream = TokenStream(*count_rows(ids, NO_COUNTS, spans.ends, len(vocabulary)))
    df, occurrences = map(large_arrays.keep, count_frequencies(*stream, len(vocabulary)))
    words = Vocabulary(large_arrays.keep(vocabulary.word_bytes), large_arrays.keep(vocabulary.offsets))
    return _Block(large_arrays.keep_each(stream), large_arrays.keep(hashes), words, df, occurrences)


def _merge(blocks: list[_Block]) -> tuple[Vocabulary, list[Ints], Longs, Longs]:
    """One vocabulary of all blocks, the new ids of each block's words, and the sums of their counts."""
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
    """All blocks as one stream with common ids: ``new_ids`` of the ``merged_ids`` of each block's words."""
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
