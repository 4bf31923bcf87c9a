"""A tagger as a classifier of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from labelspace.data.objects.frames import is_column, to_list
from labelspace.data.splits import hold_out
from labelspace.data.texts import check_texts
from labelspace.errors import DataError, ParameterError
from labelspace.features.base import Features
from labelspace.metrics import ScoredPairs, best_micro_f1
from labelspace.models.base import Model
from labelspace.models.capabilities import Calibrated
from labelspace.models.registry import DEFAULT, METHODS, method
from labelspace.sklearn.parameters import NestedParameters, limited_threads, new_model, seed_of
from labelspace.sklearn.targets import Targets, are_names
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Doubles, Floats, Longs, TopK

BASELINES = ("popular", "random")  # methods to compare others with
MAX_DENSE = 2**27  # numbers of a dense answer: half a gigabyte of float32 scores, and a gigabyte of int64 labels
RANKED = 100  # labels of each document that have a score; there are at least k


def _method_class(given: object) -> type:
    return method(given) if isinstance(given, str) and given in METHODS else type(given)


def _has_probabilities(classifier: TaggerClassifier) -> bool:
    """Return True for a calibrated method; scikit-learn also asks before the fit."""
    if not issubclass(_method_class(classifier.method), Calibrated):
        rule = f"predict_proba needs a method that is calibrated, but {classifier.method!r} is not"
        raise AttributeError(f"{rule}; use decision_function, or method='blend'")
    return True


class TaggerClassifier(ClassifierMixin, NestedParameters):  # type: ignore[misc]  # scikit-learn has no types
    """Classify documents by a method of labelspace: many labels each, or one class.

    X: texts (a list, an array, a column), or numbers (n, n_features), sparse or dense. y: a 0/1 matrix (n, n_labels),
    sparse or dense; lists of label names; or one class per document.

    Args:
        method: A name (``labelspace methods`` lists them), or a model: ``labelspace.create("one_vs_rest", C=1)``. Its
            parameters are ``method__C`` and so on for ``set_params`` and searches.
        k: Predict at most so many labels, and without a threshold exactly so many.
        threshold: Predict labels whose probability is at least this, or whose score is for a method that is not
            calibrated. ``"f1"``: the one with the best micro-F1 on held-out training documents, for which the method is
            trained once more. ``"auto"``: ``"f1"``, but none where ``k`` is given.
        validation_fraction: The share of the training documents that is held out for ``"f1"``.
        features: What is made of texts in place of the method's own features: a name, or features.
        sparse_output: Whether predictions, probabilities and decisions are csr matrices; ``"auto"``: where y was one.
        n_jobs: Threads; None for LABELSPACE_THREADS, or all CPUs.
        random_state: Seed, or a RandomState that draws one; None leaves it to the method, which has a fixed one.

    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 5
    >>> labels = [["baking"], ["baking", "dough"], ["fish"], ["fish"]] * 5
    >>> classifier = TaggerClassifier("neighbors").fit(texts, labels)
    >>> classifier.predict(["how to bake bread"]).tolist(), classifier.score(texts, labels)
    ([['baking']], 1.0)
    """

    classes_: npt.NDArray[Any]
    tagger_: Tagger
    threshold_: float | None

    def __init__(
        self,
        method: str | Model = DEFAULT,
        *,
        k: int | None = None,
        threshold: str | float = "auto",
        validation_fraction: float = 0.1,
        features: str | Features | None = None,
        sparse_output: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,  # noqa: ANN401 - as scikit-learn takes it
    ) -> None:
        self.method = method
        self.k = k
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.features = features
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's own type
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True  # one_d_array, for texts, would have the checks give numbers so
        tags.classifier_tags.poor_score = _method_class(self.method) in map(method, BASELINES)
        return tags

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ANN401 - whatever scikit-learn takes
        """Learn from documents and their labels; forget what was learned before."""
        self._check_settings()
        inputs = self._checked(X, reset=True)
        targets, Y = Targets.read(y)
        check_consistent_length(X, Y)
        if targets.kind == "classes":
            self._check_for_classes()
        documents = Dataset(Y, targets.labels, **inputs)
        seed = seed_of(self.random_state)
        with limited_threads(self.n_jobs):
            threshold = self._learned_threshold(targets, documents, seed)
            tagger = self._new_tagger(seed).fit_dataset(documents)
        self.tagger_, self.threshold_ = tagger, threshold
        self.classes_, self._targets = targets.classes, targets
        return self

    def _new_tagger(self, seed: int | None) -> Tagger:
        return Tagger(new_model(self.method, seed), self.features)

    def _learned_threshold(self, targets: Targets, documents: Dataset, seed: int | None) -> float | None:
        if targets.kind == "classes" or (self.threshold == "auto" and self.k is not None):
            return None
        if not isinstance(self.threshold, str):
            return float(self.threshold)
        k = self.k or RANKED
        return learn_f1_threshold(self._new_tagger(seed), documents, k, self.validation_fraction, seed or 0)

    def _checked(self, X: Any, reset: bool) -> dict[str, Any]:  # noqa: ANN401 - whatever scikit-learn takes
        """Return the documents as the texts or X of a Dataset."""
        if _are_texts(X):
            if reset:
                self.__dict__.pop("n_features_in_", None)
                self.__dict__.pop("feature_names_in_", None)
            return {"texts": check_texts(X)}
        if not reset and not self.tagger_.ready_made:
            raise DataError("the classifier was fitted on texts, but X holds something else; give a list of texts")
        if reset and self.features is not None:
            rule = "features are made of texts, but X holds something else"
            raise ParameterError(f"{rule} and features is {self.features!r}; leave it out")
        try:
            checked = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=reset)
        except ValueError as error:
            if "convert string" not in str(error):
                raise
            remedy = "give one column of texts, or make numbers of the columns by a ColumnTransformer"
            raise DataError(f"X must be texts or numbers, but is a table with texts; {remedy}") from error
        return {"X": sp.csr_matrix(checked)}

    def predict_topk(self, X: Any, k: int = 5) -> TopK:  # noqa: ANN401 - whatever scikit-learn takes
        """Return the k best labels of each document as columns of ``classes_``, best first, padded with -1 / -inf.

        Scores are probabilities if the method is calibrated.
        """
        check_is_fitted(self)
        inputs = self._checked(X, reset=False)
        with limited_threads(self.n_jobs):
            return ranked(self.tagger_, next(iter(inputs.values())), k)

    def predict(self, X: Any) -> Any:  # noqa: ANN401 - as y was
        """Return labels in the form of the training y: a 0/1 matrix, lists of names (best first), or classes."""
        check_is_fitted(self)
        if self._targets.kind == "classes":
            return self.classes_[best_class(self.predict_topk(X, RANKED), self._shares)]
        top = self.predict_topk(X, self.k or RANKED)
        if self.threshold_ is not None:
            top = top.at_least(self.threshold_)
        if self._targets.kind == "names":
            return _names(top, self.classes_)
        if not self._is_sparse:
            check_dense(len(top), len(self.classes_))
        labels = top.to_csr(len(self.classes_)).astype(np.int64)
        return labels if self._is_sparse else labels.toarray()

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Any:  # noqa: ANN401 - whatever scikit-learn takes
        """Return the probability of each label (n, n_labels); labels below the 100 best (or k, if more) have 0.

        If every document has one class, the probabilities of a document add up to 1.
        """
        top = self._ranked(X)
        if self._targets.kind == "classes":
            return normalized(class_scores(top, self._shares))
        if self._is_sparse:
            return top.to_csr(len(self.classes_), with_scores=True)
        return dense_scores(top, len(self.classes_))

    def decision_function(self, X: Any) -> Any:  # noqa: ANN401 - whatever scikit-learn takes
        """Return scores less the threshold (n, n_labels): the k best labels among those from 0 on are predicted.

        Labels below the 100 best (or k, if more) have the lowest score; in a csr matrix they are not stored. Of two
        classes it is the score of the second less the score of the first (n,).
        """
        top = self._ranked(X)
        if self._targets.kind == "classes":
            by_class = class_scores(top, self._shares)
            if isinstance(self.tagger_.model, Calibrated):  # in the order of the probabilities
                by_class = normalized(by_class)
            return by_class[:, 1] - by_class[:, 0] if len(self.classes_) == 2 else by_class
        threshold = self.threshold_ or 0.0
        if self._is_sparse:
            scores = top.to_csr(len(self.classes_), with_scores=True)
            scores.data -= np.float32(threshold)
            return scores
        return dense_scores(top, len(self.classes_)) - np.float32(threshold)

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:  # noqa: ANN401
        """Return the share of documents whose labels are exactly right, as for every classifier of scikit-learn."""
        predicted = self.predict(X)
        if are_names(y) != (self._targets.kind == "names"):
            raise DataError("y must be as in training, but only one of the two has lists of names; give y in that form")
        if self._targets.kind != "names":
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        exact = np.array([set(names) == set(found) for names, found in zip(y, predicted, strict=True)])
        return float(np.average(exact, weights=None if sample_weight is None else np.asarray(sample_weight, float)))

    def _ranked(self, X: Any) -> TopK:  # noqa: ANN401 - whatever scikit-learn takes
        return self.predict_topk(X, max(self.k or 0, RANKED))

    @property
    def _is_sparse(self) -> bool:
        return self._targets.is_sparse if self.sparse_output == "auto" else bool(self.sparse_output)

    @property
    def _shares(self) -> Doubles:
        """The share of each class among the training documents."""
        labels = self.tagger_.labels_
        return np.asarray(labels.counts, np.float64) / labels.n_documents


def _are_texts(X: Any) -> bool:  # noqa: ANN401 - whatever scikit-learn takes
    """Return whether X is a list, an array or a column with texts."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind in "UT" or (X.dtype.kind == "O" and any(isinstance(x, str) for x in X)))
    if is_column(X):
        X = to_list(X, "X must be a column", "give a list")
    return isinstance(X, (list, tuple)) and any(isinstance(x, str) for x in X)


def _names(top: TopK, classes: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    out = np.empty(len(top), object)
    for row, labels in enumerate(top.labels):
        out[row] = classes[labels[labels >= 0]].tolist()
    return out


def check_dense(n: int, n_labels: int) -> None:
    """Raise DataError for a dense matrix that would fill the memory."""
    if n * n_labels > MAX_DENSE:
        remedy = "set sparse_output=True if y is multilabel, call predict_topk, or predict fewer documents at a time"
        rule = f"a dense answer must have at most {MAX_DENSE} numbers, but has {n} documents x {n_labels} labels"
        raise DataError(f"{rule}; {remedy}")


def dense_scores(top: TopK, n_labels: int) -> Floats:
    """Return scores (n, n_labels); labels that are not ranked have 0, or the document's lowest score if that is less.

    >>> dense_scores(TopK(np.array([[2, 0], [1, -1]]), np.array([[0.5, 0.25], [-1.0, -np.inf]])), 3).tolist()
    [[0.25, 0.0, 0.5], [-1.0, -1.0, -1.0]]
    """
    check_dense(len(top), n_labels)
    is_label = top.labels >= 0
    lowest = np.where(is_label, top.scores, 0).min(axis=1, initial=0)
    scores = np.repeat(lowest[:, None], n_labels, axis=1).astype(np.float32)
    scores[np.nonzero(is_label)[0], top.labels[is_label]] = top.scores[is_label]
    return scores


def class_scores(top: TopK, shares: Doubles) -> Doubles:
    """Return scores (n, n_classes) of documents that have one class each.

    A document for which no class is ranked has the share of each class among the training documents.

    >>> class_scores(TopK(np.array([[1], [-1]]), np.array([[0.5], [-np.inf]])), np.array([0.75, 0.25])).tolist()
    [[0.0, 0.5], [0.75, 0.25]]
    """
    scores = dense_scores(top, len(shares)).astype(np.float64)
    scores[top.labels[:, 0] < 0] = shares
    return scores


def best_class(top: TopK, shares: Doubles) -> Longs:
    """Return the class with the highest score of each document, the first of equal ones; see ``class_scores``."""
    tied = np.where((top.labels >= 0) & (top.scores == top.scores[:, :1]), top.labels, len(shares)).min(axis=1)
    return np.where(tied < len(shares), tied, shares.argmax()).astype(np.int64)


def normalized(scores: Doubles) -> Doubles:
    """Return rows that add up to 1; a row of zeros becomes equal values.

    >>> normalized(np.array([[0.5, 1.5], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    total = scores.sum(axis=1, keepdims=True)
    alike = np.full_like(scores, 1 / scores.shape[1])
    return np.asarray(np.divide(scores, total, out=alike, where=total > 0))


def learn_f1_threshold(tagger: Tagger, documents: Dataset, k: int, fraction: float, seed: int) -> float:
    """Train on all but a ``fraction`` of the documents, and choose the threshold for the k best labels of the rest.

    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 5
    >>> from labelspace.data.texts import dataset_from_names
    >>> documents = dataset_from_names(texts, [["baking"], ["baking"], ["fish"], ["fish"]] * 5)
    >>> 0 < learn_f1_threshold(Tagger("neighbors"), documents, k=2, fraction=0.2, seed=0) <= 1
    True
    """
    rest, held_out = hold_out(documents, fraction, seed)
    if rest.Y.nnz == 0 or held_out.Y.nnz == 0:
        rule = "a threshold is learned from labeled documents in both parts of the training data"
        few = f"of {len(documents)} documents too few have labels"
        raise DataError(f"{rule}, but {few}; give more, or set k, or threshold to a number")
    tagger.fit_dataset(rest)
    top = ranked(tagger, tagger.inputs_of(held_out), k)
    return middle_of_best(ScoredPairs.from_topk(held_out.Y, top, include_unlabeled=True))


def middle_of_best(pairs: ScoredPairs) -> float:
    """Return the threshold with the best micro-F1, halfway to the next score: all between the two are equally good.

    >>> import scipy.sparse as sp
    >>> middle_of_best(ScoredPairs.from_topk(sp.csr_matrix([[1, 0]]), TopK.from_scores([[0.75, 0.25]], k=2)))
    0.5
    """
    best = best_micro_f1(pairs).threshold
    if best is None:  # no label is found at any threshold
        return 0.0
    lower = pairs.scores[pairs.scores < best]
    return float(best + lower[0]) / 2 if lower.size else best


def ranked(tagger: Tagger, inputs: Any, k: int) -> TopK:  # noqa: ANN401 - texts, or rows of features
    """Return the k best labels with probabilities, or with scores if the method is not calibrated."""
    k = min(k, len(tagger.labels_))
    return tagger.predict_topk(inputs, k, calibrated=isinstance(tagger.model, Calibrated))
