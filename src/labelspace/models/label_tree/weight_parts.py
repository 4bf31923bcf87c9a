"""The weights of a tree while it is trained: in memory up to a limit, and in a temporary file beyond."""

import io
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from labelspace.kernels import large_arrays
from labelspace.kernels.quantize import INT8_MAX, Int8s
from labelspace.models.label_tree.kernels import count_weights, largest_weights, place_weights
from labelspace.training.linear_weights import id_type
from labelspace.types import Floats, Ints, Longs

IN_MEMORY = 2**28  # bytes of weights that are kept in memory if no limit is known; more go to a file
SHARE = 16  # weights get one part in 16 of a memory that is limited


class FeatureMajor(NamedTuple):
    """Weights in 8 bits: feature f has scales[f] * values[starts[f] : starts[f + 1]] for those nodes."""

    values: Int8s
    scales: Floats
    nodes: npt.NDArray[Any]
    starts: Ints


class WeightParts:
    """The weights of nodes, some adjacent ones at a time, added from any thread in any order.

    >>> parts = WeightParts()
    >>> parts.add(1, np.array([0], np.int32), np.array([-0.5], np.float32))
    >>> parts.add(0, np.array([0, 1], np.int32), np.array([1.0, 2.0], np.float32))
    >>> made = parts.feature_major(2, np.array([2, 1]))
    >>> made.values.tolist(), made.nodes.tolist(), made.starts.tolist()
    ([127, -64, 127], [0, 1, 0], [0, 2, 3])
    """

    def __init__(self, in_memory: int | None = None) -> None:
        self._left = (large_arrays.memory() or IN_MEMORY * SHARE) // SHARE if in_memory is None else in_memory
        # One buffer: parts in arrays of their own would keep the holes between them, which are larger, from the system.
        self._file: IO[bytes] = io.BytesIO()
        self._parts: dict[int, tuple[int, int]] = {}  # by first node: where in the file, and how many weights
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # closing writes once more to a disk that may be full
            self._file.close()

    def add(self, first_node: int, features: Ints, weights: Floats) -> None:
        """Add the features and weights of some nodes from ``first_node`` on, node after node."""
        with self._lock, large_arrays.refusing_full_disk():
            self._left -= features.nbytes + weights.nbytes
            if self._left < 0 and isinstance(self._file, io.BytesIO):
                in_memory, self._file = self._file, large_arrays.temporary_file()
                self._file.write(in_memory.getbuffer())
            self._parts[first_node] = self._file.seek(0, os.SEEK_END), len(features)
            self._file.write(features.tobytes())
            self._file.write(weights.tobytes())

    def __iter__(self) -> Iterator[tuple[int, Ints, Floats]]:
        """Yield the first node, features and weights of each part, in the order of the nodes."""
        for first_node, (at, size) in sorted(self._parts.items()):
            with large_arrays.refusing_full_disk():  # what is not yet written is written now
                self._file.seek(at)
            read = self._file.read(8 * size)
            yield first_node, np.frombuffer(read, np.int32, size), np.frombuffer(read, np.float32, size, 4 * size)

    def feature_major(self, n_features: int, sizes: Longs) -> FeatureMajor:
        """Return all weights by feature, without zeros; ``sizes`` (n_nodes,) is the number of weights of each node."""
        largest = np.zeros(n_features, np.float32)
        for _, features, weights in self:
            largest_weights(features, weights, largest)
        scales = (np.maximum(largest, 1e-30) / INT8_MAX).astype(np.float32)
        counts = np.zeros(n_features, np.int64)
        for _, features, weights in self:
            count_weights(features, weights, scales, counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        n_weights = int(starts[-1])
        values, nodes = large_arrays.empty(n_weights, np.int8), large_arrays.empty(n_weights, id_type(len(sizes)))
        ends, stops = starts[:-1].copy(), np.concatenate([[0], np.cumsum(sizes)])
        for first_node, features, weights in self:
            n_nodes = int(np.searchsorted(stops, stops[first_node] + len(features), side="right")) - 1 - first_node
            own = sizes[first_node : first_node + n_nodes]
            place_weights(features, weights, own, first_node, scales, ends, values, nodes)
        return FeatureMajor(values, scales, nodes, starts.astype(np.int32) if starts[-1] < 2**31 else starts)
