"""Cutting a data set in two by document, seeded."""

from __future__ import annotations

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.types import Dataset


def hold_out(dataset: Dataset, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Part a random ``fraction`` of the documents from the rest; both keep the order and get at least one document.

    Returns:
        The rest, and the documents held out.

    >>> from scipy.sparse import csr_matrix
    >>> from labelspace.types import LabelSpace
    >>> dataset = Dataset(csr_matrix((10, 1)), LabelSpace(["a"]), texts=list("0123456789"))
    >>> rest, held = hold_out(dataset, 0.2, seed=0)
    >>> len(rest), len(held)
    (8, 2)
    """
    if not 0 < fraction < 1:
        raise ParameterError(f"the fraction held out must lie between 0 and 1, but is {fraction}; give one such as 0.1")
    n = len(dataset)
    if n < 2:
        raise DataError(f"there must be two documents or more to part them, but there are {n}; give more")
    n_held = min(max(round(n * fraction), 1), n - 1)
    order = np.random.default_rng(seed).permutation(n)
    return dataset.rows(np.sort(order[n_held:])), dataset.rows(np.sort(order[:n_held]))
