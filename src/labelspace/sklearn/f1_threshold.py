"""The threshold with the best micro-F1 on documents that were held out of the training."""

from typing import Any

from labelspace.data.splits import hold_out
from labelspace.errors import DataError
from labelspace.metrics import ScoredPairs, best_micro_f1
from labelspace.models.capabilities import Calibrated
from labelspace.tagger import Tagger
from labelspace.types import Dataset, TopK


def learn_f1_threshold(tagger: Tagger, documents: Dataset, k: int, fraction: float, seed: int) -> float:
    """Train on all but a ``fraction`` of the documents, and choose the threshold for the k best labels of the others.

    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 5
    >>> from labelspace.data.texts import dataset_from_names
    >>> documents = dataset_from_names(texts, [["baking"], ["baking"], ["fish"], ["fish"]] * 5)
    >>> 0 < learn_f1_threshold(Tagger("neighbors"), documents, k=2, fraction=0.2, seed=0) <= 1
    True
    """
    rest, held_out = hold_out(documents, fraction, seed)
    if rest.Y.nnz == 0 or held_out.Y.nnz == 0:
        raise DataError(
            "a threshold is learned from labeled documents in both parts of the training data, but of "
            f"{len(documents)} documents too few have labels; give more, or set k, or threshold to a number"
        )
    tagger.fit_dataset(rest)
    top = ranked(tagger, tagger.inputs_of(held_out), k)
    return middle_of_best(ScoredPairs.from_topk(held_out.Y, top, include_unlabeled=True))


def middle_of_best(pairs: ScoredPairs) -> float:
    """The threshold with the best micro-F1; halfway to the next score, as all between the two are equally good.

    >>> import scipy.sparse as sp
    >>> middle_of_best(ScoredPairs.from_topk(sp.csr_matrix([[1, 0]]), TopK.from_scores([[0.75, 0.25]], k=2)))
    0.5
    """
    best = best_micro_f1(pairs).threshold
    if best is None:  # where no label is found at all, no threshold is better than another
        return 0.0
    lower = pairs.scores[pairs.scores < best]
    return float(best + lower[0]) / 2 if lower.size else best


def ranked(tagger: Tagger, inputs: Any, k: int) -> TopK:  # noqa: ANN401 - texts, or rows of features
    """The k best labels with their probabilities, or with the scores of a method that is not calibrated."""
    k = min(k, len(tagger.labels_))
    return tagger.predict_topk(inputs, k, calibrated=isinstance(tagger.model, Calibrated))
