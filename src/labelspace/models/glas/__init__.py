"""GLaS (Guo et al., 2019)."""

from labelspace.models.glas.model import Glas

__all__ = ["Glas"]
