"""Tag texts with label names: a model with its features and its labels, saved and loaded as one folder."""

from labelspace.tagger.inputs import Validation
from labelspace.tagger.tagger import Tagger, Text, load

__all__ = ["Tagger", "Text", "Validation", "load"]
