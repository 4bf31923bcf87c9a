"""AnnexML (Tagami, 2017)."""

from labelspace.models.annexml.model import AnnexML

__all__ = ["AnnexML"]
