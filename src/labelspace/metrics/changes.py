"""Labels that two answers to the same documents have differently: for better, for worse, and by more than chance."""

from typing import NamedTuple

import numpy as np

from labelspace.metrics.bootstrap import SIGNIFICANT, holm
from labelspace.metrics.f1 import predicted_set
from labelspace.metrics.hits import checked_matrix
from labelspace.types import Csr, Doubles, Longs, TopK


class Changes(NamedTuple):
    """Pairs of document and label that one of two answers has right and the other one wrong. Shape (n, n_labels)."""

    better: Csr
    worse: Csr

    @property
    def by_label(self) -> tuple[Longs, Longs]:
        """Return the numbers of documents that became better and worse, by label."""
        n_labels = self.better.shape[1]
        better, worse = (np.bincount(table.indices, minlength=n_labels) for table in self)
        return better, worse


def changes(Y: Csr, old: Csr | TopK, new: Csr | TopK) -> Changes:
    """Compare two answers: a true label that only the new one has is better, so is a wrong one that it leaves out.

    >>> import scipy.sparse as sp
    >>> found = changes(sp.csr_matrix([[1, 0, 0]]), sp.csr_matrix([[0, 1, 0]]), sp.csr_matrix([[1, 0, 1]]))
    >>> found.better.toarray().tolist(), found.worse.toarray().tolist()
    ([[1.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]])
    """
    true, before, after = checked_matrix(Y), predicted_set(old, None, Y.shape), predicted_set(new, None, Y.shape)
    changed = (after - before).tocsr()  # 1 if added, -1 if removed
    changed.eliminate_zeros()
    signs = (changed.multiply(true) * 2 - changed).tocsr().astype(np.float64)  # 1 for better, -1 for worse
    return Changes(*((signs == sign).tocsr().astype(np.float64) for sign in (1, -1)))


class ChangedLabels(NamedTuple):
    """McNemar's exact test of labels, those with enough changed documents to tell anything."""

    labels: Longs
    p_holm: Doubles  # corrected for the number of these labels


def mcnemar_test(better: Longs, worse: Longs) -> ChangedLabels:
    """Test for each label whether better and worse changes are equally likely, by McNemar's exact test.

    A label whose changes could not be significant if all of them were for the better is not tested: the choice depends
    on the number of changes only, and so costs the other labels nothing of their level.

    >>> found = mcnemar_test(np.array([9, 3, 0]), np.array([0, 3, 1]))
    >>> found.labels.tolist(), found.p_holm.round(4).tolist()
    ([0, 1], [0.0078, 1.0])
    """
    from scipy.special import bdtr  # takes 25 ms, which every start of labelspace would pay

    n = better + worse
    tested = np.flatnonzero(2 * 0.5 ** n.astype(np.float64) < SIGNIFICANT)
    fewer = np.minimum(better, worse)[tested].astype(np.float64)
    p = np.minimum(1.0, 2 * bdtr(fewer, n[tested], 0.5))
    return ChangedLabels(tested, holm(p))
