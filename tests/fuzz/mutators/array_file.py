"""A safetensors file as arrays and back, without any check: what is written may be wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DTYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
    "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


@dataclass
class ArrayFile:
    """Arrays by key, and the header's metadata."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, content: bytes | None) -> ArrayFile | None:
        """None for what is no such file."""
        try:
            header, payload = split(content)
            metadata = header.pop("__metadata__", {})
            arrays = {}
            for key, what in header.items():
                start, stop = what["data_offsets"]
                array = np.frombuffer(payload[start:stop], DTYPES[what["dtype"]]).reshape(what["shape"])
                arrays[key] = array.copy()
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        return cls(arrays, metadata)

    def write(self) -> bytes:
        """The file, packed without gaps."""
        header: dict[str, Any] = {"__metadata__": self.metadata} if self.metadata else {}
        pieces, at = [], 0
        for key, array in self.arrays.items():
            piece = np.ascontiguousarray(array).tobytes()
            header[key] = {
                "dtype": NAMES[array.dtype],
                "shape": list(array.shape),
                "data_offsets": [at, at + len(piece)],
            }
            pieces.append(piece)
            at += len(piece)
        return joined(json.dumps(header).encode(), b"".join(pieces))


def split(content: bytes | None) -> tuple[dict[str, Any], bytes]:
    """The header and what follows it."""
    size = int.from_bytes((content or b"")[:8], "little")
    return json.loads((content or b"")[8 : 8 + size]), (content or b"")[8 + size :]


def joined(header: bytes, payload: bytes, align: bool = True) -> bytes:
    """A file of a header and what follows it."""
    if align:
        header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + payload
