"""Tag texts with label names: a model with its features and its labels, saved and loaded as one folder."""

from labelspace.tagger.tagger import Tagger, Text, Validation, load

__all__ = ["Tagger", "Text", "Validation", "load"]
