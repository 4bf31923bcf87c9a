"""Metrics by group of labels: the levels of a hierarchy, the columns of a table, or head, torso and tail labels.

``by_group`` takes the best label of a group as its prediction. A document may have no label in a group: a category of
depth four has no fifth level, a product may have no brand. A metric that counts such documents can be gamed by never
predicting, so it is given together with the metric that leaves them out.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.f1 import LabelCounts, ratio
from labelspace.metrics.hits import RankedHits, checked_counts, checked_k, checked_labels, checked_matrix, labeled_rows
from labelspace.types import Bools, Csr, Ints, TopK

NO_GROUP = -1


def by_group(
    Y: Csr,
    topk: TopK,
    groups: Mapping[str, npt.ArrayLike],
    counts: npt.ArrayLike,
    tail: int = 25,
    min_probability: float | None = None,
    include_unlabeled: bool = False,
) -> dict[str, dict[str, float]]:
    """Compute metrics of disjoint groups of labels; the prediction in a group is its best-ranked label.

    A TopK without a label of a group has no prediction there. For each group the result has

    - ``accuracy``: share of correct predictions, over the documents with a label in the group;
    - ``accuracy_with_na``: the same over all documents; one without a label in the group is correct if nothing is
      predicted for it. Predictions with a score below ``min_probability`` are dropped here;
    - ``micro_f1_with_na``, ``macro_f1_with_na``: F1 of the same predictions over all documents, with NA as one more
      class: it is true where a document has no label in the group, and predicted where nothing is; ``na_f1`` is the F1
      of NA itself. A predictor that always says NA looks good by the first where most documents have none;
    - ``n_na``: documents without a label in the group;
    - ``best_micro_f1``, ``best_macro_f1``: F1 of the predictions, over the documents with a label in the group;
    - ``tail_micro_f1``, ``tail_macro_f1``, ``tail_recall``: the same, and recall, of the group's labels with at most
      ``tail`` training documents; ``tail_micro_f1_with_na``, ``tail_macro_f1_with_na``: the F1 of these labels over all
      documents. NA is no tail label;
    - ``n_labels``, ``n_tail``: labels of the group, and its tail labels; ``n_occurrences``: true occurrences.

    A metric with a zero denominator is 0. Documents without any label are left out, unless ``include_unlabeled``: then
    they have none in any group. All ranks of ``topk`` are used. A group is a mask (n_labels,), or label ids.

    >>> import scipy.sparse as sp
    >>> Y, topk = sp.csr_matrix([[1, 0, 1], [0, 1, 0]]), TopK.from_scores([[0.1, 0.9, 0.5], [0.2, 0.7, 0.1]], k=3)
    >>> metrics = by_group(Y, topk, {"brand": [0, 1], "color": [2]}, counts=[9, 9, 9], min_probability=0.4)
    >>> metrics["brand"]["accuracy"], metrics["color"]["accuracy"], metrics["color"]["accuracy_with_na"]
    (0.5, 1.0, 1.0)
    >>> metrics["color"]["macro_f1_with_na"], metrics["color"]["na_f1"]
    (1.0, 1.0)
    """
    true = checked_matrix(Y)
    checked_labels(topk, checked_k(topk.k), Y.shape)
    labeled = labeled_rows(true)
    if not include_unlabeled:
        true, topk, labeled = true[labeled], TopK(topk.labels[labeled], topk.scores[labeled]), labeled[labeled]
    group_of = _group_of(groups, Y.shape[1])
    labels, confident = _best_labels(topk, group_of, len(groups), min_probability)
    correct, has_label = np.zeros(labels.shape, bool), _has_label(true, group_of, len(groups))
    one_per_group = TopK(labels, np.zeros(labels.shape, np.float32))
    correct[labeled] = RankedHits.from_topk(true, one_per_group, len(groups)).relevant > 0
    label_counts = LabelCounts.from_ids(labels[correct], labels[has_label & (labels >= 0)], true.indices, Y.shape[1])
    over_all = LabelCounts.from_ids(labels[correct & confident], labels[confident], true.indices, Y.shape[1])
    na = [marked.sum(axis=0) for marked in (~confident & ~has_label, ~confident, ~has_label)]  # each (n_groups,)
    rare = checked_counts(counts, Y.shape[1]) <= tail
    with_na = np.where(has_label, correct & confident, ~confident).mean(axis=0)  # (n_groups,)
    return {
        name: {
            "accuracy": ratio(correct[:, i].sum(), has_label[:, i].sum()),
            "accuracy_with_na": float(with_na[i]),
            **_f1_metrics(label_counts, group_of == i, rare),
            **_f1_with_na(over_all, LabelCounts(*(x[i : i + 1] for x in na)), group_of == i, rare),
            "n_na": int((~has_label[:, i]).sum()),
        }
        for i, name in enumerate(groups)
    }


def by_frequency(
    Y: Csr, topk: TopK, counts: npt.ArrayLike, k: int = 5, tail: int = 25, head: int = 100
) -> dict[str, dict[str, float]]:
    """Compute metrics of head, torso and tail labels: three groups by the number of training documents.

    Head labels have more than ``head`` training documents, tail labels at most ``tail`` (including unseen labels),
    torso labels a number between. For each group the result has

    - ``n_labels``: number of labels of the group;
    - ``n_occurrences``: how often they occur in Y;
    - ``recall``: share of these occurrences in the top k;
    - ``precision``: share of the group's labels in the top k that are correct;
    - ``macro_f1``: mean F1 of the group's labels that occur in Y or in the top k.

    A metric with a zero denominator is 0. Documents without labels are left out.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=1)
    >>> groups = by_frequency(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, counts=[200, 3, 20], k=1)
    >>> groups["head"]["recall"], groups["tail"]["recall"]
    (1.0, 0.5)
    """
    if not 0 <= tail <= head:
        remedy = "set for example tail=25, head=100"
        raise ParameterError(f"tail must be at least 0 and at most head, but they are {tail} and {head}; {remedy}")
    frequency = checked_counts(counts, Y.shape[1])
    label_counts = LabelCounts.from_predictions(Y, topk, k)
    groups = {"head": frequency > head, "torso": (frequency > tail) & (frequency <= head), "tail": frequency <= tail}
    metrics = {}
    for name, group in groups.items():
        of = label_counts.subset(group)
        metrics[name] = {**of.sizes(), "recall": of.recall(), "precision": of.precision(), "macro_f1": of.macro()}
    return metrics


def best_where(topk: TopK, mask: Bools) -> TopK:
    """Return the best-ranked label of each document that the mask (n, k) allows, or -1 for none. Shape (n, 1).

    >>> best_where(TopK.from_scores([[0.9, 0.5]], k=2), np.array([[False, True]])).labels.tolist()
    [[1]]
    """
    rank = mask.argmax(axis=1)[:, None]
    exists = np.take_along_axis(mask, rank, axis=1)
    labels, scores = (np.take_along_axis(table, rank, axis=1) for table in (topk.labels, topk.scores))
    return TopK(np.where(exists, labels, -1), np.where(exists, scores, -np.inf))


def _best_labels(topk: TopK, group_of: Ints, n_groups: int, min_score: float | None) -> tuple[Ints, Bools]:
    """Return the best label of each document in each group, and whether its score is high enough. (n, n_groups)."""
    groups = np.append(group_of, NO_GROUP)[topk.labels]  # (n, k): padding is in no group
    best = [best_where(topk, groups == i) for i in range(n_groups)]
    labels, scores = (np.hstack([getattr(b, table) for b in best]) for table in ("labels", "scores"))
    return labels, np.asarray((labels >= 0) & (min_score is None or scores >= min_score))


def _has_label(true: Csr, group_of: Ints, n_groups: int) -> Bools:
    """Return whether each document has a true label in each group. Shape (n, n_groups)."""
    groups, rows = group_of[true.indices], np.repeat(np.arange(true.shape[0]), np.diff(true.indptr))
    grouped = groups != NO_GROUP
    has = np.zeros((true.shape[0], n_groups), bool)
    has[rows[grouped], groups[grouped]] = True
    return has


def _f1_metrics(counts: LabelCounts, group: Bools, rare: Bools) -> dict[str, float]:
    """Return F1 of the labels of a group (n_labels,) and of its rare labels, and how many there are."""
    every, tail = counts.subset(group), counts.subset(group & rare)
    best = {"best_micro_f1": every.micro(), "best_macro_f1": every.macro()}
    of_tail = {"tail_micro_f1": tail.micro(), "tail_macro_f1": tail.macro(), "tail_recall": tail.recall()}
    sizes = {"n_labels": len(every.true), "n_tail": len(tail.true), "n_occurrences": int(every.true.sum())}
    return best | of_tail | sizes


def _f1_with_na(counts: LabelCounts, na: LabelCounts, group: Bools, rare: Bools) -> dict[str, float]:
    """Return F1 over all documents, of the labels of a group (n_labels,) with NA as a class, and of its rare labels."""
    every, tail = counts.subset(group).joined(na), counts.subset(group & rare)
    of_all = {"micro_f1_with_na": every.micro(), "macro_f1_with_na": every.macro(), "na_f1": na.micro()}
    return of_all | {"tail_micro_f1_with_na": tail.micro(), "tail_macro_f1_with_na": tail.macro()}


def _group_of(groups: Mapping[str, npt.ArrayLike], n_labels: int) -> Ints:
    """Return the index of each label's group, or -1. Shape (n_labels,)."""
    if not groups:
        raise DataError("there must be at least one group of labels, but there is none; pass a mask or label ids")
    group_of = np.full(n_labels, NO_GROUP, np.int32)
    for i, (name, given) in enumerate(groups.items()):
        ids = _ids(name, np.asarray(given), n_labels)
        shared = ids[group_of[ids] != NO_GROUP]
        if shared.size:
            places = f"{name!r} and in {list(groups)[group_of[shared[0]]]!r}"
            rule = f"a label must be in at most one group, but label {shared[0]} is in {places}"
            raise DataError(f"{rule}; remove it from one")
        group_of[ids] = i
    return group_of


def _ids(name: str, given: npt.NDArray[np.generic], n_labels: int) -> npt.NDArray[np.int64]:
    if given.dtype == bool and given.shape == (n_labels,):
        return np.flatnonzero(given)
    ids = given.astype(np.int64) if given.dtype.kind in "iu" or not given.size else np.array([n_labels])
    if ids.ndim != 1 or (ids.size and not 0 <= ids.min() <= ids.max() < n_labels):
        rule = f"a group must be a mask of the {n_labels} columns of Y or label ids below {n_labels}"
        raise DataError(f"{rule}, but group {name!r} is {given.dtype} of shape {given.shape}; pass one of these")
    return ids
