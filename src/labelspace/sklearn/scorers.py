"""The field's metrics as scorers: ``scoring=ndcg_at(5)`` in ``cross_validate``, ``GridSearchCV`` and others.

A scorer calls ``predict_topk`` if the estimator has it, else ``predict_proba``, else ``decision_function``. Only the
stored values of a csr matrix are ranked. Values are those of ``labelspace.metrics``: fractions, over the documents that
have labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace import metrics
from labelspace.errors import DataError, ParameterError
from labelspace.metrics.hits import checked_k
from labelspace.sklearn.targets import Targets, TrueLabels
from labelspace.types import Csr, Doubles, Longs, TopK
from labelspace.types.propensity import DEFAULT_A, DEFAULT_B

RESPONSES = ("predict_proba", "decision_function")


@dataclass(frozen=True)
class Propensities:
    """The counts of labels in the training documents, from which the weights of labels are computed.

    >>> Propensities.of([["baking"], ["baking", "dough"]] * 9).weights(np.array(["dough", "baking"])).round(2).tolist()
    [1.86, 1.61]
    """

    classes: npt.NDArray[Any] | None  # None for the columns of a matrix
    counts: Longs
    n_documents: int
    A: float = DEFAULT_A
    B: float = DEFAULT_B

    @staticmethod
    def of(y_train: Any, A: float = DEFAULT_A, B: float = DEFAULT_B) -> Propensities:  # noqa: ANN401
        """Count the labels of training documents: y as for ``TaggerClassifier.fit``."""
        targets, Y = Targets.read(y_train)
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        return Propensities(None if targets.kind == "matrix" else targets.classes, counts, Y.shape[0], A, B)

    def weights(self, columns: npt.NDArray[Any]) -> Doubles:
        """Return the weight of each column of true labels, given by class, name or number of a column."""
        counts = self.counts
        if self.classes is not None:
            known = dict(zip(self.classes.tolist(), self.counts.tolist(), strict=True))
            counts = np.array([known.get(column, 0) for column in columns.tolist()], np.int64)
        if columns.dtype.kind not in "iu" if self.classes is None else not counts.any():
            rule = "y_train must name the labels as y does, but one lacks columns or labels of the other"
            raise DataError(f"{rule}; give the y that the estimator is fitted on")
        return metrics.inverse_propensity(counts, self.n_documents, self.A, self.B, len(columns))


@dataclass(frozen=True)
class RankingScorer:
    """A metric of the k best labels: call it with an estimator, X and y.

    >>> from labelspace.sklearn import TaggerClassifier
    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 5
    >>> labels = [["baking"], ["baking", "dough"], ["fish"], ["fish"]] * 5
    >>> precision_at(1)(TaggerClassifier("neighbors", k=1).fit(texts, labels), texts, labels)
    1.0
    """

    name: str
    function: Callable[..., float] = field(repr=False)
    k: int
    propensities: Propensities | None = field(default=None, repr=False)  # for metrics that weigh labels

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:  # noqa: ANN401 - as scikit-learn calls it
        """Return the metric on these documents."""
        true = TrueLabels.read(y, np.asarray(estimator.classes_))
        if hasattr(estimator, "predict_topk"):
            return self._value(true, estimator.predict_topk(X, self.k))
        response = next((name for name in RESPONSES if hasattr(estimator, name)), None)
        if response is None:
            lacks = f"{type(estimator).__name__} has neither {' nor '.join(RESPONSES)}"
            raise ParameterError(
                f"{self.name} needs scores of labels, but {lacks}; choose an estimator with one of them"
            )
        return self._value(true, self._topk(getattr(estimator, response)(X)))

    def metric(self, y_true: Any, y_score: Any) -> float:  # noqa: ANN401 - whatever scikit-learn takes
        """Return the metric of scores (n, n_labels), sparse or dense, and a 0/1 matrix of true labels.

        As in ``make_scorer(ndcg_at(5).metric, response_method="predict_proba")``.

        >>> precision_at(1).metric([[1, 0], [0, 1]], [[0.9, 0.2], [0.8, 0.3]])
        0.5
        """
        true = TrueLabels.read(y_true, np.arange(np.shape(y_score)[1]))
        return self._value(true, self._topk(y_score))

    def _topk(self, scores: Any) -> TopK:  # noqa: ANN401 - sparse or dense
        return stored_topk(scores, self.k) if sp.issparse(scores) else TopK.from_scores(np.asarray(scores), self.k)

    def _value(self, true: TrueLabels, top: TopK) -> float:
        weights = () if self.propensities is None else (self.propensities.weights(true.columns),)
        return self.function(true.Y, top.padded(self.k), *weights, k=self.k)


def precision_at(k: int) -> RankingScorer:
    """Return a scorer of P@k."""
    return RankingScorer(f"P@{k}", metrics.precision_at_k, checked_k(k))


def ndcg_at(k: int) -> RankingScorer:
    """Return a scorer of nDCG@k."""
    return RankingScorer(f"nDCG@{k}", metrics.ndcg_at_k, checked_k(k))


def recall_at(k: int) -> RankingScorer:
    """Return a scorer of R@k."""
    return RankingScorer(f"R@{k}", metrics.recall_at_k, checked_k(k))


def r_precision_at(k: int) -> RankingScorer:
    """Return a scorer of RP@k."""
    return RankingScorer(f"RP@{k}", metrics.r_precision_at_k, checked_k(k))


def coverage_at(k: int) -> RankingScorer:
    """Return a scorer of coverage@k."""
    return RankingScorer(f"coverage@{k}", metrics.coverage_at_k, checked_k(k))


def psp_at(k: int, y_train: Any, A: float = DEFAULT_A, B: float = DEFAULT_B) -> RankingScorer:  # noqa: ANN401
    """Return a scorer of PSP@k, with propensities of the labels in ``y_train``, which is as y for ``fit``."""
    return RankingScorer(f"PSP@{k}", metrics.psp_at_k, checked_k(k), Propensities.of(y_train, A, B))


def psndcg_at(k: int, y_train: Any, A: float = DEFAULT_A, B: float = DEFAULT_B) -> RankingScorer:  # noqa: ANN401
    """Return a scorer of PSnDCG@k, with propensities as for PSP@k."""
    return RankingScorer(f"PSnDCG@{k}", metrics.psndcg_at_k, checked_k(k), Propensities.of(y_train, A, B))


def stored_topk(scores: Csr, k: int) -> TopK:
    """Return the k best stored values of each row of a sparse matrix, of any sign; other values are not ranked.

    The scores of the answer are ranks in the order of all values.

    >>> stored_topk(sp.csr_matrix([[0.0, -0.5, -0.25]]), k=2).labels.tolist()
    [[2, 1]]
    """
    csr = sp.csr_matrix(scores)
    ranks = np.unique(csr.data, return_inverse=True)[1] + 1
    return TopK.from_sparse(sp.csr_matrix((ranks, csr.indices, csr.indptr), shape=csr.shape), k)
