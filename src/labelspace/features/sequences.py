"""Texts as sequences of token ids, for methods that read words in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np

from labelspace.constraints import integer
from labelspace.errors import DataError
from labelspace.estimator import learned, param
from labelspace.features.base import ONCE, Features, Rows, check_texts, check_training_texts, stacked
from labelspace.features.tokenizer import Analyzer, Spans, characters, in_blocks
from labelspace.features.vocabulary import Stream, Vocabulary, read_words
from labelspace.kernels.tfidf import count_rows
from labelspace.kernels.tokenize import Bytes, first_words
from labelspace.types import Csr, Ints, Longs

PAD: Final = 0
"""The token after the last word of a text."""
UNKNOWN: Final = 1
"""The token of every word that is not in the vocabulary."""
NUMBER: Final = 2
"""The token of every number."""

_ZERO = b"0"  # stands for all numbers: a number itself, so no other word is written like this


class Sequences(Features):
    r"""The first words of each text as token ids: PAD=0, UNKNOWN=1, NUMBER=2, words from 3 on by falling frequency.

    The preprocessing of SeCSeq (Chang et al. 2018, appendix A). Text is lower-cased; a word is one or more letters,
    digits or underscores (``\w+``). A number is a word of digits alone, of any script, or several of them with one of
    ``.,:/-`` between each two: 12, 3.5, 1,000, 1999/2000 and 2004-05-31 are one token each; 4th and x2 are words.

    The vocabulary is learned from the same first words that ``transform`` gives: a word that stands only in what is cut
    off would take a place in it and never be trained.

    Args:
        vocabulary: keep at most so many words: those that occur most, and of equals the alphabetically first.
        length: words of a text to read; the rest is cut off.
        min_df: words of fewer training texts are unknown.

    >>> sequences = Sequences(vocab_size=2)
    >>> sequences.fit_transform(["Red apple", "A red car of 1999"])
    array([[3, 1, 0, 0, 0],
           [4, 3, 1, 1, 2]], dtype=int32)
    >>> sequences.tokens()
    ['<pad>', '<unknown>', '<number>', 'red', 'a']
    """

    name: ClassVar[str] = "sequences"
    vocab_size: int = param(50_000, integer(1), "Keep at most this many words, the most frequent.")
    max_length: int = param(300, integer(1), "Words of a text that are read.")
    min_df: int = param(1, integer(1), "Words in fewer training texts are unknown.")

    word_bytes_: Bytes = learned()  # UTF-8 of the words of the tokens from NUMBER on
    word_offsets_: Longs = learned()  # (n_tokens - 1,)

    _ready: tuple[Bytes, Vocabulary] | None = None

    @property
    def n_features(self) -> int:
        """The number of token ids."""
        return self.n_tokens

    @property
    def n_tokens(self) -> int:
        """Number of token ids, at most ``vocab_size`` + 3."""
        self.check_fitted()
        return self.word_offsets_.size - 1 + NUMBER

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the vocabulary."""
        self._learn(check_training_texts(texts))
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Ints:
        """``fit`` and ``transform`` of the same texts, which are read once. Shape (n, longest)."""
        return _padded([self._learn(check_training_texts(texts))])

    def transform(self, texts: Iterable[str]) -> Ints:
        """The token ids of these texts, as wide as the longest of them, at least 1. Shape (n, longest)."""
        self.check_fitted()
        listed = check_texts(texts)
        lexicon, heads = self._lexicon(), _Heads("word", shortest=1, max_length=int(self.max_length))

        def read(start: int, stop: int) -> Stream:
            spans = heads.spans(listed[start:stop])
            return Stream(lexicon.ids(spans), ONCE, spans.ends)

        return _padded(in_blocks(read, list(map(len, listed))))

    def counts(self, ids: Ints) -> Csr:
        """How often each token stands in each row of ids, PAD left out. Shape (n, n_tokens), float32."""
        ids = self._checked(ids)
        ends = np.arange(1, len(ids) + 1, dtype=np.int64) * ids.shape[1]
        words = np.where(ids == PAD, np.int32(-1), ids).ravel()
        columns, counts, ends = count_rows(words, ONCE, ends, self.n_tokens)
        return stacked([Rows(columns, counts.astype(np.float32), ends)], self.n_tokens)

    def tokens(self) -> list[str]:
        """The word of each token id; what is not a word stands in angle brackets."""
        self.check_fitted()
        return ["<pad>", "<unknown>", "<number>", *self._lexicon().words()[1:]]

    def _learn(self, texts: Sequence[str]) -> Stream:
        """Learn the state; the words of the texts come back under its ids."""
        self.check_params()
        heads = _Heads("word", shortest=1, max_length=int(self.max_length))
        lexicon, stream, df, times = read_words(texts, heads, True, 1)
        raw, new_ids = lexicon.raw(), np.full(len(lexicon), -1, np.int32)
        # The lexicon is in alphabetical order, and a stable sort leaves words of equal count so.
        order = [i for i in np.argsort(-times, kind="stable").tolist() if df[i] >= self.min_df and raw[i] != _ZERO]
        kept = order[: int(self.vocab_size)]
        if not kept:
            lower = "lower min_df, or " if self.min_df > 1 else ""
            raise DataError(
                f"some word must occur in at least min_df={self.min_df} texts, but of these {len(texts)} none does; "
                f"{lower}give more or longer texts"
            )
        new_ids[kept] = np.arange(1, len(kept) + 1)
        new_ids[[i for i, word in enumerate(raw) if word == _ZERO]] = 0
        learned = Vocabulary.of([_ZERO, *(raw[i] for i in kept)])
        self.word_bytes_, self.word_offsets_ = learned.word_bytes, learned.offsets
        return stream.renumbered(new_ids)

    def _lexicon(self) -> Vocabulary:
        """What is derived from the state, on first use and again after a new ``fit``."""
        if self._ready is None or self._ready[0] is not self.word_bytes_:
            self._ready = (self.word_bytes_, Vocabulary(self.word_bytes_, self.word_offsets_))
        return self._ready[1]

    def _checked(self, ids: Ints) -> Ints:
        ids = np.asarray(ids)
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise DataError(
                f"ids must be a table of whole numbers, but are of shape {ids.shape} and type {ids.dtype}; "
                "give what transform returned"
            )
        if ids.size and not 0 <= ids.min() <= ids.max() < self.n_tokens:
            raise DataError(
                f"ids must be of 0 to {self.n_tokens - 1}, but are of {ids.min()} to {ids.max()}; "
                "give what transform of the same sequences returned"
            )
        return ids.astype(np.int32, copy=False)


@dataclass(frozen=True)
class _Heads(Analyzer):
    """The first words of each text, every number as the word 0."""

    max_length: int = 300

    def spans(self, texts: Sequence[str]) -> Spans:
        """Find the words of some texts."""
        text, starts, stops, hashes, ends = super().spans(texts)
        text = np.append(text, np.frombuffer(_ZERO, np.uint8))
        return Spans(text, *first_words(text, starts, stops, hashes, ends, characters(r"\d"), self.max_length))


def _padded(parts: list[Stream]) -> Ints:
    """One row a document; the places of a lexicon, -1 for an unknown word, become token ids."""
    lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.ends, prepend=0) for part in parts)])
    width = max(1, int(lengths.max(initial=0)))
    ids = np.full((lengths.size, width), PAD, np.int32)
    words = np.concatenate([np.zeros(0, np.int32), *(part.words for part in parts)])
    ids[np.arange(width) < lengths[:, None]] = words + np.int32(NUMBER)
    return ids
