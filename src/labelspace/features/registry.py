"""The features by name."""

from __future__ import annotations

from typing import Any, Final

from labelspace.errors import ParameterError
from labelspace.features.base import Features
from labelspace.features.embeddings import Embeddings
from labelspace.features.hashing import Hashing
from labelspace.features.tfidf import Tfidf

FEATURES: Final[dict[str, type[Features]]] = {kind.name: kind for kind in (Tfidf, Hashing, Embeddings)}


def create_features(name: str, **params: Any) -> Features:  # noqa: ANN401 - parameters are of any type
    """Make features by their name; an unknown name or parameter is an error that lists the known ones.

    >>> create_features("tfidf", ngrams=1)
    Tfidf(ngrams=1)
    """
    if name not in FEATURES:
        raise ParameterError(f"features must be one of {', '.join(FEATURES)}, but are {name!r}; choose one of these")
    kind = FEATURES[name]
    kind.reject_unknown(params)
    return kind(**params)
