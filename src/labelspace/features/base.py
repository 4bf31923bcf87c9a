"""The contract of features, and texts as they are."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

from labelspace.data.texts import check_texts, check_training_texts
from labelspace.estimator import Estimator
from labelspace.features.unknown_words import UnknownWords
from labelspace.types import Csr, Ints, Longs


class Occurrences(NamedTuple):
    """The places of columns in a text: characters ``starts[i]`` to ``stops[i]`` count for ``columns[i]``."""

    columns: Ints
    starts: Longs
    stops: Longs


class Features(Estimator):
    """From texts to X: ``csr_matrix`` float32 (n, n_features), rows of norm 1, column indices sorted.

    ``y`` is accepted for scikit-learn's ``Pipeline`` and is not used.
    """

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn from the training texts."""
        self._learn(check_training_texts(texts))
        return self

    def _learn(self, texts: Sequence[str]) -> object:
        """Learn the state from texts that are checked."""
        raise NotImplementedError

    def transform(self, texts: Iterable[str]) -> Csr:
        """Return the rows of these texts. Shape (n, n_features)."""
        raise NotImplementedError

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """Fit, and return the rows of the same texts. Shape (n, n_features)."""
        listed = check_texts(texts)
        return self.fit(listed).transform(listed)

    def occurrences(self, text: str) -> Occurrences | None:
        """Find where the columns of a text come from, in its own characters; None if the features cannot tell."""
        return None

    def unknown_words(self, texts: Iterable[str]) -> UnknownWords | None:
        """Count the words of texts that no column stands for; None if the features cannot tell."""
        return None

    @property
    def expected_unknown(self) -> float | None:
        """The share of unknown words to expect in texts like those of the training; None if it is unknown."""
        return None

    @property
    def n_features(self) -> int:
        """Columns of X."""
        raise NotImplementedError


@runtime_checkable
class Grows(Protocol):
    """Features that can get further columns, after the known ones."""

    def grown(self, texts: Sequence[str]) -> Features:
        """Return the features with columns for what is new in the texts."""


class RawText(Features):
    """The texts, checked; nothing is learned.

    >>> RawText().fit_transform(["Red apple"])
    ['Red apple']
    """

    name = "text"
    n_features = 0

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Check the texts."""
        check_texts(texts)
        return self

    def transform(self, texts: Iterable[str]) -> Sequence[str]:
        """Return the texts as a list."""
        return check_texts(texts)
