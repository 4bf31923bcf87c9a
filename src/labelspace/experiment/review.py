"""Choose the documents that are worth a person's minute, for ``labelspace review`` and for the inbox of the service.

Each order gives a document a value, and the highest value comes first; a document of value 0 is none of the order.

- ``uncertain``: the probability that the best label is wrong, 1 - p.
- ``disagreement``: how much the lists of the members of an ensemble differ, 1 - the mean overlap of two of them.
- ``rare``: the largest p (1 - p) of a label of few training documents whose probability p leaves it open.
- ``suspicious``: how sure the model is that a label which a person gave is wrong. If its probability is nearly 0, the
  probability of the document's best label, times the mean probability of the given label in all documents that have
  it: the model understands the document, and knows the label well (after ``label_errors``).
- ``random``: by a hash of the text and a seed, whatever the model: for figures that no order biases.

Scores of a model that is not calibrated are no probabilities. Then the score of the second label relative to the best
one tells how unsure the model is, for ``uncertain`` and ``rare``.

A document that is like one before it tells less than its value. Of more documents than are asked for, ``uncertain``
and ``disagreement`` take one after the other: that of the highest value times (1 - half of its similarity to the
nearest one taken, the cosine of their words). Every tenth document is drawn at random.

What to call uncertain was chosen by ``benchmarks/annotation.py``: the sums of p (1 - p) and of min(p, 1 - p) over the
labels that are shown, the expected number of wrong decisions, teach a model less than documents drawn at random. They
prefer documents with many labels that are likely to some degree. On CookingSE, from 1,000 documents on, 2,800 that are
chosen teach a blend which is trained again as much as about 3,500 at random (``uncertain``, 3,850 ``disagreement``),
and a blend which goes on learning as much as 3,900 (both).
"""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from labelspace.data.records import Record
from labelspace.data.sparse_rows import parse_features
from labelspace.errors import ParameterError
from labelspace.experiment.label_errors import PREDICTED, SHRINKAGE, UNLIKELY
from labelspace.experiment.labeled_batches import LabeledBatch, LabeledDocuments
from labelspace.features.hashing import Hashing
from labelspace.features.normalize import normalize_rows
from labelspace.models.capabilities import Calibrated, HasMembers, require
from labelspace.tagger import Tagger
from labelspace.types import Csr, Doubles, Longs, TopK

Order = Literal["uncertain", "disagreement", "rare", "suspicious", "random"]
ORDERS: tuple[Order, ...] = get_args(Order)
ScoredOrder = Literal["uncertain", "disagreement", "rare"]  # by what the model says of a document without labels
SHOWN = 5  # labels of a document that a person sees, by default
FEW = 5  # a label of fewer training documents is rare
IN_DOUBT = (0.2, 0.8)  # probabilities that leave it open whether a label is right
RANDOM_SHARE = 0.1  # of the documents to review: figures of documents that an order chose are of hard ones only
DIVERSE = ("uncertain", "disagreement")
POOL = 6  # times as many documents as are asked for, from which unlike ones are taken
HASH_BITS = 18  # of the words of these documents
LIKENESS = 0.5  # share of its value that a document loses which is equal to one taken before
DIGITS = 6  # of values and probabilities
Inputs = Csr | Sequence[str]


@dataclass(frozen=True)
class ReviewDocument:
    """A document to review."""

    record: Record
    number: int  # of the document in the data, from 0
    order: Order  # that chose it: the given one, or random
    value: float
    labels: tuple[str, ...]  # the suggestions, best first
    scores: tuple[float, ...]  # of these; probabilities if the model is calibrated
    given: tuple[str, ...]  # labels that it had
    suspects: tuple[int, ...] = ()  # ids of the given labels that the model finds impossible
    best: float = 0.0  # probability of the best label

    def as_json(self, calibrated: bool) -> dict[str, Any]:
        """Return the row that a person fills, and that ``labelspace learn`` reads: ``labels`` and ``rejected``.

        ``labels`` are those that the document had. They are null if it had none: it has not been looked at.
        """
        scored = "probability" if calibrated else "score"
        pairs = zip(self.labels, self.scores, strict=True)
        content = {"text": self.record.text} if self.record.text is not None else {"features": self.record.features}
        return {
            "id": self.record.id,
            **content,
            "order": self.order,
            "score": round(self.value, DIGITS),
            "suggestions": [{"label": label, scored: round(score, DIGITS)} for label, score in pairs],
            "given": list(self.given),
            "labels": list(self.given) or None,
            "rejected": [],
        }


@dataclass(frozen=True)
class Review:
    """The documents to review, those of the highest value first, with every tenth drawn at random."""

    order: Order
    documents: list[ReviewDocument]
    n_read: int
    n_labeled: int  # documents that are given a label
    n_empty: int  # without any text, which nobody can judge
    seen: float | None  # share of the documents that was in the training data; None if it is not known
    calibrated: bool


def check_order(tagger: Tagger, order: str) -> None:
    """Raise ParameterError unless the model can tell the values of an order."""
    if order not in ORDERS:
        raise ParameterError(f"order must be one of {', '.join(ORDERS)}, but is {str(order)[:80]!r}; choose one")
    if order == "disagreement":
        require(tagger.model, HasMembers)
    if order == "suspicious":
        require(tagger.model, Calibrated)


def choose_documents(documents: LabeledDocuments, order: Order, n: int = 50, k: int = SHOWN, seed: int = 0) -> Review:
    """Return the n documents that are first in an order, a tenth of them drawn at random; a text is there once.

    A few times n documents and a batch are in memory.
    """
    tagger = documents.tagger
    tagger.check_fitted()
    check_order(tagger, order)
    for name, value in (("n", n), ("k", k)):
        if value < 1:
            raise ParameterError(f"{name} must be at least 1, but is {value}; ask for {name}=1 or more")
    n_random = n if order == "random" else round(RANDOM_SHARE * n)
    n_kept = POOL * n if order in (*DIVERSE, "suspicious") else n
    chosen: list[ReviewDocument] = []
    drawn: list[ReviewDocument] = []
    n_empty = 0
    known = KnownLabels(len(tagger.labels_))
    for batch in documents.batches():
        judged = list(_judged(tagger, batch, order, k, seed, documents.n - len(batch.records), known))
        n_empty += len(batch.records) - len(judged)
        drawn = _highest(n_random, [*drawn, *(by_chance for _, by_chance in judged)])
        chosen = [*chosen, *(by_order for by_order, _ in judged if by_order.value > 0)]
        if order == "suspicious":  # what is known of the labels has changed
            chosen = [replace(each, value=each.best * known.of(each.suspects)) for each in chosen]
        chosen = _highest(n_kept, chosen)
    at_random = {_content(each.record) for each in drawn}
    chosen = [each for each in chosen if _content(each.record) not in at_random]
    if order in DIVERSE:
        chosen = _unlike(chosen, n - n_random, tagger)
    found = interleaved(chosen[: n - n_random], drawn)
    calibrated = isinstance(tagger.model, Calibrated)
    return Review(order, found, documents.n, documents.n_labeled, n_empty, documents.seen.share, calibrated)


def _judged(
    tagger: Tagger, batch: LabeledBatch, order: Order, k: int, seed: int, first: int, known: "KnownLabels"
) -> Iterator[tuple[ReviewDocument, ReviewDocument]]:
    """Yield each document of a batch that is not empty with its value in the order, and again with its chance.

    ``first`` is the number of the first document in the data; ``known`` counts the given labels.
    """
    depth = max(k, PREDICTED) if order == "suspicious" else k
    top = shortlist(tagger, batch.inputs, depth)
    suspects: list[list[int]] = [[] for _ in batch.records]
    chances = [chance(_content(record), seed) for record in batch.records]
    if order == "random":
        values = np.array(chances)
    elif order == "suspicious":
        suspects = known.count(top, batch.given)
        values = np.array([float(len(labels) > 0) for labels in suspects])
    else:
        values = order_values(order, tagger, batch.inputs, top, k)
    names = tagger.labels_.names
    for row, record in enumerate(batch.records):
        if not _content(record).strip():
            continue
        ids = [label for label in top.labels[row, :k].tolist() if label >= 0]
        labels = tuple(names[label] for label in ids)
        scores = tuple(top.scores[row, : len(ids)].tolist())
        given = tuple(batch.given_names(row))
        by_order = ReviewDocument(
            record,
            first + row,
            order,
            float(values[row]),
            labels,
            scores,
            given,
            tuple(suspects[row]),
            max(scores, default=0.0),
        )
        yield by_order, replace(by_order, order="random", value=chances[row])


def _content(record: Record) -> str:
    return (record.features if record.text is None else record.text) or ""


def _highest(n: int, documents: Iterable[ReviewDocument]) -> list[ReviewDocument]:
    """Return the n documents of the highest values, of equal ones the first, without repeated texts."""
    best_of: dict[str, ReviewDocument] = {}
    for each in documents:
        known = best_of.setdefault(_content(each.record), each)
        if each.value > known.value:
            best_of[_content(each.record)] = each
    return heapq.nsmallest(n, best_of.values(), key=_place)


def _unlike(documents: Sequence[ReviewDocument], n: int, tagger: Tagger) -> list[ReviewDocument]:
    """Return n of the documents, each less like those before it."""
    if not documents:
        return []
    values = np.array([each.value for each in documents])
    if tagger.ready_made:
        rows = [each.record.features or "" for each in documents]
        X = normalize_rows(parse_features(rows, tagger.model.n_features_, lambda row: f"document {row}"))
    else:
        X = Hashing(ngrams=1, bits=HASH_BITS).fit_transform([_content(each.record) for each in documents])
    return [documents[at] for at in diverse(values, X, n)]


def diverse(values: Doubles, X: Csr, n: int) -> list[int]:
    """Choose n documents one after the other by value, less for documents that are like chosen ones.

    ``X`` (documents, n_features) has rows of norm 1.

    >>> import scipy.sparse as sp
    >>> X = sp.csr_matrix([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> diverse(np.array([0.9, 0.8, 0.5]), X, 2)
    [0, 2]
    """
    similarity = np.zeros(len(values))
    left = np.ones(len(values), bool)
    chosen: list[int] = []
    while left.any() and len(chosen) < n:
        worth = np.where(left, values * (1 - LIKENESS * similarity), -1.0)
        best = int(worth.argmax())
        chosen.append(best)
        left[best] = False
        similarity = np.maximum(similarity, (X @ X[best].T).toarray().ravel())
    return chosen


def _place(document: ReviewDocument) -> tuple[float, int]:
    return -document.value, document.number


def interleaved(chosen: Sequence[ReviewDocument], drawn: Sequence[ReviewDocument]) -> list[ReviewDocument]:
    """Return the chosen documents in order, with those drawn at random spread evenly among them."""
    every = len(chosen) / len(drawn) if drawn else 0.0
    placed = [(float(place), 0, each) for place, each in enumerate(chosen)]
    placed += [(every * (place + 1) - 1, 1, each) for place, each in enumerate(drawn)]
    return [each for _, _, each in sorted(placed, key=lambda at: at[:2])]


def shortlist(tagger: Tagger, inputs: Inputs, k: int) -> TopK:
    """Return the k best labels of documents, with probabilities if the model is calibrated."""
    return tagger.predict_topk(inputs, k, calibrated=isinstance(tagger.model, Calibrated))


def order_values(order: ScoredOrder, tagger: Tagger, inputs: Inputs, top: TopK, k: int) -> Doubles:
    """Return the value of each document in an order; ``top`` is the shortlist. Shape (n,)."""
    if order == "disagreement":
        return disagreement(list(tagger.predict_members(inputs, k).values()))
    calibrated = isinstance(tagger.model, Calibrated)
    shown = top.padded(k)
    if order == "uncertain":
        return uncertainty(shown) if calibrated else closeness(shown)
    doubt = in_doubt(shown) if calibrated else np.repeat(closeness(shown)[:, None], k, axis=1)
    return rarity(shown, doubt, _counts(tagger))


def _counts(tagger: Tagger) -> Longs:
    """Return the number of training documents of each label; zeros for a model that was made of labels only."""
    counts = tagger.labels_.counts
    return np.zeros(len(tagger.labels_), np.int64) if counts is None else counts


def uncertainty(top: TopK) -> Doubles:
    """Return the probability that the best label is wrong. Shape (n,).

    >>> uncertainty(TopK.from_scores([[0.75, 0.25, 0.0], [1.0, 0.75, 0.0]], k=2)).tolist()
    [0.25, 0.0]
    """
    wrong: Doubles = 1 - _scores(top)[:, 0]
    return wrong


def closeness(top: TopK) -> Doubles:
    """Return how near the second score comes to the best one, from 0 to 1; 1 if no score is above 0. Shape (n,).

    >>> closeness(TopK.from_scores([[8.0, 2.0], [0.0, 0.0]], k=2)).tolist()
    [0.25, 1.0]
    """
    scores = _scores(top)
    best = scores[:, 0]
    second = scores[:, 1] if top.k > 1 else np.zeros(len(top))
    near = np.divide(second, best, out=np.ones(len(top)), where=best > 0)
    clipped: Doubles = np.clip(near, 0, 1)
    return clipped


def in_doubt(top: TopK) -> Doubles:
    """Return p (1 - p) of each label whose probability leaves it open, else 0. Shape (n, k).

    >>> in_doubt(TopK.from_scores([[0.9, 0.5, 0.1]], k=3)).tolist()
    [[0.0, 0.25, 0.0]]
    """
    p = _scores(top)
    low, high = IN_DOUBT
    return np.where((p >= low) & (p <= high), p * (1 - p), 0.0)


def rarity(top: TopK, doubt: Doubles, n_documents: Longs) -> Doubles:
    """Return the largest doubt (n, k) about a label of few training documents; ``n_documents`` are by label.

    >>> top = TopK.from_scores([[0.5, 0.4], [0.75, 0.0]], k=2)
    >>> rarity(top, in_doubt(top), np.array([100, 2])).round(2).tolist()
    [0.24, 0.0]
    """
    few = (top.labels >= 0) & (n_documents[top.labels] < FEW)
    return np.asarray(np.where(few, doubt, 0.0).max(axis=1), np.float64)


class KnownLabels:
    """How well a model knows each label: its mean probability in the documents that are given it, so far.

    >>> import scipy.sparse as sp
    >>> known = KnownLabels(n_labels=2)
    >>> known.count(TopK.from_scores([[0.9, 0.0], [0.9, 0.0]], k=1), sp.csr_matrix([[1, 0], [0, 1]]))
    [[], [1]]
    >>> known.of([0]) > known.of([1])
    True
    """

    def __init__(self, n_labels: int) -> None:
        self._counts, self._sums = np.zeros(n_labels), np.zeros(n_labels)

    def count(self, top: TopK, given: Csr) -> list[list[int]]:
        """Count the given labels (n, at least n_labels) of documents; return those that the model finds impossible.

        A label that is not in the list has a probability of about 0. Labels that the model does not have are not
        judged.
        """
        n_labels = len(self._counts)
        known = given.indices < n_labels
        rows = np.repeat(np.arange(len(top)), np.diff(given.indptr))[known]
        labels = given.indices[known].astype(np.int64)
        suspects: list[list[int]] = [[] for _ in range(len(top))]
        if not len(rows):
            return suspects
        p = np.asarray(top.to_csr(n_labels, with_scores=True)[rows, labels], np.float64).ravel()
        self._counts += np.bincount(labels, minlength=n_labels)
        self._sums += np.bincount(labels, p, minlength=n_labels)
        for at in np.flatnonzero(p < UNLIKELY).tolist():
            suspects[int(rows[at])].append(int(labels[at]))
        return suspects

    def of(self, labels: Sequence[int]) -> float:
        """Return the mean probability of the label that is known best, shrunk towards the mean of all labels."""
        ids = list(labels)
        mean = self._sums.sum() / max(self._counts.sum(), 1)
        found = (self._sums[ids] + SHRINKAGE * mean) / (self._counts[ids] + SHRINKAGE)
        return float(found.max()) if ids else 0.0


def disagreement(lists: Sequence[TopK]) -> Doubles:
    """Return 1 - the mean overlap (Jaccard) of the lists of two members, for each document. Shape (n,).

    >>> one, other = TopK.from_scores([[0.9, 0.8, 0.1]], k=2), TopK.from_scores([[0.1, 0.8, 0.9]], k=2)
    >>> disagreement([one, other]).round(3).tolist()
    [0.667]
    """
    n = len(lists[0])
    pairs = list(combinations([_sets(top) for top in lists], 2))
    if not pairs:
        return np.zeros(n)
    total = np.zeros(n)
    for one, other in pairs:
        total += [len(a & b) / max(len(a | b), 1) for a, b in zip(one, other, strict=True)]
    return 1 - total / len(pairs)


def _sets(top: TopK) -> list[set[int]]:
    return [{label for label in row if label >= 0} for row in top.labels.tolist()]


def _scores(top: TopK) -> Doubles:
    """Return the scores with 0 for padding. Shape (n, k)."""
    return np.where(top.labels >= 0, top.scores.astype(np.float64), 0.0)


def chance(text: str, seed: int | None = None) -> float:
    """Return a number from 0 to 1 by the hash of a text, the same for every model and order of the documents.

    >>> chance("knead the dough") == chance("knead the dough", seed=1)
    False
    """
    content = text if seed is None else f"{seed}\n{text}"
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
