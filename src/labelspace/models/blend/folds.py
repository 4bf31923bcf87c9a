"""Which training documents are held out of the members' training, for the stacking model to learn from."""

import numpy as np

from labelspace.models.blend.members import BEST, FAST, NORMAL
from labelspace.types import Longs

MIN_DOCUMENTS = 50  # with fewer there is nothing to learn from
MAX_OUT_OF_FOLD = 20_000  # documents up to which all are predicted out of fold; above, a sample is held out once
FOLDS = {FAST: 1, NORMAL: 2, BEST: 5}
SAMPLE_SHARE, MAX_SAMPLE = 0.1, 6_000
MAX_STACKED = 8_000  # documents that the stacking model learns from


def choose_folds(n: int, effort: str = NORMAL) -> int:
    """The number of folds for n documents; 1 holds out a sample once.

    >>> choose_folds(4_000), choose_folds(4_000, "best"), choose_folds(30_000)
    (2, 5, 1)
    """
    return FOLDS[effort] if n <= MAX_OUT_OF_FOLD else 1


def held_out_folds(n: int, n_folds: int, random_state: int) -> list[Longs]:
    """The rows held out of n documents: one sample, or all of them fold by fold; none where documents are too few.

    >>> [len(rows) for rows in held_out_folds(103, 5, 0)], held_out_folds(40, 5, 0)
    ([21, 21, 21, 20, 20], [])
    """
    order = np.random.default_rng(random_state).permutation(n)
    if n < MIN_DOCUMENTS:
        return []
    if n_folds == 1:
        return [np.sort(order[: min(round(SAMPLE_SHARE * n), MAX_SAMPLE)])]
    return [np.sort(rows) for rows in np.array_split(order, min(n_folds, n))]


def stacked_rows(held: Longs, n_folds: int, random_state: int) -> Longs:
    """Those of the rows held out in a fold that the stacking model learns from: more gain nothing.

    >>> len(stacked_rows(np.arange(9_000), 2, 0)), len(stacked_rows(np.arange(3_000), 2, 0))
    (4000, 3000)
    """
    most = MAX_STACKED // n_folds
    if len(held) <= most:
        return held
    return np.sort(np.random.default_rng(random_state).choice(held, most, replace=False))
