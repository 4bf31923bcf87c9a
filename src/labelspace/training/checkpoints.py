"""Checkpoints: the arrays of an interrupted training in one file, replaced atomically."""

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
    """The state of one training in a folder; ``fingerprint`` (parameters and data) tells it from other trainings."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, Any], name: str = "checkpoint") -> None:
        self.path = Path(folder) / f"{name}.safetensors"
        self.fingerprint = json.dumps(fingerprint, sort_keys=True, default=np.generic.item)  # numpy's numbers as plain

    def write(self, arrays: Arrays, values: Mapping[str, Any]) -> None:
        """Replace the saved state by this one."""
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        temporary = self.path.with_suffix(".writing")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_file(dict(arrays), temporary, {"fingerprint": self.fingerprint, "values": json.dumps(values)})
            os.replace(temporary, self.path)
        except (OSError, SafetensorError) as error:
            with suppress(OSError):  # where there is no such folder, there is nothing to remove
                temporary.unlink()
            raise ModelError(
                f"a checkpoint must be written to {self.path}, but that failed "
                f"({getattr(error, 'strerror', None) or error}); free some space or give another folder"
            ) from error

    def read(self, into: Arrays) -> dict[str, Any] | None:
        """Fill arrays with the saved state and return its values; None where nothing is saved yet."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                metadata = file.metadata() or {}
                same = metadata["fingerprint"] == self.fingerprint
                for key, array in into.items() if same else ():
                    array[...] = file.get_tensor(key)
            values: dict[str, Any] = json.loads(metadata["values"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ModelError(
                f"{self.path} must be a checkpoint of this version, but cannot be read ({error}); "
                "delete it to start again"
            ) from error
        if not same:
            raise ModelError(
                f"a checkpoint must be of the same data and parameters, but {self.path} is of others; "
                "delete it, or give another folder"
            )
        return values


def data_fingerprint(*tables: Csr) -> list[int]:
    """Numbers that differ where sparse matrices differ: the shape of each, and a checksum of its arrays.

    >>> import scipy.sparse as sp
    >>> data_fingerprint(sp.csr_matrix(np.eye(2))) == data_fingerprint(sp.csr_matrix(np.eye(2)))
    True
    """
    numbers = []
    for table in tables:
        checksum = 0
        for array in (table.data, table.indices, table.indptr):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        numbers += [*map(int, table.shape), checksum]
    return numbers
