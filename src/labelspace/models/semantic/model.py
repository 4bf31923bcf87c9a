"""Semantic: label texts and documents in the space of a pretrained encoder.

Z: vectors of documents (n, d), T: vectors of the labels' own texts (L, d), Y: labels of documents (n, L).

1. Vectors have norm 1, then lose their mean: documents that of documents, texts of labels that of such texts; then
   they have norm 1 again. What all texts share says nothing of one.
2. A label's vector is a ridge regression on the documents towards its text, in closed form: V minimizes
   |Y - Z V'|^2 + lambda |V - T|^2, so V = (Y'Z + lambda T) (Z'Z + lambda I)^-1. A text counts as lambda documents that
   have the label, and what documents share counts less than what tells them apart.
3. A document's score of a label without this document is known in closed form too. By such scores, learn when a label
   is right: a logistic model of the log of the score, the best score of the document, and the count of the label.
4. A label without documents has its text as its vector: its zero in Y would say that it is wrong for every document.
   Such labels have a logistic model of their own, of the scores that the rarer half of the other labels gets by texts
   alone, as if they had no documents.
5. A document is compared with all labels by an index for each of the two kinds. The score is the probability.

Without documents, both models keep weights that were measured on other data: zero-shot tagging.

The sums Z'Z and Y'Z are kept, and documents that are learned later are added to them: the result is that of training
with all documents, except that the center and the logistic models stay. A document whose labels are not all known
corrects the labels that it is known to have, or not to have, and says nothing of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace import index
from labelspace.errors import DataError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import real
from labelspace.estimator.state_constraints import array, must, part
from labelspace.features.views import EMBEDDINGS
from labelspace.index import Index, index_class
from labelspace.index.exact import Exact
from labelspace.labels.masks import LastMask
from labelspace.models import checks, parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import index_among, overfetch
from labelspace.models.checks import Inputs
from labelspace.models.fit_context import FitContext
from labelspace.models.partial_fit import NewDocuments
from labelspace.models.semantic.calibration import BY_DOCUMENTS, BY_TEXT, Line, fit_line, fit_line_and_power
from labelspace.models.semantic.regression import DocumentSums, center_of, leave_one_out, unit_vectors
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Csr, Doubles, Floats, LabelSpace, TopK

MAX_FEATURES = 4096  # the regression inverts a matrix of features x features
REG_WEIGHT, REG_DOCUMENTS = 3.0, 4000.0  # lambda of few documents, and from how many on it grows
MAX_SAMPLE, MIN_SAMPLE, MAX_CELLS = 2000, 200, 2e7  # documents of step 3, and scores that these have
INDEX_QUERIES = 300  # documents by which the kind of index is chosen


class Semantic(Model):
    """Labels whose texts, and whose documents, mean what a text means.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> first = Semantic().fit(train.X, train.Y).predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "semantic"
    title = "ridge regression on an encoder's vectors of documents, towards those of the labels' texts"
    choose_when = "labels have few documents or none, and texts say in other words what labels are called"
    view = EMBEDDINGS

    label_text: float = parameters.label_text(1.0)
    reg_weight: float | None = param(
        None,
        real(above=0),
        "Documents that a label's text counts as (lambda); none chooses by the number of documents.",
    )
    random_state: int = parameters.random_state()

    center_: Floats = learned(array("float32", "n_features"))  # of documents
    texts_: Floats = learned(array("float32", "n_labels", "n_features"))  # T; zero for a label without a text
    sums_: DocumentSums = learned(part(DocumentSums, n_labels="n_labels", n_features="n_features"))
    index_: Index = learned(part(index_class))  # of labels with documents
    text_index_: Index = learned(part(index_class))  # of labels with a text only
    line_: Line = learned(part(Line))
    text_line_: Line = learned(part(Line))
    power_: Floats = learned(array("float32", 1))  # of the counts of labels, by which their vectors are scaled

    def check_state(self) -> None:
        """Check that both indexes hold vectors of labels, as long as those of documents."""
        for kept in (self.index_, self.text_index_):
            must(kept.dimension == len(self.center_), "an index of vectors as long as its center")
            must(int(kept.ids.max(initial=-1)) < self.n_labels_, f"an index of its {self.n_labels_} labels")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        with threadpool_limits(1, user_api="blas"):  # sums in one order
            text_center = self._set_texts(context.label_features, Y.shape[1], X.shape[1])  # step 1
            self.center_ = center_of(X, text_center)
            self.sums_ = DocumentSums.nothing(Y.shape[1], X.shape[1]).plus(X, Y, self.center_)
            rows = np.random.default_rng(self.random_state).permutation(X.shape[0])
            sample = np.sort(rows[: int(np.clip(MAX_CELLS / Y.shape[1], MIN_SAMPLE, MAX_SAMPLE))])
            Z = unit_vectors(X[sample], self.center_)
            self._calibrate(Z, Y[sample])
            self._build_indexes(Z[:INDEX_QUERIES])

    def fit_labels(self, labels: LabelSpace, label_features: Inputs | None = None) -> Self:
        """Fit to only the texts of labels, as vectors: zero-shot tagging."""
        self.check_params()
        if label_features is None:
            rule = f"{self.name} reads the vectors of the labels' texts, but label_features is None"
            raise DataError(f"{rule}; use labelspace.Tagger, which makes them")
        features = checks.check_features(label_features)
        checks.check_label_features(features, (len(labels), features.shape[1]))
        self.forget()
        self.widths_, self.n_labels_ = {self.view.name: features.shape[1]}, len(labels)
        self.labels_ = replace(labels, counts=np.zeros(len(labels), np.int64), n_documents=0)
        self.center_ = self._set_texts(features, *features.shape)
        self.sums_ = DocumentSums.nothing(*features.shape)
        self.line_, self.text_line_, self.power_ = Line(BY_DOCUMENTS), Line(BY_TEXT), np.zeros(1, np.float32)
        self._build_indexes(self.texts_[:INDEX_QUERIES])
        return self

    def _set_texts(self, label_features: Csr | None, n_labels: int, n_features: int) -> Floats:
        """Set the vectors of the labels' texts, and return their mean; without texts, both are zero."""
        if n_features > MAX_FEATURES:
            rule = f"{self.name} reads vectors of at most {MAX_FEATURES} features, but documents have {n_features}"
            raise DataError(f"{rule}; use features=embeddings, or another method")
        center = np.zeros(n_features, np.float32)
        self.texts_ = np.zeros((n_labels, n_features), np.float32)
        if label_features is not None and self.label_text:
            center = center_of(label_features, center)
            self.texts_ = unit_vectors(label_features, center) * np.float32(self.label_text)
        return center

    def _calibrate(self, Z: Floats, Y: Csr) -> None:
        """Learn when labels are right, by the scores of documents without themselves (steps 3 and 4)."""
        counts, (vectors, inverse) = self.sums_.counts, self._solution()
        seen = np.flatnonzero(counts)
        scores = leave_one_out(Z, Y[:, seen], vectors[seen], inverse)
        self.line_, power = fit_line_and_power(scores, Y[:, seen], counts[seen], BY_DOCUMENTS)
        self.power_ = np.array([power], np.float32)
        rare = seen[counts[seen] <= np.median(counts[seen])]
        self.text_line_ = fit_line(Z @ self.texts_[rare].T, Y[:, rare], BY_TEXT)

    @property
    def _weight(self) -> float:
        """Return lambda; a row of the documents adds 1 to the trace of Z'Z."""
        if self.reg_weight is not None:
            return float(self.reg_weight)
        return float(REG_WEIGHT * (1 + np.trace(self.sums_.gram) / REG_DOCUMENTS) ** 0.5)

    def _solution(self) -> tuple[Floats, Doubles]:
        """Return the vectors of labels by documents and texts (step 2), and (Z'Z + lambda I)^-1."""
        inverse = self.sums_.inverse(self._weight)
        return self.sums_.label_vectors(np.float32(self._weight) * self.texts_, inverse), inverse

    def _build_indexes(self, queries: Floats) -> None:
        """Index the labels with documents, and those with a text only (step 5)."""
        counts, (vectors, _) = self.sums_.counts, self._solution()
        seen, unseen = np.flatnonzero(counts), np.flatnonzero((counts == 0) & self.texts_.any(axis=1))
        scales = np.power(1.0 + counts[seen], self.power_[0]).astype(np.float32)
        self.index_ = index.choose(vectors[seen] * scales[:, None], seen, queries, seed=self.random_state)
        self.text_index_ = index.choose(self.texts_[unseen], unseen, queries, seed=self.random_state)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        Z = unit_vectors(X, self.center_)
        top = self._ranked(self.index_, self.line_, Z, k, allowed, self.mask_cache)
        return top.best_of_both(self._ranked(self.text_index_, self.text_line_, Z, k, allowed, self._text_mask_cache))

    def _ranked(
        self, kept: Index, line: Line, Z: Floats, k: int, allowed: Bools | None, cache: LastMask[Index | None]
    ) -> TopK:
        """Return the k best allowed labels of an index, of scores above 0, with their probabilities."""
        if not len(kept):
            return TopK.empty(len(Z), k)
        top = kept.search(Z, k)
        best = top.scores[:, 0]
        if allowed is not None:
            some = index_among(kept, allowed, cache)
            if some is None:
                top = overfetch(kept.search, Z, k, allowed)
            else:
                top = some.search(Z, k) if len(some) else TopK.empty(len(Z), k)
        listed = top.scores > 0
        probabilities = sigmoid(line.log_odds(top, best))
        return TopK(np.where(listed, top.labels, -1), np.where(listed, probabilities, -np.inf).astype(np.float32))

    @cached_property
    def _text_mask_cache(self) -> LastMask[Index | None]:
        """The cache of the index of labels with a text only, for the last mask of allowed labels."""
        return LastMask()

    def text_topk(self, X: Csr, k: int, allowed: Bools) -> TopK:
        """Return the k best allowed labels of each document by their texts alone."""
        ids = np.flatnonzero(allowed & self.texts_.any(axis=1))
        by_text = Exact(self.texts_[ids], ids)
        return self._ranked(by_text, self.text_line_, unit_vectors(X, self.center_), k, None, self._text_mask_cache)

    def to_probabilities(self, top: TopK) -> TopK:
        """Return the labels as they are: scores are probabilities."""
        return top

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Add documents to the sums; a label that is new has no text until its documents tell what it means."""
        complete, partly = np.flatnonzero(new.are_complete), np.flatnonzero(~new.are_complete)
        self.texts_ = np.append(
            self.texts_, np.zeros((new.n_labels - len(self.texts_), len(self.center_)), np.float32), 0
        )
        with threadpool_limits(1, user_api="blas"):
            self.sums_ = self.sums_.plus(new.X[complete], new.Y[complete], self.center_)
            if len(partly):
                right, wrong = new.Y[partly], new.rejected[partly]
                targets, inverse = np.float32(self._weight) * self.texts_, self.sums_.inverse(self._weight)
                Z = unit_vectors(new.X[partly], self.center_)
                self.sums_ = self.sums_.corrected(Z, right + wrong, right, targets, inverse)
            self._build_indexes(unit_vectors(new.X[:INDEX_QUERIES], self.center_))
        return ()
