"""Word n-grams hashed into a fixed number of columns: no vocabulary to learn, hold or save."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np

from labelspace.constraints import Constraint, boolean, one_of
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
from labelspace.features.tokenizer import Analyzer, in_blocks
from labelspace.kernels.ngrams import hashed_columns
from labelspace.kernels.tfidf import count_rows
from labelspace.types import Csr, Floats

_MOST_BITS = 30


class Hashing(Features):
    """Weights of hashed word n-grams: as ``Tfidf``, but a column is the upper bits of a 64-bit hash of the n-gram.

    N-grams that share a column are counted as one. The hash is of the bytes alone: the same on every machine.

    Args:
        ngrams: words in the longest n-gram, 1 to 3; shorter ones are in too.
        bits: there are ``2**bits`` columns; 1 to 30.
        sublinear: weigh by 1 + ln count in place of the count.
        idf: learn document frequencies in ``fit``, and weigh by them; without, nothing is learned from the texts.

    >>> features = Hashing(bits=10)
    >>> X = features.fit_transform(["red apple", "green apple"])
    >>> X.shape, X.nnz, X[0].data.round(2)
    ((2, 1024), 6, array([...], dtype=float32))
    """

    name: ClassVar[str] = "hashing"
    ngrams: int = param(2, one_of(1, 2, 3), "Words in the longest n-gram.")
    bits: int = param(
        20,
        Constraint(f"a whole number of 1 to {_MOST_BITS}", lambda value: value in range(1, _MOST_BITS + 1)),
        "There are 2**bits columns.",
    )
    sublinear: bool = param(True, boolean(), "Use 1 + ln count in place of the count.")
    idf: bool = param(True, boolean(), "Learn document frequencies and weight by them.")

    idf_: Floats = learned()  # (n_features,)

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return 1 << int(self.bits)

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the document frequency of each column."""
        listed = check_training_texts(texts)
        self.check_params()
        self._learn(self._bags(listed) if self.idf else [], len(listed))
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """``fit`` and ``transform`` of the same texts, which are read once. Shape (n, n_features)."""
        listed = check_training_texts(texts)
        self.check_params()
        bags = self._bags(listed)
        self._learn(bags, len(listed))
        return stacked([bag.weighed(self.idf_, bool(self.sublinear)) for bag in bags], self.n_features)

    def transform(self, texts: Iterable[str]) -> Csr:
        """The rows of these texts. Shape (n, n_features)."""
        self.check_fitted()
        listed = check_texts(texts)

        def rows(start: int, stop: int) -> Rows:
            return self._bag(listed[start:stop]).weighed(self.idf_, bool(self.sublinear))

        return stacked(in_blocks(rows, list(map(len, listed))), self.n_features)

    def _learn(self, bags: list[Bags], n: int) -> None:
        if not self.idf:
            self.idf_ = np.ones(self.n_features, np.float32)
            return
        df = np.zeros(self.n_features, np.int64)
        for bag in bags:
            np.add.at(df, bag.columns, 1)
        self.idf_ = inverse_document_frequency(df, n)

    def _bags(self, texts: Sequence[str]) -> list[Bags]:
        return in_blocks(lambda start, stop: self._bag(texts[start:stop]), list(map(len, texts)))

    def _bag(self, texts: Sequence[str]) -> Bags:
        spans = Analyzer().spans(texts)
        columns, ends = hashed_columns(spans.hashes, spans.ends, int(self.ngrams), int(self.bits))
        return Bags(*count_rows(columns, ONCE, ends, self.n_features))
