"""One answer a group: labels parted into levels of a hierarchy or columns of a table, each asked for its best label.

A document may have no label in a group: a category of four steps has no fifth, a product may have no brand. A figure
that counts such documents can be won by never answering, so it stands beside the one that leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.metrics.f1 import Tally, ratio
from labelspace.metrics.hits import RankedHits, checked_places
from labelspace.metrics.inputs import checked_counts, checked_k, checked_matrix, labeled_rows
from labelspace.types import Bools, Csr, Ints, TopK

NO_GROUP = -1


def by_group(
    Y: Csr,
    topk: TopK,
    groups: Mapping[str, npt.ArrayLike],
    counts: npt.ArrayLike,
    tail: int = 25,
    least: float | None = None,
    unlabelled: bool = False,
) -> dict[str, dict[str, float]]:
    """Figures for groups of labels, a label in one of them at most; the answer in a group is its best-ranked label.

    A TopK that lists no label of a group has no answer there. For each group the result holds

    - ``accuracy``: of the documents with a label in the group, the share whose answer is one of their labels;
    - ``accuracy_with_na``: of all documents, the share whose answer is one of their labels or, where they have none in
      the group, that have no answer; answers of a score below ``least`` count as none here;
    - ``n_na``: documents without a label in the group;
    - ``best_micro_f1``, ``best_macro_f1``: F1 of the answers, over the documents with a label in the group;
    - ``tail_micro_f1``, ``tail_macro_f1``, ``tail_recall``: the same, and the share of the true occurrences that are
      answered, of the group's labels of ``tail`` or fewer training documents;
    - ``n_labels``, ``n_tail``: labels of the group, and those of the tail; ``n_occurrences``: how often they are true.

    A figure without anything to count is 0. Documents without any label are left out, unless ``unlabelled``.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for them, best first; every place counts.
        groups: The labels of each group: a mask (n_labels,), or label ids.
        counts: Training documents of each label; labels of Y beyond them count as unseen.
        tail: Most training documents of a tail label.
        least: The score from which an answer counts in ``accuracy_with_na``, such as 0.5 for probabilities.
        unlabelled: Count documents without any label too, as having none in any group.

    >>> import scipy.sparse as sp
    >>> Y, topk = sp.csr_matrix([[1, 0, 1], [0, 1, 0]]), TopK.from_scores([[0.1, 0.9, 0.5], [0.2, 0.7, 0.1]], k=3)
    >>> figures = by_group(Y, topk, {"brand": [0, 1], "color": [2]}, counts=[9, 9, 9], least=0.4)
    >>> figures["brand"]["accuracy"], figures["color"]["accuracy"], figures["color"]["accuracy_with_na"]
    (0.5, 1.0, 1.0)
    """
    true = checked_matrix(Y)
    checked_places(topk, checked_k(topk.k), Y.shape)
    labeled = labeled_rows(true)
    if not unlabelled:
        true, topk, labeled = true[labeled], TopK(topk.labels[labeled], topk.scores[labeled]), labeled[labeled]
    group_of = _group_of(groups, Y.shape[1])
    labels, sure = _answers(topk, group_of, len(groups), least)
    right, asked = np.zeros(labels.shape, bool), _has_label(true, group_of, len(groups))
    right[labeled] = RankedHits.of(true, TopK(labels, np.zeros(labels.shape, np.float32)), len(groups)).hits > 0
    found = (labels[right], labels[asked & (labels >= 0)], true.indices)
    tally = Tally(*(np.bincount(ids, minlength=Y.shape[1]) for ids in found))
    rare = checked_counts(counts, Y.shape[1]) <= tail
    return {
        name: {
            "accuracy": ratio(right[:, number].sum(), asked[:, number].sum()),
            "accuracy_with_na": float(np.where(asked, right & sure, ~sure)[:, number].mean()),
            **_counted(tally, group_of == number, rare),
            "n_na": int((~asked[:, number]).sum()),
        }
        for number, name in enumerate(groups)
    }


def first_answer(topk: TopK, wanted: Bools) -> TopK:
    """The best-ranked of the wanted places (n, places) of each document, or none. One place a document.

    >>> first_answer(TopK.from_scores([[0.9, 0.5]], k=2), np.array([[False, True]])).labels.tolist()
    [[1]]
    """
    place = wanted.argmax(axis=1)[:, None]
    there = np.take_along_axis(wanted, place, axis=1)
    labels, scores = (np.take_along_axis(table, place, axis=1) for table in (topk.labels, topk.scores))
    return TopK(np.where(there, labels, -1), np.where(there, scores, -np.inf))


def _answers(topk: TopK, group_of: Ints, n_groups: int, least: float | None) -> tuple[Ints, Bools]:
    """The answer of each document in each group, and which of them count as answers. Both of shape (n, groups)."""
    placed = np.append(group_of, NO_GROUP)[topk.labels]  # (n, places): the group of each, the padding in none
    answers = [first_answer(topk, placed == number) for number in range(n_groups)]
    labels, scores = (np.hstack([getattr(a, table) for a in answers]) for table in ("labels", "scores"))
    return labels, np.asarray((labels >= 0) & (least is None or scores >= least))


def _has_label(true: Csr, group_of: Ints, n_groups: int) -> Bools:
    """Whether a document has a true label in a group. Shape (n, groups)."""
    groups, rows = group_of[true.indices], np.repeat(np.arange(true.shape[0]), np.diff(true.indptr))
    grouped = groups != NO_GROUP
    has = np.zeros((true.shape[0], n_groups), bool)
    has[rows[grouped], groups[grouped]] = True
    return has


def _counted(tally: Tally, group: Bools, rare: Bools) -> dict[str, float]:
    """F1 of the answers of a group (n_labels,) and of its rare labels, and how many there are."""
    whole, tail = tally.among(group), tally.among(group & rare)
    return {
        "best_micro_f1": whole.micro(),
        "best_macro_f1": whole.macro(),
        "tail_micro_f1": tail.micro(),
        "tail_macro_f1": tail.macro(),
        "tail_recall": tail.recall(),
        "n_labels": len(whole.true),
        "n_tail": len(tail.true),
        "n_occurrences": int(whole.true.sum()),
    }


def _group_of(groups: Mapping[str, npt.ArrayLike], n_labels: int) -> Ints:
    """The number of each label's group, or -1. Shape (n_labels,)."""
    if not groups:
        raise DataError("there must be at least one group of labels, but there is none; give a mask or ids for one")
    group_of = np.full(n_labels, NO_GROUP, np.int32)
    for number, (name, given) in enumerate(groups.items()):
        ids = _ids(name, np.asarray(given), n_labels)
        twice = ids[group_of[ids] != NO_GROUP]
        if twice.size:
            raise DataError(
                f"a label must be in one group at most, but label {twice[0]} is in {name!r} and in "
                f"{list(groups)[group_of[twice[0]]]!r}; take it out of one"
            )
        group_of[ids] = number
    return group_of


def _ids(name: str, given: npt.NDArray[np.generic], n_labels: int) -> npt.NDArray[np.int64]:
    if given.dtype == bool and given.shape == (n_labels,):
        return np.flatnonzero(given)
    ids = given.astype(np.int64) if given.dtype.kind in "iu" or not given.size else np.array([n_labels])
    if ids.ndim != 1 or (ids.size and not 0 <= ids.min() <= ids.max() < n_labels):
        raise DataError(
            f"a group must be a mask of the {n_labels} columns of Y or label ids below {n_labels}, but group {name!r} "
            f"is {given.dtype} of shape {given.shape}; give one of the two"
        )
    return ids
