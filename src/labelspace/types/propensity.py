"""The propensity of a label: how likely it is to be given to a document that it fits. Rare labels are often missing.

Jain, Prabhu, Varma (KDD 2016) estimate it from the training data, with n_l documents of label l among N::

    1/p_l = 1 + C (n_l + B)^-A        C = (ln N - 1) (B + 1)^A

For N <= 2, ln N - 1 is negative; C is then set to 0, so that no weight falls below 1.
"""

import math

import numpy as np

from labelspace.types import Doubles, Longs

DEFAULT_A, DEFAULT_B = 0.55, 1.5  # the values of the paper for data sets that are neither Wikipedia's nor Amazon's


def propensity_weights(
    counts: Longs | Doubles, n_documents: int, A: float = DEFAULT_A, B: float = DEFAULT_B
) -> Doubles:
    """Return the weight 1/p_l of each label, at least 1: the rarer the label, the larger. Shape (n_labels,).

    >>> propensity_weights(np.array([100, 10, 1]), n_documents=1000).round(2).tolist()
    [1.77, 3.55, 6.91]
    """
    C = max(math.log(n_documents) - 1, 0.0) * (B + 1) ** A
    return np.asarray(1.0 + C * (counts + B) ** -A, np.float64)
