"""Word n-grams hashed into a fixed number of columns: there is no vocabulary to learn, keep in memory or save."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from labelspace.data.texts import check_texts, check_training_texts
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, integer, one_of
from labelspace.estimator.state_constraints import array
from labelspace.features.base import Features, Occurrences
from labelspace.features.sparse_matrix import NO_COUNTS, CsrRows, inverse_document_frequency, stack_rows
from labelspace.features.tokenizer import Analyzer, map_blocks
from labelspace.kernels import large_arrays
from labelspace.kernels.ngrams import count_rows, hashed_columns
from labelspace.types import Csr, Floats


class Hashing(Features):
    """Weights of hashed word n-grams: like ``Tfidf``, but a column is the upper bits of a 64-bit hash of the n-gram.

    N-grams that share a column are counted as one. The hash depends only on the bytes: it is the same everywhere.

    >>> features = Hashing(bits=10)
    >>> X = features.fit_transform(["red apple", "green apple"])
    >>> X.shape, X.nnz, X[0].data.round(2)
    ((2, 1024), 6, array([...], dtype=float32))
    """

    name: ClassVar[str] = "hashing"

    ngrams: int = param(2, one_of(1, 2, 3), "Words in the longest n-gram.")
    bits: int = param(20, integer(1, at_most=30), "There are 2**bits columns.")
    sublinear: bool = param(True, boolean(), "Use 1 + ln count in place of the count.")
    idf: bool = param(True, boolean(), "Learn document frequencies and weight by them.")

    idf_: Floats = learned(array("float32", "n_features"))

    def sizes(self) -> dict[str, int]:
        """Return the number of columns."""
        return {"n_features": self.n_features}

    @property
    def n_features(self) -> int:
        """Return the number of columns of X."""
        return 1 << int(self.bits)

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """Fit, and return the rows of the same texts, which are read once. Shape (n, n_features)."""
        listed = check_training_texts(texts)
        blocks = self._learn(listed)
        if not self.idf:
            return self.transform(listed)
        return stack_rows([block.tfidf(self.idf_, bool(self.sublinear)) for block in blocks], self.n_features)

    def transform(self, texts: Iterable[str]) -> Csr:
        """Return the rows of these texts. Shape (n, n_features)."""
        self.check_fitted()
        listed = check_texts(texts)
        sublinear = bool(self.sublinear)
        rows = map_blocks(lambda start, stop: self._count(listed[start:stop]).tfidf(self.idf_, sublinear), listed)
        return stack_rows(rows, self.n_features)

    def occurrences(self, text: str) -> Occurrences:
        """Find where the columns of a text come from, in its own characters."""
        self.check_fitted()
        analyzer, longest = Analyzer(), int(self.ngrams)
        spans = analyzer.spans([text])
        starts, stops = analyzer.character_spans(text, spans)
        columns, _ = hashed_columns(spans.hashes, spans.ends, longest, int(self.bits))
        n = spans.starts.size
        lengths = np.minimum(longest, n - np.arange(n))  # n-grams that start at each word
        first = np.repeat(np.arange(n), lengths)
        last = first + np.arange(columns.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Occurrences(columns, starts[first], stops[last])

    def _learn(self, texts: Sequence[str]) -> list[CsrRows]:
        """Learn the document frequency of each column; return the counts of the texts, none without ``idf``."""
        self.check_params()
        if not self.idf:
            self.idf_ = np.ones(self.n_features, np.float32)
            return []
        blocks = map_blocks(lambda start, stop: large_arrays.keep_each(self._count(texts[start:stop])), texts)
        df = np.zeros(self.n_features, np.int64)
        for block in blocks:
            np.add.at(df, block.columns, 1)
        self.idf_ = inverse_document_frequency(df, len(texts))
        return blocks

    def _count(self, texts: Sequence[str]) -> CsrRows:
        spans = Analyzer().spans(texts)
        columns, ends = hashed_columns(spans.hashes, spans.ends, int(self.ngrams), int(self.bits))
        return CsrRows(*count_rows(columns, NO_COUNTS, ends, self.n_features))
