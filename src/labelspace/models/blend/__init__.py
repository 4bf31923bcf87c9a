"""Blend: a stacked ensemble, the default method."""

from labelspace.models.blend.model import Blend

__all__ = ["Blend"]
