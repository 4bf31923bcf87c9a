"""Features: from texts to the sparse matrix X that the linear, tree and neighbour methods read."""

from __future__ import annotations

from labelspace.features.base import Features
from labelspace.features.hashing import Hashing
from labelspace.features.registry import FEATURES, create_features
from labelspace.features.tfidf import Tfidf

__all__ = ["FEATURES", "Features", "Hashing", "Tfidf", "create_features"]
