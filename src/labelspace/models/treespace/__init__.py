"""The tree-embedded label space (Pathak, 2024)."""

from labelspace.models.treespace.model import Treespace

__all__ = ["Treespace"]
