"""Metrics by label frequency: head, torso and tail labels."""

import numpy.typing as npt

from labelspace.errors import ParameterError
from labelspace.metrics.checks import checked_counts
from labelspace.metrics.f1 import LabelCounts
from labelspace.types import Csr, TopK


def by_frequency(
    Y: Csr, topk: TopK, counts: npt.ArrayLike, k: int = 5, tail: int = 25, head: int = 100
) -> dict[str, dict[str, float]]:
    """Metrics of three groups of labels: head, torso and tail, by their number of training documents.

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
    return {name: _metrics(label_counts.subset(group)) for name, group in groups.items()}


def _metrics(group: LabelCounts) -> dict[str, float]:
    return {
        "n_labels": len(group.true),
        "n_occurrences": int(group.true.sum()),
        "recall": group.recall(),
        "precision": group.precision(),
        "macro_f1": group.macro(),
    }
