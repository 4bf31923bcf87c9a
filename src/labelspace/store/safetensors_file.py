"""The arrays of a safetensors file, by the rules of the format: no gap, no overlap, nothing outside the file.

The header is JSON: array name -> dtype, shape, and begin and end in the bytes that follow it.
"""

import json
import math
import mmap
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_HEADER_BYTES = 16 * 2**20  # a model has some hundred arrays, of some hundred bytes each
LENGTH_BYTES = 8  # the length of the header stands before it
_DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


def map_arrays(mapped: mmap.mmap | bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the content of a file, not copied; one that breaks the format's rules is a ``ValueError``."""
    size = int.from_bytes(mapped[:LENGTH_BYTES], "little")
    begin = LENGTH_BYTES + size
    if size > MAX_HEADER_BYTES or begin > len(mapped):
        raise ValueError(f"its header must fit into the file and {MAX_HEADER_BYTES} bytes")
    header = json.loads(mapped[LENGTH_BYTES:begin], object_pairs_hook=_unique)
    if not isinstance(header, dict):
        raise ValueError("its header must be an object")
    header.pop("__metadata__", None)
    spans, arrays = [(0, 0), (len(mapped) - begin,) * 2], {}
    for key, entry in header.items():
        dtype, shape, (start, stop) = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        if not all(type(n) is int and n >= 0 for n in (*shape, start, stop)):
            raise ValueError(f"{key!r} must have integers of at least 0 as shape and place")
        if stop - start != math.prod(shape) * dtype.itemsize or (begin + start) % dtype.itemsize:
            raise ValueError(f"{key!r} must have a place of the size of its shape")
        spans.append((start, stop))
        if stop > len(mapped) - begin:
            raise ValueError(f"{key!r} must end within the file")
        arrays[key] = np.frombuffer(mapped, dtype, math.prod(shape), begin + start).reshape(shape)
    if any(stop != start for (_, stop), (start, _) in pairwise(sorted(spans))):
        raise ValueError("its arrays must follow each other without gap or overlap")
    return arrays


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are all different."""
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError("its header must name each array once")
    return unique
