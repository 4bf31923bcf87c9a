"""Random train-test split of a data set."""

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.types import Dataset


def hold_out(dataset: Dataset, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Return the remaining documents and a random ``fraction`` held out; both keep the order and have a document.

    >>> from scipy.sparse import csr_matrix
    >>> from labelspace.types import LabelSpace
    >>> dataset = Dataset(csr_matrix((10, 1)), LabelSpace(["a"]), texts=list("0123456789"))
    >>> rest, held_out = hold_out(dataset, 0.2, seed=0)
    >>> len(rest), len(held_out)
    (8, 2)
    """
    if not 0 < fraction < 1:
        raise ParameterError(f"the held-out fraction must be between 0 and 1, but is {fraction}; set for example 0.1")
    n = len(dataset)
    if n < 2:
        raise DataError(f"a split needs at least 2 documents, but there are {n}; give more")
    n_held_out = min(max(round(n * fraction), 1), n - 1)
    order = np.random.default_rng(seed).permutation(n)
    return dataset.rows(np.sort(order[n_held_out:])), dataset.rows(np.sort(order[:n_held_out]))
