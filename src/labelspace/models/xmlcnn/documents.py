"""Documents as tokens, one document after the other."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.types import Csr, Ints, Longs


@dataclass(frozen=True)
class Documents:
    """Document i has the tokens ends[i] to ends[i + 1] - 1; -1 is a word without a vector.

    >>> documents = Documents.from_token_ids(np.array([[3, 1, 0], [4, 3, 3]], np.int32))
    >>> documents.tokens.tolist(), documents.ends.tolist()
    ([3, -1, 4, 3, 3], [0, 2, 5])
    """

    tokens: Ints
    ends: Longs  # (n + 1,)

    @classmethod
    def from_token_ids(cls, ids: Ints) -> Self:
        """Of rows of ids (n, longest), without the padding; unknown words become -1."""
        is_token = ids != PAD
        tokens = ids[is_token]
        tokens[tokens == UNKNOWN] = -1
        return cls(tokens, np.append(0, np.cumsum(is_token.sum(axis=1))).astype(np.int64))

    @property
    def n(self) -> int:
        """The number of documents."""
        return len(self.ends) - 1

    def rows(self, index: Ints) -> Self:
        """Some documents, in this order."""
        lengths = np.diff(self.ends)[index]
        ends = np.append(0, np.cumsum(lengths))
        return type(self)(self.tokens[np.repeat(self.ends[index] - ends[:-1], lengths) + np.arange(ends[-1])], ends)

    def without_words(self, share: float, rng: np.random.Generator) -> Self:
        """With a share of the words, drawn at random, as words without a vector."""
        if not share:
            return self
        dropped = rng.random(len(self.tokens), np.float32) < share
        return type(self)(np.where(dropped, np.int32(-1), self.tokens), self.ends)

    def table(self) -> Csr:
        """A sparse matrix with a row of tokens per document, in order, for a fingerprint."""
        return sp.csr_matrix((self.tokens, np.zeros_like(self.tokens), self.ends), shape=(self.n, 1))
