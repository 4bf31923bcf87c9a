"""Words with numbers: learned block by block, merged, kept in alphabetical order, looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from labelspace.features.base import ONCE
from labelspace.features.tokenizer import Analyzer, Spans, in_blocks
from labelspace.kernels.ngrams import count_frequencies
from labelspace.kernels.tfidf import count_rows
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tokenize import Bytes, Hashes, Table, assign_word_ids, build_word_slots, lookup_words
from labelspace.types import Bools, Ints, Longs


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words and their ids, which are their places. Alphabetical order is that of code points, and so of UTF-8 bytes."""

    word_bytes: Bytes  # UTF-8 of all words, one after the other
    offsets: Longs  # (n_words + 1,)

    def __len__(self) -> int:
        return self.offsets.size - 1

    @cached_property
    def _slots(self) -> Hashes:
        return build_word_slots(self.word_bytes, self.offsets)

    def ids(self, spans: Spans) -> Ints:
        """The id of each span, -1 for an unknown word."""
        return lookup_words(
            spans.text, spans.starts, spans.stops, spans.hashes, self._slots, self.word_bytes, self.offsets
        )

    @classmethod
    def of(cls, words: Sequence[bytes]) -> Self:
        """These words, in this order."""
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=offsets[1:])
        return cls(np.frombuffer(bytearray(b"".join(words)), np.uint8), offsets)

    def words(self) -> list[str]:
        """The words in order."""
        return [word.decode("utf-8", "surrogatepass") for word in self.raw()]

    def raw(self) -> list[bytes]:
        """The words in order, as UTF-8."""
        whole, offsets = self.word_bytes.tobytes(), self.offsets.tolist()
        return [whole[start:stop] for start, stop in zip(offsets, offsets[1:], strict=False)]

    def sorted_part(self, keep: Bools) -> tuple[Self, Ints]:
        """The marked words in alphabetical order, and the new id of each old one, -1 for those left out."""
        raw = self.raw()
        order = sorted(np.flatnonzero(keep).tolist(), key=raw.__getitem__)
        new_ids = np.full(len(self), -1, np.int32)
        new_ids[order] = np.arange(len(order), dtype=np.int32)
        return self.of([raw[i] for i in order]), new_ids


class Stream(NamedTuple):
    """The words of all documents, one after the other: as they stand, or each once a document with its count."""

    words: Ints  # ids, -1 for none
    counts: Ints  # how often each stands there, or empty for once each
    ends: Longs  # words up to the end of each document

    def part(self, start: int, stop: int) -> Stream:
        """The documents start..stop."""
        begin = int(self.ends[start - 1]) if start else 0
        here = slice(begin, int(self.ends[stop - 1]))
        return Stream(self.words[here], self.counts[here] if self.counts.size else ONCE, self.ends[start:stop] - begin)

    def renumbered(self, new_ids: Ints) -> Stream:
        """With other word ids; -1 stays -1."""
        return self._replace(words=np.append(new_ids, np.int32(-1))[self.words])


class _Block(NamedTuple):
    """The words of one block of documents, under ids of its own."""

    stream: Stream
    hashes: Hashes
    lexicon: Vocabulary
    df: Longs
    times: Longs


def read_words(
    texts: Sequence[str], analyzer: Analyzer, in_order: bool, min_df: int
) -> tuple[Vocabulary, Stream, Longs, Longs]:
    """Number the words that occur in ``min_df`` texts or more.

    Args:
        texts: the training texts.
        analyzer: what counts as a word.
        in_order: keep the order of the words, for n-grams; else each is kept once a document, which takes less memory.
        min_df: words of fewer texts get the id -1.

    Returns:
        The words, the ids of all documents, and for each word the number of its documents and of its occurrences.
    """
    blocks = in_blocks(lambda start, stop: _read_block(texts[start:stop], analyzer, in_order), list(map(len, texts)))
    merged, merged_ids, df, times = _merged(blocks)
    lexicon, new_ids = merged.sorted_part(df >= min_df)
    stream = _joined([block.stream for block in blocks], [new_ids[ids] for ids in merged_ids])
    order = np.empty(len(lexicon), np.int64)
    kept = new_ids >= 0
    order[new_ids[kept]] = np.flatnonzero(kept)
    return lexicon, stream, df[order], times[order]


def _read_block(texts: Sequence[str], analyzer: Analyzer, in_order: bool) -> _Block:
    spans = analyzer.spans(texts)
    ids, table = assign_word_ids(spans.text, spans.starts, spans.stops, spans.hashes, _empty_table())
    hashes, lexicon = _table_parts(table)
    stream = Stream(ids, ONCE, spans.ends)
    if not in_order:
        stream = Stream(*count_rows(ids, ONCE, spans.ends, len(lexicon)))
    return _Block(stream, hashes, lexicon, *count_frequencies(*stream, len(lexicon)))


def _merged(blocks: list[_Block]) -> tuple[Vocabulary, list[Ints], Longs, Longs]:
    """One lexicon of all blocks, the new ids of each block's words, and the sums of their counts."""
    table, ids = _empty_table(), []
    for block in blocks:
        offsets = block.lexicon.offsets
        new, table = assign_word_ids(block.lexicon.word_bytes, offsets[:-1], offsets[1:], block.hashes, table)
        ids.append(new)
    _, lexicon = _table_parts(table)
    df, times = np.zeros(len(lexicon), np.int64), np.zeros(len(lexicon), np.int64)
    for block, new in zip(blocks, ids, strict=True):
        df[new] += block.df  # a word stands once in a block's lexicon, so no place is added to twice
        times[new] += block.times
    return lexicon, ids, df, times


def _joined(parts: list[Stream], new_ids: list[Ints]) -> Stream:
    """All blocks as one stream under common ids."""
    sizes = np.cumsum([0, *(part.words.size for part in parts)], dtype=np.int64)
    words = np.empty(sizes[-1], np.int32)
    counts = np.empty(sum(part.counts.size for part in parts), np.int32)

    def join(start: int, stop: int) -> None:
        for i in range(start, stop):
            here = slice(sizes[i], sizes[i + 1])
            # mode: without it, take() makes a second copy first
            np.take(new_ids[i], parts[i].words, out=words[here], mode="clip")
            if counts.size:
                counts[here] = parts[i].counts

    run_blocks(join, len(parts), 1)
    ends = np.concatenate([part.ends + size for part, size in zip(parts, sizes, strict=False)])
    return Stream(words, counts, ends)


def _empty_table() -> Table:
    hashes, offsets = np.empty(2**10, np.uint64), np.zeros(2**10 + 1, np.int64)
    return np.zeros(2**14, np.uint64), hashes, np.empty(2**13, np.uint8), offsets, 0


def _table_parts(table: Table) -> tuple[Hashes, Vocabulary]:
    _, hashes, word_bytes, offsets, n = table
    return hashes[:n], Vocabulary(word_bytes[: offsets[n]], offsets[: n + 1])
