"""Masks of labels: which labels an answer may have, as booleans (n_labels,)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.types import Bools, Csr, Longs

FEW_LABELS = 1000  # up to this number of allowed labels, what was learned of them is copied, and searched exactly
Made = TypeVar("Made")
Array = npt.NDArray[Any]


class LastMask(Generic[Made]):
    """A cache of what was made from the last mask: consecutive documents usually have the same mask.

    >>> cache, mask = LastMask(), np.array([True, False])
    >>> cache.get(mask, lambda: "made"), cache.get(mask.copy(), lambda: "made again")
    ('made', 'made')
    """

    def __init__(self) -> None:
        self._last: tuple[Bools, Made] | None = None  # replaced as a whole: threads may share a model

    def get(self, mask: Bools, make: Callable[[], Made]) -> Made:
        """Return what ``make`` made from a mask of this content; call it if the mask is new."""
        last = self._last
        if last is None or not np.array_equal(last[0], mask):
            last = self._last = (mask.copy(), make())
        return last[1]

    def forget(self) -> None:
        """Empty the cache: what the cached object was made from has changed."""
        self._last = None


def kept_entries(ids: Array, starts: Array, mask: Bools) -> tuple[Longs, Array]:
    """Return the positions of the ids of a mask in adjacent lists, list i from ``starts[i]`` on; and the new starts.

    >>> kept, starts = kept_entries(np.array([0, 2, 1, 2]), np.array([0, 2, 4]), np.array([True, False, True]))
    >>> kept.tolist(), starts.tolist()
    ([0, 1, 3], [0, 2, 3])
    """
    kept = np.flatnonzero(mask[ids])
    return kept, np.searchsorted(kept, starts).astype(starts.dtype)


def ids_among(ids: Array, starts: Array, mask: Bools) -> tuple[Array, Array]:
    """Return the ids that ``kept_entries`` keeps, and where lists start.

    >>> ids, starts = ids_among(np.array([0, 2, 1, 2]), np.array([0, 2, 4]), np.array([True, False, True]))
    >>> ids.tolist(), starts.tolist()
    ([0, 2, 2], [0, 2, 3])
    """
    kept, kept_starts = kept_entries(ids, starts, mask)
    return ids[kept], kept_starts


def labels_among(Y: Csr, mask: Bools) -> Csr:
    """Remove labels that are not in a mask from documents (n, n_labels); columns stay.

    >>> labels_among(sp.csr_matrix(np.array([[1, 1], [0, 1]])), np.array([True, False])).toarray().tolist()
    [[1, 0], [0, 0]]
    """
    kept, starts = kept_entries(Y.indices, Y.indptr, mask)
    return sp.csr_matrix((Y.data[kept], Y.indices[kept], starts), shape=Y.shape)
