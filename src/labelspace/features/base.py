"""The contract of features."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from labelspace.estimator import Estimator
from labelspace.types import Csr, Ints, Longs


class Occurrences(NamedTuple):
    """Where columns come from in a text: characters ``starts[i]`` to ``stops[i]`` count for ``columns[i]``."""

    columns: Ints
    starts: Longs
    stops: Longs


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

    def occurrences(self, text: str) -> Occurrences | None:
        """Where the columns of a text come from, in its own characters; None where that cannot be said."""
        return None

    @property
    def n_features(self) -> int:
        """Columns of X."""
        raise NotImplementedError
