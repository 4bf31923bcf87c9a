"""Masks of labels: which of them an answer may have. Shape (n_labels,) of booleans."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.types import Bools, Csr, Longs

FEW_LABELS = 1000  # up to so many allowed labels, what is learned of them is copied: they are then searched exactly
Made = TypeVar("Made")


class LastMask(Generic[Made]):
    """What was made of the last mask: documents come one after another with the same one.

    >>> cache, mask = LastMask(), np.array([True, False])
    >>> cache.get(mask, lambda: "made"), cache.get(mask.copy(), lambda: "made again")
    ('made', 'made')
    """

    def __init__(self) -> None:
        self._last: tuple[Bools, Made] | None = None  # replaced as a whole: threads may share a model

    def get(self, mask: Bools, make: Callable[[], Made]) -> Made:
        """What ``make`` made of a mask of this content."""
        last = self._last
        if last is None or not np.array_equal(last[0], mask):
            last = self._last = (mask.copy(), make())
        return last[1]

    def forget(self) -> None:
        """Make it anew: what it was made of has changed."""
        self._last = None


def kept_entries(ids: npt.NDArray[Any], starts: npt.NDArray[Any], mask: Bools) -> tuple[Longs, npt.NDArray[Any]]:
    """Of adjacent lists of ids, list i from ``starts[i]`` on: positions of the ids of a mask, and where lists start.

    >>> kept, starts = kept_entries(np.array([0, 2, 1, 2]), np.array([0, 2, 4]), np.array([True, False, True]))
    >>> kept.tolist(), starts.tolist()
    ([0, 1, 3], [0, 2, 3])
    """
    kept = np.flatnonzero(mask[ids])
    return kept, np.searchsorted(kept, starts).astype(starts.dtype)


def ids_among(
    ids: npt.NDArray[Any], starts: npt.NDArray[Any], mask: Bools
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The lists of ``kept_entries``: ids, and where lists start.

    >>> ids, starts = ids_among(np.array([0, 2, 1, 2]), np.array([0, 2, 4]), np.array([True, False, True]))
    >>> ids.tolist(), starts.tolist()
    ([0, 2, 2], [0, 2, 3])
    """
    kept, kept_starts = kept_entries(ids, starts, mask)
    return ids[kept], kept_starts


def labels_among(Y: Csr, mask: Bools) -> Csr:
    """Labels of documents (n, n_labels) without those that are not in a mask; columns stay.

    >>> labels_among(sp.csr_matrix(np.array([[1, 1], [0, 1]])), np.array([True, False])).toarray().tolist()
    [[1, 0], [0, 0]]
    """
    kept, starts = kept_entries(Y.indices, Y.indptr, mask)
    return sp.csr_matrix((Y.data[kept], Y.indices[kept], starts), shape=Y.shape)
