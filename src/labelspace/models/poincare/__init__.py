"""Poincaré label and example embedding (Gerald and Baskiotis, 2019)."""

from labelspace.models.poincare.model import Poincare

__all__ = ["Poincare"]
