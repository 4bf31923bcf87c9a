"""F1 level by level of a label hierarchy: are the coarse labels right where the fine ones are not?"""

from __future__ import annotations

from labelspace.errors import DataError
from labelspace.metrics.f1 import Tally, predicted_set
from labelspace.metrics.inputs import checked_matrix
from labelspace.types import Csr, Hierarchy, TopK


def f1_by_level(
    Y: Csr, predicted: Csr | TopK, hierarchy: Hierarchy, k: int | None = None, close: bool = True
) -> dict[int, dict[str, float]]:
    """Micro- and macro-F1 over the labels of each level, 0 (roots) to the deepest.

    For each level the answer holds ``micro_f1``, ``macro_f1`` (over the labels that occur in Y or in the predictions),
    ``n_labels`` (labels of the level) and ``n_occurrences`` (how often they are true). A level where nothing is true or
    predicted has an F1 of 0. Documents without labels are left out.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        predicted: A 0/1 matrix of Y's shape, or a TopK whose first k places are taken as the predicted set.
        hierarchy: Over the columns of Y.
        k: Places of a TopK that count; None takes all. Not for a matrix.
        close: Mark the ancestors of every true and of every predicted label before counting, so that a wrong leaf
            under the right parent is right at the parent's level. False counts the labels as they are given.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> levels = f1_by_level(sp.csr_matrix([[0, 1, 0]]), sp.csr_matrix([[0, 0, 1]]), tree)
    >>> [levels[level]["micro_f1"] for level in levels]
    [1.0, 0.0]
    """
    if len(hierarchy.levels) != Y.shape[1]:
        raise DataError(
            f"the hierarchy must be over the columns of Y, but has {len(hierarchy.levels)} labels for "
            f"{Y.shape[1]} columns; build it with n_labels={Y.shape[1]}"
        )
    true, guess = checked_matrix(Y), predicted_set(predicted, k, Y.shape)
    if close:
        true, guess = hierarchy.closed(true), hierarchy.closed(guess)
    tally = Tally.of(true, guess)
    answer: dict[int, dict[str, float]] = {}
    for level in range(int(hierarchy.levels.max(initial=-1)) + 1):
        group = tally.among(hierarchy.levels == level)
        answer[level] = {
            "micro_f1": group.micro(),
            "macro_f1": group.macro(),
            "n_labels": len(group.true),
            "n_occurrences": int(group.true.sum()),
        }
    return answer
