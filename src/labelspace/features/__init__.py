"""Features: from texts to the sparse matrix X of most methods, or to the token ids of sequence methods."""

from labelspace.features.base import Features
from labelspace.features.embeddings import Embeddings, embed_texts
from labelspace.features.hashing import Hashing
from labelspace.features.registry import FEATURES, create_features
from labelspace.features.sequences import Sequences
from labelspace.features.tfidf import Tfidf

__all__ = ["FEATURES", "Embeddings", "Features", "Hashing", "Sequences", "Tfidf", "create_features", "embed_texts"]
