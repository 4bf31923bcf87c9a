"""The text-to-text baseline: a T5 that writes labels (Pathak, 2024).

The modules constrained_decoding, pretrained, t5, training and transformers_engine need torch: import them only after
``errors.require``.
"""

from labelspace.models.text2text.model import Text2Text

__all__ = ["Text2Text"]
