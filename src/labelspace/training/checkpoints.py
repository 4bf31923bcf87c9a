"""A training that was cut off goes on from its last epoch: its arrays in one file, replaced whole or not at all."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.errors import ModelError
from labelspace.store import Arrays
from labelspace.types import Csr


class Checkpoint:
    """The state of one training in a folder. ``what`` says which: parameters and data; another one's is refused."""

    def __init__(self, folder: str | Path, what: Mapping[str, Any], name: str = "checkpoint") -> None:
        self.path = Path(folder) / f"{name}.safetensors"
        self.what = json.dumps(what, sort_keys=True, default=np.generic.item)  # a number of numpy as the plain one

    def write(self, arrays: Arrays, values: Mapping[str, Any]) -> None:
        """Put this state in the place of the one before."""
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        beside = self.path.with_suffix(".writing")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_file(dict(arrays), beside, {"what": self.what, "values": json.dumps(values)})
            os.replace(beside, self.path)
        except (OSError, SafetensorError) as error:
            with suppress(OSError):  # where there is no such folder, there is nothing to remove
                beside.unlink()
            raise ModelError(
                f"a checkpoint must be written to {self.path}, but that failed "
                f"({getattr(error, 'strerror', None) or error}); free some space or give another folder"
            ) from error

    def read(self, into: Arrays) -> dict[str, Any] | None:
        """Fill arrays with the state that was written and return its values; None where there is none yet."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                about = file.metadata() or {}
                same = about["what"] == self.what
                for key, array in into.items() if same else ():
                    array[...] = file.get_tensor(key)
            values: dict[str, Any] = json.loads(about["values"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ModelError(
                f"{self.path} must be a checkpoint of this version, but cannot be read ({error}); "
                "delete it to begin anew"
            ) from error
        if not same:
            raise ModelError(
                f"a checkpoint must be of the same data and parameters, but {self.path} is of others; "
                "delete it, or give another folder"
            )
        return values


def fingerprint(*tables: Csr) -> list[int]:
    """Numbers that differ where tables differ: of each its shape and the checksum of its parts.

    >>> import scipy.sparse as sp
    >>> fingerprint(sp.csr_matrix(np.eye(2))) == fingerprint(sp.csr_matrix(np.eye(2)))
    True
    """
    parts = []
    for table in tables:
        checksum = 0
        for array in (table.data, table.indices, table.indptr):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        parts += [*map(int, table.shape), checksum]
    return parts
