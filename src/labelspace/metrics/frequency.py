"""How well the head, the torso and the tail of the label frequencies are served."""

from __future__ import annotations

import numpy.typing as npt

from labelspace.errors import ParameterError
from labelspace.metrics.f1 import Tally
from labelspace.metrics.inputs import checked_counts
from labelspace.types import Csr, TopK


def by_frequency(
    Y: Csr, topk: TopK, counts: npt.ArrayLike, k: int = 5, tail: int = 25, head: int = 100
) -> dict[str, dict[str, float]]:
    """Figures for three groups of labels: head, torso and tail, by the number of their training documents.

    Head labels have more than ``head`` training documents, tail labels ``tail`` or fewer (those unseen in training
    among them), torso labels a number between. For each group the answer holds

    - ``n_labels``: labels of the group among the columns of Y;
    - ``n_occurrences``: how often they are true in Y;
    - ``recall``: share of these occurrences found in the first k places;
    - ``precision``: share of the places given to the group's labels, among the first k, that are right;
    - ``macro_f1``: mean F1 of the group's labels that occur in Y or in the first k places.

    A figure without anything to count is 0. Documents without labels are left out.

    Args:
        Y: True labels, 0/1 of shape (n, n_labels).
        topk: Predictions for the same documents, best first, of k places or more.
        counts: Training documents of each label; labels of Y beyond them count as unseen.
        k: Places that count.
        tail: Most training documents of a tail label.
        head: Most training documents of a torso label.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=1)
    >>> groups = by_frequency(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, counts=[200, 3, 20], k=1)
    >>> groups["head"]["recall"], groups["tail"]["recall"]
    (1.0, 0.5)
    """
    if not 0 <= tail <= head:
        raise ParameterError(
            f"tail must be 0 or more and head no less than tail, but they are {tail} and {head}; "
            "give the most training documents of a tail label, then those of a torso label"
        )
    seen = checked_counts(counts, Y.shape[1])
    tally = Tally.of(Y, topk, k)
    groups = {"head": seen > head, "torso": (seen > tail) & (seen <= head), "tail": seen <= tail}
    return {name: _figures(tally.among(group)) for name, group in groups.items()}


def _figures(group: Tally) -> dict[str, float]:
    return {
        "n_labels": len(group.true),
        "n_occurrences": int(group.true.sum()),
        "recall": group.recall(),
        "precision": group.precision(),
        "macro_f1": group.macro(),
    }
