"""The part of an index that a filter allows."""

import numpy as np

from labelspace.index import Index
from labelspace.labels.masks import LastMask
from labelspace.types import Bools


def index_among(index: Index, allowed: Bools, cache: LastMask[Index | None]) -> Index | None:
    """A copy of an index with the allowed labels alone, kept in ``cache``.

    None where most labels are allowed, or the index cannot be copied in part: search it deeper.
    """
    if 2 * np.count_nonzero(allowed) > len(allowed):
        return None
    return cache.get(allowed, lambda: index.among(allowed))
