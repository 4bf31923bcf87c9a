"""Hierarchical metrics: by level, with ancestors, and whether ancestors are ranked before their descendants."""

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.metrics.f1 import LabelCounts, predicted_set
from labelspace.metrics.groups import best_where, by_group
from labelspace.metrics.hits import RankedHits, checked_k, checked_labels, checked_matrix, labeled_rows
from labelspace.types import Csr, Hierarchy, TopK


def f1_by_level(
    Y: Csr, predicted: Csr | TopK, hierarchy: Hierarchy, k: int | None = None, close: bool = True
) -> dict[int, dict[str, float]]:
    """Compute micro- and macro-F1 over the labels of each level, 0 (roots) to the deepest.

    For each level the result has ``micro_f1``, ``macro_f1`` (over the labels that occur in Y or in the predictions),
    ``n_labels`` (labels of the level) and ``n_occurrences`` (true occurrences). A level where nothing is true or
    predicted has an F1 of 0. Documents without labels are left out. ``close`` adds the ancestors of all true and
    predicted labels before counting, so that a wrong leaf under the right parent is correct at the parent's level.

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
    counts = LabelCounts.from_predictions(true, guess)
    metrics: dict[int, dict[str, float]] = {}
    for level in range(int(hierarchy.levels.max(initial=-1)) + 1):
        group = counts.subset(hierarchy.levels == level)
        metrics[level] = {"micro_f1": group.micro(), "macro_f1": group.macro(), **group.sizes()}
    return metrics


def best_by_level(
    Y: Csr,
    topk: TopK,
    hierarchy: Hierarchy,
    counts: npt.ArrayLike,
    tail: int = 25,
    min_probability: float | None = None,
) -> dict[int, dict[str, float]]:
    """Compute the metrics of ``by_group`` for the levels of a hierarchy, 0 (roots) to the deepest.

    The ancestors of true labels are true as well; ancestors of predicted labels are not added, so include them in
    ``topk`` where a label implies them.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> levels = best_by_level(sp.csr_matrix([[0, 1, 0]]), TopK.from_scores([[0.9, 0.1, 0.5]], k=3), tree, [1, 1, 1])
    >>> [levels[level]["accuracy"] for level in levels]
    [1.0, 0.0]
    """
    _check_width(hierarchy, Y)
    by_level = np.argsort(hierarchy.levels, kind="stable")  # ids: masks of many levels would fill the memory
    starts = np.searchsorted(hierarchy.levels[by_level], np.arange(1, hierarchy.levels.max(initial=-1) + 1))
    groups = {str(level): labels for level, labels in enumerate(np.split(by_level, starts))}
    metrics = by_group(hierarchy.closed(checked_matrix(Y)), topk, groups, counts, tail, min_probability)
    return {int(level): values for level, values in metrics.items()}


def hierarchical_at_k(Y: Csr, topk: TopK, hierarchy: Hierarchy, k: int = 5) -> dict[str, float]:
    """Compute hP@k, hR@k and hF@k: micro-averaged precision, recall and F1 of the top k with their ancestors.

    The ancestors of all true and predicted labels are included, so a wrong leaf under the right parent is half right
    (Kiritchenko et al., 2006). Documents without labels are left out.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> hierarchical_at_k(sp.csr_matrix([[0, 1, 0]]), TopK.from_scores([[0.1, 0.2, 0.5]], k=1), tree, k=1)
    {'hP@1': 0.5, 'hR@1': 0.5, 'hF@1': 0.5}
    """
    _check_width(hierarchy, Y)
    true, guess = checked_matrix(Y), predicted_set(topk, k, Y.shape)
    counts = LabelCounts.from_predictions(hierarchy.closed(true), hierarchy.closed(guess))
    return {f"hP@{k}": counts.precision(), f"hR@{k}": counts.recall(), f"hF@{k}": counts.micro()}


def consistent_at_k(topk: TopK, hierarchy: Hierarchy, k: int = 5) -> float:
    """Compute consistent@k: the share of documents whose top k have every ancestor of a label, ranked before it.

    A document without predicted labels is consistent.

    >>> tree = Hierarchy.from_edges([[1, 0]], n_labels=2)
    >>> consistent_at_k(TopK.from_scores([[0.9, 0.1], [0.1, 0.9]], k=2), tree, k=2)
    0.5
    """
    n, n_labels = len(topk), hierarchy.parents.shape[0]
    labels = checked_labels(topk, checked_k(k), (n, n_labels))
    if not n:
        raise DataError("there must be at least one document, but there is none; predict some first")
    rows, ranks = np.nonzero(labels >= 0)
    predicted = labels[rows, ranks]
    keys = rows * np.int64(n_labels) + predicted  # one number per (document, label)
    order = np.argsort(keys)
    # If all labels have all their parents before them, they have all their ancestors before them.
    parents = hierarchy.parents[predicted]  # (predicted, n_labels)
    child = np.repeat(np.arange(len(predicted)), np.diff(parents.indptr))
    parent_keys = rows[child] * np.int64(n_labels) + parents.indices
    position = np.searchsorted(keys, parent_keys, sorter=order)
    match = order[np.minimum(position, max(len(order) - 1, 0))]
    ranked_before = (keys[match] == parent_keys) & (ranks[match] < ranks[child])
    inconsistent = np.zeros(n, bool)
    inconsistent[rows[child[~ranked_before]]] = True
    return float(1 - inconsistent.mean())


def deepest_accuracy(Y: Csr, topk: TopK, hierarchy: Hierarchy) -> float:
    """Compute the accuracy at the level of each document's deepest true label.

    A document is correct if its best-ranked label of that level is one of its labels. Documents without labels are
    left out.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)
    >>> deepest_accuracy(sp.csr_matrix([[1, 1, 0], [1, 0, 0]]), TopK.from_scores([[3, 1, 2], [1, 2, 3]], k=3), tree)
    0.5
    """
    _check_width(hierarchy, Y)
    true = checked_matrix(Y)
    checked_labels(topk, checked_k(topk.k), Y.shape)
    labeled = labeled_rows(true)
    true = true[labeled]
    topk = TopK(topk.labels[labeled], topk.scores[labeled])
    deepest = np.maximum.reduceat(hierarchy.levels[true.indices], true.indptr[:-1])  # (n,)
    levels = np.append(hierarchy.levels, -1)[topk.labels]  # (n, k)
    best = best_where(topk, levels == deepest[:, None])
    return float(RankedHits.from_topk(true, best, 1).relevant.mean())


def _check_width(hierarchy: Hierarchy, Y: Csr) -> None:
    if len(hierarchy.levels) != Y.shape[1]:
        n, n_labels = Y.shape[1], len(hierarchy.levels)
        rule = f"the hierarchy must be over the columns of Y, but has {n_labels} labels for {n} columns"
        raise DataError(f"{rule}; build it with n_labels={n}")
