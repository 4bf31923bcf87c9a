"""The text-to-text baseline: a T5 that writes labels (Pathak, 2024).

All modules but model, config, subwords, targets, templates and embedding_init need torch: import them only after
``errors.require``.
"""

from labelspace.models.text2text.model import Text2Text

__all__ = ["Text2Text"]
