"""Rank correlation of two figures per label, such as a label's norm and its number of training documents."""

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.types import Doubles


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Spearman's rank correlation, from -1 to 1; ties get their mean rank. NaN where one of the two is constant.

    >>> round(spearman([1, 2, 3, 4], [10, 30, 20, 40]), 6)
    0.8
    """
    one, other = _ranks(a), _ranks(b)
    if len(one) != len(other):
        raise DataError(f"there must be two figures per label, but there are {len(one)} and {len(other)}; give as many")
    if not len(one) or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    one, other = one - one.mean(), other - other.mean()
    return float(np.clip(one @ other / np.sqrt((one @ one) * (other @ other)), -1.0, 1.0))


def _ranks(values: npt.ArrayLike) -> Doubles:
    """The rank of each value, from 1; ties get their mean rank."""
    _, group, sizes = np.unique(np.ravel(values), return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2)[group], dtype=np.float64)
