"""Label texts and documents in the space of a pretrained encoder."""

from labelspace.models.semantic.model import Semantic

__all__ = ["Semantic"]
