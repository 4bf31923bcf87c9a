"""Figures that know the label hierarchy: are coarse labels right where fine ones are not, and do they stand before?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.metrics.f1 import Tally, predicted_set
from labelspace.metrics.groups import by_group, first_answer
from labelspace.metrics.hits import RankedHits, checked_places
from labelspace.metrics.inputs import checked_k, checked_matrix, labeled_rows
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
    _check_width(hierarchy, Y)
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


def answers_by_level(
    Y: Csr, topk: TopK, hierarchy: Hierarchy, counts: npt.ArrayLike, tail: int = 25, least: float | None = None
) -> dict[int, dict[str, float]]:
    """The figures of ``by_group`` for the levels of a hierarchy, 0 (roots) to the deepest.

    The ancestors of true labels are true as well; what is predicted counts as it is ranked, so a label that stands
    for its ancestors must be closed upwards beforehand.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> levels = answers_by_level(sp.csr_matrix([[0, 1, 0]]), TopK.from_scores([[0.9, 0.1, 0.5]], k=3), tree, [1, 1, 1])
    >>> [levels[level]["accuracy"] for level in levels]
    [1.0, 0.0]
    """
    _check_width(hierarchy, Y)
    groups = {str(level): hierarchy.levels == level for level in range(int(hierarchy.levels.max(initial=-1)) + 1)}
    figures = by_group(hierarchy.closed(checked_matrix(Y)), topk, groups, counts, tail, least)
    return {int(level): values for level, values in figures.items()}


def hierarchical_at_k(Y: Csr, topk: TopK, hierarchy: Hierarchy, k: int = 5) -> dict[str, float]:
    """hP@k, hR@k and hF@k: precision, recall and F1 of the first k places, summed over the documents.

    The ancestors of every true and of every predicted label count with them, so a wrong leaf under the right parent is
    half right (Kiritchenko et al., 2006). Documents without labels are left out.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> hierarchical_at_k(sp.csr_matrix([[0, 1, 0]]), TopK.from_scores([[0.1, 0.2, 0.5]], k=1), tree, k=1)
    {'hP@1': 0.5, 'hR@1': 0.5, 'hF@1': 0.5}
    """
    _check_width(hierarchy, Y)
    true, guess = checked_matrix(Y), predicted_set(topk, k, Y.shape)
    tally = Tally.of(hierarchy.closed(true), hierarchy.closed(guess))
    return {f"hP@{k}": tally.precision(), f"hR@{k}": tally.recall(), f"hF@{k}": tally.micro()}


def consistent_at_k(topk: TopK, hierarchy: Hierarchy, k: int = 5) -> float:
    """consistent@k: the share of documents whose first k places list no label before an ancestor, nor without it.

    A document without any label listed is consistent.

    >>> tree = Hierarchy.from_edges([[1, 0]], n_labels=2)
    >>> consistent_at_k(TopK.from_scores([[0.9, 0.1], [0.1, 0.9]], k=2), tree, k=2)
    0.5
    """
    n, n_labels = len(topk), hierarchy.parents.shape[0]
    labels = checked_places(topk, checked_k(k), (n, n_labels))
    if not n:
        raise DataError("there must be at least one document, but there is none; give predictions for some")
    rows, places = np.nonzero(labels >= 0)
    listed = labels[rows, places]
    keys = rows * np.int64(n_labels) + listed  # one number for a label of a document
    order = np.argsort(keys)
    above = hierarchy.ancestors[listed]  # (listed, n_labels)
    of = np.repeat(np.arange(len(listed)), np.diff(above.indptr))  # whose ancestor
    wanted = rows[of] * np.int64(n_labels) + above.indices
    at = np.searchsorted(keys, wanted, sorter=order)
    found = order[np.minimum(at, max(len(order) - 1, 0))]
    stands_before = (keys[found] == wanted) & (places[found] < places[of])
    broken = np.zeros(n, bool)
    broken[rows[of[~stands_before]]] = True
    return float(1 - broken.mean())


def deepest_accuracy(Y: Csr, topk: TopK, hierarchy: Hierarchy) -> float:
    """The share of documents that are right as deep as they go: at the level of their deepest true label.

    Right is the document whose best-ranked label of that level is one of its labels. Documents without labels are left
    out.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> deepest_accuracy(sp.csr_matrix([[1, 1, 0], [1, 0, 0]]), TopK.from_scores([[3, 1, 2], [1, 2, 3]], k=3), tree)
    0.5
    """
    _check_width(hierarchy, Y)
    true = checked_matrix(Y)
    checked_places(topk, checked_k(topk.k), Y.shape)
    labeled = labeled_rows(true)
    true, listed = true[labeled], TopK(topk.labels[labeled], topk.scores[labeled])
    deepest = np.maximum.reduceat(hierarchy.levels[true.indices], true.indptr[:-1])  # (n,)
    places = np.append(hierarchy.levels, -1)[listed.labels]  # (n, places)
    answers = first_answer(listed, places == deepest[:, None])
    return float(RankedHits.of(true, answers, 1).hits.mean())


def _check_width(hierarchy: Hierarchy, Y: Csr) -> None:
    if len(hierarchy.levels) != Y.shape[1]:
        raise DataError(
            f"the hierarchy must be over the columns of Y, but has {len(hierarchy.levels)} labels for "
            f"{Y.shape[1]} columns; build it with n_labels={Y.shape[1]}"
        )
