"""Keep the labels of a document that are sure enough; say which labels are left out, and why."""

import math
from typing import NamedTuple

import numpy as np

from labelspace.types import LabelSpace, TopK


class KeepRule(NamedTuple):
    """Keep labels of at least a probability, and of these the first few."""

    threshold: float
    most: int | None = None  # labels of a document; None for any number
    precision: float | None = None  # that the threshold was chosen for

    def kept(self, top: TopK) -> TopK:
        """Return the answers without labels that are not kept.

        >>> KeepRule(0.5, most=1).kept(TopK.from_scores([[0.9, 0.7, 0.1]], k=3)).labels.tolist()
        [[0, -1, -1]]
        """
        sure = top.scores >= self.threshold
        if self.most is not None:
            sure &= np.cumsum(sure, axis=1) <= self.most
        return TopK(np.where(sure, top.labels, -1), np.where(sure, top.scores, -np.inf))

    def why_below(self, probability: float) -> str:
        """Say why a label with a probability below the threshold is not kept."""
        if self.precision is None:
            return f"its probability {probability:.3f} is below {self.threshold:g}"
        if math.isinf(self.threshold):
            return f"no threshold reaches a precision of {self.precision:g} on held-out documents"
        bound = f"{self.threshold:.3g}, the threshold for a precision of {self.precision:g}"
        return f"its probability {probability:.3f} is below {bound}"


class Omitted(NamedTuple):
    """A ranked label, by its id, that is not in the answer."""

    label: int
    score: float
    reason: str


def omitted(ranked: TopK, judged: TopK, answer: TopK, rule: KeepRule, labels: LabelSpace) -> list[list[Omitted]]:
    """Return the ranked labels of each document that are not in the answer, with reasons.

    ``judged`` has the labels that the rule was applied to: the same, or with ancestors and their probabilities.
    """
    found = []
    for row, (listed, scores) in enumerate(zip(ranked.labels.tolist(), ranked.scores.tolist(), strict=True)):
        kept = [label for label in answer.labels[row].tolist() if label >= 0]
        probability = dict(zip(listed, scores, strict=True))
        probability |= dict(zip(judged.labels[row].tolist(), judged.scores[row].tolist(), strict=True))
        dropped = [label for label in listed if label >= 0 and label not in kept]
        reasons = {label: _reason(label, probability[label], kept, rule, labels) for label in dropped}
        found.append([Omitted(label, probability[label], reason) for label, reason in reasons.items()])
    return found


def _reason(label: int, probability: float, kept: list[int], rule: KeepRule, labels: LabelSpace) -> str:
    if probability >= rule.threshold:
        return f"the answer has {len(kept)} labels that are ranked before it"
    above = _ancestors(label, kept, labels)
    replaced = f"; replaced by its ancestor {labels.names[above[-1]]!r}" if above else ""
    return rule.why_below(probability) + replaced


def _ancestors(label: int, kept: list[int], labels: LabelSpace) -> list[int]:
    """Return the kept ancestors of a label, the most specific last."""
    if labels.hierarchy is None or not kept:
        return []
    parents, levels = labels.hierarchy.parents, labels.hierarchy.levels
    found, todo = {label}, [label]
    while todo:
        at = todo.pop()
        new = set(parents.indices[parents.indptr[at] : parents.indptr[at + 1]].tolist()) - found
        found |= new
        todo.extend(new)
    return sorted((other for other in kept if other in found), key=lambda other: int(levels[other]))
