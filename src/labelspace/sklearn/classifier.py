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
from labelspace.data.texts import check_texts
from labelspace.errors import DataError, ParameterError
from labelspace.features.base import Features
from labelspace.models.base import Model
from labelspace.models.capabilities import Calibrated
from labelspace.models.registry import DEFAULT, METHODS, method
from labelspace.sklearn import label_scores
from labelspace.sklearn.label_scores import learn_f1_threshold, ranked
from labelspace.sklearn.parameters import (
    NestedParameters,
    check_for_classes,
    check_settings,
    limited_threads,
    new_model,
    seed_of,
)
from labelspace.sklearn.targets import Targets, are_names
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Doubles, TopK

BASELINES = ("popular", "random")  # methods to compare others with
RANKED = 100  # labels of each document that have a score; there are at least k


def _method_class(given: object) -> type:
    return method(given) if isinstance(given, str) and given in METHODS else type(given)


def _has_probabilities(classifier: TaggerClassifier) -> bool:
    """Return True for a calibrated method; scikit-learn also asks before the fit."""
    if not issubclass(_method_class(classifier.method), Calibrated):
        raise AttributeError(
            f"predict_proba needs a method that is calibrated, but {classifier.method!r} is not; "
            "use decision_function, or method='blend'"
        )
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
        check_settings(self)
        inputs = self._checked(X, reset=True)
        targets, Y = Targets.read(y)
        check_consistent_length(X, Y)
        if targets.kind == "classes":
            check_for_classes(self)
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
            raise ParameterError(
                f"features are made of texts, but X holds something else and features is {self.features!r}; "
                "leave it out"
            )
        try:
            checked = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=reset)
        except ValueError as error:
            if "convert string" not in str(error):
                raise
            raise DataError(
                "X must be texts or numbers, but is a table with texts; give one column of texts, or make numbers of "
                "the columns by a ColumnTransformer"
            ) from error
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
            return self.classes_[label_scores.best_class(self.predict_topk(X, RANKED), self._shares)]
        top = self.predict_topk(X, self.k or RANKED)
        if self.threshold_ is not None:
            top = top.at_least(self.threshold_)
        if self._targets.kind == "names":
            return _names(top, self.classes_)
        if self._is_sparse:
            return top.to_csr(len(self.classes_)).astype(np.int64)
        return label_scores.dense_labels(top, len(self.classes_))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Any:  # noqa: ANN401 - whatever scikit-learn takes
        """Return the probability of each label (n, n_labels); labels below the 100 best (or k, if more) have 0.

        If every document has one class, the probabilities of a document add up to 1.
        """
        top = self._ranked(X)
        if self._targets.kind == "classes":
            return label_scores.normalized(label_scores.class_scores(top, self._shares))
        if self._is_sparse:
            return top.to_csr(len(self.classes_), with_scores=True)
        return label_scores.dense_scores(top, len(self.classes_))

    def decision_function(self, X: Any) -> Any:  # noqa: ANN401 - whatever scikit-learn takes
        """Return scores less the threshold (n, n_labels): the k best labels among those from 0 on are predicted.

        Labels below the 100 best (or k, if more) have the lowest score; in a csr matrix they are not stored. Of two
        classes it is the score of the second less the score of the first (n,).
        """
        top = self._ranked(X)
        if self._targets.kind == "classes":
            return self._class_decision(label_scores.class_scores(top, self._shares))
        threshold = self.threshold_ or 0.0
        if self._is_sparse:
            scores = top.to_csr(len(self.classes_), with_scores=True)
            scores.data -= np.float32(threshold)
            return scores
        return label_scores.dense_scores(top, len(self.classes_)) - np.float32(threshold)

    def _class_decision(self, scores: Doubles) -> Doubles:
        if isinstance(self.tagger_.model, Calibrated):  # in the order of the probabilities
            scores = label_scores.normalized(scores)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:  # noqa: ANN401
        """Return the share of documents whose labels are exactly right, as for every classifier of scikit-learn."""
        predicted = self.predict(X)
        if are_names(y) != (self._targets.kind == "names"):
            raise DataError(
                "y must be as in training, but only one of the two has lists of names; give y as in training"
            )
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
