"""Sparse local embeddings."""

from labelspace.models.sleec.model import Sleec

__all__ = ["Sleec"]
