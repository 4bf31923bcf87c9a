"""All standard metrics of one set of predictions, as sums over documents, and baselines to compare them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.metrics import propensity, ranking
from labelspace.metrics.hits import RankedHits, checked_counts, checked_k, checked_matrix, labeled_rows
from labelspace.types import Bools, Csr, Doubles, TopK
from labelspace.types.propensity import DEFAULT_A, DEFAULT_B

PropensityFrom = Literal["train", "test"]
Unlabelled = Literal["skip", "count"]
DEFAULT_KS = (1, 3, 5)


@dataclass(frozen=True)
class DocumentValues:
    """A metric is the sum of the numerators over that of the denominators; a mean has denominators of 1.

    >>> DocumentValues(np.array([1.0, 0.0]), np.ones(2)).value()
    0.5
    """

    numerators: Doubles  # (n,)
    denominators: Doubles  # (n,)

    @staticmethod
    def of_mean(values: Doubles) -> DocumentValues:
        """Return the metric that is the mean of these values (n,)."""
        return DocumentValues(values, np.ones(len(values)))

    def value(self) -> float:
        """Return the metric; 0 if the denominators are 0."""
        total = self.denominators.sum()
        return float(self.numerators.sum() / total) if total else 0.0

    def among(self, labeled: Bools, default: float) -> DocumentValues:
        """Return the values of all documents (n_all,); documents without labels have ``default`` as denominator."""
        numerators, denominators = np.zeros(labeled.size), np.full(labeled.size, default)
        numerators[labeled], denominators[labeled] = self.numerators, self.denominators
        return DocumentValues(numerators, denominators)


def evaluate(
    Y: Csr,
    topk: TopK,
    counts: npt.ArrayLike | None = None,
    n_documents: int | None = None,
    ks: Sequence[int] = DEFAULT_KS,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    propensity_from: PropensityFrom = "train",
    unlabelled: Unlabelled = "skip",
) -> dict[str, float]:
    """Compute P, nDCG, PSP, PSnDCG and R at each k, and RP and coverage at the largest, in percent with 4 decimals.

    The last values are ``n`` (documents averaged over), ``n_without_labels`` and ``n_labels``. Documents without labels
    are left out ("skip"), or averaged over with a score of 0 ("count"), as programs of the field do; PSP, PSnDCG and
    coverage, which are ratios of sums, do not change. Propensities are estimated from ``counts``, or from Y with
    ``propensity_from="test"``, as in the GLaS paper (Appendix D).

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> scores = evaluate(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, counts=[9, 2, 1], n_documents=10, ks=(1, 2))
    >>> scores["P@1"], scores["P@2"], scores["PSP@1"], scores["n"]
    (100.0, 50.0, 88.8046, 2)
    """
    hits = RankedHits.from_topk(Y, topk, _checked_max(ks))
    values = _values(Y, hits, _weights(Y, counts, n_documents, A, B, propensity_from), ks, unlabelled)
    table = {name: value.value() for name, value in values.items()}
    table[f"coverage@{max(ks)}"] = ranking.coverage(hits, max(ks))
    n = len(hits) + (hits.n_without_labels if unlabelled == "count" else 0)
    sizes = {"n": n, "n_without_labels": hits.n_without_labels, "n_labels": int(Y.shape[1])}
    return {name: round(100 * value, 4) for name, value in table.items()} | sizes


def per_document(
    Y: Csr,
    topk: TopK,
    counts: npt.ArrayLike | None = None,
    n_documents: int | None = None,
    ks: Sequence[int] = DEFAULT_KS,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    propensity_from: PropensityFrom = "train",
    unlabelled: Unlabelled = "skip",
) -> dict[str, DocumentValues]:
    """Return what each document adds to the metrics of :func:`evaluate`, in the same order, as fractions.

    Coverage is not a sum over documents, and is left out; so are documents without labels, unless
    ``unlabelled="count"``.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> Y = sp.csr_matrix([[1, 1, 0], [0, 0, 1]])
    >>> per_document(Y, topk, counts=[9, 2, 1], n_documents=10, ks=(1, 2))["P@2"].numerators.tolist()
    [0.5, 0.5]
    """
    hits = RankedHits.from_topk(Y, topk, _checked_max(ks))
    return _values(Y, hits, _weights(Y, counts, n_documents, A, B, propensity_from), ks, unlabelled)


def _values(
    Y: Csr, hits: RankedHits, weights: Doubles, ks: Sequence[int], unlabelled: Unlabelled
) -> dict[str, DocumentValues]:
    """Return what each document adds to the metrics: means over the documents, and ratios of gains to ideal gains."""
    if unlabelled not in ("skip", "count"):
        raise ParameterError(f"unlabelled must be skip or count, but is {unlabelled!r}; set one of them")
    max_k = max(ks)
    means = {f"P@{k}": ranking.precisions(hits, k) for k in ks} | {f"nDCG@{k}": ranking.ndcgs(hits, k) for k in ks}
    last = {f"R@{k}": ranking.recalls(hits, k) for k in ks} | {f"RP@{max_k}": ranking.r_precisions(hits, max_k)}
    gains, ideal = propensity.gains(hits, weights), propensity.ideal_gains(hits, weights)
    ratios = {f"PSP@{k}": (gains[:, :k].sum(axis=1), ideal[:, :k].sum(axis=1)) for k in ks}
    for k in ks:
        discounts = ranking.discounts(k)
        ratios[f"PSnDCG@{k}"] = (gains[:, :k] @ discounts, ideal[:, :k] @ discounts)
    labeled = labeled_rows(checked_matrix(Y)) if unlabelled == "count" and hits.n_without_labels else None

    def over_all(value: DocumentValues, default: float) -> DocumentValues:
        return value if labeled is None else value.among(labeled, default)

    values = {name: over_all(DocumentValues.of_mean(value), 1.0) for name, value in means.items()}
    values |= {name: over_all(DocumentValues(*parts), 0.0) for name, parts in ratios.items()}
    return values | {name: over_all(DocumentValues.of_mean(value), 1.0) for name, value in last.items()}


def _checked_max(ks: Sequence[int]) -> int:
    max_k = max((checked_k(k) for k in ks), default=0)
    if not max_k:
        raise ParameterError("ks must name at least one k, but is empty; set ks=(1, 3, 5)")
    return max_k


def _weights(
    Y: Csr, counts: npt.ArrayLike | None, n_documents: int | None, A: float, B: float, source: PropensityFrom
) -> Doubles:
    n, n_labels = Y.shape
    if source == "test":
        return propensity.inverse_propensity(np.bincount(checked_matrix(Y).indices, minlength=n_labels), n, A, B)
    if source != "train":
        raise ParameterError(f"propensity_from must be 'train' or 'test', but is {source!r}; set one of them")
    if counts is None or n_documents is None:
        missing = "counts" if counts is None else "n_documents"
        rule = "propensities need the training counts and the number of training documents"
        raise DataError(f"{rule}, but {missing} is None; pass {missing}=..., or set propensity_from='test'")
    return propensity.inverse_propensity(counts, n_documents, A, B, n_labels)


def most_common(counts: npt.ArrayLike, n: int, k: int = 5) -> TopK:
    """Predict the k most frequent training labels for each of n documents; ties go to the smaller label id.

    The scores are the ``counts``. Lists are padded with -1 if there are fewer labels.

    >>> most_common([3, 9, 5], n=1, k=2).labels.tolist()
    [[1, 2]]
    """
    checked = checked_counts(counts, np.size(counts))
    best = TopK.from_scores(checked[None, :], checked_k(k))
    return TopK(np.repeat(best.labels, n, axis=0), np.repeat(best.scores, n, axis=0))


def random_topk(n_labels: int, n: int, k: int = 5, seed: int = 0) -> TopK:
    """Draw k distinct labels uniformly at random for each of n documents; pad with -1 if there are fewer.

    >>> topk = random_topk(n_labels=3, n=2, k=3)
    >>> np.sort(topk.labels).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    rng = np.random.default_rng(seed)
    n_drawn = min(checked_k(k), n_labels)
    labels = np.full((n, n_drawn), -1, np.int32)
    # Floyd's sampling: the j-th draw is from 0..top; a label drawn before is replaced by top, which cannot have been.
    for rank, top in enumerate(range(n_labels - n_drawn, n_labels)):
        draw = rng.integers(0, top + 1, size=n, dtype=np.int32)
        labels[:, rank] = np.where((labels == draw[:, None]).any(axis=1), top, draw)
    # Floyd's sets are uniform but their order is not: late ranks have large label ids too often.
    labels = rng.permuted(labels, axis=1)
    scores = np.linspace(1.0, 0.0, n_drawn, endpoint=False, dtype=np.float32)
    return TopK(labels, np.broadcast_to(scores, labels.shape)).padded(k)


def evaluate_baselines(
    Y: Csr,
    counts: npt.ArrayLike,
    n_documents: int,
    ks: Sequence[int] = DEFAULT_KS,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    propensity_from: PropensityFrom = "train",
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Compute the metrics of :func:`evaluate` for both baselines, under ``most_common`` and ``random``.

    >>> import scipy.sparse as sp
    >>> scores = evaluate_baselines(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), counts=[9, 2, 1], n_documents=10, ks=(1, 3))
    >>> scores["most_common"]["P@1"], scores["random"]["P@3"]
    (50.0, 50.0)
    """
    n, n_labels = Y.shape
    k = max(ks, default=1)
    common = most_common(checked_counts(counts, n_labels), n, k)
    rankings = {"most_common": common, "random": random_topk(n_labels, n, k, seed)}
    return {name: evaluate(Y, topk, counts, n_documents, ks, A, B, propensity_from) for name, topk in rankings.items()}
