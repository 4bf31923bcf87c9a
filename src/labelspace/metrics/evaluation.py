"""All standard metrics of one set of predictions."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.metrics import document_values, ranking
from labelspace.metrics.checks import checked_k, checked_matrix, labeled_rows
from labelspace.metrics.document_values import DocumentValues
from labelspace.metrics.hits import RankedHits
from labelspace.metrics.propensity import inverse_propensity
from labelspace.types import Csr, Doubles, TopK
from labelspace.types.propensity import DEFAULT_A, DEFAULT_B

PropensityFrom = Literal["train", "test"]
Unlabelled = Literal["skip", "count"]
DEFAULT_KS = (1, 3, 5)


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
    """P, nDCG, PSP and PSnDCG at each k, then R, RP and coverage at the largest, in percent with 4 decimals.

    Then ``n`` (documents averaged over), ``n_without_labels`` and ``n_labels``. Documents without labels are left out
    ("skip"), or averaged over with a score of 0 ("count"), as programs of the field do; PSP, PSnDCG and coverage, which
    are ratios of sums, are the same. Propensities are estimated from ``counts``; ``propensity_from="test"`` takes Y, as
    in the GLaS paper (Appendix D), and no counts.

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
    """What each document adds to the metrics of :func:`evaluate`, in their order, without coverage, as fractions.

    The documents are those that have labels, or with ``unlabelled="count"`` all.

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
    if unlabelled not in ("skip", "count"):
        raise ParameterError(f"unlabelled must be skip or count, but is {unlabelled!r}; set one of them")
    means, ratios = document_values.means(hits, ks), document_values.ratios(hits, weights, ks)
    if unlabelled == "count" and hits.n_without_labels:
        labeled = labeled_rows(checked_matrix(Y))
        means = {name: value.among(labeled, 1.0) for name, value in means.items()}
        ratios = {name: value.among(labeled, 0.0) for name, value in ratios.items()}
    last = (f"R@{max(ks)}", f"RP@{max(ks)}")
    first = {name: value for name, value in means.items() if name not in last}
    return first | ratios | {name: means[name] for name in last}


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
        return inverse_propensity(np.bincount(checked_matrix(Y).indices, minlength=n_labels), n, A, B)
    if source != "train":
        raise ParameterError(f"propensity_from must be 'train' or 'test', but is {source!r}; set one of them")
    if counts is None or n_documents is None:
        missing = "counts" if counts is None else "n_documents"
        raise DataError(
            f"propensities need the training counts and the number of training documents, but {missing} is None; "
            f"pass {missing}=..., or set propensity_from='test'"
        )
    return inverse_propensity(counts, n_documents, A, B, n_labels)
