"""TF-IDF of word or character n-grams, equal to scikit-learn's and several times faster: no n-gram becomes a string."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np

from labelspace.constraints import boolean, integer, one_of, optional
from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned, param
from labelspace.features.base import (
    ONCE,
    Bags,
    Features,
    Rows,
    check_texts,
    check_training_texts,
    inverse_document_frequency,
    stacked,
)
from labelspace.features.ngrams import NgramIndex, count_ngrams
from labelspace.features.tokenizer import Analyzer, in_blocks
from labelspace.features.vocabulary import Stream, Vocabulary, read_words
from labelspace.kernels.tfidf import count_rows
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Csr, Floats, Longs


class Tfidf(Features):
    r"""Weights of n-grams: (1 + ln count) times ln((1 + n) / (1 + df)) + 1, each row scaled to length one.

    The matrix is that of scikit-learn's ``TfidfVectorizer`` of the same settings up to float32 rounding, columns in the
    same alphabetical order. Text is lower-cased; a word is two or more letters, digits or underscores (``\b\w\w+\b``).
    One rule differs: with ``max_features``, n-grams of equal count are cut in a fixed order.

    Args:
        ngrams: words in the longest n-gram, 1 to 3; shorter ones are in too. For ``analyzer="word"``.
        analyzer: ``word``; or ``char`` for n-grams of characters; or ``char_wb`` for those within a word and the spaces
            round it.
        min_n: characters in the shortest n-gram of ``char`` and ``char_wb``.
        max_n: characters in the longest n-gram of ``char`` and ``char_wb``.
        sublinear: weigh by 1 + ln count in place of the count.
        min_df: n-grams of fewer training texts are left out.
        max_features: keep at most so many n-grams: those that occur most, and of equals the alphabetically first.

    >>> features = Tfidf(ngrams=2, min_df=1)
    >>> X = features.fit_transform(["red apple", "green apple"])
    >>> features.feature_names()
    ['apple', 'green', 'green apple', 'red', 'red apple']
    >>> X.toarray().round(2)
    array([[0.45, 0.  , 0.  , 0.63, 0.63], [0.45, 0.63, 0.63, 0.  , 0.  ]], dtype=float32)
    """

    name: ClassVar[str] = "tfidf"
    ngrams: int = param(2, one_of(1, 2, 3), "Words in the longest n-gram, for analyzer word.")
    analyzer: str = param(
        "word", one_of("word", "char", "char_wb"), "What is counted: words, characters, or characters within words."
    )
    min_n: int = param(3, integer(1), "Characters in the shortest n-gram.")
    max_n: int = param(5, integer(1), "Characters in the longest n-gram.")
    sublinear: bool = param(True, boolean(), "Use 1 + ln count in place of the count.")
    min_df: int = param(2, integer(1), "N-grams in fewer training texts are left out.")
    max_features: int | None = param(None, optional(integer(1)), "Keep at most this many n-grams, the most frequent.")

    word_bytes_: Bytes = learned()  # UTF-8 of the words of all n-grams, in alphabetical order
    word_offsets_: Longs = learned()  # (n_words + 1,)
    keys_: Longs = learned()  # (n_features,) sorted; see kernels.ngrams
    idf_: Floats = learned()  # (n_features,)

    _ready: tuple[Longs, Vocabulary, NgramIndex] | None = None

    @property
    def n_features(self) -> int:
        """Columns of X."""
        self.check_fitted()
        return self.keys_.size

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the n-grams and their document frequencies."""
        self._learn(check_training_texts(texts))
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """``fit`` and ``transform`` of the same texts, which are read once. Shape (n, n_features)."""
        listed = check_training_texts(texts)
        stream = self._learn(listed)
        parts = in_blocks(lambda start, stop: self._rows(stream.part(start, stop)), list(map(len, listed)))
        return stacked(parts, self.n_features)

    def transform(self, texts: Iterable[str]) -> Csr:
        """The rows of these texts. Shape (n, n_features)."""
        self.check_fitted()
        listed = check_texts(texts)
        parts = in_blocks(lambda start, stop: self._rows(self._stream(listed[start:stop])), list(map(len, listed)))
        return stacked(parts, self.n_features)

    def feature_names(self) -> list[str]:
        """The n-gram of each column."""
        self.check_fitted()
        words = self._lookup()[0].words()
        names, rest = [""] * self.n_features, self.keys_
        for power in range(self._longest() - 1, -1, -1):
            digits, rest = np.divmod(rest, (len(words) + 1) ** power)
            for column, digit in enumerate(digits.tolist()):
                if digit:
                    names[column] += (" " if names[column] else "") + words[digit - 1]
        return names

    def _learn(self, texts: Sequence[str]) -> Stream:
        """Learn the state; the words of the texts come back under its ids."""
        self.check_params()
        if self.min_n > self.max_n:
            raise ParameterError(
                f"min_n of tfidf must be at most max_n, but is {self.min_n} for {self.max_n}; lower it or raise max_n"
            )
        longest, min_df = self._longest(), int(self.min_df)
        lexicon, stream, df, times = read_words(texts, self._analyzer(), longest > 1, min_df)
        if not len(lexicon):
            raise DataError(
                f"some term must occur in at least min_df={self.min_df} texts, but of these {len(texts)} none does; "
                "lower min_df, or give more or longer texts"
            )
        ngrams = count_ngrams(stream, df, times, longest, min_df).most_frequent(self.max_features)
        used = np.zeros(len(lexicon) + 1, bool)
        used[ngrams.digits] = True
        if not used[1:].all():  # a word may be without a column of its own, yet part of an n-gram that has one
            lexicon, new_ids = lexicon.sorted_part(used[1:])
            stream = stream.renumbered(new_ids)
            ngrams = ngrams._replace(digits=np.append(0, new_ids + 1).astype(np.int32)[ngrams.digits])
        self.word_bytes_, self.word_offsets_ = lexicon.word_bytes, lexicon.offsets
        self.keys_ = ngrams.keys(len(lexicon))
        self.idf_ = inverse_document_frequency(ngrams.df, len(texts))
        return stream

    def _rows(self, stream: Stream) -> Rows:
        words, counts, ends = stream
        if self._longest() > 1:
            words, ends = self._lookup()[1].columns(words, ends)
        return Bags(*count_rows(words, counts, ends, self.keys_.size)).weighed(self.idf_, bool(self.sublinear))

    def _stream(self, texts: Sequence[str]) -> Stream:
        spans = self._analyzer().spans(texts)
        return Stream(self._lookup()[0].ids(spans), ONCE, spans.ends)

    def _analyzer(self) -> Analyzer:
        return Analyzer(self.analyzer, int(self.min_n), int(self.max_n))

    def _longest(self) -> int:
        return int(self.ngrams) if self.analyzer == "word" else 1

    def _lookup(self) -> tuple[Vocabulary, NgramIndex]:
        """What is derived from the state, on first use and again after a new ``fit``."""
        if self._ready is None or self._ready[0] is not self.keys_:
            lexicon = Vocabulary(self.word_bytes_, self.word_offsets_)
            self._ready = (self.keys_, lexicon, NgramIndex(self.keys_, len(lexicon), self._longest()))
        return self._ready[1:]
