"""Nested state to a folder and back: safetensors and JSON, never pickled."""

from labelspace.store.folder import *  # noqa: F403
from labelspace.store.folder import _crc32  # noqa: F401
