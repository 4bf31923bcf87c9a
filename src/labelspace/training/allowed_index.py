"""The part of an index that a filter allows."""

import numpy as np

from labelspace.index import Index
from labelspace.labels.masks import LastMask
from labelspace.types import Bools


class AllowedIndex:
    """Copies of an index with the allowed labels alone; the last one is kept."""

    def __init__(self) -> None:
        self._last: LastMask[Index | None] = LastMask()

    def get(self, index: Index, allowed: Bools) -> Index | None:
        """The copy; None where most labels are allowed, or the index cannot be copied in part: search it deeper."""
        if 2 * np.count_nonzero(allowed) > len(allowed):
            return None
        return self._last.get(allowed, lambda: index.among(allowed))

    def forget(self) -> None:
        """Drop the copy: the index has changed."""
        self._last = LastMask()
