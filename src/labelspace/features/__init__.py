"""Features: they turn texts into the sparse matrix X of most methods, or into token ids for sequence methods."""

from typing import Any, Final

from labelspace.errors import ParameterError
from labelspace.features.base import Features, RawText
from labelspace.features.embeddings import Embeddings, embed_texts
from labelspace.features.hashing import Hashing
from labelspace.features.sequences import Sequences
from labelspace.features.tfidf import Tfidf

__all__ = ["FEATURES", "Embeddings", "Features", "Hashing", "Sequences", "Tfidf", "create_features", "embed_texts"]

# The features that a user may choose for any method, and the features that only views have.
FEATURES: Final[dict[str, type[Features]]] = {kind.name: kind for kind in (Tfidf, Hashing, Embeddings)}
_VIEWS_ONLY: Final[dict[str, type[Features]]] = {kind.name: kind for kind in (Sequences, RawText)}


def features_class(name: str) -> type[Features]:
    """Return the class of features with this name; raise ParameterError with the known names if there is none."""
    if isinstance(name, str) and name in FEATURES | _VIEWS_ONLY:
        return (FEATURES | _VIEWS_ONLY)[name]
    given = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
    remedy = "choose one of these, or give ready-made features to fit"
    raise ParameterError(f"features must be one of {', '.join(FEATURES)}, but are {given}; {remedy}")


def create_features(name: str, **params: Any) -> Features:  # noqa: ANN401 - parameters are of any type
    """Make features by their name; an unknown name or parameter is an error that lists the known names.

    >>> create_features("tfidf", ngrams=1)
    Tfidf(ngrams=1)
    """
    return features_class(name)(**params)
