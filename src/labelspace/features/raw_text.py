"""Unchanged texts, for methods that have a tokenizer of their own."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from labelspace.data.texts import check_texts
from labelspace.features.base import Features


class RawText(Features):
    """The texts, checked; nothing is learned.

    >>> RawText().fit_transform(["Red apple"])
    ['Red apple']
    """

    name = "text"

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Check the texts."""
        check_texts(texts)
        return self

    def transform(self, texts: Iterable[str]) -> Sequence[str]:
        """The texts as a list."""
        return check_texts(texts)

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Any:  # noqa: ANN401 - texts in place of a matrix
        """The texts as a list."""
        return check_texts(texts)

    @property
    def n_features(self) -> int:
        """No columns."""
        return 0
