"""Pretrained encoders: from a text to a vector of its meaning."""

from labelspace.features.encoders.base import Encoder
from labelspace.features.encoders.registry import AnyEncoder, check_encoder, load_encoder

__all__ = ["AnyEncoder", "Encoder", "check_encoder", "load_encoder"]
