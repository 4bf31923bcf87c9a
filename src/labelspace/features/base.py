"""The contract of features, and the check of their texts."""

from collections.abc import Iterable, Sequence
from typing import Self

from labelspace.errors import DataError
from labelspace.estimator import Estimator
from labelspace.types import Csr


class Features(Estimator):
    """From texts to X: ``csr_matrix`` float32 (n, n_features), rows of norm 1, column indices sorted.

    ``y`` is there for scikit-learn's ``Pipeline`` and is not used.
    """

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn from the training texts."""
        raise NotImplementedError

    def transform(self, texts: Iterable[str]) -> Csr:
        """The rows of these texts. Shape (n, n_features)."""
        raise NotImplementedError

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Csr:
        """``fit`` and ``transform`` of the same texts, which are read once. Shape (n, n_features)."""
        raise NotImplementedError

    @property
    def n_features(self) -> int:
        """Columns of X."""
        raise NotImplementedError


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """The texts as a list; anything but texts is an error that names its row."""
    if isinstance(texts, (str, bytes)):
        raise DataError(f"texts must be a list of texts, but are one {type(texts).__name__}; give a list of texts")
    listed = texts if isinstance(texts, (list, tuple)) else list(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"a text must be a str, but the one of row {row} is of type {type(text).__name__}; "
                "give a str, an empty one for no text"
            )
    return listed


def without_lone_surrogates(text: str) -> str:
    """The text with ``?`` for what is no valid Unicode: tokenizers of other packages refuse that."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_training_texts(texts: Iterable[str]) -> Sequence[str]:
    """The same, with at least one text."""
    listed = check_texts(texts)
    if not listed:
        raise DataError("features must be fitted on at least one text, but there are 0; give more texts")
    return listed
