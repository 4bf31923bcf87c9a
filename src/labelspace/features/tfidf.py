"""TF-IDF of word or character n-grams, equal to scikit-learn's and several times faster: no n-gram becomes a string."""

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from labelspace.data.texts import check_texts, check_training_texts
from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, integer, one_of
from labelspace.estimator.state_constraints import are_sorted_spans, array, must, offsets, part, plain
from labelspace.features import stems
from labelspace.features.base import Features, Occurrences
from labelspace.features.language import AUTO, detect_language
from labelspace.features.sparse_matrix import NO_COUNTS, CsrRows, inverse_document_frequency, stack_rows
from labelspace.features.tokenizer import Analyzer, Spans, map_blocks
from labelspace.features.unknown_words import UnknownWords, expected_share
from labelspace.features.vocabulary import NgramIndex, TokenStream, Vocabulary, count_ngrams, learn_vocabulary
from labelspace.kernels import large_arrays
from labelspace.kernels.ngrams import count_rows
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Csr, Floats, Ints, Longs

MAX_CHARACTERS = 64  # of an n-gram: bounds the n-grams of a text, and so the memory
STEMMING = one_of(stems.NO_STEMMING, AUTO, *stems.LANGUAGES)
ACCENTS = one_of(stems.KEEP_ACCENTS, stems.STRIP_ACCENTS)


class Tfidf(Features):
    r"""Weights of n-grams: (1 + ln count) times ln((1 + n) / (1 + df)) + 1, each row scaled to norm 1.

    The matrix is that of scikit-learn's ``TfidfVectorizer`` with the same settings up to float32 rounding, columns in
    the same alphabetical order. Text is lower-cased; a word is two or more letters, digits or underscores
    (``\b\w\w+\b``). Shorter n-grams than the longest are included. These rules differ: with ``max_features``, of
    n-grams of equal count the alphabetically first are chosen; marks belong to words, and words of scripts without
    spaces are pairs of letters (``features.characters``).

    >>> features = Tfidf(ngrams=2, min_df=1)
    >>> X = features.fit_transform(["red apple", "green apple"])
    >>> features.feature_names()
    ['apple', 'green', 'green apple', 'red', 'red apple']
    >>> X.toarray().round(2)
    array([[0.45, 0.  , 0.  , 0.63, 0.63], [0.45, 0.63, 0.63, 0.  , 0.  ]], dtype=float32)
    """

    name: ClassVar[str] = "tfidf"

    ngrams: int = param(2, one_of(1, 2, 3), "Words in the longest n-gram, for analyzer word.")
    analyzer: str = param("word", one_of("word", "char", "char_wb"), "Words, characters, or characters within words.")
    min_n: int = param(3, integer(1, at_most=MAX_CHARACTERS), "Characters in the shortest n-gram.")
    max_n: int = param(5, integer(1, at_most=MAX_CHARACTERS), "Characters in the longest n-gram.")
    sublinear: bool = param(True, boolean(), "Use 1 + ln count in place of the count.")
    min_df: int = param(2, integer(1), "N-grams in fewer training texts are left out.")
    max_features: int | None = param(None, integer(1), "Keep at most this many n-grams, the most frequent.")
    stemming: str = param(
        stems.NO_STEMMING, STEMMING, "Language of the Snowball stems of words, for analyzer word; auto detects it."
    )
    strip_accents: str = param(stems.KEEP_ACCENTS, ACCENTS, "Strip accents from words, for analyzer word.")

    word_bytes_: Bytes = learned(array("uint8", "n_bytes"))  # UTF-8 of the words of all n-grams; of a fit, alphabetical
    word_offsets_: Longs = learned(offsets("n_words", into="n_bytes"))
    keys_: Longs = learned(array("int64", "n_features"))  # sorted; see kernels.ngrams
    idf_: Floats = learned(array("float32", "n_features"))
    # The language that stemming=auto detected.
    stemming_: str = learned(plain(one_of(stems.NO_STEMMING, *stems.LANGUAGES)), default=stems.NO_STEMMING)
    # Only with stemming or stripped accents; then the words above are stems.
    forms_: stems.Forms | None = learned(part(stems.Forms, optional=True, n_words="n_words"), default=None)

    def check_state(self) -> None:
        """Check that the keys are keys of n-grams of the words."""
        base = len(self._vocabulary) + 1
        must(base > 1 and base**self._max_words < 2**63, "words, and keys of 63 bits")
        must(are_sorted_spans(self.keys_, np.array([0, self.keys_.size])), "keys in order")
        least, most = base ** (self._max_words - 1), base**self._max_words
        must(self.keys_.size > 0 and least <= self.keys_[0] <= self.keys_[-1] < most, "keys of n-grams of its words")
        must(self._max_words > 1 or self.keys_.size == base - 1, "one key per word")
        must((self.forms_ is not None) == self._stemmer.changes_words, "forms of words, if they are stemmed")

    @property
    def n_features(self) -> int:
        """Return the number of columns of X."""
        self.check_fitted()
        return self.keys_.size

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """Fit, and return the rows of the same texts, which are read once. Shape (n, n_features)."""
        listed = check_training_texts(texts)
        stream = self._learn(listed)
        blocks = map_blocks(lambda start, stop: self._rows(stream.rows(start, stop)), listed)
        return stack_rows(blocks, self.n_features)

    def transform(self, texts: Iterable[str]) -> Csr:
        """Return the rows of these texts. Shape (n, n_features)."""
        self.check_fitted()
        listed = check_texts(texts)
        blocks = map_blocks(lambda start, stop: self._rows(self._tokenize(listed[start:stop])), listed)
        return stack_rows(blocks, self.n_features)

    def grown(self, texts: Sequence[str]) -> Self:
        """Return these features with a column for each further word of the texts, after the known columns.

        A new word counts as much as the rarest known words. N-grams, of words or characters, are not added: most of
        those in a new text are in no other text.

        >>> features = Tfidf(ngrams=1, min_df=1).fit(["red apple", "green apple"])
        >>> features.grown(["green pear"]).feature_names()
        ['apple', 'green', 'red', 'pear']
        """
        if self.analyzer != "word" or self._max_words > 1 or self.max_features is not None:
            return self
        spans = self._analyzer.spans(texts)
        unknown = np.flatnonzero(self._ids(spans) < 0)
        bounds = zip(spans.starts[unknown].tolist(), spans.stops[unknown].tolist(), strict=True)
        words = {spans.text[start:stop].tobytes() for start, stop in bounds}
        if self.forms_ is not None:
            words = {self._stemmer(word) for word in words}
        if not words:
            return self
        new = sorted(words)
        made = copy(self)
        made.forget_derived()
        added = Vocabulary.from_words(new)
        made.word_bytes_ = np.concatenate([self.word_bytes_, added.word_bytes])
        made.word_offsets_ = np.concatenate([self.word_offsets_, self.word_offsets_[-1] + added.offsets[1:]])
        made.keys_ = np.arange(1, len(made.word_offsets_), dtype=np.int64)
        made.idf_ = np.append(self.idf_, np.full(len(new), self.idf_.max(), np.float32))
        if self.forms_ is not None:
            made.forms_ = self.forms_.relinked(made._vocabulary, self._stemmer)
        return made

    def occurrences(self, text: str) -> Occurrences:
        """Find where the columns of a text come from, in its own characters.

        >>> found = Tfidf(ngrams=2, min_df=1).fit(["red apple"]).occurrences("A Red apple!")
        >>> found.columns.tolist(), found.starts.tolist(), found.stops.tolist()
        ([1, 0, 2], [2, 6, 2], [5, 11, 11])
        """
        self.check_fitted()
        spans, words = self._analyzer.spans([text]), self._tokenize([text]).words
        starts, stops = self._analyzer.character_spans(text, spans)
        columns = [self._ngram_index.columns_of_length(words, length) for length in range(1, self._max_words + 1)]
        found = [np.flatnonzero(of_length >= 0) for of_length in columns]
        return Occurrences(
            np.concatenate([of_length[where] for of_length, where in zip(columns, found, strict=True)]),
            np.concatenate([starts[where] for where in found]),
            np.concatenate([stops[where + more] for more, where in enumerate(found)]),
        )

    def unknown_words(self, texts: Iterable[str]) -> UnknownWords | None:
        """Count the words of texts that the vocabulary does not have; None for n-grams of characters.

        >>> Tfidf(min_df=1).fit(["red apple"]).unknown_words(["a red, red pear"]).unknown.tolist()
        [1]
        """
        self.check_fitted()
        if self.analyzer != "word":
            return None
        spans = self._analyzer.spans(check_texts(texts))
        return UnknownWords.of(spans, self._ids(spans))

    @cached_property
    def expected_unknown(self) -> float | None:
        """The share of unknown words to expect, by how many documents have each word of the vocabulary."""
        self.check_fitted()
        if self.analyzer != "word" or (self.max_features is not None and self.n_features >= self.max_features):
            return None  # frequent words may be left out too
        base = len(self._vocabulary) + 1
        are_words = self.keys_ % base ** (self._max_words - 1) == 0
        return expected_share(self.idf_[are_words], int(self.min_df))

    def feature_names(self) -> list[str]:
        """Return the n-gram of each column."""
        self.check_fitted()
        words = self._vocabulary.words()
        names, rest = [""] * self.n_features, self.keys_
        for power in range(self._max_words - 1, -1, -1):
            digits, rest = np.divmod(rest, (len(words) + 1) ** power)
            for column, digit in enumerate(digits.tolist()):
                if digit:
                    names[column] += (" " if names[column] else "") + words[digit - 1]
        return names

    def _learn(self, texts: Sequence[str]) -> TokenStream:
        """Learn the state; return the words of the texts under its ids."""
        self.check_params()
        if self.min_n > self.max_n:
            raise ParameterError(f"min_n of tfidf must be at most max_n={self.max_n}, but is {self.min_n}; lower it")
        max_words, min_df = self._max_words, int(self.min_df)
        detected = stems.stemming_language(detect_language(texts).name) if self.stemming == AUTO else stems.NO_STEMMING
        stemmer = self._stemmer_of(detected)
        min_form_df = 1 if stemmer.changes_words else min_df
        forms, stream, df, occurrences = learn_vocabulary(texts, self._analyzer, max_words > 1, min_form_df)
        vocabulary = forms
        if stemmer.changes_words:
            vocabulary, stream, df, occurrences = stems.stem_words(forms, stream, stemmer, min_df)
        if not len(vocabulary):
            rule = f"some term must occur in at least min_df={self.min_df} texts, but of these {len(texts)} none does"
            raise DataError(f"{rule}; lower min_df, or give more or longer texts")
        ngrams = count_ngrams(stream, df, occurrences, max_words, min_df).most_frequent(self.max_features)
        used = np.zeros(len(vocabulary) + 1, bool)
        for digits in ngrams.digits.T:
            used[digits] = True
        if not used[1:].all():  # a word may have no column, and yet be part of an n-gram that has one
            vocabulary, new_ids = vocabulary.select_sorted(used[1:])
            stream = stream.renumber(new_ids)
            new_digits = np.append(0, new_ids + 1).astype(np.int32)
            ngrams = ngrams._replace(digits=large_arrays.take(new_digits, ngrams.digits))
        self.forget()  # not before: a fit that fails keeps the previous state
        self.word_bytes_, self.word_offsets_ = vocabulary.word_bytes, vocabulary.offsets
        self.stemming_ = detected
        self.forms_ = stems.Forms.link(forms, vocabulary, stemmer) if stemmer.changes_words else None
        self.keys_ = ngrams.keys(len(vocabulary))
        self.idf_ = inverse_document_frequency(ngrams.df, len(texts))
        return stream

    def _rows(self, stream: TokenStream) -> CsrRows:
        words, counts, ends = stream
        if self._max_words > 1:
            words, ends = self._ngram_index.columns(words, ends)
        terms = CsrRows(*count_rows(words, counts, ends, self.keys_.size))
        return terms.tfidf(self.idf_, bool(self.sublinear))

    def _tokenize(self, texts: Sequence[str]) -> TokenStream:
        spans = self._analyzer.spans(texts)
        return TokenStream(self._ids(spans), NO_COUNTS, spans.ends)

    def _ids(self, spans: Spans) -> Ints:
        """Return the id of each word, or of its stem; -1 for an unknown one."""
        forms, vocabulary = self.forms_, self._vocabulary
        return vocabulary.ids(spans) if forms is None else forms.stem_ids(spans, vocabulary, self._stemmer)

    @property
    def _analyzer(self) -> Analyzer:
        return Analyzer(self.analyzer, int(self.min_n), int(self.max_n))

    @property
    def _max_words(self) -> int:
        """Return the number of words in the longest n-gram; an n-gram of characters counts as one word."""
        return int(self.ngrams) if self.analyzer == "word" else 1

    @property
    def _stemmer(self) -> stems.Stemmer:
        return self._stemmer_of(self.stemming_)

    def _stemmer_of(self, detected: str) -> stems.Stemmer:
        if self.analyzer != "word":
            return stems.Stemmer()
        return stems.Stemmer(detected if self.stemming == AUTO else self.stemming, self.strip_accents)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.word_bytes_, self.word_offsets_)

    @cached_property
    def _ngram_index(self) -> NgramIndex:
        return NgramIndex(self.keys_, len(self._vocabulary), self._max_words)
