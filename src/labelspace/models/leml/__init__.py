"""LEML: a linear model of low rank for all labels; RobustXML: and a sparse one for those that do not fit into it."""

from labelspace.models.leml.model import Leml

__all__ = ["Leml"]
