"""The text-to-text baseline: a T5 that writes labels (Pathak, 2024)."""

from labelspace.models.text2text.model import Text2Text

__all__ = ["Text2Text"]
