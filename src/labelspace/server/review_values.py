"""Which documents of an inbox a person should see first: those where a decision tells the model most.

- ``uncertainty``: the expected number of wrong decisions among the best labels, the sum of p (1 - p); where scores are
  no probabilities, how near the second label comes to the first.
- ``disagreement``: how much the lists of the members of an ensemble differ, 1 - the mean overlap of two of them.
- ``rare``: the largest p (1 - p) of a label with at most 5 training documents.
- ``random``: by a hash of the text, the same for every model: for figures that no order biases.
"""

import hashlib
from itertools import combinations

import numpy as np

from labelspace.models.capabilities import HasMembers
from labelspace.server.served_model import LoadedModel, Options, Tagged
from labelspace.types import TopK

LABELS = 5  # best ones that are looked at
RARE = 5  # training documents, at most


def review_values(model: LoadedModel, texts: list[str]) -> list[dict[str, float]]:
    """The values of each text, by order; the highest is reviewed first."""
    found = model.tag(texts, LABELS, Options())
    values = [{**_of_answer(model, tagged), "random": _random(text)} for text, tagged in zip(texts, found, strict=True)]
    if isinstance(model.tagger.model, HasMembers):
        lists = list(model.tagger.predict_members(texts, LABELS).values())
        for row, each in enumerate(values):
            each["disagreement"] = disagreement(lists, row)
    return values


def _of_answer(model: LoadedModel, tagged: Tagged) -> dict[str, float]:
    if tagged.probabilities is None:
        best, second = (*tagged.scores, 0.0, 0.0)[:2]
        unsure = second / best if best > 0 else 1.0
        return {
            "uncertainty": float(np.clip(unsure, 0, 1)),
            "rare": _rare(model, tagged, [unsure] * len(tagged.labels)),
        }
    spread = [p * (1 - p) for p in tagged.probabilities]
    return {"uncertainty": sum(spread), "rare": _rare(model, tagged, spread)}


def _rare(model: LoadedModel, tagged: Tagged, spread: list[float]) -> float:
    counts = (model.labels[label]["count"] for label in tagged.labels)
    return max((each for count, each in zip(counts, spread, strict=True) if count <= RARE), default=0.0)


def disagreement(lists: list[TopK], row: int) -> float:
    """One less the mean overlap (Jaccard) of the lists of two members.

    >>> one, other = TopK.from_scores([[0.9, 0.8, 0.1]], k=2), TopK.from_scores([[0.1, 0.8, 0.9]], k=2)
    >>> round(disagreement([one, other], 0), 3)
    0.667
    """
    sets = [{label for label in top.labels[row].tolist() if label >= 0} for top in lists]
    overlaps = [len(a & b) / max(len(a | b), 1) for a, b in combinations(sets, 2)]
    return 1 - sum(overlaps) / len(overlaps) if overlaps else 0.0


def _random(text: str) -> float:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
