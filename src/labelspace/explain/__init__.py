"""Why a label: from a model's evidence to the words of the text, for people and programs."""

from labelspace.explain.explanation import Explanation, FeatureShare, Neighbor, PathNode, Phrase, ValueShare, WordShare

__all__ = ["Explanation", "FeatureShare", "Neighbor", "PathNode", "Phrase", "ValueShare", "WordShare"]
