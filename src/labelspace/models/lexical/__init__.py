"""Lexical matching of label names and synonyms."""

from labelspace.models.lexical.model import Lexical

__all__ = ["Lexical"]
