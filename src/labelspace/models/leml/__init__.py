"""LEML: a linear model of low rank for all labels; RobustXML: plus a sparse model for labels that do not fit in."""

from labelspace.models.leml.model import Leml

__all__ = ["Leml"]
