"""Votes of the nearest training documents."""

from labelspace.models.neighbors.model import Neighbors

__all__ = ["Neighbors"]
